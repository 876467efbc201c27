//! Reads the sources one after another: each is checked, fetched, and yields notes. A
//! problem with one source is reported and ends only that source.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::payload;
use super::play::{ResearchCaller, ResearchRun};
use super::policy::address;
use super::policy::quote::FoldedText;
use super::policy::{self, Draft};
use super::tool_data::{DAY_CHARS, TITLE_CHARS, single_line_text, unwrap_tool_data};
use super::{by_rule, detail};
use crate::base::day::Day;
use crate::base::name::ToolName;
use crate::base::visible::visible_within;
use crate::event::kind::{AttemptFailed, FailureClass, Purpose};
use crate::event::{Boundary, EventKind, SpanId, StopReason};
use crate::gateway::CallFailed;
use crate::pattern::reply::Refusal;
use crate::pattern::research::facts::{
    Denial, FoundSource, KeptSource, Note, NoteRefused, NotesLimit, NotesTruncated, PageRead,
    ReadingEnd, ResearchFact, SourceOutcome,
};
use crate::pattern::research::faults::NoteIssue;
use crate::pattern::research::ids::{NoteId, SourceNo};
use crate::pattern::research::spec::{MisquotePolicy, READ, StepExecutor};
use crate::run::{ModelRequest, RunContext, ToolCallRequest};

/// An accepted note, with the page that must contain its quote.
pub(super) struct AcceptedNote {
    pub note: Arc<Note>,
    pub page: Arc<FoldedText>,
}

/// Reads the sources of one run.
pub(super) struct SourceReader<'a> {
    research: &'a ResearchRun<'a>,
    found: &'a [FoundSource],
    taken: Vec<AcceptedNote>,
    /// The addresses of the pages that were read.
    read: HashSet<String>,
    /// The number of pages that were read, useless ones included.
    pages: u32,
    tool: ToolName,
}

/// The outcome of a source, or why the run stops.
type SourceResult = Result<SourceOutcome, StopReason>;

/// A page as its tool returned it.
struct FetchedPage {
    call: SpanId,
    url: String,
    title: Arc<str>,
    published_at: Arc<str>,
    /// `published_at` is the modification date of its file.
    modified: bool,
    body: String,
}

impl<'a> SourceReader<'a> {
    pub fn new(research: &'a ResearchRun<'a>, found: &'a [FoundSource]) -> Self {
        let (taken, read) = (Vec::new(), HashSet::new());
        Self { research, found, taken, read, pages: 0, tool: ToolName::from(READ) }
    }

    /// Reads the sources in order, within the budget.
    pub async fn read_all_sources(
        mut self,
        kept: &[KeptSource],
    ) -> Result<Vec<AcceptedNote>, StopReason> {
        let (cx, budget) = (self.research.cx, self.research.spec.budget);
        let mut why = ReadingEnd::NoMoreSources;
        for (place, source) in kept.iter().enumerate() {
            let nth = SourceNo::from_index(place).0;
            cx.boundary(Boundary::Source(nth)).await?;
            let denied = self.denial_of(&source.domain);
            // As in the source document, a denied source is reported even when no more pages may be
            // read.
            if denied.is_none() && self.pages >= budget.max_read_pages {
                why = ReadingEnd::MaxReadPages;
                break;
            }
            let parent = SpanId::RUN;
            let span = cx.open_span(ResearchFact::SourceStarted { parent, source: source.source });
            let mut open = OpenSource { cx, span, open: true };
            let came = match denied {
                Some(reason) => SourceOutcome::Denied { reason, location: None },
                None => self.read_one_source(span, nth, source).await?,
            };
            open.close(came);
            if self.is_full() {
                why = ReadingEnd::MaxNotes;
                break;
            }
        }
        cx.publish(SpanId::RUN, ResearchFact::ReadingClosed { reason: why });
        if self.taken.is_empty() {
            return Err(StopReason::NoReliableSources);
        }
        let notes = payload::notes_json(self.taken.iter().map(|it| &*it.note));
        policy::validate_notes(&notes, budget.max_notes).map_err(StopReason::InvalidNotes)?;
        Ok(self.taken)
    }

    fn is_full(&self) -> bool {
        self.taken.len() >= self.research.spec.budget.max_notes as usize
    }

    /// The domains that both allowlists allow now.
    fn domains_allowed_now(&self) -> Vec<&str> {
        let policy = &self.research.spec.allowed_domains_policy;
        let on = self.enabled_domains();
        on.into_iter().filter(|domain| policy.iter().any(|it| it == domain)).collect()
    }

    /// The execution allowlist, without domains whose flag is off.
    fn enabled_domains(&self) -> Vec<&str> {
        let spec = self.research.spec;
        let on = |domain: &&String| {
            let flag = spec.rule(domain).and_then(|rule| rule.flag.as_ref());
            flag.is_none_or(|flag| self.research.cx.flag(flag))
        };
        spec.allowed_domains_execution.iter().filter(on).map(String::as_str).collect()
    }

