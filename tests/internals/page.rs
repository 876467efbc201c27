//! The page of a run: one well-formed document, with any texts.

use std::sync::Arc;

use crate::log::event::redact::TextRedactor;
use crate::log::event::{AttemptFailed, Event, EventKind, FailureClass, World};
use crate::support::table;
use crate::words::page::RunPageWriter;

const HOSTILE: &str =
    "</pre></details><script>alert('x')</script> \"><img src=x onerror=1>& \u{202e}\u{0}\u{1b}[2J";

fn page<'e>(events: impl IntoIterator<Item = &'e Event> + Clone) -> String {
    let whole = World::from_events(events.clone());
    let mut out = Vec::new();
    let mut page = RunPageWriter::begin(&mut out, &whole).expect("begins");
    for event in events {
        page.event(event).expect("written");
    }
    page.end().expect("ends");
    String::from_utf8(out).expect("text")
}

/// The faults of the markup: unknown elements or attributes, and elements that are not closed.
fn markup_errors(page: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    let body = page.split_once("</style>").expect("a style sheet").1;
    open.extend(["html", "head"]);
    for piece in body.split('<').skip(1) {
        let Some((tag, _)) = piece.split_once('>') else {
            wrong.push(format!("not a tag: {piece:.60}"));
            continue;
        };
        if let Some(closed) = tag.strip_prefix('/') {
            if open.pop() != Some(closed) {
                wrong.push(format!("</{closed}> closes another element"));
            }
            continue;
        }
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "#- =\"".contains(c);
        let known = [
            "body", "header", "h1", "h2", "h3", "p", "pre", "dl", "dt", "dd", "nav", "ul", "li",
            "a", "main", "section", "details", "summary", "span", "time",
        ];
        let has_known =
            ["class=", "id=", "href=\"#", ""].iter().any(|it| attributes.starts_with(it));
        if !known.contains(&name) || !attributes.chars().all(is_plain) || !has_known {
            wrong.push(format!("<{tag}>"));
        }
        open.push(name);
    }
    if !open.is_empty() {
        wrong.push(format!("left open: {open:?}"));
    }
    let steers = |c: char| c != '\n' && crate::base::visible::is_hostile(c) && c != '\t';
    wrong.extend(page.chars().any(steers).then(|| "a control character".to_owned()));
    wrong
}

#[test]
fn shipped_pages_are_complete() {
    for name in table::offline_scenarios() {
        let events = table::shipped_log(name);
        let plain = page(events.iter().map(|event| &**event));
        assert_eq!(markup_errors(&plain), [""; 0], "{}", name);
        assert!(!plain.contains("http://") || !plain.contains("src="), "{}", name);
        let calls = events.iter().filter(|it| matches!(it.kind, EventKind::CallStarted(_))).count();
        let parts = plain.matches("<section class=\"call\"").count();
        assert_eq!(parts, calls, "{}: every call has its part", name);
        for link in plain.split("href=\"#").skip(1) {
            let id = link.split('"').next().expect("its end");
            assert!(plain.contains(&format!("id=\"{id}\"")), "{}: {id}", name);
        }
        let named = plain.matches("<li><a href").count();
        assert!(named > 2, "{}: {named} parts are named", name);
        let mut by = TextRedactor::new([1; 32]);
        let without: Vec<Event> = events.iter().map(|it| by.redact(Event::clone(it))).collect();
        let redacted = page(&without);
        assert_eq!(markup_errors(&redacted), [""; 0], "{}", name);
        assert!(redacted.contains("redacted: lengths and digests only"), "{}", name);
    }
}

