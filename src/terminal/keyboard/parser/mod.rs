//! Parses a terminal's bytes into events, also the late or divided reply to the question for its
//! background colour (`OSC 11`). The state machine takes one byte at a time, so the result does not
//! depend on the size of reads. Its memory is bounded, and unfinished sequences time out.
//!
//! Ctrl-C works in every state: immediately within a sequence, and after a short silence within a
//! paste. The states follow ECMA-48; the keys are those of crossterm's own parser, which is not
//! public and waits for the end of a sequence without a timeout.

#[cfg(test)]
mod tests;

use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

use super::sequence;
use crate::scenario::config::ESCAPE_TIMEOUT;

const ESC: u8 = 0x1b;
const INTERRUPT: u8 = 0x03;

/// Timeout for the first byte of a sequence: without one it is a key with Alt.
const SEQUENCE_TIMEOUT: Duration = Duration::from_millis(250);

/// Timeout for the next byte of a sequence or report that has begun. Long, so that a stalled link does
/// not turn its rest into keys.
const REST_TIMEOUT: Duration = Duration::from_secs(2);

/// Timeout for the next byte of a paste. Long, so that a stalled link does not turn text into keys.
const PASTE_TIMEOUT: Duration = Duration::from_secs(2);

/// Silence after which a paste has stalled: a few bytes alone are then a key that was pressed.
const PASTE_STALL: Duration = Duration::from_millis(250);

/// Maximum bytes of a key.
const KEY_BYTES: usize = 8;

/// Silence after which a Ctrl-C is a key and not part of the paste.
const PASTE_INTERRUPT_TIMEOUT: Duration = Duration::from_millis(100);

/// Length limit of a key or mouse sequence, in bytes after its introducer.
const MAX_SEQUENCE: usize = 128;

/// Bytes of a terminal report that are kept; the rest is skipped up to its end.
const MAX_REPORT: usize = 4096;

/// Length limit of a paste, in bytes; the rest is dropped.
pub const MAX_PASTE_BYTES: usize = 1 << 20;

/// The last bytes of the other reports that begin with `CSI ?`: a state (`n`, such as the colour scheme),
/// a mode (`$y`), the flags of kitty's keyboard (`u`), the cursor (`R`), graphics (`S`).
const ENDS_OF_REPORTS: &[u8] = b"nyuRS";

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
#[derive(Debug)]
pub struct Parser {
    /// Timeout after which a lone ESC is the Escape key.
    escape_timeout: Duration,
    state: ParserState,
    /// Bytes of the current sequence, character or paste.
    held: Vec<u8>,
    /// The paste stopped in the middle.
    is_stalled: bool,
    /// The terminal was queried and has not answered everything.
    awaits_reply: bool,
    /// The reply, until it is taken.
    colour: Option<Vec<u8>>,
}

impl Default for Parser {
    fn default() -> Self {
        Self {
            escape_timeout: ESCAPE_TIMEOUT,
            state: ParserState::Ground,
            held: Vec::new(),
            is_stalled: false,
            awaits_reply: false,
            colour: None,
        }
    }
}

impl Parser {
    /// Sets how long a lone ESC waits for the rest of a sequence.
    pub fn set_escape_timeout(&mut self, timeout: Duration) {
        self.escape_timeout = timeout;
    }

    /// Expects a background colour (`OSC 11`), and the attributes (`CSI c`), which end the waiting.
    pub fn await_reply(&mut self) {
        self.awaits_reply = true;
    }

    /// No longer expects the replies.
    pub fn give_up_reply(&mut self) {
        self.awaits_reply = false;
    }

    /// Whether the replies are still expected.
    pub fn awaits_reply(&self) -> bool {
        self.awaits_reply
    }

    /// Takes the background colour that the terminal has named, such as `rgb:ffff/ffff/ffff`.
    pub fn take_colour(&mut self) -> Option<Vec<u8>> {
        self.colour.take()
    }

    /// Consumes bytes and emits the events that they complete.
    pub fn feed(&mut self, bytes: &[u8], mut give: impl FnMut(Event)) {
        if std::mem::take(&mut self.is_stalled)
            && bytes.len() <= KEY_BYTES
            && !self.ends_paste(bytes)
        {
            self.end_paste(&mut give);
        }
        for byte in bytes {
            self.byte(*byte, &mut give);
        }
    }

