//! Tables under names from the file (inputs, flags, roles, workers, tools, sources), and domains.
//! Domains outside ASCII are compared, stored and shown as punycode, so that a host cannot look
//! like another one on the screen.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use url::Host;

use super::ReadContext;
use super::shape::{FormatShape, NonBlankString};
use super::tree::{TextSpan, TomlNode, TomlValue};

/// The rule for one kind of name.
pub(crate) trait NameRule {
    /// The rule as a regular expression.
    const PATTERN: &'static str;
    /// The rule in words, for help texts.
    const WORDS: &'static str;
    /// Whether a text follows the rule.
    fn fits(text: &str) -> bool;
    /// The problem and the help for a text that does not.
    fn name_error(text: &str) -> (String, String) {
        (format!("`{text}` is not a valid name"), Self::WORDS.to_owned())
    }
}

/// A name that can be used in a condition: `facts.x`, `{{x}}`.
#[derive(Debug, Clone)]
pub(crate) struct IdentName;

impl NameRule for IdentName {
    const PATTERN: &'static str = "^[A-Za-z_][A-Za-z0-9_]{0,63}$";
    const WORDS: &'static str = "use letters, digits and _, no digit first, at most 64";
    fn fits(text: &str) -> bool {
        text.len() <= 64
            && !text.starts_with(|c: char| c.is_ascii_digit())
            && !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }
}

/// The name of a role, a worker, an agent or a tool.
#[derive(Debug, Clone)]
pub(crate) struct ActorName;

impl NameRule for ActorName {
    const PATTERN: &'static str = "^[A-Za-z0-9_-]{1,64}$";
    const WORDS: &'static str = "use letters, digits, _ and -, at most 64";
    fn fits(text: &str) -> bool {
        (1..=64).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    }
}

/// A key of a tool's result.
#[derive(Debug, Clone)]
pub(crate) struct ResultKey;

impl NameRule for ResultKey {
    const PATTERN: &'static str = "^.{1,128}$";
    const WORDS: &'static str = "use 1 to 128 characters";
    fn fits(text: &str) -> bool {
        (1..=128).contains(&text.chars().count()) && !text.contains('\n')
    }
}

/// The name of an HTTP header.
#[derive(Debug, Clone)]
pub(crate) struct HeaderName;

