//! Proxies: which requests go through one. A proxy that cannot be used is an error, never a direct
//! request: the operator may have set it so that keys do not leave on another way.

use std::env::VarError;
use std::str::FromStr;

use hyper::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{NoProxy, Url};

use super::host_of;

/// How requests leave this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProxyMode {
    /// Directly to the host, even if the environment names a proxy.
    #[default]
    Direct,
    /// Through the proxies in `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`. Requests fail
    /// if they hold something that cannot be used.
    Environment,
    /// Through this proxy.
    Proxy(Url),
}

/// An invalid value of `--proxy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("give `direct`, `env`, or the address of a proxy such as http://localhost:8080")]
pub struct InvalidProxy;

impl FromStr for ProxyMode {
    type Err = InvalidProxy;

    /// Parses `direct`, `env`, or the address of a proxy.
    fn from_str(text: &str) -> Result<Self, InvalidProxy> {
        match text.trim() {
            "direct" => Ok(Self::Direct),
            "env" => Ok(Self::Environment),
            address if !address.contains("://") => Err(InvalidProxy),
            address => parse(address).map(Self::Proxy).map_err(|_| InvalidProxy),
        }
    }
}

/// Parses the address of a proxy. Without a scheme it is `http`, as in curl.
fn parse(text: &str) -> Result<Url, String> {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    let with_scheme = match scheme.as_deref() {
        Some("http" | "https") => text.to_owned(),
        Some("socks" | "socks4" | "socks4a" | "socks5" | "socks5h") => {
            return Err("is a SOCKS proxy, which is not supported; use an http:// proxy".to_owned());
        }
        Some(_) => return Err("begins with neither http:// nor https://".to_owned()),
        None => format!("http://{text}"),
    };
    let url = Url::parse(&with_scheme).map_err(|error| format!("is not an address: {error}"))?;
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err("has a path: give only the host and the port of the proxy".to_owned());
    }
    // The client reads the address again, by another grammar.
    let read = url.as_str().parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned));
    match read.filter(|host| !host.is_empty()) {
        Some(_) => Ok(url),
        None => Err("is not an address: its host cannot be read".to_owned()),
    }
}

/// The proxies in use, all of them valid.
#[derive(Debug)]
pub(crate) struct Proxies {
    http: Option<Url>,
    https: Option<Url>,
    /// Hosts that are reached directly, as the client reads them.
    direct: String,
    matcher: Matcher,
}

impl Proxies {
    /// The proxies of a mode; `variable` looks up an environment variable.
    pub(crate) fn of_mode(
        mode: &ProxyMode,
        variable: impl Fn(&str) -> Result<String, VarError>,
    ) -> Result<Self, String> {
        match mode {
            ProxyMode::Direct => Ok(Self::new(None, None, String::new())),
            ProxyMode::Proxy(url) => match parse(url.as_str()) {
                Ok(url) => Ok(Self::new(Some(url.clone()), Some(url), String::new())),
                Err(why) => Err(format!("the proxy {why}")),
            },
            ProxyMode::Environment => {
                let Some(direct) = hosts_without_proxy(&variable)? else {
                    return Ok(Self::new(None, None, String::new()));
                };
                // Behind a web server HTTP_PROXY is the header `Proxy` of the request.
                if set(&variable, ["REQUEST_METHOD"; 2])?.is_some()
                    && variable("HTTP_PROXY").is_ok_and(|value| !value.trim().is_empty())
                {
                    return Err(
                        "HTTP_PROXY cannot be trusted in a CGI program (REQUEST_METHOD is \
                                set): use http_proxy"
                            .to_owned(),
                    );
                }
                let all = || address(&variable, ["ALL_PROXY", "all_proxy"]);
                let http = match address(&variable, ["HTTP_PROXY", "http_proxy"])? {
                    None => all()?,
                    some => some,
                };
                let https = match address(&variable, ["HTTPS_PROXY", "https_proxy"])? {
                    None => all()?,
                    some => some,
                };
                Ok(Self::new(http, https, direct))
            }
        }
    }

    fn new(http: Option<Url>, https: Option<Url>, direct: String) -> Self {
        let text = |url: &Option<Url>| url.as_ref().map(Url::to_string).unwrap_or_default();
        let matcher = Matcher::builder().http(text(&http)).https(text(&https)).no(&direct).build();
        Self { http, https, direct, matcher }
    }

