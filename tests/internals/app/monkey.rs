//! A dashboard under random keys, mouse events, resizes and pastes while runs go on: each frame is
//! drawn, and nothing panics. The same seed does the same.
//!
//! A longer run: `ROUNDTABLE_MONKEY=100000 cargo test --release --lib monkey -- --nocapture`. It
//! prints how long the frames took; `ROUNDTABLE_MONKEY_SEED` takes another seed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::base::seeded_random::random_u64;
use crate::engine::Schedule;
use crate::log::event::{Event, EventKind, RunId};
use crate::screen::key::KeyPress;
use crate::screen::msg::{Mouse, MouseKind, PartialText};
use crate::screen::{KeyCode, Msg};
use crate::support::screen::{Dash, facts};

/// Steps in the bounded sample.
const SAMPLE: u64 = 4_000;
/// The runs of the dashboard, each of another pattern.
const RUNS: [&str; 6] = [
    "checkout-launch",
    "morning-report",
    "support-swarm",
    "payments-incident",
    "front-desk",
    "nested-swarm",
];
/// The pasted texts: a hostile one, a long one, wide characters, nothing.
const PASTES: [&str; 4] =
    ["\u{1b}[2J\u{1b}]0;owned\u{7}\r\n\u{202e}", "risk && kind == ", "宽字符👩‍👩‍👧é", ""];
const CODES: [KeyCode; 16] = [
    KeyCode::Enter,
    KeyCode::Esc,
    KeyCode::Tab,
    KeyCode::BackTab,
    KeyCode::Backspace,
    KeyCode::Delete,
    KeyCode::Insert,
    KeyCode::Up,
    KeyCode::Down,
    KeyCode::Left,
    KeyCode::Right,
    KeyCode::Home,
    KeyCode::End,
    KeyCode::PageUp,
    KeyCode::PageDown,
    KeyCode::F(1),
];

/// The numbers of a seed.
struct Dice {
    seed: u64,
    rolled: u32,
}

impl Dice {
    fn below(&mut self, count: u64) -> u64 {
        self.rolled += 1;
        random_u64(self.seed, "monkey", self.rolled, "step") % count.max(1)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    fn up_to(&mut self, most: u16) -> u16 {
        self.below(u64::from(most)) as u16
    }
}

/// A run whose events arrive bit by bit.
struct Coming {
    id: RunId,
    log: Vec<Arc<Event>>,
    arrived: usize,
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn step(dash: &mut Dash, dice: &mut Dice, runs: &mut [Coming]) {
    let size = dash.state.size;
    match dice.below(100) {
        0..45 => {
            let key = char::from(b' ' + dice.below(95) as u8);
            dash.key(KeyPress::char(key));
        }
        45..65 => {
            let code = dice.one_of(&CODES);
            dash.key(KeyPress::new(code));
        }
        65..68 => {
            let key = char::from(b'a' + dice.below(26) as u8);
            dash.key(KeyPress::ctrl(key));
        }
        68..80 => {
            use MouseKind::{Down, Drag, Up, WheelDown, WheelUp};
            let kind = dice.one_of(&[Down, Drag, Up, WheelDown, WheelUp]);
            let (col, row) = (dice.up_to(size.cols + 2), dice.up_to(size.rows + 2));
            dash.send(Msg::Mouse(Mouse { kind, col, row }));
        }
        80..83 => {
            let usual = dice.one_of(&[(80, 24), (120, 36), (120, 24), (80, 50), (200, 50)]);
            let odd = (1 + dice.up_to(220), 1 + dice.up_to(60));
            let (cols, rows) = dice.one_of(&[usual, usual, odd]);
            dash.send(Msg::Resize { cols, rows });
        }
        83..85 => {
            let text = dice.one_of(&PASTES).repeat(1 + dice.below(40) as usize);
            dash.send(Msg::Paste(text));
        }
        85..90 => {
            dash.after(Duration::from_millis(dice.below(3_000)));
            dash.send(Msg::Tick);
        }
        _ => {
            let nth = dice.below(runs.len() as u64) as usize;
            arrive(dash, dice, &mut runs[nth]);
        }
    }
}

/// The next events of a run arrive, and the text that one of its calls has produced.
fn arrive(dash: &mut Dash, dice: &mut Dice, run: &mut Coming) {
    let until = run.log.len().min(run.arrived + 1 + dice.below(20) as usize);
    let events = run.log[run.arrived..until].to_vec();
    run.arrived = until;
    let call = events.iter().rev().find(|it| matches!(it.kind, EventKind::AttemptStarted { .. }));
    let live = call.map(|event| {
        let text = "{\"stance\":\"caution\",\"summary\":\"\u{1b}[31mwide 宽".to_owned();
        let text = PartialText { text, pieces: 3, first_at: None, last_at: None };
        Msg::Live { run: run.id.clone(), span: event.span, text: Some(text) }
    });
    dash.send(Msg::Events { run: run.id.clone(), events });
    if let Some(live) = live {
        dash.send(live);
    }
}

#[test]
fn random_input_always_draws_frame() {
    let steps = setting("ROUNDTABLE_MONKEY", SAMPLE);
    let seed = setting("ROUNDTABLE_MONKEY_SEED", 7);
    let mut dice = Dice { seed, rolled: 0 };
    let mut dash = Dash::new(120, 36);
    let mut runs: Vec<Coming> = (0..)
        .zip(RUNS)
        .map(|(nth, name)| {
            let log = facts(name, &[], &[], Schedule::default());
            Coming { id: RunId::new(format!("r-{nth}")), log, arrived: 0 }
        })
        .collect();
    for run in &mut runs {
        dash.run(run.id.as_str(), &[]);
        arrive(&mut dash, &mut dice, run);
    }
    let mut took = Vec::new();
    for nth in 0..steps {
        step(&mut dash, &mut dice, &mut runs);
        let begun = Instant::now();
        let buf = dash.draw();
        took.push(begun.elapsed());
        assert_eq!(buf.area, dash.state.terminal.area());
        let raw = buf.content.iter().find(|cell| cell.symbol().contains(['\u{1b}', '\u{7}']));
        assert!(raw.is_none(), "step {nth} of seed {seed}: {raw:?}");
        // No shell carries out the effects.
        dash.asked();
    }
    took.sort();
    let at = |share: usize| took[(took.len() - 1) * share / 1_000];
    let slow = took.iter().filter(|took| **took > Duration::from_millis(33)).count();
    eprintln!(
        "{steps} frames of seed {seed}: median {:?}, 99 % {:?}, 99.9 % {:?}, {slow} above 33 ms",
        at(500),
        at(990),
        at(999)
    );
}
