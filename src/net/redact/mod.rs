//! Redacts keys and the secret parts of URLs in text from elsewhere, before it becomes an error, an
//! event, a log line or part of a screen.
//!
//! In doubt it redacts: `***` in an error says less, but a key in a log is lost for good.
//!
//! A text that must not be shown.
//!
//! Encodings in which a secret may appear in text: plain, base64 (standard and URL-safe, at any
//! offset), hex, and partly or fully percent-encoded.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};

/// Replacement of a secret.
const STARS: &str = "***";

/// Prefixes of providers' keys; they count at the start of a word.
const PREFIXES: [&str; 9] =
    ["sk-", "sk_", "rk-", "pk-", "gsk_", "xai-", "hf_", "AIza", "github_pat_"];

/// Names whose value is secret up to the end of its line, since it may contain blanks.
const HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "set-cookie"];

/// Names whose value is one secret word.
const FIELDS: [&str; 14] = [
    "x-api-key",
    "api-key",
    "api_key",
    "apikey",
    "x-goog-api-key",
    "openai_api_key",
    "access_token",
    "refresh_token",
    "id_token",
    "auth_token",
    "session_token",
    "client_secret",
    "password",
    "passwd",
];

/// Schemes of an `Authorization` header; the word after them is secret.
const SCHEMES: [&str; 2] = ["bearer", "basic"];

/// Redacts secrets: known ones, and whatever looks like one.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    known: Arc<SecretForms>,
}

impl Redactor {
    /// A redactor that also knows these secrets, as far as they are [worth
    /// hiding](Secret::is_worth_hiding); shorter ones would match ordinary words. Values of headers
    /// and fields with secret names are redacted by [`redact`](Self::redact) in any case.
    pub fn with_secrets(known: impl IntoIterator<Item = Secret>) -> Self {
        let known: Vec<Secret> = known.into_iter().filter(Secret::is_worth_hiding).collect();
        Self { known: Arc::new(SecretForms::from_secrets(&known)) }
    }

    /// The text with the following redacted:
    /// - known secrets, and their prefixes at the end of a truncated text: plain, in base64, in
    ///   hex, percent-encoded;
    /// - user names, passwords, queries and fragments of URLs;
    /// - values of headers and fields with secret names;
    /// - what follows `Bearer` and `Basic`, and words that start like keys (`sk-`).
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = self.redact_known(text);
        apply_pass(&mut out, redact_urls);
        apply_pass(&mut out, redact_named_values);
        apply_pass(&mut out, redact_keys);
        out
    }
}

impl Redactor {
    /// The text with only the known secrets redacted. For data, which must not change otherwise.
    pub fn redact_known<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = self.redact_whole(text);
        apply_pass(&mut out, |text| {
            let start = self.known.prefix_at_end(text)?;
            replace_ranges(text, &vec![(start, text.len())])
        });
        out
    }

    /// The text with the known secrets redacted, but not their prefixes.
    pub fn redact_whole<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match replace_ranges(text, &self.known.find(text)) {
            Some(starred) => Cow::Owned(starred),
            None => Cow::Borrowed(text),
        }
    }

    /// Whether it knows no secrets.
    pub fn has_no_secrets(&self) -> bool {
        self.known.is_empty()
    }
}

/// Applies one pass to the text; `None` leaves it unchanged.
fn apply_pass(text: &mut Cow<'_, str>, pass: impl FnOnce(&str) -> Option<String>) {
    if let Some(changed) = pass(text) {
        *text = Cow::Owned(changed);
    }
}

/// Ranges to redact, in order and not overlapping.
type RedactedRanges = Vec<(usize, usize)>;

fn replace_ranges(text: &str, cuts: &RedactedRanges) -> Option<String> {
    if cuts.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for &(start, end) in cuts {
        out.push_str(text.get(from..start).unwrap_or_default());
        out.push_str(STARS);
        from = end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Some(out)
}

/// Redacts a text that is shown while it arrives: what may be the start of a secret is held back
/// until more has arrived.
#[derive(Debug, Default)]
pub struct StreamRedactor {
    watch: PrefixTracker,
    shown: usize,
}

impl StreamRedactor {
    /// The new part of the text that may be shown, its known secrets redacted. `text` is the text
    /// of the previous call with more at its end.
    pub fn next<'t>(&mut self, redactor: &Redactor, text: &'t str) -> Option<Cow<'t, str>> {
        let until = text.len() - self.watch.held_back(&redactor.known, text);
        let new = text.get(self.shown..until).filter(|new| !new.is_empty())?;
        self.shown = until;
        Some(redactor.redact_whole(new))
    }
}

fn is_word_start(text: &str, at: usize) -> bool {
    !text.get(..at).and_then(|before| before.chars().next_back()).is_some_and(char::is_alphanumeric)
}

/// User names and passwords, queries and fragments of URLs.
fn redact_urls(text: &str) -> Option<String> {
    let mut cuts = RedactedRanges::new();
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find("://")) {
        let start = from + found + "://".len();
        let rest = text.get(start..).unwrap_or_default();
        let address = rest.split(|c: char| c.is_whitespace() || "\"'`<>".contains(c)).next();
        let address = address.unwrap_or_default();
        let authority = address.split(['/', '?', '#']).next().unwrap_or_default();
        if let Some(at) = authority.rfind('@') {
            cuts.push((start, start + at));
        }
        if let Some(query) = address.find(['?', '#'])
            && query + 1 < address.len()
        {
            cuts.push((start + query + 1, start + address.len()));
        }
        from = start + address.len();
    }
    replace_ranges(text, &cuts)
}

