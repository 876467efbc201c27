//! The text of a file as TOML, with bounds on what reading it may take.

use toml::Spanned;
use toml::de::{DeTable, Error};

/// The most tables that a file may have. The parser takes the square of their number where tables
/// are named twice, or after what stands within them.
pub(super) const MAX_TABLES: usize = 10_000;

/// What the text holds, as far as it is TOML, and what is wrong with the rest.
///
/// # Errors
/// The byte at which the table begins that is one too many: the text is not read at all.
pub(super) fn parse(text: &str) -> Result<(Spanned<DeTable<'_>>, Vec<Error>), usize> {
    match headers(text).nth(MAX_TABLES) {
        Some(at) => Err(at),
        None => Ok(DeTable::parse_recoverable(text)),
    }
}

/// Where each line begins that may be the header of a table; the parser takes a carriage return by
/// itself for the end of a line, too.
fn headers(text: &str) -> impl Iterator<Item = usize> {
    let mut begins = true;
    text.bytes().enumerate().filter_map(move |(at, byte)| {
        let header = begins && byte == b'[';
        begins = match byte {
            b'\n' | b'\r' => true,
            b' ' | b'\t' => begins,
            _ => false,
        };
        header.then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::headers;

    #[test]
    fn a_header_begins_a_line() {
        let found = |text| headers(text).collect::<Vec<_>>();
        assert_eq!(found("[a]\n\t [[b]]\r[c]\r\n\n[d]"), [0, 6, 12, 18]);
        assert_eq!(found("a = [1]\nb = [\n1 [\n"), Vec::<usize>::new());
    }
}
