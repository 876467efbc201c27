//! Reads the sources one after another: each is checked, fetched, and yields notes. A problem with
//! one source is reported and ends only that source. What tools return is kept on one line, and
//! shortened.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::note_taking::{AcceptedNote, NoteTaker};
use super::policy;
use super::policy::{address, fold_white_space};
use super::{ResearchCaller, ResearchRun};
use crate::base::name::ToolName;
use crate::base::time::Day;
use crate::base::visible::visible_within;
use crate::gateway::CallFailed;
use crate::log::event::id::SourceNo;
use crate::log::event::{AttemptFailed, Boundary, FailureClass, Purpose, SpanId, StopReason};
use crate::log::facts::research::{
    Denial, FoundSource, KeptSource, PageRead, ReadingEnd, ResearchFact, SourceOutcome,
};
use crate::log::world::research::unanswered::PageWords;
use crate::run::{RunContext, ToolCallRequest};
use crate::scenario::patterns::research::READ;

/// Reads the sources of one run.
pub(crate) struct SourceReader<'a> {
    research: &'a ResearchRun<'a>,
    found: &'a [FoundSource],
    notes: NoteTaker<'a>,
    /// The addresses of the pages that were read.
    read: HashSet<String>,
    /// The number of pages that were read, useless ones included.
    pages: u32,
    tool: ToolName,
}

impl<'a> SourceReader<'a> {
    pub fn new(research: &'a ResearchRun<'a>, found: &'a [FoundSource]) -> Self {
        let (notes, read) = (NoteTaker::new(research), HashSet::new());
        Self { research, found, notes, read, pages: 0, tool: ToolName::from(READ) }
    }

    /// Reads the sources in order, within the budget.
    pub async fn read_all_sources(
        mut self,
        kept: &[KeptSource],
    ) -> Result<(Vec<AcceptedNote>, PageWords), StopReason> {
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
            self.research.pace("source", nth).await;
            let came = match denied {
                Some(reason) => SourceOutcome::Denied { reason, location: None },
                None => self.read_one_source(span, nth, source).await?,
            };
            open.close(came);
            if self.notes.is_full() {
                why = ReadingEnd::MaxNotes;
                break;
            }
        }
        cx.publish(SpanId::RUN, ResearchFact::ReadingClosed { reason: why });
        if self.notes.taken.is_empty() {
            return Err(StopReason::NoReliableSources);
        }
        let notes = super::notes_json(self.notes.taken.iter().map(|it| &*it.note));
        policy::validate_notes(&notes, budget.max_notes).map_err(StopReason::InvalidNotes)?;
        Ok((self.notes.taken, self.notes.words))
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
            return Ok(skipped_source("duplicate", &text));
        }
        if let Some(why) = spec.max_age_days.and_then(|most| age_outcome(age_days, most)) {
            return Ok(why);
        }
        self.notes.take_notes(span, nth, source, page).await
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
                of_program: None,
                tool: &self.tool,
                purpose: Purpose::Read { source: source.source },
                path: format!("read:{nth}"),
                args: Arc::new(args),
                request_id: None,
                caller: &ResearchCaller,
                why: None,
                client_retries: 0,
            })
            .await;
        let answered = match asked {
            Ok(answered) => answered,
            Err(failed) => return self.failed_call_outcome(*failed).map(Err),
        };
        let result = answered.reply.result.clone().unwrap_or_default();
        let Some(data) = unwrap_tool_data(&result) else {
            return Ok(Err(self.tool_error_outcome(&result)));
        };
        let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default().trim();
        let url = match text("url") {
            "" => source.url.to_string(),
            url => match address::normalize(url, self.research.plan.same_page) {
                Some(url) => url,
                None => {
                    return Ok(Err(skipped_source(
                        "invalid_url",
                        "the page's address is not valid",
                    )));
                }
            },
        };
        // A tool may have followed redirects, so the final address passes the same gate again.
        if let Some(reason) = self.denial_of(&address::domain(&url)) {
            let location = Some(visible_within(&url, LOCATION_CHARS).into());
            return Ok(Err(SourceOutcome::Denied { reason, location }));
        }
        if text("body").is_empty() {
            return Ok(Err(skipped_source("empty_page", "the page has no text")));
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
            return skipped_source(
                &invalid.to_string(),
                "the result is neither a page nor an error",
            );
        }
        if error == "redirect_denied"
            && let Some(reason) = self.denial_of(&address::domain(location))
        {
            let location = Some(visible_within(location, LOCATION_CHARS).into());
            return SourceOutcome::Denied { reason, location };
        }
        let why = text("text");
        skipped_source(error, if why.is_empty() { "the tool gave no details" } else { why })
    }

    /// A call that failed for good: the source is skipped, or the run stops.
    fn failed_call_outcome(&self, failed: CallFailed) -> Result<SourceOutcome, StopReason> {
        let CallFailed { reason, last, unavailable, denied, .. } = failed;
        if matches!(reason, StopReason::Cancelled | StopReason::MaxSeconds)
            || (unavailable && self.research.cx.requires(&self.tool))
        {
            return Err(reason);
        }
        if let Some(denied) = denied {
            let text = denied.strip_prefix("error: ").unwrap_or(&denied);
            return Ok(skipped_source("approval_denied", text));
        }
        Ok(match last.as_deref() {
            Some(AttemptFailed { status: Some(status), text, class, .. })
                if *class != FailureClass::BadResponse =>
            {
                skipped_source(&format!("http_{status}"), text)
            }
            Some(AttemptFailed { class: FailureClass::BadResponse, text, .. }) => {
                skipped_source(&reason.to_string(), text)
            }
            Some(AttemptFailed { class, text, .. }) => skipped_source(class.word(), text),
            None => skipped_source(&reason.to_string(), reason.advice().unwrap_or_default()),
        })
    }
}

