//! Encodings in which a secret may appear in text: plain, base64 (standard and URL-safe, at any
//! offset), hex, and partly or fully percent-encoded.

use std::fmt;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};

use super::secret::Secret;

/// All encoded forms of some secrets.
#[derive(Default)]
pub(super) struct SecretForms {
    forms: Vec<EncodedForm>,
    /// Finds all forms in one pass.
    search: Option<AhoCorasick>,
}

/// One encoded form. Percent-encoding is not one of them: it is removed from the searched text.
struct EncodedForm {
    text: Vec<u8>,
    /// For each prefix length, the longest border of that prefix (Knuth, Morris, Pratt).
    borders: Vec<usize>,
    /// Whether it is an encoding, not plain text.
    encoded: bool,
    /// Whether the characters before and after it share bits with it.
    shares_bits: (bool, bool),
}

/// Shortest prefix of a plain secret that is redacted at the end of a truncated text.
const MIN_PREFIX: usize = 6;
/// Shortest prefix of an encoded secret that is redacted at the end of a truncated text.
const MIN_ENCODED_PREFIX: usize = 8;

impl EncodedForm {
    fn new(text: &[u8], encoded: bool, shares_bits: (bool, bool)) -> Self {
        let mut borders = vec![0; text.len() + 1];
        for end in 2..=text.len() {
            let mut border = borders[end - 1];
            while border > 0 && text[border] != text[end - 1] {
                border = borders[border];
            }
            borders[end] = if text[border] == text[end - 1] { border + 1 } else { 0 };
        }
        Self { text: text.to_vec(), borders, encoded, shares_bits }
    }

    /// Length of the matched prefix after one more byte; always less than the whole form.
    fn advance(&self, mut matched: usize, byte: u8) -> usize {
        while matched > 0 && self.text[matched] != byte {
            matched = self.borders[matched];
        }
        if self.text[matched] == byte {
            matched += 1;
        }
        if matched == self.text.len() { self.borders[matched] } else { matched }
    }
}

impl SecretForms {
    pub(super) fn from_secrets(secrets: &[Secret]) -> Self {
        let mut forms: Vec<EncodedForm> = Vec::new();
        let mut add = |form: EncodedForm| {
            if forms.iter().all(|had| had.text != form.text) {
                forms.push(form);
            }
        };
        for secret in secrets {
            let secret = secret.expose().as_bytes();
            add(EncodedForm::new(secret, false, (false, false)));
            for engine in [BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD] {
                for ahead in 0..3 {
                    let bytes = [&[0; 2][..ahead], secret].concat();
                    let text = engine.encode(&bytes);
                    // A base64 character holds six bits: characters that share bits with their
                    // neighbours are left out.
                    let from = [0, 2, 3][ahead];
                    let shared_after = bytes.len() % 3 != 0;
                    let until = text.len() - usize::from(shared_after);
                    let text = text.as_bytes().get(from..until).unwrap_or_default();
                    add(EncodedForm::new(text, true, (ahead > 0, shared_after)));
                }
            }
            let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
            add(EncodedForm::new(hex.as_bytes(), true, (false, false)));
            add(EncodedForm::new(hex.to_ascii_uppercase().as_bytes(), true, (false, false)));
        }
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(forms.iter().map(|form| &form.text));
        // Building fails only for gigabytes of secrets.
        let search = search.ok().filter(|_| !forms.is_empty());
        Self { forms, search }
    }

    /// Whether there are no secrets.
    pub(super) fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Ranges of the secrets in a text, in order and not overlapping.
    pub(super) fn find(&self, text: &str) -> Vec<(usize, usize)> {
        let Some(search) = &self.search else { return Vec::new() };
        let mut cuts = self.ranges(search, text.as_bytes());
        if let Some((bytes, places)) = decoded(text) {
            let found = self.ranges(search, &bytes).into_iter();
            cuts.extend(found.map(|(start, end)| (places[start], places[end])));
            cuts.sort_unstable();
            cuts.dedup_by(|next, before| {
                let meets = next.0 <= before.1;
                if meets {
                    before.1 = before.1.max(next.1);
                }
                meets
            });
        }
        cuts
    }

    fn ranges(&self, search: &AhoCorasick, bytes: &[u8]) -> Vec<(usize, usize)> {
        let shared = |at: Option<usize>| {
            let byte = at.and_then(|at| bytes.get(at));
            usize::from(byte.is_some_and(|b| b.is_ascii_alphanumeric() || b"+/-_".contains(b)))
        };
        let mut cuts: Vec<(usize, usize)> = Vec::new();
        for found in search.find_iter(bytes) {
            let (before, after) = self.forms[found.pattern().as_usize()].shares_bits;
            let (mut start, mut end) = (found.start(), found.end());
            if before {
                start -= shared(start.checked_sub(1));
            }
            if after {
                end += shared(Some(end));
            }
            match cuts.last_mut().filter(|last| last.1 >= start) {
                Some(last) => last.1 = end,
                None => cuts.push((start, end)),
            }
        }
        cuts
    }

