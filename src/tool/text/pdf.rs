//! Extracts the text of a PDF's pages in drawing order, as far as the file defines it.
//! `lopdf` parses the file; word and line breaks are derived here from the movements of the text
//! position. Left out: pictures of text, text in form objects, and fonts without a mapping to
//! characters. Columns drawn line by line are merged.

use std::collections::HashMap;

use lopdf::content::{Content, Operation};
use lopdf::{Dictionary, Encoding, LoadOptions, Object, decode_text_string};

use super::flow::{Flow, one_line};
use super::{ExtractedDocument, MAX_BYTES, Unreadable};
use crate::base::time;

/// Text that every encrypted file contains.
const ENCRYPT_MARK: &[u8] = b"/Encrypt";

/// Gap in a line that separates words, in thousandths of the font size.
const WORD_GAP: f32 = 180.0;

/// Most characters of a title.
const TITLE_CHARS: usize = 300;

/// Reads a PDF as long as `wanted` returns true.
pub(crate) fn read(
    bytes: &[u8],
    wanted: &dyn Fn() -> bool,
) -> Result<ExtractedDocument, Unreadable> {
    // Checked before loading, because encrypted files are decompressed in another way that has no
    // limits.
    let is_locked = bytes.windows(ENCRYPT_MARK.len()).any(|part| part == ENCRYPT_MARK);
    let pdf = if is_locked { None } else { Some(load(bytes)?) };
    let pdf = pdf.filter(|pdf| !pdf.is_encrypted()).ok_or_else(|| broken("it is encrypted"))?;
    let mut pen = PdfText { flow: Flow::default(), line: 0.0 };
    let mut fonts = Fonts::default();
    let (mut read, mut last_error) = (0_usize, None);
    for page in pdf.page_iter() {
        pen.flow.end_paragraph();
        let content = match pdf.get_page_content_with_limit(page, MAX_BYTES) {
            Ok(content) => content,
            Err(error) => {
                last_error = Some(error.to_string());
                continue;
            }
        };
        let names = pdf.get_page_fonts(page).unwrap_or_default();
        names.values().for_each(|font| fonts.load(&pdf, font));
        read += 1;
        let mut letters = None;
        // One at a time: all operations of a page would take a hundred times its size.
        for operation in Content::decode_iter(&content) {
            if !wanted() {
                return Err(broken("the call was cancelled"));
            }
            let Ok(operation) = operation else { break };
            pen.apply(&operation, &mut letters, |name| fonts.encoding(names.get(name)?));
        }
    }
    match last_error {
        Some(error) if read == 0 => Err(broken(format!("none of its pages can be read: {error}"))),
        _ => {
            let about = info_dictionary(&pdf);
            let title = one_line(&info_text(about, b"Title"), TITLE_CHARS);
            let published_at = pdf_date(&info_text(about, b"CreationDate")).unwrap_or_default();
            Ok(ExtractedDocument { title, published_at, text: pen.flow.finish() })
        }
    }
}

fn broken(why: impl Into<String>) -> Unreadable {
    Unreadable::Broken(why.into())
}

fn load(bytes: &[u8]) -> Result<lopdf::Document, Unreadable> {
    let options = LoadOptions { max_decompressed_size: Some(MAX_BYTES), ..LoadOptions::default() };
    lopdf::Document::load_mem_with_options(bytes, options)
        .map_err(|error| broken(format!("it is not a readable PDF: {error}")))
}

/// The document information dictionary.
fn info_dictionary(pdf: &lopdf::Document) -> Option<&Dictionary> {
    let about = pdf.trailer.get(b"Info").ok()?;
    pdf.dereference(about).ok()?.1.as_dict().ok()
}

fn info_text(about: Option<&Dictionary>, key: &[u8]) -> String {
    let value = about.and_then(|about| about.get(key).ok());
    value.and_then(|value| decode_text_string(value).ok()).unwrap_or_default()
}

/// The date of a PDF date such as `D:20260307101500Z`.
fn pdf_date(date: &str) -> Option<String> {
    let digits = date.trim().strip_prefix("D:").unwrap_or(date.trim());
    let (year, month, of_month) = (digits.get(..4)?, digits.get(4..6)?, digits.get(6..8)?);
    time::date_from_iso(&format!("{year}-{month}-{of_month}"))
}

