//! Which addresses may be requested. They are checked where names are resolved, so the checked
//! address is the one that is connected to.

use std::error::Error as StdError;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::Host;

use crate::base::private_host::is_own_network;

/// Which addresses requests may go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Any address.
    #[default]
    Anywhere,
    /// Public addresses only: not this machine, no private network.
    Internet,
}

/// Whether a single public machine may have this address.
fn is_public(ip: IpAddr) -> bool {
    if is_own_network(ip) {
        return false;
    }
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => {
            let inner = embedded_v4(ip).is_none_or(|ip| is_public(ip.into()));
            // Site-local addresses are deprecated, and still private.
            let site_local = ip.segments()[0] & 0xffc0 == 0xfec0;
            inner
                && !site_local
                && !is_never_public(ip)
                && !ip.is_multicast()
                && !ip.is_unspecified()
        }
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    // 0.0.0.0/8 is this machine on many systems; 192.0.0.0/24 is for protocols, 198.18.0.0/15 for
    // benchmarks, 240.0.0.0/4 is reserved.
    let special = a == 0 || (a, b, c) == (192, 0, 0) || (a == 198 && b & 0xfe == 18) || a >= 240;
    !special && !ip.is_multicast()
}

/// IPv4 address embedded in an IPv6 address: `::a.b.c.d`, NAT64 (`64:ff9b::/96`), 6to4
/// (`2002::/16`).
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(v4(high, low))
        }
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

/// Whether no public machine has this address: IPv4 addresses mapped inside one machine
/// (`::ffff:0:0/96`, and `::ffff:0:0:0/96` of RFC 2765) or one network (`64:ff9b:1::/48`, RFC
/// 8215), and Teredo (`2001::/32`), a tunnel to an address behind NAT. Where they lead is decided
/// elsewhere, so their embedded address is not checked.
fn is_never_public(ip: Ipv6Addr) -> bool {
    matches!(
        ip.segments(),
        [0, 0, 0, 0, 0, 0xffff, ..]
            | [0, 0, 0, 0, 0xffff, 0, ..]
            | [0x64, 0xff9b, 1, ..]
            | [0x2001, 0, ..]
    )
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
    fn what_is_of_the_internet() {
        for (address, internet) in [
            ("8.8.8.8", true),
            ("172.32.0.1", true),
            ("2606:4700::1111", true),
            ("64:ff9b::808:808", true),
            ("2002:808:808::1", true),
            ("127.0.0.1", false),
            ("127.8.8.8", false),
            ("10.0.0.1", false),
            ("172.16.0.1", false),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("192.0.0.1", false),
            ("198.18.0.1", false),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("::", false),
            ("::1", false),
            ("::127.0.0.1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:10.0.0.1", false),
            ("::ffff:8.8.8.8", false),
            ("::ffff:0:8.8.8.8", false),
            ("64:ff9b:1::808:808", false),
            ("64:ff9b:1:ffff::1", false),
            ("64:ff9b:2::1", true),
            ("2001::1", false),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", false),
            ("2001:4860:4860::8888", true),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b::a00:1", false),
            ("2002:7f00:1::", false),
            ("2002:c0a8:101::1", false),
            ("fc00::1", false),
            ("fd12::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(is_public(address.parse().expect(address)), internet, "{address}");
        }
    }

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
