//! Which addresses a fetch may reach, told by the parsed address and never by its text. Pure: it looks nothing up.
//!
//! What may be reached is the open internet. This machine, the networks around it, and what forwards to them are not,
//! but for ports of this machine that the operator opens by name.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;

/// What a range of addresses is called, beside its first address and how many bits of it count.
type Range4 = (&'static str, [u8; 4], u32);
type Range6 = (&'static str, [u16; 8], u32);

/// What is not the open internet in version 4 (IANA's registry of special addresses, and the two machines that clouds
/// keep at public ones).
const CLOSED_4: &[Range4] = &[
    ("an unspecified address", [0, 0, 0, 0], 8),
    ("a private address", [10, 0, 0, 0], 8),
    ("an address inside a provider's network", [100, 64, 0, 0], 10),
    ("an address of this machine", [127, 0, 0, 0], 8),
    ("a link-local address, as those of a cloud's metadata are", [169, 254, 0, 0], 16),
    ("a private address", [172, 16, 0, 0], 12),
    ("an address reserved for protocols", [192, 0, 0, 0], 24),
    ("an address of documentation", [192, 0, 2, 0], 24),
    ("an address of a relay", [192, 88, 99, 0], 24),
    ("a private address", [192, 168, 0, 0], 16),
    ("an address of a cloud's metadata", [168, 63, 129, 16], 32),
    ("an address of measurements", [198, 18, 0, 0], 15),
    ("an address of documentation", [198, 51, 100, 0], 24),
    ("an address of documentation", [203, 0, 113, 0], 24),
    ("a multicast address", [224, 0, 0, 0], 4),
    ("the broadcast address", [255, 255, 255, 255], 32),
    ("a reserved address", [240, 0, 0, 0], 4),
];

/// What is not the open internet in version 6, with a name of its own. Whatever is not in `OPEN_6` is closed anyway.
const CLOSED_6: &[Range6] = &[
    ("an unspecified address", [0, 0, 0, 0, 0, 0, 0, 0], 128),
    ("an address of this machine", [0, 0, 0, 0, 0, 0, 0, 1], 128),
    ("an address of a tunnel", [0x2001, 0, 0, 0, 0, 0, 0, 0], 32),
    ("an address reserved for protocols", [0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    ("an address of documentation", [0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    ("an address of documentation", [0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
    ("a private address", [0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
    ("a link-local address", [0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
    ("a private address", [0xfec0, 0, 0, 0, 0, 0, 0, 0], 10),
    ("a multicast address", [0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
];
/// Where the open internet is in version 6.
const OPEN_6: Range6 = ("", [0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// Addresses of version 6 with one of version 4 inside, and the first word of that. They are judged by it.
const MAPPED: (Range6, usize) = (("", [0, 0, 0, 0, 0, 0xffff, 0, 0], 96), 6);
const NAT64: (Range6, usize) = (("", [0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96), 6);
const SIX_TO_FOUR: (Range6, usize) = (("", [0x2002, 0, 0, 0, 0, 0, 0, 0], 16), 1);

/// What an address is that may not be reached; nothing of one on the open internet.
pub fn closed(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => closed_4(address),
        IpAddr::V6(address) => closed_6(address),
    }
}

/// Whether an address is this machine's, whatever its interfaces have.
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// A port of this machine that the operator opens, as it is compared: `127.0.0.1:8080`, `[::1]:8080` or
/// `localhost:8080`.
///
/// # Errors
/// With what is expected, in a few words.
pub fn opened(text: &str) -> Result<String, String> {
    let wrong = || "expected a port of this machine, 127.0.0.1:8080, [::1]:8080 or localhost:8080".to_string();
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let is_plain = port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
    let port: u16 = port.parse().ok().filter(|_| is_plain).ok_or_else(wrong)?;
    let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(host) => host.parse::<Ipv6Addr>().ok().filter(Ipv6Addr::is_loopback).map(|host| format!("[{host}]")),
        None if host == "localhost" => Some(host.to_string()),
        None => host.parse::<Ipv4Addr>().ok().filter(Ipv4Addr::is_loopback).map(|host| host.to_string()),
    };
    Ok(format!("{}:{port}", host.ok_or_else(wrong)?))
}

fn closed_4(address: Ipv4Addr) -> Option<&'static str> {
    let bits = u32::from(address);
    let is_in = |(_, first, length): &&Range4| (bits ^ u32::from(Ipv4Addr::from(*first))) >> (32 - length) == 0;
    CLOSED_4.iter().find(is_in).map(|(name, _, _)| *name)
}

fn closed_6(address: Ipv6Addr) -> Option<&'static str> {
    for (range, word) in [MAPPED, NAT64, SIX_TO_FOUR] {
        if is_in_6(address, &range) {
            return closed_4(inner(address, word));
        }
    }
    let named = CLOSED_6.iter().find(|range| is_in_6(address, range)).map(|(name, _, _)| *name);
    named.or((!is_in_6(address, &OPEN_6)).then_some("an address outside the open internet"))
}

fn is_in_6(address: Ipv6Addr, (_, first, length): &Range6) -> bool {
    (u128::from(address) ^ u128::from(Ipv6Addr::from(*first))) >> (128 - length) == 0
}

/// The address of version 4 whose first half is this word of one of version 6.
fn inner(address: Ipv6Addr, word: usize) -> Ipv4Addr {
    let bits = u128::from(address) >> (128 - 16 * (word as u32 + 2));
    Ipv4Addr::from((bits & u128::from(u32::MAX)) as u32)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    const OPEN: &[&str] = &[
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "93.184.216.34",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "168.63.129.17",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.3.0",
        "192.88.98.255",
        "192.88.100.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "198.51.101.0",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "2000::",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2001:db7:ffff::",
        "2001:db9::",
        "2606:2800:220:1:248:1893:25c8:1946",
        "2a00:1450:4001::1",
        "3ffe:ffff::",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
    ];

    /// Each with a word of what it is said to be.
    const CLOSED: &[(&str, &str)] = &[
        ("0.0.0.0", "unspecified"),
        ("0.255.255.255", "unspecified"),
        ("10.0.0.0", "private"),
        ("10.255.255.255", "private"),
        ("100.64.0.0", "provider"),
        ("100.100.100.200", "provider"),
        ("100.127.255.255", "provider"),
        ("127.0.0.0", "this machine"),
        ("127.0.0.1", "this machine"),
        ("127.255.255.255", "this machine"),
        ("168.63.129.16", "metadata"),
        ("169.254.0.0", "link-local"),
        ("169.254.169.254", "metadata"),
        ("169.254.170.2", "metadata"),
        ("169.254.255.255", "link-local"),
        ("172.16.0.0", "private"),
        ("172.31.255.255", "private"),
        ("192.0.0.0", "protocols"),
        ("192.0.0.192", "protocols"),
        ("192.0.2.0", "documentation"),
        ("192.0.2.255", "documentation"),
        ("192.88.99.1", "relay"),
        ("192.168.0.0", "private"),
        ("192.168.255.255", "private"),
        ("198.18.0.0", "measurements"),
        ("198.19.255.255", "measurements"),
        ("198.51.100.7", "documentation"),
        ("203.0.113.7", "documentation"),
        ("224.0.0.0", "multicast"),
        ("239.255.255.255", "multicast"),
        ("240.0.0.0", "reserved"),
        ("255.255.255.254", "reserved"),
        ("255.255.255.255", "broadcast"),
        ("::", "unspecified"),
        ("::1", "this machine"),
        ("::2", "outside"),
        ("::127.0.0.1", "outside"),
        ("::8.8.8.8", "outside"),
        ("::ffff:0:8.8.8.8", "outside"),
        ("::ffff:127.0.0.1", "this machine"),
        ("::ffff:10.1.2.3", "private"),
        ("::ffff:169.254.169.254", "metadata"),
        ("64:ff9b::127.0.0.1", "this machine"),
        ("64:ff9b::10.0.0.1", "private"),
        ("64:ff9b::a9fe:a9fe", "metadata"),
        ("64:ff9b:1::8.8.8.8", "outside"),
        ("100::1", "outside"),
        ("1fff:ffff::", "outside"),
        ("2001::1", "tunnel"),
        ("2001:0:53aa:64c::1", "tunnel"),
        ("2001:2::1", "protocols"),
        ("2001:10::1", "protocols"),
        ("2001:1ff:ffff::", "protocols"),
        ("2001:db8::1", "documentation"),
        ("2001:db8:ffff::1", "documentation"),
        ("2002:7f00:1::", "this machine"),
        ("2002:a00:1::1", "private"),
        ("2002:a9fe:a9fe::1", "metadata"),
        ("2002:c0a8:101::", "private"),
        ("3fff::1", "documentation"),
        ("3fff:fff::", "documentation"),
        ("4000::", "outside"),
        ("5f00::1", "outside"),
        ("fc00::1", "private"),
        ("fd00:ec2::254", "private"),
        ("fdff:ffff::", "private"),
        ("fe00::1", "outside"),
        ("fe80::1", "link-local"),
        ("fe80::a9fe:a9fe", "link-local"),
        ("febf:ffff::", "link-local"),
        ("fec0::1", "private"),
        ("ff02::1", "multicast"),
        ("ff0e::1", "multicast"),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast"),
    ];

    #[test]
    fn addresses_are_judged_by_what_they_are() {
        for text in OPEN {
            assert_eq!(closed(text.parse().unwrap()), None, "{text}");
        }
        for (text, word) in CLOSED {
            let said = closed(text.parse().unwrap());
            assert!(said.is_some_and(|said| said.contains(word)), "{text}: {said:?}");
        }
        assert!(OPEN.len() + CLOSED.len() > 100);
    }

    /// However an address of version 4 is carried, it is the same address; and where the library knows a class of
    /// addresses, it is closed.
    #[test]
    fn what_is_inside_decides() {
        let mut seed = 1_u32;
        for _ in 0..100_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let plain = Ipv4Addr::from(seed);
            let said = closed_4(plain);
            let [a, b, c, d] = plain.octets().map(u16::from);
            let (high, low) = (a << 8 | b, c << 8 | d);
            for carried in [
                plain.to_ipv6_mapped(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 7, 0, 0, 0, 1),
            ] {
                assert_eq!(closed(IpAddr::V6(carried)), said, "{carried}");
            }
            let known = plain.is_private()
                || plain.is_loopback()
                || plain.is_link_local()
                || plain.is_multicast()
                || plain.is_broadcast()
                || plain.is_documentation()
                || plain.is_unspecified();
            assert!(said.is_some() || !known, "{plain}");
        }
    }

    #[test]
    fn ports_of_this_machine_are_opened_by_name() {
        for (text, wanted) in [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("127.1.2.3:1", "127.1.2.3:1"),
            ("[::1]:65535", "[::1]:65535"),
            ("[0:0::1]:80", "[::1]:80"),
            ("localhost:80", "localhost:80"),
        ] {
            assert_eq!(opened(text).as_deref(), Ok(wanted), "{text}");
        }
        for text in [
            "",
            "127.0.0.1",
            "127.0.0.1:",
            "127.0.0.1:0",
            "127.0.0.1:080",
            "127.0.0.1:+80",
            "127.0.0.1:70000",
            "127.0.0.1:*",
            "127.1:80",
            "*:80",
            "0.0.0.0:80",
            "10.0.0.1:80",
            "[::]:80",
            "::1:80",
            "[::ffff:127.0.0.1]:80",
            "LOCALHOST:80",
            "localhost.:80",
            "example.com:80",
            "http://127.0.0.1:80",
            "127.0.0.1:80/",
        ] {
            assert!(opened(text).is_err(), "{text}");
        }
    }
}
