//! Parses a terminal's bytes into events. The state machine takes one byte at a time, so the result
//! does not depend on the size of reads. Its memory is bounded, and unfinished sequences time out.
//!
//! Ctrl-C works in every state: immediately within a sequence, and after a short silence within a
//! paste. The states follow ECMA-48; the keys are those of crossterm's own parser, which is not
//! public and waits for the end of a sequence without a timeout.

use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

use super::sequence;

const ESC: u8 = 0x1b;
const INTERRUPT: u8 = 0x03;

/// Timeout after which a lone ESC is the Escape key.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(25);

/// Timeout for the next byte of a sequence.
const SEQUENCE_TIMEOUT: Duration = Duration::from_millis(250);

/// Timeout for the next byte of a paste. Long, so that a stalled link does not turn text into keys.
const PASTE_TIMEOUT: Duration = Duration::from_secs(2);

/// Silence after which a Ctrl-C is a key and not part of the paste.
const PASTE_INTERRUPT_TIMEOUT: Duration = Duration::from_millis(100);

/// Length limit of a key or mouse sequence, in bytes after its introducer.
const MAX_SEQUENCE: usize = 128;

/// Length limit of a terminal report, in bytes; reports are skipped.
const MAX_REPORT: usize = 4096;

/// Length limit of a paste, in bytes; the rest is dropped.
pub const MAX_PASTE_BYTES: usize = 1 << 20;

const PASTE_STARTS: &[u8] = b"200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// The state of the parser.
#[derive(Debug, Default, PartialEq, Eq)]
enum ParserState {
    /// Between two events.
    #[default]
    Ground,
    /// Inside a multi-byte character.
    Character { alt: bool, need: usize },
    /// After ESC.
    Escape,
    /// After `ESC O`.
    Single,
    /// After `ESC [`.
    Sequence,
    /// After `ESC [ [`: the function keys of the Linux console.
    Console,
    /// After `ESC [ M`: three bytes of the original mouse protocol.
    Mouse,
    /// An unrequested report, such as `ESC ]`, with its introducer.
    Report { introducer: u8, escaped: bool },
    /// A bracketed paste; `ends` bytes of its end marker have been matched.
    Paste { ends: usize },
}

/// The state machine.
#[derive(Debug, Default)]
pub struct Parser {
    state: ParserState,
    /// Bytes of the current sequence, character or paste.
    held: Vec<u8>,
}

impl Parser {
    /// Consumes bytes and emits the events that they complete.
    pub fn feed(&mut self, bytes: &[u8], mut give: impl FnMut(Event)) {
        for byte in bytes {
            self.byte(*byte, &mut give);
        }
    }

    /// How long to wait for more bytes before [`on_timeout`](Self::on_timeout). `None`: nothing is
    /// pending.
    pub fn timeout(&self) -> Option<Duration> {
        match self.state {
            ParserState::Ground => None,
            ParserState::Escape => Some(ESCAPE_TIMEOUT),
            ParserState::Paste { .. } if self.held.last() == Some(&INTERRUPT) => {
                Some(PASTE_INTERRUPT_TIMEOUT)
            }
            ParserState::Paste { .. } => Some(PASTE_TIMEOUT),
            // It may be a complete key with Alt, so the timeout is short.
            ParserState::Single | ParserState::Sequence | ParserState::Report { .. }
                if self.held.is_empty() =>
            {
                Some(ESCAPE_TIMEOUT)
            }
            _ => Some(SEQUENCE_TIMEOUT),
        }
    }

    /// Ends the pending input after the timeout: it is a key by itself, or is dropped.
    pub fn on_timeout(&mut self, mut give: impl FnMut(Event)) {
        let held = std::mem::take(&mut self.held);
        match std::mem::take(&mut self.state) {
            ParserState::Escape => give(key(KeyCode::Esc, KeyModifiers::NONE)),
            ParserState::Single => give(character('O', KeyModifiers::ALT)),
            ParserState::Sequence if held.is_empty() => give(character('[', KeyModifiers::ALT)),
            ParserState::Report { introducer, .. } if held.is_empty() => {
                give(character(introducer.into(), KeyModifiers::ALT));
            }
            // The paste has no end marker: a Ctrl-C in it was pressed by the operator.
            ParserState::Paste { .. } => {
                let (interrupts, text): (Vec<u8>, Vec<u8>) =
                    held.into_iter().partition(|byte| *byte == INTERRUPT);
                if !text.is_empty() {
                    give(pasted(&text));
                }
                for _ in interrupts.iter().take(2) {
                    give(interrupt());
                }
            }
            _ => {}
        }
    }

