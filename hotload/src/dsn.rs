//! Parses a connection string into parts: an address (`postgresql://...`) or pairs (`host=... user=...`), as libpq reads
//! them. `login` interprets the parts. Errors name the place of a problem, never its content.

use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;

/// The parts by name: scheme, host, port, username, password, database; and everything else as it was named.
pub(crate) type Parts = BTreeMap<String, String>;

/// Parses either form.
///
/// # Errors
/// The text is invalid. The error does not have its content.
pub(crate) fn parse(text: &str) -> Result<Parts, String> {
    let text = text.trim();
    match text.split_once("://") {
        Some((scheme, rest)) if scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) => {
            address(scheme, rest)
        }
        _ => pairs(text),
    }
}

/// The common name of synonyms in files, addresses and pairs.
pub(crate) fn common_name(name: &str) -> &str {
    match name {
        "hostname" | "hostaddr" => "host",
        "user" => "username",
        "dbname" => "database",
        "sslMode" | "ssl-mode" => "sslmode",
        other => other,
    }
}

fn address(scheme: &str, rest: &str) -> Result<Parts, String> {
    let mut parts = Parts::from([("scheme".to_owned(), scheme.to_ascii_lowercase())]);
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    // The last `@`: users forget to escape the one in a password.
    let (authority, path) = match rest.rfind('@') {
        Some(at) => {
            let (user, after) = (&rest[..at], &rest[at + 1..]);
            put_user(&mut parts, user)?;
            after.split_once('/').unwrap_or((after, ""))
        }
        None => rest.split_once('/').unwrap_or((rest, "")),
    };
    put_host(&mut parts, authority)?;
    put(&mut parts, "database", path)?;
    put_query(&mut parts, query)?;
    Ok(parts)
}

fn put_user(parts: &mut Parts, text: &str) -> Result<(), String> {
    let (name, password) = text.split_once(':').unwrap_or((text, ""));
    put(parts, "username", name)?;
    put(parts, "password", password)
}

fn put_host(parts: &mut Parts, text: &str) -> Result<(), String> {
    if text.contains(',') {
        return Err("the address names several hosts: name one".to_owned());
    }
    let (host, port) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':').unwrap_or(port)),
        None => text.rsplit_once(':').unwrap_or((text, "")),
    };
    put(parts, "host", host)?;
    put(parts, "port", port)
}

/// `name=value&name=value`, as an address and Conductor's key `options` have it.
pub(crate) fn put_query(parts: &mut Parts, query: &str) -> Result<(), String> {
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        put(parts, common_name(name), value)?;
    }
    Ok(())
}

/// Inserts a part; an empty one counts as missing.
fn put(parts: &mut Parts, name: &str, text: &str) -> Result<(), String> {
    let value = percent_decode_str(text).decode_utf8();
    let value = value.map_err(|_| format!("the {name} in the address is not UTF-8"))?;
    if !value.is_empty() {
        parts.insert(name.to_owned(), value.into_owned());
    }
    Ok(())
}

/// `name=value name='a value'`, with `\` before a quote or a `\`.
fn pairs(text: &str) -> Result<Parts, String> {
    let mut parts = Parts::new();
    let mut rest = text.chars().peekable();
    loop {
        while rest.next_if(|c| c.is_whitespace()).is_some() {}
        if rest.peek().is_none() {
            return Ok(parts);
        }
        let mut name = String::new();
        while let Some(c) = rest.next_if(|c| *c != '=' && !c.is_whitespace()) {
            name.push(c);
        }
        while rest.next_if(|c| c.is_whitespace()).is_some() {}
        if rest.next() != Some('=') || name.is_empty() {
            return Err(
                "the connection string is neither an address (postgresql://...) nor name=value".to_owned()
            );
        }
        while rest.next_if(|c| c.is_whitespace()).is_some() {}
        let value = value(&mut rest).ok_or_else(|| format!("the value of {name} has no closing quote"))?;
        if !value.is_empty() {
            parts.insert(common_name(&name).to_owned(), value);
        }
    }
}

fn value(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let quoted = rest.next_if_eq(&'\'').is_some();
    let mut value = String::new();
    loop {
        match rest.peek() {
            None => return (!quoted).then_some(value),
            Some('\'') if quoted => {
                rest.next();
                return Some(value);
            }
            Some(c) if !quoted && c.is_whitespace() => return Some(value),
            Some('\\') => {
                rest.next();
                value.extend(rest.next());
            }
            Some(_) => value.extend(rest.next()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match parse(text) {
            Ok(parts) => {
                parts.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
            }
            Err(error) => error,
        }
    }

    #[test]
    fn both_forms_are_read() {
        for (text, expected) in [
            (
                "postgres://app_a:s%40cret@db.example.com:5433/orders?sslmode=require",
                "database=orders host=db.example.com password=s@cret port=5433 scheme=postgres sslmode=require username=app_a",
            ),
            ("postgres://a:p@q/r@h/d\n", "database=d host=h password=p@q/r scheme=postgres username=a"),
            ("mysql://a@[::1]:3307/d", "database=d host=::1 port=3307 scheme=mysql username=a"),
            ("postgresql://h", "host=h scheme=postgresql"),
            ("postgresql://", "scheme=postgresql"),
            (
                "host=h port=5432 user=a password='it\\'s' dbname=d",
                "database=d host=h password=it's port=5432 username=a",
            ),
            ("user = a  password = ''", "username=a"),
            ("host=/run/postgresql user=a\\ b", "host=/run/postgresql username=a b"),
            ("", ""),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn errors_do_not_have_the_content() {
        for (text, expected) in [
            ("s3cret", "the connection string is neither an address (postgresql://...) nor name=value"),
            ("host=h password='s3cret", "the value of password has no closing quote"),
            ("postgres://a:s3cret@h1,h2/d", "the address names several hosts: name one"),
            ("postgres://a:s3cret%FF@h/d", "the password in the address is not UTF-8"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }
}
