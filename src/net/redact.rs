//! Redacts keys and the secret parts of URLs in text from elsewhere, before it becomes an error, an
//! event, a log line or part of a screen.
//!
//! In doubt it redacts: `***` in an error says less, but a key in a log is lost for good.

use std::borrow::Cow;
use std::sync::Arc;

use super::encodings::{PrefixTracker, SecretForms};
use super::secret::Secret;

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

#[cfg(test)]
mod tests;
