//! Bodies: JSON as it is written and read.

use std::borrow::Cow;
use std::io;

use serde::Deserialize;

/// Takes a body as it is written: mostly a byte or two at a time, quotes and their backslashes,
/// which need no call to copy memory.
pub(in crate::llm) struct RequestBody(Vec<u8>);

impl RequestBody {
    pub(in crate::llm) fn with_room_for(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    pub(in crate::llm) fn bytes(self) -> Vec<u8> {
        self.0
    }
}

impl io::Write for RequestBody {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match bytes {
            [one] => self.0.push(*one),
            [one, two] => {
                self.0.push(*one);
                self.0.push(*two);
            }
            more => self.0.extend_from_slice(more),
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A string that is borrowed where it can be, also within an `Option`.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(in crate::llm) struct JsonText<'a>(#[serde(borrow)] pub(in crate::llm) Cow<'a, str>);

impl JsonText<'_> {
    /// The text of one that may be missing.
    pub(in crate::llm) fn of<'t>(text: &'t Option<JsonText<'_>>) -> Option<&'t str> {
        text.as_ref().map(|text| &*text.0)
    }
}
