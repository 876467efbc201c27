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
        for (before, after) in [("", ""), ("a", ""), ("it says ", " and more"), ("user:", "\n")] {
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
