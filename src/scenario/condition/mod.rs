//! Conditions in CEL: parsed by the `cel` crate and compiled to our own tree once when a scenario
//! is loaded, then evaluated over bound names within a budget.
//!
//! The crate's own evaluator has no limits: nested loops over a list from a tool's result take
//! hours, and a loop that builds lists uses up all memory. Ours counts steps and bytes.

mod bindings;
mod budget;
mod error;
mod eval;
mod explain;
mod expr;
mod foreign_operator;
mod function;
mod names;
mod operators;
mod parse;
mod run_facts;
mod value;

pub use bindings::CelBindings;
#[cfg(test)]
pub use budget::BudgetExceeded;
pub use budget::{EvalBudget, EvalLimits};
pub use error::ConditionError;
pub use explain::ObservedPart;
pub use names::Name;
pub use run_facts::{RunFacts, RunFunction};

use std::fmt;

use cel::common::ast::{Expr, IdedExpr};
use error::EvalError;
use expr::CelNode;
use names::path_of;
use parse::{byte_of, parse};

use self::parse::children;

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

#[cfg(test)]
mod tests;
