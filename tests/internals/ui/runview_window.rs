//! A run whose first events are gone: the page keeps the last of them and the present state, says how
//! many are missing, and leads nowhere that is not there.

use std::sync::{Arc, LazyLock};

use crate::engine::{Engine, EngineSettings, Launch};
use crate::log::event::{Event, EventKind, RunId, Seq, World};
use crate::screen::Msg;
use crate::screen::effect::{Contents, Effect};
use crate::screen::run::{EventWindow, Pane, RunPage};
use crate::support::screen::Dash;
use crate::support::storm;

const RUN: &str = "r-0a0a";

/// The facts of a storm, ten milliseconds between two turns of an agent.
fn storm() -> &'static [Arc<Event>] {
    static FACTS: LazyLock<Vec<Arc<Event>>> = LazyLock::new(|| {
        let runtime = crate::support::table::paused_runtime();
        runtime.block_on(async {
            let scenario = storm::scenario_of(20, 300, &["resilience.pace=10ms"]);
            let engine = Engine::new(EngineSettings::default());
            let run = engine.start(Launch::scripted(Arc::new(scenario), false));
            run.wait_until_finished().await;
            let mut facts = Vec::new();
            run.first_reader().take(&mut facts, usize::MAX);
            facts
        })
    });
    &FACTS
}

/// What a log that keeps so many facts lets go of, in steps of an eighth.
fn window(page: &RunPage, keeps: usize) -> Option<Seq> {
    let held = page.log().len() - page.log().dropped_count();
    (held > keeps + keeps / 8).then(|| Seq((page.log().len() - keeps) as u64))
}

fn feed(dash: &mut Dash, facts: &[Arc<Event>], keeps: usize) {
    for batch in facts.chunks(512) {
        dash.send(Msg::Events { run: RunId::new(RUN), events: batch.to_vec() });
        if let Some(before) = window(shown(dash), keeps) {
            dash.send(Msg::EventsDropped { run: RunId::new(RUN), before });
        }
    }
}

fn shown(dash: &Dash) -> &RunPage {
    dash.state.visible_run().expect("a run")
}

fn log(dash: &Dash) -> &EventWindow {
    shown(dash).log()
}

/// So many facts of the storm, of which about 4,000 are held.
fn dash(cols: u16, rows: u16, facts: usize) -> Dash {
    dash_that_keeps(4_000, cols, rows, facts)
}

fn dash_that_keeps(keeps: usize, cols: u16, rows: u16, facts: usize) -> Dash {
    let mut dash = Dash::new(cols, rows);
    dash.run(RUN, &storm()[..1]);
    feed(&mut dash, &storm()[1..facts], keeps);
    dash.now = storm()[facts - 1].at.duration() + shown(&dash).zero();
    dash
}

fn said(dash: &Dash) -> String {
    dash.state.notices.current().map(|notice| notice.text.clone()).unwrap_or_default()
}

#[test]
fn scrubber_starts_at_oldest_held_event() {
    let mut dash = dash(120, 36, 20_000);
    insta::assert_snapshot!("window_120x36", dash.screen());
    // From the first event that is held.
    dash.text("5g");
    super::shows(
        &dash,
        &[
            "── 0 notable of 20000 events · L: all ─┤",
            "│ … 15 872 earlier events dropped to bound memory ",
            "│ No notable events yet: L shows all events. ",
            "\n 00:01 ▅ ▇ ▇",
            "\n 15.8k events dropped ",
            " calls  ✓ 4999 answered  ● 1 running  ✗ 0 failed  ↻ 0 retried",
        ],
    );
}

#[test]
fn window_keeps_run_positions_and_state() {
    let all = storm();
    let mut dash = dash(120, 36, all.len());
    dash.text("L");
    let page = shown(&dash);
    let (gone, len) = (page.log().dropped_count(), page.log().len());
    assert_eq!(len, all.len());
    assert!((3_900..4_700).contains(&(len - gone)), "{}", len - gone);
    assert_eq!(page.log().get(gone).map(|fact| fact.seq), Some(Seq(gone as u64)));
    assert!(page.log().get(gone - 1).is_none() && page.event(Seq(3)).is_none());
    assert!(page.is_dropped(Seq(3)) && !page.is_dropped(Seq(gone as u64)));
    assert_eq!(page.list().len(page.log()), len - gone);
    let whole = World::from_events(all.iter().map(|fact| &**fact));
    assert_eq!(storm::shown(page.world()), storm::shown(&whole));
    assert_eq!(page.world().tally, whole.tally);
    assert!(page.world().head.is_some());
    let held = page.world().spans.opened() - page.world().spans.forgotten();
    assert!(held < 6_000, "{held} spans");
    // The first row is the first that is held, the last the last.
    dash.text("5g");
    assert_eq!(shown(&dash).list().cursor(), Some(gone));
    dash.press("Up");
    assert_eq!(shown(&dash).list().cursor(), Some(gone));
    dash.text("G");
    assert_eq!(shown(&dash).list().selected(log(&dash)), Some(len - 1));
}

