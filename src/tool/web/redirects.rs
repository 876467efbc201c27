//! The redirect chain of a page: the requested URL and those that redirects led to. Each has to
//! pass the same policy as the first.
//!
//! URLs of pages, and the domains they belong to.

use std::borrow::Cow;
use std::collections::HashSet;

use reqwest::Url;
use url::Position;

use super::cache::RedirectHop;
use super::fetch::{FetchError, FetchErrorKind, redacted_address};
use crate::net::{HttpResponse, host_of};
use crate::scenario::read::names::domain_in_ascii;
use crate::scenario::tools::documents::PrivateHosts;

/// Which redirects are followed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RedirectPolicy<'a> {
    /// Domains whose pages may be read.
    pub(crate) allowed: &'a [String],
    /// Hosts that may be on a private network.
    pub(crate) private: &'a PrivateHosts,
    pub(crate) max_redirects: u32,
}

/// The redirect chain so far.
#[derive(Debug)]
pub(crate) struct RedirectChain<'a> {
    policy: RedirectPolicy<'a>,
    url: Url,
    /// Domain and host of each URL, the current one last.
    pub(crate) hops: Vec<RedirectHop>,
    /// URLs that redirects led to, in order.
    pub(super) redirects: Vec<String>,
    seen: HashSet<String>,
}

impl<'a> RedirectChain<'a> {
    /// A chain that starts at this URL.
    pub(crate) fn new(url: Url, domain: String, policy: RedirectPolicy<'a>) -> Self {
        let seen = HashSet::from([url.to_string()]);
        let hops = vec![make_hop(&url, domain, policy)];
        Self { policy, url, hops, redirects: Vec::new(), seen }
    }

    /// Current URL.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Current host, with the port if it is not the scheme's default.
    pub(crate) fn host(&self) -> &str {
        self.hops.last().map_or("", |hop| hop.host.as_str())
    }

    /// Whether the current host may be on a private network.
    pub(crate) fn is_private(&self) -> bool {
        self.hops.last().is_some_and(|hop| hop.private)
    }

    /// Follows a redirect if the policy allows it.
    pub(crate) fn follow(&mut self, location: &str) -> Result<(), FetchError> {
        let to =
            redirect_url(&self.url, location).map_err(|missed| missed.with_location(location))?;
        // The same server keeps its domain, even if the redirect writes it differently or is
        // relative.
        let same = to.host() == self.url.host()
            && to.port_or_known_default() == self.url.port_or_known_default();
        let domain = match self.hops.last().filter(|_| same) {
            Some(here) => here.domain.clone(),
            None => self::domain(&to, location),
        };
        let shown = shown_url(&to, &domain);
        let missed = |why, what: &str| {
            let text = format!(
                "{} redirects to {}, {what}",
                redacted_address(&self.url),
                redacted_address(&shown)
            );
            Err(FetchError::new(why, text).with_location(&shown))
        };
        if !self.policy.allowed.contains(&domain) {
            return missed(FetchErrorKind::RedirectDenied, "whose domain is not allowed");
        }
        if self.redirects.len() >= self.policy.max_redirects as usize {
            let what = format!("but only {} redirects are followed", self.policy.max_redirects);
            return missed(FetchErrorKind::TooManyRedirects, &what);
        }
        if !self.seen.insert(to.to_string()) {
            return missed(FetchErrorKind::RedirectLoop, "which was already visited (a loop)");
        }
        self.hops.push(make_hop(&to, domain, self.policy));
        self.redirects.push(shown);
        self.url = to;
        Ok(())
    }
}

fn make_hop(url: &Url, domain: String, gate: RedirectPolicy<'_>) -> RedirectHop {
    let host = host_of(url);
    let private = gate.private.allow(&host);
    RedirectHop { domain, host, private }
}

/// Target of a response that is a redirect.
pub(super) fn redirect_target(answer: &HttpResponse) -> Option<&str> {
    let redirects = matches!(answer.status(), 301 | 302 | 303 | 307 | 308);
    redirects.then(|| answer.location()).flatten()
}

/// Parses a URL that can be requested. Its fragment is removed.
pub(super) fn parse_url(text: &str) -> Result<Url, FetchError> {
    let invalid = |why: &str| {
        FetchError::new(FetchErrorKind::InvalidUrl, format!("{} {why}", redacted_address(text)))
    };
    let mut url = Url::parse(text.trim()).map_err(|_| invalid("is not a valid address"))?;
    check(&url, text)?;
    url.set_fragment(None);
    Ok(url)
}

