//! What of a folder is not taken, and why: counted, never silent.

use serde_json::{Map, Value};

/// Why something in a folder is not one of its documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Its name begins with a dot. A hidden folder counts once, whatever is in it.
    Hidden,
    /// A link that leads out of the folder.
    LeadsOut,
    /// A link to a folder within: what is in it is there under its own name.
    LinkedFolder,
    /// Neither a file nor a folder: a pipe, a socket, a device. It is not opened.
    Special,
    /// Neither Markdown nor HTML, plain text or PDF, by its name.
    OtherType,
    /// Larger than [`MAX_BYTES`](super::MAX_BYTES).
    TooLarge,
    /// Beyond the first [`MAX_FILES`](super::MAX_FILES).
    TooMany,
    /// It has no address: in a mirror its first folder is no host.
    NoAddress,
    /// It cannot be opened or read.
    Unopened,
    /// Its name says text, its bytes do not.
    Binary,
    /// In a charset that cannot be read.
    Charset,
    /// There is no text in it.
    Empty,
    /// Its parser refuses it.
    Broken,
}

impl Reason {
    /// Every reason. An index keeps the place of a reason in this list: append only, or raise
    /// [`VERSION`](super::text_index::VERSION).
    pub const ALL: [Self; 13] = [
        Self::Hidden,
        Self::LeadsOut,
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

    /// Its word in answers.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hidden => "hidden",
            Self::LeadsOut => "leads_out",
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

    /// Its place in [`ALL`](Self::ALL), from 1.
    pub(super) fn code(self) -> u64 {
        self as u64 + 1
    }

    /// The reason of a code; `None`: nothing is wrong with the file.
    pub(super) fn of_code(code: u64) -> Option<Self> {
        let place = usize::try_from(code.checked_sub(1)?).ok()?;
        Some(Self::ALL.get(place).copied().unwrap_or(Self::Broken))
    }
}

/// How many were left out, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut([u64; Reason::ALL.len()]);

impl LeftOut {
    /// One more.
    pub fn count(&mut self, reason: Reason) {
        if let Some(count) = self.0.get_mut(reason as usize) {
            *count += 1;
        }
    }

    /// All of both.
    pub fn and(mut self, other: &Self) -> Self {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
        self
    }

    /// How many for this reason.
    pub fn of(&self, reason: Reason) -> u64 {
        self.0.get(reason as usize).copied().unwrap_or(0)
    }

    /// As an answer tells it: the reasons that there are, by their words.
    pub fn told(&self) -> Value {
        let counts = Reason::ALL.iter().map(|reason| (*reason, self.of(*reason)));
        let told: Map<String, Value> = counts
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| (reason.word().to_owned(), count.into()))
            .collect();
        Value::Object(told)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reason_is_found_again_by_its_code_and_told_by_its_word() {
        for reason in Reason::ALL {
            assert_eq!(Reason::of_code(reason.code()), Some(reason));
        }
        assert_eq!(Reason::of_code(0), None);
        let mut left_out = LeftOut::default();
        left_out.count(Reason::TooLarge);
        left_out.count(Reason::Broken);
        left_out.count(Reason::Broken);
        assert_eq!(left_out.told(), json!({ "too_large": 1, "broken": 2 }));
    }
}
