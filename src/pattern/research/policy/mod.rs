//! The rules that a user must be able to trust: which plans, sources and notes are accepted. Pure;
//! the checks have the order of the research source document (`gateway.py` and `tools.py`).
//!
//! Checks that a quote is in its page: verbatim, except for white space. Pure.

pub mod address;
pub mod answer;
pub mod compare;
pub mod detail;

use serde_json::{Map, Value, json};

use crate::log::event::StopReason;
use crate::log::facts::plan_fault::PlanFault;
use crate::log::facts::research::{Denial, NoteIssue, NotesFault, StepFault};
use crate::scenario::patterns::research::ResearchStep;

/// The fewest characters of a quote.
pub const MIN_QUOTE_CHARS: usize = 20;

/// The most characters of a quote: more is a page, not a quote.
pub const MAX_QUOTE_CHARS: usize = 2_000;
/// The most characters of a claim.
pub const CLAIM_CHARS: usize = 1_000;

/// A step of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidStep {
    /// Its id, trimmed.
    pub id: String,
    /// Its action, trimmed.
    pub action: String,
    /// Its arguments.
    pub args: Map<String, Value>,
}

/// A refused plan.
#[derive(Clone, Debug, PartialEq)]
pub struct BadPlan {
    pub reason: StopReason,
    /// The expected and the received steps, if they differ.
    pub details: Option<Value>,
}

impl From<StopReason> for BadPlan {
    fn from(reason: StopReason) -> Self {
        Self { reason, details: None }
    }
}

/// `validate_plan`: the steps, in order, without other keys.
///
/// # Errors
/// The first fault, in the order of the source document.
pub fn validate_plan(raw: &Value, max_steps: u32) -> Result<Vec<ValidStep>, BadPlan> {
    let steps = raw.as_array().filter(|steps| !steps.is_empty());
    let steps = steps.ok_or(StopReason::InvalidPlan(PlanFault::Steps))?;
    if steps.len() > max_steps as usize {
        return Err(StopReason::InvalidPlan(PlanFault::TooManySteps).into());
    }
    let taken = steps.iter().map(step).collect::<Result<Vec<ValidStep>, StepFault>>();
    let taken = taken.map_err(StopReason::InvalidStep)?;
    let expected = ResearchStep::ALL.map(ResearchStep::action);
    if !taken.iter().map(|step| step.action.as_str()).eq(expected) {
        let received: Vec<&str> = taken.iter().map(|step| step.action.as_str()).collect();
        return Err(BadPlan {
            reason: StopReason::InvalidPlan(PlanFault::StepSequence),
            details: Some(json!({ "expected": expected, "received": received })),
        });
    }
    Ok(taken)
}

fn step(raw: &Value) -> Result<ValidStep, StepFault> {
    let step = raw.as_object().ok_or(StepFault::NotObject)?;
    let text = |key: &str| {
        let text = step.get(key).and_then(Value::as_str).map(str::trim);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    Ok(ValidStep {
        id: text("id").ok_or(StepFault::Id)?,
        action: text("action").ok_or(StepFault::Action)?,
        args: step.get("args").and_then(Value::as_object).ok_or(StepFault::Args)?.clone(),
    })
}

/// `evaluate_source`: the allowlist that denies a domain, if one does. The lists are in lower case.
pub fn denied_by<S: AsRef<str>>(domain: &str, policy: &[S], execution: &[S]) -> Option<Denial> {
    let lists = |list: &[S]| list.iter().any(|it| it.as_ref() == domain);
    if !lists(policy) {
        Some(Denial::Policy)
    } else if !lists(execution) {
        Some(Denial::Execution)
    } else {
        None
    }
}

/// A proposed note: a claim, and the words of the page. Both are trimmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub claim: String,
    /// The words of the page.
    pub quote: String,
}

/// The part of `validate_notes` that checks what a note says: its claim, then its quote.
///
/// # Errors
/// The first fault, in the order of the source document.
pub fn validate_draft(raw: &Value) -> Result<Draft, NotesFault> {
    let note = raw.as_object().ok_or(NotesFault::Item)?;
    let text = |key: &str| note.get(key).and_then(Value::as_str).map(str::trim);
    let claim = text("claim").filter(|claim| !claim.is_empty()).ok_or(NotesFault::Claim)?;
    let quote = text("quote").filter(|quote| is_long_enough(quote)).ok_or(NotesFault::Quote)?;
    Ok(Draft { claim: claim.to_owned(), quote: quote.to_owned() })
}

/// Why a valid note is refused for its length. The source document has no such limit; the run
/// continues without the note.
pub fn length_issue(draft: &Draft) -> Option<NoteIssue> {
    let beyond = |text: &str, most: usize| text.chars().nth(most).is_some();
    if beyond(&draft.claim, CLAIM_CHARS) {
        Some(NoteIssue::ClaimTooLong)
    } else if beyond(&draft.quote, MAX_QUOTE_CHARS) {
        Some(NoteIssue::QuoteTooLong)
    } else {
        None
    }
}

/// `validate_notes` of the research source document: the number of notes, then each note's id, URL,
/// claim and quote.
///
/// # Errors
/// The first fault, in the order of the source document.
pub fn validate_notes(raw: &Value, max_notes: u32) -> Result<(), NotesFault> {
    let notes = raw.as_array().filter(|notes| !notes.is_empty()).ok_or(NotesFault::Empty)?;
    if notes.len() > max_notes as usize {
        return Err(NotesFault::TooMany);
    }
    for note in notes {
        let fields = note.as_object().ok_or(NotesFault::Item)?;
        let says = |key: &str| {
            fields.get(key).and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty())
        };
        if !says("id") {
            return Err(NotesFault::Id);
        }
        if !says("url") {
            return Err(NotesFault::Url);
        }
        validate_draft(note)?;
    }
    Ok(())
}

/// `verify_notes` for one note: its issues, first those of the source document in its order, then
/// our own. `page` is the text of the quoted page; without it the quote is not looked up.
pub fn note_issues(claim: &str, quote: &str, page: Option<&FoldedText>) -> Vec<NoteIssue> {
    let mut issues = Vec::new();
    if !is_long_enough(quote.trim()) {
        issues.push(NoteIssue::QuoteTooShort);
    }
    if claim.trim().is_empty() {
        issues.push(NoteIssue::ClaimMissing);
    }
    if page.is_some_and(|page| !page.contains_quote(quote)) {
        issues.push(NoteIssue::QuoteNotInSource);
    }
    issues
}

/// Whether a trimmed quote has at least [`MIN_QUOTE_CHARS`] characters.
pub fn is_long_enough(quote: &str) -> bool {
    quote.chars().nth(MIN_QUOTE_CHARS - 1).is_some()
}

/// A text in which each run of white space is one space. Made once for a page, so that the search
/// for many quotes stays linear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoldedText(String);

impl FoldedText {
    /// Folds the white space of a text.
    pub fn fold_white_space(text: &str) -> Self {
        let mut folded = String::with_capacity(text.len());
        for word in text.split_whitespace() {
            if !folded.is_empty() {
                folded.push(' ');
            }
            folded.push_str(word);
        }
        Self(folded)
    }

    /// The folded text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the text contains a quote; an empty quote is never contained.
    pub fn contains_quote(&self, quote: &str) -> bool {
        let quote = Self::fold_white_space(quote);
        !quote.0.is_empty() && self.0.contains(&quote.0)
    }
}
