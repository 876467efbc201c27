//! Tables of [`find`]: which key goes where, and what is refused.
//!
//! Which provider is asked.

use super::*;

const SHELL: SettingOrigin = SettingOrigin::Shell;
const DOTENV: SettingOrigin = SettingOrigin::Dotenv;
const SCENARIO: SettingOrigin = SettingOrigin::Scenario;
const DEFAULT: SettingOrigin = SettingOrigin::Default;

fn vars(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// `find` with the key and base URL of the shell, those of `.env`, and the scenario's base URL.
fn pair(
    shell: (Option<&str>, Option<&str>),
    file: (Option<&str>, Option<&str>),
    scenario: Option<&str>,
) -> Result<Endpoint, EndpointError> {
    let both = |(key, url): (Option<&str>, Option<&str>)| {
        let key = key.map(|key| format!("OPENAI_API_KEY='{key}'"));
        let url = url.map(|url| format!("OPENAI_BASE_URL='{url}'"));
        [key, url].into_iter().flatten().collect::<Vec<_>>()
    };
    let shell = both(shell)
        .iter()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.trim_matches('\'').to_owned()))
        .collect();
    let dotenv = both(file).join("\n");
    find(
        &shell,
        Some(&dotenv),
        EndpointRequest { base_url: scenario, ..EndpointRequest::default() },
    )
}

const OPENAI: &str = "https://api.openai.com/v1";
const OTHER: &str = "https://other.example/v1";
const LOCAL: &str = "http://localhost:11434/v1";

#[test]
fn which_key_goes_where() {
    let (k, f) = (Some("shell-key"), Some("file-key"));
    let none = (None, None);
    for (shell, file, scenario, url, url_origin, key) in [
        // One place only.
        ((k, None), none, None, OPENAI, DEFAULT, Some(("shell-key", SHELL))),
        ((k, Some(OTHER)), none, None, OTHER, SHELL, Some(("shell-key", SHELL))),
        (none, (f, None), None, OPENAI, DEFAULT, Some(("file-key", DOTENV))),
        (none, (f, Some(OTHER)), None, OTHER, DOTENV, Some(("file-key", DOTENV))),
        ((Some("  "), Some("")), (f, None), None, OPENAI, DEFAULT, Some(("file-key", DOTENV))),
        // This machine needs no key, and gets one that was set for it.
        ((None, Some(LOCAL)), none, None, LOCAL, SHELL, None),
        (none, (None, Some(LOCAL)), None, LOCAL, DOTENV, None),
        ((k, Some(LOCAL)), none, None, LOCAL, SHELL, Some(("shell-key", SHELL))),
        // Both places: the shell's pair.
        ((k, Some(OTHER)), (f, Some(OPENAI)), None, OTHER, SHELL, Some(("shell-key", SHELL))),
        ((k, None), (f, Some(OTHER)), None, OPENAI, DEFAULT, Some(("shell-key", SHELL))),
        ((k, None), (f, None), None, OPENAI, DEFAULT, Some(("shell-key", SHELL))),
        (
            (k, None),
            (None, Some("https://api.openai.com/v2")),
            None,
            OPENAI,
            DEFAULT,
            Some(("shell-key", SHELL)),
        ),
        ((None, Some(LOCAL)), (f, None), None, LOCAL, SHELL, None),
        // The scenario's address gets the key only if it was set for that host.
        (
            (k, None),
            none,
            Some("https://api.openai.com:443/v3"),
            "https://api.openai.com/v3",
            SCENARIO,
            Some(("shell-key", SHELL)),
        ),
        ((k, Some(OTHER)), none, Some(OTHER), OTHER, SCENARIO, Some(("shell-key", SHELL))),
        (none, (f, Some(OTHER)), Some(OTHER), OTHER, SCENARIO, Some(("file-key", DOTENV))),
        ((k, None), none, Some(LOCAL), LOCAL, SCENARIO, None),
        ((k, Some("http://localhost:9/v1")), none, Some(LOCAL), LOCAL, SCENARIO, None),
        ((k, Some(LOCAL)), none, Some(LOCAL), LOCAL, SCENARIO, Some(("shell-key", SHELL))),
        (none, none, Some(LOCAL), LOCAL, SCENARIO, None),
        // The environment does not matter to a local scenario.
        ((k, None), (None, Some(OTHER)), Some(LOCAL), LOCAL, SCENARIO, None),
        ((k, Some("nonsense")), none, Some(LOCAL), LOCAL, SCENARIO, None),
    ] {
        let case = format!("{shell:?} {file:?} {scenario:?}");
        let found = pair(shell, file, scenario).expect(&case);
        assert_eq!(found.base_url().value.as_str(), url, "{case}");
        assert_eq!(found.base_url().origin, url_origin, "{case}");
        let given = found.key().map(|key| (key.value.expose(), key.origin));
        assert_eq!(given, key, "{case}");
    }
}

