//! The redirect chain of a page: the requested URL and those that redirects led to. Each has to
//! pass the same policy as the first.

use std::collections::HashSet;

use reqwest::Url;

use super::cache::RedirectHop;
use super::fetch_error::{FetchError, FetchErrorKind, redacted_address};
use super::page_url;
use crate::net::HttpResponse;
use crate::net::http::host_of;
use crate::scenario::spec::lookup::PrivateHosts;

/// Which redirects are followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct RedirectPolicy<'a> {
    /// Domains whose pages may be read.
    pub(super) allowed: &'a [String],
    /// Hosts that may be on a private network.
    pub(super) private: &'a PrivateHosts,
    /// Most redirects that are followed.
    pub(super) max_redirects: u32,
}

/// The redirect chain so far.
#[derive(Debug)]
pub(super) struct RedirectChain<'a> {
    policy: RedirectPolicy<'a>,
    url: Url,
    /// Domain and host of each URL, the current one last.
    pub(super) hops: Vec<RedirectHop>,
    /// URLs that redirects led to, in order.
    pub(super) redirects: Vec<String>,
    seen: HashSet<String>,
}

impl<'a> RedirectChain<'a> {
    /// A chain that starts at this URL.
    pub(super) fn new(url: Url, domain: String, policy: RedirectPolicy<'a>) -> Self {
        let seen = HashSet::from([url.to_string()]);
        let hops = vec![make_hop(&url, domain, policy)];
        Self { policy, url, hops, redirects: Vec::new(), seen }
    }

    /// Current URL.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Current host, with the port if it is not the scheme's default.
    pub(super) fn host(&self) -> &str {
        self.hops.last().map_or("", |hop| hop.host.as_str())
    }

    /// Whether the current host may be on a private network.
    pub(super) fn is_private(&self) -> bool {
        self.hops.last().is_some_and(|hop| hop.private)
    }

    /// Follows a redirect if the policy allows it.
    pub(super) fn follow(&mut self, location: &str) -> Result<(), FetchError> {
        let to = page_url::redirect_url(&self.url, location)
            .map_err(|missed| missed.with_location(location))?;
        // The same server keeps its domain, even if the redirect writes it differently or is
        // relative.
        let same = to.host() == self.url.host()
            && to.port_or_known_default() == self.url.port_or_known_default();
        let domain = match self.hops.last().filter(|_| same) {
            Some(here) => here.domain.clone(),
            None => page_url::domain(&to, location),
        };
        let shown = page_url::shown_url(&to, &domain);
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
