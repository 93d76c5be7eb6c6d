//! The formats of text that are checked. A format that is not known refuses nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether text has a format.
pub(super) fn holds(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => is_time(text),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some(b'3')),
        "uuid4" => is_uuid(text, Some(b'4')),
        "uuid5" => is_uuid(text, Some(b'5')),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "ip" => text.parse::<IpAddr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "byte" => is_base64(text),
        "email" => text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty()),
        "hostname" => is_hostname(text),
        "uri" => text.parse::<http::Uri>().is_ok() && (text.contains(':') || text.starts_with('/')),
        "duration" => is_duration(text),
        "k8s-short-name" => text.len() <= 63 && is_label(text),
        "k8s-long-name" => text.len() <= 253 && !text.is_empty() && text.split('.').all(is_label),
        _ => true,
    }
}

fn is_time(text: &str) -> bool {
    let shaped = text.len() >= 20 && matches!(text.as_bytes().get(10), Some(b'T' | b't'));
    shaped && text.parse::<jiff::Timestamp>().is_ok()
}

fn is_uuid(text: &str, version: Option<u8>) -> bool {
    uuid::Uuid::try_parse(text)
        .is_ok_and(|uuid| version.is_none_or(|version| uuid.get_version_num() == usize::from(version - b'0')))
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    match (address.parse::<IpAddr>(), length.parse::<u8>()) {
        (Ok(IpAddr::V4(_)), Ok(length)) => length <= 32,
        (Ok(IpAddr::V6(_)), Ok(length)) => length <= 128,
        _ => false,
    }
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    matches!(parts.len(), 6 | 8 | 20)
        && parts.iter().all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn is_base64(text: &str) -> bool {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(text).is_ok()
}

fn is_hostname(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    let part = |part: &str| {
        !part.is_empty()
            && part.len() <= 63
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
    };
    !text.is_empty() && text.len() <= 255 && text.split('.').all(part)
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Numbers with units, as Go reads them, or units spelled out such as `3 days`.
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 20] = [
        "ns", "us", "µs", "μs", "ms", "s", "m", "h", "d", "w", "sec", "second", "min", "minute", "hour",
        "day", "week", "hr", "hrs", "micros",
    ];
    let mut rest = text.trim_start_matches(['-', '+']).trim();
    if rest == "0" {
        return true;
    }
    let mut any = false;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let after = after.trim_start();
        let letters = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, left) = after.split_at(letters);
        let known = UNITS.contains(&unit) || UNITS.contains(&unit.trim_end_matches('s'));
        if number.parse::<f64>().is_err() || !known {
            return false;
        }
        any = true;
        rest = left.trim_start();
    }
    any
}

#[test]
fn formats_hold_for_what_they_name() {
    for (format, text, expected) in [
        ("date-time", "2026-11-17T01:02:03Z", true),
        ("date-time", "2026-11-17T01:02:03.123+02:00", true),
        ("date-time", "2026-11-17", false),
        ("date-time", "yesterday", false),
        ("ipv4", "10.0.0.1", true),
        ("ipv4", "::1", false),
        ("cidr", "10.0.0.0/8", true),
        ("cidr", "10.0.0.0/33", false),
        ("uuid", "9634cb8e-0000-4000-8000-000000000000", true),
        ("uuid", "x", false),
        ("duration", "1h30m", true),
        ("duration", "5", false),
        ("byte", "YQ==", true),
        ("byte", "a", false),
        ("made-up", "anything", true),
    ] {
        assert_eq!(holds(format, text), expected, "{format} {text}");
    }
}