#[test]
fn what_is_refused() {
    use EndpointError as E;
    let (k, f) = (Some("shell-key"), Some("file-key"));
    let none = (None, None);
    let provider = Provider::OpenAi;
    let no_key = |host: &str| E::NoKey { provider, host: host.to_owned() };
    let foreign =
        |key: &str| E::ForeignHost { scenario: "other.example".to_owned(), key: key.to_owned() };
    for (shell, file, scenario, error) in [
        (none, none, None, no_key("api.openai.com")),
        ((None, Some(OTHER)), none, None, no_key("other.example")),
        (none, (None, Some(OTHER)), None, no_key("other.example")),
        (none, none, Some(OTHER), no_key("other.example")),
        ((None, Some(OTHER)), none, Some(OTHER), no_key("other.example")),
        // Halves from two places.
        ((k, None), (None, Some(OTHER)), None, E::Mixed { provider, url: DOTENV, key: SHELL }),
        ((k, None), (None, Some(LOCAL)), None, E::Mixed { provider, url: DOTENV, key: SHELL }),
        ((None, Some(OTHER)), (f, None), None, E::Mixed { provider, url: SHELL, key: DOTENV }),
        (
            (None, Some(OTHER)),
            (f, Some(OTHER)),
            None,
            E::Mixed { provider, url: SHELL, key: DOTENV },
        ),
        // A scenario that would receive the key.
        ((k, None), none, Some(OTHER), foreign("api.openai.com")),
        (none, (f, Some("https://a.example:8443/v1")), Some(OTHER), foreign("a.example:8443")),
        ((k, Some("https://other.example:444")), none, Some(OTHER), foreign("other.example:444")),
        (
            (k, None),
            (None, Some(OTHER)),
            Some(OTHER),
            E::Mixed { provider, url: DOTENV, key: SHELL },
        ),
        // Plain http.
        (
            (k, Some("http://other.example/v1")),
            none,
            None,
            E::PlainHttp { host: "other.example".into() },
        ),
        ((k, Some("http://8.8.8.8:1/v1")), none, None, E::PlainHttp { host: "8.8.8.8:1".into() }),
    ] {
        let case = format!("{shell:?} {file:?} {scenario:?}");
        let found = pair(shell, file, scenario).expect_err(&case);
        assert_eq!(found, error, "{case}");
        assert!(found.advice().ends_with('.'), "{}", found.advice());
    }
}

#[test]
fn ignored_values_are_noted() {
    let (k, f) = (Some("shell-key"), Some("file-key"));
    let aside = "not used: the shell sets one of the two, and both must come from the same place";
    for (shell, file, scenario, note) in [
        ((k, None), (None, None), None, None),
        (
            (k, None),
            (f, Some(OTHER)),
            None,
            Some(format!("OPENAI_BASE_URL and OPENAI_API_KEY of .env are {aside}")),
        ),
        ((k, None), (f, None), None, Some(format!("OPENAI_API_KEY of .env is {aside}"))),
        (
            (k, Some(OTHER)),
            (None, Some(OPENAI)),
            None,
            Some(format!("OPENAI_BASE_URL of .env is {aside}")),
        ),
        ((k, Some(OTHER)), (None, Some(OTHER)), None, None),
        ((None, Some(LOCAL)), (f, None), None, Some(format!("OPENAI_API_KEY of .env is {aside}"))),
        (
            (k, None),
            (None, None),
            Some(LOCAL),
            Some("no key is sent: the scenario sets the address".to_owned()),
        ),
        ((None, None), (None, None), Some(LOCAL), None),
        (
            (k, Some("http://10.0.0.5:8000/v1")),
            (None, None),
            None,
            Some("the key and the prompts go to 10.0.0.5:8000 over plain http".to_owned()),
        ),
    ] {
        let case = format!("{shell:?} {file:?} {scenario:?}");
        let found = pair(shell, file, scenario).expect(&case);
        assert_eq!(found.notes(), note.as_slice(), "{case}");
    }
}

