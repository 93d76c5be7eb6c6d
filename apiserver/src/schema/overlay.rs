//! What the published schemas of the common kinds say about lists and maps, and the generated types leave out:
//! how items are told apart when objects are applied, and how strategic merge patches merge them.

use serde_json::{Map, Value};

/// Whether an object is one value, how a list's items are told apart, by which keys; how a patch merges them.
struct Fact {
    place: (&'static str, &'static str),
    list: &'static str,
    keys: &'static [&'static str],
    patch_key: &'static str,
    strategy: &'static str,
}

const fn map(
    kind: &'static str,
    field: &'static str,
    keys: &'static [&'static str],
    strategy: &'static str,
) -> Fact {
    Fact { place: (kind, field), list: "map", keys, patch_key: keys[0], strategy }
}

const fn set(kind: &'static str, field: &'static str, strategy: &'static str) -> Fact {
    Fact { place: (kind, field), list: "set", keys: &[], patch_key: "", strategy }
}

/// By the last part of the type's name.
const FACTS: &[Fact] = &[
    Fact {
        place: ("DeploymentSpec", "strategy"),
        list: "",
        keys: &[],
        patch_key: "",
        strategy: "retainKeys",
    },
    map("DeploymentStatus", "conditions", &["type"], "merge"),
    map("Container", "env", &["name"], "merge"),
    map("Container", "ports", &["containerPort", "protocol"], "merge"),
    map("Container", "volumeDevices", &["devicePath"], "merge"),
    map("Container", "volumeMounts", &["mountPath"], "merge"),
    set("ContainerRestartRuleOnExitCodes", "values", ""),
    map("ContainerStatus", "allocatedResourcesStatus", &["name"], "merge"),
    map("ContainerStatus", "volumeMounts", &["mountPath"], "merge"),
    map("EphemeralContainer", "env", &["name"], "merge"),
    map("EphemeralContainer", "ports", &["containerPort", "protocol"], "merge"),
    map("EphemeralContainer", "volumeDevices", &["devicePath"], "merge"),
    map("EphemeralContainer", "volumeMounts", &["mountPath"], "merge"),
    map("NamespaceStatus", "conditions", &["type"], "merge"),
    set("NodeAllocatableResourceClaimStatus", "containers", ""),
    map("PodSpec", "containers", &["name"], "merge"),
    map("PodSpec", "ephemeralContainers", &["name"], "merge"),
    map("PodSpec", "hostAliases", &["ip"], "merge"),
    map("PodSpec", "imagePullSecrets", &["name"], "merge"),
    map("PodSpec", "initContainers", &["name"], "merge"),
    map("PodSpec", "resourceClaims", &["name"], "merge,retainKeys"),
    map("PodSpec", "schedulingGates", &["name"], "merge"),
    map("PodSpec", "topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"], "merge"),
    map("PodSpec", "volumes", &["name"], "merge,retainKeys"),
    map("PodStatus", "conditions", &["type"], "merge"),
    Fact { place: ("PodStatus", "hostIPs"), list: "atomic", keys: &[], patch_key: "ip", strategy: "merge" },
    map("PodStatus", "podIPs", &["ip"], "merge"),
    map("PodStatus", "resourceClaimStatuses", &["name"], "merge,retainKeys"),
    map("ResourceRequirements", "claims", &["name"], ""),
    map("ResourceStatus", "resources", &["resourceID"], ""),
    map("ServiceAccount", "secrets", &["name"], "merge"),
    map("ServiceSpec", "ports", &["port", "protocol"], "merge"),
    map("ServiceStatus", "conditions", &["type"], "merge"),
    set("Endpoint", "addresses", ""),
    map("CustomResourceDefinitionStatus", "conditions", &["type"], ""),
    set("ObjectMeta", "finalizers", "merge"),
    map("ObjectMeta", "ownerReferences", &["uid"], "merge"),
];

/// Types whose values are replaced as a whole.
const ATOMIC: &[&str] = &[
    "ConfigMapKeySelector",
    "FileKeySelector",
    "LocalObjectReference",
    "NodeSelector",
    "NodeSelectorTerm",
    "ObjectFieldSelector",
    "ObjectReference",
    "ResourceFieldSelector",
    "SecretKeySelector",
    "TypedLocalObjectReference",
    "EndpointPort",
    "LabelSelector",
    "OwnerReference",
];

/// Maps that are replaced as a whole.
const ATOMIC_FIELDS: &[(&str, &str)] = &[("PodSpec", "nodeSelector"), ("ServiceSpec", "selector")];

/// Defaults that take part in telling items apart.
const DEFAULTS: &[(&str, &str, &str)] =
    &[("ContainerPort", "protocol", "TCP"), ("ServicePort", "protocol", "TCP")];

/// Adds what is known about a type.
pub(super) fn about_type(kind: &str, schema: &mut Map<String, Value>) {
    if ATOMIC.contains(&kind) {
        schema.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
    }
}

/// Adds what is known about a field of a type.
pub(super) fn about_field(kind: &str, field: &str, schema: &mut Map<String, Value>) {
    let mut put = |name: &str, value: Value| {
        schema.insert(name.to_owned(), value);
    };
    if let Some(fact) = FACTS.iter().find(|fact| fact.place == (kind, field)) {
        let texts = [
            ("x-kubernetes-list-type", fact.list),
            ("x-kubernetes-patch-strategy", fact.strategy),
            ("x-kubernetes-patch-merge-key", if fact.strategy.is_empty() { "" } else { fact.patch_key }),
        ];
        texts
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .for_each(|(name, text)| put(name, text.into()));
        if !fact.keys.is_empty() {
            put("x-kubernetes-list-map-keys", fact.keys.iter().copied().map(Value::from).collect());
        }
    }
    if ATOMIC_FIELDS.contains(&(kind, field)) {
        put("x-kubernetes-map-type", "atomic".into());
    }
    if let Some((.., default)) = DEFAULTS.iter().find(|(k, f, _)| (*k, *f) == (kind, field)) {
        put("default", (*default).into());
    }
}
