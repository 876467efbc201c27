//! Accepts or refuses answers: their format, and that every cited note exists. Pure
//! (`validate_synthesis` in the research source document). The citations per sentence are our
//! addition.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::log::facts::research::{AnswerFault, NoteId, Sentence};
use crate::log::world::research::unanswered::sentence_parts;

/// An accepted answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CitedAnswer {
    /// The text, trimmed.
    pub text: String,
    /// The sentences. Marks such as `[n1]` in the text become citations of their sentence and are
    /// removed from it.
    pub sentences: Vec<Sentence>,
    /// The ids of all cited notes, in the order of their first citation.
    pub citations: Vec<NoteId>,
}

/// `validate_synthesis` of the research source document: the text is not empty and not too long,
/// and every citation is a known note.
///
/// # Errors
/// The first fault, in the order of the source document.
pub fn validate_synthesis<'n>(
    answer: &Value,
    citations: &Value,
    notes: impl IntoIterator<Item = &'n str>,
    max_answer_chars: u32,
) -> Result<(), AnswerFault> {
    validate_text(answer.as_str().unwrap_or_default(), max_answer_chars)?;
    let cited = citations.as_array().filter(|cited| !cited.is_empty());
    let cited = cited.ok_or(AnswerFault::Citations)?;
    let known: BTreeSet<&str> = notes.into_iter().collect();
    for id in cited {
        let id = id.as_str().ok_or(AnswerFault::Citations)?;
        if !known.contains(id) {
            return Err(AnswerFault::CitationUnknown);
        }
    }
    Ok(())
}

/// The part of `validate_synthesis` that checks the text alone.
fn validate_text(text: &str, max_answer_chars: u32) -> Result<(), AnswerFault> {
    if text.trim().is_empty() {
        return Err(AnswerFault::Empty);
    }
    let too_long = text.chars().nth(max_answer_chars as usize).is_some();
    if too_long { Err(AnswerFault::TooLong) } else { Ok(()) }
}

/// Judges the writer's reply: `answer` with `citations` as in the source document, or `sentences`
/// with citations of their own.
///
/// # Errors
/// The first fault, in the order of the source document.
pub fn judge_answer<'n>(
    raw: &Value,
    notes: impl IntoIterator<Item = &'n str>,
    max_answer_chars: u32,
) -> Result<CitedAnswer, AnswerFault> {
    let rows = match raw.get("sentences") {
        None | Some(Value::Null) => None,
        Some(Value::Array(rows)) => Some(rows),
        Some(_) => return Err(AnswerFault::Empty),
    };
    let text = match rows {
        Some(rows) => joined(rows)?,
        None => raw.get("answer").and_then(Value::as_str).unwrap_or_default().trim().to_owned(),
    };
    // A text that is too long is refused before it is split.
    validate_text(&text, max_answer_chars)?;
    let mut citations = note_ids(raw.get("citations"))?;
    let sentences = match rows {
        Some(rows) => row_sentences(rows)?,
        None => split(&text),
    };
    for id in sentences.iter().flat_map(|sentence| &*sentence.citations) {
        if !citations.contains(id) {
            citations.push(id.clone());
        }
    }
    let cited = citations.iter().map(|id| Value::from(id.as_str())).collect();
    validate_synthesis(&text.as_str().into(), &cited, notes, max_answer_chars)?;
    Ok(CitedAnswer { text, sentences, citations })
}

/// The ids of a list, trimmed and without empty ones. A missing list counts as empty, as in the
/// source document.
fn note_ids(raw: Option<&Value>) -> Result<Vec<NoteId>, AnswerFault> {
    let rows = match raw {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(rows)) => rows,
        Some(_) => return Err(AnswerFault::Citations),
    };
    let ids = rows.iter().map(|id| id.as_str().map(str::trim).ok_or(AnswerFault::Citations));
    let ids = ids.filter(|id| !matches!(id, Ok(""))).map(|id| id.map(NoteId::new));
    ids.collect()
}

/// The texts of the `sentences` rows, trimmed and without empty ones, each with its row.
fn texts(rows: &[Value]) -> impl Iterator<Item = Result<(&str, &Value), AnswerFault>> {
    let texts = rows.iter().map(|row| {
        let text = row.get("text").and_then(Value::as_str).map(str::trim);
        Ok((text.ok_or(AnswerFault::Empty)?, row))
    });
    texts.filter(|it| !matches!(it, Ok(("", _))))
}

fn joined(rows: &[Value]) -> Result<String, AnswerFault> {
    let texts = texts(rows).map(|it| it.map(|(text, _)| text));
    Ok(texts.collect::<Result<Vec<&str>, _>>()?.join(" "))
}

/// The sentences with their citations; marks in their text count too.
fn row_sentences(rows: &[Value]) -> Result<Vec<Sentence>, AnswerFault> {
    let each = texts(rows).map(|it| {
        let (text, row) = it?;
        let (bare, marks) = without_marks(text);
        let own = note_ids(row.get("citations"))?;
        Ok(sentence(bare, own.into_iter().chain(marks).collect()))
    });
    each.collect()
}