    /// Whether every request goes directly to its host.
    pub(crate) fn is_empty(&self) -> bool {
        self.http.is_none() && self.https.is_none()
    }

    /// The host of the proxy that a request to this URL goes through, with its port.
    pub(super) fn proxy_of(&self, url: &Url) -> Option<String> {
        self.matcher.intercept(&url.as_str().parse().ok()?)?;
        let proxy = if url.scheme() == "https" { &self.https } else { &self.http };
        proxy.as_ref().map(host_of)
    }

    /// Gives the proxies to a client.
    pub(super) fn set_in(
        &self,
        builder: reqwest::ClientBuilder,
    ) -> Result<reqwest::ClientBuilder, reqwest::Error> {
        let direct = || NoProxy::from_string(&self.direct);
        let mut builder = builder.no_proxy();
        if let Some(url) = &self.http {
            builder = builder.proxy(reqwest::Proxy::http(url.clone())?.no_proxy(direct()));
        }
        if let Some(url) = &self.https {
            builder = builder.proxy(reqwest::Proxy::https(url.clone())?.no_proxy(direct()));
        }
        Ok(builder)
    }
}

/// The first of these variables that is set, with its name; a blank one counts as not set.
fn set<'a>(
    variable: &impl Fn(&str) -> Result<String, VarError>,
    names: [&'a str; 2],
) -> Result<Option<(&'a str, String)>, String> {
    for name in names {
        match variable(name) {
            Ok(value) if !value.trim().is_empty() => {
                return Ok(Some((name, value.trim().to_owned())));
            }
            Ok(_) | Err(VarError::NotPresent) => {}
            Err(VarError::NotUnicode(_)) => return Err(format!("{name} is not UTF-8")),
        }
    }
    Ok(None)
}

/// The proxy in one of these variables.
fn address(
    variable: &impl Fn(&str) -> Result<String, VarError>,
    names: [&str; 2],
) -> Result<Option<Url>, String> {
    match set(variable, names)? {
        None => Ok(None),
        Some((name, text)) => match parse(&text) {
            Ok(url) => Ok(Some(url)),
            Err(why) => Err(format!("{name} {why}")),
        },
    }
}

/// The hosts of `NO_PROXY` as the client reads them; `None` if it switches proxies off (`*`).
fn hosts_without_proxy(
    variable: &impl Fn(&str) -> Result<String, VarError>,
) -> Result<Option<String>, String> {
    let Some((name, text)) = set(variable, ["NO_PROXY", "no_proxy"])? else {
        return Ok(Some(String::new()));
    };
    let mut hosts = Vec::new();
    for entry in text.split(|c: char| c == ',' || c.is_whitespace()).filter(|it| !it.is_empty()) {
        if entry == "*" {
            return Ok(None);
        }
        match direct_host(entry) {
            Some(host) => hosts.push(host),
            // Without this, its requests would go through the proxy without a word.
            None => {
                return Err(format!(
                    "{name} has an entry that is not a host, domain, address or network (entry {}): \
                     write example.com, 10.0.0.1 or 10.0.0.0/8, without a port",
                    hosts.len() + 1
                ));
            }
        }
    }
    Ok(Some(hosts.join(",")))
}

