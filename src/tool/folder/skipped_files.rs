//! Why files of a folder are skipped. Skipped files are counted, never ignored silently.

use serde_json::{Map, Value};

/// Why something in a folder is not one of its documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkipReason {
    /// Name starts with a dot. A hidden folder counts once, whatever it contains.
    Hidden,
    /// A link to a target outside the folder.
    OutsideLink,
    /// A link to a folder inside: its files are found under their own names.
    LinkedFolder,
    /// Neither a file nor a folder: a pipe, socket or device. It is not opened.
    Special,
    /// Extension of no supported format.
    OtherType,
    /// Larger than [`MAX_BYTES`](super::MAX_BYTES).
    TooLarge,
    /// Beyond the first [`MAX_FILES`](super::MAX_FILES).
    TooMany,
    /// No address: in a mirror, its first folder is not a host name.
    NoAddress,
    /// Cannot be opened or read.
    Unopened,
    /// The extension says text, but the content is binary.
    Binary,
    /// In a charset that cannot be decoded.
    Charset,
    /// Contains no text.
    Empty,
    /// The parser failed.
    Broken,
}

impl SkipReason {
    /// All reasons. An index stores the position of a reason in this list: append only, or raise
    /// [`VERSION`](super::text_index::VERSION).
    pub const ALL: [Self; 13] = [
        Self::Hidden,
        Self::OutsideLink,
        Self::LinkedFolder,
        Self::Special,
        Self::OtherType,
        Self::TooLarge,
        Self::TooMany,
        Self::NoAddress,
        Self::Unopened,
        Self::Binary,
        Self::Charset,
        Self::Empty,
        Self::Broken,
    ];

    /// Identifier in results.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hidden => "hidden",
            Self::OutsideLink => "leads_out",
            Self::LinkedFolder => "linked_folder",
            Self::Special => "special",
            Self::OtherType => "other_type",
            Self::TooLarge => "too_large",
            Self::TooMany => "too_many",
            Self::NoAddress => "no_address",
            Self::Unopened => "unopened",
            Self::Binary => "binary",
            Self::Charset => "charset",
            Self::Empty => "empty",
            Self::Broken => "broken",
        }
    }

    /// Position in [`ALL`](Self::ALL), from 1; stored in the index.
    pub(super) fn code(self) -> u64 {
        self as u64 + 1
    }

    /// The reason of a code; `None` for 0, a readable file.
    pub(super) fn from_code(code: u64) -> Option<Self> {
        let place = usize::try_from(code.checked_sub(1)?).ok()?;
        Some(Self::ALL.get(place).copied().unwrap_or(Self::Broken))
    }
}

/// Number of skipped files by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkippedFiles([u64; SkipReason::ALL.len()]);

impl SkippedFiles {
    /// Counts one more file.
    pub fn count(&mut self, reason: SkipReason) {
        if let Some(count) = self.0.get_mut(reason as usize) {
            *count += 1;
        }
    }

    /// Sum of both.
    pub fn plus(mut self, other: &Self) -> Self {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
        self
    }

    /// Count of a reason.
    pub fn count_of(&self, reason: SkipReason) -> u64 {
        self.0.get(reason as usize).copied().unwrap_or(0)
    }

    /// JSON for the tool's result: the reasons with a count above 0.
    pub fn to_json(&self) -> Value {
        let counts = SkipReason::ALL.iter().map(|reason| (*reason, self.count_of(*reason)));
        let reasons: Map<String, Value> = counts
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| (reason.word().to_owned(), count.into()))
            .collect();
        Value::Object(reasons)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reason_is_found_again_by_its_code_and_told_by_its_word() {
        for reason in SkipReason::ALL {
            assert_eq!(SkipReason::from_code(reason.code()), Some(reason));
        }
        assert_eq!(SkipReason::from_code(0), None);
        let mut left_out = SkippedFiles::default();
        left_out.count(SkipReason::TooLarge);
        left_out.count(SkipReason::Broken);
        left_out.count(SkipReason::Broken);
        assert_eq!(left_out.to_json(), json!({ "too_large": 1, "broken": 2 }));
    }
}
