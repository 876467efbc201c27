//! Five thousand events of a hostile terminal, with fixed seeds: junk bytes through the program's own
//! reader of keys, every key that means something, pastes, clicks, sizes, over runs whose texts are
//! hostile too. Nothing panics, and no cell ever holds what would steer a terminal.
#![cfg(unix)]

use std::sync::Arc;
use std::time::Duration;

use crate::base::visible::first_hostile;
use crate::log::event::{Event, RunId};
use crate::screen::keymap::BINDINGS;
use crate::screen::msg::{Mouse, MouseKind};
use crate::screen::state::DisplaySettings;
use crate::screen::{Effect, KeyPress, Msg};
use crate::support::facts;
use crate::support::screen::{Dash, own, shipped};
use crate::terminal::input;
use crate::terminal::keyboard::parser::Parser;

const EVENTS: usize = 1_000;

/// Pieces that begin, continue or end a sequence, and hostile ones.
const PIECES: [&[u8]; 24] = [
    b"\x1b",
    b"\x1b[",
    b"\x1b[<",
    b"\x1b[<0;",
    b"12;7M",
    b"12;7m",
    b"\x1b[?",
    b"\x1b[200~",
    b"\x1b[201~",
    b"\x1bO",
    b"\x1b]52;c;",
    b"\x07",
    b"\x1b\\",
    b"\x1b[M",
    b"\xff\xfe",
    b"\xf0\x9f",
    b"\x99\x82",
    b"\x9b31m",
    b"\x1b[1;5A",
    b"\x1b[99;5u",
    b"\x1b[27;5;99~",
    b"9999999999",
    b"\x00\x01\x02\x7f",
    b"qjk/?nefyo \r\t",
];

const TEXTS: [&str; 6] = [
    "\u{1b}]0;owned\u{7}\u{1b}[2J",
    "\u{202e}\u{2066}right to left\u{2069}",
    "a\u{9b}31m\u{90}q\u{7f}",
    "e\u{301}\u{301}宽👩\u{200d}👩\u{200d}👧\u{200d}x\u{34f}\u{115f}",
    "\r\n\t\0\u{feff}\u{e0041}",
    "{\"a\": [1, 2], ",
];

/// Numbers that are the same in every run (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next()).unwrap_or(0) % most
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn place(&mut self, most: u16) -> u16 {
        u16::try_from(self.below(usize::from(most).max(1) + 3)).unwrap_or(0)
    }
}

/// The facts with words of theirs exchanged for hostile ones.
fn hostile(log: &[Arc<Event>], run: &str) -> Vec<Arc<Event>> {
    let text: String = TEXTS.concat();
    let text = serde_json::to_string(&text).expect("JSON");
    let text = text.trim_matches('"');
    let words = ["Demand holds", "Checkout v2", "traffic risk", "Decision"];
    let changed = |event: &Arc<Event>| {
        let mut line = event.to_line().expect("a line").replace("r-7f3a", run);
        for word in words {
            line = line.replace(word, text);
        }
        Arc::new(Event::from_line(&line).expect("a fact"))
    };
    log.iter().map(changed).collect()
}

fn dash() -> Dash {
    let mut entries = shipped();
    let file = include_str!("../../../scenarios/checkout-unanimous.toml");
    entries
        .push(own("\u{1b}[31mevil\u{202e}.toml", &file.replace("Checkout v2", "Check\\u202Eout")));
    let mut dash = Dash::over(120, 36, entries, DisplaySettings::default());
    for (run, log) in [
        ("r-0001", &facts::decided().log),
        ("r-0002", &facts::streaming().log),
        ("r-0003", &facts::stopped().log),
    ] {
        dash.run(run, &hostile(log, run));
    }
    dash.run("r-0004", &facts::team::answered().log);
    dash.run("r-0005", &facts::research::hostile(&TEXTS.concat()).log);
    dash.asked();
    dash
}