    /// Start of a secret's prefix at the end of a truncated text.
    pub(super) fn prefix_at_end(&self, text: &str) -> Option<usize> {
        if text.len() < MIN_PREFIX {
            return None;
        }
        let long = |form: &EncodedForm, matched: usize| {
            matched >= if form.encoded { MIN_ENCODED_PREFIX } else { MIN_PREFIX }
        };
        let most = self.forms.iter().map(|form| 3 * form.text.len()).max()?;
        let from = text.len().saturating_sub(most);
        let from = (from..=text.len()).find(|at| text.is_char_boundary(*at))?;
        let tail = text.get(from..)?.as_bytes();
        let mut watch = PrefixTracker::default();
        watch.read(&self.forms, tail);
        let begun = watch.matched(&self.forms, tail, long);
        (begun > 0).then_some(text.len() - begun)
    }
}

impl fmt::Debug for SecretForms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The text without percent-encoding, and the original position of each byte, with the end position
/// last; `None` if nothing is percent-encoded.
fn decoded(text: &str) -> Option<(Vec<u8>, Vec<usize>)> {
    let raw = text.as_bytes();
    let mut signs = raw.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    let (mut at, _) = signs.find(|(at, _)| escape(&raw[*at..]).is_some())?;
    let mut bytes = raw[..at].to_vec();
    let mut places: Vec<usize> = (0..at).collect();
    while at < raw.len() {
        places.push(at);
        let (byte, length) = match escape(&raw[at..]) {
            Some(byte) => (byte, 3),
            None => (raw[at], 1),
        };
        bytes.push(byte);
        at += length;
    }
    places.push(raw.len());
    Some((bytes, places))
}

/// The byte of a percent escape at the start of the text.
fn escape(text: &[u8]) -> Option<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let [b'%', high, low, ..] = text else { return None };
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// Follows a text that arrives in pieces, and returns how much of its end may be the start of a
/// secret and must not be shown yet.
#[derive(Debug, Default)]
pub(super) struct PrefixTracker {
    /// Length of the matched prefix, for each form.
    plain: Vec<usize>,
    /// The same for the decoded text, once the text has a `%`.
    decoded: Option<Vec<usize>>,
    /// Number of bytes at the end that may become a percent escape.
    escape: usize,
    read: usize,
}

impl PrefixTracker {
    /// Reads the new part of a text; returns how many bytes at its end have to be held back.
    pub(super) fn held_back(&mut self, spellings: &SecretForms, text: &str) -> usize {
        self.read(&spellings.forms, text.as_bytes());
        let begun = self.matched(&spellings.forms, text.as_bytes(), |_, matched| matched > 0);
        begun.max(self.escape)
    }

    /// Length in bytes of the longest matched prefix that counts.
    fn matched(
        &self,
        forms: &[EncodedForm],
        text: &[u8],
        counts: impl Fn(&EncodedForm, usize) -> bool,
    ) -> usize {
        let longest = |matched: &[usize]| {
            let each = forms.iter().zip(matched).filter(|(form, matched)| counts(form, **matched));
            each.map(|(_, matched)| *matched).max().unwrap_or(0)
        };
        let encoded = self.decoded.as_ref().map_or(0, |decoded| match longest(decoded) {
            0 => 0,
            matched => {
                let mut at = text.len() - self.escape;
                for _ in 0..matched {
                    let escaped = at.checked_sub(3).filter(|at| escape(&text[*at..]).is_some());
                    at = escaped.unwrap_or(at.saturating_sub(1));
                }
                text.len() - at
            }
        });
        longest(&self.plain).max(encoded)
    }

    fn read(&mut self, forms: &[EncodedForm], text: &[u8]) {
        self.plain.resize(forms.len(), 0);
        for (at, byte) in text.iter().enumerate().skip(self.read) {
            if *byte == b'%' && self.decoded.is_none() {
                self.decoded = Some(self.plain.clone());
            }
            advance_all(&mut self.plain, forms, *byte);
            let Some(decoded) = &mut self.decoded else { continue };
            let begun = &text[at - self.escape..=at];
            self.escape = match (begun, escape(begun)) {
                (_, Some(byte)) => {
                    advance_all(decoded, forms, byte);
                    0
                }
                ([b'%'], None) => 1,
                ([b'%', digit], None) if digit.is_ascii_hexdigit() => 2,
                ([b'%', before @ .., b'%'], None) => {
                    advance_all(decoded, forms, b'%');
                    before.iter().for_each(|byte| advance_all(decoded, forms, *byte));
                    1
                }
                (_, None) => {
                    begun.iter().for_each(|byte| advance_all(decoded, forms, *byte));
                    0
                }
            };
        }
        self.read = text.len();
    }
}

fn advance_all(matched: &mut [usize], forms: &[EncodedForm], byte: u8) {
    for (matched, form) in matched.iter_mut().zip(forms) {
        *matched = form.advance(*matched, byte);
    }
}