#[test]
fn playhead_stays_inside_moving_window() {
    let all = storm();
    let mut dash = dash(120, 36, 12_000);
    let gone = log(&dash).dropped_count();
    assert!(gone > 0);
    // A click on the first column is the start of the window, not of the run.
    let row = dash.state.size.rows - 4;
    dash.click(8, row);
    assert!(shown(&dash).is_scrubbed(), "{}", dash.screen());
    let first = shown(&dash).shown_event_count();
    assert!(first > gone && first < gone + 200, "{first}");
    dash.text(&",".repeat(200));
    let page = shown(&dash);
    assert!(
        page.is_scrubbed() && page.shown_event_count() == gone + 1,
        "{}",
        page.shown_event_count()
    );
    let there = World::from_events(all[..=gone].iter().map(|fact| &**fact));
    assert_eq!(page.shown().tally, there.tally);
    assert_eq!(page.shown().tools.rows()[0].tally, there.tools.rows()[0].tally);
    // The run goes on, and the events around the playhead go.
    feed(&mut dash, &all[12_000..20_000], 4_000);
    let page = shown(&dash);
    assert!(page.log().dropped_count() > gone);
    assert_eq!((page.is_scrubbed(), page.shown_event_count()), (true, page.log().dropped_count()));
    let there = World::from_events(all[..page.log().dropped_count()].iter().map(|fact| &**fact));
    assert_eq!(page.shown().tally, there.tally);
    dash.screen();
    dash.text(".");
    assert_eq!(shown(&dash).shown_event_count(), log(&dash).dropped_count() + 1);
    dash.text("G");
    assert!(!shown(&dash).is_scrubbed());
}

#[test]
fn links_to_dropped_events_explain() {
    let mut dash = dash_that_keeps(1_000, 120, 36, 20_000);
    // The window begins in the middle of a call.
    let is_answer = |fact: &&Arc<Event>| matches!(fact.kind, EventKind::AttemptAnswered(_));
    let before = log(&dash).iter().skip(200).find(is_answer).expect("an answer").seq;
    dash.send(Msg::EventsDropped { run: RunId::new(RUN), before });
    dash.text("Lg");
    // The first that ends what began before the window.
    for _ in 0..200 {
        let page = shown(&dash);
        let at = page.list().cursor().and_then(|at| page.log().get(at));
        let ends = at.is_some_and(|fact| {
            let opened = page.world().spans.get(fact.span).map(|span| span.opened_by);
            matches!(fact.kind, EventKind::AttemptAnswered(_))
                && opened.is_some_and(|opened| page.is_dropped(opened))
        });
        if ends {
            break;
        }
        dash.press("Down");
    }
    let cursor = shown(&dash).list().cursor();
    dash.text("c");
    assert_eq!(shown(&dash).list().cursor(), cursor, "it leads nowhere else");
    let first = log(&dash).dropped_count() as u64 + 1;
    let first = crate::words::format::exact(first);
    let wanted = format!("The events before event {first} were dropped to bound memory.");
    assert_eq!(said(&dash), wanted);
    // The inspected events leave memory while they are shown; the other tabs say why they are empty.
    dash.press("Enter");
    assert!(shown(&dash).inspector().is_some());
    feed(&mut dash, &storm()[20_000..], 1_000);
    dash.screen();
    dash.text("3");
    assert!(dash.screen().contains("were dropped to bound memory."), "{}", dash.screen());
    dash.text("c");
    assert!(said(&dash).contains("dropped to bound memory"));
}