/// One event of a terminal that means harm.
fn one(numbers: &mut Numbers, parser: &mut Parser, dash: &mut Dash) {
    let (cols, rows) = (dash.state.size.cols, dash.state.size.rows);
    match numbers.below(20) {
        0..8 => {
            let keys: Vec<KeyPress> = BINDINGS.iter().flat_map(|row| row.keys).copied().collect();
            let key = numbers.of(&keys);
            dash.key(key);
        }
        8..13 => {
            let mut msgs = Vec::new();
            let mut give = |event| msgs.extend(input::message(event));
            for _ in 0..=numbers.below(4) {
                parser.feed(numbers.of(&PIECES), &mut give);
            }
            if numbers.below(3) == 0 {
                parser.on_timeout(&mut give);
            }
            for msg in msgs {
                dash.send(msg);
            }
        }
        13..15 => {
            use MouseKind::{Down, Drag, Up, WheelDown, WheelUp};
            let what = numbers.of(&[Down, Up, Drag, WheelUp, WheelDown]);
            let (col, row) = (numbers.place(cols), numbers.place(rows));
            dash.send(Msg::Mouse(Mouse { kind: what, col, row }));
        }
        15 => {
            dash.send(Msg::Paste(numbers.of(&TEXTS).repeat(1 + numbers.below(3))));
        }
        16 => {
            let c = numbers.of(&['\u{1b}', '\u{9b}', '\u{202e}', '\u{200d}', '宽', 'q', '\n']);
            dash.key(KeyPress::char(c)).press("F12");
        }
        17 => {
            let cols = numbers.of(&[0, 1, 20, 59, 60, 80, 120, 200]);
            let rows = numbers.of(&[0, 1, 10, 15, 16, 24, 36, 50]);
            dash.send(Msg::Resize { cols, rows });
        }
        18 => {
            dash.after(Duration::from_millis(numbers.next() % 3_000)).send(Msg::Tick);
        }
        _ => {
            let text = numbers.of(&TEXTS).to_owned();
            dash.send(Msg::EffectFailed { what: "export", text });
        }
    }
    // The shell answers as one that can do nothing.
    for effect in dash.asked() {
        if let Effect::Start(request) = effect {
            let text = numbers.of(&TEXTS).to_owned();
            dash.send(Msg::StartFailed { request: request.id, text });
        }
    }
}

fn is_clean(dash: &Dash) -> Result<(), String> {
    for cell in dash.draw().content {
        if let Some(c) = first_hostile(cell.symbol()) {
            return Err(format!("{:?} in {:?}", c, cell.symbol()));
        }
    }
    Ok(())
}

fn survives(seed: u64) {
    let (mut numbers, mut parser, mut dash) = (Numbers(seed), Parser::default(), dash());
    let mut drawn = 0;
    for nth in 0..EVENTS {
        one(&mut numbers, &mut parser, &mut dash);
        if dash.redraw || nth + 1 == EVENTS {
            drawn += 1;
            is_clean(&dash).unwrap_or_else(|what| panic!("seed {seed}, event {nth}: {what}"));
        }
        // A dashboard that has gone where there is nothing to break is brought back.
        if nth % 100 == 99 {
            dash.send(Msg::Resize { cols: 120, rows: 36 });
            let run = format!("r-000{}", 1 + numbers.below(5));
            dash.state.screen = crate::screen::state::ActiveScreen::Run(RunId::new(run.as_str()));
        }
    }
    assert!(drawn > EVENTS / 4, "{drawn} frames: it does react");
}

#[test]
fn survives_hostile_events_with_seed_1() {
    survives(1);
}

#[test]
fn survives_hostile_events_with_seed_2() {
    survives(2);
}

#[test]
fn survives_hostile_events_with_seed_3() {
    survives(3);
}

#[test]
fn survives_hostile_events_with_seed_4() {
    survives(4);
}

#[test]
fn survives_hostile_events_with_seed_5() {
    survives(5);
}
