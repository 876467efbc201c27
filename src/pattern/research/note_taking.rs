//! Takes the notes of a page: by the model or by rule, within the limits of the run.
//!
//! Plans and notes without a model: a note quotes a sentence of the page that matches the question
//! best. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::ResearchRun;
use super::policy;
use super::policy::{Draft, MIN_QUOTE_CHARS, QuotedPage, address, detail};
use super::reading::{FetchedPage, SourceResult, skipped_source};
use crate::base::name::ToolName;
use crate::base::stems::stems;
use crate::base::visible::visible_within;
use crate::log::event::id::SourceNo;
use crate::log::event::{EventKind, Purpose, SpanId, StopReason};
use crate::log::facts::research::{
    KeptSource, Note, NoteId, NoteIssue, NoteRefused, NotesLimit, NotesTruncated, ResearchFact,
    SourceOutcome,
};
use crate::log::world::research::unanswered::{PageWords, is_heading, prose_sentences};
use crate::pattern::reply::Refusal;
use crate::run::ModelRequest;
use crate::scenario::patterns::research::{MisquotePolicy, StepExecutor};

/// An accepted note, with the page that must contain its quote.
pub(crate) struct AcceptedNote {
    pub note: Arc<Note>,
    pub page: Arc<QuotedPage>,
}

/// Takes the notes of one run.
pub(crate) struct NoteTaker<'a> {
    research: &'a ResearchRun<'a>,
    pub taken: Vec<AcceptedNote>,
    /// Which words of the question the pages so far have.
    pub words: PageWords,
}

/// The notes that a model proposed for a page.
struct ProposedNotes {
    /// The notes within the limit.
    drafts: Vec<Draft>,
    /// The number of notes that it proposed.
    count: u32,
}

impl<'a> NoteTaker<'a> {
    pub fn new(research: &'a ResearchRun<'a>) -> Self {
        let words = PageWords::of(&research.spec.question);
        Self { research, taken: Vec::new(), words }
    }

    /// Whether the run has all the notes that it may have.
    pub fn is_full(&self) -> bool {
        self.taken.len() >= self.research.spec.budget.max_notes as usize
    }

    /// Takes the notes of a page.
    pub async fn take_notes(
        &mut self,
        span: SpanId,
        nth: u32,
        source: &KeptSource,
        page: FetchedPage,
    ) -> SourceResult {
        let spec = self.research.spec;
        let room = spec.budget.max_notes as usize - self.taken.len();
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let most = room.min(spec.notes_per_page);
        let drafts = match self.research.executor(spec.notes.by) {
            StepExecutor::Rule => {
                self.words.add(&page.body);
                let most = room.min(spec.notes_by_rule);
                notes_by_rule(&spec.question, &page.title, &page.body, most)
            }
            StepExecutor::Model => {
                match self.request_notes(span, nth, source.source, &page, most).await? {
                    Some(proposed) => {
                        self.report_cut_notes(span, source.source, &proposed, room);
                        proposed.drafts
                    }
                    None => {
                        let invalid = StopReason::ToolInvalidOutput(ToolName::from(EXTRACT));
                        let text = "the reply is not a list of notes: inspect the model's reply";
                        return Ok(skipped_source(&invalid.to_string(), text));
                    }
                }
            }
        };
        let quoted = Arc::new(QuotedPage::new(&page.body, self.research.plan.folds_signs));
        let (mut notes, mut refused) = (0, 0);
        for draft in drafts {
            let own = quoted.own_words(&draft.quote);
            let misquoted = || spec.misquotes == MisquotePolicy::Refuse && own.is_none();
            let why = policy::length_issue(&draft)
                .or_else(|| misquoted().then_some(NoteIssue::QuoteNotInSource));
            if let Some(why) = why {
                refused += 1;
                self.refuse(span, source.source, draft, why);
                continue;
            }
            // A misquote is kept as it is: verification stops the run.
            let quote = own.map_or(draft.quote.as_str().into(), Arc::from);
            notes += 1;
            let note = Arc::new(Note {
                id: NoteId::nth(self.taken.len() + 1),
                claim: draft.claim.into(),
                quote,
                url: page.url.as_str().into(),
                title: Arc::clone(&page.title),
                published_at: Arc::clone(&page.published_at),
                modified: page.modified,
            });
            let taken = ResearchFact::NoteTaken { source: source.source, note: Arc::clone(&note) };
            self.research.cx.publish(span, taken);
            self.taken.push(AcceptedNote { note, page: Arc::clone(&quoted) });
        }
        Ok(SourceOutcome::Read { notes, refused })
    }

    /// Reports that the model proposed more notes of a page than may be taken. `room`: what is left
    /// of the run's `max_notes`.
    fn report_cut_notes(
        &self,
        span: SpanId,
        source: SourceNo,
        proposed: &ProposedNotes,
        room: u32,
    ) {
        let looked_at = u32::try_from(proposed.drafts.len()).unwrap_or(u32::MAX);
        let cut = proposed.count.saturating_sub(looked_at);
        if cut > 0 {
            let per_page = self.research.spec.notes_per_page < room;
            let limit = if per_page { NotesLimit::NotesPerPage } else { NotesLimit::MaxNotes };
            let fact = NotesTruncated { source, proposed: proposed.count, cut, limit };
            self.research.cx.publish(span, ResearchFact::NotesTruncated(fact));
        }
    }

    fn refuse(&self, span: SpanId, source: SourceNo, draft: Draft, reason: NoteIssue) {
        let refused = NoteRefused {
            source,
            reason,
            claim: truncated(draft.claim, policy::CLAIM_CHARS).into(),
            quote: truncated(draft.quote, policy::MAX_QUOTE_CHARS).into(),
        };
        self.research.cx.publish(span, ResearchFact::NoteRefused(Box::new(refused)));
    }