/// Character encodings of the fonts; each font is read once.
#[derive(Default)]
struct Fonts<'p>(HashMap<*const Dictionary, Option<Encoding<'p>>>);

impl<'p> Fonts<'p> {
    fn load(&mut self, pdf: &'p lopdf::Document, font: &'p Dictionary) {
        let encoding = || font.get_font_encoding_with_limit(pdf, MAX_BYTES).ok();
        self.0.entry(std::ptr::from_ref(font)).or_insert_with(encoding);
    }

    fn encoding(&self, font: &'p Dictionary) -> Option<&Encoding<'p>> {
        self.0.get(&std::ptr::from_ref(font))?.as_ref()
    }
}

/// Follows the text position and collects the text.
struct PdfText {
    flow: Flow,
    /// Vertical position of the current line.
    line: f32,
}

impl PdfText {
    fn apply<'f, 'p: 'f>(
        &mut self,
        operation: &Operation,
        letters: &mut Option<&'f Encoding<'p>>,
        font: impl Fn(&[u8]) -> Option<&'f Encoding<'p>>,
    ) {
        let Operation { operator, operands } = operation;
        match operator.as_str() {
            "Tf" => *letters = operands.first().and_then(|name| font(name.as_name().ok()?)),
            "Tj" | "TJ" => self.show_text(*letters, operands),
            "'" | "\"" => {
                self.flow.end_line();
                self.show_text(
                    *letters,
                    operands.last().map(std::slice::from_ref).unwrap_or_default(),
                );
            }
            "T*" => self.flow.end_line(),
            "Td" | "TD" => self.move_by(number_at(operands, 1)),
            "Tm" => {
                let height = number_at(operands, 5);
                self.move_by(height - self.line);
                self.line = height;
            }
            "BT" => self.flow.end_word(),
            _ => {}
        }
    }

    /// Moves the text position up by this amount.
    fn move_by(&mut self, up: f32) {
        // A superscript belongs to the same line.
        if up.abs() > 4.0 { self.flow.end_line() } else { self.flow.end_word() }
    }

    fn show_text(&mut self, letters: Option<&Encoding<'_>>, operands: &[Object]) {
        let Some(letters) = letters else { return };
        for operand in operands {
            match operand {
                Object::String(bytes, _) => {
                    // Bytes without a mapping are skipped. A soft hyphen is drawn as a hyphen.
                    let text = letters.bytes_to_string(bytes).unwrap_or_default();
                    self.flow.push_folded(&text.replace('\u{ad}', "-"));
                }
                Object::Array(pieces) => {
                    for piece in pieces {
                        match piece {
                            Object::String(..) => {
                                self.show_text(Some(letters), std::slice::from_ref(piece));
                            }
                            piece if piece.as_float().is_ok_and(|gap| gap < -WORD_GAP) => {
                                self.flow.end_word();
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

fn number_at(operands: &[Object], at: usize) -> f32 {
    operands.get(at).and_then(|operand| operand.as_float().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
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
            (
                "BT /F1 12 Tf 72 700 Td (Uptime is) Tj 0 -14 Td (99.95%.) Tj ET",
                "Uptime is\n99.95%.",
            ),
            ("BT /F1 12 Tf [(Up) -20 (time) -300 (is)] TJ ET", "Uptime is"),
            (
                "BT /F1 12 Tf 1 0 0 1 72 700 Tm (a) Tj 1 0 0 1 90 700 Tm (b) Tj 1 0 0 1 72 686 Tm (c) Tj ET",
                "a b\nc",
            ),
            ("BT /F1 12 Tf (a) Tj T* (b) Tj (c) ' 1 2 (d) \" ET", "a\nb\nc\nd"),
            ("BT /F1 12 Tf (caf\\351) Tj ET BT (next) Tj ET", "café next"),
            ("BT /F1 12 Tf (ven\\255) Tj T* (dor) Tj ET", "ven-\ndor"),
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
        for content in
            [deep("[", "]"), deep("<<", ">>"), deep("<</a ", ">>"), deep("[<</a ", ">>]")]
        {
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
}
