//! Detects unknown fields, by the field names in our own CRD schemas. The engine ignores such a field, but its author
//! meant something by it. Not here: types, limits and rules of values, which the engine or the API checks.

use conductor::model::Kind;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

/// Fields of every object, which schemas leave out.
const OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

const METADATA: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// A field that is in no schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnknownField {
    /// Its path, such as `spec.engin`.
    pub path: String,
    /// The path of the most similar known field, if one is similar enough.
    pub meant: Option<String>,
}

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownField { path, meant } = self;
        match meant {
            Some(meant) => write!(f, "{path}: no such field; {meant}?"),
            None => write!(f, "{path}: no such field"),
        }
    }
}

/// Returns the fields of an object that are not in its kind's schema.
pub fn unknown_fields(kind: Kind, object: &Map<String, Value>) -> Vec<UnknownField> {
    let mut found = Vec::new();
    if let Some(node) = KINDS.get(&kind) {
        node.walk_mapping(object, None, &mut found);
    }
    found
}

static KINDS: LazyLock<BTreeMap<Kind, Node>> = LazyLock::new(|| {
    let mut kinds = BTreeMap::from([(Kind::Namespace, Node::open().whole())]);
    for crd in conductor::api::crds() {
        for version in &crd.spec.versions {
            let api_version = format!("{}/{}", crd.spec.group, version.name);
            let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
            if let (Some(kind), Some(schema)) = (Kind::find(&api_version, &crd.spec.names.kind), schema) {
                let schema = serde_json::to_value(schema).unwrap_or_default();
                kinds.insert(kind, Node::read(&schema).whole());
            }
        }
    }
    kinds
});

/// The fields allowed at one place.
#[derive(Clone, Debug, Default)]
struct Node {
    /// Sorted by name for binary search: there may be a hundred thousand objects to check.
    fields: Vec<(String, Node)>,
    items: Option<Box<Node>>,
    /// The values of a map with arbitrary keys.
    values: Option<Box<Node>>,
    /// Whether any other field is allowed.
    open: bool,
}

/// The path to a place, linked from its end: it is formatted only for unknown fields.
struct Path<'a> {
    before: Option<&'a Path<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Field(&'a str),
    Item(usize),
}

impl Node {
    fn open() -> Node {
        Node { open: true, ..Node::default() }
    }

    fn read(schema: &Value) -> Node {
        let is = |name: &str| schema.get(name) == Some(&Value::Bool(true));
        let below = |name: &str| schema.get(name).filter(|s| s.is_object()).map(|s| Box::new(Node::read(s)));
        let named = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let mut fields: Vec<(String, Node)> = named.map(|(name, s)| (name.clone(), Node::read(s))).collect();
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        // The reader of the value reports a mapping where text belongs.
        let is_mapping = schema.get("type").is_some_and(|ty| ty == "object") || !fields.is_empty();
        let open = !is_mapping || is("x-kubernetes-preserve-unknown-fields") || is("additionalProperties");
        let node = Node { fields, items: below("items"), values: below("additionalProperties"), open };
        if is("x-kubernetes-embedded-resource") { node.whole() } else { node }
    }

    /// The same node as a whole object, with `apiVersion`, `kind` and `metadata`.
    fn whole(mut self) -> Node {
        self.fields.retain(|(name, _)| !OBJECT.contains(&name.as_str()));
        let metadata = METADATA.iter().map(|name| ((*name).to_owned(), Node::open())).collect();
        let metadata = Node { fields: metadata, ..Node::default() };
        self.fields.extend(
            OBJECT
                .iter()
                .zip([Node::open(), Node::open(), metadata])
                .map(|(name, node)| ((*name).to_owned(), node)),
        );
        self.fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        self
    }

