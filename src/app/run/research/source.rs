//! What is said of a source: how far it is, how old, and for one that fell out why and what to do.

use std::borrow::Cow;

use crate::app::format;
use crate::event::kind::{Denial, DropReason, ReadingEnd, ResearchPlan};
use crate::event::world::research::{SourceRow, SourceState};
use crate::scenario::day::Day;

/// How far a source is, or why it fell out, in a few words.
pub fn standing(row: &SourceRow) -> Cow<'_, str> {
    match &row.state {
        SourceState::Found => "found".into(),
        SourceState::Dropped(DropReason::Duplicate { of }) => format!("duplicate of {of}").into(),
        SourceState::Waiting => "waiting".into(),
        SourceState::Reading if row.read_call.is_none() => "at the allowlists".into(),
        SourceState::Reading => "reading".into(),
        SourceState::Noting => "taking notes".into(),
        SourceState::Read { notes, refused } => {
            let mut text = match notes {
                0 => "read, no note".to_owned(),
                notes => format!("read, {}", format::things(u64::from(*notes), "note")),
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
        | SourceState::NotReached(_) => row.fell_out().unwrap_or_default().into(),
    }
}

/// Days from when a source was published until the day that the run asks about, as far as it is
/// known: of its page, else as the search says it.
pub fn age_days(row: &SourceRow, plan: &ResearchPlan) -> Option<i64> {
    if let Some(page) = &row.page {
        return page.age_days;
    }
    let published: Day = row.found.published_at.parse().ok()?;
    Some(plan.as_of.parse::<Day>().ok()?.since(published))
}

/// The age of a source in at most seven columns: `51 d`, `undated`, `in 2 d`; empty: nobody has
/// looked yet.
pub fn age(row: &SourceRow, plan: &ResearchPlan) -> String {
    match age_days(row, plan) {
        None if row.page.is_none() => String::new(),
        None => "undated".to_owned(),
        Some(days @ 0..) => format!("{days} d"),
        Some(days) => format!("in {} d", days.unsigned_abs()),
    }
}

/// How far the scenario trusts a source. `None`: it is not kept, or the scenario says nothing of its
/// domain, and the 1 that it is then ranked by is nobody's judgement.
pub fn trust(row: &SourceRow, plan: &ResearchPlan) -> Option<f64> {
    row.trust.filter(|_| plan.source(&row.domain).is_some())
}

/// Why a source without a page has none, and what to do about it.
pub fn why(row: &SourceRow, plan: &ResearchPlan) -> (String, Option<String>) {
    let domain = &*row.domain;
    match &row.state {
        SourceState::Found => ("It was found; no source has been picked yet.".into(), None),
        SourceState::Dropped(DropReason::Duplicate { of }) => (
            format!("It stands for the same page as {of}, so that one alone is looked at."),
            Some(format!("Select {of} for the page.")),
        ),
        SourceState::Dropped(DropReason::InvalidUrl) => {
            ("Its address is none that can be read: http or https with a host.".into(), None)
        }
        SourceState::Dropped(DropReason::MaxUrls) => (
            format!("{} were kept before it.", format::things(plan.max_urls.into(), "source")),
            Some("Raise budget.max_urls to look at more.".into()),
        ),
        SourceState::Waiting => {
            ("Its turn has not come: sources go by score and trust.".into(), None)
        }
        SourceState::Reading if row.read_call.is_none() => {
            ("Both allowlists are asked before anything is read.".into(), None)
        }
        SourceState::Reading => ("Its page is being read.".into(), None),
        SourceState::Denied { reason, location } => {
            let whom = match location {
                Some(location) => format!("It leads to {location}, and that"),
                None => domain.to_owned(),
            };
            denied(*reason, &whom, location.is_none().then_some(domain), plan)
        }
        SourceState::Skipped { text, reason } => {
            let told = if text.is_empty() { reason } else { text };
            (told.to_string(), Some(advice(reason).to_owned()))
        }
        SourceState::NotReached(ReadingEnd::MaxReadPages) => (
            format!("{} were read before its turn.", pages(plan)),
            Some("Raise budget.max_read_pages to read more.".into()),
        ),
        SourceState::NotReached(ReadingEnd::MaxNotes) => (
            format!(
                "{} were taken before its turn.",
                format::things(plan.max_notes.into(), "note")
            ),
            Some("Raise budget.max_notes to take more.".into()),
        ),
        SourceState::NotReached(ReadingEnd::NoMoreSources) | SourceState::Cancelled => {
            ("The run ended before it was looked at to the end.".into(), None)
        }
        SourceState::Noting | SourceState::Read { .. } => {
            ("The log does not hold its page.".into(), None)
        }
    }
}

fn pages(plan: &ResearchPlan) -> String {
    format::things(plan.max_read_pages.into(), "page")
}

fn denied(
    reason: Denial,
    whom: &str,
    domain: Option<&str>,
    plan: &ResearchPlan,
) -> (String, Option<String>) {
    match reason {
        Denial::Policy => (
            format!("{whom} is not among the domains that may ever be read."),
            Some("Add it to allowed_domains_policy, if it is to be trusted.".into()),
        ),
        Denial::Execution => {
            let flag = domain.and_then(|it| plan.source(it)).and_then(|it| it.flag.as_ref());
            let to_do = match flag {
                Some(flag) => format!("Its flag {flag} is off: f opens the flags."),
                None => "Add it to allowed_domains_execution.".into(),
            };
            (format!("{whom} may be read, but is not switched on in this run."), Some(to_do))
        }
    }
}

/// What to do about a page that could not be had, or is of no use.
fn advice(reason: &str) -> &'static str {
    match reason {
        "stale" => "Raise max_age_days, or find a page that is kept up.",
        "robots_disallowed" => "The site asks programs not to read it: read it yourself.",
        "not_found" => "The page is gone; nothing of it was used.",
        "private_address" => "It is in a private network: allow_private can name its host.",
        "too_many_redirects" | "redirect_loop" => "The site sends readers in circles.",
        "content_type" => "Only HTML, Markdown, plain text and PDF are read.",
        _ => "Enter shows what was answered, whole.",
    }
}
