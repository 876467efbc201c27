//! Small things that every layer may use and that use none: names, seeded random numbers, digests,
//! canonical JSON, schemas of arguments, times, words and their stems, safe file access, visible text, the error
//! [`Refused`](refused::Refused). Nothing here knows of runs or scenarios.

pub mod catch_panic;
pub mod json_schema;
pub mod json_text;
pub mod name;
pub mod private_file;
pub mod private_host;
pub mod read_file;
pub mod refused;
pub mod seeded_random;
pub mod stems;
pub mod time;
pub mod visible;
pub mod word_query;

use std::io;
use std::io::Read;

use sha2::{Digest as _, Sha256};

/// SHA-256 of a text, in hexadecimal digits.
pub fn sha256_of_text(text: &str) -> String {
    to_hex(&Sha256::digest(text.as_bytes()))
}

/// A digest of a text that cannot be computed without the key, in hexadecimal digits. It is shown cut
/// off, so it need not be an HMAC: a text cannot be continued from a part of its digest.
pub fn keyed_digest(key: &[u8; 32], text: &str) -> String {
    to_hex(&Sha256::new().chain_update(key).chain_update(text).finalize())
}

/// SHA-256 of everything that the reader returns, in hexadecimal digits.
///
/// # Errors
/// The errors of the reader.
pub fn sha256_of_reader(mut from: impl Read) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut piece)?;
        if read == 0 {
            return Ok(to_hex(&digest.finalize()));
        }
        digest.update(piece.get(..read).unwrap_or_default());
    }
}

/// Bytes as hexadecimal digits, two per byte.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Gives each value of an enum a word: `worded! { Stance + ALL { Go = "go", Block = "block" } }`. Extras:
/// `ALL` lists the values in the order of the table, `Display` prints the word, and `phrase` is the text
/// for people: the word, or the text after `|` (`= "no_go" | "no go"`).
macro_rules! worded {
    (@ALL $name:ident { $($value:ident = $word:literal $(| $phrase:literal)?),+ $(,)? }) => {
        impl $name {
            /// Every value.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];
        }
    };
    (@Display $name:ident $table:tt) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }
    };
    (@phrase $name:ident { $($value:ident = $word:literal $(| $phrase:literal)?),+ $(,)? }) => {
        impl $name {
            /// What people read.
            pub(crate) const fn phrase(self) -> &'static str {
                match self {
                    $(Self::$value => worded!(@last $word $($phrase)?),)+
                }
            }
        }
    };
    (@last $word:literal) => { $word };
    (@last $word:literal $phrase:literal) => { $phrase };
    (@word $name:ident { $($value:ident = $word:literal $(| $phrase:literal)?),+ $(,)? }) => {
        impl $name {
            /// The word in files, in JSON and in results.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$value => $word,)+ }
            }
        }
    };
    (@each $name:ident [$($extra:ident)*] $table:tt) => {
        worded! { @word $name $table }
        $(worded! { @$extra $name $table })*
    };
    ($name:ident $(+ $extra:ident)* { $($table:tt)+ }) => {
        worded! { @each $name [$($extra)*] { $($table)+ } }
    };
}

pub(crate) use worded;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_written_in_hexadecimal() {
        assert_eq!(sha256_of_text("").get(..8), Some("e3b0c442"));
    }
}