    fn denial_of(&self, domain: &str) -> Option<Denial> {
        let policy: Vec<&str> =
            self.research.spec.allowed_domains_policy.iter().map(String::as_str).collect();
        policy::denied_by(domain, &policy, &self.enabled_domains())
    }

    /// Reads a source that passed its check, and takes its notes.
    async fn read_one_source(
        &mut self,
        span: SpanId,
        nth: u32,
        source: &KeptSource,
    ) -> SourceResult {
        let page = match self.fetch_page(span, nth, source).await? {
            Ok(page) => page,
            Err(came) => return Ok(came),
        };
        self.pages += 1;
        let spec = self.research.spec;
        let age_days = self.age(&page.published_at);
        self.research.cx.publish(
            span,
            ResearchFact::PageRead(Box::new(PageRead {
                source: source.source,
                call: page.call,
                url: page.url.as_str().into(),
                title: Arc::clone(&page.title),
                published_at: Arc::clone(&page.published_at),
                age_days,
                chars: page.body.chars().count() as u64,
                modified: page.modified,
            })),
        );
        if !self.read.insert(page.url.clone()) {
            let text = format!("{} was already read at another address", page.url);
            return Ok(skipped("duplicate", &text));
        }
        if let Some(why) = spec.max_age_days.and_then(|most| age_outcome(age_days, most)) {
            return Ok(why);
        }
        self.take_notes(span, nth, source, page).await
    }

    /// Days from a date until the date that the run is about (`as_of`, else today).
    fn age(&self, published_at: &str) -> Option<i64> {
        let research = self.research;
        let asked = match &research.spec.as_of {
            Some(day) => day.parse::<Day>().ok()?,
            None => research.cx.today(),
        };
        Some(asked.days_since(published_at.parse::<Day>().ok()?))
    }

    /// Reads a page. The inner error is the outcome of a source that gave no page.
    async fn fetch_page(
        &self,
        span: SpanId,
        nth: u32,
        source: &KeptSource,
    ) -> Result<Result<FetchedPage, SourceOutcome>, StopReason> {
        let cx = self.research.cx;
        let Some(found) = source.source.index().and_then(|place| self.found.get(place)) else {
            return Err(StopReason::InternalError);
        };
        let allowed: Vec<Value> = self.domains_allowed_now().into_iter().map(Value::from).collect();
        let args = Map::from_iter([
            ("url".to_owned(), Value::from(address::without_fragment(&found.url))),
            ("allowed_domains".to_owned(), Value::from(allowed)),
        ]);
        let asked = cx
            .call_tool(ToolCallRequest {
                parent: span,
                tool: &self.tool,
                purpose: Purpose::Read { source: source.source },
                path: format!("read:{nth}"),
                args: Arc::new(args),
                request_id: None,
                caller: &ResearchCaller,
                client_retries: 0,
            })
            .await;
        let answered = match asked {
            Ok(answered) => answered,
            Err(failed) => return self.failed_call_outcome(*failed).map(Err),
        };
        let result = answered.reply.result.unwrap_or_default();
        let Some(data) = unwrap_tool_data(&result) else {
            return Ok(Err(self.tool_error_outcome(&result)));
        };
        let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default().trim();
        let url = match text("url") {
            "" => source.url.to_string(),
            url => match address::normalize(url) {
                Some(url) => url,
                None => return Ok(Err(skipped("invalid_url", "the page's address is not valid"))),
            },
        };
        // A tool may have followed redirects, so the final address passes the same gate again.
        if let Some(reason) = self.denial_of(&address::domain(&url)) {
            let location = Some(visible_within(&url, LOCATION_CHARS).into());
            return Ok(Err(SourceOutcome::Denied { reason, location }));
        }
        if text("body").is_empty() {
            return Ok(Err(skipped("empty_page", "the page has no text")));
        }
        let title = match text("title") {
            "" => Arc::clone(&found.title),
            title => single_line_text(title, TITLE_CHARS),
        };
        let published_at = single_line_text(text("published_at"), DAY_CHARS);
        let modified = text("dated_by") == "modified";
        let body = text("body").to_owned();
        Ok(Ok(FetchedPage { call: answered.span, url, title, published_at, modified, body }))
    }

    /// The outcome of a page for which the tool reported an error.
    fn tool_error_outcome(&self, result: &Value) -> SourceOutcome {
        let text = |key: &str| result.get(key).and_then(Value::as_str).unwrap_or_default().trim();
        let (error, location) = (text("error"), text("location"));
        if text("status") != "error" || error.is_empty() {
            let invalid = StopReason::ToolInvalidOutput(self.tool.clone());
            return skipped(&invalid.to_string(), "the result is neither a page nor an error");
        }
        if error == "redirect_denied"
            && let Some(reason) = self.denial_of(&address::domain(location))
        {
            let location = Some(visible_within(location, LOCATION_CHARS).into());
            return SourceOutcome::Denied { reason, location };
        }
        let why = text("text");
        skipped(error, if why.is_empty() { "the tool gave no details" } else { why })
    }

