//! Hosts that are this machine or on a private network, judged by name or address, without a look-up.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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

/// Whether a single public machine may have this address.
pub(crate) fn is_public(ip: IpAddr) -> bool {
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

/// A name as hosts are compared: without the dots at its end, which only say that it is complete
/// (`localhost.` is `localhost`), and in lower case.
pub(crate) fn plain_name(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// Whether a name always means this machine.
pub(crate) fn is_localhost(name: &str) -> bool {
    let name = plain_name(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether a name is of a local network: without a dot, or in a domain that is never public.
pub(crate) fn is_local_name(name: &str) -> bool {
    const DOMAINS: [&str; 5] = [".local", ".internal", ".lan", ".home.arpa", ".localhost"];
    let name = plain_name(name);
    !name.contains('.') || DOMAINS.iter().any(|domain| name.ends_with(domain))
}

/// Whether the host of a URL is certainly not public: such an address in any spelling, or `localhost`.
pub(crate) fn has_private_host(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    match url.host() {
        Some(Host::Domain(name)) => is_localhost(name),
        Some(Host::Ipv4(ip)) => !is_public(ip.into()),
        Some(Host::Ipv6(ip)) => !is_public(ip.into()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_private_host() {
        for (url, private) in [
            ("http://127.0.0.1:8000/{day}", true),
            ("http://localhost/x", true),
            ("http://LOCALHOST:1/x", true),
            ("http://localhost./x", true),
            ("http://LocalHost.:8080/x", true),
            ("http://a.localhost../x", true),
            ("https://api.localhost/", true),
            ("http://[::1]:9/", true),
            ("http://127.0.0.1./", true),
            ("http://0x7f.1/", true),
            ("http://2130706433/", true),
            ("http://0.0.0.0:11434/", true),
            ("http://[::]/", true),
            ("http://[::127.0.0.1]/", true),
            ("http://[::ffff:10.0.0.1]/", true),
            ("http://[::ffff:0:127.0.0.1]/", true),
            ("http://[64:ff9b::7f00:1]/", true),
            ("http://[2002:7f00:1::]/", true),
            ("http://[fe80::1]/", true),
            ("http://[fec0::1]/", true),
            ("http://192.168.1.4/a?q={query}", true),
            ("http://10.0.0.1", true),
            ("https://api.example.com/{day}", false),
            ("https://api.example.com./{day}", false),
            ("https://localhost.example.com/", false),
            ("https://93.184.216.34/", false),
            ("https://[2606:4700::1111]/", false),
            ("http://nas/", false),
            ("no address", false),
        ] {
            assert_eq!(has_private_host(url), private, "{url}");
        }
    }

    #[test]
    fn which_addresses_are_public() {
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
}
