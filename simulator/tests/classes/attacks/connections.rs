//! Connections that are none, and Secrets that are not to be handed out.

use super::{INSTANCE, applied, connects};
use crate::stage::{CLAIM, SYSTEM, Stage};
use conductor::model::{ObjectKey, Slot};
use serde_json::{Value, json};

/// Keys of a connection that are not what they should be, over a good one; and what the Secret has.
pub(super) fn connections() -> Vec<(&'static str, Value, Value, &'static str)> {
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
            "Secret other does not exist yet",
        ),
        ("a name that is no Secret's", json!({"secretRef": "../app/login"}), json!({}), "does not exist yet"),
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
    let own = stage.harness.world.sides().filter(|((_, key), _)| &*key.namespace == "app");
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
pub(super) fn secrets() -> Vec<(&'static str, Value, &'static str)> {
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
fn a_secret_of_that_name_elsewhere_is_not_read() {
    let mut stage = standing(json!({"secretRef": "login"}), json!({}));
    stage.apply(json!({
        "kind": "Secret", "type": "Opaque", "stringData": {"user": "app", "pw": "x"},
        "metadata": {"name": "login", "namespace": "app", "labels": {"conductor.io/publishable": "true"}},
    }));
    let ready = stage.claim_says("app", "c", "Ready");
    assert!(ready.contains("Secret login does not exist yet"), "{ready}");
}

#[test]
fn an_object_that_bears_our_labels_for_another_claim_is_not_overwritten() {
    let mut stage = standing(json!({}), json!({}));
    stage.harness.delete(CLAIM, &ObjectKey::new("app", "c"));
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
        stage.harness.world.side(Slot::Secret, &key).expect("it is there")["data"],
        json!({"theirs": "eA=="})
    );
}