/// The most characters of a redirect target.
const LOCATION_CHARS: usize = 300;

/// Why a page of this age is not used, given a limit of `most` days. A page without a date, or with
/// one in the future, may be too old, so it is skipped too.
fn age_outcome(age_days: Option<i64>, most: u32) -> Option<SourceOutcome> {
    // Tomorrow may already be today further east.
    let age = age_days.filter(|age| *age >= -1);
    match age {
        Some(age) if age > i64::from(most) => {
            let text = format!("{age} days old; research.max_age_days is {most}");
            Some(skipped_source("stale", &text))
        }
        Some(_) => None,
        None => {
            let text = format!("no publication date; research.max_age_days is {most}");
            Some(skipped_source("undated", &text))
        }
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

/// The outcome of a source, or why the run stops.
pub(crate) type SourceResult = Result<SourceOutcome, StopReason>;

/// A page as its tool returned it.
pub(crate) struct FetchedPage {
    pub call: SpanId,
    pub url: String,
    pub title: Arc<str>,
    pub published_at: Arc<str>,
    /// `published_at` is the modification date of its file.
    pub modified: bool,
    pub body: String,
}

/// The most characters of a tool's error identifier.
const REASON_CHARS: usize = 64;

/// The most characters of a tool's error text.
const TEXT_CHARS: usize = 400;

/// A skipped source. Texts of a tool are data: shortened, and control characters made visible.
pub(super) fn skipped_source(reason: &str, text: &str) -> SourceOutcome {
    SourceOutcome::Skipped {
        reason: visible_within(reason, REASON_CHARS).into(),
        text: visible_within(text, TEXT_CHARS).into(),
    }
}

/// The most bytes of an address; a longer one is dropped as invalid.
const URL_BYTES: usize = 2_048;
/// The most characters of a title that are kept.
pub(crate) const TITLE_CHARS: usize = 300;
/// Maximum characters of a search snippet.
const SNIPPET_CHARS: usize = 500;
/// Maximum characters of a date. Usually it is like `2026-03-07`, but a page may give any text.
const DAY_CHARS: usize = 40;

/// A text from a tool on one line, shortened and with control characters made visible.
fn single_line_text(text: &str, chars: usize) -> Arc<str> {
    visible_within(&fold_white_space(text), chars).into()
}

/// The data of a successful tool result, in the envelope of the source document
/// (`_unwrap_tool_data`).
pub(super) fn unwrap_tool_data(answer: &Value) -> Option<&Map<String, Value>> {
    let well = answer.get("status").and_then(Value::as_str) == Some("ok");
    answer.get("data").and_then(Value::as_object).filter(|_| well)
}

/// A source in a search result; `None` if the row is not an object (the source document drops it
/// too).
pub(super) fn parse_source(row: &Value) -> Option<FoundSource> {
    let row = row.as_object()?;
    let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default().trim();
    let shown = |key: &str, chars| single_line_text(text(key), chars);
    let url = Some(text("url")).filter(|url| url.len() <= URL_BYTES);
    Some(FoundSource {
        url: url.unwrap_or_default().into(),
        title: shown("title", TITLE_CHARS),
        snippet: shown("snippet", SNIPPET_CHARS),
        // Trust is multiplied with the score, so a score is at most 1.
        score: row.get("score").and_then(Value::as_f64).map(|score| score.clamp(0.0, 1.0)),
        published_at: shown("published_at", DAY_CHARS),
    })
}
