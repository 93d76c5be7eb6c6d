//! Digests of the fields of a claim's spec. The status of a bound claim keeps those of the time of binding, so that edits
//! without effect can be reported, also of fields that this version does not know.

use super::key::Name;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Maps whose fields are recorded one by one: the path of the parent, the name, and both joined.
const OPEN: [(&str, &str, &str); 3] = [
    ("", "resources", "resources"),
    ("resources", "requests", "resources.requests"),
    ("", PARAMETERS, PARAMETERS),
];
/// The field with values for templates and for databases on servers.
const PARAMETERS: &str = "parameters";
/// The prefix of a record without digests.
const EDITED: &str = "edited: ";
/// The field with the name of the resource, which Conductor sets itself.
const RESOURCE_NAME: &str = "resourceName";
/// Fields beyond this number are recorded together, under their map.
const FIELDS_MAX: usize = 64;
/// The usual length of a record.
const LENGTH_USUAL: usize = 192;
/// The maximum length of a field name that is recorded by itself.
const NAME_MAX: usize = 63;

/// Digests of the fields of a spec, in one line: `class=1b2c3d4e resources.requests.storage=5f607182`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecRecord(Name);

impl SpecRecord {
    /// The record of a spec.
    pub fn of(spec: &Value) -> SpecRecord {
        let mut writer = Writer { text: String::with_capacity(LENGTH_USUAL), ..Writer::default() };
        if let Some(spec) = spec.as_object() {
            writer.record("", spec);
        }
        writer.finish()
    }

    /// Parses a record.
    pub fn read(text: &str) -> SpecRecord {
        SpecRecord(Name::from(text))
    }

    /// The record as text.
    pub fn text(&self) -> &Name {
        &self.0
    }

    /// A record of only the names of edited fields, for recordings, which keep no digests.
    pub fn edited(fields: &[String]) -> SpecRecord {
        SpecRecord(Name::from(format!("{EDITED}{}", fields.join(" "))))
    }

    /// The fields that differ between two records, in order of their names.
    pub fn fields_that_differ(&self, other: &SpecRecord) -> Vec<String> {
        if self == other {
            return Vec::new();
        }
        if let Some(edited) = other.0.strip_prefix(EDITED) {
            return edited.split_whitespace().map(str::to_owned).collect();
        }
        let (ours, theirs) = (self.fields(), other.fields());
        let ours_differ = ours.iter().filter(|(field, digest)| theirs.get(*field) != Some(*digest));
        let theirs_only = theirs.keys().filter(|field| !ours.contains_key(*field));
        let mut differ: Vec<String> =
            ours_differ.map(|(field, _)| field).chain(theirs_only).map(|field| (*field).to_owned()).collect();
        differ.sort_unstable();
        differ
    }

    /// The names of the parameters.
    pub fn parameters(&self) -> BTreeSet<&str> {
        let fields = self.fields().into_keys().filter_map(|field| field.strip_prefix("parameters."));
        fields.filter_map(|field| field.split('.').next()).collect()
    }

    /// Whether the record has a field.
    pub fn has(&self, field: &str) -> bool {
        self.fields().contains_key(field)
    }

    /// This record with the parameters of another.
    pub fn with_parameters_of(&self, other: &SpecRecord) -> SpecRecord {
        if self.0.starts_with(EDITED) {
            return self.clone();
        }
        let is_parameter = |field: &str| field.split('.').next() == Some(PARAMETERS);
        let ours = self.fields().into_iter().filter(|(field, _)| !is_parameter(field));
        let theirs = other.fields().into_iter().filter(|(field, _)| is_parameter(field));
        let fields: BTreeMap<&str, &str> = ours.chain(theirs).collect();
        let words: Vec<String> = fields.iter().map(|(field, digest)| format!("{field}={digest}")).collect();
        SpecRecord(Name::from(words.join(" ")))
    }

    fn fields(&self) -> BTreeMap<&str, &str> {
        self.0.split(' ').filter_map(|word| word.rsplit_once('=')).collect()
    }
}

/// Writes a record in one pass, because every parsed claim has one.
#[derive(Default)]
struct Writer {
    text: String,
    count: usize,
    /// Digests of the fields without an entry of their own, by their map.
    together: BTreeMap<&'static str, u32>,
}

impl Writer {
    fn record(&mut self, path: &'static str, map: &Map<String, Value>) {
        let is_ours = |name: &str| path.is_empty() && name == RESOURCE_NAME;
        for (name, value) in map.iter().filter(|(name, value)| !is_ours(name) && !is_absent(path, value)) {
            let open = OPEN.iter().find(|(within, open, _)| *within == path && open == name);
            match (value, open) {
                (Value::Object(map), Some((.., inner))) => self.record(inner, map),
                // A list of names is recorded name by name, because names can be added but not removed.
                (Value::Array(items), _) if self.takes_names(path, name, items) => {
                    for item in items.iter().filter_map(Value::as_str) {
                        self.add((path, name, item), fold(SEED, item.as_bytes()));
                    }
                }
                _ if is_plain(path, name) && self.count < FIELDS_MAX => {
                    self.add((path, name, ""), fold_value(SEED, value));
                }
                _ => {
                    let all = self.together.entry(if path.is_empty() { "others" } else { path }).or_default();
                    *all = all.wrapping_add(fold_value(fold(SEED, name.as_bytes()), value));
                }
            }
        }
    }

    fn takes_names(&self, path: &str, name: &str, items: &[Value]) -> bool {
        path == PARAMETERS
            && is_plain(path, name)
            && self.count + items.len() < FIELDS_MAX
            && items.iter().all(|item| item.as_str().is_some_and(|item| is_plain(path, item)))
    }