    /// A call that failed for good: the source is skipped, or the run stops.
    fn failed_call_outcome(&self, failed: CallFailed) -> Result<SourceOutcome, StopReason> {
        let CallFailed { reason, last, unavailable, .. } = failed;
        if matches!(reason, StopReason::Cancelled | StopReason::MaxSeconds)
            || (unavailable && self.research.cx.requires(&self.tool))
        {
            return Err(reason);
        }
        Ok(match last.as_deref() {
            Some(AttemptFailed { status: Some(status), text, class, .. })
                if *class != FailureClass::BadResponse =>
            {
                skipped(&format!("http_{status}"), text)
            }
            Some(AttemptFailed { class: FailureClass::BadResponse, text, .. }) => {
                skipped(&reason.to_string(), text)
            }
            Some(AttemptFailed { class, text, .. }) => skipped(class.word(), text),
            None => skipped(&reason.to_string(), reason.advice().unwrap_or_default()),
        })
    }

    /// Takes the notes of a page.
    async fn take_notes(
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
                by_rule::notes(&spec.question, &page.body, room.min(spec.notes_by_rule))
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
                        return Ok(skipped(&invalid.to_string(), text));
                    }
                }
            }
        };
        let folded = Arc::new(FoldedText::fold_white_space(&page.body));
        let (mut notes, mut refused) = (0, 0);
        for draft in drafts {
            let misquoted =
                || spec.misquotes == MisquotePolicy::Refuse && !folded.contains_quote(&draft.quote);
            let why = policy::length_issue(&draft)
                .or_else(|| misquoted().then_some(NoteIssue::QuoteNotInSource));
            if let Some(why) = why {
                refused += 1;
                self.refuse(span, source.source, draft, why);
                continue;
            }
            notes += 1;
            let note = Arc::new(Note {
                id: NoteId::nth(self.taken.len() + 1),
                claim: draft.claim.into(),
                quote: draft.quote.into(),
                url: page.url.as_str().into(),
                title: Arc::clone(&page.title),
                published_at: Arc::clone(&page.published_at),
                modified: page.modified,
            });
            let taken = ResearchFact::NoteTaken { source: source.source, note: Arc::clone(&note) };
            self.research.cx.publish(span, taken);
            self.taken.push(AcceptedNote { note, page: Arc::clone(&folded) });
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
            shown.bind("notes", &payload::notes_json(self.taken.iter().map(|it| &*it.note)));
        });
        let told = payload::PagePayload {
            url: &page.url,
            title: &page.title,
            published_at: &page.published_at,
            body: &page.body,
        };
        let (messages, cut) = payload::notes_messages(research.spec, &told, most);
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
            payload::notes_form(),
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

/// The notes that a model proposed for a page.
struct ProposedNotes {
    /// The notes within the limit.
    drafts: Vec<Draft>,
    /// The number of notes that it proposed.
    count: u32,
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
/// The most characters of a redirect target.
const LOCATION_CHARS: usize = 300;
/// The most characters of a tool's error identifier.
const REASON_CHARS: usize = 64;
/// The most characters of a tool's error text.
const TEXT_CHARS: usize = 400;

/// Why a page of this age is not used, given a limit of `most` days. A page without a date, or with
/// one in the future, may be too old, so it is skipped too.
fn age_outcome(age_days: Option<i64>, most: u32) -> Option<SourceOutcome> {
    // Tomorrow may already be today further east.
    let age = age_days.filter(|age| *age >= -1);
    match age {
        Some(age) if age > i64::from(most) => {
            let text = format!("{age} days old; research.max_age_days is {most}");
            Some(skipped("stale", &text))
        }
        Some(_) => None,
        None => {
            let text = format!("no publication date; research.max_age_days is {most}");
            Some(skipped("undated", &text))
        }
    }
}

/// A skipped source. Texts of a tool are data: shortened, and control characters made visible.
fn skipped(reason: &str, text: &str) -> SourceOutcome {
    SourceOutcome::Skipped {
        reason: visible_within(reason, REASON_CHARS).into(),
        text: visible_within(text, TEXT_CHARS).into(),
    }
}

/// An open source span, closed as cancelled if it is dropped before it ends.
struct OpenSource<'a> {
    cx: &'a RunContext,
    span: SpanId,
    open: bool,
}

impl OpenSource<'_> {
    fn close(&mut self, came: SourceOutcome) {
        self.open = false;
        self.cx.publish(self.span, ResearchFact::SourceClosed(Box::new(came)));
    }
}

impl Drop for OpenSource<'_> {
    fn drop(&mut self) {
        if self.open {
            self.close(SourceOutcome::Cancelled);
        }
    }
}
