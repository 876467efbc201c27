//! Takes keys and the secret parts of addresses out of text that others wrote, before it becomes an
//! error, an event, a log line or a screen.
//!
//! It would rather take too much: `***` in an error says less, a key in a log is lost for good.

use std::borrow::Cow;

use super::secret::Secret;

/// What stands in place of a secret.
const STARS: &str = "***";

/// Beginnings of keys as providers make them; they count at the start of a word.
const PREFIXES: [&str; 9] =
    ["sk-", "sk_", "rk-", "pk-", "gsk_", "xai-", "hf_", "AIza", "github_pat_"];

/// Names whose value is a secret to the end of its line: it may have blanks in it.
const HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "set-cookie"];

/// Names whose value is a secret of one word.
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

/// Schemes of an `Authorization` header; the word after them is a secret.
const SCHEMES: [&str; 2] = ["bearer", "basic"];

/// Takes out secrets: those it was told of, and whatever has the look of one.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    known: Vec<Secret>,
}

impl Redactor {
    /// One that also knows these very secrets, as far as they are
    /// [worth hiding](Secret::is_worth_hiding): shorter ones are no secrets, and plain words would
    /// be taken for them. What a header or field that is named for a secret says is hidden all the
    /// same by [`redact`](Self::redact).
    pub fn knowing(known: impl IntoIterator<Item = Secret>) -> Self {
        let known = known.into_iter().filter(Secret::is_worth_hiding).collect();
        Self { known }
    }

    /// The text without
    /// - the secrets it knows, in whole, and, where the text was cut off, their beginnings;
    /// - user names, passwords, queries and fragments of addresses;
    /// - values of headers and fields that are named for a secret;
    /// - what follows `Bearer` and `Basic`, and words that begin as keys do (`sk-`).
    ///
    /// ```
    /// use roundtable::net::{Redactor, Secret};
    /// let redactor = Redactor::knowing([Secret::new("hunter2hunter2")]);
    /// assert_eq!(redactor.redact("no hunter2hunter2, no sk-abc"), "no ***, no ***");
    /// assert_eq!(
    ///     redactor.redact("GET https://me:pw@a.example/v1?key=1"),
    ///     "GET https://***@a.example/v1?***",
    /// );
    /// ```
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = self.redact_known(text);
        step(&mut out, addresses);
        step(&mut out, named_values);
        step(&mut out, keys);
        out
    }
}

impl Redactor {
    /// The text without the secrets it knows; nothing else is looked for. For data, which has to
    /// stay what it is.
    pub fn redact_known<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = Cow::Borrowed(text);
        for secret in &self.known {
            step(&mut out, |text| known(text, secret.expose()));
        }
        out
    }

    /// Whether it knows of no secret.
    pub fn knows_none(&self) -> bool {
        self.known.is_empty()
    }
}

/// One pass over the text; `None` leaves it as it is.
fn step(text: &mut Cow<'_, str>, pass: impl FnOnce(&str) -> Option<String>) {
    if let Some(changed) = pass(text) {
        *text = Cow::Owned(changed);
    }
}

/// Where to put stars, in order and apart from each other.
type Cuts = Vec<(usize, usize)>;

fn starred(text: &str, cuts: &Cuts) -> Option<String> {
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

/// So much of a secret's beginning, at the end of a text that was cut off, is taken for it.
const BEGINNING: usize = 6;

fn known(text: &str, secret: &str) -> Option<String> {
    let mut cuts = Cuts::new();
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find(secret)) {
        let (start, end) = (from + found, from + found + secret.len());
        cuts.push((start, end));
        from = end;
    }
    let beginning = (BEGINNING..secret.len())
        .rev()
        .filter_map(|length| secret.get(..length))
        .find(|beginning| text.ends_with(beginning));
    if let Some(beginning) = beginning {
        let start = text.len() - beginning.len();
        if cuts.last().is_none_or(|&(_, end)| end <= start) {
            cuts.push((start, text.len()));
        }
    }
    starred(text, &cuts)
}

fn word_starts(text: &str, at: usize) -> bool {
    !text.get(..at).and_then(|before| before.chars().next_back()).is_some_and(char::is_alphanumeric)
}

/// User names and passwords, queries, fragments.
fn addresses(text: &str) -> Option<String> {
    let mut cuts = Cuts::new();
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
    starred(text, &cuts)
}

/// `Authorization: Bearer abc`, `"api_key": "abc"`, `password=abc`.
fn named_values(text: &str) -> Option<String> {
    if !text.contains([':', '=']) {
        return None;
    }
    let mut cuts = Cuts::new();
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
    starred(text, &cuts)
}

/// The value behind a name that ends here: after `:` or `=`, within its quotes where it has some.
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

/// What stands in quotes at the start, plain or as JSON within JSON has them (`\"`).
fn quoted(text: &str) -> Option<(&str, usize)> {
    let quote = ["\\\"", "\"", "'"].into_iter().find(|quote| text.starts_with(quote))?;
    let value = text.get(quote.len()..)?;
    Some((value, value.find(quote).unwrap_or(value.len())))
}

