//! The environment variables by which clients of models find their endpoint, in one table. A guarded program gets the
//! address of the proxy in each of them, with the name of the variable in its path, because clients of different vendors
//! read the same one and expect different addresses.

use std::ffi::OsString;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hyper::header::HeaderValue;
use percent_encoding::percent_decode_str;
use url::{Host, Url};

use crate::base::refused::Refused;
use crate::net::host_of;

/// A variable that clients read.
#[derive(Debug)]
pub struct Variable {
    pub name: &'static str,
    /// The clients that read it.
    pub read_by: &'static str,
    /// The provider whose API it is.
    pub provider: &'static str,
    /// The variable whose value counts if this one is not set.
    next: Option<&'static str>,
    /// The address of the provider; empty: the variable is only set if it was set before.
    pub default: &'static str,
    /// What clients append that expect more in the variable than others, and what is missing then in front of it.
    shorter: Option<(&'static str, &'static str)>,
    /// The headers that have its keys.
    keys: &'static [&'static str],
}

/// The headers by which keys of models are sent.
const KEYS: [&str; 5] =
    ["authorization", "x-api-key", "api-key", "x-goog-api-key", "ocp-apim-subscription-key"];

const BEARER: &[&str] = &["authorization"];
const ANTHROPIC_KEYS: &[&str] = &["authorization", "x-api-key"];
const GOOGLE_KEYS: &[&str] = &["authorization", "x-goog-api-key"];
const AZURE_KEYS: &[&str] = &["authorization", "api-key", "ocp-apim-subscription-key"];

