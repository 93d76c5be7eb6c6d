//! Attacks on classes, claims and connections, one line each: what is tried, and what is told, or why it does no
//! harm. Nothing of an attack is ever made or published but what its outcome says.

use crate::stage::{CLAIM, SYSTEM, Stage, part_kind};
use conductor::event::WhyMissing;
use conductor::model::{ObjectKey, Part, Slot};
use serde_json::{Value, json};

const INSTANCE: (&str, &str) = ("example.com/v1", "Instance");
const SCOPED: (&str, &str) = ("example.com/v1", "ClusterThing");

/// What comes of an attack.
enum Outcome {
    /// Nothing is made, and this is told.
    Told(&'static str),
    /// An object is made, and at this place it has this, which does no harm.
    Harmless(&'static str, Value),
}
use Outcome::{Harmless, Told};

/// A class whose one object has this spec.
fn class(spec: Value) -> Value {
    made_of(json!({"apiVersion": INSTANCE.0, "kind": INSTANCE.1, "spec": spec}))
}

fn made_of(template: Value) -> Value {
    json!({ "template": template })
}

fn kind(api_version: &str, kind: &str) -> Value {
    made_of(json!({"apiVersion": api_version, "kind": kind}))
}

/// A class with several objects.
fn several(entries: &[(&str, Value)]) -> Value {
    let entry = |(id, spec): &(&str, Value)| json!({"id": id, "template": {"apiVersion": INSTANCE.0, "kind": INSTANCE.1, "spec": spec}});
    json!({"templates": entries.iter().map(entry).collect::<Vec<_>>()})
}

/// A class whose one object computes this.
fn computes(expression: &str) -> Value {
    class(json!({"value": format!("${{{expression}}}")}))
}

fn connects(connection: Value) -> Value {
    let mut class = class(json!({}));
    class["connection"] = connection;
    class
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!("${claim.metadata.name}"), |inner, _| json!({ "a": inner }))
}

/// Classes that nobody should write. Their claims are told, and nothing is made.
fn classes() -> Vec<(&'static str, Value, &'static str)> {
    let denied = "is a kind of which no part is ever made";
    let deep = "nested too deep";
    let many: Vec<(String, Value)> = (0..40).map(|n| (format!("o{n}"), json!({}))).collect();
    let many: Vec<(&str, Value)> = many.iter().map(|(id, spec)| (id.as_str(), spec.clone())).collect();
    let keys: serde_json::Map<String, Value> = (0..70).map(|n| (format!("k{n}"), json!("v"))).collect();
    let name = "${claim.metadata.name}";
    vec![
        ("an expression as apiVersion", kind(name, "Instance"), "is an expression in apiVersion"),
        ("an expression as kind", kind("example.com/v1", name), "is an expression in kind"),
        (
            "an expression as namespace",
            made_of(
                json!({"apiVersion": INSTANCE.0, "kind": INSTANCE.1, "metadata": {"namespace": "${claim.metadata.namespace}"}}),
            ),
            "is an expression in metadata.namespace",
        ),
        ("an expression in a key", class(json!({"${claim.metadata.name}": 1})), "is an expression in a key"),
        (
            "an expression in a key, far down",
            class(json!([{"a": [{"x${1}": 1}]}])),
            "is an expression in a key",
        ),
        (
            "an expression as a key of the connection",
            connects(json!({"${1}": "x"})),
            "is an expression in a key",
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
        ("a kind in capitals of its group", kind("storage.conductor.io/v2", "RelationalDatabase"), denied),
        ("one id for two objects", several(&[("a", json!({})), ("a", json!({}))]), "is used twice"),
        (
            "objects that need each other",
            several(&[("a", json!("${objects.b.status.x}")), ("b", json!("${objects.a.status.x}"))]),
            "a -> b -> a",
        ),
        ("an object that needs itself", several(&[("a", json!("${objects.a.status.x}"))]), "a -> a"),
        ("an object that is not there", several(&[("a", json!("${objects.z.x}"))]), "there is no z"),
        ("forty objects", several(&many), "more than 32"),
        ("template and templates", json!({"template": {}, "templates": []}), "stands beside `template`"),
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
        ("a loop in a loop", computes("[1].map(a, [2].map(b, a + b))"), "has a loop in a loop"),
        (
            "doubling, thirty times",
            computes(&format!("['x']{}", ".map(x,x+x)".repeat(30))),
            "too many loops after one another",
        ),
        ("a list of a billion", computes("lists.range(1000000000)"), "names lists, which is not known here"),
        ("a million digits", computes("'%.1000000f'.format([1.5])"), "more than 99 digits"),
        (
            "a format from elsewhere",
            computes("claim.metadata.name.format([1.5])"),
            "formats by a text that is computed",
        ),
        ("an object of a type", computes("Secret{name: 'x'}"), "makes an object of a type"),
        ("a list without an order", computes("{'a': 1, 'b': 2}.map(k, k)"), "whose keys have no order"),
        ("a password in clear", connects(json!({"password": "hunter2"})), "stands in clear"),
        (
            "a password from the claim",
            connects(json!({"password": "${claim.metadata.name}"})),
            "stands in clear",
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
    ]
}

fn applied(class: Value, claim: Value, metadata: Value) -> Stage {
    applied_after(|_| {}, class, claim, metadata)
}

/// A class and a claim of it, in a cluster to which somebody came before.
fn applied_after(before: impl FnOnce(&mut Stage), class: Value, claim: Value, metadata: Value) -> Stage {
    let mut stage = Stage::new(&[part_kind(INSTANCE)]);
    before(&mut stage);
    stage.lab.touch_parts(|world| [world.uninstall(&part_kind(SCOPED), WhyMissing::NotNamespaced)]);
    let mut class = class;
    class["apiVersion"] = json!("storage.conductor.io/v1alpha1");
    class["kind"] = json!("RelationalDatabaseClass");
    class["metadata"] = json!({"name": "k", "namespace": SYSTEM});
    stage.apply(class);
    let mut claim = json!({"spec": claim, "metadata": metadata});
    claim["apiVersion"] = json!("storage.conductor.io/v1alpha1");
    claim["kind"] = json!("RelationalDatabaseClaim");
    claim["metadata"]["name"] = json!("c");
    claim["metadata"]["namespace"] = json!("app");
    claim["spec"]["class"] = json!("k");
    stage.apply(claim);
    stage
}

/// Everything that anybody is told.
fn told(stage: &Stage) -> String {
    format!("{} | {}", stage.claim_says("app", "c", "Bound"), stage.resources().join(" | "))
}

#[test]
fn classes_that_nobody_should_write_make_nothing() {
    for (attack, class, expected) in classes() {
        let stage = applied(class, json!({}), json!({}));
        assert!(told(&stage).contains(expected), "{attack}: {}", told(&stage));
        assert_eq!(stage.parts(), [], "{attack}");
    }
}

/// Good classes, bad claims: the class, the claim's spec and metadata, and what comes of it.
fn claims() -> Vec<(&'static str, Value, Value, Value, Outcome)> {
    let asks = |parameters: Value| json!({ "parameters": parameters });
    let text = || class(json!({"value": "db-${parameters.a}"}));
    let whole = || class(json!({"value": "${parameters.a}"}));
    let labelled = || {
        let mut class = class(json!({}));
        class["template"]["metadata"] =
            json!({"labels": "${claim.metadata.labels}", "annotations": "${claim.metadata.annotations}"});
        class
    };
    let none = || json!({});
    let forged = json!({
        "conductor.io/resource": "another", "conductor.io/part": "other", "conductor.io/publishable": "true",
        "conductor.io/published": "true", "storage.conductor.io/x": "y", "team": "a",
    });
    let big = "x".repeat(60_000);
    let numbers: Vec<u32> = (0..5_000).collect();
    let placed = made_of(json!({
        "apiVersion": INSTANCE.0, "kind": INSTANCE.1, "spec": {},
        "metadata": {
            "name": "kube-root-ca", "namespace": "kube-system", "finalizers": ["x/y"], "generateName": "x",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}],
        },
        "status": {"phase": "Ready"},
    }));
    vec![
        (
            "an expression in a parameter",
            whole(),
            asks(json!({"a": "${secret.password}"})),
            none(),
            Harmless("/spec/value", json!("${secret.password}")),
        ),
        (
            "an expression between other text",
            text(),
            asks(json!({"a": "${claim}$${x}"})),
            none(),
            Harmless("/spec/value", json!("db-${claim}$${x}")),
        ),
        (
            "structure in a text",
            text(),
            asks(json!({"a": "x\"}, \"kind\": \"Secret\", \"y\": {\"z\": \"\nkind: Secret"})),
            none(),
            Harmless("/spec/value", json!("db-x\"}, \"kind\": \"Secret\", \"y\": {\"z\": \"\nkind: Secret")),
        ),
        (
            "a map for a text",
            text(),
            asks(json!({"a": {"kind": "Secret"}})),
            none(),
            Told("gives a list or a map"),
        ),
        ("nothing for a text", text(), asks(json!({"a": null})), none(), Told("gives nothing")),
        ("a parameter that is not there", text(), none(), none(), Told("asks for a, which is not set")),
        (
            "labels that forge whose it is",
            labelled(),
            none(),
            json!({"labels": forged, "annotations": {"conductor.io/resource-uid": "u-1", "note": "n"}}),
            Harmless("/metadata/labels/team", json!("a")),
        ),
        (
            "a division by zero",
            computes("1 / parameters.a"),
            asks(json!({"a": 0})),
            none(),
            Told("divides by zero"),
        ),
        (
            "a text for a number",
            computes("1 + parameters.a"),
            asks(json!({"a": "1"})),
            none(),
            Told("different types"),
        ),
        (
            "a number without its opposite",
            computes("parameters.a * 3"),
            asks(json!({"a": i64::MIN})),
            none(),
            Told("gives a number that is too large"),
        ),
        (
            "a long list for a loop",
            computes("parameters.a.map(x, x + x)"),
            asks(json!({ "a": numbers })),
            none(),
            Told("walks over more than 8 KiB"),
        ),
        (
            "a map for a list",
            computes("parameters.a.map(x, x)"),
            asks(json!({"a": {"b": 1, "c": 2}})),
            none(),
            Told("whose keys have no order"),
        ),
        (
            "a pattern that explodes",
            computes("'aaaa'.matches(parameters.a)"),
            asks(json!({"a": "((((a{100}){100}){100}){100}){100}"})),
            none(),
            Told("gives a function an argument that it does not take"),
        ),
        (
            "an object of 300 KiB",
            class(
                json!({"value": "${parameters.a}${parameters.a}${parameters.a}${parameters.a}${parameters.a}"}),
            ),
            asks(json!({ "a": big })),
            none(),
            Told("comes out larger than 256 KiB"),
        ),
        (
            "a text, two hundred times",
            computes(&format!("{}parameters.a", "parameters.a + ".repeat(200))),
            asks(json!({ "a": "x".repeat(200_000) })),
            none(),
            Told("makes too much of what it is given"),
        ),
        (
            "parameters of 300 KiB",
            whole(),
            asks(json!({"a": "x", "b": "x".repeat(300_000)})),
            none(),
            Told("is larger than 256 KiB"),
        ),
        (
            "an index beyond the end",
            computes("parameters.a[7]"),
            asks(json!({"a": [1]})),
            none(),
            Told("not in the list"),
        ),
        (
            "a name, a namespace and owners of its own",
            placed.clone(),
            none(),
            none(),
            Harmless("/metadata/namespace", json!(SYSTEM)),
        ),
        ("a status of its own", placed, none(), none(), Harmless("/status", Value::Null)),
        (
            "a kind that lives in no namespace",
            kind(SCOPED.0, SCOPED.1),
            none(),
            none(),
            Told("lives in no namespace, and is never made"),
        ),
        (
            "a kind that nobody knows",
            kind("example.com/v9", "Instance"),
            none(),
            none(),
            Told("is not installed"),
        ),
    ]
}

#[test]
fn what_a_claim_says_is_a_value_and_nothing_else() {
    for (attack, class, spec, metadata, outcome) in claims() {
        let stage = applied(class, spec, metadata);
        let made: Vec<Value> = stage.parts().into_iter().map(|(_, part)| part).collect();
        match outcome {
            Told(expected) => {
                assert!(told(&stage).contains(expected), "{attack}: {}", told(&stage));
                assert_eq!(made, [Value::Null; 0], "{attack}");
            }
            Harmless(place, value) => {
                assert_eq!(made.len(), 1, "{attack}: {}", told(&stage));
                assert_eq!(made[0].pointer(place).unwrap_or(&Value::Null), &value, "{attack}");
                is_ours(attack, &made[0]);
            }
        }
    }
}

/// Whatever was tried: the object is where ours are, is known for ours, and for nobody else's.
fn is_ours(attack: &str, part: &Value) {
    let metadata = &part["metadata"];
    assert_eq!(metadata["namespace"], SYSTEM, "{attack}");
    assert!(metadata["name"].as_str().is_some_and(|name| name.starts_with("rdb-")), "{attack}: {metadata}");
    assert_eq!(metadata["labels"]["conductor.io/part"], "main", "{attack}");
    assert_eq!(
        (&metadata["ownerReferences"], &metadata["finalizers"]),
        (&Value::Null, &Value::Null),
        "{attack}"
    );
    for forged in ["conductor.io/publishable", "conductor.io/published", "storage.conductor.io/x"] {
        assert_eq!(metadata["labels"].get(forged), None, "{attack}");
    }
    assert_ne!(metadata["annotations"]["conductor.io/resource-uid"], "u-1", "{attack}");
}

/// Keys of a connection that are not what they should be, over a good one; and what the Secret has.
fn connections() -> Vec<(&'static str, Value, Value, &'static str)> {
    let host = "connection.host is neither a name nor an address";
    let control = "holds a line break or another control character";
    vec![
        ("a host with a path", json!({"host": "db.example.com/x?y"}), json!({}), host),
        ("a host behind another's login", json!({"host": "x@evil.example.com"}), json!({}), host),
        ("a host with a line break", json!({"host": "db.example.com\nPassword: x"}), json!({}), host),
        ("a host of 300 characters", json!({"host": "a".repeat(300)}), json!({}), host),
        ("no port at all", json!({"port": 0}), json!({}), "connection.port is no port"),
        ("a port that is too high", json!({"port": 65_536}), json!({}), "connection.port is no port"),
        ("a port with more behind it", json!({"port": "5432/x"}), json!({}), "connection.port is no port"),
        ("a user with a line break", json!({}), json!({"user": "app\nsuperuser"}), control),
        ("a database with a bell", json!({"database": "a\u{7}"}), json!({}), control),
        ("an address with a line break", json!({"uri": "pg://a\nb"}), json!({}), control),
        (
            "a password with NUL",
            json!({}),
            json!({"pw": "a\0b"}),
            "connection.password holds the character NUL",
        ),
        ("a key with NUL", json!({"extra": "a\0b"}), json!({}), "connection.extra holds the character NUL"),
        (
            "a type with a slash",
            json!({"type": "tls/x"}),
            json!({}),
            "connection.type cannot be the type of a Secret",
        ),
        (
            "options with an end",
            json!({"options": "sslmode=disable#x y"}),
            json!({}),
            "connection.options cannot stand in an address",
        ),
        ("a list for a text", json!({"host": ["a"]}), json!({}), "connection.host is a list or a map"),
        ("a map for a text", json!({"extra": {"a": 1}}), json!({}), "connection.extra is a list or a map"),
        (
            "a key of 260 KiB",
            json!({"extra": "x".repeat(200_000), "more": "x".repeat(100_000)}),
            json!({}),
            "larger than 256 KiB",
        ),
        ("an empty password", json!({}), json!({"pw": ""}), "lacks password"),
        (
            "a Secret that is not there",
            json!({"secretRef": "other"}),
            json!({}),
            "Secret other is not there yet",
        ),
        ("a name that is no Secret's", json!({"secretRef": "../app/login"}), json!({}), "is not there yet"),
    ]
}

/// A database that stands somewhere, a Secret with its login, and a claim for it.
fn standing(connection: Value, secret: Value) -> Stage {
    let mut stage = Stage::new(&[]);
    let mut whole = json!({
        "host": "db.example.com", "port": 5432, "database": "orders", "secretRef": "admin",
        "username": "${secret.user}", "password": "${secret.pw}",
    });
    over(&mut whole, connection);
    stage.apply(json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabase",
        "metadata": {"name": "r", "namespace": SYSTEM},
        "spec": {"engine": "postgresql", "connection": whole},
    }));
    let mut login = json!({
        "kind": "Secret", "type": "Opaque", "stringData": {"user": "app", "pw": "hunter2"},
        "metadata": {"name": "admin", "namespace": SYSTEM, "labels": {"conductor.io/publishable": "true"}},
    });
    over(&mut login, secret);
    stage.apply(login);
    stage.apply(json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
        "metadata": {"name": "c", "namespace": "app"}, "spec": {"engine": "postgresql"},
    }));
    stage
}