/// An entry of `NO_PROXY` as the client reads it: a domain with its subdomains, an address, a network.
fn direct_host(entry: &str) -> Option<String> {
    let entry = entry.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(entry);
    let bare = entry.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(entry);
    let (ip, bits) = bare.split_once('/').map_or((bare, None), |(ip, bits)| (ip, Some(bits)));
    if let Ok(ip) = ip.parse::<std::net::IpAddr>() {
        let most = if ip.is_ipv4() { 32 } else { 128 };
        let fits = bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= most));
        return fits.then(|| bare.to_owned());
    }
    let name = entry.trim_end_matches('.');
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = name.chars().all(in_name) && name.chars().any(char::is_alphabetic);
    is_name.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_environment(variables: &[(&str, &str)]) -> Result<Proxies, String> {
        Proxies::of_mode(&ProxyMode::Environment, |name| {
            let found = variables.iter().find(|(set, _)| *set == name);
            found.map(|(_, value)| (*value).to_owned()).ok_or(VarError::NotPresent)
        })
    }

    fn way(proxies: &Proxies, url: &str) -> Option<String> {
        proxies.proxy_of(&url.parse().expect(url))
    }

    #[test]
    fn proxy_option_has_three_forms() {
        assert_eq!("direct".parse(), Ok(ProxyMode::Direct));
        assert_eq!(" env ".parse(), Ok(ProxyMode::Environment));
        let proxy = "http://u:p@localhost:8080".parse::<ProxyMode>();
        assert!(matches!(proxy, Ok(ProxyMode::Proxy(url)) if host_of(&url) == "localhost:8080"));
        for text in [
            "",
            "localhost:8080",
            "socks5://localhost",
            "http://",
            "yes",
            "http://a/proxy.pac",
            "http://a{b:1",
        ] {
            assert_eq!(text.parse::<ProxyMode>(), Err(InvalidProxy), "{text}");
        }
    }

    #[test]
    fn unusable_proxy_variables_are_refused() {
        for (name, value, why) in [
            ("ALL_PROXY", "socks5://127.0.0.1:9", "SOCKS"),
            ("all_proxy", "socks://u:secret@127.0.0.1:9/", "SOCKS"),
            ("HTTP_PROXY", "not a url", "not an address"),
            ("https_proxy", "http://a{b", "host cannot be read"),
            ("HTTPS_PROXY", "ftp://a", "neither http:// nor https://"),
            ("HTTP_PROXY", "http://secret@/", "not an address"),
            ("HTTP_PROXY", "http://a/proxy.pac", "path"),
            ("NO_PROXY", "a.example, 10.0.0", "entry 2"),
            ("NO_PROXY", "localhost:8080", "without a port"),
            ("NO_PROXY", "http://a.example", "entry 1"),
            ("NO_PROXY", "10.0.0.0/33", "entry 1"),
            ("no_proxy", "*a", "entry 1"),
        ] {
            let error = of_environment(&[(name, value)]).expect_err(value);
            assert!(error.starts_with(name) && error.contains(why), "{value}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
        let cgi = of_environment(&[("REQUEST_METHOD", "GET"), ("HTTP_PROXY", "http://a")]);
        assert!(cgi.is_err_and(|why| why.contains("http_proxy")));
        // A variable that a more specific one replaces is not used.
        let both = [
            ("ALL_PROXY", "socks://127.0.0.1:7890"),
            ("HTTP_PROXY", "http://127.0.0.1:1"),
            ("HTTPS_PROXY", "127.0.0.1:2"),
        ];
        let both = of_environment(&both).expect("usable");
        assert_eq!(way(&both, "http://a.example/"), Some("127.0.0.1:1".to_owned()));
        assert_eq!(way(&both, "https://a.example/"), Some("127.0.0.1:2".to_owned()));
    }

    #[test]
    fn no_proxy_names_what_goes_direct() {
        let cases = [
            ("", ["a.example", "127.0.0.1", "[::1]"], [true, true, true]),
            ("*", ["a.example", "127.0.0.1", "[::1]"], [false, false, false]),
            ("x.example, *", ["a.example", "127.0.0.1", "[::1]"], [false, false, false]),
            ("*.example", ["a.example", "127.0.0.1", "[::1]"], [false, true, true]),
            ("EXAMPLE", ["a.example", "b.a.example", "aexample"], [false, false, true]),
            ("127.0.0.0/8  [::1]", ["a.example", "127.0.0.1", "[::1]"], [true, false, false]),
        ];
        for (value, hosts, proxied) in cases {
            let variables = [("ALL_PROXY", "http://u:p@proxy:3128"), ("NO_PROXY", value)];
            let proxies = of_environment(&variables).expect(value);
            for (host, proxied) in hosts.into_iter().zip(proxied) {
                for scheme in ["http", "https"] {
                    let found = way(&proxies, &format!("{scheme}://{host}:8/v1"));
                    assert_eq!(found.as_deref(), proxied.then_some("proxy:3128"), "{value} {host}");
                }
            }
        }
    }

    #[test]
    fn blank_variables_count_as_unset() {
        assert!(
            of_environment(&[("HTTP_PROXY", " "), ("ALL_PROXY", "")]).expect("fine").is_empty()
        );
        let lower = of_environment(&[("HTTP_PROXY", ""), ("http_proxy", "http://b:1")]);
        assert_eq!(way(&lower.expect("fine"), "http://a/"), Some("b:1".to_owned()));
    }
}
