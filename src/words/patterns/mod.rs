//! The registry of words: what each pattern says about its runs, as the trait [`Narrate`]; and what
//! all share: progress in figures, previews. Screens, headless text and documents ask these
//! questions and never look inside a pattern.

pub mod agents;
pub mod collaboration;
pub mod observed;
pub mod orchestrator;
pub mod research;
mod resilience;
pub mod router;
mod team;

use std::borrow::Cow;

use super::sentence::Sentence;
use super::styled::{StyleRole, StyledLine, StyledPart, StyledText};
use super::verdict::{RunVerdict, reason_id, run_lead, run_stop_line};
use super::{badges, format};
use crate::base::name::FlagName;
use crate::log::event::{Event, Purpose, RunClosed, StopReason};
use crate::log::world::{PatternWorld, Projection, RunFold, SpanKind, SpendingUsed, World};

/// The words of the run's pattern; `None` before the head.
pub fn words_of(world: &World) -> Option<&dyn Narrate> {
    match &world.pattern {
        PatternWorld::None => None,
        PatternWorld::Collaboration(it) => Some(it),
        PatternWorld::Orchestrator(it) => Some(it),
        PatternWorld::Team(it) => Some(it),
        PatternWorld::Resilience(it) => Some(it),
        PatternWorld::Research(it) => Some(&**it),
        PatternWorld::Router(it) => Some(it),
        PatternWorld::Observed(it) => Some(&**it),
    }
}

/// The words of a pattern that are the same for all its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternTerms {
    /// The answer of a run: `launch brief`, `report`.
    pub answer: &'static str,
    /// The same in at most six columns, for the scrubber.
    pub answer_mark: &'static str,
    /// Whether a run goes in rounds, which events and lists name.
    pub has_rounds: bool,
}

/// What a pattern adds to the end of headless text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closing {
    /// The answer with what belongs to it. `None`: the plain answer.
    pub answer: Option<String>,
    /// A table; empty if there is none.
    pub table: String,
}

/// The panes of a pattern's view, in the order of their numbers on screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternPane {
    First,
    Second,
    Third,
    Fourth,
}

/// What a pattern says about a run. Each method gets what all patterns share of the run's state.
pub trait Narrate: Projection {
    /// The words that are the same for all runs.
    fn terms(&self) -> PatternTerms;

    /// The progress in figures of the pattern, without the spending.
    fn progress(&self, run: &RunFold) -> Progress;

    /// The size and the first limit of a run: `4 seats`, `max 3 rounds`.
    fn started(&self) -> (String, String);

    /// The name of a span of the pattern's own kinds, as the subject of an event.
    fn span_name(&self, _span: &SpanKind) -> Option<Cow<'_, str>> {
        None
    }

    /// Fills the sentence for an event of the pattern. May also change the shared sentence of another
    /// event, or hide it in headless text if another line reports the same.
    fn tell<'w>(&'w self, event: &'w Event, run: &'w RunFold, it: &mut Sentence<'w>);

    /// Adds the details of a call for the inspector; `of_event` if an event of the call is
    /// inspected, whose own details come first.
    fn call_fields(&self, purpose: &Purpose, of_event: bool, to: &mut StyledText);

    /// Adds how the pattern parsed the reply to a call, if it judges replies by themselves.
    fn parsed_reply(&self, _call: &Purpose, _to: &mut StyledText) {}

    /// Why the pattern refused the reply to a call.
    fn refusal(&self, _call: &Purpose) -> Option<&StopReason> {
        None
    }

    /// Adds the details of an event of the pattern for the inspector.
    fn event_fields(&self, _event: &Event, _run: &RunFold, _to: &mut StyledText) {}

    /// Adds the state of a run to its preview, beginning with how it ended.
    fn preview(&self, run: &RunFold, to: &mut StyledText);

    /// What somebody says in this event, with the name; for the preview.
    fn said(&self, _event: &Event) -> Option<String> {
        None
    }

    /// The result of a run, or how far it is, in a few words.
    fn result(&self, run: &RunFold) -> StyledLine;

    /// How a run ended, and the figures behind it.
    fn verdict(&self, run: &RunFold, closed: &RunClosed) -> RunVerdict {
        let verdict = RunVerdict::of(run, closed);
        match self.reached() {
            Some(reached) => verdict.with(reached),
            None => verdict,
        }
    }

    /// Why the run was stopped, where the pattern knows more than the stop reason and the refused reply.
    fn stop_detail(&self, _closed: &RunClosed) -> Option<String> {
        None
    }

    /// How far a run came, for its end: `2 rounds`, `3/4 tasks`. `None`: the number of calls says it.
    fn reached(&self) -> Option<String> {
        None
    }

    /// The name of the level that the rules of the scenario found, and the level in its colour.
    fn level(&self) -> Option<(&str, StyledPart)> {
        None
    }

    /// The lines of headless text for what is said in an event.
    fn transcript(&self, _event: &Event, _run: &RunFold) -> Vec<StyledLine> {
        Vec::new()
    }

    /// What the events of the same span are about in full, for headless text. `None`: their subject.
    fn full_subject(&self, _event: &Event, _run: &RunFold) -> Option<String> {
        None
    }

    /// The steps of a run so far, for a list of them. Empty: it has none.
    fn steps(&self, _run: &RunFold) -> Vec<RunStep> {
        Vec::new()
    }

    /// The totals of a run for the last line of headless text.
    fn totals(&self) -> Vec<StyledPart> {
        Vec::new()
    }

    /// The totals of a run for the line that the dashboard leaves behind.
    fn summary(&self, _run: &RunFold) -> Vec<StyledPart> {
        Vec::new()
    }

    /// What the pattern adds to the end of headless text.
    fn closing(&self) -> Closing {
        Closing::default()
    }

    /// Adds the steps of a run to its Markdown.
    fn markdown(&self, _out: &mut String) {}

    /// The report of a run as Markdown, if the pattern writes one.
    fn report(&self, _run: &RunFold) -> Option<String> {
        None
    }

    /// Whether there is a report to export: the answer exists, or the run ended without one.
    fn has_report(&self, _run: &RunFold) -> bool {
        false
    }

    /// What a pane shows, each row as one sentence, for lines of text in place of a picture. `None`: the pane is text
    /// on the screen, too.
    fn rows(&self, _pane: PatternPane, _run: &RunFold) -> Option<Vec<String>> {
        None
    }

    /// The names of the items that the first pane lists, in their order. `None`: its items are the tools.
    fn items(&self) -> Option<Vec<String>> {
        None
    }

    /// What was said before, for somebody who has the next word.
    fn said_before(&self) -> Vec<String> {
        Vec::new()
    }

    /// The same as a part of a document; `shown` limits the length of a text.
    fn read_before(&self, _doc: &mut StyledText, _shown: &dyn Fn(&str) -> String) {}

    /// The effects of switching a flag now, one per line; the first says when it takes effect.
    fn if_flag(&self, _flag: &FlagName, _on: bool, _run: &RunFold) -> Vec<String> {
        vec!["Takes effect at the next boundary.".to_owned()]
    }

    /// Columns of the longest subject of an event.
    fn longest_subject(&self, run: &RunFold) -> usize;
}

