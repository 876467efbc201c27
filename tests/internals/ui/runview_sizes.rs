//! A run's page at every size and with text of every kind: nothing panics, nothing is drawn
//! outside its place, and borders meet.

use std::sync::Arc;
use std::time::Duration;

use crate::base::visible::is_hostile;
use crate::log::event::{Event, EventKind, RunId, SpanId};
use crate::log::facts::collaboration::Stance;
use crate::screen;
use crate::screen::layout::Size;
use crate::screen::msg::PartialText;
use crate::screen::run::RunPage;
use crate::screen::run::views::OwnView;
use crate::screen::theme::Theme;
use crate::screen::{Action, DrawContext, KeyPress};
use crate::support::facts;
use crate::support::facts::research::ResearchFacts;
use crate::support::facts::team::TeamFacts;
use crate::support::facts::tools::ToolFacts;
use crate::support::facts::{Facts, Start, research, team, tools};
use crate::words::glyph::Glyphs;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

fn page(log: &[Arc<Event>]) -> RunPage {
    let mut page = RunPage::new(RunId::new("r-7f3a"), Duration::ZERO);
    page.apply(log);
    page
}

/// Draws a page as a screen of this size holds it, in the middle of a larger buffer.
fn draw(page: &RunPage, cols: u16, rows: u16, glyphs: Glyphs) -> Buffer {
    let theme = Theme::default();
    let cx = DrawContext { now: Duration::from_secs(9), theme: &theme, glyphs };
    let mut buf = Buffer::empty(Rect::new(0, 0, cols + 2, rows + 2));
    for x in 0..cols + 2 {
        for y in [0, rows + 1] {
            buf[(x, y)].set_symbol("#");
        }
    }
    for y in 0..rows + 2 {
        for x in [0, cols + 1] {
            buf[(x, y)].set_symbol("#");
        }
    }
    let row = |y: u16, height: u16| {
        Rect::new(1, 1 + y, cols, height).intersection(Rect::new(1, 1, cols, rows))
    };
    screen::run::header::first_row(page, &cx, row(0, 1), &mut buf);
    screen::run::header::second_row(page, true, &cx, row(1, 1), &mut buf);
    screen::run::render(page, &cx, row(2, rows.saturating_sub(4)), &mut buf);
    buf
}

fn check(buf: &Buffer, case: &str) {
    let area = buf.area;
    for y in 0..area.height {
        for x in [0, area.width - 1] {
            assert_eq!(buf[(x, y)].symbol(), "#", "{case}: drawn outside at {x},{y}");
        }
    }
    for x in 0..area.width {
        for y in [0, area.height - 1] {
            assert_eq!(buf[(x, y)].symbol(), "#", "{case}: drawn outside at {x},{y}");
        }
    }
    for y in 0..area.height {
        let mut x = 0;
        while x < area.width {
            let symbol = buf[(x, y)].symbol();
            assert!(!symbol.chars().any(is_hostile), "{case}: {symbol:?} at {x},{y}");
            let wide = unicode_width::UnicodeWidthStr::width(symbol).max(1) as u16;
            assert!(x + wide < area.width || wide == 1, "{case}: cut in half at {x},{y}");
            x += wide;
        }
    }
}

/// Every line of a frame goes on into the cell that it points to.
fn borders_meet(buf: &Buffer, case: &str) {
    let up = "│├┤┴┼└┘╰╯";
    let down = "│├┤┬┼┌┐╭╮";
    let joins = |symbol: &str, set: &str| symbol.chars().next().is_some_and(|c| set.contains(c));
    // The first two rows are the header's.
    for y in 3..buf.area.height - 2 {
        for x in 1..buf.area.width - 1 {
            let (here, below) = (buf[(x, y)].symbol(), buf[(x, y + 1)].symbol());
            // A title, a label or a mark of more may stand on a line, and nothing else may end one.
            if joins(here, down) && !joins(below, up) {
                let text = below.chars().all(|c| c.is_alphanumeric() || " ·↑↓:_-.".contains(c));
                assert!(text, "{case}: {here} above {below} at {x},{y}");
            }
        }
    }
}

