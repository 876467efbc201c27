//! The texts about a source: its state, its age, and for a rejected one why and what to do.

use std::borrow::Cow;

use crate::base::time::Day;
use crate::log::facts::research::skip_phrase;
use crate::log::facts::research::{Denial, DropReason, ReadingEnd, ResearchPlan};
use crate::log::world::research::{Research, SourceRow, SourceState};
use crate::words::format;

/// The state of a source, or why it was rejected, in a few words.
pub fn source_state(row: &SourceRow) -> Cow<'_, str> {
    match &row.state {
        SourceState::Found => "found".into(),
        SourceState::Dropped(DropReason::Duplicate { duplicate_of: of }) => {
            format!("duplicate of {of}").into()
        }
        SourceState::Waiting => "waiting".into(),
        SourceState::Reading if row.read_call.is_none() => "checking allowlists".into(),
        SourceState::Reading => "reading".into(),
        SourceState::Noting => "taking notes".into(),
        SourceState::Read { notes, refused } => {
            let mut text = match notes {
                0 => "read, no note".to_owned(),
                notes => format!("read, {}", format::count_noun(u64::from(*notes), "note")),
            };
            if *refused > 0 {
                text.push_str(&format!(", {refused} refused"));
            }
            if let Some(cut) = &row.cut {
                text.push_str(&format!(", {} cut", cut.cut));
            }
            text.into()
        }
        SourceState::Cancelled => "cancelled".into(),
        SourceState::Dropped(_)
        | SourceState::Denied { .. }
        | SourceState::Skipped { .. }
        | SourceState::NotReached(_) => row.drop_phrase().unwrap_or_default(),
    }
}

/// Age in days on the day that the run asks about; `None` if unknown. The date is that of the page,
/// else that of the search result.
pub fn age_days(row: &SourceRow, plan: &ResearchPlan) -> Option<i64> {
    if let Some(page) = &row.page {
        return page.age_days;
    }
    let published: Day = row.found.published_at.parse().ok()?;
    Some(plan.as_of.parse::<Day>().ok()?.days_since(published))
}

/// The age in at most seven columns: `51 d`, `undated`, `in 2 d`; empty before the page is read if
/// the search gave no date.
pub fn age_text(row: &SourceRow, plan: &ResearchPlan) -> String {
    match age_days(row, plan) {
        None if row.page.is_none() => String::new(),
        None => "undated".to_owned(),
        Some(days @ 0..) => format!("{days} d"),
        Some(days) => format!("in {} d", days.unsigned_abs()),
    }
}

/// The trust that the scenario states for a source's domain, 0 to 1. `None` if the source was not
/// kept or the scenario states none; it is then ranked as 1.
pub fn trust(row: &SourceRow, plan: &ResearchPlan) -> Option<f64> {
    row.trust.filter(|_| plan.source(&row.domain).is_some())
}

/// The sources, a line for each.
pub(super) fn rows(research: &Research) -> Vec<String> {
    let plan = &research.plan;
    let sources = research.sources.iter();
    sources
        .map(|row| {
            let mut parts = vec![source_state(row).into_owned()];
            parts.extend(trust(row, plan).map(|it| format!("trust {it}")));
            let age = age_text(row, plan);
            parts.extend((!age.is_empty()).then(|| format!("age {}", age.replace(" d", " days"))));
            parts.extend(row.found.score.map(|it| format!("score {it}")));
            format!("source {}: {}, {}: {}", row.no, row.title(), row.address(), parts.join(", "))
        })
        .collect()
}

/// Why a source has no page, and what to do about it.
pub fn missing_page_reason(row: &SourceRow, plan: &ResearchPlan) -> (String, Option<String>) {
    let domain = &*row.domain;
    match &row.state {
        SourceState::Found => ("Found; duplicates are not removed yet.".into(), None),
        SourceState::Dropped(DropReason::Duplicate { duplicate_of: of }) => (
            format!("Same page as {of}; only that one is read."),
            Some(format!("Select {of} for the page.")),
        ),
        SourceState::Dropped(DropReason::InvalidUrl) => {
            ("Its address cannot be read: it needs http or https, and a host.".into(), None)
        }
        SourceState::Dropped(DropReason::MaxUrls) => (
            format!(
                "{} were already kept.",
                format::count_noun(plan.budget.max_urls.into(), "source")
            ),
            Some("Raise budget.max_urls to keep more.".into()),
        ),
        SourceState::Waiting => {
            ("Waiting for its turn: sources are read by score and trust.".into(), None)
        }
        SourceState::Reading if row.read_call.is_none() => {
            ("Both allowlists are checked before anything is read.".into(), None)
        }
        SourceState::Reading => ("Its page is being read.".into(), None),
        SourceState::Denied { reason, location } => {
            let whom = match location {
                Some(location) => format!("It redirects to {location}, which"),
                None => domain.to_owned(),
            };
            denial_text(*reason, &whom, location.is_none().then_some(domain), plan)
        }
        SourceState::Skipped { text, reason } => {
            let phrase = if text.is_empty() { skip_phrase(reason) } else { (&**text).into() };
            (phrase.into_owned(), Some(advice(reason).to_owned()))
        }
        SourceState::NotReached(ReadingEnd::MaxReadPages) => (
            format!("{} were read before its turn.", pages(plan)),
            Some("Raise budget.max_read_pages to read more.".into()),
        ),
        SourceState::NotReached(ReadingEnd::MaxNotes) => (
            format!(
                "{} were taken before its turn.",
                format::count_noun(plan.budget.max_notes.into(), "note")
            ),
            Some("Raise budget.max_notes to take more.".into()),
        ),
        SourceState::NotReached(ReadingEnd::NoMoreSources) | SourceState::Cancelled => {
            ("The run ended before this source was finished.".into(), None)
        }
        SourceState::Noting | SourceState::Read { .. } => {
            ("The log does not contain its page.".into(), None)
        }
    }
}

fn pages(plan: &ResearchPlan) -> String {
    format::count_noun(plan.budget.max_read_pages.into(), "page")
}

fn denial_text(
    reason: Denial,
    whom: &str,
    domain: Option<&str>,
    plan: &ResearchPlan,
) -> (String, Option<String>) {
    match reason {
        Denial::Policy => (
            format!("{whom} is not on the policy allowlist."),
            Some("Add it to allowed_domains_policy if you trust it.".into()),
        ),
        Denial::Execution => {
            let flag = domain.and_then(|it| plan.source(it)).and_then(|it| it.flag.as_ref());
            let to_do = match flag {
                Some(flag) => format!("Its flag {flag} is off: switch it on in the flags."),
                None => "Add it to allowed_domains_execution.".into(),
            };
            (format!("{whom} is allowed by policy, but switched off in this run."), Some(to_do))
        }
    }
}

/// What to do about a page that could not be fetched or used.
fn advice(reason: &str) -> &'static str {
    match reason {
        "stale" => "Raise max_age_days, or find a more recent page.",
        "robots_disallowed" => "robots.txt forbids programs to read it: open it in a browser.",
        "not_found" => "The page does not exist; nothing of it was used.",
        "private_address" => "The address is private: add its host to allow_private.",
        "too_many_redirects" | "redirect_loop" => "The site redirects too often.",
        "content_type" => "Only HTML, Markdown, plain text and PDF can be read.",
        _ => "Inspect it for the full reply.",
    }
}
