//! Conditions in CEL: parsed by the `cel` crate and made into our own tree once when a scenario is
//! loaded, then evaluated over what is shown, within a budget.
//!
//! The crate's own evaluator cannot be bounded: a loop in a loop over a list of a tool's answer takes
//! hours, and one that makes lists takes all memory. Ours counts steps and bytes while it works.

mod budget;
mod eval;
mod expr;
mod function;
mod names;
mod parse;
mod value;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use cel::common::ast::{EntryExpr, Expr, IdedExpr};
use serde_json::Value;

pub use budget::{Budget, Limits, Spent};
use eval::Fault;
use expr::Node;
pub use names::{
    AGENT_NAMES, CONTRIBUTION_NAMES, FINALIZE_NAMES, NOTES_NAMES, PLAN_NAMES, REPORT_NAMES,
    STEPS_NAMES, SYNTHESIZE_NAMES,
};
use parse::{byte_of, parse};

/// What may stand in a condition: names with their values. Cheap to clone, so what stays the same
/// for a whole run (facts, inputs) is copied once and the rest is set for each evaluation.
#[derive(Clone, Default, Debug)]
pub struct Shown {
    names: Vec<(Cow<'static, str>, Arc<Value>)>,
}

impl Shown {
    /// Sets a name to a copy of this, in place of what it was.
    pub fn set(&mut self, name: &'static str, value: &Value) {
        self.share(Cow::Borrowed(name), Arc::new(value.clone()));
    }

    /// Sets a name to what others hold as well, in place of what it was.
    pub fn share(&mut self, name: impl Into<Cow<'static, str>>, value: Arc<Value>) {
        let name = name.into();
        match self.names.iter_mut().find(|(taken, _)| *taken == name) {
            Some((_, old)) => *old = value,
            None => self.names.push((name, value)),
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.names.iter().find(|(shown, _)| *shown == name).map(|(_, value)| &**value)
    }
}

/// Why a condition cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// It is no CEL, or more of it than is allowed.
    #[error("not a condition: {text}")]
    Syntax {
        /// What is wrong.
        text: String,
        /// The byte of the condition at which it is, where that is known.
        offset: Option<usize>,
    },
    /// It could not be evaluated: a missing name or key, or a wrong type.
    #[error("cannot be evaluated: {0}")]
    Evaluation(String),
    /// It was given up: it, or what was evaluated before it within the same budget, costs too much.
    #[error("cannot be evaluated: {0}")]
    Spent(Spent),
    /// Its value is neither true nor false.
    #[error("gives {0}, not true or false")]
    NotATruth(String),
}

impl ConditionError {
    /// The byte of the condition's text at which it is wrong, where that is known.
    pub fn offset(&self) -> Option<usize> {
        match self {
            Self::Syntax { offset, .. } => *offset,
            _ => None,
        }
    }
}

/// A condition of a scenario or a filter.
pub struct Condition {
    text: String,
    program: cel::Program,
    node: Node,
}

impl Condition {
    /// Compiles a condition.
    ///
    /// # Errors
    /// [`ConditionError::Syntax`] with what is wrong and where: it does not parse, or it uses what
    /// there is not.
    pub fn compile(text: &str) -> Result<Self, ConditionError> {
        let program = parse(text)?;
        let node = expr::compile(program.expression()).map_err(|(what, id)| {
            let offset = program.source_info().offset_for(id);
            let offset = offset.map(|(start, _)| byte_of(text, start as usize));
            ConditionError::Syntax { text: what, offset }
        })?;
        Ok(Self { text: text.to_owned(), program, node })
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it holds for what is shown, as a decision of its own.
    ///
    /// # Errors
    /// As [`holds_within`](Self::holds_within) has them.
    pub fn holds(&self, shown: &Shown) -> Result<bool, ConditionError> {
        self.holds_within(shown, &mut Budget::default())
    }

    /// Whether it holds for what is shown. What it costs is taken from the budget.
    ///
    /// # Errors
    /// A name or key that is not there, a wrong type, a value that is no truth, or a budget that is
    /// used up. CEL is strict: `has(facts.x)` guards what may be missing.
    pub fn holds_within(&self, shown: &Shown, budget: &mut Budget) -> Result<bool, ConditionError> {
        match eval::value(&self.node, shown, budget) {
            Ok(value::Value::Bool(truth)) => Ok(truth),
            Ok(other) => Err(ConditionError::NotATruth(other.kind().to_owned())),
            Err(Fault::Failed(what)) => Err(ConditionError::Evaluation(what)),
            Err(Fault::Spent(spent)) => Err(ConditionError::Spent(spent)),
        }
    }

    /// What it takes from what is shown: each name with the fields that are selected on it, in the
    /// order in which they stand, each once.
    pub fn names(&self) -> Vec<Name<'_>> {
        let mut names = Vec::new();
        self.visit(self.program.expression(), &mut Vec::new(), &mut names);
        names.sort_by_key(|name: &Name<'_>| name.at);
        names.dedup();
        names
    }

    /// Recursion is bounded by what [`parse`] lets through.
    fn visit<'c>(
        &'c self,
        expr: &'c IdedExpr,
        bound: &mut Vec<&'c str>,
        names: &mut Vec<Name<'c>>,
    ) {
        if let Some((id, path, guarded)) = path_of(expr) {
            // Names with `@` are the parser's own; a leading dot asks for the outermost scope.
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

/// A name that a condition takes from what is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name<'c> {
    /// The name, then the fields selected on it: `facts`, `risk_signals`, `chargeback_alerts`.
    pub path: Vec<&'c str>,
    /// Whether `has()` asks first if the last field is there.
    pub guarded: bool,
    /// The byte of the condition's text at which it begins.
    pub at: usize,
}

/// The name and the fields of `a.b.c`, the id of `a`, and whether it stands in `has()`.
fn path_of(expr: &IdedExpr) -> Option<(u64, Vec<&str>, bool)> {
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

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Condition").field(&self.text).finish()
    }
}

/// The parts of an expression.
pub(super) fn children<'e>(expr: &'e Expr, mut each: impl FnMut(&'e IdedExpr)) {
    let entry = |entry: &'e EntryExpr, each: &mut dyn FnMut(&'e IdedExpr)| match entry {
        EntryExpr::StructField(field) => each(&field.value),
        EntryExpr::MapEntry(entry) => {
            each(&entry.key);
            each(&entry.value);
        }
    };
    match expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        Expr::Call(call) => call.target.iter().map(|it| &**it).chain(&call.args).for_each(each),
        Expr::Comprehension(inner) => {
            for part in [
                &inner.iter_range,
                &inner.accu_init,
                &inner.loop_cond,
                &inner.loop_step,
                &inner.result,
            ] {
                each(part);
            }
        }
        Expr::List(list) => list.elements.iter().for_each(each),
        Expr::Map(map) => map.entries.iter().for_each(|it| entry(&it.expr, &mut each)),
        Expr::Select(select) => each(&select.operand),
        Expr::Struct(it) => it.entries.iter().for_each(|it| entry(&it.expr, &mut each)),
    }
}

#[cfg(test)]
mod tests;
