//! Conditions in CEL: parsed by the `cel` crate when a scenario is loaded, compiled to our own
//! tree, then evaluated over bound names within a budget. What is not supported is refused with its
//! position.
//!
//! The crate's own evaluator has no limits: nested loops over a list from a tool's result take
//! hours, and a loop that builds lists uses up all memory. Ours counts steps and bytes. A condition
//! over its budget is an event and counts as false. `decision.rs` moves expensive decisions to a
//! blocking thread, so timers and other runs do not wait.

pub mod decision;
mod eval;
mod explain;
mod expr;
mod function;
mod parse;
#[cfg(test)]
mod tests;
mod value;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cel::common::ast::{Expr, IdedExpr};
use serde_json::Value;
use url::Url;

use self::expr::CelNode;
use self::parse::{byte_of, children, parse};
use self::value::CelValue;
use crate::base::private_host::plain_name;
use crate::scenario::read::closest_name;

pub use self::decision::{BudgetExceeded, EvalBudget, EvalLimits};
pub use self::explain::ObservedPart;

/// A condition of a scenario or a filter.
pub struct Condition {
    text: String,
    program: cel::Program,
    node: CelNode,
}

impl Condition {
    /// Compiles a condition.
    ///
    /// # Errors
    /// [`ConditionError::Syntax`] with the error and its position: it does not parse, or uses a
    /// name or function that does not exist.
    pub fn compile(text: &str) -> Result<Self, ConditionError> {
        Self::compile_with(text, false)
    }

    /// Compiles a condition about a run that has ended, which may call the functions of
    /// [`RunFacts`].
    ///
    /// # Errors
    /// The same as [`compile`](Self::compile).
    pub fn compile_expectation(text: &str) -> Result<Self, ConditionError> {
        Self::compile_with(text, true)
    }

    fn compile_with(text: &str, of_run: bool) -> Result<Self, ConditionError> {
        let program = parse(text)?;
        let node = expr::compile(program.expression(), of_run).map_err(|(what, id)| {
            let offset = program.source_info().offset_for(id);
            let offset = offset.map(|(start, _)| byte_of(text, start as usize));
            ConditionError::Syntax { text: what, offset }
        })?;
        Ok(Self { text: text.to_owned(), program, node })
    }

    /// Its source text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Evaluates the condition as a decision with its own budget.
    ///
    /// # Errors
    /// The same as [`holds_within`](Self::holds_within).
    pub fn holds(&self, shown: &CelBindings) -> Result<bool, ConditionError> {
        self.holds_within(shown, &mut EvalBudget::default())
    }

    /// Evaluates the condition. The cost is deducted from the budget.
    ///
    /// # Errors
    /// A missing name or key, a wrong type, a value that is not a boolean, or a budget that is used
    /// up. CEL is strict: guard an optional key with `has(facts.x)`.
    pub fn holds_within(
        &self,
        shown: &CelBindings,
        budget: &mut EvalBudget,
    ) -> Result<bool, ConditionError> {
        match eval::value(&self.node, shown, budget) {
            Ok(value::CelValue::Bool(truth)) => Ok(truth),
            Ok(other) => Err(ConditionError::NotBoolean(other.kind().to_owned())),
            Err(EvalError::Failed(what)) => Err(ConditionError::Evaluation(what)),
            Err(EvalError::BudgetExceeded(spent)) => Err(ConditionError::BudgetExceeded(spent)),
        }
    }

    /// The names in its calls of the functions of [`RunFacts`], each with its function.
    pub fn run_names(&self) -> Vec<(RunFunction, &str)> {
        explain::run_names(&self.node)
    }

    /// The texts that a bound name is compared with by `==` or `!=`.
    pub(crate) fn texts_equal_to(&self, name: &str) -> Vec<&str> {
        explain::texts_equal_to(&self.node, name)
    }

    /// The texts that are looked for with `in` in one of these bound names, or in a field of it.
    pub(crate) fn texts_in(&self, names: &[&str]) -> Vec<&str> {
        explain::texts_in(&self.node, names)
    }

