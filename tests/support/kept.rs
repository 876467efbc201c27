//! Kept runs for the tests of the dashboard.

use std::sync::Arc;

use roundtable::log::event::{Event, RunId};
use roundtable::log::world::run_row::{RunRow, RunStatus};
use roundtable::screen::effect::RequestId;
use roundtable::screen::{Effect, Msg};

use super::screen::Dash;

/// The time of the tests, as Unix time in milliseconds.
pub const NOW: u64 = 1_772_841_600_000;

const HOUR: u64 = 3_600_000;

/// A kept run that started this many hours ago.
pub fn kept(id: &str, hours: u64, scenario: &str, title: &str, status: &str) -> RunRow {
    RunRow {
        started_ms: NOW.saturating_sub(hours * HOUR),
        title: title.into(),
        scenario: scenario.into(),
        pattern: "collaboration".into(),
        status: match status {
            "running" => RunStatus::Running,
            "interrupted" => RunStatus::Interrupted,
            reason => RunStatus::Ended(reason.to_owned()),
        },
        elapsed_ms: 7_400 + hours * 1_000,
        tokens: 1_200 * hours,
        events: 58,
        bytes: 48_000,
        ..RunRow::begun(RunId::new(id))
    }
}

/// Kept runs of every status, the newest first.
pub fn history() -> Vec<RunRow> {
    let launch = "Checkout v2: go or no-go";
    vec![
        kept("r-10aa", 1, "checkout-launch", launch, "running"),
        kept("r-20bb", 3, "checkout-launch", launch, "success"),
        RunRow {
            live: true,
            cost_usd: Some(0.0213),
            pinned: true,
            ..kept("r-30cc", 26, "refund-desk", "Refund over the limit?", "max_messages")
        },
        kept("r-40dd", 30, "front-desk", "Which desk answers this message?", "interrupted"),
        RunRow {
            live: true,
            cost_usd: Some(0.4),
            parent: Some(RunId::new("r-20bb")),
            forked_at: Some("round:2".to_owned()),
            ..kept("r-50ee", 90, "checkout-launch", launch, "cancelled")
        },
    ]
}

/// The first screen with kept runs, the list of runs focused.
pub fn with_history() -> Dash {
    let mut dash = Dash::new(120, 36);
    list(&mut dash, history());
    dash.text("2");
    dash.asked();
    dash
}

/// The store has listed these runs.
pub fn list(dash: &mut Dash, rows: Vec<RunRow>) {
    dash.send(Msg::Kept { rows, wall_ms: NOW, change: None });
}

/// Answers the request for a kept log, with all events or without its end.
pub fn answer_open(dash: &mut Dash, events: &[Arc<Event>]) {
    let (run, request) = opening(dash);
    let events = events.to_vec();
    dash.send(Msg::Opened { run: run.clone(), request, events });
    dash.send(Msg::OpenedToEnd { run, request, problem: None });
}

/// The request for a kept log.
pub fn opening(dash: &mut Dash) -> (RunId, RequestId) {
    let effects = dash.asked();
    let found = effects.iter().find_map(|effect| match effect {
        Effect::OpenKept { run, request, .. } => Some((run.clone(), *request)),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no log is requested: {effects:?}"))
}
