//! Generated documents: words of a made-up language, a few of which are used most of the time.

use std::fs;
use std::path::Path;

use roundtable::bench::random_u64;

/// Words of a document.
pub const WORDS: u64 = 300;
/// Different words that there are.
pub const VOCABULARY: u64 = 20_000;

/// The nth number below `below` of a stream.
pub fn number(stream: u64, nth: u64, below: u64) -> u64 {
    random_u64(stream, "search", 1, &nth.to_string()) % below
}

/// A word; a few of them are used most of the time, as in a language.
pub fn word(stream: u64, nth: u64) -> String {
    let below = number(stream, nth * 2, VOCABULARY) + 1;
    let rank = number(stream, nth * 2 + 1, below);
    let syllables = ["ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu"];
    let digits = format!("{rank:03}");
    digits.bytes().filter_map(|digit| syllables.get(usize::from(digit - b'0'))).copied().collect()
}

/// The text of a document; `stream` numbers its contents.
pub fn text(document: u64, stream: u64) -> String {
    let mut text = format!("# {} {}\n\n", word(document, 9_000), word(document, 9_001));
    for nth in 0..WORDS {
        text.push_str(&word(stream, nth));
        text.push_str(match nth % 60 {
            59 => ".\n\n",
            11 | 23 | 35 | 47 => ". ",
            _ => " ",
        });
    }
    text
}

/// Writes a document below this folder; returns its size in bytes.
pub fn write(root: &Path, document: u64, stream: u64) -> u64 {
    let path = root.join(format!("{:02}/{document:05}.md", document % 100));
    let text = text(document, stream);
    fs::create_dir_all(path.parent().expect("a parent")).expect("made");
    fs::write(path, &text).expect("written");
    text.len() as u64
}
