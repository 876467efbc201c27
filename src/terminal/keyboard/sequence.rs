//! Decodes escape sequences: keys with modifiers, the mouse, focus. Numbered and lettered keys
//! follow xterm and rxvt, `CSI u` follows fixterms and kitty's keyboard protocol, which this
//! program does not request but some terminals send anyway.

use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

/// Decodes a sequence `ESC [ body end`. `None`: it has no effect.
pub(crate) fn event(body: &[u8], end: u8) -> Option<Event> {
    let body = std::str::from_utf8(body).ok()?;
    if let Some(report) = body.strip_prefix('<') {
        return mouse(report, 0, end == b'm').filter(|_| matches!(end, b'M' | b'm'));
    }
    let fields = SequenceParams::read(body)?;
    match end {
        b'I' if body.is_empty() => Some(Event::FocusGained),
        b'O' if body.is_empty() => Some(Event::FocusLost),
        b'Z' => {
            let KeyState { modifiers, kind } = fields.held();
            Some(key(KeyCode::BackTab, modifiers | KeyModifiers::SHIFT, kind))
        }
        b'M' => mouse(body, 32, false),
        b'~' => numbered(&fields),
        b'u' => coded(fields.number(0, 0)?, fields.number(0, 1), fields.held()),
        _ => lettered(&fields, end),
    }
}

/// Decodes a sequence `ESC O end`.
pub(crate) fn single(end: u8) -> Option<Event> {
    let code = match end {
        b'R' => KeyCode::F(3),
        _ => letter(end)?,
    };
    Some(key(code, KeyModifiers::NONE, KeyEventKind::Press))
}

/// Decodes the original mouse protocol: three bytes, each with an offset of 32.
pub(super) fn old_mouse(button: u8, col: u8, row: u8) -> Option<Event> {
    let number = |byte: u8| u16::from(byte).checked_sub(32);
    click(number(button)?, number(col)?, number(row)?, false)
}

/// The parameters between semicolons, each with its parts between colons; an empty part is `None`.
struct SequenceParams(Vec<Vec<Option<u32>>>);

/// The modifiers of a key event, and whether it is a press, repeat or release.
#[derive(Clone, Copy)]
struct KeyState {
    modifiers: KeyModifiers,
    kind: KeyEventKind,
}

impl SequenceParams {
    fn read(body: &str) -> Option<Self> {
        let number = |text: &str| match text {
            "" => Some(None),
            text => text.parse::<u32>().ok().map(Some),
        };
        let fields = body.split(';').map(|field| field.split(':').map(number).collect());
        fields.collect::<Option<_>>().map(Self)
    }

    fn number(&self, field: usize, part: usize) -> Option<u32> {
        *self.0.get(field)?.get(part)?
    }

    fn held(&self) -> KeyState {
        held(self.number(1, 0).unwrap_or(1), self.number(1, 1))
    }
}

fn held(mask: u32, kind: Option<u32>) -> KeyState {
    let bits = u8::try_from(mask).unwrap_or(1).saturating_sub(1);
    let all = [
        KeyModifiers::SHIFT,
        KeyModifiers::ALT,
        KeyModifiers::CONTROL,
        KeyModifiers::SUPER,
        KeyModifiers::HYPER,
        KeyModifiers::META,
    ];
    let modifiers = all.into_iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
    let kind = match kind {
        Some(2) => KeyEventKind::Repeat,
        Some(3) => KeyEventKind::Release,
        _ => KeyEventKind::Press,
    };
    KeyState { modifiers: modifiers.map(|(_, one)| one).collect(), kind }
}

/// Decodes `ESC [ number ~`.
fn numbered(fields: &SequenceParams) -> Option<Event> {
    let code = match fields.number(0, 0)? {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        n @ 11..=15 => function(n - 10)?,
        n @ 17..=21 => function(n - 11)?,
        n @ 23..=26 => function(n - 12)?,
        n @ 28..=29 => function(n - 15)?,
        n @ 31..=34 => function(n - 17)?,
        // xterm's modifyOtherKeys: the modifiers, then the code.
        27 => return coded(fields.number(2, 0)?, None, fields.held()),
        _ => return None,
    };
    let KeyState { modifiers, kind } = fields.held();
    Some(key(code, modifiers, kind))
}

/// Decodes `ESC [ 1 ; modifiers letter`, or `ESC [ letter`.
fn lettered(fields: &SequenceParams, end: u8) -> Option<Event> {
    let KeyState { modifiers, kind } = match fields.0.len() {
        // Some terminals send only the modifiers.
        1 => held(fields.number(0, 0).unwrap_or(1), None),
        _ => fields.held(),
    };
    let code = match end {
        // Otherwise it is a report of the cursor's position.
        b'R' if fields.0.len() == 2 && fields.number(0, 0) == Some(1) && !modifiers.is_empty() => {
            KeyCode::F(3)
        }
        _ => letter(end)?,
    };
    Some(key(code, modifiers, kind))
}