    /// Whether it may read one of these fields: it selects one, or computes the name of a field.
    pub(crate) fn may_read_field(&self, fields: &[&str]) -> bool {
        explain::may_read_field(&self.node, fields)
    }

    /// What the parts of the condition are that it compares: its names and its calls of functions
    /// of [`RunFacts`], in order of appearance.
    pub fn explain(&self, shown: &CelBindings) -> Vec<ObservedPart> {
        explain::explain(&self.node, shown)
    }

    /// The names by which it holds, with the fields selected on them: of `||` those of the first side
    /// that holds. The cost is deducted from the budget.
    pub fn deciding_names(&self, shown: &CelBindings, budget: &mut EvalBudget) -> Vec<String> {
        explain::deciding_names(&self.node, shown, budget)
    }

    /// The bound names that it uses, each with the fields selected on it, in order of appearance
    /// and without duplicates.
    pub fn names(&self) -> Vec<Name<'_>> {
        let mut names = Vec::new();
        self.visit(self.program.expression(), &mut Vec::new(), &mut names);
        names.sort_by_key(|name: &Name<'_>| name.at);
        names.dedup();
        names
    }

    /// The recursion is bounded by the limits of [`parse`].
    fn visit<'c>(
        &'c self,
        expr: &'c IdedExpr,
        bound: &mut Vec<&'c str>,
        names: &mut Vec<Name<'c>>,
    ) {
        if let Some((id, path, guarded)) = path_of(expr) {
            // Names with `@` are internal to the parser; a leading dot means the outermost scope.
            let free = path.first().is_some_and(|name| {
                !name.starts_with('@') && !bound.contains(name) && expr::type_named(name).is_none()
            });
            if free {
                let at = self.program.source_info().offset_for(id).map_or(0, |(start, _)| start);
                names.push(Name { path, guarded, at: byte_of(&self.text, at as usize) });
            }
            return;
        }
        if let Expr::Comprehension(inner) = &expr.expr {
            self.visit(&inner.iter_range, bound, names);
            self.visit(&inner.accu_init, bound, names);
            let before = bound.len();
            bound.push(&inner.iter_var);
            bound.extend(inner.iter_var2.as_deref());
            bound.push(&inner.accu_var);
            for part in [&inner.loop_cond, &inner.loop_step, &inner.result] {
                self.visit(part, bound, names);
            }
            bound.truncate(before);
        } else {
            children(&expr.expr, |child| self.visit(child, bound, names));
        }
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Condition").field(&self.text).finish()
    }
}