impl NameRule for HeaderName {
    const PATTERN: &'static str = "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$";
    const WORDS: &'static str = "write a header such as Authorization or X-Api-Key";
    fn fits(text: &str) -> bool {
        (1..=128).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+.^_`|~-".contains(&byte))
    }
}

/// The name of an environment variable.
#[derive(Debug, Clone)]
pub(crate) struct EnvName;

impl NameRule for EnvName {
    const PATTERN: &'static str = "^[A-Za-z_][A-Za-z0-9_]{0,127}$";
    const WORDS: &'static str = "use letters, digits and _, no digit first, at most 128";
    fn fits(text: &str) -> bool {
        (1..=128).contains(&text.len())
            && !text.starts_with(|c: char| c.is_ascii_digit())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }
}

/// Maximum number of names of one kind: they are compared with one another.
pub(crate) const MAX_NAMES: usize = 2_000;

/// Tables under names from the file, in its order.
#[derive(Debug, Clone)]
pub(crate) struct NamedEntries<T, R> {
    pub entries: Vec<NamedEntry<T>>,
    /// The value is not a table, so its names are not known.
    broken: bool,
    rule: std::marker::PhantomData<R>,
}

/// One entry of [`NamedEntries`].
#[derive(Debug, Clone)]
pub(crate) struct NamedEntry<T> {
    pub name: String,
    pub at: TextSpan,
    /// `None`: the name exists, but its value is invalid.
    pub value: Option<T>,
}

impl<T, R> NamedEntries<T, R> {
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }
    /// Whether it has this name; true if the names are not known.
    pub fn has(&self, name: &str) -> bool {
        self.broken || self.names().any(|known| known == name)
    }
}

impl<T, R> Default for NamedEntries<T, R> {
    fn default() -> Self {
        Self { entries: Vec::new(), broken: false, rule: std::marker::PhantomData }
    }
}

impl<T: FormatShape, R: NameRule> FormatShape for NamedEntries<T, R> {
    fn schema() -> Value {
        json!({
            "type": "object",
            "propertyNames": { "pattern": R::PATTERN },
            "additionalProperties": T::schema(),
            "maxProperties": MAX_NAMES,
        })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        let TomlValue::Table(table) = &node.value else {
            cx.wrong_type(node, "a table");
            return Some(Self { broken: true, ..Self::default() });
        };
        let count = table.entries.len();
        if count > MAX_NAMES {
            let help = format!("at most {MAX_NAMES}");
            cx.error(node.at, format!("{count} names are too many"), help);
            return Some(Self { broken: true, ..Self::default() });
        }
        let mut named = Self::default();
        for (key, node) in &table.entries {
            cx.at_key(&key.text, |cx| {
                if !R::fits(&key.text) {
                    let (what, help) = R::name_error(&key.text);
                    cx.error(key.at, what, help);
                }
                let value = T::read(node, cx);
                named.entries.push(NamedEntry { name: key.text.clone(), at: key.at, value });
            });
        }
        Some(named)
    }
    fn default_json(&self) -> Value {
        Value::Object(Map::new())
    }
}

/// A domain of an allowlist, trimmed and in lower case.
#[derive(Debug, Clone)]
pub(crate) struct Domain {
    pub at: TextSpan,
    pub name: String,
}

impl FormatShape for Domain {
    fn schema() -> serde_json::Value {
        serde_json::json!({ "type": "string", "pattern": DomainName::PATTERN })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        let text = NonBlankString::read(node, cx)?;
        match parse_domain(&text.text) {
            Ok(name) => Some(Self { at: node.at, name }),
            Err(wrong) => {
                cx.error(node.at, wrong.what, wrong.help);
                None
            }
        }
    }
}

/// The rule for the name of a `[sources]` table.
#[derive(Debug, Clone)]
pub(crate) struct DomainName;

impl NameRule for DomainName {
    // For non-ASCII names the pattern is wider than the program's check, which uses the ASCII form.
    const PATTERN: &'static str = r"^\s*(\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9_]|[^\x00-\x7F])((?:[A-Za-z0-9_.-]|[^\x00-\x7F])*(?:[A-Za-z0-9_]|[^\x00-\x7F]))?)(:[0-9]{1,5})?\s*$";
    const WORDS: &'static str = "write a host such as vendor.example.com";
    fn fits(text: &str) -> bool {
        parse_domain(text).is_ok()
    }
    fn name_error(text: &str) -> (String, String) {
        let wrong = parse_domain(text).err();
        wrong.map_or_else(Default::default, |wrong| (wrong.what, wrong.help))
    }
}

/// Why a text is not a domain, and what to write.
#[derive(Debug)]
pub(crate) struct DomainError {
    what: String,
    help: String,
}

impl DomainError {
    fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: what.into(), help: help.into() }
    }
}

/// A host with its port, if any, in lower case and in ASCII: a Unicode host becomes punycode, as in
/// browsers. `None` if no request could use it as a host.
pub fn domain_in_ascii(domain: &str) -> Option<Cow<'_, str>> {
    if domain.is_ascii() {
        let lower = !domain.bytes().any(|byte| byte.is_ascii_uppercase());
        return Some(if lower { domain.into() } else { domain.to_ascii_lowercase().into() });
    }
    let (host, port) = match domain.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (domain, None),
    };
    // These characters have a meaning of their own in URLs and are not decoded here.
    if host.contains(['%', '@', '[', ']']) || port.is_some_and(|port| !port.is_ascii()) {
        return None;
    }
    let host = Host::parse(host).ok()?.to_string();
    Some(port.map_or_else(|| host.clone(), |port| format!("{host}:{port}")).into())
}

pub(crate) fn parse_domain(text: &str) -> Result<String, DomainError> {
    let name = text.trim().to_lowercase();
    let shown = text.trim();
    // Otherwise the one who fills in an input would choose what may be read.
    if name.contains("{{") {
        let help = "write the domain itself";
        return Err(DomainError::new("an input cannot choose a domain", help));
    }
    if let Some(host) = host_of_address(&name) {
        let what = format!("{shown:?} is a URL, not a domain");
        let help = match domain_in_ascii(host).map(|host| check_host(&host)) {
            Some(Ok(())) => format!("write {host:?}"),
            _ => DomainName::WORDS.to_owned(),
        };
        return Err(DomainError::new(what, help));
    }
    if name.contains('*') {
        let what = format!("{shown:?} is not a domain: wildcards are not allowed");
        return Err(DomainError::new(what, "list every host, such as vendor.example.com"));
    }
    let no_domain = |help: &str| DomainError::new(format!("{shown:?} is not a domain"), help);
    let name = domain_in_ascii(&name).ok_or_else(|| no_domain(DomainName::WORDS))?;
    check_host(&name).map_err(no_domain)?;
    Ok(name.into_owned())
}

/// The domain as requests name their host: without the scheme's default port, and an IP address in
/// its short form.
pub(crate) fn request_host(domain: &str) -> String {
    let (host, port) = match domain.rfind(':').filter(|at| !domain[*at..].contains(']')) {
        Some(at) => (&domain[..at], domain[at + 1..].parse::<u16>().ok()),
        None => (domain, None),
    };
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = match inner.and_then(|it| it.parse::<std::net::Ipv6Addr>().ok()) {
        Some(address) => format!("[{address}]"),
        None => host.to_owned(),
    };
    match port {
        None | Some(80 | 443) => host,
        Some(port) => format!("{host}:{port}"),
    }
}

/// The host, if the text is a URL or has a part that only URLs have.
fn host_of_address(text: &str) -> Option<&str> {
    let rest = text.split_once("//").map_or(text, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    (host.len() < text.len()).then_some(host)
}

/// Checks that it is a host, optionally with a port. The error is the help text.
fn check_host(name: &str) -> Result<(), &'static str> {
    let (host, port) = match name.rfind(']') {
        Some(end) => name.split_at(end + 1),
        None if name.starts_with('[') => return Err(DomainName::WORDS),
        None => name.split_at(name.find(':').unwrap_or(name.len())),
    };
    if let Some(port) = port.strip_prefix(':') {
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        if !digits || port.parse::<u16>().is_ok_and(|it| it == 0) || port.parse::<u16>().is_err() {
            return Err("a port is a number from 1 to 65535");
        }
    } else if !port.is_empty() {
        return Err(DomainName::WORDS);
    }
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let good = match inner {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => host.split('.').all(|label| {
            let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            (1..=63).contains(&label.len())
                && label.bytes().all(word)
                && !label.starts_with('-')
                && !label.ends_with('-')
        }),
    };
    if good && host.len() <= 253 { Ok(()) } else { Err(DomainName::WORDS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domain_spellings_share_one_ascii_form() {
        for (domain, ascii) in [
            ("Bücher.Example:8080", Some("xn--bcher-kva.example:8080")),
            ("xn--BCHER-kva.example", Some("xn--bcher-kva.example")),
            ("bü cher.example", None),
        ] {
            assert_eq!(domain_in_ascii(domain).as_deref(), ascii, "{domain}");
        }
    }

    #[test]
    fn host_names_match_requests() {
        for (domain, host) in [
            ("wiki.corp", "wiki.corp"),
            ("wiki.corp:8080", "wiki.corp:8080"),
            ("wiki.corp:80", "wiki.corp"),
            ("wiki.corp:443", "wiki.corp"),
            ("10.0.0.7:08080", "10.0.0.7:8080"),
            ("[::1]", "[::1]"),
            ("[0:0:0:0:0:0:0:1]:80", "[::1]"),
            ("[::1]:8080", "[::1]:8080"),
        ] {
            assert_eq!(request_host(domain), host, "{domain}");
        }
    }

    #[test]
    fn reads_domains_as_in_addresses() {
        for (text, name) in [
            (" Vendor.Example.com ", "vendor.example.com"),
            ("localhost:8080", "localhost:8080"),
            ("10.0.0.7", "10.0.0.7"),
            ("[::1]:8080", "[::1]:8080"),
            ("a_b.example", "a_b.example"),
            ("Bücher.example", "xn--bcher-kva.example"),
            ("xn--BCHER-kva.example", "xn--bcher-kva.example"),
            ("bücher.example:8080", "xn--bcher-kva.example:8080"),
            ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
            // As browsers read it: fullwidth characters become ASCII.
            ("ａ。example", "a.example"),
        ] {
            assert_eq!(parse_domain(text).ok().as_deref(), Some(name), "{text}");
        }
        for (text, help) in [
            ("https://Vendor.example.com/x?y", "write \"vendor.example.com\""),
            ("vendor.example.com/", "write \"vendor.example.com\""),
            ("me:word@vendor.example.com", "write \"vendor.example.com\""),
            ("//vendor.example.com", "write \"vendor.example.com\""),
            ("https://", DomainName::WORDS),
            ("*.example.com", "list every host, such as vendor.example.com"),
            ("https://bücher.example/x", "write \"bücher.example\""),
            ("b\u{ad}\u{fffd}.example", DomainName::WORDS),
            ("bü cher.example", DomainName::WORDS),
            ("bücher.example:８０", DomainName::WORDS),
            ("*.bücher.example", "list every host, such as vendor.example.com"),
            ("{{host}}", "write the domain itself"),
            ("vendor.example.com.", DomainName::WORDS),
            ("a b", DomainName::WORDS),
            ("-a.example", DomainName::WORDS),
            ("a.example:", "a port is a number from 1 to 65535"),
            ("a.example:70000", "a port is a number from 1 to 65535"),
            ("[::1", DomainName::WORDS),
            ("", DomainName::WORDS),
        ] {
            let wrong = parse_domain(text).err().map(|wrong| wrong.help);
            assert_eq!(wrong.as_deref(), Some(help), "{text}");
        }
    }
}
