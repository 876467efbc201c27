//! Redacts keys and the secret parts of URLs in text from elsewhere, before it becomes an error, an
//! event, a log line or part of a screen. In doubt it redacts: `***` in an error says less, but a key in a
//! log is lost for good. A known secret is found as it is, JSON-escaped, percent-encoded and in base64.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

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

/// Ends of the names of environment variables whose value is a secret: `SHOP_API_KEY`.
const VARIABLES: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS"];

/// Fields of a query whose value is secret, besides `FIELDS`.
const QUERY_FIELDS: [&str; 7] = ["key", "token", "auth", "secret", "sig", "signature", "pwd"];

/// Longest name of such a field, in bytes.
const MAX_FIELD: usize = 32;

/// Schemes of an `Authorization` header; the word after them is secret.
const SCHEMES: [&str; 2] = ["bearer", "basic"];

/// Redacts known secrets, and texts that look like secrets.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    known: Arc<SecretForms>,
}

impl Redactor {
    /// A redactor that also knows these secrets, if they are [worth hiding](Secret::is_worth_hiding);
    /// shorter ones would match ordinary words. Values of headers and fields with secret names are
    /// redacted by [`redact`](Self::redact) in any case.
    pub fn with_secrets(known: impl IntoIterator<Item = Secret>) -> Self {
        let known: Vec<Secret> = known.into_iter().filter(Secret::is_worth_hiding).collect();
        Self { known: Arc::new(SecretForms::from_secrets(&known)) }
    }

    /// The text with the following redacted:
    /// - known secrets, and their prefixes at the end of a truncated text: as they are, JSON-escaped,
    ///   percent-encoded, in base64;
    /// - user names, passwords, queries and fragments of URLs;
    /// - values of headers, fields, variables (`SHOP_API_KEY=`) and parts of queries (`?key=`) with secret
    ///   names;
    /// - what follows `Bearer` and `Basic`, and words that start like keys (`sk-`).
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = self.redact_known(text);
        apply_pass(&mut out, |text| redact_urls(text, true));
        apply_pass(&mut out, redact_query_fields);
        apply_pass(&mut out, redact_named_values);
        apply_pass(&mut out, |text| redact_keys(text, false));
        out
    }
}

/// The text of another program with the known forms of keys redacted, as [`Redactor::redact`] does. It is data
/// that people read, so more stays: queries of URLs but for fields with secret names, and a plain word after
/// `Bearer`.
pub fn redact_forms(text: &str) -> Cow<'_, str> {
    let mut out = Cow::Borrowed(text);
    apply_pass(&mut out, |text| redact_urls(text, false));
    apply_pass(&mut out, redact_query_fields);
    apply_pass(&mut out, redact_named_values);
    apply_pass(&mut out, |text| redact_keys(text, true));
    out
}

/// The words of a command line with the known forms of keys redacted, also the value of `--api-key`.
pub fn redact_command(words: &[String]) -> Vec<String> {
    let mut follows_name = false;
    let redacted = words.iter().map(|word| {
        let is_value = std::mem::replace(
            &mut follows_name,
            word.starts_with('-') && is_secret_name(word.trim_start_matches('-')),
        );
        if is_value && !word.starts_with('-') {
            return STARS.to_owned();
        }
        redact_forms(word).into_owned()
    });
    redacted.collect()
}