    /// The notes that the model proposes for a page; `None` if the reply has no list.
    async fn request_notes(
        &self,
        span: SpanId,
        nth: u32,
        source: SourceNo,
        page: &FetchedPage,
        most: u32,
    ) -> Result<Option<ProposedNotes>, StopReason> {
        let research = self.research;
        let shown = research.condition_values(|shown| {
            shown.bind("url", &page.url.as_str().into());
            shown.bind("domain", &address::domain(&page.url).into());
            shown.bind("title", &Value::from(&*page.title));
            shown.bind("published_at", &Value::from(&*page.published_at));
            shown.bind("body", &page.body.as_str().into());
            shown.bind("notes", &super::notes_json(self.taken.iter().map(|it| &*it.note)));
        });
        let payload = super::PagePayload {
            url: &page.url,
            title: &page.title,
            published_at: &page.published_at,
            body: &page.body,
        };
        let (messages, cut) =
            super::notes_messages(research.spec, &payload, most, &research.cx.shown_flags());
        if cut {
            let text = format!(
                "the model sees the first {} characters of {} (research.page_chars)",
                research.spec.page_chars,
                visible_within(&page.url, URL_CHARS)
            );
            research.cx.publish(span, EventKind::Warning { text });
        }
        let purpose = Purpose::Notes { source };
        let ask = ModelRequest::single(
            span,
            purpose,
            format!("notes:{nth}"),
            messages,
            super::notes_form(),
            shown,
        );
        match research.request_object(ask, |raw| judge(raw, most)).await?.judged {
            Ok(proposed) => Ok(Some(proposed)),
            // As in the source document: a reply without a list skips its page, a note that breaks
            // the contract ends the run.
            Err(StopReason::ToolInvalidOutput(_)) => Ok(None),
            Err(reason) => Err(reason),
        }
    }
}

/// Validates the first `most` notes of a reply.
fn judge(raw: &Value, most: u32) -> Result<ProposedNotes, Refusal> {
    let Some(rows) = raw.get("notes").and_then(Value::as_array) else {
        let reason = StopReason::ToolInvalidOutput(ToolName::from(EXTRACT));
        return Err(Refusal { reason, detail: detail::describe_missing_notes(raw).into() });
    };
    let drafts = rows.iter().take(most as usize).enumerate().map(|(nth, note)| {
        policy::validate_draft(note).map_err(|fault| Refusal {
            reason: StopReason::InvalidNotes(fault),
            detail: detail::describe_note_fault(fault, nth, note).into(),
        })
    });
    let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    Ok(ProposedNotes { drafts: drafts.collect::<Result<_, _>>()?, count })
}

/// A text cut to `most` characters, with an ellipsis if it was longer.
fn truncated(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The source document's name for the note taking step.
const EXTRACT: &str = "extract_notes_from_page";
/// The most characters of an address in a warning.
const URL_CHARS: usize = 120;

/// The most characters of a sentence that becomes a note: longer ones are rarely real sentences.
const SENTENCE_CHARS: usize = 400;

/// The plan without a model (`propose_research_plan` in the research source document): it searches
/// for the question itself.
pub fn plan_by_rule(question: &str) -> serde_json::Value {
    let steps = crate::scenario::patterns::research::ResearchStep::ALL.iter().enumerate().map(|(place, step)| {
        let args = match place {
            0 => serde_json::json!({ "query": question }),
            _ => serde_json::json!({}),
        };
        serde_json::json!({ "id": format!("r{}", place + 1), "action": step.action(), "args": args })
    });
    steps.collect::<Vec<_>>().into()
}

/// The sentences that match a question best, at most `most`, best first. Each is both claim and
/// quote. A word counts more if fewer sentences contain it. Sentences that share no word with the
/// question, or score less than half of the best, are left out, and so are code blocks and headings:
/// `title` is that of the page. Linear time.
pub fn notes_by_rule(question: &str, title: &str, page: &str, most: u32) -> Vec<Draft> {
    let asked: BTreeSet<String> = stems(question).into_iter().collect();
    let mut seen = BTreeSet::new();
    let all: Vec<(String, BTreeSet<String>)> = prose_sentences(page)
        .filter(|sentence| {
            let chars = sentence.chars().count();
            (MIN_QUOTE_CHARS..=SENTENCE_CHARS).contains(&chars)
                && !is_heading(sentence)
                && sentence != title.trim()
                && seen.insert(sentence.clone())
        })
        .map(|sentence| {
            let own: BTreeSet<String> = stems(&sentence).into_iter().collect();
            let shared = own.intersection(&asked).cloned().collect();
            (sentence, shared)
        })
        .collect();
    let mut spread: BTreeMap<&str, usize> = BTreeMap::new();
    for word in all.iter().flat_map(|(_, words)| words) {
        *spread.entry(word).or_default() += 1;
    }
    let weight = |word: &String| {
        let among = spread.get(word.as_str()).copied().unwrap_or(1);
        (1.0 + all.len() as f64 / among as f64).ln()
    };
    let mut ranked: Vec<(f64, usize)> = all
        .iter()
        .enumerate()
        .map(|(place, (_, words))| (words.iter().map(weight).sum(), place))
        .filter(|(score, _)| *score > 0.0)
        .collect();
    ranked.sort_by(|(left, at), (right, other)| right.total_cmp(left).then(at.cmp(other)));
    let best = ranked.first().map_or(0.0, |(score, _)| *score);
    let good = ranked.into_iter().take_while(|(score, _)| *score * 2.0 >= best);
    good.take(most as usize)
        .filter_map(|(_, place)| {
            let (sentence, _) = all.get(place)?;
            Some(Draft { claim: sentence.clone(), quote: sentence.clone() })
        })
        .collect()
}
