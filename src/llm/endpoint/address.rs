//! Base URLs of endpoints: which are valid, and which are on this machine or its network.

use reqwest::Url;
use url::Host;

#[cfg(feature = "nats")]
use crate::base::private_host::has_private_host;
use crate::base::private_host::{is_local_name, is_localhost, is_own_network};

/// The default port of Ollama, when `OLLAMA_HOST` gives none.
const OLLAMA_PORT: u16 = 11434;

/// Parses a base URL. The path of an API call at its end is removed.
///
/// # Errors
/// What is wrong, as the rest of a sentence that starts with the URL. It quotes nothing of the URL,
/// because the text may hold a key.
pub(super) fn parse(text: &str) -> Result<Url, String> {
    // `localhost:11434/v1` would parse as a path with the scheme `localhost`.
    if !text.contains("://") {
        return Err("has no http:// or https://".to_owned());
    }
    let mut url = Url::parse(text).map_err(|error| format!("cannot be read: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("begins with neither http:// nor https://".to_owned());
    }
    if url.host().is_none() {
        return Err("has no host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("contains a user name or password; set the key in its own variable".to_owned());
    }
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/');
    let call = ["/chat/completions", "/messages"].iter().find_map(|call| path.strip_suffix(call));
    let path = call.unwrap_or(path).to_owned();
    url.set_path(&path);
    Ok(url)
}

/// Adds `/v1` at the end, which `ANTHROPIC_BASE_URL` omits.
pub(super) fn with_version(mut url: Url) -> Url {
    if !url.path().ends_with("/v1") {
        url.set_path(&format!("{}/v1", url.path().trim_end_matches('/')));
    }
    url
}

/// Parses `OLLAMA_HOST`: a URL, or host and port in the server's notation (`0.0.0.0:11434` means
/// every address of this machine, and so does `:11434`).
///
/// # Errors
/// As [`parse`].
pub(super) fn parse_host(text: &str) -> Result<Url, String> {
    let url = match text {
        text if text.contains("://") => parse(text)?,
        text if text.starts_with(':') => parse(&format!("http://localhost{text}"))?,
        text => parse(&format!("http://{text}"))?,
    };
    let mut url = with_version(url);
    if matches!(host(&url), Some(Host::Ipv4(ip)) if ip.is_unspecified())
        || matches!(host(&url), Some(Host::Ipv6(ip)) if ip.is_unspecified())
    {
        url.set_host(Some("localhost")).map_err(|error| format!("cannot be read: {error}"))?;
    }
    if url.port().is_none() && !text.contains("://") {
        let _ = url.set_port(Some(OLLAMA_PORT));
    }
    Ok(url)
}

/// Whether the host is this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    match host(url) {
        Some(Host::Domain(name)) => is_localhost(name),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.to_canonical().is_loopback(),
        None => false,
    }
}

/// Whether the host is on a local network: a private address, a name without a dot, or a name in a
/// domain that is never public.
pub(super) fn is_on_local_network(url: &Url) -> bool {
    match host(url) {
        Some(Host::Domain(name)) => is_local_name(name),
        Some(Host::Ipv4(ip)) => is_own_network(ip.into()),
        Some(Host::Ipv6(ip)) => is_own_network(ip.into()),
        None => false,
    }
}

/// Whether this address of an endpoint may be on this machine or on a local network: a name of one, or an
/// address that no public machine has, in whatever spelling. One that cannot be read is not.
#[cfg(feature = "nats")]
pub fn is_on_own_network(address: &str) -> bool {
    parse(address).is_ok_and(|url| {
        is_loopback(&url) || is_on_local_network(&url) || has_private_host(url.as_str())
    })
}