#[test]
fn the_model_and_the_timeout() {
    let key = ("OPENAI_API_KEY", "k");
    for (shell, dotenv, asked, model, timeout) in [
        (vec![], "", None, (DEFAULT_MODEL, DEFAULT), (60_000, DEFAULT)),
        (
            vec![("OPENAI_MODEL", " m1 "), ("OPENAI_TIMEOUT_SECONDS", "5")],
            "OPENAI_MODEL=m2\nOPENAI_TIMEOUT_SECONDS=6",
            None,
            ("m1", SHELL),
            (5_000, SHELL),
        ),
        (
            vec![("OPENAI_MODEL", "")],
            "OPENAI_MODEL=m2\nOPENAI_TIMEOUT_SECONDS=2.5",
            Some(" "),
            ("m2", DOTENV),
            (2_500, DOTENV),
        ),
        (vec![("OPENAI_MODEL", "m1")], "", Some("m3"), ("m3", SCENARIO), (60_000, DEFAULT)),
    ] {
        let shell = vars(&[&[key], shell.as_slice()].concat());
        let asked = asked.map(|value| WithOrigin { value, origin: SCENARIO });
        let asked = EndpointRequest { model: asked, ..EndpointRequest::default() };
        let found = find(&shell, Some(dotenv), asked).expect("an endpoint");
        assert_eq!((found.model().value.as_str(), found.model().origin), model);
        let (millis, origin) = timeout;
        let timeout = WithOrigin { value: Duration::from_millis(millis), origin };
        assert_eq!(found.timeout(), &timeout);
    }
    for text in ["0", "-1", "soon", "1e3", "inf", "NaN", "86401", "0.0001", "."] {
        let shell = vars(&[key, ("OPENAI_TIMEOUT_SECONDS", text)]);
        let found = find(&shell, None, EndpointRequest::default()).expect_err(text);
        assert_eq!(found, EndpointError::Timeout { origin: SHELL }, "{text}");
    }
    for name in ["m\u{1b}", &"m".repeat(201)] {
        let asked = Some(WithOrigin { value: name, origin: SCENARIO });
        let asked = EndpointRequest { model: asked, ..EndpointRequest::default() };
        let found = find(&vars(&[key]), None, asked).expect_err("no name");
        assert_eq!(found, EndpointError::Model { origin: SCENARIO });
    }
}

#[test]
fn strips_quotes_around_values() {
    for quote in ["", "\"", "'", " \" ", " '"] {
        let quoted =
            |text: &str| format!("{quote}{text}{}", quote.chars().rev().collect::<String>());
        let (key, url, model) = (quoted("sk-1"), quoted(OTHER), quoted("m"));
        let shell =
            vars(&[("OPENAI_API_KEY", &key), ("OPENAI_BASE_URL", &url), ("OPENAI_MODEL", &model)]);
        let found = find(&shell, None, EndpointRequest::default()).expect(quote);
        assert_eq!(found.key().map(|key| key.value.expose()), Some("sk-1"), "{quote}");
        assert_eq!(
            (found.base_url().value.as_str(), &*found.model().value),
            (OTHER, "m"),
            "{quote}"
        );
    }
    // One at an end alone may be a part of the key, and is refused where a header cannot have it.
    let found = find(&vars(&[("OPENAI_API_KEY", "\"sk-1")]), None, EndpointRequest::default());
    assert_eq!(found.expect("a key").key().map(|key| key.value.expose()), Some("\"sk-1"));
    for host in [":11500", "\":11500\"", " '127.0.0.1:11500' "] {
        let model = Some(WithOrigin { value: "ollama/m", origin: SettingOrigin::CommandLine });
        let asked = EndpointRequest { model, ..EndpointRequest::default() };
        let found = find(&vars(&[("OLLAMA_HOST", host)]), None, asked).expect(host);
        assert_eq!(found.base_url().value.port(), Some(11_500), "{host}");
        assert!(found.is_local(), "{host}");
    }
}