#[test]
fn filter_searches_only_held_events() {
    let all = storm();
    let mut dash = dash(120, 36, 12_000);
    dash.press("/call.started Enter");
    let finish = |dash: &mut Dash| {
        for _ in 0..100 {
            dash.send(Msg::Tick);
        }
    };
    let asks = |dash: &Dash| {
        let page = shown(dash);
        let rows = 0..page.list().len(page.log());
        let places: Vec<usize> = rows.filter_map(|row| page.list().place(row)).collect();
        let all = page.log().between(0, usize::MAX).zip(page.log().dropped_count()..);
        let wanted = all.filter(|(fact, _)| matches!(fact.kind, EventKind::CallStarted(_)));
        let wanted: Vec<usize> = wanted.map(|(_, place)| place).collect();
        assert_eq!(places, wanted);
        wanted.len()
    };
    finish(&mut dash);
    assert!(asks(&dash) > 500);
    assert!(dash.screen().contains("the filter covers only the rest"), "{}", dash.screen());
    feed(&mut dash, &all[12_000..20_000], 4_000);
    finish(&mut dash);
    assert!(asks(&dash) > 500);
    dash.press("Esc");
    assert_eq!(shown(&dash).focus(), Pane::Events);
}

#[test]
fn export_has_head_and_dropped_count() {
    let mut dash = dash(120, 36, 20_000);
    dash.text("e");
    let Some(Effect::Export(files)) = dash.asked().pop() else { panic!("no export") };
    let log = log(&dash);
    let (gone, held) = (log.dropped_count() as u64, log.len() - log.dropped_count());
    let export = files.into_iter().find(|export| export.file.ends_with(".jsonl"));
    let contents = export.expect("the facts").contents;
    assert_eq!(contents.dropped_events(), gone - 1, "the head is there");
    assert!(matches!(contents, Contents::Events(_)));
    let text = contents.into_text();
    let lines: Vec<_> = text.lines().map(|line| Event::from_line(line).expect("a fact")).collect();
    assert_eq!(lines.len(), held + 2);
    assert!(matches!(lines[0].kind, EventKind::RunStarted(_)));
    assert_eq!(lines[1].kind, EventKind::EventsDropped { events: gone - 1 });
    assert_eq!((lines[1].seq, lines[2].seq), (Seq(1), Seq(gone)));
    let world = World::from_events(&lines);
    assert!(world.resilience().is_some(), "a file that can be read by itself");
    assert_eq!(world.tally.unknown, 0);
}

#[test]
fn endless_run_memory_stays_bounded() {
    let all = storm();
    let peak = |facts: usize| {
        let counted = allocation_counter::measure(|| {
            let mut page = RunPage::new(RunId::new(RUN), std::time::Duration::ZERO);
            for batch in all[..facts].chunks(512) {
                page.apply(batch);
                if let Some(before) = window(&page, 2_000) {
                    assert!(page.drop_before(before));
                }
            }
        });
        counted.bytes_max
    };
    let (short, long) = (peak(6_000), peak(all.len()));
    assert!(all.len() > 20_000);
    assert!(long < short + short / 4, "{short} bytes, then {long}");
}

/// Keys of every kind while the window moves: nothing is looked for that is not there.
#[test]
fn handles_any_key_while_window_moves() {
    let all = storm();
    let keys = "5gGjkc/x,.12345zoiytTpDnGg+-";
    let mut dash = dash(80, 24, 6_000);
    let mut hash = 7u64;
    for batch in all[6_000..].chunks(200) {
        dash.send(Msg::Events { run: RunId::new(RUN), events: batch.to_vec() });
        if let Some(before) = window(shown(&dash), 1_000) {
            dash.send(Msg::EventsDropped { run: RunId::new(RUN), before });
        }
        for _ in 0..6 {
            hash = hash
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let pick = (hash >> 33) as usize;
            match pick % 8 {
                0 => dash.press("Enter"),
                1 => dash.press("Esc"),
                2 => dash.click((pick / 8 % 80) as u16, (pick / 640 % 24) as u16),
                3 => dash.press("PgUp"),
                _ => {
                    dash.text(&keys.chars().nth(pick / 8 % keys.len()).expect("a key").to_string())
                }
            };
            if dash.state.visible_run().is_none() {
                dash.state.screen = crate::screen::state::ActiveScreen::Run(RunId::new(RUN));
            }
            dash.screen();
        }
    }
    assert_eq!(log(&dash).len(), all.len());
}
