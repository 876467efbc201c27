//! Tests of the parser.
//!
//! Tests of the replies to a question of the program: they are never keys, however late and however
//! cut they arrive.

use std::time::Duration;

use crossterm::event::{KeyEventKind, MouseButton, MouseEvent, MouseEventKind};
use proptest::prelude::*;

use super::*;

const NONE: KeyModifiers = KeyModifiers::NONE;
const SHIFT: KeyModifiers = KeyModifiers::SHIFT;
const ALT: KeyModifiers = KeyModifiers::ALT;
const CTRL: KeyModifiers = KeyModifiers::CONTROL;

/// The events of these reads, with a timeout after the last.
pub(crate) fn read(reads: &[&[u8]]) -> Vec<Event> {
    let (mut parser, mut events) = (Parser::default(), Vec::new());
    for bytes in reads {
        parser.feed(bytes, |event| events.push(event));
    }
    while parser.timeout().is_some() {
        parser.on_timeout(|event| events.push(event));
    }
    events
}

pub(crate) fn c(c: char) -> Event {
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
        BackTab, Backspace, Char, Delete, Down, End, Enter, Esc, F, Home, Insert, Left, PageDown,
        PageUp, Right, Tab, Up,
    };
    let left = MouseButton::Left;
    let one = |code, modifiers| vec![key(code, modifiers)];
    let kind =
        |code, modifiers, kind| vec![Event::Key(KeyEvent::new_with_kind(code, modifiers, kind))];
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
fn parses_each_key_sequence() {
    for (bytes, events) in table() {
        assert_eq!(read(&[bytes.as_bytes()]), events, "{bytes:?}");
    }
}

