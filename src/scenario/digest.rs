//! The digest of a file or of arguments as a text.

use sha2::{Digest as _, Sha256};

/// SHA-256 of a text, in hexadecimal digits.
///
/// ```
/// use roundtable::scenario::digest::of_text;
/// assert_eq!(of_text("").get(..8), Some("e3b0c442"));
/// ```
pub fn of_text(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// Bytes in hexadecimal digits, two for each.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