    fn walk(&self, value: &Value, way: &Path<'_>, found: &mut Vec<UnknownField>) {
        match value {
            Value::Object(fields) => self.walk_mapping(fields, Some(way), found),
            Value::Array(items) => {
                let Some(node) = &self.items else { return };
                for (at, item) in items.iter().enumerate() {
                    node.walk(item, &Path { before: Some(way), step: Step::Item(at) }, found);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn walk_mapping(
        &self,
        fields: &Map<String, Value>,
        before: Option<&Path<'_>>,
        found: &mut Vec<UnknownField>,
    ) {
        for (name, value) in fields {
            let way = Path { before, step: Step::Field(name) };
            match self.fields.binary_search_by(|(known, _)| known.as_str().cmp(name)) {
                Ok(at) => self.fields[at].1.walk(value, &way, found),
                Err(_) if self.open => {}
                Err(_) => match &self.values {
                    Some(node) => node.walk(value, &way, found),
                    None => found.push(self.unknown(name, &way)),
                },
            }
        }
    }

    fn unknown(&self, name: &str, way: &Path<'_>) -> UnknownField {
        let known = self.fields.iter().map(|(known, _)| known.as_str());
        let meant = find_meant(name, known);
        let meant = meant.map(|meant| Path { before: way.before, step: Step::Field(meant) }.to_string());
        UnknownField { path: way.to_string(), meant }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(before) = self.before {
            before.fmt(f)?;
        }
        match (&self.step, self.before) {
            (Step::Item(at), _) => write!(f, "[{at}]"),
            (Step::Field(name), None) => f.write_str(name),
            (Step::Field(name), Some(_)) => write!(f, ".{name}"),
        }
    }
}

/// The most similar known name, if one or two typing errors away.
fn find_meant<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |name: &str| -> String {
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let name = plain(name);
    // A typing error in a short name may give another name.
    let most = if name.chars().count() < 5 { 1 } else { 2 };
    let near = known.map(|known| (strsim::osa_distance(&name, &plain(known)), known));
    near.filter(|(slips, _)| *slips <= most).min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor::model::TypeId;
    use serde_json::json;

    const CLAIM: Kind = Kind::Claim(TypeId::RELATIONAL_DATABASE);
    const RESOURCE: Kind = Kind::Resource(TypeId::RELATIONAL_DATABASE);
    const CLASS: Kind = Kind::Class(TypeId::RELATIONAL_DATABASE);

    fn unknown(kind: Kind, object: &Value) -> Vec<String> {
        unknown_fields(kind, object.as_object().unwrap()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn misspelt_fields_are_found_with_the_one_that_was_meant() {
        for (kind, object, expected) in [
            (CLAIM, json!({"spec": {"engin": "mysql"}}), "spec.engin: no such field; spec.engine?"),
            (CLAIM, json!({"spec": {"vresion": "16"}}), "spec.vresion: no such field; spec.version?"),
            (
                CLAIM,
                json!({"spec": {"highlyAvailable": true}}),
                "spec.highlyAvailable: no such field; spec.highly-available?",
            ),
            (CLAIM, json!({"sepc": {}}), "sepc: no such field; spec?"),
            (CLAIM, json!({"metadata": {"lables": {}}}), "metadata.lables: no such field; metadata.labels?"),
            (CLAIM, json!({"spec": {"colour": null}}), "spec.colour: no such field"),
            (
                Kind::Quota,
                json!({"spec": {"limits": [{"claims": 1}, {"request": {"storage": "1Gi"}}]}}),
                "spec.limits[1].request: no such field; spec.limits[1].requests?",
            ),
            (
                Kind::Profile,
                json!({"spec": {"preferNewst": true}}),
                "spec.preferNewst: no such field; spec.preferNewest?",
            ),
            (CLASS, json!({"reclaimpolicy": "Retain"}), "reclaimpolicy: no such field; reclaimPolicy?"),
            (
                Kind::Namespace,
                json!({"metadata": {"label": {}}}),
                "metadata.label: no such field; metadata.labels?",
            ),
        ] {
            assert_eq!(unknown(kind, &object), [expected], "{object}");
        }
    }

    #[test]
    fn arbitrary_keys_are_known() {
        let whole = json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"labels": {"a.b/c": "d"}, "annotations": {"e": "f"}}});
        for (kind, body) in [
            (
                CLAIM,
                json!({"spec": {"parameters": {"any": {"thing": 1}}, "version": 5.6, "resources": {"requests": {"iops": 1}}}}),
            ),
            (
                CLAIM,
                json!({"spec": {"selector": {"matchLabels": {"x": "y"}}}, "status": {"binding": {"name": "x"}}}),
            ),
            (
                RESOURCE,
                json!({"spec": {"template": {"apiVersion": "v1", "kind": "X", "spec": {"any": 1}}, "capacity": {"iops": 1}}}),
            ),
            (RESOURCE, json!({"spec": {"engine": {"a": "the reader of the value reports a mapping"}}})),
            (CLASS, json!({"template": {"spec": {"any": 1}}, "spec": {"engine": "mysql"}})),
            (Kind::Namespace, json!({"spec": {"finalizers": []}, "status": {"phase": "Active"}})),
        ] {
            let mut object = whole.clone();
            object.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
            assert_eq!(unknown(kind, &object), [""; 0], "{object}");
        }
    }

    #[test]
    fn every_kind_has_its_fields() {
        let kinds = [
            CLAIM,
            RESOURCE,
            CLASS,
            Kind::Quota,
            Kind::ClusterQuota,
            Kind::Limits,
            Kind::Profile,
            Kind::Namespace,
        ];
        for kind in kinds {
            assert!(!unknown(kind, &json!({"metadata": {"nam": "x"}})).is_empty(), "{kind:?}");
        }
    }

    #[test]
    fn an_object_within_an_object_has_metadata_too() {
        let node = Node::read(
            &json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}}),
        );
        let mut found = Vec::new();
        let object =
            json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "nam": 1}, "spec": {"a": 1}});
        node.walk_mapping(object.as_object().unwrap(), None, &mut found);
        let paths: Vec<&str> = found.iter().map(|field| field.path.as_str()).collect();
        assert_eq!(paths, ["metadata.nam", "spec.a"]);
    }
}