impl Redactor {
    /// The text with only the known secrets redacted. For data, which must not change otherwise.
    pub fn redact_known<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = self.redact_whole(text);
        apply_pass(&mut out, |text| match self.known.begun(text, MIN_PREFIX) {
            0 => None,
            begun => replace_ranges(text, &vec![(text.len() - begun, text.len())]),
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

    /// Splits off a possible beginning of a known secret at the end: the next piece of a stream may have the rest.
    pub fn split_begun<'t>(&self, text: &'t str) -> (&'t str, &'t str) {
        let begun = self.known.begun(text, MIN_PREFIX);
        text.split_at_checked(text.len() - begun).unwrap_or((text, ""))
    }

    /// Whether it knows no secrets.
    pub fn has_no_secrets(&self) -> bool {
        self.known.forms.is_empty()
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
    shown: usize,
}

impl StreamRedactor {
    /// The new part of the text that may be shown, its known secrets redacted. `text` is the text
    /// of the previous call with more at its end.
    pub fn next<'t>(&mut self, redactor: &Redactor, text: &'t str) -> Option<Cow<'t, str>> {
        let new = text.get(self.shown..)?;
        let until = new.len() - redactor.known.begun(new, 1);
        // A secret whose end may be the beginning of another one is held back as a whole.
        let found = redactor.known.find(new);
        let cut = found.iter().find(|(start, end)| (*start..*end).contains(&until));
        let until = cut.map_or(until, |(start, _)| *start);
        let new = new.get(..until).filter(|new| !new.is_empty())?;
        self.shown += until;
        Some(redactor.redact_whole(new))
    }
}

fn is_word_start(text: &str, at: usize) -> bool {
    !text.get(..at).and_then(|before| before.chars().next_back()).is_some_and(char::is_alphanumeric)
}

/// User names and passwords of URLs; `queries`: their queries and fragments too.
fn redact_urls(text: &str, queries: bool) -> Option<String> {
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
        if let Some(query) = address.find(['?', '#']).filter(|_| queries)
            && query + 1 < address.len()
        {
            cuts.push((start + query + 1, start + address.len()));
        }
        from = start + address.len();
    }
    replace_ranges(text, &cuts)
}

/// `v1?key=abc`, `&access_token=abc`.
fn redact_query_fields(text: &str) -> Option<String> {
    let mut cuts = RedactedRanges::new();
    for (at, _) in text.match_indices(['?', '&']) {
        let rest = text.get(at + 1..).unwrap_or_default();
        let equals = rest.bytes().take(MAX_FIELD).position(|byte| byte == b'=');
        let Some((name, value)) =
            equals.and_then(|at| rest[at..].split_once('=').map(|(_, value)| (&rest[..at], value)))
        else {
            continue;
        };
        let is_named = |names: &[&str]| names.iter().any(|it| name.eq_ignore_ascii_case(it));
        if !is_named(&QUERY_FIELDS) && !is_named(&FIELDS) {
            continue;
        }
        let ends = |c: char| c.is_whitespace() || "&#\"'`<>)]},;".contains(c);
        let length = value.find(ends).unwrap_or(value.len());
        let start = text.len() - value.len();
        if length > 0 {
            cuts.push((start, start + length));
        }
    }
    replace_ranges(text, &cuts)
}

/// Whether the value of a field, a header or a variable of this name is a secret.
fn is_secret_name(name: &str) -> bool {
    let is_upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let is_variable =
        |(_, end): (&str, &str)| VARIABLES.contains(&end) && name.chars().all(is_upper);
    FIELDS.iter().any(|field| name.eq_ignore_ascii_case(field))
        || name.rsplit_once('_').is_some_and(is_variable)
}

