//! Parses TOML, with a limit on the time that parsing may take.

use toml::Spanned;
use toml::de::{DeTable, Error};

/// Maximum number of tables in a file. The parser's time is quadratic in it if tables are repeated,
/// or come after their subtables.
pub(crate) const MAX_TABLES: usize = 10_000;

/// Parses the text. Returns what is valid TOML, and the errors.
///
/// # Errors
/// The byte offset of the first table beyond the limit; nothing is parsed.
pub(crate) fn parse(text: &str) -> Result<(Spanned<DeTable<'_>>, Vec<Error>), usize> {
    match headers(text).nth(MAX_TABLES) {
        Some(at) => Err(at),
        None => Ok(DeTable::parse_recoverable(text)),
    }
}

/// The byte offsets of lines that may be the header of a table. The parser accepts a lone carriage
/// return as a line break, too.
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
