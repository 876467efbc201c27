//! Events that left memory: read back from the store when the operator looks at them, and dropped again.

use std::sync::Arc;

use crate::engine::Schedule;
use crate::log::event::{Elapsed, Event, EventKind, RunId, Seq, SpanId, StopReason};
use crate::screen::Msg;
use crate::screen::effect::RequestId;
use crate::screen::run::Pane;
use crate::support::kept::{answer_open, list, opening};
use crate::support::screen::{Dash, facts};

const RUN: &str = "r-0001";

fn events() -> Vec<Arc<Event>> {
    facts("checkout-launch", &[], &[], Schedule::default())
}

/// A run whose first 30 events left memory. The store is known.
fn windowed(events: &[Arc<Event>]) -> Dash {
    let mut dash = Dash::new(120, 36);
    list(&mut dash, Vec::new());
    dash.run(RUN, events);
    drop_before(&mut dash, 30);
    dash.asked();
    dash
}

fn drop_before(dash: &mut Dash, before: u64) {
    dash.send(Msg::EventsDropped { run: RunId::new(RUN), before: Seq(before) });
}

/// The number of events that are not in memory.
fn gone(dash: &Dash) -> usize {
    dash.state.visible_run().expect("a page").log().dropped_count()
}

fn end(dash: &mut Dash, request: RequestId, problem: Option<String>) {
    dash.send(Msg::OpenedToEnd { run: RunId::new(RUN), request, problem });
}

#[test]
fn playhead_reads_back_earlier_events() {
    let events = events();
    let mut dash = windowed(&events);
    assert!(
        dash.screen().contains("30 earlier events in the store: g reads them"),
        "{}",
        dash.screen()
    );
    for _ in 0..200 {
        dash.text(",");
    }
    assert!(dash.screen().contains("reading 30 earlier events"), "{}", dash.screen());
    assert_eq!(gone(&dash), 30);
    answer_open(&mut dash, &events);
    assert_eq!(gone(&dash), 0);
    // At each place the run is what it was there.
    for _ in 0..200 {
        dash.text(",");
        let page = dash.state.visible_run().expect("a page");
        let count = page.shown_event_count();
        let mut whole = Dash::new(120, 36);
        whole.run(RUN, &events[..count]);
        let expected = whole.state.visible_run().expect("a page").world();
        assert_eq!(format!("{:?}", page.shown()), format!("{expected:?}"), "after {count}");
        if count == 1 {
            break;
        }
    }
    assert!(dash.asked().is_empty(), "nothing is read twice");

    // While the operator looks at it, it stays; at the live end it leaves memory again.
    drop_before(&mut dash, 35);
    assert_eq!(gone(&dash), 0);
    dash.text("G");
    assert_eq!(gone(&dash), 35);
}

#[test]
fn event_list_reads_back_from_top() {
    let events = events();
    for (key, selected) in [("g", 0), ("k", 29)] {
        let mut dash = windowed(&events);
        while dash.state.visible_run().is_some_and(|page| page.focus() != Pane::Events) {
            dash.press("Tab");
        }
        if key == "k" {
            for _ in 30..events.len() {
                dash.text("k");
            }
        } else {
            dash.text("g");
        }
        answer_open(&mut dash, &events);
        let page = dash.state.visible_run().expect("a page");
        assert_eq!(page.list().cursor(), Some(selected), "{key}");
        dash.text("q");
        assert_eq!(dash.state.run(&RunId::new(RUN)).expect("a page").log().dropped_count(), 30);
    }
}

#[test]
fn events_arrive_while_reading_earlier_ones() {
    let events = events();
    let mut dash = Dash::new(120, 36);
    list(&mut dash, Vec::new());
    dash.run(RUN, &events[..40]);
    drop_before(&mut dash, 30);
    for _ in 0..60 {
        dash.text(",");
    }
    let (run, request) = opening(&mut dash);
    dash.send(Msg::Opened { run: run.clone(), request, events: events[..20].to_vec() });
    dash.send(Msg::Events { run: run.clone(), events: events[40..].to_vec() });
    drop_before(&mut dash, 35);
    dash.send(Msg::Opened { run, request, events: events[20..38].to_vec() });
    end(&mut dash, request, None);
    let page = dash.state.visible_run().expect("a page");
    assert_eq!((page.log().dropped_count(), page.log().len()), (0, events.len()));
    assert!(page.log().iter().map(|event| event.seq).eq(events.iter().map(|event| event.seq)));
}

#[test]
fn reports_missing_events_and_loses_none() {
    let events = events();
    for (stored, problem, said) in [
        (20, None, "the store has no event 21"),
        (20, Some("the disk failed".to_owned()), "the disk failed"),
        (0, Some("r-0001 is not kept".to_owned()), "r-0001 is not kept"),
    ] {
        let mut dash = windowed(&events);
        for _ in 0..200 {
            dash.text(",");
        }
        let (run, request) = opening(&mut dash);
        dash.send(Msg::Opened { run, request, events: events[..stored].to_vec() });
        end(&mut dash, request, problem);
        assert!(dash.screen().contains(said), "{}", dash.screen());
        assert_eq!(gone(&dash), 30);
        dash.text(",");
        assert!(dash.asked().is_empty(), "not asked again");
    }
}

#[test]
fn opening_run_reads_evicted_events() {
    let events = events();
    let mut dash = Dash::new(120, 36);
    list(&mut dash, Vec::new());
    dash.run(RUN, &events).text("q");
    let dropped = EventKind::SessionRunDropped { run: RunId::new(RUN), events: 61 };
    let kinds = [
        EventKind::SessionRunClosed { run: RunId::new(RUN), reason: StopReason::Success },
        dropped,
    ];
    for (seq, kind) in (0..).zip(kinds) {
        let event = Event { seq: Seq(seq), at: Elapsed(1), span: SpanId::RUN, kind };
        dash.send(Msg::Session(vec![Arc::new(event)]));
    }
    dash.asked();
    dash.press("2 Enter");
    assert!(dash.screen().contains("Reading the events from the store."), "{}", dash.screen());
    answer_open(&mut dash, &events);
    assert_eq!(dash.state.visible_run().expect("a page").log().iter().count(), events.len());
    dash.text("q");
    assert!(dash.state.run(&RunId::new(RUN)).expect("a page").is_log_dropped());
}
