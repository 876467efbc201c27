//! Conditions in CEL, compiled once when a scenario is loaded and evaluated over what is shown.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use cel::common::ast::{EntryExpr, Expr, IdedExpr};
use cel::common::types::CelBool;
use cel::common::value::{CowVal, Val};
use serde_json::Value;

use super::cel_parse::{ENV, byte_of, parse};
use super::shown_value::to_val;

/// The names that a condition on a role's contribution may use.
pub const CONTRIBUTION_NAMES: &[&str] = &[
    "facts",
    "inputs",
    "goal",
    "role",
    "round",
    "attempt",
    "flags",
    "recent_rounds",
    "open_conflicts",
];

/// The names that a condition on the launch brief may use.
pub const FINALIZE_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "final_decision", "history"];

/// The names that a condition on an orchestrator's plan may use.
pub const PLAN_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "max_tasks", "available_workers"];

/// The names that a condition on an orchestrator's report may use.
pub const REPORT_NAMES: &[&str] = &["facts", "inputs", "goal", "attempt", "flags", "aggregate"];

/// The names that a condition on the plan of research may use.
pub const STEPS_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "question", "max_steps"];

/// The names that a condition on the notes of a page may use.
pub const NOTES_NAMES: &[&str] = &[
    "facts",
    "inputs",
    "goal",
    "attempt",
    "flags",
    "question",
    "url",
    "domain",
    "title",
    "body",
    "published_at",
    "notes",
];

/// The names that a condition on the answer of research may use.
pub const SYNTHESIZE_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "question", "notes"];

/// The names that a condition on what an agent of a team says may use.
pub const AGENT_NAMES: &[&str] = &[
    "facts", "inputs", "goal", "attempt", "flags", "agent", "input", "message", "turn", "round",
    "results", "handoffs", "from", "members",
];

/// What may stand in a condition: names with their values. Cheap to clone, so what stays the same
/// for a whole run (facts, inputs) is converted once and the rest is set for each evaluation.
#[derive(Clone, Default, Debug)]
pub struct Shown {
    names: Vec<(Cow<'static, str>, Arc<dyn Val>)>,
}

impl Shown {
    /// Sets a name, in place of what it was.
    pub fn set(&mut self, name: &'static str, value: &Value) {
        self.put(Cow::Borrowed(name), value);
    }

    /// Sets a name that a scenario gives, in place of what it was.
    pub fn set_named(&mut self, name: &str, value: &Value) {
        self.put(Cow::Owned(name.to_owned()), value);
    }