/// A step of a run. Its text is data: the caller escapes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunStep {
    /// What it is, in a few words.
    pub text: String,
    /// Whether the run can end with success without its result.
    pub is_optional: bool,
    pub state: RunStepState,
}

/// How far a step of a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStepState {
    /// It has not begun.
    Waiting,
    /// It is being done.
    Running,
    /// It has ended, with a result or without one.
    Ended,
}

impl RunStep {
    /// A step that the run needs.
    pub fn new(text: impl Into<String>, state: RunStepState) -> Self {
        Self { text: text.into(), is_optional: false, state }
    }
}

/// The progress of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Short text: `round 2/3`, `3/4 tasks`.
    pub text: Option<String>,
    /// The same in a few columns: `2/3`; empty before there is anything to count.
    pub short: String,
    /// The budget that the steps use up: name, used, allowed.
    pub budget: Option<(&'static str, u64, u64)>,
    /// The spending limit that is closest to being reached: text, used and allowed, in the same
    /// unit.
    pub spending: Option<(String, u64, u64)>,
}

/// The spending limit that is closest to being reached.
pub fn closest_limit(run: &RunFold) -> Option<(String, u64, u64)> {
    let used = run.spending_used().into_iter();
    Some(match used.max_by(|left, right| left.share().total_cmp(&right.share()))? {
        SpendingUsed::Tokens { used, limit } => {
            (format!("tokens {}/{}", format::count(used), format::count(limit)), used, limit)
        }
        SpendingUsed::Cost { used, limit } => {
            // A bar is drawn from integers.
            let micro = |usd: f64| (usd * 1e6) as u64;
            let text = format!("cost {}/{}", format::usd(used), format::usd(limit));
            (text, micro(used), micro(limit))
        }
    })
}

/// How a run ended, in one line.
pub fn end_line(run: &RunFold, closed: &RunClosed) -> StyledLine {
    StyledLine::new(badges::ended(closed.reason.class()).role, run_stop_line(run, closed))
}

/// Adds how the run ended, and what to do about it.
pub fn add_end(run: &RunFold, to: &mut StyledText) {
    let Some(closed) = &run.progress.closed else { return };
    add_stop(run, run_lead(run, closed), closed, to);
}

/// Adds how the run ended in these words, the error behind that, the identifier of its stop reason, and what to do
/// about it.
pub fn add_stop(run: &RunFold, lead: String, closed: &RunClosed, to: &mut StyledText) {
    match closed.reason.is_success() {
        true => to.item("ended", StyleRole::Text, lead),
        false => to.error("stopped", lead),
    }
    if let Some(cause) = run.stop_cause() {
        to.item("", StyleRole::Text, &cause);
    }
    for more in [reason_id(closed).as_deref(), run.stop_advice()].into_iter().flatten() {
        to.item("", StyleRole::Dim, more);
    }
}