    fn byte(&mut self, byte: u8, give: &mut impl FnMut(Event)) {
        if byte == INTERRUPT && !matches!(self.state, ParserState::Paste { .. }) {
            if self.state == ParserState::Escape {
                give(key(KeyCode::Esc, KeyModifiers::NONE));
            }
            self.reset();
            return give(interrupt());
        }
        match self.state {
            ParserState::Ground => self.first_byte(byte, false, give),
            ParserState::Character { alt, need } => self.character(byte, alt, need, give),
            ParserState::Escape => self.after_escape(byte, give),
            ParserState::Single => {
                self.reset();
                match byte {
                    b' '..=b'~' => sequence::single(byte).into_iter().for_each(give),
                    _ => self.byte(byte, give),
                }
            }
            ParserState::Sequence => self.sequence(byte, give),
            ParserState::Console => {
                self.reset();
                match byte {
                    b'A'..=b'E' => give(key(KeyCode::F(1 + byte - b'A'), KeyModifiers::NONE)),
                    b' '..=b'~' => {}
                    _ => self.byte(byte, give),
                }
            }
            ParserState::Mouse if byte < b' ' => {
                self.reset();
                self.byte(byte, give);
            }
            ParserState::Mouse => {
                self.held.push(byte);
                if let [button, col, row] = self.held[..] {
                    self.reset();
                    sequence::old_mouse(button, col, row).into_iter().for_each(give);
                }
            }
            ParserState::Report { introducer, escaped } => {
                self.report(byte, introducer, escaped, give)
            }
            ParserState::Paste { ends } => self.paste(byte, ends, give),
        }
    }

    /// Returns to the ground state.
    fn reset(&mut self) {
        self.state = ParserState::Ground;
        self.held.clear();
    }

    /// Handles the first byte of an event.
    fn first_byte(&mut self, byte: u8, alt: bool, give: &mut impl FnMut(Event)) {
        self.reset();
        let modifiers = if alt { KeyModifiers::ALT } else { KeyModifiers::NONE };
        let need = match byte {
            ESC => return self.state = ParserState::Escape,
            b' '..=b'~' => return give(character(byte.into(), modifiers)),
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => return control(byte, modifiers).into_iter().for_each(give),
        };
        self.held.push(byte);
        self.state = ParserState::Character { alt, need };
    }

    fn character(&mut self, byte: u8, alt: bool, need: usize, give: &mut impl FnMut(Event)) {
        if !matches!(byte, 0x80..=0xbf) {
            // The bytes so far are not a valid character.
            return self.first_byte(byte, false, give);
        }
        self.held.push(byte);
        if self.held.len() < need {
            return;
        }
        let modifiers = if alt { KeyModifiers::ALT } else { KeyModifiers::NONE };
        let c = std::str::from_utf8(&self.held).ok().and_then(|text| text.chars().next());
        self.reset();
        c.into_iter().for_each(|c| give(character(c, modifiers)));
    }

    fn after_escape(&mut self, byte: u8, give: &mut impl FnMut(Event)) {
        self.state = match byte {
            b'[' => ParserState::Sequence,
            b'O' => ParserState::Single,
            b']' | b'P' | b'_' | b'^' | b'X' => {
                ParserState::Report { introducer: byte, escaped: false }
            }
            ESC => {
                give(key(KeyCode::Esc, KeyModifiers::NONE));
                ParserState::Escape
            }
            _ => return self.first_byte(byte, true, give),
        };
    }

    fn sequence(&mut self, byte: u8, give: &mut impl FnMut(Event)) {
        match byte {
            b'[' if self.held.is_empty() => self.state = ParserState::Console,
            b'M' if self.held.is_empty() => self.state = ParserState::Mouse,
            b' '..=b'?' if self.held.len() < MAX_SEQUENCE => self.held.push(byte),
            b' '..=b'?' => self.reset(),
            b'~' if self.held == PASTE_STARTS[..3] => {
                self.held.clear();
                self.state = ParserState::Paste { ends: 0 };
            }
            b'@'..=b'~' => {
                let event = sequence::event(&self.held, byte);
                self.reset();
                event.into_iter().for_each(give);
            }
            // A key interrupts the sequence: drop the sequence.
            _ => self.first_byte(byte, false, give),
        }
    }

