//! The run of a scenario that is played for a picture: by its script, in simulated time, not kept.

use std::sync::Arc;

use crate::app::msg::PartialText;
use crate::cli::args::{PictureArgs, RunArgs};
use crate::cli::exit::Exit;
use crate::cli::message::print_message;
use crate::cli::run::{PreparedSessions, is_outside, read};
use crate::engine::{Engine, EngineSettings, Launch, RunHandle};
use crate::event::{Elapsed, Event, EventKind, RunId, SpanId};
use crate::shell::watch::partial_text;

/// Number of events that are read at a time.
const BATCH: usize = 256;

/// The run of a scenario, of a session its first one: to read its events, and again to look at what
/// it streams at a moment of them. On an error the message has been printed.
pub(super) fn two_launches(args: &PictureArgs) -> Result<(Launch, Launch), Exit> {
    let run = RunArgs {
        scenario: args.scenario_or_run.clone(),
        set: args.set.clone(),
        flags: args.flags.clone(),
        seed: args.seed,
        ..RunArgs::default()
    };
    let scenario = read(&run).ok_or(Exit::Usage)?;
    if scenario.tools.values().any(is_outside) {
        print_message(
            "this scenario asks something outside of this program, which takes real time; run it \
             (roundtable run), then draw the kept run: roundtable picture last",
        );
        return Err(Exit::Usage);
    }
    let mut sessions =
        PreparedSessions::prepare(&scenario, &run, 2).map_err(|why| why.print(""))?;
    let mut next = || {
        let (text, mut launch) = sessions.next_session(run.seed).into_iter().next()?;
        launch.answer(text, None);
        Some(launch)
    };
    match (next(), next()) {
        (Some(first), Some(second)) => Ok((first, second)),
        _ => Err(Exit::Usage),
    }
}

/// All events of the run.
pub(super) async fn events_of(launch: Launch) -> Vec<Arc<Event>> {
    let engine = Engine::new(EngineSettings::default());
    all_events(&engine.start(launch)).await
}

/// What the run streams at this moment.
pub(super) async fn live_texts(launch: Launch, at: Elapsed) -> Vec<(SpanId, PartialText)> {
    let engine = Engine::new(EngineSettings::default());
    let run = engine.start(launch);
    let bus = run.bus().clone();
    let rest = at.duration().saturating_sub(bus.now().duration());
    tokio::select! {
        // A run that is not read waits for its reader.
        _ = all_events(&run) => {}
        () = tokio::time::sleep(rest) => {}
    }
    let spans = bus.live_spans().into_iter();
    spans.filter_map(|span| Some((span, bus.with_live(span, partial_text)?))).collect()
}

async fn all_events(run: &RunHandle) -> Vec<Arc<Event>> {
    let mut reader = run.first_reader();
    let (mut events, mut batch) = (Vec::new(), Vec::new());
    while reader.next_batch(&mut batch, BATCH).await > 0 {
        events.extend(batch.drain(..).map(with_fixed_head));
    }
    run.wait_until_finished().await;
    events
}

/// The event, with a fixed id and start where it is the head of a run: pictures of the same moment are
/// the same.
fn with_fixed_head(event: Arc<Event>) -> Arc<Event> {
    match &event.kind {
        EventKind::RunStarted(head) => {
            let mut head = head.as_ref().clone();
            (head.run, head.wall_ms) = (RunId::new(FIXED_ID), 0);
            let kind = EventKind::RunStarted(Arc::new(head));
            Arc::new(Event { kind, ..Event::clone(&event) })
        }
        _ => event,
    }
}

/// The id of a run that is played for a picture. It is not kept, so no store has this id.
const FIXED_ID: &str = "r-7f3a";