/// The names bound in a condition, with their values. Cheap to clone: values that stay the same for
/// a whole run (facts, inputs) are copied once, the others are set for each evaluation.
#[derive(Clone, Default, Debug)]
pub struct CelBindings {
    names: Vec<(Cow<'static, str>, Arc<Value>)>,
    /// What the functions of expectations look at.
    run: Option<Arc<RunFacts>>,
    /// Names, also with fields, that have no value, each with the reason.
    missing: Vec<(Cow<'static, str>, Arc<str>)>,
}

impl CelBindings {
    /// Binds a name to a copy of a value; replaces an earlier value.
    pub fn bind(&mut self, name: &'static str, value: &Value) {
        self.bind_shared(Cow::Borrowed(name), Arc::new(value.clone()));
    }

    /// Binds a name to a shared value; replaces an earlier value.
    pub fn bind_shared(&mut self, name: impl Into<Cow<'static, str>>, value: Arc<Value>) {
        let name = name.into();
        match self.names.iter_mut().find(|(taken, _)| *taken == name) {
            Some((_, old)) => *old = value,
            None => self.names.push((name, value)),
        }
    }

    /// Sets why a name, or a field such as `outcome.usage.total_tokens`, has no value.
    pub fn set_missing(&mut self, path: impl Into<Cow<'static, str>>, why: Arc<str>) {
        self.missing.push((path.into(), why));
    }

    /// Why a name, or a field of it, has no value. `None`: nothing is known of that.
    pub(crate) fn missing(&self, path: &str) -> Option<&Arc<str>> {
        self.missing.iter().find(|(known, _)| known == path).map(|(_, why)| why)
    }

    /// Why a field of this name, or of this field, has no value.
    pub(crate) fn missing_inside(&self, path: &str) -> Option<&Arc<str>> {
        let is_inside =
            |known: &str| known.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        self.missing.iter().find(|(known, _)| is_inside(known)).map(|(_, why)| why)
    }

    /// Sets what the functions of expectations look at.
    pub fn set_run_facts(&mut self, facts: Arc<RunFacts>) {
        self.run = Some(facts);
    }

    pub(super) fn run_facts(&self) -> Option<&RunFacts> {
        self.run.as_deref()
    }

    /// The value of a name, or of a field of it: `results.t1.rate`. A number is the place in a list.
    pub fn value_at(&self, path: &str) -> Option<&Value> {
        let mut steps = path.split('.');
        let first = self.get(steps.next()?)?;
        steps.try_fold(first, |value, step| match value {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            value => value.get(step),
        })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.names.iter().find(|(shown, _)| *shown == name).map(|(_, value)| &**value)
    }
}

/// What a run did, for the functions of expectations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// The calls of each name, as a condition writes it: a tool (`llm` is the model), or with one of
    /// the [`PREFIXES`].
    pub calls: BTreeMap<String, CallFacts>,
    /// Names that a condition may use although they do not occur.
    pub listed: Vec<String>,
    /// Names of tools and agents were checked when the file was read: those that do not occur were not
    /// called.
    pub is_checked: bool,
    /// Why calls may be missing here; `None`: all are known.
    pub incomplete: Option<Arc<str>>,
    /// The addresses that the answer cites.
    pub cited: Vec<String>,
    /// The roles, workers and agents that took control, in order.
    pub took_control: Vec<String>,
    /// How often each person was asked.
    pub asked: BTreeMap<String, u64>,
    /// The tools of which a call was approved.
    pub approved: Vec<String>,
}

/// The calls of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallFacts {
    pub calls: u64,
    pub failed: u64,
    /// Those whose end is not known.
    pub lost: u64,
    /// A tool has the name, and an agent has it, too.
    pub is_ambiguous: bool,
}

/// What the name of a call may begin with: what it is the name of.
pub const PREFIXES: [(&str, &str); 3] =
    [("tool:", "tool"), ("agent:", "role, worker or agent"), ("model:", "model")];

/// A name with one of the [`PREFIXES`] in its two parts.
pub fn split_prefix(name: &str) -> Option<(&'static str, &str)> {
    PREFIXES.iter().find_map(|(prefix, _)| Some((*prefix, name.strip_prefix(prefix)?)))
}

impl RunFacts {
    /// The calls of a name.
    fn find(&self, name: &str) -> Result<CallFacts, EvalError> {
        match self.calls.get(name) {
            Some(found) if found.is_ambiguous => {
                let name = shorten(name);
                Err(eval_error(format!(
                    "`{name}` is a tool and an agent: write tool:{name} or agent:{name}"
                )))
            }
            Some(found) => Ok(*found),
            None => self.absent(name).map(|()| CallFacts::default()),
        }
    }