/// `Authorization: Bearer abc`, `"api_key": "abc"`, `password=abc`.
fn redact_named_values(text: &str) -> Option<String> {
    if !text.contains([':', '=']) {
        return None;
    }
    let mut cuts = RedactedRanges::new();
    let mut from = 0;
    while let Some((start, end)) = next_word(text, from, |c| c == '-' || c == '_') {
        from = end;
        let Some(word) = text.get(start..end) else { break };
        let header = HEADERS.iter().any(|name| word.eq_ignore_ascii_case(name));
        if !header && !FIELDS.iter().any(|name| word.eq_ignore_ascii_case(name)) {
            continue;
        }
        if let Some((start, end)) = value_at(text, end, header) {
            cuts.push((start, end));
            from = end;
        }
    }
    replace_ranges(text, &cuts)
}

/// Range of the value after a name that ends here: after `:` or `=`, inside its quotes if it has
/// some.
fn value_at(text: &str, name_end: usize, to_line_end: bool) -> Option<(usize, usize)> {
    let rest = text.get(name_end..)?;
    let rest = rest.trim_start_matches(['"', '\'', '\\', '`']).trim_start();
    let rest = rest.strip_prefix([':', '='])?.trim_start_matches([' ', '\t']);
    let (value, length) = quoted(rest).unwrap_or_else(|| {
        let length = if to_line_end {
            rest.find(['\r', '\n'])
        } else {
            rest.find(|c: char| c.is_whitespace() || ",;&}])\"'".contains(c))
        };
        (rest, length.unwrap_or(rest.len()))
    });
    let start = text.len() - value.len();
    (length > 0).then_some((start, start + length))
}

/// Text in quotes at the start, plain or as JSON within JSON (`\"`).
fn quoted(text: &str) -> Option<(&str, usize)> {
    let quote = ["\\\"", "\"", "'"].into_iter().find(|quote| text.starts_with(quote))?;
    let value = text.get(quote.len()..)?;
    Some((value, value.find(quote).unwrap_or(value.len())))
}

/// Words that start like keys, and the word after `Bearer` or `Basic`.
fn redact_keys(text: &str) -> Option<String> {
    // Most texts are a word or two, such as a model's name.
    if !text.contains([' ', '\t']) && !PREFIXES.iter().any(|prefix| text.contains(prefix)) {
        return None;
    }
    let mut cuts = RedactedRanges::new();
    let mut from = 0;
    let mut after_scheme = false;
    while let Some((start, end)) = next_word(text, from, |c| "-_.*~+/=:".contains(c)) {
        let Some(word) = text.get(start..end) else { break };
        // `Bearer sk-1` and `key:sk-1` alike: each part after `:` or `=` may be a key.
        let key = PREFIXES.iter().find_map(|prefix| {
            word.match_indices(prefix)
                .map(|(at, _)| at)
                .find(|&at| is_word_start(word, at) && word.len() > at + prefix.len())
        });
        if after_scheme && word != STARS {
            cuts.push((start, end));
        } else if let Some(at) = key {
            cuts.push((start + at, end));
        }
        let scheme = word.rsplit([':', '=']).next().unwrap_or(word);
        after_scheme = SCHEMES.iter().any(|name| scheme.eq_ignore_ascii_case(name))
            && text.get(end..).is_some_and(|rest| rest.starts_with([' ', '\t']));
        from = end;
    }
    replace_ranges(text, &cuts)
}

/// The next run of letters, digits and `also`, from `from` on.
fn next_word(text: &str, from: usize, also: impl Fn(char) -> bool) -> Option<(usize, usize)> {
    let inside = |c: char| c.is_alphanumeric() || also(c);
    let rest = text.get(from..)?;
    let start = from + rest.find(inside)?;
    let word = text.get(start..)?;
    Some((start, start + word.find(|c| !inside(c)).unwrap_or(word.len())))
}

/// A key or password: `Debug` and `Display` print `***`, and it cannot be serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps this text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Shortest secret worth redacting, in characters.
    const MIN_CHARS: usize = 8;

    /// Whether it is long enough to be a secret. Local servers accept any key, and `x` or `ollama`
    /// are common: redacting those would replace ordinary words and protect nothing.
    pub fn is_worth_hiding(&self) -> bool {
        self.0.chars().count() >= Self::MIN_CHARS
    }

    /// The text itself, for the header that carries it and for the redactor.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// All encoded forms of some secrets.
#[derive(Default)]
pub(crate) struct SecretForms {
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
    fn from_secrets(secrets: &[Secret]) -> Self {
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
    pub(crate) fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Ranges of the secrets in a text, in order and not overlapping.
    pub(crate) fn find(&self, text: &str) -> Vec<(usize, usize)> {
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
    fn prefix_at_end(&self, text: &str) -> Option<usize> {
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
pub(crate) struct PrefixTracker {
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
    fn held_back(&mut self, spellings: &SecretForms, text: &str) -> usize {
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
