//! Tests of `redact.rs`.

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
        ("", None),
    ] {
        let found = redactor.redact(text);
        assert_eq!(found, redacted.unwrap_or(text), "{text}");
        assert_eq!(redactor.redact(&found), found, "twice is once");
    }
}

const KEY: &str = "sk-test-4f9a8c7b6d5e+/?~";

/// All encodings of the key that are searched.
fn spelled(before: &str, after: &str) -> Vec<String> {
    use base64::Engine as _;
    use base64::prelude::*;
    let text = format!("{before}{KEY}{after}");
    let percent = |all: bool| -> String {
        let each = KEY.bytes().enumerate().map(|(nth, byte)| match nth % 2 {
            0 if !all => char::from(byte).to_string(),
            1 => format!("%{byte:02x}"),
            _ => format!("%{byte:02X}"),
        });
        each.collect()
    };
    let standard = BASE64_STANDARD.encode(&text);
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    vec![
        text.clone(),
        standard.replace('+', "%2B").replace('/', "%2f").replace('=', "%3D"),
        standard,
        BASE64_URL_SAFE.encode(&text),
        BASE64_URL_SAFE_NO_PAD.encode(&text),
        hex.to_ascii_uppercase(),
        hex,
        format!("{before}{}{after}", percent(true)),
        format!("{before}{}{after}", percent(false)),
        format!("%{before}%4{}%{after}", percent(true)),
    ]
}

/// Whether the key can be recovered from a text, in any encoding.
fn tells_the_key(text: &str) -> bool {
    use base64::Engine as _;
    use base64::prelude::*;
    let holds = |bytes: &[u8]| bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes());
    let plain: Vec<u8> = percent_encoding::percent_decode_str(text).collect();
    let Ok(plain) = String::from_utf8(plain) else { return false };
    let hex = |text: &str| -> Option<Vec<u8>> {
        let digits = text.as_bytes().chunks(2);
        let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok();
        digits.map(byte).collect()
    };
    let bare = plain.trim_end_matches('=');
    holds(plain.as_bytes())
        || BASE64_STANDARD_NO_PAD.decode(bare).is_ok_and(|bytes| holds(&bytes))
        || BASE64_URL_SAFE_NO_PAD.decode(bare).is_ok_and(|bytes| holds(&bytes))
        || hex(&plain).is_some_and(|bytes| holds(&bytes))
}

#[test]
fn a_known_secret_is_taken_out_however_it_is_spelled() {
    let redactor = Redactor::with_secrets([Secret::new(KEY)]);
    // The text before it moves the key to each offset modulo three bytes.
    for (before, after) in [("", ""), ("a", ""), ("ab", "c"), ("abc", "de"), ("user:", "\n")] {
        for text in spelled(before, after) {
            assert!(tells_the_key(&text) || text.starts_with('%'), "{text}");
            let found = redactor.redact_whole(&text);
            assert!(found.contains("***") && !tells_the_key(&found), "{text}: {found}");
            let left = found.replace("***", "").len();
            let around = before.len() + after.len();
            assert!(left <= 3 * around + 4, "{text}: {found}");
            let said = format!("it says {text} and goes on");
            let found = redactor.redact_known(&said);
            assert!(found.starts_with("it says ") && found.ends_with(" and goes on"), "{found}");
        }
    }
    for plain in ["c2st", "nothing", "100 % of it", "%41%4", "", "736b2d"] {
        assert_eq!(redactor.redact_known(plain), plain);
    }
}

#[test]
fn the_beginning_of_a_spelling_at_a_cut_is_taken_out() {
    let redactor = Redactor::with_secrets([Secret::new(KEY)]);
    for text in spelled("", "") {
        let found = redactor.redact_known(&text[..text.len() / 2]).into_owned();
        assert!(found.ends_with("***"), "{text}: {found}");
        assert!(found.len() <= 8, "{text}: {found}");
    }
}

proptest! {
    /// The shown part of a text in pieces is the text without the secret, for any split.
    #[test]
    fn no_piece_of_a_spelling_is_shown_before_it_is_known_for_one(
        before in "[a-zA-Z0-9 +/=-]{0,9}",
        after in "[a-zA-Z0-9 %+/=-]{0,9}",
        which in 0_usize..10,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
    ) {
        let redactor = Redactor::with_secrets([Secret::new(KEY)]);
        let text = format!("{before}{}{after}", spelled("", "")[which]);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.push(text.len());
        cuts.sort_unstable();
        let (mut shown, mut follows) = (String::new(), StreamRedactor::default());
        for cut in cuts {
            shown.extend(follows.next(&redactor, &text[..cut]).as_deref());
        }
        let whole = redactor.redact_whole(&text);
        prop_assert!(whole.contains("***"), "{}", whole);
        for part in [&shown, &*whole] {
            prop_assert!(!tells_the_key(part.trim_start_matches(&*before)), "{}", part);
        }
        prop_assert!(shown.len() <= text.len());
        let kept = shown.split("***").next().unwrap_or_default();
        prop_assert!(kept.len() <= before.len() + 3, "{} of {}", shown, text);
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
fn secrets_and_what_looks_like_one_are_removed() {
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
