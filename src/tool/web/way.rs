//! The redirect chain of a page: the requested URL and those that redirects led to. Each has to
//! pass the same policy as the first.

use std::collections::HashSet;

use reqwest::Url;

use super::cache::Hop;
use super::miss::{Missed, Why, shown};
use super::site;
use crate::net::Answer;
use crate::net::http::host_of;
use crate::scenario::lookup::PrivateHosts;

/// Which redirects are followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gate<'a> {
    /// Domains whose pages may be read.
    pub(super) allowed: &'a [String],
    /// Hosts that may be on a private network.
    pub(super) private: &'a PrivateHosts,
    /// Most redirects that are followed.
    pub(super) most: u32,
}

/// The redirect chain so far.
#[derive(Debug)]
pub(super) struct Way<'a> {
    gate: Gate<'a>,
    url: Url,
    /// Domain and host of each URL, the current one last.
    pub(super) hops: Vec<Hop>,
    /// URLs that redirects led to, in order.
    pub(super) redirects: Vec<String>,
    seen: HashSet<String>,
}

impl<'a> Way<'a> {
    /// A chain that starts at this URL.
    pub(super) fn new(url: Url, domain: String, gate: Gate<'a>) -> Self {
        let seen = HashSet::from([url.to_string()]);
        let hops = vec![hop(&url, domain, gate)];
        Self { gate, url, hops, redirects: Vec::new(), seen }
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
    pub(super) fn follow(&mut self, location: &str) -> Result<(), Missed> {
        let to = site::leads(&self.url, location).map_err(|missed| missed.leading(location))?;
        // The same server keeps its domain, even if the redirect writes it differently or is
        // relative.
        let same = to.host() == self.url.host()
            && to.port_or_known_default() == self.url.port_or_known_default();
        let domain = match self.hops.last().filter(|_| same) {
            Some(here) => here.domain.clone(),
            None => site::domain(&to, location),
        };
        let told = site::told(&to, &domain);
        let missed = |why, what: &str| {
            let text = format!("{} redirects to {}, {what}", shown(&self.url), shown(&told));
            Err(Missed::new(why, text).leading(&told))
        };
        if !self.gate.allowed.contains(&domain) {
            return missed(Why::RedirectDenied, "whose domain is not allowed");
        }
        if self.redirects.len() >= self.gate.most as usize {
            let what = format!("but only {} redirects are followed", self.gate.most);
            return missed(Why::TooManyRedirects, &what);
        }
        if !self.seen.insert(to.to_string()) {
            return missed(Why::RedirectLoop, "which was already visited (a loop)");
        }
        self.hops.push(hop(&to, domain, self.gate));
        self.redirects.push(told);
        self.url = to;
        Ok(())
    }
}

fn hop(url: &Url, domain: String, gate: Gate<'_>) -> Hop {
    let host = host_of(url);
    let private = gate.private.allow(&host);
    Hop { domain, host, private }
}

/// Target of a response that is a redirect.
pub(super) fn redirect(answer: &Answer) -> Option<&str> {
    let redirects = matches!(answer.status(), 301 | 302 | 303 | 307 | 308);
    redirects.then(|| answer.location()).flatten()
}
