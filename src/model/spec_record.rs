//! A record of what a claim's spec said, field by field, in digests. The status of a bound claim keeps the one of the
//! moment of binding, so that an edit that has no effect can be reported, whichever field it is of. Every field is in it,
//! also one that this version does not know; what an edit of a field means is decided elsewhere.

use super::key::Name;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Maps whose fields are recorded one by one.
const OPEN: [&str; 3] = ["resources", "resources.requests", "parameters"];
/// The field of what a claim hands to templates and to databases on servers.
const PARAMETERS: &str = "parameters";
/// How a record begins that has no digests.
const EDITED: &str = "edited: ";
/// The controller's own record of the resource, which follows the binding.
const RESOURCE_NAME: &str = "resourceName";
/// More fields than this are recorded together, under the map that they are in.
const FIELDS_MAX: usize = 64;
/// The longest name of a field that is recorded by itself.
const NAME_MAX: usize = 63;

/// Digests of the fields of a spec, in one line: `class=1b2c3d4e resources.requests.storage=5f607182`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecRecord(Name);

impl SpecRecord {
    /// The record of a spec.
    pub fn of(spec: &Value) -> SpecRecord {
        let mut fields = BTreeMap::new();
        if let Some(spec) = spec.as_object() {
            record("", spec, &mut fields);
        }
        SpecRecord::write(&fields)
    }

    /// A record as it was written.
    pub fn read(text: &str) -> SpecRecord {
        SpecRecord(Name::from(text))
    }

    /// As it is written.
    pub fn text(&self) -> &Name {
        &self.0
    }

    /// A record that says of a spec only which of its fields were edited since: recordings keep no digests.
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

    /// Whether a field is in it.
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

    fn write(fields: &BTreeMap<String, u32>) -> SpecRecord {
        let words: Vec<String> =
            fields.iter().map(|(field, digest)| format!("{field}={digest:08x}")).collect();
        SpecRecord(Name::from(words.join(" ")))
    }
}

fn record(path: &str, map: &Map<String, Value>, fields: &mut BTreeMap<String, u32>) {
    let is_ours = |name: &str| path.is_empty() && name == RESOURCE_NAME;
    for (name, value) in map.iter().filter(|(name, value)| !is_ours(name) && !is_absent(path, value)) {
        let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match value {
            Value::Object(map) if OPEN.contains(&inner.as_str()) => record(&inner, map, fields),
            // A list of names is recorded name by name: one may be added where another cannot be taken off.
            Value::Array(items)
                if path == PARAMETERS
                    && is_plain(path, name)
                    && fields.len() + items.len() < FIELDS_MAX
                    && items.iter().all(|item| item.as_str().is_some_and(|item| is_plain(path, item))) =>
            {
                let names = items.iter().filter_map(Value::as_str);
                fields.extend(names.map(|item| (format!("{inner}.{item}"), digest(item))));
            }
            _ if is_plain(path, name) && fields.len() < FIELDS_MAX => {
                fields.insert(inner, digest(&value.to_string()));
            }
            _ => {
                let together = if path.is_empty() { "others" } else { path };
                let digests = fields.entry(together.to_owned()).or_default();
                *digests = digests.wrapping_add(digest(&format!("{inner}={value}")));
            }
        }
    }
}

/// A field that says nothing is as one that does not exist. What a parameter's `false` means is its template's business.
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
    let also = if path == PARAMETERS { "-_" } else { "-_./" };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || also.contains(c);
    !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(is_plain)
}

/// FNV-1a: it tells an edit from none, and hides nothing.
fn digest(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |digest, byte| (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193))
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
