//! Objects without what differs from run to run: UIDs replaced by their owners, no revisions, no times, no name of the
//! trial. The rest is compared as text.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Fields with times and counts.
const FLEETING: [&str; 11] = [
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "lastTransitionTime",
    "generation",
    "selfLink",
    "renewTime",
    "acquireTime",
    // Digests of texts with UIDs or the trial's name in them.
    "conductor.io/content-hash",
    "conductor.io/rendered",
    "conductor.io/made-from",
];

/// The objects of one trial as lines by kind and name, equal for equal ends.
pub fn normalise<'a>(
    objects: impl Iterator<Item = &'a Value> + Clone,
    trial: &str,
) -> BTreeMap<String, String> {
    let uids: BTreeMap<&str, String> = objects.clone().filter_map(uid_and_owner).collect();
    let known = |uid: &str| uids.get(uid).cloned().unwrap_or_else(|| "<gone>".to_owned());
    let clean = |text: String| {
        without_digests(&without_cut_uids(&replace_uids(&text, known))).replace(trial, "TRIAL")
    };
    let line = |object: &Value| {
        let meta = &object["metadata"];
        let name = format!("{} {}/{}", word(&object["kind"]), word(&meta["namespace"]), word(&meta["name"]));
        (clean(name), clean(without_fleeting(object).to_string()))
    };
    objects.map(line).collect()
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// An object that was created for another gets that one's name: its own has a UID in it.
fn uid_and_owner(object: &Value) -> Option<(&str, String)> {
    let meta = &object["metadata"];
    let kind = word(&object["kind"]).replace("RelationalDatabase", "");
    let name = without_made_names(word(&meta["name"]), "made");
    Some((meta["uid"].as_str()?, format!("<{kind}:{name}>")))
}

fn without_fleeting(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (name, value) in fields {
                match name.as_str() {
                    name if FLEETING.contains(&name) => {}
                    // The deletion matters, its time does not.
                    "deletionTimestamp" => drop(kept.insert(name.clone(), Value::from(true))),
                    "observedGeneration" => {}
                    _ => drop(kept.insert(name.clone(), without_fleeting(value))),
                }
            }
            Value::Object(kept)
        }
        Value::Array(items) => Value::Array(items.iter().map(without_fleeting).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The text with every UID in it replaced.
pub fn replace_uids(text: &str, with: impl Fn(&str) -> String) -> String {
    const LENGTH: usize = 36;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        match rest.get(..LENGTH).filter(|word| is_uid(word)) {
            Some(uid) => {
                out.push_str(&with(uid));
                rest = &rest[LENGTH..];
            }
            None => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

/// A name without what derives from a UID, which is called `uid` instead.
pub fn without_made_names(name: &str, uid: &str) -> String {
    without_digests(&without_cut_uids(&replace_uids(name, |_| uid.to_owned())))
}

/// The text with every UID that was cut off on its last stretch replaced: names of parts have no room for a whole one.
fn without_cut_uids(text: &str) -> String {
    const HEAD: usize = 24;
    let is_head = |word: &&str| {
        word.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if rest.get(..HEAD).filter(is_head).is_some() {
            out.push_str("CUT");
            rest = rest[HEAD..].trim_start_matches(|c: char| c.is_ascii_hexdigit());
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

/// The text with every `-` and twelve hexadecimal digits after it, as at the end of a part's name, replaced.
pub fn without_digests(text: &str) -> String {
    let mut words = text.split('-');
    let mut out = words.next().unwrap_or_default().to_owned();
    for word in words {
        let digits = word.bytes().take_while(u8::is_ascii_hexdigit).count();
        out.push('-');
        out.push_str(if digits == 12 { "DIGEST" } else { &word[..digits] });
        out.push_str(&word[digits..]);
    }
    out
}

fn is_uid(word: &str) -> bool {
    word.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// The differences between two ends.
pub fn difference(wanted: &BTreeMap<String, String>, found: &BTreeMap<String, String>) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, text) in wanted {
        match found.get(name) {
            None => lines.push(format!("{name} is missing")),
            Some(other) if other != text => {
                lines.push(format!("{name}\n  wanted {text}\n  found  {other}"));
            }
            Some(_) => {}
        }
    }
    lines.extend(
        found.keys().filter(|name| !wanted.contains_key(*name)).map(|name| format!("{name} is left over")),
    );
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_ends_read_alike_and_others_do_not() {
        let end = |trial: &str, uid: &str, phase: &str| {
            let objects = [
                json!({"kind": "RelationalDatabaseClaim", "metadata": {"name": "app", "namespace": trial,
                    "uid": uid, "resourceVersion": uid}, "status": {"phase": phase}}),
                json!({"kind": "RelationalDatabase", "metadata": {"name": format!("rdb-{uid}"),
                    "namespace": format!("{trial}-system"), "creationTimestamp": uid},
                    "spec": {"claimRefs": [{"uid": uid}, {"uid": "3e8b1c52-7a0f-4a53-9d0c-1f2e3d4c5b6a"}]}}),
            ];
            normalise(objects.iter(), trial)
        };
        let one = end("t1", "11111111-1111-1111-1111-111111111111", "Bound");
        let two = end("t2", "22222222-2222-2222-2222-222222222222", "Bound");
        assert_eq!(one, two);
        assert_eq!(
            without_digests("db-1-0123456789ab, db-2-0123456789abc"),
            "db-1-DIGEST, db-2-0123456789abc"
        );
        assert_eq!(
            without_made_names("rdb-8e5247db-1cd7-4631-b791-443295-server-0123456789ab", "UID"),
            "rdb-CUT-server-DIGEST"
        );
        assert_eq!(
            without_made_names("rdb-3e8b1c52-7a0f-4a53-9d0c-1f2e3d4c5b6a-0123456789ab", "UID"),
            "rdb-UID-DIGEST"
        );
        assert!(one.values().any(|text| text.contains("<Claim:app>") && text.contains("<gone>")), "{one:?}");
        let other = end("t3", "22222222-2222-2222-2222-222222222222", "Lost");
        assert_eq!(difference(&one, &other).len(), 1);
    }
}
