//! Hosts that are this machine or on a private network, as far as an address says it without a look-up.

use std::net::IpAddr;

use url::{Host, Url};

/// Whether an address is this machine or on a private network: loopback, private or link-local.
pub(crate) fn is_own_network(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            // 100.64.0.0/10 is used by overlay networks such as VPNs.
            let [a, b, ..] = ip.octets();
            let overlaid = a == 100 && b & 0xc0 == 64;
            ip.is_private() || ip.is_link_local() || ip.is_loopback() || overlaid
        }
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local() || ip.is_loopback(),
    }
}

/// Whether the host of a URL is certainly private: such an address, or `localhost`.
pub(crate) fn has_private_host(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => is_own_network(ip.into()),
        Some(Host::Ipv6(ip)) => is_own_network(ip.into()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_certainly_private() {
        for (url, private) in [
            ("http://127.0.0.1:8000/{day}", true),
            ("http://localhost/x", true),
            ("http://LOCALHOST:1/x", true),
            ("https://api.localhost/", true),
            ("http://[::1]:9/", true),
            ("http://192.168.1.4/a?q={query}", true),
            ("http://10.0.0.1", true),
            ("https://api.example.com/{day}", false),
            ("https://93.184.216.34/", false),
            ("http://nas/", false),
            ("no address", false),
        ] {
            assert_eq!(has_private_host(url), private, "{url}");
        }
    }
}
