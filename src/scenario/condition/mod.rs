//! Conditions in CEL: parsed by the `cel` crate and compiled to our own tree once when a scenario
//! is loaded, then evaluated over bound names within a budget.
//!
//! The crate's own evaluator has no limits: nested loops over a list from a tool's result take
//! hours, and a loop that builds lists uses up all memory. Ours counts steps and bytes.

mod budget;
mod eval;
mod expr;
mod function;
mod parse;
mod value;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use cel::common::ast::{EntryExpr, Expr, IdedExpr};
use serde_json::Value;

pub use budget::{BudgetExceeded, EvalBudget, EvalLimits};
use eval::EvalError;
use expr::CelNode;
use parse::{byte_of, parse};

/// The names bound in a condition, with their values. Cheap to clone: values that stay the same for
/// a whole run (facts, inputs) are copied once, the others are set for each evaluation.
#[derive(Clone, Default, Debug)]
pub struct CelBindings {
    names: Vec<(Cow<'static, str>, Arc<Value>)>,
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

    fn get(&self, name: &str) -> Option<&Value> {
        self.names.iter().find(|(shown, _)| *shown == name).map(|(_, value)| &**value)
    }
}

/// Why a condition cannot be compiled or evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// It is not valid CEL, or exceeds a limit.
    #[error("not a condition: {text}")]
    Syntax {
        /// The error.
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
        let program = parse(text)?;
        let node = expr::compile(program.expression()).map_err(|(what, id)| {
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