    fn add(&mut self, (path, name, item): (&str, &str, &str), digest: u32) {
        self.count += 1;
        let is_first = self.text.is_empty();
        self.text.reserve(path.len() + name.len() + item.len() + 12);
        self.text.push_str(if is_first { "" } else { " " });
        self.text.push_str(path);
        self.text.push_str(if path.is_empty() { "" } else { "." });
        self.text.push_str(name);
        self.text.push_str(if item.is_empty() { "" } else { "." });
        self.text.push_str(item);
        self.text.push('=');
        let hex = |shift: u32| char::from(b"0123456789abcdef"[(digest >> shift & 0xf) as usize]);
        [28, 24, 20, 16, 12, 8, 4, 0].into_iter().for_each(|shift| self.text.push(hex(shift)));
    }

    fn finish(mut self) -> SpecRecord {
        for (path, digest) in std::mem::take(&mut self.together) {
            self.add(("", path, ""), digest);
        }
        SpecRecord(Name::from(self.text))
    }
}

/// Whether a field counts as absent: an empty or default value does, except for parameters, whose templates may read it.
fn is_absent(path: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => path.is_empty() && items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(flag) => path.is_empty() && !flag,
        Value::Number(number) => path.is_empty() && number.as_i64() == Some(0),
        Value::String(_) => false,
    }
}

fn is_plain(path: &str, name: &str) -> bool {
    let also = if path == PARAMETERS { &b"-_"[..] } else { b"-_./" };
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || also.contains(&b);
    !name.is_empty() && name.len() <= NAME_MAX && name.bytes().all(is_plain)
}

/// FNV-1a: it detects edits and hides nothing.
const SEED: u32 = 0x811c_9dc5;

fn fold(digest: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(digest, |digest, byte| (digest ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Each kind of value has its own prefix and suffix, so that different values never give the same bytes.
fn fold_value(digest: u32, value: &Value) -> u32 {
    match value {
        Value::Null => fold(digest, b"n"),
        Value::Bool(flag) => fold(digest, if *flag { b"t" } else { b"f" }),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), ..) => fold(fold(digest, b"i"), &number.to_le_bytes()),
            (None, Some(number), _) => fold(fold(digest, b"u"), &number.to_le_bytes()),
            (None, None, number) => fold(fold(digest, b"d"), &number.unwrap_or_default().to_le_bytes()),
        },
        Value::String(text) => fold(fold(fold(digest, b"s"), text.as_bytes()), b"\xff"),
        Value::Array(items) => fold(items.iter().fold(fold(digest, b"["), fold_value), b"]"),
        Value::Object(fields) => {
            let field = |digest, (name, value): (&String, &Value)| {
                fold_value(fold(fold(digest, name.as_bytes()), b"\xff"), value)
            };
            fold(fields.iter().fold(fold(digest, b"{"), field), b"}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn an_edit_is_found_by_its_field() {
        let was = json!({"class": "fast", "requests": [], "priority": 0, "resources": {"requests": {"storage": "1Gi"}},
            "parameters": {"size": 1, "zone": "a", "schemas": ["one", "two"]}});
        for (edit, fields) in [
            (json!({}), vec![]),
            (json!({"requests": null, "priority": null, "selector": {}}), vec![]),
            (json!({"class": "slow"}), vec!["class"]),
            (json!({"class": null, "unheard-of": {"x": 1}}), vec!["class", "unheard-of"]),
            (json!({"resources": {"requests": {"storage": "2Gi"}}}), vec!["resources.requests.storage"]),
            (json!({"resources": {"limits": 1}}), vec!["resources.limits", "resources.requests.storage"]),
            (
                json!({"parameters": {"size": 1, "zone": "b", "x": false, "schemas": ["two", "three"]}}),
                vec!["parameters.schemas.one", "parameters.schemas.three", "parameters.x", "parameters.zone"],
            ),
            (
                json!({"parameters": {"size": 1, "zone": "a", "schemas": ["one", "two"], "a = b": 1}}),
                vec!["parameters"],
            ),
        ] {
            let mut now = was.clone();
            now.as_object_mut().unwrap().extend(edit.as_object().cloned().unwrap());
            let (was, now) = (SpecRecord::of(&was), SpecRecord::of(&now));
            assert_eq!(SpecRecord::read(now.text()).fields_that_differ(&was), fields, "{edit}");
            let followed = was.with_parameters_of(&now);
            assert!(now.fields_that_differ(&followed).iter().all(|field| !field.starts_with("parameters")));
        }
        let (was, now) = (SpecRecord::of(&was), SpecRecord::of(&json!({"resourceName": "db"})));
        assert_eq!(now, SpecRecord::default(), "our own record is no edit");
        let edited = SpecRecord::edited(&["class".to_owned(), "priority".to_owned()]);
        assert_eq!(was.fields_that_differ(&SpecRecord::read(edited.text())), ["class", "priority"]);
        let names = was;
        assert_eq!(names.parameters().into_iter().collect::<Vec<_>>(), ["schemas", "size", "zone"]);
    }

    proptest! {
        #[test]
        fn no_name_of_a_parameter_is_taken_for_another_field(names in proptest::collection::btree_set(".{0,8}", 0..80)) {
            let parameters: Map<String, Value> = names.into_iter().map(|name| (name, json!("x"))).collect();
            let spec = |parameters: Map<String, Value>| SpecRecord::of(&json!({"class": "a", "parameters": parameters}));
            let differ = spec(parameters).fields_that_differ(&spec(Map::new()));
            prop_assert!(differ.iter().all(|field| field.starts_with("parameters")), "{:?}", differ);
        }
    }
}