/// The faces of an orchestrator and of the tools.
fn other_faces() -> Vec<(&'static str, Vec<Arc<Event>>)> {
    vec![
        ("no plan yet", ToolFacts::orchestrator(4).log),
        ("working", tools::working().log),
        ("reported", tools::reported().log),
        ("critical", tools::critical().log),
        ("many tasks", tools::many(400).log),
        ("storm that starts", ToolFacts::storm(true).log),
        ("brownout", tools::brownout(true).log),
        ("naive brownout", tools::brownout(false).log),
        ("a swarm at work", team::working().log),
        ("a swarm that has answered", team::answered().log),
        ("a second message", team::follow_up().log),
        ("teams within a team", team::office().log),
        ("a team before its first call", TeamFacts::office().log),
        ("a ring of twelve", team::ring(12, 30).log),
        ("a ring of thirty", team::ring(30, 40).log),
        ("research before its plan", ResearchFacts::start().log),
        ("research that reads", research::reading().log),
        ("research that has answered", research::answered().log),
        ("research without a source", research::unreliable().log),
        ("research that was misquoted", research::misquoted().log),
    ]
}

#[test]
fn every_face_at_every_size() {
    for (name, facts) in other_faces() {
        for over in [false, true] {
            let mut page = page(&facts);
            if over {
                page.on_action(Action::Tools, Size { cols: 80, rows: 24 });
            }
            for cols in (1..=24).chain([40, 59, 60, 79, 80, 84, 100, 119, 120, 137, 200, 300]) {
                for rows in (1..=12).chain([16, 24, 30, 36, 50]) {
                    let case = format!("{name}, tools {over}, at {cols}x{rows}");
                    check(&draw(&page, cols, rows, Glyphs::Unicode), &case);
                    check(&draw(&page, cols, rows, Glyphs::Ascii), &case);
                }
            }
        }
    }
}

#[test]
fn all_panes_survive_all_moves() {
    let moves =
        [Action::Down, Action::PageDown, Action::Bottom, Action::Up, Action::PageUp, Action::Top];
    for (name, facts) in other_faces() {
        for (cols, rows) in [(60, 16), (80, 24), (100, 34), (120, 36), (200, 50)] {
            let size = Size { cols, rows };
            let mut page = page(&facts);
            for face in [None, Some(Action::Tools)] {
                if let Some(action) = face {
                    page.on_action(action, size);
                }
                for pane in 1..=5 {
                    page.on_action(Action::Pane(pane), size);
                    for action in moves {
                        page.on_action(action, size);
                        let case = format!("{name}, pane {pane}, {action:?}, {cols}x{rows}");
                        let buf = draw(&page, cols, rows, Glyphs::Unicode);
                        check(&buf, &case);
                        borders_meet(&buf, &case);
                    }
                    for action in [Action::Inspect, Action::Pane(1), Action::Pane(4)] {
                        page.on_action(action, size);
                        check(&draw(&page, cols, rows, Glyphs::Unicode), &format!("{name} whole"));
                    }
                    page.on_action(Action::Cancel, size);
                }
            }
        }
    }
}

fn ways() -> Vec<(&'static str, Facts)> {
    vec![
        ("waiting", facts::waiting()),
        ("streaming", facts::streaming()),
        ("paused", facts::paused()),
        ("decided", facts::decided()),
        ("stopped", facts::stopped()),
        ("broken", facts::broken()),
        ("one seat", facts::seats(1)),
        ("five seats", facts::seats(5)),
        ("eight seats", facts::seats(8)),
        ("thirty seats", facts::seats(30)),
        ("many rounds", facts::rounds(40)),
    ]
}

#[test]
fn every_state_at_every_size() {
    let empty = page(&[]);
    check(&draw(&empty, 80, 24, Glyphs::Unicode), "no fact yet");
    for (name, facts) in ways() {
        let page = page(&facts.log);
        for cols in (1..=24)
            .chain([30, 40])
            .chain([59, 60, 79, 80, 83, 84, 99, 100, 119, 120, 121, 160, 200, 300])
        {
            for rows in (1..=12).chain([16, 23, 24, 29, 30, 31, 36, 50, 90]) {
                let case = format!("{name} at {cols}x{rows}");
                check(&draw(&page, cols, rows, Glyphs::Unicode), &case);
            }
        }
    }
}

