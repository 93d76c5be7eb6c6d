//! A DatabaseClaim's fields, the instance that its label selects, and the resulting claim.

use super::*;
use proptest::prelude::*;

fn request(spec: Value) -> Result<ClaimRequest, String> {
    let spec = serde_json::from_value(spec).expect("a map");
    ClaimRequest::read("orders", &spec).map_err(|error| error.to_string())
}

fn instance(label: &str) -> Instance {
    Instance {
        name: label.to_owned(),
        label: label.to_owned(),
        host: "h".to_owned(),
        port: 5432,
        ..Instance::default()
    }
}

#[test]
fn fields_are_read_in_every_spelling() {
    let seed = json!({"AppID": "shop", "SecretName": "s", "Type": "Postgres", "InstanceLabel": "athena.hostapp",
        "Username": "shop", "DatabaseName": "d", "DBNameOverride": "o", "DSNName": "dsn.txt", "Host": "h", "Port": 5432,
        "Shape": "small", "MinStorageGB": 20, "DeletePolicy": "recycle"});
    let camel = json!({"appId": "shop", "secretName": "s", "type": "postgres", "instanceLabel": "athena.hostapp",
        "userName": "shop", "databaseName": "d", "dbNameOverride": "o", "dsnName": "dsn.txt", "host": "h",
        "port": "5432", "shape": "small", "minStorageGB": "20", "deletionPolicy": "Recycle"});
    let read = request(seed).expect("it can be read");
    assert_eq!(Ok(&read), request(camel).as_ref());
    assert_eq!(read.database.as_ref().map(Identifier::as_str), Some("o"));
    let claim = read.to_claim(&Instance {
        shape: Some("small".to_owned()),
        version: Some("15".to_owned()),
        ..instance("athena")
    });
    expect_test::expect![[r#"{"connection":{"secretName":"s-conductor"},"engine":"postgresql","parameters":{"databaseName":"o","reclaimPolicy":"Retain","userName":"shop"},"resourceName":"athena","selector":{"matchLabels":{"instance":"athena","shape":"small"}},"version":"15"}"#]]
        .assert_eq(&claim.to_string());
}

#[test]
fn the_least_is_a_label_and_the_rest_has_defaults() {
    let read = request(json!({"AppID": "shop", "InstanceLabel": "athena"})).expect("it can be read");
    assert_eq!((read.secret.as_str(), read.dsn.as_str(), read.engine), ("orders", "dsn", "postgresql"));
    assert_eq!(read.database.as_ref().map(Identifier::as_str), Some("shop"));
    assert_eq!(read.to_claim(&instance("athena")).get("resourceName"), None);
}

#[test]
fn the_name_of_an_application_becomes_that_of_a_database() {
    let read = request(json!({"AppID": "my-app.eu", "InstanceLabel": "athena"})).expect("it can be read");
    assert_eq!(read.database.as_ref().map(Identifier::as_str), Some("my_app_eu"));
}

#[test]
fn edits_that_come_too_late_are_reported() {
    let plain = json!({"AppID": "shop", "InstanceLabel": "athena.eu"});
    let claim = request(plain.clone()).expect("it can be read").to_claim(&instance("athena"));
    let message = |change: Value| {
        let mut spec = plain.clone();
        for (key, value) in change.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        let before = request(plain.clone()).expect("it can be read").placement();
        let instances =
            [Instance { shape: Some("small".to_owned()), ..instance("athena") }, instance("athena.hostapp")];
        let bound = Bound { placed_by: Some(before), resource: "athena", class: "", instances: &instances };
        let request = request(spec).expect("it can be read");
        let unknown = Bound { placed_by: None, ..bound.clone() };
        let message = request.find_too_late(&claim, &bound);
        // Its placement before this was recorded is unknown: report nothing about it.
        assert!(
            !request
                .find_too_late(&claim, &unknown)
                .is_some_and(|message| message.contains("no longer has an effect"))
        );
        message
    };
    for fine in [
        json!({}),
        json!({"SecretName": "x", "DeletePolicy": "recycle"}),
        json!({"InstanceLabel": "athena"}),
        json!({"InstanceLabel": "athena.us"}),
        json!({"Host": "h", "Port": 5432, "Shape": "small"}),
    ] {
        assert_eq!(message(fine.clone()), None, "{fine}");
    }
    for (change, part) in [
        (json!({"DBNameOverride": "other"}), "spec.DatabaseName can no longer be changed, it is shop"),
        (json!({"Username": "me"}), "spec.Username can no longer be changed, it is a generated name"),
        (json!({"Type": "MySQL"}), "spec.Type can no longer be changed, it is postgresql"),
        (json!({"InstanceLabel": "atlas"}), "spec.InstanceLabel can no longer be changed, it is athena"),
        (
            json!({"InstanceLabel": "athena.hostapp"}),
            "spec.InstanceLabel no longer has an effect, its claim is bound: it was athena.eu",
        ),
        (json!({"Host": "x"}), "spec.Host no longer has an effect, its claim is bound: it was absent"),
        (json!({"Port": 1}), "spec.Port no longer has an effect"),
        (json!({"Shape": "large"}), "spec.Shape no longer has an effect"),
    ] {
        let message = message(change).expect(part);
        assert!(message.contains(part) && message.contains("create a new DatabaseClaim"), "{message}");
    }
}

/// Fields of a DatabaseClaim that take effect when they are edited while it is bound, and how.
const TAKES_EFFECT: [(&str, &str); 4] = [
    ("SecretName", "the Secret is written under the new name"),
    ("DSNName", "the connection string is written under the new key"),
    ("DeletePolicy", "it is read when the DatabaseClaim is deleted"),
    ("AppID", "it names the database where no other field does, and is reported as DatabaseName then"),
];

#[test]
fn no_field_of_a_bound_claim_is_edited_in_silence() {
    let plain = json!({"InstanceLabel": "athena.eu", "DatabaseName": "shop"});
    let claim = request(plain.clone()).expect("it can be read").to_claim(&instance("athena"));
    let instances = [instance("athena"), instance("athena.hostapp")];
    let before = request(plain.clone()).expect("it can be read").placement();
    let bound = Bound { placed_by: Some(before), resource: "athena", class: "", instances: &instances };
    for field in FIELDS {
        let value = match field {
            "Type" => json!("MySQL"),
            "Port" | "MinStorageGB" => json!(7),
            "DeletePolicy" => json!("recycle"),
            "InstanceLabel" => json!("athena.hostapp.eu"),
            _ => json!("another"),
        };
        let mut spec = plain.clone();
        spec[field] = value;
        let message = request(spec).expect("it can be read").find_too_late(&claim, &bound);
        let takes_effect = TAKES_EFFECT.iter().find(|(known, _)| *known == field);
        match takes_effect {
            Some((_, how)) => assert!(!how.is_empty() && message.is_none(), "{field}: {message:?}"),
            None => assert!(message.is_some(), "spec.{field} was edited in silence"),
        }
    }
    let of_application =
        request(json!({"AppID": "other", "InstanceLabel": "athena.eu"})).expect("it can be read");
    let message = of_application.find_too_late(&claim, &bound).expect("it would be another database");
    assert!(message.contains("spec.DatabaseName can no longer be changed"), "{message}");
}

#[test]
fn an_invalid_field_is_reported_with_its_path() {
    for (spec, message) in [
        (json!({"AppID": "shop"}), "spec.InstanceLabel"),
        (json!({"InstanceLabel": "a", "Colour": "red"}), "`Colour` is not known"),
        (json!({"InstanceLabel": "a", "instanceLabel": "b"}), "stands there twice"),
        (json!({"InstanceLabel": 5}), "spec.InstanceLabel: `5` is no text"),
        (json!({"InstanceLabel": "a", "Type": "Oracle"}), "spec.Type: `Oracle` is not known"),
        (json!({"InstanceLabel": "a", "DatabaseName": "a\"; DROP"}), "spec.DatabaseName"),
        (json!({"InstanceLabel": "a", "DatabaseName": "c_x"}), "spec.DatabaseName"),
        (json!({"InstanceLabel": "a", "AppID": "my app"}), "spec.AppID"),
        (json!({"InstanceLabel": "a", "DatabaseName": "my-app"}), "spec.DatabaseName"),
        (json!({"InstanceLabel": "a", "Username": "a b"}), "spec.Username"),
        (
            json!({"InstanceLabel": "a", "SecretName": "My_Secret"}),
            "spec.SecretName: `My_Secret` cannot be the name",
        ),
        (json!({"InstanceLabel": "a", "SecretName": "a..b"}), "spec.SecretName"),
        (json!({"InstanceLabel": "a", "SecretName": "x".repeat(244)}), "up to 243"),
        (json!({"InstanceLabel": "a", "DSNName": "a/b"}), "spec.DSNName"),
        (json!({"InstanceLabel": "a", "DSNName": "password"}), "another meaning"),
        (json!({"InstanceLabel": "a", "Port": 70000}), "spec.Port"),
        (json!({"InstanceLabel": "a", "MinStorageGB": "20GB"}), "spec.MinStorageGB"),
        (json!({"InstanceLabel": "a", "DeletePolicy": "burn"}), "delete or recycle"),
    ] {
        let error = request(spec).expect_err(message);
        assert!(error.contains(message), "expected {message:?}, found {error:?}");
    }
}

#[test]
fn an_instance_is_refused_for_what_it_says_of_itself_and_for_nothing_else() {
    let server_config = [
        Instance { host: "one".to_owned(), shape: Some("small".to_owned()), ..instance("athena") },
        Instance {
            name: "b".to_owned(),
            host: "two".to_owned(),
            storage: Quantity::parse("50G").ok(),
            ..instance("athena")
        },
    ];
    for (more, expected) in [
        (json!({}), Ok("athena")),
        (json!({"Host": "two"}), Ok("b")),
        (json!({"Host": "three"}), Err("spec.Host: instance athena (athena) has one, not three")),
        (json!({"Port": 1}), Err("spec.Port")),
        (json!({"Shape": "large"}), Ok("b")),
        (json!({"Shape": "large", "MinStorageGB": 51}), Err("spec.MinStorageGB")),
        (json!({"Shape": "large", "MinStorageGB": 50}), Ok("b")),
        (json!({"InstanceLabel": "zeus"}), Err("there are athena")),
    ] {
        let mut spec = json!({"InstanceLabel": "athena.hostapp"});
        spec.as_object_mut().expect("a map").extend(more.as_object().cloned().unwrap_or_default());
        let request = request(spec).expect("it can be read");
        match (choose(&request, &server_config), expected) {
            (Ok(found), Ok(name)) => assert_eq!(found.name, name, "{more}"),
            (Err(why), Err(message)) => assert!(why.contains(message), "{more}: {why}"),
            (found, expected) => panic!("{more}: found {found:?}, not {expected:?}"),
        }
    }
}

proptest! {
    /// Compared with a plain search: of all labels that are equal or end before a dot, the longest.
    #[test]
    fn the_match_is_the_longest_prefix_of_whole_segments(
        labels in proptest::collection::btree_set("[ab]{1,2}(\\.[ab]{1,2}){0,2}", 0..6),
        label in "[ab]{1,2}(\\.[ab]{1,2}){0,3}",
    ) {
        let instances: Vec<Instance> = labels.iter().map(|label| instance(label)).collect();
        let request = request(json!({"InstanceLabel": label})).expect("it can be read");
        let begins = |one: &&String| label == **one || label.starts_with(&format!("{one}."));
        let expected = labels.iter().filter(begins).max_by_key(|one| one.len());
        prop_assert_eq!(choose(&request, &instances).ok().map(|found| &found.label), expected);
    }

    #[test]
    fn no_claim_brings_the_reader_down(name in ".*", field in "[A-Za-z]*", text in ".*") {
        let _ = request(json!({"InstanceLabel": "a", "AppID": name, "DSNName": text, field: "x"}));
    }
}

#[test]
fn a_class_creates_what_no_server_has_and_servers_come_first() {
    let class = |name: &str, label: &str, shape: &str| Instance {
        name: name.to_owned(),
        label: label.to_owned(),
        shape: Some(shape.to_owned()),
        engine: Some("postgres".to_owned()),
        is_on_demand: true,
        ..Instance::default()
    };
    let server = Instance { shape: Some("small".to_owned()), ..instance("athena") };
    let instances = [class("a-class", "athena", "small"), class("b-class", "athena", "large"), server];
    let choose = |more: Value| {
        let mut spec = json!({"InstanceLabel": "athena.eu"});
        spec.as_object_mut().expect("a map").extend(more.as_object().cloned().unwrap_or_default());
        let request = request(spec).expect("it can be read");
        super::choose(&request, &instances).map(|found| (found.name.clone(), request.to_claim(found)))
    };
    let (name, claim) = choose(json!({})).expect("there is one");
    assert_eq!((name.as_str(), claim.get("class")), ("athena", None));
    let (name, claim) = choose(json!({"Shape": "large"})).expect("one can be made");
    assert_eq!((name.as_str(), claim["class"].as_str()), ("b-class", Some("b-class")));
    assert_eq!(claim["engine"], "postgres", "as the class says it");
    assert_eq!(claim["selector"], json!({"matchLabels": {"instance": "athena", "shape": "large"}}));
    for (more, message) in [
        (json!({"Host": "elsewhere"}), "only registered servers can be named"),
        (json!({"Host": "elsewhere"}), "is created on demand and has no address yet"),
        (json!({"Shape": "huge"}), "spec.Shape"),
        (
            json!({"Type": "MySQL", "Shape": "large"}),
            "spec.Type: instance athena (b-class) has postgresql, not mysql",
        ),
    ] {
        let why = choose(more).expect_err(message);
        assert!(why.contains(message), "{why}");
    }
}