    fn report(&mut self, byte: u8, introducer: u8, escaped: bool, give: &mut impl FnMut(Event)) {
        match byte {
            b'\\' if escaped => self.reset(),
            _ if escaped => {
                self.reset();
                self.state = ParserState::Escape;
                self.byte(byte, give);
            }
            0x07 => self.reset(),
            ESC if self.held.is_empty() => {
                give(character(introducer.into(), KeyModifiers::ALT));
                self.state = ParserState::Escape;
            }
            ESC => self.state = ParserState::Report { introducer, escaped: true },
            _ if self.held.len() < MAX_REPORT => self.held.push(byte),
            _ => self.reset(),
        }
    }

    fn paste(&mut self, byte: u8, ends: usize, give: &mut impl FnMut(Event)) {
        if byte == PASTE_ENDS[ends] {
            if ends + 1 == PASTE_ENDS.len() {
                let text = std::mem::take(&mut self.held);
                self.reset();
                return give(pasted(&text));
            }
            self.state = ParserState::Paste { ends: ends + 1 };
            return;
        }
        // The bytes matched so far are text, not the end marker.
        self.keep(&PASTE_ENDS[..ends]);
        let ends = usize::from(byte == ESC);
        if ends == 0 {
            self.keep(&[byte]);
        }
        self.state = ParserState::Paste { ends };
    }

    fn keep(&mut self, bytes: &[u8]) {
        // A Ctrl-C is kept even if the paste is too long.
        let most = if bytes == [INTERRUPT] { MAX_PASTE_BYTES + 2 } else { MAX_PASTE_BYTES };
        let room = most.saturating_sub(self.held.len());
        self.held.extend(bytes.iter().take(room));
    }
}

/// The key that sends a control character.
fn control(byte: u8, modifiers: KeyModifiers) -> Option<Event> {
    let with_ctrl = |c: u8| Some(key(KeyCode::Char(c.into()), modifiers | KeyModifiers::CONTROL));
    match byte {
        b'\r' => Some(key(KeyCode::Enter, modifiers)),
        b'\t' => Some(key(KeyCode::Tab, modifiers)),
        0x7f => Some(key(KeyCode::Backspace, modifiers)),
        0 => with_ctrl(b' '),
        0x01..=0x1a => with_ctrl(byte - 1 + b'a'),
        0x1c..=0x1f => with_ctrl(byte - 0x1c + b'4'),
        _ => None,
    }
}

