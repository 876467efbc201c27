//! The rules that a user must be able to trust: which plans, sources and notes are accepted. Pure;
//! the checks have the order of the research source document (`gateway.py` and `tools.py`).
//!
//! Checks that a quote is in its page: word for word; white space and the way in which signs are
//! written make no difference. Pure.

pub mod address;
pub mod answer;
pub mod compare;
pub mod detail;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use crate::base::visible::is_invisible;
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
pub fn note_issues(claim: &str, quote: &str, page: Option<&QuotedPage>) -> Vec<NoteIssue> {
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

/// A text in which each run of white space is one space.
pub fn fold_white_space(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
}

/// The text of a page, in which quotes are looked up. Made once for a page, so that the search for
/// many quotes stays linear.
#[derive(Debug, Default)]
pub struct QuotedPage {
    folded: String,
    /// The text as it is, if signs are folded too.
    text: String,
    /// Made when the first quote is not in the page as it is written.
    signs: OnceLock<SignForm>,
}

impl QuotedPage {
    /// A page with this text. `folds_signs`: a quote may write signs in another way than the page.
    pub fn new(text: &str, folds_signs: bool) -> Self {
        let own = if folds_signs { text.to_owned() } else { String::new() };
        Self { folded: fold_white_space(text), text: own, signs: OnceLock::new() }
    }

    /// Whether the page contains a quote; an empty quote is never contained.
    pub fn contains_quote(&self, quote: &str) -> bool {
        self.own_words(quote).is_some()
    }

    /// A quote as the page has it: the quote itself, or where only signs differ, the page's own
    /// text. `None` if it is not in the page.
    pub fn own_words<'q>(&self, quote: &'q str) -> Option<Cow<'q, str>> {
        let folded = fold_white_space(quote);
        if folded.is_empty() {
            return None;
        }
        if self.folded.contains(&folded) {
            return Some(Cow::Borrowed(quote));
        }
        let page = self.signs.get_or_init(|| SignForm::of_page(&self.text));
        let (start, end) = page.find(&SignForm::of_quote(&folded))?;
        let own = self.text.get(start..end.unwrap_or(self.text.len()))?;
        Some(Cow::Owned(fold_white_space(own)))
    }
}

/// In a [`SignForm`]: a hyphen at the end of a line, which breaks a word or belongs to it.
const BROKEN_WORD: char = '\u{ad}';
/// In a [`SignForm`]: a hyphen at the end of a line that belongs to what it joins, as in `2025-2026`.
const HYPHEN_AT_LINE_END: char = '\u{200b}';
/// Most comparisons for each character of a page: a page that is made to be slow is given up.
const MAX_COMPARISONS: usize = 100;

/// A text in the one form in which signs are compared: letters decomposed, one sign for all
/// apostrophes, quotation marks and dashes each, ligatures and ellipses as their letters and dots,
/// nothing invisible, one space for white space. Nothing else is equal: every letter and figure
/// stays.
#[derive(Debug, Default)]
struct SignForm {
    /// Each character, with the byte of the text where its own begins.
    chars: Vec<(char, usize)>,
}

impl SignForm {
    fn of_quote(text: &str) -> Self {
        let mut form = Self::default();
        form.push_part(text, 0..text.len());
        form
    }

    /// As of a quote, with the hyphens at line ends marked.
    fn of_page(text: &str) -> Self {
        let mut form = Self::default();
        let mut from = 0;
        for (at, hyphen) in text.char_indices() {
            let breaks_words = matches!(hyphen, '-' | '\u{2010}' | '\u{ad}');
            if at < from || !(breaks_words || matches!(hyphen, '–' | '—')) {
                continue;
            }
            let after = &text[at + hyphen.len_utf8()..];
            let rest = after.trim_start();
            let gap = &after[..after.len() - rest.len()];
            let left = text[..at].chars().rev().find(|c| !is_combining_mark(*c));
            let sides = (left, rest.chars().next());
            let (Some(left), Some(right)) = sides else { continue };
            if gap.contains(['\n', '\r', '\u{c}'])
                && left.is_alphanumeric()
                && right.is_alphanumeric()
            {
                let letters = left.is_alphabetic() && right.is_alphabetic();
                let word = breaks_words && letters && !right.is_uppercase();
                form.push_part(text, from..at);
                form.chars.push((if word { BROKEN_WORD } else { HYPHEN_AT_LINE_END }, at));
                from = text.len() - rest.len();
            }
        }
        form.push_part(text, from..text.len());
        form
    }