/// `Authorization: Bearer abc`, `"api_key": "abc"`, `password=abc`, `SHOP_API_KEY=abc`.
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
        if !header && !is_secret_name(word) {
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

/// Words that start like keys, and the word after `Bearer` or `Basic`; in a `data` text only if that is no
/// plain word.
fn redact_keys(text: &str, is_data: bool) -> Option<String> {
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
        let may_be_plain = is_data && word.len() < 16 && !word.chars().any(|c| c.is_ascii_digit());
        if after_scheme && word != STARS && !may_be_plain {
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

/// Shortest beginning of a secret that is redacted at the end of a truncated text.
const MIN_PREFIX: usize = 6;

/// Characters that most programs percent-encode.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The forms in which some secrets are searched.
#[derive(Default)]
struct SecretForms {
    forms: Vec<String>,
    /// Finds all forms in one pass.
    search: Option<AhoCorasick>,
}

impl SecretForms {
    fn from_secrets(secrets: &[Secret]) -> Self {
        let mut forms = Vec::new();
        for secret in secrets.iter().map(Secret::expose) {
            let json = Value::from(secret).to_string();
            let json = json.strip_prefix('"').and_then(|json| json.strip_suffix('"'));
            forms.extend([
                secret.to_owned(),
                json.unwrap_or(secret).to_owned(),
                utf8_percent_encode(secret, RESERVED).to_string(),
                utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string(),
                BASE64_STANDARD_NO_PAD.encode(secret),
                BASE64_URL_SAFE_NO_PAD.encode(secret),
            ]);
        }
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&forms);
        // Building fails only for gigabytes of secrets.
        let search = search.ok().filter(|_| !forms.is_empty());
        Self { forms, search }
    }

    /// Ranges of the secrets in a text, in order and not overlapping.
    fn find(&self, text: &str) -> RedactedRanges {
        let found = self.search.iter().flat_map(|search| search.find_iter(text));
        found.map(|found| (found.start(), found.end())).collect()
    }

    /// Length of the end of a text that may be the beginning of a secret, in bytes: at least `min`, or 0.
    fn begun(&self, text: &str, min: usize) -> usize {
        let begun = |form: &String| {
            let begins = |length: &usize| {
                form.as_bytes().get(..*length).is_some_and(|it| text.as_bytes().ends_with(it))
            };
            (min..form.len()).rev().find(begins)
        };
        self.forms.iter().filter_map(begun).max().unwrap_or(0)
    }
}

impl fmt::Debug for SecretForms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_taken_out() {
        let redactor =
            Redactor::with_secrets([Secret::new("correct-horse-battery"), Secret::new("k1")]);
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
            ("GET v1?key=abc&n=1 failed", Some("GET v1?key=***&n=1 failed")),
            ("/v1?n=1&access_token=a-b", Some("/v1?n=1&access_token=***")),
            ("SHOP_API_KEY=a1b2 npm start", Some("SHOP_API_KEY=*** npm start")),
            ("{'DB_PASSWORD': 'a b', 'N': '1'}", Some("{'DB_PASSWORD': '***', 'N': '1'}")),
            ("MAX_TOKENS=5 KEY=5 primary_key=5", None),
            ("", None),
        ] {
            let found = redactor.redact(text);
            assert_eq!(found, redacted.unwrap_or(text), "{text}");
            assert_eq!(redactor.redact(&found), found, "twice is once");
        }
    }

    #[test]
    fn keys_go_and_data_stays() {
        for (text, redacted) in [
            ("see https://a.example/find?id=2&q=x#top", None),
            ("the bearer of news and Basic rules", None),
            (
                "GET https://me:pw@a.example/v1?key=k1&id=2",
                Some("GET https://***@a.example/v1?key=***&id=2"),
            ),
            ("Authorization: Bearer abc", Some("Authorization: ***")),
            ("sent Bearer abc.def-123 to a", Some("sent Bearer *** to a")),
            (
                "{\"OPENAI_API_KEY\": \"k1\", \"n\": 1}",
                Some("{\"OPENAI_API_KEY\": \"***\", \"n\": 1}"),
            ),
            ("use sk-proj-abc", Some("use ***")),
        ] {
            let found = redact_forms(text);
            assert_eq!(found, redacted.unwrap_or(text), "{text}");
            assert_eq!(redact_forms(&found), found, "twice is once");
        }
        let command = ["app", "--api-key", "k1", "--n", "k1", "-H", "x-api-key: k1", "a?key=k1"];
        let command: Vec<String> = command.map(str::to_owned).to_vec();
        let shown = ["app", "--api-key", "***", "--n", "k1", "-H", "x-api-key: ***", "a?key=***"];
        assert_eq!(redact_command(&command), shown);
    }

    const KEY: &str = "sk-test-4f9a\"8c7b6d5e+/?~";

    /// The forms in which the key is searched.
    fn spellings() -> [String; 7] {
        use base64::prelude::*;
        let json = serde_json::to_string(KEY).expect("JSON");
        [
            KEY.to_owned(),
            json[1..json.len() - 1].to_owned(),
            utf8_percent_encode(KEY, NON_ALPHANUMERIC).to_string(),
            utf8_percent_encode(KEY, RESERVED).to_string(),
            BASE64_STANDARD.encode(KEY),
            BASE64_URL_SAFE.encode(KEY),
            BASE64_URL_SAFE_NO_PAD.encode(KEY),
        ]
    }

    #[test]
    fn finds_known_secrets_in_each_form() {
        let redactor = Redactor::with_secrets([Secret::new(KEY)]);
        for text in spellings() {
            for (before, after) in [("", ""), ("a", ""), ("it says ", " and more"), ("user:", "\n")]
            {
                let said = format!("{before}{text}{after}");
                let left = redactor.redact_known(&said).replace("***", "").replace('=', "");
                assert_eq!(left, format!("{before}{after}"), "{said}");
            }
        }
        for plain in ["c2st", "nothing", "100 % of it", "%41%4", "", "736b2d"] {
            assert_eq!(redactor.redact_known(plain), plain);
        }
    }

    #[test]
    fn cut_secrets_are_found() {
        let redactor = Redactor::with_secrets([Secret::new(KEY)]);
        for text in spellings() {
            let found = redactor.redact_known(&text[..text.len() / 2]).into_owned();
            assert!(found.ends_with("***"), "{text}: {found}");
            assert!(found.len() <= 8, "{text}: {found}");
        }
    }

    proptest! {
        /// The shown part of a text in pieces is the beginning of the text without the secret.
        #[test]
        fn pieces_show_no_part_of_secrets(
            before in "[a-zA-Z0-9 +/=-]{0,9}",
            after in "[a-zA-Z0-9 %+/=-]{0,9}",
            which in 0_usize..7,
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
        ) {
            let redactor = Redactor::with_secrets([Secret::new(KEY)]);
            let text = format!("{before}{}{after}", spellings()[which]);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            cuts.push(text.len());
            cuts.sort_unstable();
            let (mut shown, mut follows) = (String::new(), StreamRedactor::default());
            for cut in cuts {
                shown.extend(follows.next(&redactor, &text[..cut]).as_deref());
            }
            let whole = redactor.redact_whole(&text);
            prop_assert!(whole.starts_with(&format!("{before}***")), "{}", whole);
            prop_assert!(whole.starts_with(&shown), "{} of {}", shown, whole);
        }

        /// A secret that overlaps itself is not cut.
        #[test]
        fn pieces_show_no_overlapping_secrets(text in "[ab]{0,40}") {
            let redactor = Redactor::with_secrets([Secret::new("abaabaaba")]);
            let (mut shown, mut follows) = (String::new(), StreamRedactor::default());
            for cut in 0..=text.len() {
                shown.extend(follows.next(&redactor, &text[..cut]).as_deref());
            }
            prop_assert!(!shown.contains("abaabaaba"), "{}", shown);
            prop_assert!(redactor.redact_whole(&text).starts_with(&shown), "{} of {}", shown, text);
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
            let redactor = Redactor::with_secrets([Secret::new(secret.as_str())]);
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
            let _ = Redactor::with_secrets([Secret::new("aaaaaaaa"), Secret::new(":///?#@=")]).redact(&text);
        }
    }

    #[test]
    fn redacts_secrets_and_lookalikes() {
        let redactor = Redactor::with_secrets([Secret::new("hunter2hunter2")]);
        assert_eq!(redactor.redact("no hunter2hunter2, no sk-abc"), "no ***, no ***");
        assert_eq!(
            redactor.redact("GET https://me:pw@a.example/v1?key=1"),
            "GET https://***@a.example/v1?***",
        );
    }

    #[test]
    fn a_secret_is_never_formatted() {
        let key = Secret::new("sk-123");
        assert_eq!(format!("{key} {key:?}"), "*** ***");
        assert_eq!(key.expose(), "sk-123");
    }

    #[test]
    fn a_placeholder_is_no_secret() {
        assert!(Secret::new("sk-12345").is_worth_hiding());
        assert!(!Secret::new("ollama").is_worth_hiding());
    }
}
