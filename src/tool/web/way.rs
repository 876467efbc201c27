//! The way to a page: the address that was asked for and those that redirects led to. Each has to
//! pass the gate that the first has passed.

use std::collections::HashSet;

use reqwest::Url;

use super::cache::Hop;
use super::miss::{Missed, Why, shown};
use super::site;
use crate::net::Answer;
use crate::net::http::host_of;
use crate::scenario::lookup::PrivateHosts;

/// Where redirects may lead.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gate<'a> {
    /// Whose pages may be read.
    pub(super) allowed: &'a [String],
    /// Who may be on a network of its own.
    pub(super) private: &'a PrivateHosts,
    /// How many redirects are followed.
    pub(super) most: u32,
}

/// The way to a page so far.
#[derive(Debug)]
pub(super) struct Way<'a> {
    gate: Gate<'a>,
    url: Url,
    /// Whose each address is, that at hand the last.
    pub(super) hops: Vec<Hop>,
    /// The addresses that redirects led to.
    pub(super) redirects: Vec<String>,
    seen: HashSet<String>,
}

impl<'a> Way<'a> {
    /// The way that begins here.
    pub(super) fn new(url: Url, domain: String, gate: Gate<'a>) -> Self {
        let seen = HashSet::from([url.to_string()]);
        let hops = vec![hop(&url, domain, gate)];
        Self { gate, url, hops, redirects: Vec::new(), seen }
    }

    /// The address at hand.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// The host at hand, with its port where it is not the scheme's own.
    pub(super) fn host(&self) -> &str {
        self.hops.last().map_or("", |hop| hop.host.as_str())
    }

    /// Whether the host at hand may be anywhere.
    pub(super) fn is_private(&self) -> bool {
        self.hops.last().is_some_and(|hop| hop.private)
    }

    /// Goes where a redirect leads, if the gate lets it.
    pub(super) fn follow(&mut self, location: &str) -> Result<(), Missed> {
        let to = site::leads(&self.url, location).map_err(|missed| missed.leading(location))?;
        // The same server is the same domain, however a redirect writes it or leaves it out.
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
            let what = format!("which would be more than {} redirects", self.gate.most);
            return missed(Why::TooManyRedirects, &what);
        }
        if !self.seen.insert(to.to_string()) {
            return missed(Why::RedirectLoop, "where it came from");
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

/// Where an answer redirects to.
pub(super) fn redirect(answer: &Answer) -> Option<&str> {
    let redirects = matches!(answer.status(), 301 | 302 | 303 | 307 | 308);
    redirects.then(|| answer.location()).flatten()
}