/// Target of a redirect from `from`.
fn redirect_url(from: &Url, location: &str) -> Result<Url, FetchError> {
    let nowhere = || {
        let text = format!(
            "{} redirects to {}, which is not a valid address",
            redacted_address(from),
            redacted_address(location)
        );
        FetchError::new(FetchErrorKind::InvalidUrl, text)
    };
    let mut url = from.join(location.trim()).map_err(|_| nowhere())?;
    check(&url, url.as_str())?;
    url.set_fragment(None);
    Ok(url)
}

fn check(url: &Url, text: &str) -> Result<(), FetchError> {
    let invalid = |why: &str| {
        FetchError::new(FetchErrorKind::InvalidUrl, format!("{} {why}", redacted_address(text)))
    };
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(invalid("is neither http:// nor https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("contains a user name or password, which are never sent"));
    }
    Ok(())
}

/// Domain of a URL, as the research source document compares it: the text between `//` and the
/// path, in lower case and in ASCII, with its port as written. If `written` and the parsed URL do
/// not clearly have the same host, the host of the parsed URL counts.
pub(crate) fn domain(url: &Url, written: &str) -> String {
    let after = written.trim().split_once("//").map_or("", |(_, after)| after);
    let netloc = after.split(['/', '?', '#']).next().unwrap_or_default();
    let netloc = domain_in_ascii(netloc).map_or_else(String::new, Cow::into_owned);
    let alone = Url::parse(&format!("{}://{netloc}/", url.scheme()));
    let same = alone.is_ok_and(|alone| {
        alone.host() == url.host() && alone.port() == url.port() && alone.path() == "/"
    });
    let plain = !netloc.contains(|c: char| c == '@' || c.is_whitespace() || c.is_control());
    if same && plain { netloc } else { host_of(url) }
}

/// Address for display, with the domain that was checked, so that checking it against the
/// allowlists again gives the same result.
pub(super) fn shown_url(url: &Url, domain: &str) -> String {
    format!("{}://{domain}{}", url.scheme(), &url[Position::BeforePath..])
}

/// An address without its query, unless the query is the one of `asked`.
pub(super) fn strip_foreign_query(address: &str, asked: &str) -> String {
    let (bare, query) = match address.split_once('?') {
        Some((bare, query)) => (bare, Some(query)),
        None => (address, None),
    };
    let known = query == asked.split_once('?').map(|(_, query)| query);
    if known { address } else { bare }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_an_address_is() {
        for (written, domain_of_it) in [
            ("https://A.Example/x", "a.example"),
            ("https://a.example:443/x", "a.example:443"),
            ("http://a.example:8080?x", "a.example:8080"),
            ("https://bücher.example/", "xn--bcher-kva.example"),
            ("https://BÜCHER.example:443/", "xn--bcher-kva.example:443"),
            ("https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
            ("https:\\\\evil.example\\@a.example/", "evil.example"),
            ("https:/evil.example//a.example", "evil.example"),
            ("https://evil.example\\//a.example/", "evil.example"),
            ("https://@evil.example/", "evil.example"),
            (" https://a.example\t/x", "a.example"),
            ("http://127.1:80/", "127.1:80"),
        ] {
            let url = Url::parse(written.trim()).expect(written);
            assert_eq!(domain(&url, written), domain_of_it, "{written}");
            let again = shown_url(&url, domain_of_it);
            assert_eq!(Url::parse(&again).as_ref(), Ok(&url), "{again} is the same page");
            assert_eq!(domain(&url, &again), domain_of_it);
        }
        let from = Url::parse("https://a.example/x/y").expect("an address");
        for (location, to) in [
            ("z?q#f", "https://a.example/x/z?q"),
            ("//b.example", "https://b.example/"),
            ("HTTP://B.example:80/", "http://b.example/"),
        ] {
            let to_there = redirect_url(&from, location).map(String::from);
            assert_eq!(to_there.as_deref().ok(), Some(to), "{location}");
        }
    }

    #[test]
    fn what_no_request_goes_to() {
        for text in [
            "",
            "a.example",
            "ftp://a.example/",
            "file:///etc/passwd",
            "data:text/html,x",
            "javascript:alert(1)",
            "http://",
            "https://me:hunter2@a.example/",
            "https://me@a.example/",
        ] {
            let missed = parse_url(text).expect_err(text);
            assert_eq!(missed.kind, FetchErrorKind::InvalidUrl, "{text}");
            assert!(!missed.text.contains("hunter2") && !missed.text.contains("me@"), "{text}");
        }
        let from = Url::parse("https://a.example/").expect("an address");
        assert!(redirect_url(&from, "file:///etc/passwd").is_err());
        assert!(redirect_url(&from, "https://u:p@a.example/").is_err());
    }
}