#[test]
fn own_server_gets_given_name() {
    let other = ("OPENAI_BASE_URL", OTHER);
    for (given, address, option, scenario, sent) in [
        ("openai/gpt-oss-20b", Some(other), true, None, "openai/gpt-oss-20b"),
        ("openai/gpt-oss-20b", None, true, Some(LOCAL), "openai/gpt-oss-20b"),
        ("gpt-oss-20b", Some(other), true, None, "gpt-oss-20b"),
        ("meta/llama", Some(other), true, None, "meta/llama"),
        // In front of a provider it can only be one itself.
        ("openai/openai/gpt-oss-20b", Some(other), true, None, "openai/gpt-oss-20b"),
        ("openai/anthropic/x", Some(other), true, None, "anthropic/x"),
        // In a file, and at OpenAI's own address, it is the provider.
        ("openai/gpt-oss-20b", Some(other), false, None, "gpt-oss-20b"),
        ("openai/gpt-5", None, true, None, "gpt-5"),
        ("openai/gpt-5", Some(("OPENAI_BASE_URL", OPENAI)), true, None, "gpt-5"),
    ] {
        let shell = vars(&[&[("OPENAI_API_KEY", "k")], address.as_slice()].concat());
        let asked = EndpointRequest {
            model: Some(WithOrigin { value: given, origin: SettingOrigin::CommandLine }),
            is_from_option: option,
            base_url: scenario,
            ..EndpointRequest::default()
        };
        let found = find(&shell, None, asked).expect(given);
        assert_eq!((found.provider(), &*found.model().value), (Provider::OpenAi, sent), "{given}");
        let full =
            if sent.starts_with("openai/") { sent.to_owned() } else { format!("openai/{sent}") };
        assert_eq!(found.full_model_name(), full);
    }
}

#[test]
fn each_provider_gets_key_its_way() {
    for (name, header, value) in [
        ("OPENAI_API_KEY", "authorization", "Bearer k-1"),
        ("GEMINI_API_KEY", "authorization", "Bearer k-1"),
        ("ANTHROPIC_API_KEY", "x-api-key", "k-1"),
    ] {
        let found = find(&vars(&[(name, "k-1")]), None, EndpointRequest::default()).expect(name);
        let sent = found.headers.iter().find(|(name, _)| *name == header);
        assert_eq!(sent.and_then(|(_, value)| value.to_str().ok()), Some(value), "{name}");
        assert!(sent.is_some_and(|(_, value)| value.is_sensitive()), "{name}");
    }
}