/// Lays one value over another, at every depth.
fn over(base: &mut Value, more: Value) {
    match more {
        Value::Object(fields) if base.is_object() => {
            fields.into_iter().for_each(|(key, value)| over(&mut base[&key], value));
        }
        other => *base = other,
    }
}

/// Everything in the application's namespace.
fn published(stage: &Stage) -> Vec<String> {
    let own = stage.lab.world.sides().filter(|((_, key), _)| &*key.namespace == "app");
    own.map(|((slot, key), _)| format!("{} {}", slot.kind(), key.name)).collect()
}

#[test]
fn a_connection_that_is_none_is_not_published() {
    for (attack, connection, data, expected) in connections() {
        let stage = standing(connection, json!({ "stringData": data }));
        let ready = stage.claim_says("app", "c", "Ready");
        assert!(
            ready.starts_with("False ConnectionIncomplete") && ready.contains(expected),
            "{attack}: {ready}"
        );
        assert!(!ready.contains("hunter2"), "{attack}: {ready}");
        assert_eq!(published(&stage), [""; 0], "{attack}");
    }
}

#[test]
fn characters_with_a_meaning_in_an_address_have_none() {
    let data = json!({"user": "a:b@evil.example.com/x?y#z", "pw": "p@:/?#[]%\u{e9} +&="});
    let stage = standing(json!({"database": "x?sslmode=disable&host=evil"}), json!({ "stringData": data }));
    let uri = stage.published("app", "c").remove("uri");
    let expected = "postgresql://a%3Ab%40evil.example.com%2Fx%3Fy%23z:p%40%3A%2F%3F%23%5B%5D%25%C3%A9%20%2B%26%3D\
                    @db.example.com:5432/x%3Fsslmode%3Ddisable%26host%3Devil";
    assert_eq!(uri.as_deref(), Some(expected), "{}", stage.claim_says("app", "c", "Ready"));
}