const fn row(
    [name, read_by]: [&'static str; 2],
    [provider, default]: [&'static str; 2],
    next: Option<&'static str>,
    keys: &'static [&'static str],
) -> Variable {
    Variable { name, read_by, provider, next, default, shorter: None, keys }
}

const fn shorter(variable: Variable, path: &'static str, missing: &'static str) -> Variable {
    Variable { shorter: Some((path, missing)), ..variable }
}

const OPENAI: &str = "https://api.openai.com/v1";
const ANTHROPIC: &str = "https://api.anthropic.com";
const GOOGLE: &str = "https://generativelanguage.googleapis.com";
const GROQ: &str = "https://api.groq.com";
const OLLAMA: &str = "http://127.0.0.1:11434";

/// All of them.
#[rustfmt::skip]
pub static VARIABLES: [Variable; 21] = [
    row(["OPENAI_BASE_URL", "openai (Python, npm), @ai-sdk/openai, LiteLLM, OpenAI Agents, AzureOpenAI of npm"], ["openai", OPENAI], None, BEARER),
    row(["OPENAI_API_BASE", "langchain-openai"], ["openai", OPENAI], Some("OPENAI_BASE_URL"), BEARER),
    shorter(row(["ANTHROPIC_BASE_URL", "anthropic (Python, npm), @ai-sdk/anthropic, Claude Code"], ["anthropic", ANTHROPIC], None, ANTHROPIC_KEYS), "/messages", "/v1"),
    row(["ANTHROPIC_API_URL", "langchain-anthropic"], ["anthropic", ANTHROPIC], Some("ANTHROPIC_BASE_URL"), ANTHROPIC_KEYS),
    row(["ANTHROPIC_API_BASE", "LiteLLM"], ["anthropic", ANTHROPIC], Some("ANTHROPIC_BASE_URL"), ANTHROPIC_KEYS),
    row(["GOOGLE_GEMINI_BASE_URL", "google-genai (Python, npm), langchain-google-genai"], ["google", GOOGLE], None, GOOGLE_KEYS),
    row(["GEMINI_API_BASE", "LiteLLM"], ["google", "https://generativelanguage.googleapis.com/v1beta"], None, GOOGLE_KEYS),
    row(["OLLAMA_HOST", "ollama (Python), langchain-ollama"], ["ollama", OLLAMA], None, BEARER),
    row(["OLLAMA_API_BASE", "LiteLLM"], ["ollama", OLLAMA], Some("OLLAMA_HOST"), BEARER),
    row(["GROQ_BASE_URL", "groq"], ["groq", GROQ], None, BEARER),
    shorter(row(["GROQ_API_BASE", "langchain-groq, LiteLLM"], ["groq", GROQ], None, BEARER), "/chat/", "/openai/v1"),
    row(["MISTRAL_BASE_URL", "langchain-mistralai"], ["mistral", "https://api.mistral.ai/v1"], None, BEARER),
    row(["MISTRAL_API_BASE", "LiteLLM"], ["mistral", "https://api.mistral.ai/v1"], None, BEARER),
    row(["CO_API_URL", "cohere"], ["cohere", "https://api.cohere.com"], None, BEARER),
    row(["COHERE_API_BASE", "LiteLLM"], ["cohere", "https://api.cohere.com/v2/chat"], None, BEARER),
    row(["AZURE_OPENAI_ENDPOINT", "openai, langchain-openai"], ["azure", ""], None, AZURE_KEYS),
    row(["AZURE_API_BASE", "LiteLLM"], ["azure", ""], None, AZURE_KEYS),
    row(["DEEPSEEK_API_BASE", "LiteLLM"], ["deepseek", "https://api.deepseek.com/beta"], None, BEARER),
    row(["XAI_API_BASE", "LiteLLM"], ["xai", "https://api.x.ai/v1"], None, BEARER),
    row(["OPENROUTER_API_BASE", "LiteLLM"], ["openrouter", "https://openrouter.ai/api/v1"], None, BEARER),
    row(["TOGETHER_AI_API_BASE", "LiteLLM"], ["together", "https://api.together.xyz/v1"], None, BEARER),
];

/// Where the requests go that come for a variable.
#[derive(Debug)]
pub struct Upstream {
    pub variable: &'static Variable,
    base: Url,
    /// Whether the user has set the address.
    pub is_own: bool,
}

impl Upstream {
    /// The host of its address.
    pub fn host(&self) -> String {
        host_of(&self.base)
    }

    /// Its address, without a login.
    fn address(&self) -> String {
        let mut base = self.base.clone();
        let _ = (base.set_username(""), base.set_password(None));
        base.as_str().trim_end_matches('/').to_owned()
    }

    /// Where a request goes. `rest`: what the client has appended, with its query.
    pub fn url(&self, rest: &str) -> Option<Url> {
        let missing = match self.variable.shorter {
            Some((path, missing)) if !self.is_own && rest.starts_with(path) => missing,
            _ => "",
        };
        let base = self.address();
        let url = Url::parse(&format!("{base}{missing}{rest}")).ok()?;
        // Nothing that a client appends may change the host.
        (url.origin() == self.base.origin() && url.username().is_empty()).then_some(url)
    }

    /// The login in the address, as a header; `None`: it has none.
    pub fn login(&self) -> Option<HeaderValue> {
        let password = self.base.password()?;
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let login = format!("{}:{}", decoded(self.base.username()), decoded(password));
        let mut value = HeaderValue::from_str(&format!("Basic {}", BASE64.encode(login))).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// The header with a key of another vendor, which must not reach the default address: a client of that vendor reads this
    /// variable too.
    pub fn foreign_key(&self, has: impl Fn(&str) -> bool) -> Option<&'static str> {
        let foreign = |name: &&&str| !self.variable.keys.contains(name) && has(name);
        KEYS.iter().find(foreign).copied().filter(|_| !self.is_own)
    }
}

/// The variables of a guarded program.
#[derive(Debug, Default)]
pub struct Upstreams(pub Vec<Upstream>);

/// What is read of the environment.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

impl Upstreams {
    /// Where requests go in this environment. Returns also sentences for the operator.
    ///
    /// # Errors
    /// A variable has no address that can be used.
    pub fn of(get: Environment<'_>) -> Result<(Self, Vec<String>), Refused> {
        let value = |name: &str| {
            let value = get(name)?.into_string().ok()?.trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        let has_azure =
            VARIABLES.iter().any(|it| it.default.is_empty() && value(it.name).is_some());
        let (mut upstreams, mut notes) = (Vec::new(), Vec::new());
        for variable in &VARIABLES {
            let own = value(variable.name).or_else(|| value(variable.next?));
            // The client of Azure of npm would send its key to OpenAI.
            if own.is_none()
                && (variable.default.is_empty() || has_azure && variable.name == "OPENAI_BASE_URL")
            {
                continue;
            }
            let is_own = own.is_some();
            let text = own.unwrap_or_else(|| variable.default.to_owned());
            let base = address(&text, variable.name).ok_or_else(|| {
                Refused::new(format!("{} is no address of HTTP", variable.name))
                    .help("give it an address such as https://models.example/v1, or remove it")
            })?;
            if base.scheme() == "http" && !is_this_machine(&base) {
                let host = base.host_str().unwrap_or_default();
                notes.push(format!(
                    "{} is plain HTTP to {host}: keys and prompts cross the network in clear, as without guard",
                    variable.name
                ));
            }
            upstreams.push(Upstream { variable, base, is_own });
        }
        Ok((Self(upstreams), notes))
    }

    /// The one of this variable.
    pub fn named(&self, name: &str) -> Option<&Upstream> {
        self.0.iter().find(|it| it.variable.name == name)
    }

    /// The variables that the program gets; `prefix`: the address of the proxy with its token.
    pub fn environment(&self, prefix: &str) -> Vec<(&'static str, OsString)> {
        let name = |it: &Upstream| it.variable.name;
        let mut set: Vec<(&'static str, OsString)> =
            self.0.iter().map(|it| (name(it), format!("{prefix}/{}", name(it)).into())).collect();
        if let Some(openai) = self.named("OPENAI_BASE_URL") {
            // It does not pass the proxy.
            let socket = openai.address().replacen("http", "ws", 1);
            set.push(("OPENAI_WEBSOCKET_BASE_URL", socket.into()));
        }
        // For the tap, which sends requests to addresses in code here.
        let known = |it: &Upstream| format!("{}={}", name(it), it.address());
        let known: Vec<String> = self.0.iter().map(known).collect();
        set.push(("ROUNDTABLE_GUARD", known.join(" ").into()));
        set
    }
}

/// The address in a variable. That of Ollama may be a host, or a host and a port.
fn address(text: &str, name: &str) -> Option<Url> {
    let is_ollama = name.starts_with("OLLAMA");
    let text = match text.contains("://") {
        true => text.to_owned(),
        false if is_ollama => format!("http://{text}"),
        false => return None,
    };
    let mut url = Url::parse(&text).ok().filter(|url| url.has_host())?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    if is_ollama {
        if url.port().is_none()
            && url.scheme() == "http"
            && !text.trim_end_matches('/').ends_with(":80")
        {
            url.set_port(Some(11_434)).ok()?;
        }
        // It is where a server listens.
        if url.host_str() == Some("0.0.0.0") {
            url.set_host(Some("127.0.0.1")).ok()?;
        }
    }
    Some(url)
}

fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstreams(set: &[(&str, &str)]) -> Upstreams {
        let get = |name: &str| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        Upstreams::of(&get).expect("addresses").0
    }

    /// What a client appends, and where that goes: the address that it would have used.
    #[test]
    fn requests_go_where_they_would() {
        let none: &[(&str, &str)] = &[];
        let gateway = &[("OPENAI_BASE_URL", "http://127.0.0.1:4000/v1/")][..];
        let claude = &[("ANTHROPIC_BASE_URL", "https://models.example/v1")][..];
        for (set, name, rest, url) in [
            (none, "OPENAI_BASE_URL", "/responses", "https://api.openai.com/v1/responses"),
            (
                none,
                "ANTHROPIC_BASE_URL",
                "/v1/messages?beta=true",
                "https://api.anthropic.com/v1/messages?beta=true",
            ),
            (none, "ANTHROPIC_BASE_URL", "/messages", "https://api.anthropic.com/v1/messages"),
            (
                none,
                "GROQ_API_BASE",
                "/chat/completions",
                "https://api.groq.com/openai/v1/chat/completions",
            ),
            (
                none,
                "GROQ_API_BASE",
                "/openai/v1/chat/completions",
                "https://api.groq.com/openai/v1/chat/completions",
            ),
            (none, "COHERE_API_BASE", "", "https://api.cohere.com/v2/chat"),
            (
                none,
                "GOOGLE_GEMINI_BASE_URL",
                "/v1beta/models/m:streamGenerateContent?alt=sse",
                "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
            ),
            (
                gateway,
                "OPENAI_BASE_URL",
                "/chat/completions",
                "http://127.0.0.1:4000/v1/chat/completions",
            ),
            (gateway, "OPENAI_API_BASE", "/embeddings", "http://127.0.0.1:4000/v1/embeddings"),
            (claude, "ANTHROPIC_BASE_URL", "/messages", "https://models.example/v1/messages"),
            (claude, "ANTHROPIC_API_URL", "/v1/messages", "https://models.example/v1/v1/messages"),
            (
                &[("OLLAMA_HOST", "0.0.0.0")],
                "OLLAMA_HOST",
                "/api/chat",
                "http://127.0.0.1:11434/api/chat",
            ),
            (
                &[("OLLAMA_HOST", "gpu.example:80")],
                "OLLAMA_API_BASE",
                "/api/show",
                "http://gpu.example/api/show",
            ),
        ] {
            let upstreams = upstreams(set);
            let upstream = upstreams.named(name).expect(name);
            assert_eq!(upstream.url(rest).expect("an address").as_str(), url, "{name} {rest}");
        }
    }

    #[test]
    fn clients_cannot_change_the_host() {
        let own = upstreams(&[("OPENAI_BASE_URL", "http://user:p%40ss@127.0.0.1:4000")]);
        let upstream = own.named("OPENAI_BASE_URL").expect("OpenAI");
        for rest in [":x@127.0.0.1:9/v1", "@evil.example/", ".evil.example/v1", "x"] {
            assert!(upstream.url(rest).is_none(), "{rest}");
        }
        assert!(upstream.url("/../x").is_some());
        assert_eq!(upstream.login().expect("a login"), "Basic dXNlcjpwQHNz");
        let set = own.environment("http://127.0.0.1:1/t");
        assert!(!format!("{set:?}").contains("p%40ss"), "{set:?}");
    }

    #[test]
    fn azure_keys_stay_with_azure() {
        let azure = upstreams(&[("AZURE_OPENAI_ENDPOINT", "https://own.example")]);
        assert!(azure.named("OPENAI_BASE_URL").is_none());
        assert!(azure.named("AZURE_OPENAI_ENDPOINT").is_some());
        let plain = upstreams(&[]);
        assert!(plain.named("AZURE_OPENAI_ENDPOINT").is_none());
        let openai = plain.named("OPENAI_BASE_URL").expect("OpenAI");
        assert_eq!(openai.foreign_key(|name| name == "api-key"), Some("api-key"));
        assert_eq!(openai.foreign_key(|name| name == "authorization"), None);
        let own = upstreams(&[("OPENAI_BASE_URL", "https://own.example/v1")]);
        let own = own.named("OPENAI_BASE_URL").expect("OpenAI");
        assert_eq!(own.foreign_key(|_| true), None);
    }

    #[test]
    fn only_addresses_of_http_are_used() {
        for value in ["ftp://a.example", "a.example/v1", "http://"] {
            let get = |name: &str| (name == "OPENAI_BASE_URL").then(|| OsString::from(value));
            assert!(Upstreams::of(&get).is_err(), "{value}");
        }
        let get = |name: &str| (name == "XAI_API_BASE").then(|| "http://gpu.example".into());
        let (_, notes) = Upstreams::of(&get).expect("an address");
        assert_eq!(notes.len(), 1, "{notes:?}");
    }
}
