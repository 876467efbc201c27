//! Conditions in CEL, compiled once when a scenario is loaded and evaluated over what is shown.

use std::fmt;
use std::sync::{Arc, LazyLock};

use cel::common::ast::{EntryExpr, Expr, IdedExpr};
use cel::common::types::CelBool;
use cel::common::value::{CowVal, Val};
use serde_json::Value;

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

/// The most bytes that a condition may have.
pub const MAX_BYTES: usize = 2_000;

/// The deepest that a condition may nest: its evaluation recurses.
const MAX_DEPTH: usize = 64;

/// What may stand in a condition: names with their values. Cheap to clone, so what stays the same
/// for a whole run (facts, inputs) is converted once and the rest is set for each evaluation.
#[derive(Clone, Default, Debug)]
pub struct Shown {
    names: Vec<(&'static str, Arc<dyn Val>)>,
}

impl Shown {
    /// Sets a name, in place of what it was.
    pub fn set(&mut self, name: &'static str, value: &Value) {
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

static ENV: LazyLock<Arc<cel::Env>> = LazyLock::new(|| Arc::new(cel::Env::stdlib()));

impl Condition {
    /// Compiles a condition.
    ///
    /// # Errors
    /// [`ConditionError::Syntax`] with what the parser said and where.
    pub fn compile(text: &str) -> Result<Self, ConditionError> {
        if text.len() > MAX_BYTES {
            let text = format!("{} bytes are too long, at most {MAX_BYTES}", text.len());
            return Err(ConditionError::Syntax { text, offset: None });
        }
        if let Some(offset) = too_deep(text) {
            return Err(nested(Some(offset)));
        }
        let program = ENV.compile(text).map_err(|errors| syntax(text, &errors))?;
        if depth(program.expression()) > MAX_DEPTH {
            return Err(nested(None));
        }
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

    /// The names that it takes from what is shown and that are not among these, each once, with the
    /// byte of the text at which it stands.
    pub fn names_outside(&self, known: &[&str]) -> Vec<(&str, usize)> {
        let mut found: Vec<(&str, usize)> = Vec::new();
        let mut bound = Vec::new();
        self.visit(self.program.expression(), &mut bound, &mut |name, id| {
            if !known.contains(&name) && !found.iter().any(|(other, _)| *other == name) {
                let at = self.program.source_info().offset_for(id).map_or(0, |(start, _)| start);
                found.push((name, bytes(&self.text, at as usize)));
            }
        });
        found
    }

    /// Visits every name that is not bound within the condition. Recursion is bounded by
    /// [`MAX_DEPTH`].
    fn visit<'c>(
        &'c self,
        expr: &'c IdedExpr,
        bound: &mut Vec<&'c str>,
        found: &mut impl FnMut(&'c str, u64),
    ) {
        match &expr.expr {
            Expr::Ident(name) => {
                // Names with `@` are the parser's own; a leading dot asks for the outermost scope.
                let plain = name.trim_start_matches('.');
                if !name.starts_with('@') && !bound.contains(&plain) && !is_type(plain) {
                    found(plain, expr.id);
                }
            }
            Expr::Comprehension(inner) => {
                self.visit(&inner.iter_range, bound, found);
                self.visit(&inner.accu_init, bound, found);
                let before = bound.len();
                bound.push(&inner.iter_var);
                bound.extend(inner.iter_var2.as_deref());
                bound.push(&inner.accu_var);
                for part in [&inner.loop_cond, &inner.loop_step, &inner.result] {
                    self.visit(part, bound, found);
                }
                bound.truncate(before);
            }
            _ => children(&expr.expr, |child| self.visit(child, bound, found)),
        }
    }
}

/// Names of types, which are values of CEL and need not be shown.
fn is_type(name: &str) -> bool {
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

fn nested(offset: Option<usize>) -> ConditionError {
    let text = format!("nested too deeply, at most {MAX_DEPTH} levels");
    ConditionError::Syntax { text, offset }
}

/// The byte at which brackets or operators before an operand pile up past what the parser, which
/// recurses, is given. Texts in quotes are looked at as well: none of them needs that many.
fn too_deep(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    let mut prefix = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            '!' | '-' => prefix += 1,
            c if c.is_whitespace() => {}
            _ => prefix = 0,
        }
        if open > MAX_DEPTH || prefix > MAX_DEPTH {
            return Some(at);
        }
    }
    None
}

/// How deep an expression nests, found without recursion.
fn depth(expr: &IdedExpr) -> usize {
    let mut deepest = 0;
    let mut open = vec![(expr, 1)];
    while let Some((expr, level)) = open.pop() {
        deepest = deepest.max(level);
        children(&expr.expr, |child| open.push((child, level + 1)));
    }
    deepest
}

fn children<'e>(expr: &'e Expr, mut each: impl FnMut(&'e IdedExpr)) {
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

/// The first thing that the parser said, in few words.
fn syntax(text: &str, errors: &cel::ParseErrors) -> ConditionError {
    let Some(first) = errors.errors.first() else {
        return ConditionError::Syntax { text: "it does not parse".to_owned(), offset: None };
    };
    // An operator that misses a part is told twice: the second time says what is missing.
    let said = errors.errors.iter().find(|error| error.msg.starts_with("Syntax error"));
    let said = said.unwrap_or(first);
    let message = said.msg.strip_prefix("Syntax error: ").unwrap_or(&said.msg);
    let message = message.split(" expecting ").next().unwrap_or(message);
    let message = message.replace("'<EOF>'", "the end").replace("mismatched input", "unexpected");
    let (line, column) = said.pos;
    let line = usize::try_from(line).unwrap_or(1).max(1);
    let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let column = usize::try_from(column).unwrap_or(1).max(1);
    let offset = start + bytes(&text[start..], column - 1);
    ConditionError::Syntax { text: message, offset: Some(offset) }
}

/// The byte at which a character begins.
fn bytes(text: &str, characters: usize) -> usize {
    text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at)
}