fn letter(end: u8) -> Option<KeyCode> {
    Some(match end {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'P' => KeyCode::F(1),
        b'Q' => KeyCode::F(2),
        b'S' => KeyCode::F(4),
        _ => return None,
    })
}

/// Decodes a key by its character code; `shifted` is the character with Shift.
fn coded(code: u32, shifted: Option<u32>, held: KeyState) -> Option<Event> {
    let KeyState { mut modifiers, kind } = held;
    let mut code = match code {
        9 if modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
        9 => KeyCode::Tab,
        13 => KeyCode::Enter,
        27 => KeyCode::Esc,
        8 | 127 => KeyCode::Backspace,
        0xe000..=0xf8ff => functional(code)?,
        _ => KeyCode::Char(char::from_u32(code).filter(|c| !c.is_control())?),
    };
    if let Some(c) = shifted.and_then(char::from_u32).filter(|c| !c.is_control())
        && modifiers.contains(KeyModifiers::SHIFT)
        && matches!(code, KeyCode::Char(_))
    {
        code = KeyCode::Char(c);
        modifiers.remove(KeyModifiers::SHIFT);
    }
    Some(key(code, modifiers, kind))
}

/// The keys that kitty's protocol encodes in the private use area: the keypad, and function keys
/// from F13.
fn functional(code: u32) -> Option<KeyCode> {
    Some(match code {
        57376..=57398 => return function(code - 57376 + 13),
        57399..=57408 => KeyCode::Char(char::from_digit(code - 57399, 10)?),
        57409 => KeyCode::Char('.'),
        57410 => KeyCode::Char('/'),
        57411 => KeyCode::Char('*'),
        57412 => KeyCode::Char('-'),
        57413 => KeyCode::Char('+'),
        57414 => KeyCode::Enter,
        57415 => KeyCode::Char('='),
        57416 => KeyCode::Char(','),
        57417 => KeyCode::Left,
        57418 => KeyCode::Right,
        57419 => KeyCode::Up,
        57420 => KeyCode::Down,
        57421 => KeyCode::PageUp,
        57422 => KeyCode::PageDown,
        57423 => KeyCode::Home,
        57424 => KeyCode::End,
        57425 => KeyCode::Insert,
        57426 => KeyCode::Delete,
        _ => return None,
    })
}

fn function(number: u32) -> Option<KeyCode> {
    u8::try_from(number).ok().map(KeyCode::F)
}

/// Decodes `button ; column ; row`; `more` is the offset of the button.
fn mouse(report: &str, more: u16, is_up: bool) -> Option<Event> {
    let mut numbers = report.split(';').map(|number| number.parse::<u16>().ok());
    let (button, col, row) = (numbers.next()??, numbers.next()??, numbers.next()??);
    click(button.checked_sub(more)?, col, row, is_up)
}

/// A mouse event from xterm's button bits and positions, which are counted from 1.
fn click(button: u16, col: u16, row: u16, is_up: bool) -> Option<Event> {
    let bits = u8::try_from(button).ok()?;
    let is_drag = bits & 32 != 0;
    let kind = match ((bits & 3) | (bits & 0xc0) >> 4, is_drag) {
        (0, false) => MouseEventKind::Down(MouseButton::Left),
        (1, false) => MouseEventKind::Down(MouseButton::Middle),
        (2, false) => MouseEventKind::Down(MouseButton::Right),
        (0, true) => MouseEventKind::Drag(MouseButton::Left),
        (1, true) => MouseEventKind::Drag(MouseButton::Middle),
        (2, true) => MouseEventKind::Drag(MouseButton::Right),
        (3, false) => MouseEventKind::Up(MouseButton::Left),
        (3..=5, true) => MouseEventKind::Moved,
        (4, false) => MouseEventKind::ScrollUp,
        (5, false) => MouseEventKind::ScrollDown,
        (6, false) => MouseEventKind::ScrollLeft,
        (7, false) => MouseEventKind::ScrollRight,
        _ => return None,
    };
    let kind = match kind {
        MouseEventKind::Down(button) if is_up => MouseEventKind::Up(button),
        kind => kind,
    };
    let all = [(4, KeyModifiers::SHIFT), (8, KeyModifiers::ALT), (16, KeyModifiers::CONTROL)];
    let modifiers = all.into_iter().filter(|(bit, _)| bits & bit != 0).map(|(_, one)| one);
    Some(Event::Mouse(MouseEvent {
        kind,
        column: col.checked_sub(1)?,
        row: row.checked_sub(1)?,
        modifiers: modifiers.collect(),
    }))
}

fn key(code: KeyCode, modifiers: KeyModifiers, kind: KeyEventKind) -> Event {
    Event::Key(KeyEvent::new_with_kind(code, modifiers, kind))
}
