//! What a frame costs: the run view at 200x50 with a long log beside a short one, live, with a
//! filter on, and far back in time.

#[path = "../tests/support/facts/builder.rs"]
mod builder;
#[path = "../tests/support/facts/head.rs"]
mod head;
mod long;
mod paired;
#[path = "../tests/support/facts/team.rs"]
mod team;

use std::sync::Arc;
use std::time::Duration;

use paired::{pairs, report, timed};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use roundtable::bench::{
    Action, DrawContext, Glyphs, KeyPress, Mouse, MouseKind, RunPage, Size, Theme, first_row,
    render_run, second_row,
};
use roundtable::{Event, EventKind, RunId};

const SIZE: Size = Size { cols: 200, rows: 50 };
const FRAMES: u32 = 20;

fn page(facts: usize) -> RunPage {
    let mut page = RunPage::new(RunId::new("r-long"), Duration::ZERO);
    for batch in long::log(facts).chunks(512) {
        page.apply(batch);
    }
    page
}

fn filtered(facts: usize) -> RunPage {
    let mut page = page(facts);
    page.on_action(Action::Filter, SIZE);
    for c in "retried".chars() {
        page.on_key(KeyPress::char(c));
    }
    page.on_action(Action::Apply, SIZE);
    while page.next_tick(Duration::ZERO, true) == Some(Duration::ZERO) {
        page.on_tick();
    }
    page
}

/// The page with its playhead in the middle of the log.
fn scrubbed(facts: usize) -> RunPage {
    let mut page = page(facts);
    // At the moment of the last event: until now there was no time after it.
    page.on_mouse(
        Mouse { kind: MouseKind::Down, col: 100, row: SIZE.rows - 4 },
        SIZE,
        Duration::ZERO,
    );
    assert!(page.is_scrubbed());
    page
}

/// A swarm that has handed over once for each hundred of these facts.
fn swarm(facts: usize) -> RunPage {
    let mut page = RunPage::new(RunId::new("r-ring"), Duration::ZERO);
    for batch in team::ring(12, facts / 100).log.chunks(512) {
        page.apply(batch);
    }
    page
}

/// The tools over a run whose calls are all those of one of them: its table and its lanes.
fn tools(facts: usize) -> RunPage {
    let mut log = long::log(facts);
    let mut first = Event::clone(&log[0]);
    if let EventKind::RunStarted(started) = &mut first.kind {
        let heads = ["llm", "search"].map(|name| head::tool(name, "fixture", 60_000, true));
        Arc::make_mut(started).tools = heads.to_vec();
    }
    log[0] = Arc::new(first);
    let mut page = RunPage::new(RunId::new("r-long"), Duration::ZERO);
    for batch in log.chunks(512) {
        page.apply(batch);
    }
    page.on_action(Action::Tools, SIZE);
    page.on_action(Action::Up, SIZE);
    page
}

fn frames(page: &RunPage) -> Duration {
    let theme = Theme::default();
    let glyphs = Glyphs::Unicode;
    let cx = DrawContext { now: Duration::from_secs(3600), theme: &theme, glyphs };
    let area = Rect::new(0, 0, SIZE.cols, SIZE.rows);
    let rows = |y: u16, height: u16| Rect { y, height, ..area };
    let mut buf = Buffer::empty(area);
    timed(|| {
        for _ in 0..FRAMES {
            first_row(page, &cx, rows(0, 1), &mut buf);
            second_row(page, true, &cx, rows(1, 1), &mut buf);
            render_run(page, &cx, rows(2, SIZE.rows - 4), &mut buf);
        }
    })
}

fn compare(name: &str, of: fn(usize) -> RunPage, few: usize) {
    let (long, short) = (of(1_000_000), of(few));
    let beside = pairs(101, || frames(&long), || frames(&short));
    let (long, short) = beside.medians();
    let told = format!(
        "{:.2}x ({:.0} / {:.0} us)",
        beside.ratio(),
        long * 1e6 / f64::from(FRAMES),
        short * 1e6 / f64::from(FRAMES),
    );
    report(&format!("frame at 200x50, {name}: 1 000 000 facts / {few}"), &told, "1.50x");
}

fn main() {
    compare("live", page, 1_000);
    compare("with a filter", filtered, 1_000);
    compare("in the past", scrubbed, 1_000);
    compare("of a swarm: 10 000 hops / 10", swarm, 1_000);
    compare("tools over time", tools, 10_000);
}