    /// How long to wait for more bytes before [`on_timeout`](Self::on_timeout). `None`: nothing is
    /// pending.
    pub fn timeout(&self) -> Option<Duration> {
        match self.state {
            ParserState::Ground => None,
            ParserState::Escape if self.awaits_reply => {
                Some(self.escape_timeout.max(SEQUENCE_TIMEOUT))
            }
            ParserState::Escape => Some(self.escape_timeout),
            ParserState::Paste { .. } if self.held.last() == Some(&INTERRUPT) => {
                Some(PASTE_INTERRUPT_TIMEOUT)
            }
            ParserState::Paste { .. } if !self.is_stalled => Some(PASTE_STALL),
            ParserState::Paste { .. } => Some(PASTE_TIMEOUT - PASTE_STALL),
            // It may be a complete key with Alt, so the timeout is short.
            ParserState::Single | ParserState::Sequence | ParserState::Report { .. }
                if self.held.is_empty() && !self.is_within_reply() =>
            {
                Some(SEQUENCE_TIMEOUT)
            }
            _ => Some(REST_TIMEOUT),
        }
    }

    /// Ends the pending input after the timeout: it is a key by itself, or is dropped.
    pub fn on_timeout(&mut self, mut give: impl FnMut(Event)) {
        if self.is_within_reply() {
            return self.reset();
        }
        if let ParserState::Paste { .. } = self.state {
            if self.is_stalled || self.held.last() == Some(&INTERRUPT) {
                self.end_paste(&mut give);
            } else {
                self.is_stalled = true;
            }
            return;
        }
        let held = std::mem::take(&mut self.held);
        match std::mem::take(&mut self.state) {
            ParserState::Escape => give(key(KeyCode::Esc, KeyModifiers::NONE)),
            ParserState::Single => give(character('O', KeyModifiers::ALT)),
            ParserState::Sequence if held.is_empty() => give(character('[', KeyModifiers::ALT)),
            ParserState::Report { introducer, .. } if held.is_empty() => {
                give(character(introducer.into(), KeyModifiers::ALT));
            }
            _ => {}
        }
    }

    /// Ends a paste that has no end marker: a Ctrl-C in it was pressed by the operator.
    fn end_paste(&mut self, give: &mut impl FnMut(Event)) {
        let held = std::mem::take(&mut self.held);
        self.reset();
        let (interrupts, text): (Vec<u8>, Vec<u8>) =
            held.into_iter().partition(|byte| *byte == INTERRUPT);
        if !text.is_empty() {
            give(pasted(&text));
        }
        for _ in interrupts.iter().take(2) {
            give(interrupt());
        }
    }

