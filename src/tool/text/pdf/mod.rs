//! Extracts the text of a PDF's pages in drawing order, as far as the file defines it.
//! `lopdf` parses the file; word and line breaks are derived here from the movements of the text
//! position. Left out: pictures of text, text in form objects, and fonts without a mapping to
//! characters. Columns drawn line by line are merged.

#[cfg(test)]
mod tests;

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
///
/// # Errors
/// Why the file cannot be read.
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
