//! Conditions in CEL, compiled once when a scenario is loaded and evaluated over what is shown.

use std::fmt;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

/// What may stand in a condition: names with their values. Cheap to clone, so what stays the same
/// for a whole run (facts, inputs) is converted once and the rest is set for each evaluation.
#[derive(Clone, Default, Debug)]
pub struct Shown {
    names: Vec<(&'static str, cel::Value)>,
}

impl Shown {
    /// Sets a name, in place of what it was.
    pub fn set(&mut self, name: &'static str, value: &Value) {
        let value = to_cel(value);
        match self.names.iter_mut().find(|(taken, _)| *taken == name) {
            Some((_, old)) => *old = value,
            None => self.names.push((name, value)),
        }
    }
}

/// Why a condition cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// It is no CEL.
    #[error("not a CEL expression: {0}")]
    Syntax(String),
    /// It could not be evaluated: a missing name or key, or a wrong type.
    #[error("cannot be evaluated: {0}")]
    Evaluation(String),
    /// Its value is neither true nor false.
    #[error("gives {0}, not true or false")]
    NotATruth(String),
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
    /// [`ConditionError::Syntax`] with what the parser said.
    pub fn compile(text: &str) -> Result<Self, ConditionError> {
        match ENV.compile(text) {
            Ok(program) => Ok(Self { text: text.to_owned(), program }),
            Err(errors) => Err(ConditionError::Syntax(errors.to_string())),
        }
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
        for (name, value) in &shown.names {
            context.add_variable_from_value(*name, value.clone());
        }
        match self.program.execute(&context) {
            Ok(cel::Value::Bool(truth)) => Ok(truth),
            Ok(other) => Err(ConditionError::NotATruth(format!("{:?}", other.type_of()))),
            Err(error) => Err(ConditionError::Evaluation(error.to_string())),
        }
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Condition").field(&self.text).finish()
    }
}

fn to_cel(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(truth) => cel::Value::Bool(*truth),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => cel::Value::Int(whole),
            (None, Some(float)) => cel::Value::Float(float),
            (None, None) => cel::Value::Null,
        },
        Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        Value::Array(items) => {
            cel::Value::List(Arc::new(items.iter().map(to_cel).collect::<Vec<_>>()))
        }
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), to_cel(value)))
            .collect::<std::collections::HashMap<String, cel::Value>>()
            .into(),
    }
}