    /// A name that does not occur: an error, unless it is known that it may.
    fn absent(&self, name: &str) -> Result<(), EvalError> {
        let is_model = name.starts_with("model:");
        let bare = split_prefix(name).map_or(name, |(_, bare)| bare);
        let is_listed = |listed: &String| match split_prefix(listed) {
            Some((_, of)) => listed == name || (bare == name && of == name),
            None => listed == bare,
        };
        if self.listed.iter().any(is_listed) || (self.is_checked && !is_model) {
            return Ok(());
        }
        let noun = PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix));
        let noun = noun.map_or("tool", |(_, noun)| noun);
        let known = self.calls.keys().map(String::as_str);
        let near = closest_name(name, known).map(|near| format!("; did you mean `{near}`?"));
        let near = near.unwrap_or_default();
        let list = match self.is_checked {
            true => "",
            false => "; if it need not occur, list it in `names` at the top of the file",
        };
        Err(eval_error(format!("the run has no {noun} `{}`{near}{list}", shorten(bare))))
    }

    /// An error if calls may be missing.
    fn complete(&self) -> Result<(), EvalError> {
        match &self.incomplete {
            Some(why) => Err(eval_error(why.to_string())),
            None => Ok(()),
        }
    }
}

/// A function of expectations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunFunction {
    /// `calls("llm")`: the number of calls of a tool, or with a prefix of a model or an agent.
    Calls,
    /// `failed("refund")`: whether a call of it failed.
    Failed,
    /// `cites("status.example.com")`: whether the answer cites a page of this host or its
    /// subdomains, or an address that begins so.
    Cites,
    /// `order("billing", "fraud")`: whether these took control in this order; others may have come
    /// between.
    Order,
    /// `asked("manager")`: how often a person was asked. What a rule answered does not count.
    Asked,
    /// `approved("refund")`: whether a call of a tool was approved.
    Approved,
}

const TABLE: [(RunFunction, &str); 6] = [
    (RunFunction::Calls, "calls"),
    (RunFunction::Failed, "failed"),
    (RunFunction::Cites, "cites"),
    (RunFunction::Order, "order"),
    (RunFunction::Asked, "asked"),
    (RunFunction::Approved, "approved"),
];

impl RunFunction {
    pub(crate) fn named(name: &str) -> Option<Self> {
        TABLE.iter().find(|(_, own)| *own == name).map(|(function, _)| *function)
    }

    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|(_, name)| *name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        TABLE.iter().find(|(function, _)| *function == self).map_or("", |(_, name)| name)
    }

    /// How a call of it is written; an error if this is not one.
    pub(crate) fn check(self, args: usize) -> Result<(), String> {
        let (fits, usage) = match self {
            Self::Calls => (args == 1, "calls(\"tool\")"),
            Self::Failed => (args == 1, "failed(\"tool\")"),
            Self::Cites => (args == 1, "cites(\"host\")"),
            Self::Order => (args >= 2, "order(\"first\", \"second\")"),
            Self::Asked => (args == 1, "asked(\"person\")"),
            Self::Approved => (args == 1, "approved(\"tool\")"),
        };
        if fits { Ok(()) } else { Err(format!("write `{usage}`")) }
    }

    pub(crate) fn call(
        self,
        args: &[String],
        facts: Option<&RunFacts>,
        budget: &mut EvalBudget,
    ) -> Result<CelValue<'static>, EvalError> {
        let Some(facts) = facts else {
            return Err(eval_error(format!("`{}` needs a run", self.name())));
        };
        let first = args.first().map_or("", String::as_str);
        Ok(match self {
            Self::Calls => {
                facts.complete()?;
                let calls = facts.find(first)?.calls;
                CelValue::Int(i64::try_from(calls).unwrap_or(i64::MAX))
            }
            Self::Failed => {
                let found = facts.find(first);
                // One that has failed is enough, whatever else is not known.
                if found.as_ref().is_ok_and(|found| found.failed > 0) {
                    return Ok(CelValue::Bool(true));
                }
                facts.complete()?;
                let lost = found?.lost;
                if lost > 0 {
                    let (calls, name) = (count_noun(lost, "call"), shorten(first));
                    return Err(eval_error(format!("the end of {calls} of `{name}` is not known")));
                }
                CelValue::Bool(false)
            }
            Self::Cites => {
                budget.count_read(facts.cited.iter().map(String::len).sum())?;
                CelValue::Bool(facts.cited.iter().any(|url| is_of(url, first)))
            }
            Self::Order => {
                budget.count_steps(facts.took_control.len() as u64)?;
                facts.complete()?;
                let bare =
                    |name: &'_ String| name.strip_prefix("agent:").unwrap_or(name).to_owned();
                let names: Vec<String> = args.iter().map(bare).collect();
                let unseen = names.iter().filter(|name| !facts.took_control.contains(name));
                for name in unseen {
                    facts.find(&format!("agent:{name}"))?;
                }
                let mut rest = facts.took_control.iter();
                CelValue::Bool(names.iter().all(|name| rest.any(|other| other == name)))
            }
            Self::Asked => {
                let times = facts.asked.get(first).copied().unwrap_or_default();
                CelValue::Int(i64::try_from(times).unwrap_or(i64::MAX))
            }
            Self::Approved => CelValue::Bool(facts.approved.iter().any(|tool| tool == first)),
        })
    }
}