#[test]
fn splits_never_change_keys() {
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
fn skips_bytes_that_are_not_text() {
    for bytes in
        [&b"\xff\xfea"[..], b"\x80a", b"\xc3a", b"\xe2\x82a", b"\xf0\x9f\x99a", b"\xed\xa0\x80a"]
    {
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
        assert_eq!(parser.timeout(), Some(REST_TIMEOUT), "{start:?} is skipped");
        parser.on_timeout(|event| panic!("{event:?}"));
        assert_eq!(parser.state, ParserState::Ground, "{start:?} is given up");
    }
}

proptest! {
    /// Random bytes, mostly those that begin, continue or end a sequence.
    #[test]
    fn ctrl_c_passes_after_junk(
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
    fn paste_is_one_event(text in "\\PC{0,40}|[\\x00-\\x7f]{0,40}") {
        prop_assume!(!text.contains("\u{1b}[201~"));
        let bytes = format!("\u{1b}[200~{text}\u{1b}[201~q");
        prop_assert_eq!(read(&[bytes.as_bytes()]), [paste(&text), c('q')]);
    }
}

#[test]
fn key_after_stalled_paste_is_key() {
    let stalled = |next: &[&[u8]]| {
        let (mut parser, mut events) = (Parser::default(), Vec::new());
        let mut give = |event| events.push(event);
        parser.feed(b"\x1b[200~a long text", &mut give);
        assert_eq!(parser.timeout(), Some(PASTE_STALL));
        parser.on_timeout(&mut give);
        next.iter().for_each(|bytes| parser.feed(bytes, &mut give));
        (parser.timeout(), events)
    };
    let paste = || Event::Paste("a long text".to_owned());
    assert_eq!(stalled(&[b"q"]), (None, vec![paste(), character('q', NONE)]));
    assert_eq!(stalled(&[b"\x1b[A"]), (None, vec![paste(), key(KeyCode::Up, NONE)]));
    // A link that stalled goes on with more than a key, or with the end.
    let whole = |rest: &str| Event::Paste(format!("a long text{rest}"));
    assert_eq!(stalled(&[b"\x1b[201~"]), (None, vec![paste()]));
    assert_eq!(stalled(&[b" more text\x1b[201~"]), (None, vec![whole(" more text")]));
    assert_eq!(stalled(&[b"xy\x1b[201~"]), (None, vec![whole("xy")]));
    assert_eq!(stalled(&[b" more text than a key"]).1, []);
}

#[test]
fn long_reports_give_no_keys() {
    let long = "q".repeat(100_000);
    for text in [
        format!("\x1b]52;c;{long}\x07x"),
        format!("\x1b]11;{long}\x1b\\x"),
        format!("\x1bP{long}\x1b\\x"),
        format!("\x1b[{}mx", "1;".repeat(50_000)),
    ] {
        let (mut parser, mut events) = (Parser::default(), Vec::new());
        parser.feed(text.as_bytes(), |event| events.push(event));
        assert_eq!(events, [character('x', NONE)], "{:?}", &text[..12]);
        assert_eq!(parser.timeout(), None);
        assert!(parser.held.capacity() < 2 * MAX_REPORT, "{}", parser.held.capacity());
    }
    let mut parser = Parser::default();
    parser.feed(format!("\x1b]52;c;{long}").as_bytes(), |_| {});
    assert_eq!(parser.timeout(), Some(REST_TIMEOUT), "an unfinished one ends");
}

const COLOUR: &str = "\u{1b}]11;rgb:1e1e/F0f0/2e2e\u{1b}\\";
const WITH_BELL: &str = "\u{1b}]11;rgb:ffff/ffff/ffff\u{7}";
const WITH_ALPHA: &str = "\u{1b}]11;rgba:ff/ff/ff/80\u{7}";
const ATTRIBUTES: &str = "\u{1b}[?62;22c";

/// The events of these reads while a reply is expected, with a pause after each.
fn asked(reads: &[&[u8]], pause: Duration) -> (Vec<Event>, Parser) {
    let (mut parser, mut events) = (Parser::default(), Vec::new());
    parser.await_reply();
    for bytes in reads {
        parser.feed(bytes, |event| events.push(event));
        while parser.timeout().is_some_and(|timeout| timeout <= pause) {
            parser.on_timeout(|event| events.push(event));
        }
    }
    while parser.timeout().is_some() {
        parser.on_timeout(|event| events.push(event));
    }
    (events, parser)
}

/// A pause that ends no piece of a reply, not even its first byte.
const PAUSE: Duration = Duration::from_millis(200);

fn keys(text: &str) -> Vec<Event> {
    text.chars().map(c).collect()
}

#[test]
fn reply_never_becomes_key() {
    for (reply, colour) in [
        (COLOUR, "rgb:1e1e/F0f0/2e2e"),
        (WITH_BELL, "rgb:ffff/ffff/ffff"),
        (WITH_ALPHA, "rgba:ff/ff/ff/80"),
    ] {
        let text = format!("j{reply}{ATTRIBUTES}k");
        let (events, mut parser) = asked(&[text.as_bytes()], PAUSE);
        assert_eq!(events, keys("jk"), "{reply:?}");
        assert_eq!(parser.take_colour().as_deref(), Some(colour.as_bytes()));
        assert!(!parser.awaits_reply());
    }
}

#[test]
fn parses_reply_in_pieces() {
    for (reads, left) in [
        // Only the attributes: the terminal does not know the question.
        (&["j", ATTRIBUTES, "k"][..], "jk"),
        // The colour comes last, as from GNU screen.
        (&[ATTRIBUTES, COLOUR, "k"], "k"),
        (&[ATTRIBUTES, "\u{1b}]11;rgb:1e1e/", "1e1e/1e1e\u{7}k"], "k"),
        // Keys in the middle of it.
        (&["\u{1b}]", "q", "11;rgb:1e1e/1e1e/1e1e\u{7}k"], "qk"),
        (&["\u{1b}]1", "q", "1;rgb:1e1e/1e1e/1e1e\u{7}k"], "qk"),
        (&["\u{1b}]11;rgb:1e1e/1", "jq", "e1e/1e1e\u{7}", ATTRIBUTES, "k"], "jqk"),
        (&["\u{1b}]11;rgb:1e1e/1e1e/1e1e", "q", "\u{1b}\\k"], "qk"),
        (&["\u{1b}[?6", "q", "2;22ck"], "qk"),
        // It is cut off, and the rest never comes.
        (&["\u{1b}]11;rgb:1e1e/", "q"], "q"),
        (&["\u{1b}]11;", "q"], "q"),
        (&["\u{1b}[?62", "q"], "q"),
        // Another report, which was not requested.
        (&["\u{1b}]10;rgb:ffff/ffff/ffff\u{7}", "k"], "k"),
        (&["\u{1b}]52;c;aGk=\u{7}", "k"], "k"),
    ] {
        let bytes: Vec<&[u8]> = reads.iter().map(|read| read.as_bytes()).collect();
        assert_eq!(asked(&bytes, PAUSE).0, keys(left), "{reads:?}");
    }
    let (events, _) = asked(&[b"\x1b]11;rgb:1e", b"\x1b[A"], PAUSE);
    assert_eq!(events, [key(KeyCode::Up, KeyModifiers::NONE)]);
    let (events, _) = asked(&[b"\x1b]11;rgb:1e", b"\x03", b"q"], PAUSE);
    assert_eq!(events, [interrupt(), c('q')]);
    let (events, _) = asked(&["\u{1b}]11;rgb:1e/é".as_bytes(), b"q"], PAUSE);
    assert_eq!(events, [c('é'), c('q')]);
}

/// Answers of a terminal to questions of a shell or an editor before.
const REPORTS: [&str; 20] = [
    "\u{1b}[?997;1n",
    "\u{1b}[?2026;2$y",
    "\u{1b}[?1u",
    "\u{1b}[?0u",
    "\u{1b}[?12;40R",
    "\u{1b}[?1;0;256S",
    "\u{1b}[4;1$y",
    "\u{1b}[0n",
    "\u{1b}[12;40R",
    "\u{1b}[>1;4000;0c",
    "\u{1b}[>4;1m",
    "\u{1b}[8;24;80t",
    "\u{1b}P>|XTerm(390)\u{1b}\\",
    "\u{1b}P!|00000000\u{1b}\\",
    "\u{1b}P1$r0 q\u{1b}\\",
    "\u{1b}P1+r544e=78\u{7}",
    "\u{1b}_Gi=1;OK\u{1b}\\",
    "\u{1b}]52;c;cXVpdA==\u{7}",
    "\u{1b}]4;1;rgb:aaaa/0000/0000\u{1b}\\",
    "\u{1b}]ltitle quit\u{1b}\\",
];

#[test]
fn reports_are_never_keys() {
    for report in REPORTS {
        let text = format!("j{report}k");
        for at in 1..text.len() {
            let pieces = [&text.as_bytes()[..at], &text.as_bytes()[at..]];
            assert_eq!(asked(&pieces, PAUSE).0, keys("jk"), "{report:?} at {at}, asked");
            let (mut parser, mut events) = (Parser::default(), Vec::new());
            parser.set_escape_timeout(PAUSE + PAUSE);
            for piece in pieces {
                parser.feed(piece, |event| events.push(event));
                if parser.timeout().is_some_and(|timeout| timeout <= PAUSE) {
                    parser.on_timeout(|event| events.push(event));
                }
            }
            assert_eq!(events, keys("jk"), "{report:?} at {at}");
        }
    }
}

/// A pause between two pieces of input on a slow link.
const CUT: Duration = Duration::from_millis(100);

#[test]
fn cut_keys_stay_whole() {
    for (bytes, event) in [
        ("\u{1b}[B", key(KeyCode::Down, NONE)),
        ("\u{1b}OB", key(KeyCode::Down, NONE)),
        ("\u{1b}[1;5C", key(KeyCode::Right, CTRL)),
        ("\u{1b}[[A", key(KeyCode::F(1), NONE)),
        ("\u{1b}[3~", key(KeyCode::Delete, NONE)),
        ("\u{1b}[<0;20;10M", mouse(MouseEventKind::Down(MouseButton::Left), 19, 9, NONE)),
        ("\u{1b}[M !!", mouse(MouseEventKind::Down(MouseButton::Left), 0, 0, NONE)),
        ("\u{1b}[200~quit\u{1b}[201~", paste("quit")),
        ("é", c('é')),
    ] {
        for at in 1..bytes.len() {
            let (mut parser, mut events) = (Parser::default(), Vec::new());
            for piece in [&bytes.as_bytes()[..at], &bytes.as_bytes()[at..]] {
                parser.feed(piece, |event| events.push(event));
                if parser.timeout().is_some_and(|timeout| timeout <= CUT) {
                    parser.on_timeout(|event| events.push(event));
                }
            }
            assert_eq!(events, std::slice::from_ref(&event), "{bytes:?} at {at}");
        }
    }
    // Where the link is fast, Escape need not wait.
    let mut parser = Parser::default();
    parser.set_escape_timeout(Duration::from_millis(10));
    parser.feed(b"\x1b", |event| panic!("{event:?}"));
    assert_eq!(parser.timeout(), Some(Duration::from_millis(10)));
}

#[test]
fn escape_works_while_awaiting_reply() {
    let (events, parser) = asked(&[b"\x1b", b"q"], SEQUENCE_TIMEOUT);
    assert_eq!(events, [key(KeyCode::Esc, KeyModifiers::NONE), c('q')]);
    assert!(parser.awaits_reply());
}

#[test]
fn reply_swallows_bounded_bytes() {
    let (mut parser, mut events) = (Parser::default(), Vec::new());
    parser.await_reply();
    parser.feed(b"\x1b]11;rgb:", |_| {});
    parser.feed(&[b'f'; 100], |event| events.push(event));
    assert_eq!(events.len(), 96, "four digits are a channel, the others are keys");
}

proptest! {
    /// With the replies expected, or hours later.
    #[test]
    fn split_reply_gives_same_keys(
        before in "[a-zA-Z0-9:?/]{0,4}",
        after in "[a-zA-Z0-9:?/]{0,4}",
        colour in prop::sample::select(&[COLOUR, WITH_BELL, WITH_ALPHA, ""][..]),
        attributes in prop::sample::select(&[ATTRIBUTES, "\u{1b}[?6c"][..]),
        cuts in prop::collection::vec(0usize..64, 0..6),
    ) {
        let text = format!("{before}{colour}{attributes}{after}");
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.sort_unstable();
        cuts.push(text.len());
        let mut from = 0;
        let mut pieces: Vec<&[u8]> = Vec::new();
        for cut in cuts {
            pieces.push(&text.as_bytes()[from..cut]);
            from = cut;
        }
        let typed = read(&[before.as_bytes(), after.as_bytes()]);
        prop_assert_eq!(&asked(&pieces, PAUSE).0, &typed);
        // It is no longer expected: in one piece or in several reads.
        prop_assert_eq!(read(&pieces), typed);
    }

    #[test]
    fn ctrl_c_passes_within_reply(cut in 0usize..40, more in any::<bool>()) {
        let text = format!("{COLOUR}{ATTRIBUTES}");
        let cut = cut.min(text.len());
        let mut bytes = text.as_bytes()[..cut].to_vec();
        bytes.push(INTERRUPT);
        if more {
            bytes.push(b'q');
        }
        let events = asked(&[&bytes], PAUSE).0;
        prop_assert!(events.contains(&interrupt()), "{:?}", events);
        prop_assert_eq!(events.last() == Some(&c('q')), more);
    }
}
