//! Exported files: whole, torn, compressed, and not the log of a run.

use super::*;
use crate::store::file::{LogFile, LogFileLimits};

fn lines(kinds: &[&str]) -> String {
    kinds.iter().map(|line| format!("{line}\n")).collect()
}

const HEAD: &str = include_str!("../../../tests/golden/v2/facts.jsonl");

#[test]
fn an_exported_file_is_read_as_far_as_it_is_whole() {
    let head = HEAD.lines().find(|line| line.contains("run.started")).expect("a head");
    let head = head.replacen("\"seq\":", "\"seq\":0,\"was\":", 1);
    let second = r#"{"v":2,"seq":1,"at_us":7,"span":0,"kind":"warning","text":"a"}"#;
    let outcome = r#"{"v":2,"kind":"outcome","status":"ok"}"#;
    let read = |text: &str| LogFile::read(std::io::Cursor::new(text.as_bytes().to_vec()));
    let whole = read(&lines(&[&head, second, outcome])).expect("a log");
    assert_eq!((whole.events.len(), whole.notes.len()), (2, 0));
    let torn = read(&format!("{}{}", lines(&[&head, second]), &second[..30])).expect("a log");
    assert_eq!(torn.events.len(), 2);
    assert_eq!(torn.notes, ["line 3 is cut off and was left out"]);
    // A line that is whole but without a line break is an event.
    assert_eq!(read(&format!("{head}\n{second}")).expect("a log").events.len(), 2);
    assert!(matches!(read(""), Err(ReadError::Damaged { .. })));
    assert!(matches!(read(second), Err(ReadError::Damaged { .. })), "no head");
    assert!(matches!(read(&lines(&[&head, &head])), Err(ReadError::Damaged { at: 1, .. })));
    let broken = lines(&[&head, "{\"seq\":1", second]);
    assert!(matches!(read(&broken), Err(ReadError::Damaged { at: 1, .. })));
    let jump = second.replacen("\"seq\":1", "\"seq\":9", 1);
    let jumped = read(&lines(&[&head, &jump])).expect("a log");
    assert_eq!((jumped.events[1].seq, jumped.notes.len()), (Seq(1), 1));
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_log() {
    let head = HEAD.lines().find(|line| line.contains("run.started")).expect("a head");
    let log = LogFile::read(format!("\u{feff}{head}\n").as_bytes()).expect("a log");
    assert_eq!((log.events.len(), log.notes.len()), (1, 0));
}

#[test]
fn a_compressed_file_is_known_by_its_bytes() {
    use std::io::Write as _;
    let head = HEAD.lines().find(|line| line.contains("run.started")).expect("a head");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writeln!(packed, "{head}").expect("packed");
    let bytes = packed.finish().expect("packed");
    assert_eq!(LogFile::read(&bytes[..]).expect("a log").events.len(), 1);
    let cut = LogFile::read(&bytes[..bytes.len() / 2]).expect_err("its head is cut off");
    assert_eq!(cut.to_string(), "event 0 cannot be read: the file is cut off in its first line");
}

#[test]
fn a_log_that_does_not_end_is_read_up_to_its_limits() {
    use std::io::Read as _;
    let head = HEAD.lines().find(|line| line.contains("run.started")).expect("a head");
    let limits = LogFileLimits { line: 1 << 16, all: 1 << 18, lines: 1_000 };
    let long = |size: usize| {
        let text = "x".repeat(size);
        format!(r#"{{"v":2,"seq":1,"at_us":7,"span":0,"kind":"warning","text":"{text}"}}"#)
    };
    for (rest, at, says) in [
        ("\0".to_owned(), 1, "longer than 65536 bytes"),
        ("\n".to_owned(), 1_000, "at most 1000 lines"),
        (long(1) + "\n", 1_000, "at most 1000 lines"),
        (long(5_000) + "\n", 52, "262144 bytes uncompressed"),
        (long(70_000) + "\n", 1, "longer than 65536 bytes"),
    ] {
        let endless = std::iter::repeat_n(rest.clone(), 1 << 20).map(String::into_bytes);
        let mut endless = endless.take((1 << 20) / rest.len() + 1);
        let rest: Vec<u8> = endless.by_ref().flatten().collect();
        let log = format!("{head}\n").into_bytes();
        let read = LogFile::read_within(log.chain(&rest[..]), limits).expect_err(says);
        let text = read.to_string();
        assert!(matches!(read, ReadError::Damaged { at: found, .. } if found == at), "{text}");
        assert!(text.contains(says), "{text}");
    }
}