/// `1 call`, `2 calls`: the words of figures are in a layer above.
fn count_noun(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Whether an address begins with this one, or is of this host or one of its subdomains.
pub(super) fn is_of(url: &str, wanted: &str) -> bool {
    if wanted.contains('/') {
        return url.starts_with(wanted);
    }
    let Ok(url) = Url::parse(url) else { return url == wanted };
    let host = plain_name(url.host_str().unwrap_or_default());
    host == wanted || host.strip_suffix(wanted).is_some_and(|rest| rest.ends_with('.'))
}

/// A bound name that a condition uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name<'c> {
    /// The name, then the fields selected on it: `facts`, `risk_signals`, `chargeback_alerts`.
    pub path: Vec<&'c str>,
    /// Whether the last field is only tested with `has()`.
    pub guarded: bool,
    /// Byte offset of its start in the condition's text.
    pub at: usize,
}

/// The name and the fields of `a.b.c`, the id of `a`, and whether it is inside `has()`.
pub(crate) fn path_of(expr: &IdedExpr) -> Option<(u64, Vec<&str>, bool)> {
    let mut path = Vec::new();
    let mut guarded = false;
    let mut expr = expr;
    loop {
        match &expr.expr {
            Expr::Ident(name) => {
                path.push(name.trim_start_matches('.'));
                path.reverse();
                return Some((expr.id, path, guarded));
            }
            Expr::Select(select) => {
                guarded |= select.test;
                path.push(&select.field);
                expr = &select.operand;
            }
            _ => return None,
        }
    }
}

/// Why a condition cannot be compiled or evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// It is not valid CEL, or exceeds a limit.
    #[error("not a condition: {text}")]
    Syntax {
        text: String,
        /// Byte offset of the error in the condition, if known.
        offset: Option<usize>,
    },
    /// It could not be evaluated: a missing name or key, or a wrong type.
    #[error("cannot be evaluated: {0}")]
    Evaluation(String),
    /// The budget is used up, by this condition or by earlier ones of the same decision.
    #[error("cannot be evaluated: {0}")]
    BudgetExceeded(BudgetExceeded),
    /// Its value is not a boolean.
    #[error("gives {0}, not true or false")]
    NotBoolean(String),
}

impl ConditionError {
    /// Byte offset of the error in the condition's text, if known.
    pub fn offset(&self) -> Option<usize> {
        match self {
            Self::Syntax { offset, .. } => *offset,
            _ => None,
        }
    }
}

/// Longest part of a name or a text that an error repeats, in characters.
const MAX_REPEATED_CHARS: usize = 64;

/// Why an evaluation has no value.
#[derive(Debug)]
pub(crate) enum EvalError {
    /// An error. It does not count where another part decides.
    Failed(String),
    /// The budget is used up; the whole evaluation ends.
    BudgetExceeded(BudgetExceeded),
}

impl From<BudgetExceeded> for EvalError {
    fn from(spent: BudgetExceeded) -> Self {
        Self::BudgetExceeded(spent)
    }
}

pub(super) fn eval_error(what: String) -> EvalError {
    EvalError::Failed(what)
}

/// The beginning of a text.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_REPEATED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
