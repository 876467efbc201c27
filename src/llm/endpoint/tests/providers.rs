//! Which provider is asked.

use super::*;

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
