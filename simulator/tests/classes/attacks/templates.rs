//! Malicious classes: expressions in places where none is allowed, forbidden kinds, cycles of objects, expressions that
//! never end or read what they must not.

use super::{INSTANCE, applied, class, computes, connects, kind, made_of, reported, several};
use serde_json::{Value, json};

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!("${claim.metadata.name}"), |inner, _| json!({ "a": inner }))
}

fn schema(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({"properties": {"a": inner}}))
}

/// A good class with something more to say.
fn limited(more: Value) -> Value {
    let mut class = class(json!({}));
    more.as_object().into_iter().flatten().for_each(|(field, value)| class[field] = value.clone());
    class
}

/// Invalid classes: their claims report the error, and nothing is provisioned.
pub(super) fn classes() -> Vec<(&'static str, Value, &'static str)> {
    let denied = "is a kind that Conductor never creates";
    let deep = "nested too deep";
    let many: Vec<(String, Value)> = (0..40).map(|n| (format!("o{n}"), json!({}))).collect();
    let many: Vec<(&str, Value)> = many.iter().map(|(id, spec)| (id.as_str(), spec.clone())).collect();
    let keys: serde_json::Map<String, Value> = (0..70).map(|n| (format!("k{n}"), json!("v"))).collect();
    let name = "${claim.metadata.name}";
    vec![
        ("an expression as apiVersion", kind(name, "Instance"), "has an expression in apiVersion"),
        ("an expression as kind", kind("example.com/v1", name), "has an expression in kind"),
        (
            "an expression as namespace",
            made_of(
                json!({"apiVersion": INSTANCE.0, "kind": INSTANCE.1, "metadata": {"namespace": "${claim.metadata.namespace}"}}),
            ),
            "has an expression in metadata.namespace",
        ),
        ("an expression in a key", class(json!({"${claim.metadata.name}": 1})), "has an expression in a key"),
        (
            "an expression in a key, far down",
            class(json!([{"a": [{"x${1}": 1}]}])),
            "has an expression in a key",
        ),
        (
            "an expression as a key of the connection",
            connects(json!({"${1}": "x"})),
            "has an expression in a key",
        ),
        ("a Secret", kind("v1", "Secret"), denied),
        (
            "a Secret among others",
            json!({"templates": [{"id": "a", "template": {"apiVersion": "v1", "kind": "Secret"}}]}),
            denied,
        ),
        ("a ServiceAccount", kind("v1", "ServiceAccount"), denied),
        ("a Pod", kind("v1", "Pod"), denied),
        ("a Namespace", kind("v1", "Namespace"), denied),
        ("a Node", kind("v1", "Node"), denied),
        ("rights", kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"), denied),
        ("a webhook", kind("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"), denied),
        ("a definition", kind("apiextensions.k8s.io/v1", "CustomResourceDefinition"), denied),
        ("an API service", kind("apiregistration.k8s.io/v1", "APIService"), denied),
        ("a certificate", kind("certificates.k8s.io/v1", "CertificateSigningRequest"), denied),
        ("a token", kind("authentication.k8s.io/v1", "TokenRequest"), denied),
        ("our lease", kind("coordination.k8s.io/v1", "Lease"), denied),
        ("a claim of ours", kind("storage.conductor.io/v1alpha1", "RelationalDatabaseClaim"), denied),
        ("a quota of ours", kind("conductor.io/v1alpha1", "ClaimQuota"), denied),
        (
            "a resource of ours in another version",
            kind("storage.conductor.io/v2", "RelationalDatabase"),
            denied,
        ),
        ("one id for two objects", several(&[("a", json!({})), ("a", json!({}))]), "is used twice"),
        (
            "objects that need each other",
            several(&[("a", json!("${objects.b.status.x}")), ("b", json!("${objects.a.status.x}"))]),
            "a -> b -> a",
        ),
        ("an object that needs itself", several(&[("a", json!("${objects.a.status.x}"))]), "a -> a"),
        ("an object that is not there", several(&[("a", json!("${objects.z.x}"))]), "there is no z"),
        ("forty objects", several(&many), "more than 32"),
        (
            "template and templates",
            json!({"template": {}, "templates": []}),
            "is set together with `template`",
        ),
        ("a template that is no object", made_of(json!("kind: Secret")), "is missing"),
        (
            "an object without an id",
            json!({"templates": [{"template": {"apiVersion": INSTANCE.0, "kind": INSTANCE.1}}]}),
            "id",
        ),
        ("the environment", computes("env.HOME"), "names env, which is not known here"),
        ("the Secret, in a template", computes("secret.password"), "names secret, which is not known here"),
        (
            "the object itself, in its template",
            computes("object.metadata.uid"),
            "names object, which is not known here",
        ),
        ("a claim's status", computes("claim.status.binding.name"), "there is no status"),
        ("a resource's status", computes("resource.status.phase"), "there is no status"),
        ("an expression that does not end", class(json!({"a": "${1"})), "without its `}`"),
        ("an object of seventy levels", class(nested(70)), deep),
        ("an expression of 5,000 characters", computes(&format!("{}1", "1 + ".repeat(1_250))), "is too long"),
        ("2,000 brackets", computes(&format!("{}1{}", "[".repeat(2_000), "]".repeat(2_000))), deep),
        ("500 choices in choices", computes(&format!("{}1", "true?1:".repeat(500))), deep),
        ("600 steps", computes(&format!("{}1", "1+".repeat(600))), "has too many steps"),
        ("a loop in a loop", computes("[1].map(a, [2].map(b, a + b))"), "has nested loops"),
        (
            "doubling, thirty times",
            computes(&format!("['x']{}", ".map(x,x+x)".repeat(30))),
            "too many loops in sequence",
        ),
        ("a list of a billion", computes("lists.range(1000000000)"), "names lists, which is not known here"),
        ("a million digits", computes("'%.1000000f'.format([1.5])"), "more than 99 digits"),
        (
            "a format from elsewhere",
            computes("claim.metadata.name.format([1.5])"),
            "uses a computed format string",
        ),
        ("an object of a type", computes("Secret{name: 'x'}"), "constructs an object of a type"),
        ("a list without an order", computes("{'a': 1, 'b': 2}.map(k, k)"), "whose keys have no order"),
        ("a password in clear", connects(json!({"password": "hunter2"})), "is in clear text"),
        (
            "a password from the claim",
            connects(json!({"password": "${claim.metadata.name}"})),
            "is in clear text",
        ),
        (
            "a Secret that is not named",
            connects(json!({"token": "${secret.token}"})),
            "uses secret, and no Secret is named",
        ),
        (
            "a Secret of another namespace",
            connects(json!({"secretRef": {"name": "admin", "namespace": "kube-system"}})),
            "`namespace` is not a field of secretRef",
        ),
        (
            "a Secret by something else than its name",
            connects(json!({"secretRef": {"name": ["a"]}})),
            "names no Secret",
        ),
        ("seventy keys", connects(Value::Object(keys)), "has more than 64 keys"),
        (
            "a key that leaves its folder",
            connects(json!({"../../etc/passwd": "x"})),
            "cannot be a key of a Secret",
        ),
        ("a hidden key", connects(json!({"..data": "x"})), "cannot be a key of a Secret"),
        (
            "a kind off the class's list",
            limited(json!({"allowedKinds": ["Cluster.postgresql.cnpg.io"]})),
            "does not have Instance.example.com",
        ),
        (
            "a schema from elsewhere",
            limited(json!({"parameterSchema": {"$ref": "http://evil.example.com"}})),
            "is not a supported keyword",
        ),
        ("a schema of forty levels", limited(json!({"parameterSchema": schema(40)})), deep),
        (
            "a schema whose pattern explodes",
            limited(
                json!({"parameterSchema": {"properties": {"a": {"pattern": "((((a{100}){100}){100}){100}){100}"}}}}),
            ),
            "is not valid here",
        ),
    ]
}

#[test]
fn malicious_classes_provision_nothing() {
    for (attack, class, expected) in classes() {
        let stage = applied(class, json!({}), json!({}));
        assert!(reported(&stage).contains(expected), "{attack}: {}", reported(&stage));
        assert_eq!(stage.parts(), [], "{attack}");
    }
}
