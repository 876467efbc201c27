//! Which addresses may be requested. They are checked where names are resolved, so the checked
//! address is the one that is connected to.

use std::error::Error as StdError;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::Host;

use crate::base::private_host::is_public;

/// Which addresses requests may go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Any address.
    #[default]
    Anywhere,
    /// Public addresses only: not this machine, no private network.
    Internet,
}

/// An address that is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutOfReach(pub(super) IpAddr);

impl fmt::Display for OutOfReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a public address", self.0)
    }
}

impl StdError for OutOfReach {}

impl Reach {
    /// Checks a literal IP address, which is not resolved.
    pub(super) fn check(self, url: &Url) -> Result<(), OutOfReach> {
        let written: IpAddr = match url.host() {
            Some(Host::Ipv4(ip)) => ip.into(),
            Some(Host::Ipv6(ip)) => ip.into(),
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        match self {
            Self::Internet if !is_public(written) => Err(OutOfReach(written)),
            Self::Internet | Self::Anywhere => Ok(()),
        }
    }
}

/// Resolves names to public addresses only.
pub(super) struct PublicResolver;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let (good, bad): (Vec<SocketAddr>, Vec<SocketAddr>) =
                found.partition(|address| is_public(address.ip()));
            match bad.first() {
                Some(refused) if good.is_empty() => Err(OutOfReach(refused.ip()).into()),
                _ => Ok(Box::new(good.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_written_out_is_checked_however_it_is_written() {
        let check = |url: &str| Reach::Internet.check(&url.parse().expect(url)).is_ok();
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://0x7f000001/",
            "http://2130706433/",
            "http://0177.0.0.1/",
            "http://[::1]:80/",
            "http://[::ffff:192.168.0.1]/",
            "http://[::ffff:8.8.8.8]/",
            "http://[64:ff9b:1::7f00:1]/",
            "http://[2001:0:7f00:1::]/",
            "http://169.254.169.254/latest",
        ] {
            assert!(!check(url), "{url}");
            assert!(Reach::Anywhere.check(&url.parse().expect(url)).is_ok());
        }
        assert!(check("http://8.8.8.8/") && check("http://a.example/"));
    }
}