/// The sentences of a text. A mark belongs to the sentence that it is in or directly after; at the
/// very beginning, to the first one.
fn split(text: &str) -> Vec<Sentence> {
    let (bare, marks) = split_marks(text);
    let mut sentences = Vec::new();
    let mut marks = marks.into_iter().peekable();
    let mut bounds = sentence_parts(&bare).into_iter().peekable();
    while let Some((from, part)) = bounds.next() {
        let end = if bounds.peek().is_some() { from + part.len() } else { usize::MAX };
        let mut own = Vec::new();
        // A mark at the start of the next sentence came after this one's space.
        while let Some((_, ids)) = marks.next_if(|(at, _)| *at < end) {
            own.extend(ids);
        }
        let part = part.trim();
        if !part.is_empty() || !own.is_empty() {
            sentences.push(sentence(part.to_owned(), own));
        }
    }
    // Left over if the text consists of marks only.
    let left: Vec<NoteId> = marks.flat_map(|(_, ids)| ids).collect();
    if !left.is_empty() {
        sentences.push(sentence(String::new(), left));
    }
    sentences
}

fn sentence(text: String, citations: Vec<NoteId>) -> Sentence {
    let mut once: Vec<NoteId> = Vec::new();
    for id in citations {
        if !once.contains(&id) {
            once.push(id);
        }
    }
    Sentence { text: text.into(), citations: once.into(), unconfirmed: false }
}

/// A text without its marks, trimmed, and the ids that they cite.
fn without_marks(text: &str) -> (String, Vec<NoteId>) {
    let (bare, marks) = split_marks(text);
    (bare.trim().to_owned(), marks.into_iter().flat_map(|(_, ids)| ids).collect())
}

/// A text without its marks and the spaces before them, and the position and ids of each mark.
fn split_marks(text: &str) -> (String, Vec<(usize, Vec<NoteId>)>) {
    let (mut bare, mut marks, mut rest) = (String::new(), Vec::new(), text);
    while let Some(open) = rest.find('[') {
        let (before, after) = rest.split_at(open);
        bare.push_str(before);
        match parse_mark(after) {
            Some((cited, after)) => {
                bare.truncate(bare.trim_end().len());
                marks.push((bare.len(), cited));
                rest = after;
            }
            None => {
                bare.push('[');
                rest = &after[1..];
            }
        }
    }
    bare.push_str(rest);
    (bare, marks)
}

/// The most bytes between the brackets of a mark.
const MARK_BYTES: usize = 64;

/// Parses a mark at the start of a text: `[n1]`, `[n1, n2]`, `[^n1]`. Also returns the text after
/// it.
fn parse_mark(text: &str) -> Option<(Vec<NoteId>, &str)> {
    let inside = text.strip_prefix('[')?;
    // Marks are short, so the search for the closing bracket stays cheap.
    let end = inside.bytes().take(MARK_BYTES).position(|byte| matches!(byte, b'[' | b']'))?;
    let (inside, after) = (inside.get(..end)?, inside.get(end..)?.strip_prefix(']')?);
    let is_id = |id: &str| {
        let digits = id.strip_prefix(['n', 'N']).unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let ids: Vec<&str> = inside
        .split([',', ';', ' '])
        .map(|id| id.trim().trim_start_matches('^'))
        .filter(|id| !id.is_empty())
        .collect();
    if ids.is_empty() || !ids.iter().all(|id| is_id(id)) {
        return None;
    }
    Some((ids.iter().map(|id| NoteId::new(id.to_lowercase())).collect(), after))
}

/// An answer without a model (`synthesize_from_notes` in the research source document): the claims
/// of the first three notes, between the scenario's preface and closing. If all three are too long
/// together, the last ones are left out; the count of those is returned. Claims are plain text:
/// marks in them are not citations.
///
/// # Errors
/// As in [`judge_answer`].
pub fn answer_by_rule(
    notes: &[(&NoteId, &str)],
    preface: &str,
    closing: &str,
    max_answer_chars: u32,
) -> Result<(CitedAnswer, usize), AnswerFault> {
    let most = notes.len().min(3);
    let of = |count: usize| {
        let mut sentences: Vec<Sentence> = Vec::with_capacity(count + 1);
        for (place, (id, claim)) in notes[..count].iter().enumerate() {
            let text = match claim.trim() {
                claim if place == 0 && !preface.is_empty() => format!("{preface} {claim}"),
                claim => claim.to_owned(),
            };
            sentences.push(sentence(text, vec![(*id).clone()]));
        }
        if !closing.is_empty() {
            sentences.push(sentence(closing.to_owned(), Vec::new()));
        }
        let texts: Vec<&str> = sentences.iter().map(|it| &*it.text).collect();
        let text = texts.join(" ");
        let citations = notes[..count].iter().map(|(id, _)| (*id).clone()).collect();
        CitedAnswer { text, sentences, citations }
    };
    let fits = |answer: &CitedAnswer| answer.text.chars().count() <= max_answer_chars as usize;
    let fitting = (1..=most).rev().find(|count| fits(&of(*count)));
    let count = fitting.unwrap_or(most.min(1));
    let answer = of(count);
    let cited = answer.citations.iter().map(|id| Value::from(id.as_str())).collect();
    let known = notes.iter().map(|(id, _)| id.as_str());
    validate_synthesis(&answer.text.as_str().into(), &cited, known, max_answer_chars)?;
    Ok((answer, most - count))
}
