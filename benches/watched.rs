//! What a watched program costs: a trace of 100 000 spans beside a run of this program with as many
//! events: opened, scrolled, searched, and drawn while it grows.

mod long;
mod paired;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use paired::{held, pairs, report, timed};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use roundtable::bench::{
    Action, DrawContext, Glyphs, KeyPress, ObservedFact, ObservedPlan, PatternPlan, RunPage, Size,
    SpanAbout, SpanEnd, SpanRole, Theme, first_row, render_run, second_row,
};
use roundtable::{Elapsed, Event, EventKind, PatternFact, RunId, Seq, SpanId};

const SIZE: Size = Size { cols: 200, rows: 50 };
const SPANS: u32 = 100_000;
const FACTS: usize = 2 * SPANS as usize;
const FRAMES: usize = 20;

/// A log of spans as a graph with tools writes it: one root, its agents, and in each turn calls of models and tools.
fn spans() -> Vec<Arc<Event>> {
    let mut head = Event::clone(&long::log(1)[0]);
    if let EventKind::RunStarted(started) = &mut head.kind {
        let plan =
            ObservedPlan { command: vec!["python".to_owned(), "desk.py".to_owned()], guard: None };
        Arc::make_mut(started).plan = PatternPlan::Observed(Arc::new(plan));
    }
    let mut log = vec![Arc::new(head)];
    let mut add = |span: u32, fact: ObservedFact| {
        let seq = log.len() as u64;
        let kind = EventKind::Pattern(PatternFact::Observed(fact));
        let at = Elapsed(seq * 900);
        log.push(Arc::new(Event { seq: Seq(seq), at, span: SpanId(span), kind }));
    };
    let mut open: Vec<u32> = Vec::new();
    let end = || {
        let about = SpanAbout { output: Some("Refunded re_31.".into()), ..SpanAbout::default() };
        let about = Arc::new(about);
        let (repeats_call, repeats_tokens) = (false, false);
        ObservedFact::Closed { end: SpanEnd::Done, repeats_call, repeats_tokens, about }
    };
    for span in 1..=SPANS {
        let (role, name) = match span % 40 {
            1 => (SpanRole::Agent, ["triage", "billing", "refunds"][span as usize / 40 % 3]),
            nth if nth % 3 == 0 => (SpanRole::Tool, "refund"),
            nth if nth % 3 == 1 => (SpanRole::Model, "chat"),
            _ => (SpanRole::Step, "parse"),
        };
        let depth = match role {
            _ if span == 1 => 0,
            SpanRole::Agent => 1,
            SpanRole::Model | SpanRole::Tool => 2,
            _ => 3,
        };
        while open.len() > depth {
            let inner = open.pop().expect("open");
            add(inner, end());
        }
        let parent = open.last().map_or(SpanId::RUN, |span| SpanId(*span));
        let about = SpanAbout {
            id: format!("{span:016x}").into(),
            name: name.into(),
            role,
            input: Some(format!("a request for charge ch_{span}").into()),
            ..SpanAbout::default()
        };
        add(span, ObservedFact::Opened { parent, at_end: false, about: Arc::new(about) });
        open.push(span);
    }
    for inner in open.into_iter().rev() {
        add(inner, end());
    }
    log
}

fn page(log: &[Arc<Event>]) -> RunPage {
    let mut page = RunPage::new(RunId::new("r-long"), Duration::ZERO);
    for batch in log.chunks(512) {
        page.apply(batch);
    }
    page
}

fn draw(page: &RunPage, buf: &mut Buffer) {
    let theme = Theme::default();
    let cx = DrawContext { now: Duration::from_secs(3600), theme: &theme, glyphs: Glyphs::Unicode };
    let area = Rect::new(0, 0, SIZE.cols, SIZE.rows);
    let rows = |y: u16, height: u16| Rect { y, height, ..area };
    first_row(page, &cx, rows(0, 1), buf);
    second_row(page, true, &cx, rows(1, 1), buf);
    render_run(page, &cx, rows(2, SIZE.rows - 4), buf);
}

fn buffer() -> Buffer {
    Buffer::empty(Rect::new(0, 0, SIZE.cols, SIZE.rows))
}

/// The whole log on the page, and its first frame.
fn opened(log: &[Arc<Event>]) -> Duration {
    timed(|| draw(&page(log), &mut buffer()))
}

/// A key that moves in the list of spans, or of seats, and its frame.
fn scrolled(page: &mut RunPage) -> Duration {
    let mut buf = buffer();
    timed(|| {
        for _ in 0..FRAMES {
            page.on_action(Action::Up, SIZE);
            draw(page, &mut buf);
        }
    })
}

/// A filter over the list of events, until it has read all of them.
fn searched(log: &[Arc<Event>]) -> Duration {
    let mut page = page(log);
    timed(|| {
        page.on_action(Action::Filter, SIZE);
        for c in "99999".chars() {
            page.on_key(KeyPress::char(c));
        }
        page.on_action(Action::Apply, SIZE);
        while page.next_tick(Duration::ZERO, true) == Some(Duration::ZERO) {
            page.on_tick();
        }
        draw(&page, &mut buffer());
    })
}

/// The last events of the log, a few with each frame.
fn growing(log: &[Arc<Event>]) -> Duration {
    let (before, after) = log.split_at(log.len() - FRAMES * 8);
    let (mut page, mut buf) = (page(before), buffer());
    draw(&page, &mut buf);
    timed(|| {
        for batch in after.chunks(8) {
            page.apply(batch);
            draw(&page, &mut buf);
        }
    })
}

fn main() -> ExitCode {
    let (theirs, own) = (spans(), long::log(FACTS));
    assert_eq!(theirs.len(), FACTS + 1);
    let mut ratios = Vec::new();
    type Work<'w> = &'w dyn Fn(bool) -> Duration;
    let mut compare = |what: &'static str, bound: f64, rounds, frames: usize, of: Work<'_>| {
        let beside = pairs(rounds, || of(true), || of(false));
        let (one, other) = beside.medians();
        let ms = |seconds: f64| seconds * 1e3 / frames as f64;
        let told = format!("{:.2}x ({:.2} / {:.2} ms)", beside.ratio(), ms(one), ms(other));
        report(&format!("100 000 spans beside a run: {what}"), &told, &format!("{bound:.2}x"));
        ratios.push((what, beside.ratio(), bound));
    };
    let log = |is_theirs: bool| if is_theirs { &*theirs } else { &*own };
    let pages = std::cell::RefCell::new([page(&own), page(&theirs)]);
    compare("opened", 2.5, 11, 1, &|is_theirs| opened(log(is_theirs)));
    compare("scrolled", 2.5, 21, FRAMES, &|is_theirs| {
        scrolled(&mut pages.borrow_mut()[usize::from(is_theirs)])
    });
    compare("searched", 1.5, 11, 1, &|is_theirs| searched(log(is_theirs)));
    compare("growing", 2.0, 11, FRAMES, &|is_theirs| growing(log(is_theirs)));
    held(&ratios)
}
