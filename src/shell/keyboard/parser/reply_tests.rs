//! Tests of the replies to a question of the program: they are never keys, however late and however
//! cut they arrive.

use std::time::Duration;

use proptest::prelude::*;

use super::tests::{c, read};
use super::*;

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
fn a_reply_is_taken_and_is_no_key() {
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
fn what_comes_of_a_reply_and_its_pieces() {
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

#[test]
fn escape_is_still_a_key_while_a_reply_is_expected() {
    let (events, parser) = asked(&[b"\x1b", b"q"], SEQUENCE_TIMEOUT);
    assert_eq!(events, [key(KeyCode::Esc, KeyModifiers::NONE), c('q')]);
    assert!(parser.awaits_reply());
}

#[test]
fn what_a_reply_may_swallow_is_bounded() {
    let (mut parser, mut events) = (Parser::default(), Vec::new());
    parser.await_reply();
    parser.feed(b"\x1b]11;rgb:", |_| {});
    parser.feed(&[b'f'; 100], |event| events.push(event));
    assert_eq!(events.len(), 96, "four digits are a channel, the others are keys");
}

proptest! {
    /// With the replies expected, or hours later.
    #[test]
    fn a_reply_cut_anywhere_gives_the_same_keys(
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
    fn ctrl_c_gets_through_any_part_of_a_reply(cut in 0usize..40, more in any::<bool>()) {
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