#[test]
fn all_views_fit_all_sizes() {
    let facts = facts::decided();
    let keys: [(&str, &[Action]); 9] = [
        ("zoom", &[Action::Pane(3), Action::Zoom]),
        ("speaker", &[Action::Pane(2)]),
        ("gateway", &[Action::Pane(4)]),
        ("events", &[Action::Pane(5), Action::Up, Action::PageUp, Action::Top]),
        ("scrubbed", &[Action::ScrubBack, Action::ScrubBack]),
        ("prompt", &[Action::Prompt]),
        ("raw", &[Action::Inspect, Action::Pane(3), Action::Bottom]),
        ("timing", &[Action::Pane(5), Action::Inspect, Action::Pane(4)]),
        ("filter", &[Action::Filter]),
    ];
    for (name, actions) in keys {
        for cols in (1..=30).chain([60, 80, 100, 120, 200]) {
            for rows in (1..=12).chain([16, 24, 30, 36, 50]) {
                let mut page = page(&facts.log);
                for action in actions {
                    page.on_action(*action, Size { cols, rows });
                }
                page.on_key(KeyPress::char('x'));
                check(&draw(&page, cols, rows, Glyphs::Ascii), &format!("{name} at {cols}x{rows}"));
            }
        }
    }
}

#[test]
fn frames_meet_at_every_size() {
    for (name, facts) in ways() {
        let page = page(&facts.log);
        for cols in [60, 80, 84, 100, 119, 120, 137, 160, 200, 260] {
            for rows in [16, 24, 30, 31, 33, 36, 41, 50, 70] {
                let buf = draw(&page, cols, rows, Glyphs::Unicode);
                borders_meet(&buf, &format!("{name} at {cols}x{rows}"));
            }
        }
    }
}

/// Text that would break a screen that trusts it.
const HOSTILE: [&str; 9] = [
    "\u{1b}[2J\u{1b}[1;1Hgone\u{7}",
    "\u{9b}31m red \u{9d}0;title\u{9c}",
    "\u{202e}txet desrever\u{202c} \u{2066}isolated",
    "宽字符宽字符宽字符 and 👩‍👩‍👧‍👦 family",
    "e\u{301}\u{302}\u{303}combining\u{300}\u{300}",
    "line\nbreaks\r\nand\ttabs\u{2028}and separators",
    "\u{200b}zero\u{200d}width\u{feff}marks\u{ad}",
    "ﾞ half-width marks ﾟ and ＦＵＬＬ width",
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} flags",
];

fn hostile(text: &str) -> Facts {
    let long = text.repeat(10_000 / text.len() + 1);
    let start = Start {
        title: text.to_owned(),
        roles: (1..=4).map(|nth| format!("{text}{nth}")).collect(),
        flagged: vec![(format!("{text}1"), true)],
        ..Start::default()
    };
    let mut facts = Facts::start(start);
    facts.round(&[]);
    facts.ask(0).ask(1).ask(2).ask(3);
    facts.after(500).says(0, Stance::Go, 0.5, &long);
    facts.says(1, Stance::Block, 1.0, text);
    facts.fails(2, 503).again(2);
    facts.add(SpanId::RUN, EventKind::Warning { text: long.clone() });
    facts.add(SpanId::RUN, EventKind::ConditionFailed { place: text.into(), text: long });
    facts.flag(text, true, text);
    facts
}

#[test]
fn hostile_text_never_breaks_columns() {
    for text in HOSTILE {
        let facts = hostile(text);
        for (cols, rows) in [(60, 16), (80, 24), (100, 34), (120, 36), (200, 50)] {
            let size = Size { cols, rows };
            let mut page = page(&facts.log);
            let coming = format!("{{\"summary\":\"{}", text.repeat(200));
            let live = PartialText { text: coming, ..PartialText::default() };
            page.set_live(facts.attempt_of(2), Some(live));
            for actions in [
                &[][..],
                &[Action::Pane(2)],
                &[Action::Pane(3)],
                &[Action::Pane(4)],
                &[Action::Pane(5)],
                &[Action::Pane(1), Action::Top, Action::Inspect],
                &[Action::Pane(1)],
                &[Action::Pane(3)],
                &[Action::Pane(4)],
            ] {
                for action in actions {
                    page.on_action(*action, size);
                }
                let case = format!("{text:?} at {cols}x{rows} after {actions:?}");
                let buf = draw(&page, cols, rows, Glyphs::Unicode);
                check(&buf, &case);
                // The right border of the page is complete, next to any content.
                for y in 4..rows - 3 {
                    let edge = buf[(cols, y + 1)].symbol();
                    assert!(["│", "┐", "┘", "┤", " "].contains(&edge), "{case}: {edge:?} at {y}");
                }
            }
        }
    }
}