/// Secrets that are not to be handed out, over one that is.
fn secrets() -> Vec<(&'static str, Value, &'static str)> {
    let (never, foreign) = ("which is never published", "does not belong to resource r");
    let of = |kind: &str| json!({ "type": kind });
    let label = |value: Value| json!({"metadata": {"labels": {"conductor.io/publishable": value}}});
    let mut owned = label(json!("no"));
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabase", "name": "r", "uid": "u-2"}]);
    vec![
        ("a service account's token", of("kubernetes.io/service-account-token"), never),
        ("a key for TLS", of("kubernetes.io/tls"), never),
        ("a registry's login", of("kubernetes.io/dockerconfigjson"), never),
        ("a token that lets machines in", of("bootstrap.kubernetes.io/token"), never),
        ("a key for SSH", of("kubernetes.io/ssh-auth"), never),
        ("a package's secrets", of("helm.sh/release.v1"), never),
        ("a label that says no", label(json!("false")), foreign),
        ("a label in capitals", label(json!("True")), foreign),
        ("an owner of the right name and another life", owned, foreign),
    ]
}

#[test]
fn a_secret_of_another_type_or_owner_is_not_handed_out() {
    for (attack, secret, expected) in secrets() {
        let stage = standing(json!({}), secret);
        let ready = stage.claim_says("app", "c", "Ready");
        assert!(ready.starts_with("False SecretNotAllowed") && ready.contains(expected), "{attack}: {ready}");
        assert_eq!(published(&stage), [""; 0], "{attack}");
    }
}

