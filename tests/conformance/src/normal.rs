//! Answers without what differs between any two servers: times, ids, revisions, addresses, generated names, pages'
//! marks, the messages of parsers, how often a bookmark is repeated. Ids and revisions become numbers in the order of
//! their first appearance, so that an id that should have stayed the same, or a revision that should have moved, is
//! still seen. What `docs/embedded-api.md` lists as different is removed here too, and nowhere else.

use crate::run::Answer;
use regex::Regex;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

static UID: LazyLock<Regex> =
    LazyLock::new(|| pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static AGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d+[smhd])+$"));
static TIME: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"));
static SUFFIX: LazyLock<Regex> = LazyLock::new(|| pattern("^[bcdfghjklmnpqrstvwxz2456789]{5}$"));

/// Parts of messages that are a server's own, and what they become.
static OWN_WORDS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let patterns = [
        (r"(too (?:old|large) resource version: )\d+ ?(?:\(\d+\)|, current: \d+)", "${1}<revision>"),
        (r"([Rr]esource ?[Vv]ersion[^:]*: )\d+", "${1}<revision>"),
        (r"(ResourceVersion in (?:the precondition|record) )\(\d+\)", "${1}(<revision>)"),
        // How a parser of JSON complains is the parser's.
        (r"(json parse error|error decoding patch|continue key is not valid): .*", "$1: <why>"),
        // Protocol buffers are read and not written: only the real server offers to answer in them.
        (", application/vnd.kubernetes.protobuf(;stream=watch)?", ""),
    ];
    patterns.map(|(text, mark)| (pattern(text), mark)).into()
});

/// Fields that hold a time of the server's.
const TIMES: [&str; 8] = [
    "creationTimestamp",
    "deletionTimestamp",
    "time",
    "lastTransitionTime",
    "lastUpdateTime",
    "startTime",
    "firstTimestamp",
    "lastTimestamp",
];

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the patterns are ours")
}

/// What was seen of one side, over one check.
#[derive(Debug, Default)]
pub struct Normaliser {
    uids: BTreeMap<String, usize>,
    revisions: BTreeMap<String, usize>,
}

impl Normaliser {
    /// An answer that can be compared with another side's.
    pub fn normalise(&mut self, answer: &Answer) -> Value {
        json!({
            "status": answer.status,
            "mediaType": answer.media_type,
            "warnings": answer.warnings,
            "body": self.value("", &answer.body),
        })
    }

    fn value(&mut self, key: &str, value: &Value) -> Value {
        match value {
            Value::Object(fields) => self.object(fields),
            Value::Array(items) => {
                let kept = items.iter().enumerate().filter(|(at, item)| !is_repeated(items, *at, item));
                kept.map(|(_, item)| self.value(key, item)).collect()
            }
            Value::String(text) => Value::from(self.text(key, text)),
            other => other.clone(),
        }
    }

    fn object(&mut self, fields: &Map<String, Value>) -> Value {
        let is_list = fields.contains_key("items") || fields.contains_key("rows");
        let is_bookmark = fields.get("type").is_some_and(|kind| kind == "BOOKMARK");
        let mut normal = Map::new();
        // Columns of a Table are described in prose; what they are called and hold is compared.
        let is_column = fields.contains_key("priority") && fields.contains_key("format");
        for (key, value) in fields.iter().filter(|(key, _)| !is_column || *key != "description") {
            let fresh = match (key.as_str(), value) {
                ("metadata", Value::Object(metadata)) if is_list => self.list_metadata(metadata),
                ("object", object) if is_bookmark => self.bookmark(object),
                ("name", Value::String(name)) => match generated(fields, name) {
                    Some(name) => Value::from(name),
                    None => self.value(key, value),
                },
                _ => self.value(key, value),
            };
            // Keys of managed fields may hold ids too.
            normal.insert(self.text("", key), fresh);
        }
        sort_causes(&mut normal);
        // Managers of one second come in any order.
        if let Some(managers) = normal.get_mut("managedFields").and_then(Value::as_array_mut) {
            managers.sort_by_key(|entry| (entry["manager"].to_string(), entry.to_string()));
        }
        Value::Object(normal)
    }

    /// A list's revision is the whole store's: other checks move it.
    fn list_metadata(&mut self, metadata: &Map<String, Value>) -> Value {
        let hide = |key: &str| matches!(key, "resourceVersion" | "continue");
        let kept = metadata.iter().map(|(key, value)| match value {
            Value::String(text) if hide(key) && !text.is_empty() => (key.clone(), json!(format!("<{key}>"))),
            other => (key.clone(), other.clone()),
        });
        Value::Object(kept.collect())
    }