#[test]
fn hostile_tasks_never_break_columns() {
    for text in HOSTILE {
        let long = text.repeat(2_000 / text.len() + 1);
        let mut facts = ToolFacts::orchestrator(4);
        let mut tasks = tools::story();
        for (nth, task) in tasks.iter_mut().enumerate() {
            task.id = format!("{text}{nth}").as_str().into();
        }
        let keys: Vec<String> = tasks.iter().map(|task| task.id.to_string()).collect();
        facts.plan(tasks).after(10).task(0).task(1);
        facts.after(300).answers(&keys[0], serde_json::json!({ text: long })).done(0);
        facts.task(2).after(50).refused(&keys[2], &format!("circuit_open:{text}"));
        facts.gives_up(&keys[2], text).task_failed(2, &long);
        facts.after(100);
        for (cols, rows) in [(60, 16), (80, 24), (100, 34), (120, 36), (200, 50)] {
            let size = Size { cols, rows };
            let mut page = page(&facts.log);
            for actions in [
                &[][..],
                &[Action::Top, Action::Down],
                &[Action::Pane(2)],
                &[Action::Pane(3), Action::Bottom, Action::Up, Action::Up],
                &[Action::Pane(1), Action::Inspect],
                &[Action::Cancel, Action::Pane(5)],
                &[Action::Tools],
                &[Action::Pane(4)],
            ] {
                for action in actions {
                    page.on_action(*action, size);
                }
                let case = format!("{text:?} at {cols}x{rows} after {actions:?}");
                check(&draw(&page, cols, rows, Glyphs::Unicode), &case);
            }
        }
    }
}

#[test]
fn copies_hostile_text_unchanged() {
    let facts = hostile(HOSTILE[0]);
    let mut page = page(&facts.log);
    let size = Size { cols: 120, rows: 36 };
    page.on_action(Action::Pane(1), size);
    page.on_action(Action::Top, size);
    let OwnView::Collaboration(view) = &page.views.own else { panic!("a collaboration") };
    let words = view.text_pane(&page).words;
    assert!(words.text.contains('\u{1b}'), "what is copied is what was said");
}

#[test]
fn hostile_teams_never_break_columns() {
    for text in HOSTILE {
        let long = text.repeat(2_000 / text.len() + 1);
        let mut facts = TeamFacts::desk(team::session(text, "triage"));
        let calls = [("charges", serde_json::json!({ text: long.clone() }))];
        facts.hop("triage", None).says("triage", 300, &long, &calls);
        facts.tool("triage", "charges", serde_json::json!({ "of": text }), long.clone().into());
        facts.says("triage", 200, text, &[]).hands("triage", "billing", Some(&long));
        facts.asks("billing").after(100);
        for (cols, rows) in [(60, 16), (80, 24), (100, 34), (120, 36), (200, 50)] {
            let size = Size { cols, rows };
            let mut page = page(&facts.log);
            let live = PartialText { text: long.clone(), ..PartialText::default() };
            page.set_live(facts.attempt_of("billing"), Some(live));
            for actions in [
                &[][..],
                &[Action::Pane(2), Action::Top],
                &[Action::Pane(3), Action::Top, Action::Right],
                &[Action::Pane(4), Action::Top, Action::Down, Action::PageDown, Action::Up],
                &[Action::Inspect, Action::Pane(1), Action::Bottom],
                &[Action::Cancel, Action::Pane(1), Action::Down],
            ] {
                for action in actions {
                    page.on_action(*action, size);
                }
                let case = format!("{text:?} at {cols}x{rows} after {actions:?}");
                check(&draw(&page, cols, rows, Glyphs::Unicode), &case);
            }
        }
    }
}

#[test]
fn hostile_research_never_breaks_columns() {
    for text in HOSTILE {
        let facts = research::hostile(text);
        for (cols, rows) in [(60, 16), (80, 24), (100, 34), (120, 36), (200, 50)] {
            let size = Size { cols, rows };
            let mut page = page(&facts.log);
            for actions in [
                &[][..],
                &[Action::Top, Action::Down, Action::Inspect],
                &[Action::Cancel, Action::Pane(2), Action::Bottom, Action::PageUp],
                &[Action::Pane(3), Action::Down, Action::Cause],
                &[Action::Cause, Action::Pane(4), Action::Down, Action::Down],
                &[Action::Cause, Action::Inspect, Action::Pane(4)],
                &[Action::Cancel, Action::Pane(5), Action::Up, Action::Inspect],
            ] {
                for action in actions {
                    page.on_action(*action, size);
                }
                let case = format!("{text:?} at {cols}x{rows} after {actions:?}");
                check(&draw(&page, cols, rows, Glyphs::Unicode), &case);
            }
        }
    }
}