    fn put(&mut self, name: Cow<'static, str>, value: &Value) {
        let value: Arc<dyn Val> = Arc::from(to_val(value));
        match self.names.iter_mut().find(|(taken, _)| *taken == name) {
            Some((_, old)) => *old = value,
            None => self.names.push((name, value)),
        }
    }
}

/// Lends the evaluation what is shown: nothing is copied.
impl cel::context::VariableResolver for Shown {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let (_, value) = self.names.iter().find(|(name, _)| *name == variable)?;
        Some(CowVal::Borrowed(value.as_ref()))
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
}

impl Condition {
    /// Compiles a condition.
    ///
    /// # Errors
    /// [`ConditionError::Syntax`] with what the parser said and where.
    pub fn compile(text: &str) -> Result<Self, ConditionError> {
        let program = parse(text)?;
        Ok(Self { text: text.to_owned(), program })
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it holds for what is shown.
    ///
    /// # Errors
    /// A name or key that is not there, a wrong type, or a value that is no truth. CEL is strict:
    /// `has(facts.x)` guards what may be missing.
    pub fn holds(&self, shown: &Shown) -> Result<bool, ConditionError> {
        let mut context = cel::Context::with_env(Arc::clone(&ENV));
        context.set_variable_resolver(shown);
        match cel::Value::resolve_val(self.program.expression(), &context) {
            Ok(value) => match value.downcast_ref::<CelBool>() {
                Some(truth) => Ok(*truth.inner()),
                None => Err(ConditionError::NotATruth(value.get_type().name().to_owned())),
            },
            Err(error) => Err(ConditionError::Evaluation(error.to_string())),
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
                !name.starts_with('@') && !bound.contains(name) && !is_of_the_language(name)
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

/// Names of CEL itself, which need not be shown: types, and `optional.of(…)`.
fn is_of_the_language(name: &str) -> bool {
    matches!(
        name,
        "bool"
            | "bytes"
            | "double"
            | "int"
            | "list"
            | "map"
            | "null_type"
            | "string"
            | "type"
            | "uint"
    )
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
mod tests {
    use serde_json::json;

    use super::super::cel_parse::{MAX_BRACKETS, MAX_BYTES};
    use super::*;

    fn shown() -> Shown {
        let mut shown = Shown::default();
        shown.set(
            "facts",
            &json!({
                "rate": 0.028, "alerts": 4, "big": u64::MAX, "none": null,
                "sub": { "zeta": 1, "alpha": 2, "mid": 3 },
                "list": ["a", "b"],
            }),
        );
        shown.set("round", &json!(2));
        shown
    }

    fn holds(text: &str) -> Result<bool, ConditionError> {
        Condition::compile(text).and_then(|condition| condition.holds(&shown()))
    }

    #[test]
    fn conditions_hold_or_not_over_what_is_shown() {
        for (text, expected) in [
            ("facts.rate >= 0.03", false),
            ("facts.rate < 1", true),
            ("facts.alerts >= 4.0 && round == 2", true),
            ("facts.big > 9223372036854775807u", true),
            ("facts.none == null", true),
            ("has(facts.rate) && !has(facts.other)", true),
            ("'a' in facts.list && size(facts.list) == 2", true),
            ("facts.list == ['a', 'b']", true),
            ("facts.list.exists(x, x == 'b')", true),
            ("facts.sub == {'alpha': 2, 'mid': 3, 'zeta': 1}", true),
            ("{'alpha': 2, 'mid': 3, 'zeta': 1} == facts.sub", true),
            ("facts['sub'].mid == 3 && 'mid' in facts.sub && size(facts.sub) == 3", true),
            ("[facts][0].sub.mid == 3 && {'x': facts}.x.sub['zeta'] == 1", true),
        ] {
            assert_eq!(holds(text), Ok(expected), "{text}");
        }
    }

    /// What tools answer is not always of the type that it should be.
    #[test]
    fn values_of_different_types_are_unequal_and_no_error() {
        for (text, expected) in [
            ("facts.alerts != 'none'", true),
            ("facts.none != 'none'", true),
            ("facts.none != null", false),
            ("facts.alerts != null && facts.list != 'none' && facts.sub != 'none'", true),
            ("'none' == 'none' && facts.list[0] != 1", true),
        ] {
            assert_eq!(holds(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn truth_and_numbers_are_as_python_has_them() {
        for (text, expected) in [
            (
                "truthy(facts.none) || truthy(0) || truthy(0.0) || truthy(0u) || truthy(false)",
                false,
            ),
            ("truthy('') || truthy([]) || truthy({})", false),
            ("truthy('0') && truthy(-1) && truthy(0.1) && truthy(true) && truthy([0])", true),
            ("truthy(facts.sub) && truthy(facts.list) && truthy({'a': 0})", true),
            ("number(true) == 1.0 && number(false) == 0.0 && number(3) >= 0.03", true),
            ("number(facts.rate) < 0.03 && number(facts.big) > 1.0e18", true),
        ] {
            assert_eq!(holds(text), Ok(expected), "{text}");
        }
        for text in ["number('1') == 1.0", "number(facts.none) == 0.0", "truthy()", "number(1, 2)"]
        {
            assert!(holds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn maps_are_gone_through_in_the_order_of_the_file() {
        for text in [
            "facts.sub.map(k, k) == ['zeta', 'alpha', 'mid']",
            "[facts].map(f, f.sub)[0].map(k, k) == ['zeta', 'alpha', 'mid']",
            "{'x': facts.sub}.x.map(k, k) == ['zeta', 'alpha', 'mid']",
        ] {
            assert_eq!(holds(text), Ok(true), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_evaluated_is_an_error_and_no_answer() {
        for text in ["facts.other > 1", "facts.list > 1", "nobody == 1", "1 / 0 == 1"] {
            assert!(matches!(holds(text), Err(ConditionError::Evaluation(_))), "{text}");
        }
        assert_eq!(holds("facts.alerts"), Err(ConditionError::NotATruth("int".to_owned())));
    }

    #[test]
    fn syntax_errors_say_where() {
        for (text, offset, said) in [
            ("facts.rate >= ", 14, "it ends too early"),
            ("a == 1 &&\n  b ==", 16, "it ends too early"),
            ("'ä' == $", 8, "unexpected '$'"),
            ("a ? b", 5, "it ends too early"),
            ("a b", 2, "unexpected 'b'"),
        ] {
            let error = Condition::compile(text).expect_err(text);
            assert_eq!(error.offset(), Some(offset), "{text}: {error}");
            assert_eq!(error.to_string(), format!("not a condition: {said}"), "{text}");
        }
    }

    #[test]
    fn names_are_found_with_their_fields_and_places() {
        let condition = Condition::compile(
            "facts.a.b > 1 && has(inputs.x) && [1].exists(y, y == round) && type(facts) == map",
        )
        .expect("CEL");
        let names: Vec<(String, bool, usize)> = condition
            .names()
            .into_iter()
            .map(|name| (name.path.join("."), name.guarded, name.at))
            .collect();
        assert_eq!(
            names,
            [
                ("facts.a.b".to_owned(), false, 0),
                ("inputs.x".to_owned(), true, 21),
                ("round".to_owned(), false, 53),
                ("facts".to_owned(), false, 68),
            ]
        );
    }

    /// The stack of a test thread is 2 MB, as is that of tokio's.
    #[test]
    fn deep_or_long_conditions_are_refused_and_never_overflow_the_stack() {
        let deep = |open: &str, core: &str, close: &str, times: usize| {
            format!("{}{core}{}", open.repeat(times), close.repeat(times))
        };
        for text in [
            deep("(", "1", ")", 900),
            deep("[", "", "]", 900),
            deep("!", "true", "", 1_500),
            deep("a.", "a", "", 900),
            deep("1+", "1", "", 900),
            deep("a?b:", "c", "", 400),
            deep("a in ", "b", "", 390),
            deep("a?b:(", "1", ")", 33),
            "a".repeat(MAX_BYTES + 1),
            // An evaluation of these would outlast the run: nothing interrupts one.
            deep("[1, 2].all(x, ", "true", ")", 3),
            deep("facts.list.map(x, ", "x", ")", 6),
        ] {
            let refused = Condition::compile(&text);
            assert!(matches!(refused, Err(ConditionError::Syntax { .. })), "{text:.20}");
        }
        for text in [
            deep("(", "true", ")", MAX_BRACKETS),
            deep("a[", "0", "]", 30),
            deep("[1].exists(x,", "x==1", ")", 2),
            deep("{1:", "1", "}", 30),
            deep("true?(false?", "1:2", "):3", 16),
        ] {
            if let Ok(condition) = Condition::compile(&text) {
                let _ = condition.holds(&shown());
                let _ = condition.names();
            }
        }
        assert_eq!(holds(&deep("(", "true", ")", MAX_BRACKETS)), Ok(true));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "([a-z.()\\[\\]{}0-9'\"!&|?:+*/<>= \\-]|in|facts|has|\\PC){0,60}") {
            if let Ok(condition) = Condition::compile(&text) {
                let _ = condition.holds(&shown());
                let _ = condition.names();
            }
        }
    }
}