/// Words that begin as keys do, and the word after `Bearer` or `Basic`.
fn keys(text: &str) -> Option<String> {
    // Most texts are a word or two, such as a model's name.
    if !text.contains([' ', '\t']) && !PREFIXES.iter().any(|prefix| text.contains(prefix)) {
        return None;
    }
    let mut cuts = Cuts::new();
    let mut from = 0;
    let mut after_scheme = false;
    while let Some((start, end)) = next_word(text, from, |c| "-_.*~+/=:".contains(c)) {
        let Some(word) = text.get(start..end) else { break };
        // `Bearer sk-1` and `key:sk-1` alike: each part after a `:` or `=` may be a key.
        let key = PREFIXES.iter().find_map(|prefix| {
            word.match_indices(prefix)
                .map(|(at, _)| at)
                .find(|&at| word_starts(word, at) && word.len() > at + prefix.len())
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
    starred(text, &cuts)
}

/// The next run of letters, digits and `also` from here on.
fn next_word(text: &str, from: usize, also: impl Fn(char) -> bool) -> Option<(usize, usize)> {
    let inside = |c: char| c.is_alphanumeric() || also(c);
    let rest = text.get(from..)?;
    let start = from + rest.find(inside)?;
    let word = text.get(start..)?;
    Some((start, start + word.find(|c| !inside(c)).unwrap_or(word.len())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_taken_out() {
        let redactor = Redactor::knowing([Secret::new("correct-horse-battery"), Secret::new("k1")]);
        for (text, redacted) in [
            ("nothing to hide: the risk-averse task-force asks", None),
            (
                "Incorrect API key provided: sk-abc1****wxyz. You can",
                Some("Incorrect API key provided: *** You can"),
            ),
            ("(correct-horse-battery)", Some("(***)")),
            ("xcorrect-horse-batteryx", Some("x***x")),
            ("cut off: correct-horse-b", Some("cut off: ***")),
            ("correct it is", None),
            ("k1 and k12: shorter than a secret is", None),
            ("Authorization: k1", Some("Authorization: ***")),
            ("Bearer k1", Some("Bearer ***")),
            ("Authorization: Bearer abc.def", Some("Authorization: ***")),
            ("authorization: Basic dXNlcjpwYXNz\nhost: a", Some("authorization: ***\nhost: a")),
            ("sent Bearer abc.def-123 to a", Some("sent Bearer *** to a")),
            ("BEARER\tabc", Some("BEARER\t***")),
            ("the bearer of news", Some("the bearer *** news")),
            ("a bearer.", None),
            ("Cookie: a=1; b=2\r\nx: y", Some("Cookie: ***\r\nx: y")),
            ("set-cookie=sid", Some("set-cookie=***")),
            (r#"{"authorization":"Bearer x y","n":1}"#, Some(r#"{"authorization":"***","n":1}"#)),
            (r#"{"api_key": "abc", "n": 1}"#, Some(r#"{"api_key": "***", "n": 1}"#)),
            (r#""{\"api_key\":\"abc\",\"n\":1}""#, Some(r#""{\"api_key\":\"***\",\"n\":1}""#)),
            ("password=abc&n=1", Some("password=***&n=1")),
            ("X-Api-Key: abc, next", Some("X-Api-Key: ***, next")),
            ("the password is wrong", None),
            ("key:sk-proj-1_2", Some("key:***")),
            ("gsk_abc AIzaSy hf_a xai-1", Some("*** *** *** ***")),
            ("see https://a.example/v1/models", None),
            (
                "https://u:p@a.example:8/v1?key=1&b=2#c, then",
                Some("https://***@a.example:8/v1?*** then"),
            ),
            ("<a href=\"http://a/?t=1\">x</a>", Some("<a href=\"http://a/?***\">x</a>")),
            ("http://u:p@ss@a/", Some("http://***@a/")),
            ("where is it? https://a.example?", None),
            ("", None),
        ] {
            let found = redactor.redact(text);
            assert_eq!(found, redacted.unwrap_or(text), "{text}");
            assert_eq!(redactor.redact(&found), found, "twice is once");
        }
    }

    proptest! {
        #[test]
        fn a_known_secret_never_survives(
            secret in "[a-zA-Z0-9_./+=-]{8,40}",
            before in "\\PC{0,30}",
            after in "\\PC{0,30}",
            cut in 6_usize..40,
        ) {
            let redactor = Redactor::knowing([Secret::new(secret.as_str())]);
            let text = format!("{before}{secret}{after}");
            let found = redactor.redact(&text);
            prop_assert!(!found.contains(&secret), "{}", found);
            let cut = &secret[..cut.min(secret.len())];
            let text = format!("{before} {cut}");
            let found = redactor.redact(&text);
            prop_assert!(!found.ends_with(cut), "{}", found);
        }

        #[test]
        fn any_text_is_taken(text in "\\PC*") {
            let _ = Redactor::knowing([Secret::new("aaaaaaaa"), Secret::new(":///?#@=")]).redact(&text);
        }
    }
}