#[test]
fn a_claim_that_chooses_a_secret_gets_none_that_is_not_its_own() {
    let connection =
        json!({"host": "h", "password": "${secret.pw}", "secretRef": {"name": "${parameters.secret}"}});
    for secret in ["admin", "another-claims-login"] {
        let mut stage =
            applied(connects(connection.clone()), json!({"parameters": {"secret": secret}}), json!({}));
        let part = stage.part(INSTANCE).key();
        stage.says(&part, json!({"phase": "Ready"}));
        stage.apply(json!({
            "kind": "Secret", "type": "Opaque", "stringData": {"pw": "hunter2"},
            "metadata": {"name": secret, "namespace": SYSTEM},
        }));
        let ready = stage.claim_says("app", "c", "Ready");
        assert!(ready.starts_with("False SecretNotAllowed"), "{secret}: {ready}");
        assert_eq!(published(&stage), [""; 0], "{secret}");
    }
}

#[test]
fn a_secret_of_that_name_elsewhere_is_not_looked_at() {
    let mut stage = standing(json!({"secretRef": "login"}), json!({}));
    stage.apply(json!({
        "kind": "Secret", "type": "Opaque", "stringData": {"user": "app", "pw": "x"},
        "metadata": {"name": "login", "namespace": "app", "labels": {"conductor.io/publishable": "true"}},
    }));
    let ready = stage.claim_says("app", "c", "Ready");
    assert!(ready.contains("Secret login is not there yet"), "{ready}");
}