    /// Whether these bytes may contain the rest of the end marker.
    fn ends_paste(&self, bytes: &[u8]) -> bool {
        let ParserState::Paste { ends } = self.state else { return false };
        let rest = &PASTE_ENDS[ends..];
        let goes_on = ends > 0 && rest.starts_with(&bytes[..bytes.len().min(rest.len())]);
        goes_on || bytes.windows(PASTE_ENDS.len()).any(|part| part == PASTE_ENDS)
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

    /// Whether the pending bytes are, or may be, a reply of the terminal.
    fn is_within_reply(&self) -> bool {
        let awaited = self.awaits_reply;
        match self.state {
            ParserState::Sequence => awaited && self.held.first().is_none_or(|it| *it == b'?'),
            ParserState::Report { introducer: b']', .. } => {
                is_reply_colour(&self.held, awaited)
                    || (awaited && b"11;".starts_with(self.held.as_slice()))
            }
            _ => false,
        }
    }

    /// Gives a key that was pressed while a reply arrives; the rest of the reply is still expected.
    fn key_within_reply(&mut self, byte: u8, give: &mut impl FnMut(Event)) {
        match byte {
            b' '..=b'~' => give(character(byte.into(), KeyModifiers::NONE)),
            0x80.. => self.first_byte(byte, false, give),
            _ => control(byte, KeyModifiers::NONE).into_iter().for_each(give),
        }
    }

    /// Returns to the ground state.
    fn reset(&mut self) {
        self.state = ParserState::Ground;
        self.is_stalled = false;
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
        let is_attributes = self.awaits_reply && self.held.first() == Some(&b'?');
        match byte {
            b'0'..=b'9' | b';' | b'$' | ESC if is_attributes && self.held.len() < MAX_SEQUENCE => {}
            b'c' if is_attributes => self.awaits_reply = false,
            _ if is_attributes && ENDS_OF_REPORTS.contains(&byte) => {}
            _ if is_attributes => return self.key_within_reply(byte, give),
            _ => {}
        }
        match byte {
            b'[' if self.held.is_empty() => self.state = ParserState::Console,
            b'M' if self.held.is_empty() => self.state = ParserState::Mouse,
            b' '..=b'?' if self.held.len() < MAX_SEQUENCE => self.held.push(byte),
            // Too long for a key: skipped up to its end, or its rest would be taken for keys.
            b' '..=b'?' => {}
            b'@'..=b'~' if self.held.len() >= MAX_SEQUENCE => self.reset(),
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
            b'\\' if escaped => self.end_report(introducer),
            _ if escaped => {
                self.reset();
                self.state = ParserState::Escape;
                self.byte(byte, give);
            }
            0x07 => self.end_report(introducer),
            ESC if self.held.is_empty() && !self.is_within_reply() => {
                give(character(introducer.into(), KeyModifiers::ALT));
                self.state = ParserState::Escape;
            }
            ESC => self.state = ParserState::Report { introducer, escaped: true },
            _ if introducer == b']'
                && classify_reply_byte(&self.held, byte, self.awaits_reply) == ReportByte::Key =>
            {
                self.key_within_reply(byte, give);
            }
            _ if self.held.len() < MAX_REPORT => self.held.push(byte),
            _ => {}
        }
    }

    fn end_report(&mut self, introducer: u8) {
        if introducer == b']' && self.awaits_reply {
            self.colour = reply_colour(&self.held).map(<[u8]>::to_vec);
        }
        self.reset();
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

/// The bytes before the colour in the reply.
const COLOUR_STARTS: &[u8] = b"11;";

/// The beginning that no other report has.
const UNMISTAKABLE: &[u8] = b"11;rgb";

/// Maximum hexadecimal digits of one channel.
const MAX_DIGITS: usize = 4;

/// The meaning of a byte within a report `ESC ]`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReportByte {
    Part,
    /// A key that was pressed while the reply arrived: it cannot be a part of it.
    Key,
}

/// The meaning of the next byte after these bytes of a report `ESC ]`. `awaited`: the terminal has been
/// asked and has not answered.
fn classify_reply_byte(held: &[u8], byte: u8, awaited: bool) -> ReportByte {
    if is_beginning(held, byte) {
        return ReportByte::Part;
    }
    let is_number = held.iter().all(u8::is_ascii_digit);
    // The number of another report, or the end of its number.
    let continues_number = byte.is_ascii_digit() || (byte == b';' && !held.is_empty());
    // The title or the icon's name: `l` or `L`, then the text.
    let is_title = held.is_empty() && matches!(byte, b'l' | b'L');
    match is_reply_colour(held, awaited) || (awaited && is_number && !continues_number && !is_title)
    {
        true => ReportByte::Key,
        false => ReportByte::Part,
    }
}

/// Whether these bytes of a report `ESC ]` belong to the reply.
fn is_reply_colour(held: &[u8], awaited: bool) -> bool {
    held.starts_with(UNMISTAKABLE) || (awaited && held.starts_with(COLOUR_STARTS))
}

/// The colour of a whole reply.
fn reply_colour(held: &[u8]) -> Option<&[u8]> {
    held.strip_prefix(COLOUR_STARTS)
}

/// Whether the reply may begin with these bytes: `11;rgb:` or `11;rgba:`, then three or four
/// channels with a slash between them.
fn is_beginning(held: &[u8], byte: u8) -> bool {
    let bytes = || held.iter().copied().chain([byte]);
    let follows = |start: &[u8], channels: usize| {
        let mut rest = bytes();
        for expected in start {
            match rest.next() {
                None => return true,
                Some(byte) if byte == *expected => {}
                Some(_) => return false,
            }
        }
        let (mut channel, mut digits) = (1, 0);
        rest.all(|byte| match byte {
            b'/' if digits > 0 && channel < channels => {
                (channel, digits) = (channel + 1, 0);
                true
            }
            _ if byte.is_ascii_hexdigit() => {
                digits += 1;
                digits <= MAX_DIGITS
            }
            _ => false,
        })
    };
    follows(b"11;rgb:", 3) || follows(b"11;rgba:", 4)
}
