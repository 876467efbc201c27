//! The reply to the question for the terminal's background colour (`OSC 11`): which bytes belong to it.
//! It may arrive late and in pieces, and a key may be pressed in the middle of it.

/// What comes before the colour in the reply.
const COLOUR_STARTS: &[u8] = b"11;";

/// The beginning that no other report has.
const UNMISTAKABLE: &[u8] = b"11;rgb";

/// The most hexadecimal digits of one channel.
const MAX_DIGITS: usize = 4;

/// What a byte within a report `ESC ]` is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReportByte {
    /// A part of the report.
    Part,
    /// A key that was pressed while the reply arrived: it cannot be a part of it.
    Key,
}

/// What the next byte is after these bytes of a report `ESC ]`. `awaited`: the terminal has been
/// asked and has not answered.
pub(super) fn classify(held: &[u8], byte: u8, awaited: bool) -> ReportByte {
    if is_beginning(held, byte) {
        return ReportByte::Part;
    }
    let is_number = held.iter().all(u8::is_ascii_digit);
    // The number of another report, or the end of its number.
    let continues_number = byte.is_ascii_digit() || (byte == b';' && !held.is_empty());
    match is_colour(held, awaited) || (awaited && is_number && !continues_number) {
        true => ReportByte::Key,
        false => ReportByte::Part,
    }
}

/// Whether these bytes of a report `ESC ]` belong to the reply.
pub(super) fn is_colour(held: &[u8], awaited: bool) -> bool {
    held.starts_with(UNMISTAKABLE) || (awaited && held.starts_with(COLOUR_STARTS))
}

/// The colour of a whole reply.
pub(super) fn colour(held: &[u8]) -> Option<&[u8]> {
    held.strip_prefix(COLOUR_STARTS)
}

/// Whether the reply may begin with these bytes: `11;rgb:` or `11;rgba:`, then three or four
/// channels with a slash between them.
fn is_beginning(held: &[u8], byte: u8) -> bool {
    let bytes = || held.iter().copied().chain([byte]);
    let follows = |start: &[u8], channels: usize| {
        let mut rest = bytes();
        for expected in start {
            match rest.next() {
                None => return true,
                Some(byte) if byte == *expected => {}
                Some(_) => return false,
            }
        }
        let (mut channel, mut digits) = (1, 0);
        rest.all(|byte| match byte {
            b'/' if digits > 0 && channel < channels => {
                (channel, digits) = (channel + 1, 0);
                true
            }
            _ if byte.is_ascii_hexdigit() => {
                digits += 1;
                digits <= MAX_DIGITS
            }
            _ => false,
        })
    };
    follows(b"11;rgb:", 3) || follows(b"11;rgba:", 4)
}
