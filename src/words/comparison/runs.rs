//! All that a comparison of two runs shows, with their figures, and the comparison as a text for a
//! terminal, a pipe or the clipboard.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::{ComparisonRow, DifferentEvent, EventDifference, LogComparison, compare};
use crate::base::time;
use crate::base::visible::{visible, visible_within};
use crate::log::event::{Elapsed, Event, EventKind, World};
use crate::log::world::run_row::RunStatus;
use crate::words::format;
use crate::words::patterns::words_of;
use crate::words::sentence::model_text;
use crate::words::styled::StyleRole;
use crate::words::verdict::RunVerdict;

/// Two runs with all that differs between them.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedRuns {
    /// The figures of the left and the right run.
    pub runs: [ComparedRun; 2],
    /// What differs.
    pub comparison: LogComparison,
    pub rows: Vec<ComparisonRow>,
    /// The comparison as a text, as `roundtable diff` prints it.
    pub text: String,
}

impl ComparedRuns {
    /// Compares two runs. Takes long where the logs are large.
    pub fn of(left: &[Arc<Event>], right: &[Arc<Event>]) -> Self {
        let runs = [ComparedRun::of(left), ComparedRun::of(right)];
        let comparison = compare(left, right);
        let text = comparison_text(&comparison, &runs, &|_, text| text.to_owned());
        Self { rows: comparison.rows(), runs, comparison, text }
    }
}

/// The figures of one of the two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRun {
    pub run: String,
    pub scenario: String,
    /// The name of its pattern.
    #[serde(skip)]
    pub pattern: String,
    /// What answered its model calls.
    #[serde(skip)]
    pub model: String,
    /// The stop reason; `None`: it has not ended.
    pub stop_reason: Option<String>,
    /// Its result, or its progress, in a few words.
    #[serde(skip)]
    pub result: String,
    pub events: usize,
    /// Time without pauses in milliseconds.
    pub elapsed_ms: u64,
    /// Calls of models and tools.
    pub calls: u64,
    /// Requests that were made for these calls.
    pub requests: u64,
    /// Requests per call; `None`: there was no call.
    pub amplification: Option<f64>,
    pub tokens: u64,
    /// US dollars, estimated; `None`: unknown.
    pub cost_usd: Option<f64>,
}

impl ComparedRun {
    /// The figures that these events give.
    pub fn of(events: &[Arc<Event>]) -> Self {
        let world = World::from_events(events.iter().map(|event| &**event));
        Self { events: events.len(), ..Self::of_world(&world, world.progress.at) }
    }

    /// The figures of a run at a moment.
    pub(crate) fn of_world(world: &World, at: Elapsed) -> Self {
        let head = world.head.as_deref();
        let elapsed = world.progress.active(at);
        let closed = world.progress.closed.as_deref();
        let result = match (words_of(world), closed) {
            (_, Some(closed)) => RunVerdict::of_run(world, closed).text(),
            (Some(words), None) => {
                let progress = words.progress(world);
                progress.text.unwrap_or(progress.short)
            }
            (None, None) => String::new(),
        };
        let tools = world.tools.rows().iter().map(|row| row.tally);
        let (calls, requests) = tools.fold((0, 0), |(calls, requests), tally| {
            (calls + tally.calls, requests + tally.requests())
        });
        Self {
            run: head.map(|head| head.run.to_string()).unwrap_or_default(),
            scenario: head.map(|head| head.scenario.to_string()).unwrap_or_default(),
            pattern: head.map(|head| head.plan.name().to_owned()).unwrap_or_default(),
            model: head.map(|head| model_text(&head.model)).unwrap_or_default(),
            stop_reason: closed.map(|closed| closed.reason.to_string()),
            result,
            events: usize::try_from(world.tally.events).unwrap_or(usize::MAX),
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            calls,
            requests,
            amplification: (calls > 0).then(|| requests as f64 / calls as f64),
            tokens: world.tally.usage.total(),
            cost_usd: world.cost_usd(),
        }
    }

    /// How far it is; `live`: it was still running when it was read.
    pub fn status(&self, live: bool) -> RunStatus {
        match &self.stop_reason {
            Some(reason) => RunStatus::Ended(reason.clone()),
            None if live => RunStatus::Running,
            None => RunStatus::Interrupted,
        }
    }
}

/// Longest text of one side, in characters.
const TEXT_CHARS: usize = 400;