#[test]
fn errors_never_repeat_unusable_values() {
    for text in ["sk-1\nX-Evil: 1", "schlüssel", "sk-\u{7f}"] {
        let shell = vars(&[("OPENAI_API_KEY", text)]);
        let found = find(&shell, None, EndpointRequest::default()).expect_err(text);
        assert_eq!(found, EndpointError::Key { origin: SHELL });
    }
    for url in ["api.example.com/sk-1", "https://u:sk-1@a.example", "ftp://a.example/sk-1"] {
        let shell = vars(&[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", url)]);
        let found = find(&shell, None, EndpointRequest::default()).expect_err(url);
        assert!(matches!(found, EndpointError::BaseUrl { origin: SHELL, .. }), "{found}");
        assert!(!found.to_string().contains("sk-1"), "{found}");
    }
    let found = find(&vars(&[]), Some("\nOPENAI_API_KEY='sk-1"), EndpointRequest::default());
    let found = found.expect_err("an open quote");
    assert_eq!(found.to_string(), ".env, line 2: the value of OPENAI_API_KEY cannot be read");
    let shell = vars(&[("OPENAI_API_KEY", "sk-1")]);
    let endpoint = find(&shell, None, EndpointRequest::default()).expect("an endpoint");
    assert!(!format!("{endpoint:?}").contains("sk-1"), "{endpoint:?}");
}

#[test]
fn appends_paths_to_base_url() {
    for (base, url) in [
        ("https://a.example", "https://a.example/chat/completions"),
        ("https://a.example/v1/", "https://a.example/v1/chat/completions"),
        ("https://a.example/v1/chat/completions/", "https://a.example/v1/chat/completions"),
        ("https://a.example/x?v=1#y", "https://a.example/x/chat/completions?v=1"),
    ] {
        let shell = vars(&[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", base)]);
        let endpoint = find(&shell, None, EndpointRequest::default()).expect(base);
        assert_eq!(endpoint.target(&["chat", "completions"]).url().as_str(), url);
        assert_eq!(endpoint.host(), "a.example");
    }
}

#[test]
fn reads_file_if_present() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(".env");
    assert_eq!(read_dotenv(&path), Ok(None));
    assert_eq!(read_dotenv(folder.path()), Ok(None), "a folder is not a file");
    std::fs::write(&path, "OPENAI_MODEL=m").expect("a file");
    assert_eq!(read_dotenv(&path), Ok(Some("OPENAI_MODEL=m".to_owned())));
    std::fs::write(&path, b"OPENAI_MODEL=\xff").expect("a file");
    assert!(matches!(read_dotenv(&path), Err(EndpointError::Dotenv { .. })));
    std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).expect("a file");
    let large = EndpointError::Dotenv { why: "it has more than 1048576 bytes".to_owned() };
    assert_eq!(read_dotenv(&path), Err(large));
}

#[test]
fn shows_origin_of_provider_and_timeout() {
    let minute = Duration::from_secs(60);
    let config = |name| EndpointRequest {
        config: Some(name),
        timeout: Some(Duration::from_secs(9)),
        ..EndpointRequest::default()
    };
    let anthropic = ("ANTHROPIC_API_KEY", "k");
    let openai = ("OPENAI_API_KEY", "k");
    for (shell, dotenv, asked, provider, timeout) in [
        (vec![openai], "", EndpointRequest::default(), SHELL, (minute, DEFAULT)),
        (vec![], "ANTHROPIC_API_KEY=k", EndpointRequest::default(), DOTENV, (minute, DEFAULT)),
        (
            vec![("OPENAI_BASE_URL", LOCAL)],
            "",
            EndpointRequest::default(),
            SHELL,
            (minute, DEFAULT),
        ),
        (
            vec![openai, anthropic],
            "",
            config("openai/x"),
            SettingOrigin::Config,
            (Duration::from_secs(9), SettingOrigin::Config),
        ),
        (
            vec![openai, anthropic, ("OPENAI_TIMEOUT_SECONDS", "7")],
            "OPENAI_MODEL=x",
            config("anthropic/x"),
            DOTENV,
            (Duration::from_secs(7), SHELL),
        ),
    ] {
        let found = find(&vars(&shell), Some(dotenv), asked).expect("an endpoint");
        let bound = found.timeout();
        let got = (found.provider_origin(), (bound.value, bound.origin));
        assert_eq!(got, (provider, timeout), "{shell:?} {dotenv}");
    }
}

#[test]
fn who_is_asked() {
    use Provider::{Anthropic, Gemini, Ollama, OpenAi, OpenRouter};
    let (openai, anthropic) = (("OPENAI_API_KEY", "ok"), ("ANTHROPIC_API_KEY", "ak"));
    let (gemini, router) = (("GEMINI_API_KEY", "gk"), ("OPENROUTER_API_KEY", "rk"));
    for (shell, dotenv, asked, config, provider, model, url) in [
        // The key alone.
        (vec![openai], "", None, None, OpenAi, "gpt-4.1-mini", OPENAI),
        (
            vec![anthropic],
            "",
            None,
            None,
            Anthropic,
            "claude-haiku-4-5",
            "https://api.anthropic.com/v1",
        ),
        (
            vec![],
            "ANTHROPIC_API_KEY=k",
            None,
            None,
            Anthropic,
            "claude-haiku-4-5",
            "https://api.anthropic.com/v1",
        ),
        (
            vec![gemini],
            "",
            None,
            None,
            Gemini,
            "gemini-2.5-flash",
            "https://generativelanguage.googleapis.com/v1beta/openai",
        ),
        (
            vec![router],
            "",
            None,
            None,
            OpenRouter,
            "openai/gpt-4.1-mini",
            "https://openrouter.ai/api/v1",
        ),
        (
            vec![("OLLAMA_HOST", "box.lan")],
            "",
            None,
            None,
            Ollama,
            "llama3.2",
            "http://box.lan:11434/v1",
        ),
        (vec![], "", Some("ollama/qwen3"), None, Ollama, "qwen3", LOCAL),
        // A name with a provider.
        (
            vec![openai, anthropic],
            "",
            Some("anthropic/claude-x"),
            None,
            Anthropic,
            "claude-x",
            "https://api.anthropic.com/v1",
        ),
        (vec![openai, anthropic], "", Some("openai/gpt-x"), None, OpenAi, "gpt-x", OPENAI),
        (
            vec![anthropic],
            "",
            Some("claude-x"),
            None,
            Anthropic,
            "claude-x",
            "https://api.anthropic.com/v1",
        ),
        // A variable with a model or an address.
        (
            vec![openai, anthropic, ("OPENAI_MODEL", "openai/gpt-oss")],
            "",
            None,
            None,
            OpenAi,
            "openai/gpt-oss",
            OPENAI,
        ),
        (
            vec![anthropic, ("OPENAI_BASE_URL", LOCAL)],
            "",
            None,
            None,
            OpenAi,
            "gpt-4.1-mini",
            LOCAL,
        ),
        // The configuration, which the environment overrides.
        (
            vec![openai, anthropic],
            "",
            None,
            Some("anthropic/claude-y"),
            Anthropic,
            "claude-y",
            "https://api.anthropic.com/v1",
        ),
        (
            vec![openai, ("OPENAI_MODEL", "m")],
            "",
            None,
            Some("anthropic/claude-y"),
            OpenAi,
            "m",
            OPENAI,
        ),
        (vec![openai], "", None, Some("gpt-y"), OpenAi, "gpt-y", OPENAI),
        (
            vec![openai, anthropic],
            "",
            Some("anthropic/x"),
            Some("openai/gpt-y"),
            Anthropic,
            "x",
            "https://api.anthropic.com/v1",
        ),
    ] {
        let case = format!("{shell:?} {dotenv} {asked:?} {config:?}");
        let model_asked = asked.map(|value| WithOrigin { value, origin: SCENARIO });
        let asked = EndpointRequest { model: model_asked, config, ..EndpointRequest::default() };
        let found = find(&vars(&shell), Some(dotenv), asked).expect(&case);
        let got = (found.provider(), found.model().value.as_str(), found.base_url().value.as_str());
        assert_eq!(got, (provider, model, url), "{case}");
    }
    let several = find(&vars(&[openai, router, anthropic]), None, EndpointRequest::default());
    let several = several.expect_err("three keys");
    let keys = "OPENAI_API_KEY, ANTHROPIC_API_KEY and OPENROUTER_API_KEY are set";
    assert!(several.to_string().starts_with(keys), "{several}");
    assert!(several.advice().contains("--model openai/gpt-4.1-mini"), "{}", several.advice());
    let without = EndpointRequest {
        model: Some(WithOrigin { value: "gemini/x", origin: SCENARIO }),
        ..EndpointRequest::default()
    };
    let error = find(&vars(&[openai]), None, without).expect_err("no key of Gemini's");
    assert_eq!(
        error.to_string(),
        "no key for generativelanguage.googleapis.com: GEMINI_API_KEY is not set"
    );
}
