//! Extracts the text of a PDF's pages in drawing order, as far as the file defines it.
//! `lopdf` parses the file; word and line breaks are derived here from the movements of the text
//! position. Left out: pictures of text, text in form objects, and fonts without a mapping to
//! characters. Columns drawn line by line are merged.

use std::collections::HashMap;

use lopdf::content::{Content, Operation};
use lopdf::{Dictionary, Encoding, LoadOptions, Object, decode_text_string};

use super::flow::{Flow, one_line};
use super::pdf_budget;
use super::pdf_budget::{MAX_PAGE_TOKENS, MAX_STREAM_BYTES, PdfBudget, count_tokens};
use super::{ExtractedDocument, Unreadable};
use crate::base::contained;
use crate::base::iso_day;

/// Most pages of a file.
const MAX_PAGES: usize = 5_000;

/// Most fonts of a file.
const MAX_FONTS: usize = 2_000;

/// Most bytes of a font's character table after decompression.
const MAX_FONT_BYTES: usize = 2 << 20;

/// Most bytes of all character tables after decompression.
const MAX_FONTS_BYTES: usize = 16 << 20;

/// Text that every encrypted file contains.
const ENCRYPT_MARK: &[u8] = b"/Encrypt";

/// Gap in a line that separates words, in thousandths of the font size.
const WORD_GAP: f32 = 180.0;

/// Most characters of a title.
const TITLE_CHARS: usize = 300;

/// Reads a PDF as long as `wanted` returns true.
///
/// # Errors
/// Why the file cannot be read.
pub(super) fn read(
    bytes: &[u8],
    wanted: &dyn Fn() -> bool,
) -> Result<ExtractedDocument, Unreadable> {
    // A parser of such an old and loose format may panic on unexpected input.
    contained::catch_panic(|| read_document(bytes, &mut PdfBudget::new(wanted)))
        .unwrap_or_else(|_| Err(broken("its structure is invalid")))
}

fn broken(why: impl Into<String>) -> Unreadable {
    Unreadable::Broken(why.into())
}

fn load(bytes: &[u8]) -> Result<lopdf::Document, Unreadable> {
    let options = LoadOptions {
        max_decompressed_size: Some(MAX_STREAM_BYTES),
        filter: Some(pdf_budget::object_filter),
        ..LoadOptions::default()
    };
    pdf_budget::load_with_limits(|| lopdf::Document::load_mem_with_options(bytes, options))
        .ok_or_else(|| broken("its structure is too large, or its objects overlap"))?
        .map_err(|error| broken(format!("it is not a readable PDF: {error}")))
}

