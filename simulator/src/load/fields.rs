//! Which fields there are: the schemas of our own definitions, reduced to names and read once. A field that none of
//! them names means nothing to the engine, and its author meant something by it.
//! Not here: types, limits and rules. Whether a value makes sense is the engine's business, and on a cluster the API's.

use conductor::model::Kind;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

/// What every object has, whatever its schema says of itself.
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

/// A field that no schema names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnknownField {
    /// The way to it, such as `spec.engin`.
    pub path: String,
    /// The way to the field that was most likely meant, where one is called nearly so.
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

/// The fields of an object that no schema names, as far as there is one for its kind.
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

/// What may stand at one place.
#[derive(Clone, Debug, Default)]
struct Node {
    /// By name, in order: they are looked up by halving, a hundred thousand objects at a time.
    fields: Vec<(String, Node)>,
    items: Option<Box<Node>>,
    /// The values of a map, whose names anybody may choose.
    values: Option<Box<Node>>,
    /// Whether fields that are not named here are fields too.
    open: bool,
}

/// The way to a place, from its end: it is written out only where something is found.
struct Way<'a> {
    before: Option<&'a Way<'a>>,
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
        // A mapping where a text belongs is told by whoever reads the text.
        let is_mapping = schema.get("type").is_some_and(|ty| ty == "object") || !fields.is_empty();
        let open = !is_mapping || is("x-kubernetes-preserve-unknown-fields") || is("additionalProperties");
        let node = Node { fields, items: below("items"), values: below("additionalProperties"), open };
        if is("x-kubernetes-embedded-resource") { node.whole() } else { node }
    }

    /// The same as a whole object, with what every object has.
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

    fn walk(&self, value: &Value, way: &Way<'_>, found: &mut Vec<UnknownField>) {
        match value {
            Value::Object(fields) => self.walk_mapping(fields, Some(way), found),
            Value::Array(items) => {
                let Some(node) = &self.items else { return };
                for (at, item) in items.iter().enumerate() {
                    node.walk(item, &Way { before: Some(way), step: Step::Item(at) }, found);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn walk_mapping(
        &self,
        fields: &Map<String, Value>,
        before: Option<&Way<'_>>,
        found: &mut Vec<UnknownField>,
    ) {
        for (name, value) in fields {
            let way = Way { before, step: Step::Field(name) };
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

    fn unknown(&self, name: &str, way: &Way<'_>) -> UnknownField {
        let known = self.fields.iter().map(|(known, _)| known.as_str());
        let meant = find_meant(name, known);
        let meant = meant.map(|meant| Way { before: way.before, step: Step::Field(meant) }.to_string());
        UnknownField { path: way.to_string(), meant }
    }
}

impl fmt::Display for Way<'_> {
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

/// The name that is so near that it was most likely meant.
fn find_meant<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |name: &str| -> Vec<char> {
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let name = plain(name);
    // A slip in a short word makes another word.
    let most = if name.len() < 5 { 1 } else { 2 };
    let near = known.map(|known| (slips(&name, &plain(known)), known)).filter(|(slips, _)| *slips <= most);
    near.min().map(|(_, known)| known)
}

/// How many letters were left out, put in, mistaken or swapped with their neighbour.
fn slips(a: &[char], b: &[char]) -> usize {
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            if i == 0 || j == 0 {
                rows[i][j] = i + j;
                continue;
            }
            let mistaken = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = mistaken.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor::model::TypeId;
    use serde_json::json;

    const CLAIM: Kind = Kind::Claim(TypeId::RELATIONAL_DATABASE);
    const RESOURCE: Kind = Kind::Resource(TypeId::RELATIONAL_DATABASE);
    const CLASS: Kind = Kind::Class(TypeId::RELATIONAL_DATABASE);

    fn told(kind: Kind, object: &Value) -> Vec<String> {
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
            assert_eq!(told(kind, &object), [expected], "{object}");
        }
    }

    #[test]
    fn what_anybody_may_name_is_known() {
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
            (RESOURCE, json!({"spec": {"engine": {"a": "mapping is told by whoever reads it"}}})),
            (CLASS, json!({"template": {"spec": {"any": 1}}, "spec": {"engine": "mysql"}})),
            (Kind::Namespace, json!({"spec": {"finalizers": []}, "status": {"phase": "Active"}})),
        ] {
            let mut object = whole.clone();
            object.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
            assert_eq!(told(kind, &object), [""; 0], "{object}");
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
            assert!(!told(kind, &json!({"metadata": {"nam": "x"}})).is_empty(), "{kind:?}");
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