#[test]
fn calls_keep_start_order() {
    let events = table::shipped_log("parallel-review");
    let page = page(events.iter().map(|event| &**event));
    let started = events.iter().filter(|it| matches!(it.kind, EventKind::CallStarted(_)));
    let mut from = 0;
    for call in started {
        let mark = format!("id=\"s{}\"", call.span.0);
        let at = page[from..].find(&mark).expect("below the call before it");
        from += at;
    }
    let answer = World::from_events(events.iter().map(|event| &**event)).progress.answer.clone();
    let answer = answer.expect("an answer");
    let first = answer.lines().next().expect("a line");
    let outcome = page.split_once("id=\"outcome\"").expect("an outcome").1;
    assert!(outcome.contains(&first.replace('\'', "&#39;").replace('"', "&quot;")), "{first}");
}

#[test]
fn page_escapes_hostile_text() {
    let events = table::shipped_log("support-swarm");
    let hostile: Vec<Event> = events
        .iter()
        .map(|event| {
            let mut event = Event::clone(event);
            match &mut event.kind {
                EventKind::RunStarted(head) => {
                    let head = Arc::make_mut(head);
                    (head.title, head.goal) = (HOSTILE.to_owned(), HOSTILE.to_owned());
                    head.scenario = HOSTILE.into();
                    head.inputs.insert(HOSTILE.to_owned(), HOSTILE.into());
                }
                EventKind::CallStarted(call) => {
                    call.model = Some(HOSTILE.into());
                    for message in Arc::make_mut(&mut call.prompt.messages) {
                        message.content = HOSTILE.into();
                    }
                }
                EventKind::AttemptAnswered(reply) => {
                    let reply = Arc::make_mut(reply);
                    reply.text = HOSTILE.into();
                    for call in Arc::make_mut(&mut reply.tool_calls) {
                        (call.name, call.arguments) = (HOSTILE.into(), HOSTILE.into());
                    }
                }
                EventKind::AnswerComposed { text, .. } => *text = HOSTILE.into(),
                _ => {}
            }
            event
        })
        .collect();
    let mut hostile = hostile;
    let failed = AttemptFailed {
        partial: Some(HOSTILE.into()),
        ..*AttemptFailed::new(FailureClass::Reset, HOSTILE)
    };
    let at = hostile.len() / 2;
    let place = Event { kind: EventKind::AttemptFailed(Box::new(failed)), ..hostile[at].clone() };
    hostile.insert(at, place);
    let warning = EventKind::Warning { text: HOSTILE.to_owned() };
    hostile.insert(1, Event { kind: warning, ..hostile[1].clone() });
    let page = page(&hostile);
    assert_eq!(markup_errors(&page), [""; 0]);
    assert!(!page.contains("<script") && !page.contains("<img"));
    assert!(page.contains("&lt;/pre&gt;&lt;/details&gt;&lt;script&gt;") && page.contains("␀␛[2J"));
    let (cut, _) = hostile.split_at(at);
    assert_eq!(markup_errors(&self::page(cut)), [""; 0], "a log that has no end");
}

/// `ROUNDTABLE_BLESS=1` writes the page anew.
#[test]
fn small_page_matches_golden() {
    let mut events: Vec<Event> =
        table::shipped_log("checkout-denied").iter().map(|it| Event::clone(it)).collect();
    for event in &mut events {
        event.at = crate::log::event::Elapsed(0);
        match &mut event.kind {
            EventKind::RunStarted(head) => {
                let head = Arc::make_mut(head);
                (head.run, head.wall_ms, head.seed) =
                    (crate::log::event::RunId::new("golden"), 0, 7);
                head.launch = None;
            }
            EventKind::RunClosed(closed) => closed.elapsed_ms = 0,
            _ => {}
        }
    }
    let written = page(&events);
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/page.html");
    if std::env::var_os("ROUNDTABLE_BLESS").is_some() {
        std::fs::write(&path, &written).expect("written");
    }
    let held = std::fs::read_to_string(&path).expect("the page");
    for (at, (now, before)) in written.lines().zip(held.lines()).enumerate() {
        assert_eq!(now, before, "line {}", at + 1);
    }
    assert_eq!(written, held);
}
