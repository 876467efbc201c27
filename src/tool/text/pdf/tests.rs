use lopdf::{Dictionary, Object, Stream, dictionary};

use super::*;
use crate::base::catch_panic;

fn read(bytes: &[u8]) -> Result<ExtractedDocument, Unreadable> {
    // As in `text::read`: the parser of such an old and loose format may panic.
    catch_panic::catch_panic(|| super::read(bytes, &|| true))
        .unwrap_or_else(|panic| Err(Unreadable::Broken(panic)))
}

/// A PDF with these pages, given as content streams.
fn pdf(pages: &[&str]) -> Vec<u8> {
    let mut pdf = lopdf::Document::with_version("1.5");
    let tree = pdf.new_object_id();
    let font = pdf.add_object(dictionary! {
        "Type" => "Font",
        "Subtype" => "Type1",
        "BaseFont" => "Helvetica",
        "Encoding" => "WinAnsiEncoding",
    });
    let resources = pdf.add_object(dictionary! { "Font" => dictionary! { "F1" => font } });
    let mut kids: Vec<Object> = Vec::new();
    for content in pages {
        let content = Stream::new(Dictionary::new(), content.as_bytes().to_vec());
        let content = pdf.add_object(content);
        let page = pdf.add_object(dictionary! {
            "Type" => "Page",
            "Parent" => tree,
            "Contents" => content,
            "Resources" => resources,
        });
        kids.push(page.into());
    }
    let count = i64::try_from(kids.len()).expect("few");
    let pages = dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => count };
    pdf.objects.insert(tree, Object::Dictionary(pages));
    let catalog = pdf.add_object(dictionary! { "Type" => "Catalog", "Pages" => tree });
    let about = pdf.add_object(dictionary! {
        "Title" => Object::string_literal("The  Policy"),
        "CreationDate" => Object::string_literal("D:20260115093000+01'00'"),
    });
    pdf.trailer.set("Root", catalog);
    pdf.trailer.set("Info", about);
    pdf.compress();
    let mut bytes = Vec::new();
    pdf.save_to(&mut bytes).expect("written");
    bytes
}

fn text(content: &str) -> String {
    read(&pdf(&[content])).expect("a text").text
}

#[test]
fn words_and_lines_follow_pen() {
    for (content, seen) in [
        ("BT /F1 12 Tf 72 700 Td (Uptime is) Tj 0 -14 Td (99.95%.) Tj ET", "Uptime is\n99.95%."),
        ("BT /F1 12 Tf [(Up) -20 (time) -300 (is)] TJ ET", "Uptime is"),
        (
            "BT /F1 12 Tf 1 0 0 1 72 700 Tm (a) Tj 1 0 0 1 90 700 Tm (b) Tj 1 0 0 1 72 686 Tm (c) Tj ET",
            "a b\nc",
        ),
        ("BT /F1 12 Tf (a) Tj T* (b) Tj (c) ' 1 2 (d) \" ET", "a\nb\nc\nd"),
        ("BT /F1 12 Tf (caf\\351) Tj ET BT (next) Tj ET", "café next"),
        ("BT (no font) Tj /F9 12 Tf (unknown font) Tj /F1 12 Tf (seen) Tj ET", "seen"),
    ] {
        assert_eq!(text(content), seen, "{content}");
    }
}

#[test]
fn separates_pages_and_reads_metadata() {
    let page = |text: &str| format!("BT /F1 12 Tf ({text}) Tj ET");
    let document = read(&pdf(&[&page("One."), &page("Two.")])).expect("a text");
    let whole = ExtractedDocument {
        title: "The Policy".to_owned(),
        published_at: "2026-01-15".to_owned(),
        text: "One.\n\nTwo.".to_owned(),
    };
    assert_eq!(document, whole);
}

#[test]
fn refuses_non_pdf_without_panic() {
    for bytes in [&b""[..], b"%PDF-1.7", b"hello", &[0; 64]] {
        assert!(matches!(read(bytes), Err(Unreadable::Broken(_))), "{bytes:?}");
    }
    let whole = pdf(&["BT /F1 12 Tf (Uptime) Tj ET"]);
    for end in 0..whole.len() {
        let _ = read(whole.get(..end).expect("a part"));
    }
    for at in 0..whole.len() {
        let mut odd = whole.clone();
        if let Some(byte) = odd.get_mut(at) {
            *byte ^= 0x15;
        }
        let _ = read(&odd);
    }
}

#[test]
fn depth_costs_no_stack() {
    let deep = |open: &str, close: &str| {
        format!("BT /F1 12 Tf {}(x){} TJ ET", open.repeat(50_000), close.repeat(50_000))
    };
    for content in [deep("[", "]"), deep("<<", ">>"), deep("<</a ", ">>"), deep("[<</a ", ">>]")] {
        let _ = read(&pdf(&[&content]));
    }
    let _ = read(format!("%PDF-1.4\n1 0 obj\n{}", "[".repeat(100_000)).as_bytes());
    let _ = read(format!("%PDF-1.4\n1 0 obj\n{}", "<</a".repeat(100_000)).as_bytes());
}

#[test]
fn a_page_is_limited_in_size() {
    let page = |blanks| pdf(&[&format!("BT /F1 12 Tf (x) Tj ET\n{}", " ".repeat(blanks))]);
    assert_eq!(read(&page(MAX_BYTES / 2)).expect("a text").text, "x");
    let bomb = page(MAX_BYTES);
    assert!(bomb.len() < 100_000, "it is packed");
    assert!(matches!(read(&bomb), Err(Unreadable::Broken(_))));
}

#[test]
fn stops_unwanted_read_within_page() {
    let bytes = pdf(&[&format!("BT /F1 12 Tf {}", "(x) Tj ".repeat(1_000))]);
    let asked = std::cell::Cell::new(0);
    let wanted = || {
        asked.set(asked.get() + 1);
        asked.get() < 100
    };
    assert!(matches!(super::read(&bytes, &wanted), Err(Unreadable::Broken(_))));
    assert_eq!(asked.get(), 100);
}

#[test]
fn packed_objects_are_read() {
    let (index, body) = ("90 0 91 9 ", "<</a 1>> [2 3]");
    let head = dictionary! { "Type" => "ObjStX", "N" => 2, "First" => 10 };
    let mut whole = lopdf::Document::load_mem(&pdf(&["BT /F1 12 Tf (x) Tj ET"])).expect("ours");
    whole.add_object(Stream::new(head, format!("{index}{body}").into_bytes()));
    whole.compress();
    let mut bytes = Vec::new();
    whole.save_to(&mut bytes).expect("written");
    // The crate does not write such a stream itself.
    let name = bytes.windows(6).position(|part| part == b"ObjStX").expect("there");
    bytes.splice(name..name + 6, *b"ObjStm");
    assert_eq!(read(&bytes).expect("a text").text, "x");
}