#[test]
fn an_object_that_bears_our_labels_for_another_claim_is_not_overwritten() {
    let mut stage = standing(json!({}), json!({}));
    stage.lab.delete(CLAIM, &ObjectKey::new("app", "c"));
    let theirs = json!({
        "kind": "Secret", "type": "Opaque", "data": {"theirs": "eA=="},
        "metadata": {
            "name": "c", "namespace": "app", "labels": {"conductor.io/published": "true"},
            "annotations": {"conductor.io/claim-uid": "another", "conductor.io/content-hash": "x"},
        },
    });
    stage.apply(theirs);
    stage.apply(json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
        "metadata": {"name": "c", "namespace": "app"}, "spec": {"resourceName": "r"},
    }));
    let key = ObjectKey::new("app", "c");
    assert_eq!(
        stage.lab.world.side(Slot::Secret, &key).expect("it is there")["data"],
        json!({"theirs": "eA=="})
    );
}

#[test]
fn a_part_of_our_name_with_anothers_mark_is_not_taken_over() {
    let made = applied(class(json!({})), json!({}), json!({})).part(INSTANCE);
    let mut theirs: Part = made.clone();
    theirs.metadata.uid = Some("theirs".to_owned());
    theirs.body = json!({"spec": {"theirs": true}});
    let annotations = theirs.metadata.annotations.get_or_insert_default();
    annotations.insert("conductor.io/resource-uid".to_owned(), "another".to_owned());
    // The same world once more: what is made in it would have the same name.
    let squat = |stage: &mut Stage| stage.lab.touch_parts(|world| world.put_part(theirs));
    let stage = applied_after(squat, class(json!({})), json!({}), json!({}));
    assert_eq!(stage.part(INSTANCE).key(), made.key());
    assert_eq!(stage.part(INSTANCE).body["spec"], json!({"theirs": true}));
    assert!(
        told(&stage).contains("exists and is not this resource's: rename or delete it"),
        "{}",
        told(&stage)
    );
}

#[test]
fn there_are_a_hundred_attacks_and_more() {
    let count = classes().len() + claims().len() + connections().len() + secrets().len();
    assert!(count >= 100, "{count}");
}