fn character(c: char, modifiers: KeyModifiers) -> Event {
    let shift = if c.is_uppercase() { KeyModifiers::SHIFT } else { KeyModifiers::NONE };
    key(KeyCode::Char(c), modifiers | shift)
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Event {
    Event::Key(KeyEvent::new(code, modifiers))
}

fn interrupt() -> Event {
    key(KeyCode::Char('c'), KeyModifiers::CONTROL)
}

fn pasted(text: &[u8]) -> Event {
    Event::Paste(String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyEventKind, MouseButton, MouseEvent, MouseEventKind};
    use proptest::prelude::*;

    use super::*;

    const NONE: KeyModifiers = KeyModifiers::NONE;
    const SHIFT: KeyModifiers = KeyModifiers::SHIFT;
    const ALT: KeyModifiers = KeyModifiers::ALT;
    const CTRL: KeyModifiers = KeyModifiers::CONTROL;

    /// The events of these reads, with a timeout after the last.
    fn read(reads: &[&[u8]]) -> Vec<Event> {
        let (mut parser, mut events) = (Parser::default(), Vec::new());
        for bytes in reads {
            parser.feed(bytes, |event| events.push(event));
        }
        while parser.timeout().is_some() {
            parser.on_timeout(|event| events.push(event));
        }
        events
    }

    fn c(c: char) -> Event {
        key(KeyCode::Char(c), NONE)
    }

    fn paste(text: &str) -> Event {
        Event::Paste(text.to_owned())
    }

    fn mouse(kind: MouseEventKind, column: u16, row: u16, modifiers: KeyModifiers) -> Event {
        Event::Mouse(MouseEvent { kind, column, row, modifiers })
    }

    /// Inputs with the expected events.
    fn table() -> Vec<(&'static str, Vec<Event>)> {
        use KeyCode::{
            BackTab, Backspace, Char, Delete, Down, End, Enter, Esc, F, Home, Insert, Left,
            PageDown, PageUp, Right, Tab, Up,
        };
        let left = MouseButton::Left;
        let one = |code, modifiers| vec![key(code, modifiers)];
        let kind = |code, modifiers, kind| {
            vec![Event::Key(KeyEvent::new_with_kind(code, modifiers, kind))]
        };
        vec![
            ("a", one(Char('a'), NONE)),
            ("A", one(Char('A'), SHIFT)),
            ("é", one(Char('é'), NONE)),
            ("Ü", one(Char('Ü'), SHIFT)),
            ("宽🙂", vec![c('宽'), c('🙂')]),
            ("\r", one(Enter, NONE)),
            ("\n", one(Char('j'), CTRL)),
            ("\t", one(Tab, NONE)),
            ("\u{7f}", one(Backspace, NONE)),
            ("\u{8}", one(Char('h'), CTRL)),
            ("\0", one(Char(' '), CTRL)),
            ("\u{3}", one(Char('c'), CTRL)),
            ("\u{1a}", one(Char('z'), CTRL)),
            ("\u{1c}", one(Char('4'), CTRL)),
            ("\u{1f}", one(Char('7'), CTRL)),
            ("\u{1b}", one(Esc, NONE)),
            ("\u{1b}\u{1b}", vec![key(Esc, NONE), key(Esc, NONE)]),
            ("\u{1b}\u{1b}[A", vec![key(Esc, NONE), key(Up, NONE)]),
            ("\u{1b}x", one(Char('x'), ALT)),
            ("\u{1b}X", one(Char('X'), ALT | SHIFT)),
            ("\u{1b}é", one(Char('é'), ALT)),
            ("\u{1b}\r", one(Enter, ALT)),
            ("\u{1b}\u{7f}", one(Backspace, ALT)),
            ("\u{1b}\u{1}", one(Char('a'), ALT | CTRL)),
            ("\u{1b}\u{3}", vec![key(Esc, NONE), interrupt()]),
            ("\u{1b}O", one(Char('O'), ALT | SHIFT)),
            ("\u{1b}[", one(Char('['), ALT)),
            ("\u{1b}]", one(Char(']'), ALT)),
            ("\u{1b}OA", one(Up, NONE)),
            ("\u{1b}OP", one(F(1), NONE)),
            ("\u{1b}OR", one(F(3), NONE)),
            ("\u{1b}OS", one(F(4), NONE)),
            ("\u{1b}OH", one(Home, NONE)),
            ("\u{1b}[A", one(Up, NONE)),
            ("\u{1b}[B", one(Down, NONE)),
            ("\u{1b}[C", one(Right, NONE)),
            ("\u{1b}[D", one(Left, NONE)),
            ("\u{1b}[H", one(Home, NONE)),
            ("\u{1b}[F", one(End, NONE)),
            ("\u{1b}[P", one(F(1), NONE)),
            ("\u{1b}[Z", one(BackTab, SHIFT)),
            ("\u{1b}[[A", one(F(1), NONE)),
            ("\u{1b}[[E", one(F(5), NONE)),
            ("\u{1b}[1;2A", one(Up, SHIFT)),
            ("\u{1b}[1;5C", one(Right, CTRL)),
            ("\u{1b}[5C", one(Right, CTRL)),
            ("\u{1b}[;3D", one(Left, ALT)),
            ("\u{1b}[1;5:3A", kind(Up, CTRL, KeyEventKind::Release)),
            ("\u{1b}[1;1:2A", kind(Up, NONE, KeyEventKind::Repeat)),
            ("\u{1b}[1;2R", one(F(3), SHIFT)),
            ("\u{1b}[1~", one(Home, NONE)),
            ("\u{1b}[2~", one(Insert, NONE)),
            ("\u{1b}[3~", one(Delete, NONE)),
            ("\u{1b}[3;2~", one(Delete, SHIFT)),
            ("\u{1b}[5~", one(PageUp, NONE)),
            ("\u{1b}[6;5~", one(PageDown, CTRL)),
            ("\u{1b}[11~", one(F(1), NONE)),
            ("\u{1b}[15~", one(F(5), NONE)),
            ("\u{1b}[17~", one(F(6), NONE)),
            ("\u{1b}[24~", one(F(12), NONE)),
            ("\u{1b}[34~", one(F(17), NONE)),
            ("\u{1b}[27;5;99~", one(Char('c'), CTRL)),
            ("\u{1b}[97u", one(Char('a'), NONE)),
            ("\u{1b}[97;5u", one(Char('a'), CTRL)),
            ("\u{1b}[99;5u", one(Char('c'), CTRL)),
            ("\u{1b}[97:65;2u", one(Char('A'), NONE)),
            ("\u{1b}[97;1:3u", kind(Char('a'), NONE, KeyEventKind::Release)),
            ("\u{1b}[27u", one(Esc, NONE)),
            ("\u{1b}[13;2u", one(Enter, SHIFT)),
            ("\u{1b}[9;2u", one(BackTab, SHIFT)),
            ("\u{1b}[127u", one(Backspace, NONE)),
            ("\u{1b}[57400u", one(Char('1'), NONE)),
            ("\u{1b}[57376u", one(F(13), NONE)),
            ("\u{1b}[I", vec![Event::FocusGained]),
            ("\u{1b}[O", vec![Event::FocusLost]),
            ("\u{1b}[<0;20;10M", vec![mouse(MouseEventKind::Down(left), 19, 9, NONE)]),
            ("\u{1b}[<0;20;10m", vec![mouse(MouseEventKind::Up(left), 19, 9, NONE)]),
            ("\u{1b}[<32;1;1M", vec![mouse(MouseEventKind::Drag(left), 0, 0, NONE)]),
            ("\u{1b}[<35;1;1M", vec![mouse(MouseEventKind::Moved, 0, 0, NONE)]),
            ("\u{1b}[<64;1;1M", vec![mouse(MouseEventKind::ScrollUp, 0, 0, NONE)]),
            ("\u{1b}[<69;1;1M", vec![mouse(MouseEventKind::ScrollDown, 0, 0, SHIFT)]),
            ("\u{1b}[32;30;40M", vec![mouse(MouseEventKind::Down(left), 29, 39, NONE)]),
            ("\u{1b}[M !!", vec![mouse(MouseEventKind::Down(left), 0, 0, NONE)]),
            ("\u{1b}[200~a\rb\u{1b}[201~c", vec![paste("a\rb"), c('c')]),
            ("\u{1b}[200~\u{1b}[201~", vec![paste("")]),
            (
                "\u{1b}[200~\u{1b}[31m\u{1b}\u{1b}[201\u{3}~宽\u{1b}[201~",
                vec![paste("\u{1b}[31m\u{1b}\u{1b}[201\u{3}~宽")],
            ),
            // Unrequested reports and invalid sequences.
            ("\u{1b}]11;rgb:0000/0000/0000\u{7}a", vec![c('a')]),
            ("\u{1b}P>|tmux 3.4\u{1b}\\a", vec![c('a')]),
            ("\u{1b}]11;x\u{1b}[Aa", vec![key(Up, NONE), c('a')]),
            ("\u{1b}[?62;22ca", vec![c('a')]),
            ("\u{1b}[12;40Ra", vec![c('a')]),
            ("\u{1b}[<0;0;0Ma", vec![c('a')]),
            ("\u{1b}[<999;1;1Ma", vec![c('a')]),
            ("\u{1b}[99999999999999999999ua", vec![c('a')]),
            ("\u{1b}[201~a", vec![c('a')]),
            ("\u{1b}[1;5\u{1b}[Aa", vec![key(Up, NONE), c('a')]),
            // Unfinished sequences.
            ("\u{1b}[<0;1", vec![]),
            ("\u{1b}[?", vec![]),
            ("\u{1b}[<0;1\u{3}q", vec![interrupt(), c('q')]),
            ("\u{1b}[?\u{3}", vec![interrupt()]),
            ("\u{1b}[M \u{3}", vec![interrupt()]),
            ("\u{1b}]52;\u{3}", vec![interrupt()]),
            ("\u{1b}[200~half", vec![paste("half")]),
            ("\u{1b}[200~\u{3}", vec![interrupt()]),
            ("\u{1b}[200~ab\u{3}q\u{3}\u{3}", vec![paste("abq"), interrupt(), interrupt()]),
        ]
    }

    #[test]
    fn each_key_is_what_its_terminal_means() {
        for (bytes, events) in table() {
            assert_eq!(read(&[bytes.as_bytes()]), events, "{bytes:?}");
        }
    }

    #[test]
    fn it_does_not_matter_where_bytes_are_cut() {
        let all: String = table().iter().map(|(bytes, _)| *bytes).collect();
        for text in table().iter().map(|(bytes, _)| *bytes).chain([all.as_str()]) {
            let bytes = text.as_bytes();
            let whole = read(&[bytes]);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(read(&single), whole, "{text:?}, byte by byte");
            for at in 0..bytes.len() {
                assert_eq!(read(&[&bytes[..at], &bytes[at..]]), whole, "{text:?} at {at}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_left_out() {
        for bytes in [
            &b"\xff\xfea"[..],
            b"\x80a",
            b"\xc3a",
            b"\xe2\x82a",
            b"\xf0\x9f\x99a",
            b"\xed\xa0\x80a",
        ] {
            assert_eq!(read(&[bytes]), [c('a')], "{bytes:?}");
        }
        assert_eq!(read(&[b"\x1b[1\xff;a"]), [c(';'), c('a')]);
        assert_eq!(read(&[b"\x1b[200~a\xffb\x1b[201~"]), [paste("a\u{fffd}b")]);
    }

    #[test]
    fn what_is_held_is_bounded() {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        parser.feed(b"\x1b[200~", |event| events.push(event));
        for _ in 0..300 {
            parser.feed(&[b'x'; 10_000], |event| events.push(event));
        }
        assert!(parser.held.capacity() <= 2 * MAX_PASTE_BYTES, "{}", parser.held.capacity());
        parser.feed(b"\x1b[201~q", |event| events.push(event));
        let [Event::Paste(text), last] = &events[..] else { panic!("{} events", events.len()) };
        assert_eq!((text.len(), last), (MAX_PASTE_BYTES, &c('q')));
        parser.feed(b"\x1b[200~", |_| {});
        parser.feed(&vec![b'x'; 2 * MAX_PASTE_BYTES], |_| {});
        parser.feed(b"\x03", |_| {});
        let mut events = Vec::new();
        parser.on_timeout(|event| events.push(event));
        assert_eq!(events[1..], [interrupt()], "Ctrl-C is kept in a paste without an end");

        for start in [&b"\x1b["[..], b"\x1b[<", b"\x1b]"] {
            let mut parser = Parser::default();
            parser.feed(start, |_| {});
            parser.feed(&[b'1'; 100_000], |_| {});
            assert!(parser.held.capacity() <= 2 * MAX_REPORT);
            assert_eq!(parser.state, ParserState::Ground, "{start:?} is given up");
        }
    }

    proptest! {
        /// Random bytes, mostly those that begin, continue or end a sequence.
        #[test]
        fn after_any_junk_ctrl_c_gets_through_at_once(
            junk in prop::collection::vec(
                prop_oneof![
                    3 => Just(ESC),
                    2 => prop::sample::select(&b"[O]P_^X<?M~u;:0129ABCR\x07\\"[..]),
                    2 => any::<u8>(),
                ],
                0..60,
            ),
            cut in 0usize..60,
        ) {
            let cut = cut.min(junk.len());
            prop_assert_eq!(read(&[&junk]), read(&[&junk[..cut], &junk[cut..]]));
            let mut bytes = junk.clone();
            bytes.push(INTERRUPT);
            let events = read(&[&bytes]);
            prop_assert_eq!(events.last(), Some(&interrupt()));

            // Also after a timeout between the two.
            let (mut parser, mut events) = (Parser::default(), Vec::new());
            parser.feed(&junk, |_| {});
            while parser.timeout().is_some() {
                parser.on_timeout(|_| {});
            }
            parser.feed(&[INTERRUPT, b'q'], |event| events.push(event));
            prop_assert_eq!(events, [interrupt(), c('q')]);
        }

        #[test]
        fn a_paste_is_one_event_whatever_it_holds(text in "\\PC{0,40}|[\\x00-\\x7f]{0,40}") {
            prop_assume!(!text.contains("\u{1b}[201~"));
            let bytes = format!("\u{1b}[200~{text}\u{1b}[201~q");
            prop_assert_eq!(read(&[bytes.as_bytes()]), [paste(&text), c('q')]);
        }
    }
}