/// Fields of one difference that are listed.
const MAX_FIELDS: usize = 3;

/// Differences after the first one that are listed.
const MAX_LISTED: usize = 20;

/// Puts a text into the style of a role.
type PaintText<'a> = &'a dyn Fn(StyleRole, &str) -> String;

/// The two runs up to their first difference, and what differs after it.
pub fn comparison_text(
    found: &LogComparison,
    runs: &[ComparedRun; 2],
    paint: PaintText<'_>,
) -> String {
    let mut out = String::new();
    for (name, run) in ["left ", "right"].into_iter().zip(runs) {
        let cost =
            run.cost_usd.map(|cost| "  ".to_owned() + &format::usd(cost)).unwrap_or_default();
        let line = format!(
            "{}  {}  {}  {}  {} tok{cost}\n",
            visible(&run.run),
            visible(&run.scenario),
            visible(run.stop_reason.as_deref().unwrap_or("not ended")),
            time::duration_text(Duration::from_millis(run.elapsed_ms)),
            format::count(run.tokens),
        );
        out += &format!("{}  {line}", paint(StyleRole::Dim, name));
    }
    if found.is_same() {
        return out + "nothing differs but ids and times\n";
    }
    if !found.setup.is_empty() {
        out += &format!("\n{}\n", paint(StyleRole::Title, "started with"));
    }
    for it in &found.setup {
        let side = |text: &str| match text {
            "" => "-".to_owned(),
            text => visible_within(text, TEXT_CHARS),
        };
        let (left, right) = (side(&it.left), side(&it.right));
        out += &format!("  {}: {left} | {right}\n", visible(&it.what));
    }
    let equal = format::count_noun(found.equal as u64, "event");
    let Some((first, rest)) = found.differences.split_first() else {
        return out + &format!("\n{equal} are equal; nothing else differs\n");
    };
    out += &format!("\n{}\n", paint(StyleRole::Title, "first difference"));
    out += &sides(first, paint);
    if !rest.is_empty() {
        let counted = format::count_noun(rest.len() as u64, "more difference");
        out += &format!("\n{}\n", paint(StyleRole::Title, &format!("{counted}, {equal} equal")));
        let listed = rest.iter().filter(|it| it.is_telling()).take(MAX_LISTED);
        listed.for_each(|it| out += &sides(it, paint));
    }
    out
}

/// A difference: where, and both sides of each field.
fn sides(it: &EventDifference, paint: PaintText<'_>) -> String {
    let mut out = format!(
        "  {}  {}\n",
        paint(StyleRole::Strong, &visible(&it.place())),
        visible(it.kind_name())
    );
    let mut row = |name: &str, text: &str| {
        let text = if text.is_empty() { "-".to_owned() } else { visible_within(text, TEXT_CHARS) };
        out += &format!("    {}  {text}\n", paint(StyleRole::Dim, name));
    };
    if it.fields.is_empty() {
        let line = |side: &Option<DifferentEvent>| {
            side.as_ref().map(|side| side.line.clone()).unwrap_or_default()
        };
        row("left ", &line(&it.left));
        row("right", &line(&it.right));
    }
    for field in it.fields.iter().take(MAX_FIELDS) {
        row("field", &field.name);
        row("left ", &field.left);
        row("right", &field.right);
    }
    out
}

impl EventDifference {
    /// Whether it is what people look for: replies, prompts, decisions. An end of a span says what its
    /// reply said.
    pub fn is_telling(&self) -> bool {
        let kind = |side: &Option<DifferentEvent>| {
            side.as_ref().is_some_and(|side| {
                matches!(
                    side.event.kind,
                    EventKind::Pattern(_)
                        | EventKind::CallStarted(_)
                        | EventKind::AttemptAnswered(_)
                        | EventKind::AttemptFailed(_)
                        | EventKind::AnswerComposed { .. }
                        | EventKind::FlagChanged { .. }
                        | EventKind::RunClosed(_)
                )
            })
        };
        kind(&self.left) || kind(&self.right)
    }

    /// What it belongs to, in one line.
    pub fn place(&self) -> String {
        if self.path.is_empty() { "run".to_owned() } else { self.path.join(" / ") }
    }

    /// The name of the kind of its events.
    pub fn kind_name(&self) -> &str {
        let side = self.left.as_ref().or(self.right.as_ref());
        side.map(|side| side.event.kind.name()).unwrap_or_default()
    }
}