fn read_document(
    bytes: &[u8],
    effort: &mut PdfBudget<'_>,
) -> Result<ExtractedDocument, Unreadable> {
    // Checked before loading, because encrypted files are decompressed in another way that has no
    // limits.
    let is_locked = bytes.windows(ENCRYPT_MARK.len()).any(|part| part == ENCRYPT_MARK);
    let pdf = if is_locked { None } else { Some(load(bytes)?) };
    let pdf = pdf.filter(|pdf| !pdf.is_encrypted()).ok_or_else(|| broken("it is encrypted"))?;
    let pages: Vec<_> = pdf.page_iter().take(MAX_PAGES + 1).collect();
    if pages.len() > MAX_PAGES {
        return Err(broken("it has more than 5,000 pages"));
    }
    let mut pen = PdfText { flow: Flow::default(), line: 0.0 };
    let mut fonts = Fonts { seen: HashMap::new(), bytes: MAX_FONTS_BYTES };
    let (mut read, mut last_error) = (0_usize, None);
    for page in pages {
        pen.flow.end_paragraph();
        // Pages may share content; resolving it costs steps each time.
        effort.spend_steps(1 + pdf.get_page_contents(page).len())?;
        let most = effort.page_bytes();
        let content = match pdf.get_page_content_with_limit(page, most) {
            Ok(content) => content,
            Err(error) => {
                effort.spend_bytes(most)?;
                last_error = Some(error.to_string());
                continue;
            }
        };
        effort.spend_bytes(content.len())?;
        let signs = count_tokens(&content);
        effort.spend_steps(signs.min(MAX_PAGE_TOKENS))?;
        if signs > MAX_PAGE_TOKENS {
            last_error = Some("a page has more than 200,000 tokens".to_owned());
            continue;
        }
        let names = pdf.get_page_fonts(page).unwrap_or_default();
        effort.spend_steps(names.len())?;
        for font in names.values() {
            effort.spend_steps(1)?;
            fonts.load(&pdf, font);
        }
        read += 1;
        let mut letters = None;
        // One at a time: all operations of a page would take a hundred times its size.
        for operation in Content::decode_iter(&content) {
            effort.spend_steps(0)?;
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
    iso_day::from_iso(&format!("{year}-{month}-{of_month}"))
}

/// Character encodings of the fonts; each font is read once.
struct Fonts<'p> {
    seen: HashMap<*const Dictionary, Option<Encoding<'p>>>,
    /// Bytes left for character tables.
    bytes: usize,
}

impl<'p> Fonts<'p> {
    fn load(&mut self, pdf: &'p lopdf::Document, font: &'p Dictionary) {
        let place = std::ptr::from_ref(font);
        if self.seen.len() >= MAX_FONTS || self.seen.contains_key(&place) {
            return;
        }
        let most = MAX_FONT_BYTES.min(self.bytes);
        let table = font.get_deref(b"ToUnicode", pdf).and_then(Object::as_stream);
        let bytes = table.map(|table| table.get_plain_content_with_limit(most).map(|it| it.len()));
        let fits = !matches!(bytes, Ok(Err(_)));
        self.bytes -= bytes.ok().and_then(Result::ok).unwrap_or(0).min(self.bytes);
        let read = fits.then(|| font.get_font_encoding_with_limit(pdf, most).ok()).flatten();
        self.seen.insert(place, read);
    }

    fn encoding(&self, font: &'p Dictionary) -> Option<&Encoding<'p>> {
        self.seen.get(&std::ptr::from_ref(font))?.as_ref()
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
                    // Bytes without a mapping are skipped.
                    let text = letters.bytes_to_string(bytes).unwrap_or_default();
                    self.flow.push_folded(&text);
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

    fn read(bytes: &[u8]) -> Result<ExtractedDocument, Unreadable> {
        super::read(bytes, &|| true)
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
    fn words_and_lines_are_where_the_pen_moves() {
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
            ("BT (no font) Tj /F9 12 Tf (unknown font) Tj /F1 12 Tf (seen) Tj ET", "seen"),
        ] {
            assert_eq!(text(content), seen, "{content}");
        }
    }

    #[test]
    fn pages_are_apart_and_the_file_says_what_it_is() {
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
    fn what_is_no_pdf_is_refused_and_nothing_breaks_down() {
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
    fn what_grows_beyond_its_bound_is_not_unpacked() {
        let drawn = |fill: &str, times| format!("BT /F1 12 Tf (x) Tj ET\n{}", fill.repeat(times));
        for (fill, times) in [(" ", 4 << 20), ("n ", 150_000), ("n ", 1_000_000), ("0 ", 201_000)] {
            let bytes = pdf(&[&drawn(fill, times)]);
            assert!(bytes.len() < 100_000, "it is packed");
            let seen = read(&bytes);
            if times < 200_000 {
                assert_eq!(seen.expect("a text").text, "x");
            } else {
                assert!(matches!(seen, Err(Unreadable::Broken(_))), "{fill}{times}");
            }
        }
    }

    #[test]
    fn a_file_that_nobody_waits_for_is_given_up_within_a_page() {
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
    fn objects_that_are_packed_are_read_and_bombs_of_them_are_not() {
        let packed = |index: &str, body: &str| {
            let head = dictionary! {
                "Type" => "ObjStX",
                "N" => i64::try_from(index.split(' ').count() / 2).expect("few"),
                "First" => i64::try_from(index.len()).expect("short"),
            };
            let mut whole =
                lopdf::Document::load_mem(&pdf(&["BT /F1 12 Tf (x) Tj ET"])).expect("ours");
            whole.add_object(Stream::new(head, format!("{index}{body}").into_bytes()));
            whole.compress();
            let mut bytes = Vec::new();
            whole.save_to(&mut bytes).expect("written");
            // The crate does not write such a stream itself.
            let name = bytes.windows(6).position(|part| part == b"ObjStX").expect("there");
            bytes.splice(name..name + 6, *b"ObjStm");
            bytes
        };
        assert_eq!(read(&packed("90 0 91 9 ", "<</a 1>> [2 3]")).expect("a text").text, "x");
        let many = format!("[{}]", "0 ".repeat(300_000));
        let shared: String = (90..20_000).map(|id| format!("{id} 0 ")).collect();
        for (index, body) in [("90 0 ", &*many), (&*shared, &*format!("[{}]", "0 ".repeat(50_000)))]
        {
            assert!(matches!(read(&packed(index, body)), Err(Unreadable::Broken(_))));
        }
    }
}
