//! Hostile vendors and clients: nothing hangs, nothing grows without bound, no key and no control sequence is shown, and
//! what is not read counts as much as it may have cost.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::read::ZlibDecoder;
use serde_json::{Value, json};

use super::{Vendor, of_kind};

const HOSTILE: &str = include_str!("../../senders/hostile.py");

fn guard(vendor: &Vendor, options: &[&str], cases: &[&str]) -> (Vec<String>, String) {
    let program = [&["python3", "hostile.py", "client"][..], cases].concat();
    let ended = vendor.guard(options, &program);
    assert_eq!(ended.code, Some(0), "{cases:?}: {ended:?}");
    let lines = ended.out.lines().map(|line| line.split_once(' ').expect("two words").1.to_owned());
    (lines.collect(), ended.err)
}

#[test]
fn hostile_vendors_end_nothing() {
    let vendor = Vendor::of("hostile.py", HOSTILE);
    let cases = [
        ("endless_head", "502"),
        ("bomb", "200"),
        ("brotli", "200"),
        ("zstd", "200"),
        ("half_chunk", "200"),
        ("endless", "200"),
        ("events", "200"),
        ("lines", "200"),
        ("surrogate", "200"),
        ("list", "200"),
        ("escapes", "200"),
        ("error", "400"),
        ("ok", "200"),
    ];
    let (statuses, _) = guard(&vendor, &[], &cases.map(|(case, _)| case));
    assert_eq!(statuses, cases.map(|(_, status)| status));
    let log = vendor.log();
    let texts: Vec<_> =
        of_kind(&log, "attempt.answered").iter().map(|it| it["text"].clone()).collect();
    assert_eq!(texts[1], "packed", "{texts:?}");
    assert_eq!(texts[2], "packed", "{texts:?}");
    let last = of_kind(&log, "reply.recorded");
    let last = last.last().expect("a reply");
    assert_eq!((&last["status"], &last["cut"]), (&json!(200), &json!(null)), "{last}");
    // Nothing of a vendor reaches a terminal as it is.
    let picture = vendor.home.run(&["picture", "last", "--text"]);
    let shown = vendor.home.run(&["show", "last", "--format", "text"]);
    for text in [&picture.out, &shown.out] {
        let raw = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        assert_eq!(raw, None, "{text:?}");
    }
}

#[test]
fn hostile_clients_are_refused() {
    let vendor = Vendor::of("hostile.py", HOSTILE);
    let (lines, _) = guard(&vendor, &[], &["clients", "burst", "ok"]);
    let statuses: Vec<&str> = lines[0].split(' ').collect();
    assert_eq!(statuses[..6], ["403", "403", "403", "403", "400", "405"]);
    assert!(["400", "431", "nothing"].contains(&statuses[6]), "{statuses:?}");
    // Calls that begin at once all pass.
    assert_eq!(lines[1..], ["300", "200"]);
}

/// A reply that cannot be read counts as long as its request allows.
#[test]
fn unread_replies_use_up_limits() {
    for case in ["surrogate", "bomb", "list"] {
        let vendor = Vendor::of("hostile.py", HOSTILE);
        let (statuses, _) = guard(&vendor, &["--max-total-tokens", "150"], &[case; 4]);
        assert_eq!(statuses, ["200", "402", "402", "402"], "{case}");
    }
    let vendor = Vendor::of("hostile.py", HOSTILE);
    let (statuses, _) =
        guard(&vendor, &["--max-total-tokens", "150"], &["brotli", "zstd", "ok", "ok"]);
    assert_eq!(statuses, ["200"; 4], "what is read counts as the vendor says");
}

#[test]
fn keys_are_nowhere() {
    let vendor = Vendor::of("hostile.py", HOSTILE);
    let (_, err) = guard(&vendor, &[], &["keys"]);
    let mut everything = vec![("errors", err)];
    for args in [
        &["export", "last"][..],
        &["export", "last", "--html"],
        &["show", "last"],
        &["show", "last", "--format", "text"],
        &["picture", "last", "--text"],
        &["runs"],
    ] {
        let ended = vendor.home.run(args);
        everything.push((args[0], format!("{}{}", ended.out, ended.err)));
    }
    for entry in walk(vendor.home.path().join("state")) {
        let bytes = std::fs::read(&entry).unwrap_or_default();
        everything.push(("store", String::from_utf8_lossy(&bytes).into_owned()));
    }
    let log = vendor.log();
    let recorded = of_kind(&log, "reply.recorded");
    assert_eq!(recorded.len(), of_kind(&log, "attempt.started").len());
    for line in &recorded {
        everything.push(("recorded", unpacked(line["body"].as_str().expect("a body"))));
    }
    // A key that is split over the pieces of a stream takes the body with it.
    let split = |line: &&&Value| unpacked(line["body"].as_str().expect("a body")).is_empty();
    assert!(
        recorded.iter().filter(split).all(|line| line["redacted"] == true && line["cut"] == true)
    );
    assert_ne!(recorded.iter().filter(split).count(), 0);
    for (place, text) in everything {
        let at = text.find("canary");
        assert!(at.is_none(), "{place}: {}", &text[at.unwrap_or(0).saturating_sub(200)..][..260]);
    }
}

/// A body as the log has it: compressed by zlib, in Base64.
fn unpacked(body: &str) -> String {
    let packed = BASE64.decode(body).expect("Base64");
    let mut text = Vec::new();
    ZlibDecoder::new(&*packed).read_to_end(&mut text).expect("zlib");
    String::from_utf8_lossy(&text).into_owned()
}

fn walk(folder: std::path::PathBuf) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.path() {
            path if path.is_dir() => walk(path),
            path => vec![path],
        })
        .collect()
}