    fn bookmark(&mut self, object: &Value) -> Value {
        let mut object = object.clone();
        if let Some(revision) = object.pointer_mut("/metadata/resourceVersion") {
            *revision = json!("<revision>");
        }
        self.value("object", &object)
    }

    fn text(&mut self, key: &str, text: &str) -> String {
        // Some kinds show the time of their making in their table, to the second: two servers seldom share it.
        if TIMES.contains(&key) || key == "cells" && TIME.is_match(text) {
            return text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        }
        if key == "resourceVersion" && !text.is_empty() && text != "0" && !text.starts_with('<') {
            let next = self.revisions.len() + 1;
            return format!("<revision {}>", self.revisions.entry(text.to_owned()).or_insert(next));
        }
        if key == "cells" && AGE.is_match(text) {
            return "<age>".to_owned();
        }
        if matches!(key, "clusterIP" | "clusterIPs") && text != "None" && !text.is_empty() {
            return "<address>".to_owned();
        }
        let text = OWN_WORDS
            .iter()
            .fold(text.to_owned(), |text, (pattern, mark)| pattern.replace_all(&text, *mark).into_owned());
        let numbered = UID.replace_all(&text, |found: &regex::Captures<'_>| {
            let next = self.uids.len() + 1;
            format!("<uid {}>", self.uids.entry(found[0].to_owned()).or_insert(next))
        });
        numbered.into_owned()
    }
}

/// Several causes come in the order of a hash map, and the message is all of them in that order.
fn sort_causes(status: &mut Map<String, Value>) {
    let causes = status.get_mut("details").and_then(|details| details.get_mut("causes")?.as_array_mut());
    if let Some(causes) = causes.filter(|causes| causes.len() > 1) {
        causes.sort_by_key(Value::to_string);
        status.insert("message".to_owned(), json!("<the causes>"));
    }
}

/// A bookmark that follows another: how often they come is the server's choice.
fn is_repeated(items: &[Value], at: usize, item: &Value) -> bool {
    let is_bookmark = |event: &Value| event["type"] == "BOOKMARK";
    let is_plain = item["object"]["metadata"]["annotations"].is_null();
    at > 0 && is_bookmark(item) && is_plain && is_bookmark(&items[at - 1])
}

/// A name that the server made up.
fn generated(metadata: &Map<String, Value>, name: &str) -> Option<String> {
    let prefix = metadata.get("generateName")?.as_str()?;
    let suffix = name.strip_prefix(prefix)?;
    SUFFIX.is_match(suffix).then(|| format!("{prefix}<suffix>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_changes_and_a_revision_that_stays_are_still_seen() {
        let object = |uid: u8, revision: &str| {
            json!({"metadata": {
                "uid": format!("4f0d6c1e-0000-4000-8000-00000000000{uid}"), "resourceVersion": revision,
                "creationTimestamp": "2026-01-02T03:04:05Z",
            }})
        };
        let mut normaliser = Normaliser::default();
        let mut normal = |value: Value| normaliser.value("", &value)["metadata"].clone();
        assert_eq!(normal(object(1, "7"))["uid"], "<uid 1>");
        let second = normal(object(2, "7"));
        assert_eq!((&second["uid"], &second["resourceVersion"]), (&json!("<uid 2>"), &json!("<revision 1>")));
        assert_eq!(second["creationTimestamp"], "0000-00-00T00:00:00Z");
        assert_eq!(normal(object(1, "9"))["resourceVersion"], "<revision 2>");
    }

    #[test]
    fn a_time_in_a_table_is_hidden_and_what_stands_beside_it_is_not() {
        let row = |time: &str, name: &str| json!({"cells": [name, time]});
        let normal = |row: Value| Normaliser::default().value("", &row);
        let (one, other) = ("2026-11-17T21:46:29Z", "2026-11-17T21:46:30Z");
        assert_eq!(normal(row(one, "gears")), normal(row(other, "gears")));
        assert_ne!(normal(row(one, "gears")), normal(row(one, "widgets")));
        assert_ne!(normal(row(one, "gears")), normal(row("<unknown>", "gears")));
    }

    #[test]
    fn only_repeated_plain_bookmarks_go() {
        let mark = |annotations: Value| json!({"type": "BOOKMARK", "object": {"metadata": {"annotations": annotations}}});
        let stream =
            json!([mark(json!({"a": "b"})), mark(Value::Null), mark(Value::Null), {"type": "ADDED"}]);
        let kept = Normaliser::default().value("", &stream);
        assert_eq!(kept.as_array().map(Vec::len), Some(2), "{kept}");
    }
}