    /// Adds a part of a text. A letter and its marks are decomposed together, so that the order of
    /// the marks makes no difference.
    fn push_part(&mut self, text: &str, part: Range<usize>) {
        let mut letters = text[part.clone()].char_indices().peekable();
        while let Some((at, first)) = letters.next() {
            let start = part.start + at;
            let mut end = start + first.len_utf8();
            while let Some((_, mark)) = letters.next_if(|(_, c)| is_combining_mark(*c)) {
                end += mark.len_utf8();
            }
            if first.is_whitespace() {
                if self.chars.last().is_some_and(|(last, _)| *last != ' ') {
                    self.chars.push((' ', start));
                }
            } else if let Some(plain) = plain_sign(&text[start..end]) {
                self.chars.extend(plain.chars().map(|c| (c, start)));
            } else if matches!(first, '\u{fb00}'..='\u{fb06}') {
                self.chars.extend(text[start..end].nfkd().map(|c| (c, start)));
            } else {
                let seen = text[start..end].nfd().filter(|c| !is_invisible(*c));
                self.chars.extend(seen.map(|c| (c, start)));
            }
        }
    }

    /// Where the page has a quote: the byte at which it begins, and the one after it; `None` there: it
    /// is the page's end.
    fn find(&self, quote: &Self) -> Option<(usize, Option<usize>)> {
        let quote: String = quote.chars.iter().map(|(c, _)| c).collect();
        let quote = Some(quote.trim()).filter(|quote| !quote.is_empty())?;
        let mut left = self.chars.len().saturating_mul(MAX_COMPARISONS);
        (0..self.chars.len()).find_map(|first| {
            let next = self.match_at(first, quote, &mut left)?;
            // A match is of whole letters of the page: not of a letter without its accent.
            let place = |nth: usize| self.chars.get(nth).map(|(_, at)| *at);
            let (start, end) = (place(first)?, place(next));
            let before = first.checked_sub(1).and_then(place);
            (before != Some(start) && place(next.checked_sub(1)?) != end).then_some((start, end))
        })
    }

    /// The index after a quote that begins at this one; `None` if another text does.
    fn match_at(&self, first: usize, quote: &str, left: &mut usize) -> Option<usize> {
        let mut rest = quote;
        let mut next = first;
        while !rest.is_empty() {
            *left = left.checked_sub(1)?;
            let (c, _) = *self.chars.get(next)?;
            let hyphen = || rest.strip_prefix("- ").or_else(|| rest.strip_prefix('-'));
            rest = match c {
                BROKEN_WORD => hyphen().unwrap_or(rest),
                HYPHEN_AT_LINE_END => hyphen()?,
                c => rest.strip_prefix(c)?,
            };
            next += 1;
        }
        Some(next)
    }
}

/// The plain form of a sign that is written in several ways.
fn plain_sign(text: &str) -> Option<&'static str> {
    let mut chars = text.chars();
    let sign = chars.next().filter(|_| chars.next().is_none())?;
    Some(match sign {
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{b4}' | '\u{2bc}' | '\u{ff07}' => "'",
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '«' | '»' | '\u{ff02}' => "\"",
        '\u{2010}'..='\u{2015}' | '\u{2212}' => "-",
        '…' => "...",
        _ => return None,
    })
}