fn host(url: &Url) -> Option<Host<&str>> {
    url.host()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_used() {
        for (text, base) in [
            ("https://api.openai.com/v1", "https://api.openai.com/v1"),
            ("https://api.openai.com:443/v1/", "https://api.openai.com/v1"),
            ("https://a.example", "https://a.example/"),
            ("HTTP://LocalHost:11434/v1//", "http://localhost:11434/v1"),
            ("https://a.example/v1/chat/completions", "https://a.example/v1"),
            ("https://a.example/x/?api-version=1#top", "https://a.example/x?api-version=1"),
        ] {
            assert_eq!(parse(text).as_ref().map(Url::as_str), Ok(base), "{text}");
        }
        for text in [
            "",
            "api.openai.com",
            "ftp://a/",
            "file:///etc",
            "https://",
            "https://u:p@a/",
            "localhost:1",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_ollama_and_anthropic_call_an_address() {
        for (text, base) in [
            ("127.0.0.1:11500", "http://127.0.0.1:11500/v1"),
            ("0.0.0.0", "http://localhost:11434/v1"),
            (":11500", "http://localhost:11500/v1"),
            ("[::]:9", "http://localhost:9/v1"),
            ("http://box.lan:11434/", "http://box.lan:11434/v1"),
            ("https://ollama.example/v1", "https://ollama.example/v1"),
        ] {
            assert_eq!(parse_host(text).as_ref().map(Url::as_str), Ok(base), "{text}");
        }
        assert!(parse_host("ftp://a").is_err());
        for (text, base) in [
            ("https://api.anthropic.com", "https://api.anthropic.com/v1"),
            ("https://a.example/claude/", "https://a.example/claude/v1"),
            ("https://a.example/v1/messages", "https://a.example/v1"),
        ] {
            let url = parse(text).map(with_version);
            assert_eq!(url.as_ref().map(Url::as_str), Ok(base), "{text}");
        }
    }

    #[test]
    fn a_scheme_that_is_missing_is_named_whatever_the_rest_looks_like() {
        for text in ["api.openai.com/v1", "localhost:11434/v1", "10.0.0.1:8000", "/v1", "sk-key"] {
            assert_eq!(parse(text), Err("has no http:// or https://".to_owned()), "{text}");
        }
        for text in ["ftp://a/", "file:///etc"] {
            assert!(parse(text).is_err_and(|why| why.contains("neither http://")), "{text}");
        }
    }

    #[test]
    fn where_it_lies() {
        for (text, loopback, network) in [
            ("http://localhost", true, true),
            ("http://a.localhost:1", true, true),
            ("http://127.9.9.9", true, true),
            ("http://[::1]:8080", true, true),
            ("http://[::ffff:127.0.0.1]", true, true),
            ("http://0x7f.1", true, true),
            ("http://10.1.2.3", false, true),
            ("http://192.168.0.1", false, true),
            ("http://172.31.0.1", false, true),
            ("http://100.64.0.1", false, true),
            ("http://169.254.1.1", false, true),
            ("http://[fd00::1]", false, true),
            ("http://[fe80::1]", false, true),
            ("http://vllm:8000", false, true),
            ("http://box.local", false, true),
            ("http://host.docker.internal", false, true),
            ("http://172.32.0.1", false, false),
            ("http://100.128.0.1", false, false),
            ("http://8.8.8.8", false, false),
            ("http://[2001:db8::1]", false, false),
            ("http://localhost.example.com", false, false),
            ("http://notlocal", false, true),
            ("http://localhost.:1", true, true),
            ("http://a.LOCALHOST.", true, true),
            ("http://box.local.", false, true),
            ("http://vllm.:8000", false, true),
            ("http://api.openai.com.", false, false),
            ("http://0.0.0.0", false, false),
            ("http://[::127.0.0.1]", false, false),
            ("https://api.openai.com", false, false),
        ] {
            let url = parse(text).expect(text);
            assert_eq!(
                (is_loopback(&url), is_on_local_network(&url)),
                (loopback, network),
                "{text}"
            );
            // What gets no privilege of this machine still needs the permission for local networks.
            #[cfg(feature = "nats")]
            {
                let odd = ["http://0.0.0.0", "http://[::127.0.0.1]"].contains(&text);
                assert_eq!(is_on_own_network(text), loopback || network || odd, "{text}");
            }
        }
    }
}
