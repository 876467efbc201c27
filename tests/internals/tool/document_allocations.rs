//! What reading a Markdown text makes of it, in bytes: within bounds, whatever the text is.

use crate::tool::text::{DocumentFormat, Unreadable, read};
use allocation_counter::{AllocationInfo, measure};

/// What reading a text allocates, and what came of it.
fn reading(text: &str) -> (AllocationInfo, Result<usize, Unreadable>) {
    let mut read_as = Ok(0);
    let made = measure(|| {
        let document = read(DocumentFormat::Markdown, text.as_bytes(), None);
        read_as = document.map(|document| document.text.len());
    });
    (made, read_as)
}

const MIB: u64 = 1 << 20;

#[test]
fn nothing_is_made_of_a_text_of_nothing_but_marks() {
    for mark in
        [" .a", "- ", "> ", "*a ", "[a](b)", "|", "a\n", "<b>", "&amp;", "`", "1. ", "[^1]: - "]
    {
        // Words are marks where they are the attributes of a heading.
        let before = if mark == " .a" { "# a {b" } else { "" };
        let text = before.to_owned() + &mark.repeat((3 << 20) / mark.len()) + "}\n";
        let (made, read_as) = reading(&text);
        let why = "the text has more than 500,000 marks of Markdown".to_owned();
        assert_eq!(read_as, Err(Unreadable::Broken(why)), "{mark:?}");
        assert!(made.bytes_max < 16 * MIB, "{mark:?}: {} bytes", made.bytes_max);
    }
}

#[test]
fn what_is_made_of_the_largest_that_is_read_is_bounded() {
    assert!(measure(|| drop(std::hint::black_box(vec![0_u8; 4096]))).bytes_max >= 4096);
    for mark in ["- ", "*a ", "[a](b) ", "|a\n|-\n", "a\n"] {
        let marks = mark.bytes().filter(|byte| b"-*[]|\n".contains(byte)).count();
        let text = mark.repeat(490_000 / marks) + "a\n\nthe end";
        let (made, read_as) = reading(&text);
        assert!(read_as.is_ok(), "{mark:?}: {read_as:?}");
        assert!(made.bytes_max < 160 * MIB, "{mark:?}: {} bytes", made.bytes_max);
    }
    // Lines of nothing in code.
    let (made, read_as) = reading(&("```\na".to_owned() + &"\n".repeat(490_000)));
    assert!(read_as.is_ok(), "{read_as:?}");
    assert!(made.bytes_max < 160 * MIB, "{} bytes", made.bytes_max);
    // And of nothing but white space between two words.
    let (made, read_as) = reading(&("a\n".to_owned() + &"\n".repeat(2 << 20) + "b"));
    assert_eq!(read_as, Ok(4));
    assert!(made.bytes_max < 16 * MIB, "{} bytes", made.bytes_max);
    // A table whose rows are shorter than its head.
    let head = format!("|{}\n|{}\n", "a|".repeat(50_000), "-|".repeat(50_000));
    let (made, read_as) = reading(&(head + &"|\n".repeat(100_000)));
    assert!(read_as.is_ok(), "{read_as:?}");
    assert!(made.bytes_max < 160 * MIB, "{} bytes", made.bytes_max);
}
