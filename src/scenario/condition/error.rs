//! Why a condition cannot be compiled or evaluated.

use crate::scenario::condition::budget::BudgetExceeded;

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

/// Longest part of a name or a text that an error repeats, in characters.
const MAX_REPEATED_CHARS: usize = 64;

/// Why an evaluation has no value.
#[derive(Debug)]
pub(super) enum EvalError {
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
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_REPEATED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
