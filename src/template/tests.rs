//! Tables of templates: what they render to, and the errors of those that are invalid.

use super::{CompiledClass, Inputs, Rendered, Source, complete};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn claim() -> Value {
    json!({
        "metadata": {"name": "orders", "namespace": "team-a", "uid": "c-1", "labels": {"env": "prod"}},
        "spec": {"engine": "postgresql", "version": ">= 15", "resources": {"requests": {"storage": "20Gi"}}},
    })
}

fn resource() -> Value {
    json!({
        "metadata": {"name": "rdb-c-1", "namespace": "conductor-system"},
        "spec": {"engine": "postgresql", "version": "16.4", "capacity": {"storage": "20Gi"}},
    })
}

fn single(spec: Value) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "Database", "spec": spec})
}

/// Renders one template over the usual inputs, or shows the error.
fn render(template: &Value) -> Result<Value, String> {
    let source = Source { template: Some(template), ..Source::default() };
    let compiled = CompiledClass::compile(&source).map_err(|error| error.to_string())?;
    let (claim, resource) = (claim(), resource());
    let (class, parameters) =
        (json!({"metadata": {"name": "gold"}}), json!({"size": 3, "zero": 0, "tags": ["a", "b"]}));
    let inputs = Inputs {
        claim: Some(&claim),
        class: Some(&class),
        resource: Some(&resource),
        parameters: Some(&parameters),
        objects: BTreeMap::new(),
    };
    match compiled.render(&inputs).remove(0).1 {
        Rendered::Made(object) => Ok(object["spec"].clone()),
        Rendered::LeftOut => Err("left out".to_owned()),
        Rendered::Waits(outputs) => Err(format!("waits for {outputs}")),
        Rendered::Wrong(error) => Err(error.to_string()),
    }
}

#[test]
fn a_single_expression_keeps_its_type() {
    for (written, made) in [
        (json!("plain"), json!("plain")),
        (json!("${claim.spec.engine}"), json!("postgresql")),
        (json!("${parameters.size}"), json!(3)),
        (json!("${parameters.size * 2 + 1}"), json!(7)),
        (json!("${parameters.size > 2}"), json!(true)),
        (json!("${parameters.tags}"), json!(["a", "b"])),
        (json!("${claim.metadata.labels}"), json!({"env": "prod"})),
        (json!("${{'a': [1, {'b': null}]}}"), json!({"a": [1, {"b": null}]})),
        (json!("db-${claim.metadata.name}-${parameters.size}"), json!("db-orders-3")),
        (json!("${claim.metadata.labels['env']}"), json!("prod")),
        (json!("$${not.an.expression}"), json!("${not.an.expression}")),
        (json!({"a": ["${1}", {"b": "x${2}"}]}), json!({"a": [1, {"b": "x2"}]})),
        (json!({"deep": {"plain": [1, "$${x}"]}}), json!({"deep": {"plain": [1, "${x}"]}})),
        (json!("${has(claim.spec.priority) ? claim.spec.priority : 7}"), json!(7)),
        (json!("${parameters.tags.map(t, t + '!')}"), json!(["a!", "b!"])),
        (json!("${claim.metadata.name.upperAscii()}"), json!("ORDERS")),
        (json!("${quantity(resource.spec.capacity.storage).asInteger()}"), json!(21_474_836_480_i64)),
        (json!("${semver('16.4.0').major()}"), json!(16)),
        (json!("${class.metadata.name}"), json!("gold")),
    ] {
        assert_eq!(render(&single(written.clone())), Ok(made), "{written}");
    }
}

fn check(spec: Value, expected: Expect) {
    let error = render(&single(spec.clone())).expect_err(&format!("{spec} must not work"));
    expected.assert_eq(&error);
}

#[test]
fn an_error_names_its_field_and_its_expression() {
    check(
        json!({"a": "${claim.spec.egnine}"}),
        expect![
            "template.spec.a: `claim.spec.egnine` names claim.spec.egnine, and there is no egnine: use one of class, classes, connection, engine, exclusive, highly-available, parameters, priority, requests, resourceName, resources, selector, version"
        ],
    );
    check(
        json!({"a": ["${clam.spec}"]}),
        expect![
            "template.spec.a[0]: `clam.spec` names clam, which is not known here: use claim, class, objects, parameters, resource"
        ],
    );
    check(
        json!({"a": "${claim.spec.}"}),
        expect![
            "template.spec.a: `claim.spec.` cannot be parsed (Syntax error: no viable alternative at input '.'): write it as CEL, such as claim.spec.engine"
        ],
    );
    check(
        json!({"a": "${1 +"}),
        expect!["template.spec.a: `${1 +` has a `${` without its `}`: close it, or write $${"],
    );
    check(
        json!({"a": "${claim.spec.class}"}),
        expect![
            "template.spec.a: `claim.spec.class` uses class, which is not set: guard it with has(...) ? ... : ..."
        ],
    );
    check(
        json!({"a": "${1 / parameters.zero}"}),
        expect![
            "template.spec.a: `1 / parameters.zero` divides by zero: check the value and type of each operand"
        ],
    );
    check(
        json!({"a": "${claim.spec.engine + 1}"}),
        expect![
            "template.spec.a: `claim.spec.engine + 1` combines values of different types: check the value and type of each operand"
        ],
    );
    check(
        json!({"a": "x${parameters.tags}"}),
        expect![
            "template.spec.a: `parameters.tags` returns a list or a map inside a longer string: convert it with string() or int()"
        ],
    );
    check(
        json!({"a": "${nothing(1)}"}),
        expect![
            "template.spec.a: `nothing(1)` calls an unknown function: check the value and type of each operand"
        ],
    );
    check(
        json!({"a": "${quantity('lots').asInteger()}"}),
        expect![
            "template.spec.a: `quantity('lots').asInteger()` calls a function with an argument of the wrong type: check the value and type of each operand"
        ],
    );
    check(
        json!({"${claim.metadata.name}": 1}),
        expect![
            "template.spec: `${claim.metadata.name}` has an expression in a key: write a fixed value: only values can be expressions"
        ],
    );
    check(
        json!({"a": "${quantity('1Gi')}"}),
        expect![
            "template.spec.a: `quantity('1Gi')` returns a value that has no JSON form: convert it with string() or int()"
        ],
    );
    check(
        json!({"a": "${objects.other.status}"}),
        expect![
            "template.spec.a: `objects.other.status` names objects.other.status, and there is no other: use one of main"
        ],
    );
    check(
        json!({"a": "${[1].map(a, [2].map(b, a + b))}"}),
        expect![
            "template.spec.a: `[1].map(a, [2].map(b, a + b))` has nested loops: do not nest map, filter, all and exists"
        ],
    );
}

#[test]
fn the_identity_of_an_object_has_no_expressions() {
    for (template, expected) in [
        (
            json!({"apiVersion": "${'v1'}", "kind": "Secret"}),
            expect![
                "template.apiVersion: `${'v1'}` has an expression in apiVersion: write a fixed value: only values can be expressions"
            ],
        ),
        (
            json!({"apiVersion": "v1", "kind": "${'Secret'}"}),
            expect![
                "template.kind: `${'Secret'}` has an expression in kind: write a fixed value: only values can be expressions"
            ],
        ),
        (
            json!({"apiVersion": "v1", "kind": "X", "metadata": {"namespace": "${claim.metadata.namespace}"}}),
            expect![
                "template.metadata.namespace: `${claim.metadata.namespace}` has an expression in metadata.namespace: write a fixed value: only values can be expressions"
            ],
        ),
        (json!({"apiVersion": "v1"}), expect!["template.kind: `` is not a string: write a name"]),
        (json!({"apiVersion": "v1", "kind": 7}), expect!["template.kind: `7` is not a string: write a name"]),
        (json!(["v1"]), expect!["template: `` is not an object: write apiVersion, kind and the rest"]),
    ] {
        expected.assert_eq(&render(&template).expect_err("it must not work"));
    }
}

#[test]
fn no_error_repeats_a_value() {
    let template = single(json!({"a": "${parameters.password + 1}"}));
    let source = Source { template: Some(&template), ..Source::default() };
    let compiled = CompiledClass::compile(&source).expect("it can be read");
    let parameters = json!({"password": "hunter2"});
    let inputs = Inputs { parameters: Some(&parameters), ..Inputs::default() };
    let rendered = format!("{:?}", compiled.render(&inputs));
    assert!(rendered.contains("different types") && !rendered.contains("hunter2"), "{rendered}");
}

fn three() -> Value {
    json!([
        {
            "id": "access",
            "template": {
                "apiVersion": "v1", "kind": "ConfigMap",
                "data": {"host": "${objects.server.status.host}", "net": "${objects.network.metadata.name}"},
            },
        },
        {
            "id": "server",
            "ready": "object.status.phase == 'Running'",
            "template": {
                "apiVersion": "example.org/v1", "kind": "Server",
                "spec": {"network": "${objects.network.status.id}", "size": "${parameters.size}"},
            },
        },
        {
            "id": "network",
            "template": {"apiVersion": "example.org/v1", "kind": "Network", "spec": {"zone": "a"}},
        },
        {
            "id": "monitor",
            "when": "${parameters.monitored}",
            "template": {"apiVersion": "example.org/v1", "kind": "Monitor"},
        },
    ])
}

fn outcome(rendered: &Rendered) -> String {
    match rendered {
        Rendered::Made(object) => {
            format!("made {}", object.get("spec").or(object.get("data")).unwrap_or(&Value::Null))
        }
        Rendered::LeftOut => "left out".to_owned(),
        Rendered::Waits(outputs) => format!("waits for {outputs}"),
        Rendered::Wrong(error) => error.to_string(),
    }
}

#[test]
fn objects_render_in_the_order_of_their_references() {
    let templates = three();
    let source = Source { templates: Some(&templates), ..Source::default() };
    let compiled = CompiledClass::compile(&source).expect("it can be read");
    let ids: Vec<&str> = compiled.ids().map(|id| &**id).collect();
    assert_eq!(ids, ["network", "monitor", "server", "access"]);
    let parameters = json!({"size": 2, "monitored": false});
    let network = json!({"metadata": {"name": "n"}, "status": {"id": "net-1"}});
    let server = json!({"metadata": {"name": "s"}, "status": {"host": "10.0.0.1", "phase": "Running"}});
    let shown = |objects: &[(&str, &Value)]| -> String {
        let objects = objects.iter().map(|(id, object)| ((*id).into(), *object)).collect();
        let inputs = Inputs { parameters: Some(&parameters), objects, ..Inputs::default() };
        let rendered = compiled.render(&inputs);
        rendered.iter().map(|(id, r)| format!("{id}: {}\n", outcome(r))).collect()
    };
    expect![[r#"
        network: made {"zone":"a"}
        monitor: left out
        server: waits for objects.network.status.id
        access: waits for objects.server.status.host, objects.network.metadata.name
    "#]]
    .assert_eq(&shown(&[]));
    expect![[r#"
        network: made {"zone":"a"}
        monitor: left out
        server: made {"network":"net-1","size":2}
        access: waits for objects.server.status.host
    "#]]
    .assert_eq(&shown(&[("network", &network)]));
    expect![[r#"
        network: made {"zone":"a"}
        monitor: left out
        server: made {"network":"net-1","size":2}
        access: made {"host":"10.0.0.1","net":"n"}
    "#]]
    .assert_eq(&shown(&[("network", &network), ("server", &server)]));
    let inputs = Inputs::default();
    let ready = |object: &Value| compiled.is_ready(&inputs, "server", object);
    assert_eq!(ready(&server), Some(Ok(true)));
    assert_eq!(ready(&json!({"status": {"phase": "Booting"}})), Some(Ok(false)));
    assert_eq!(ready(&json!({})), Some(Ok(false)), "what has not spoken is not ready");
    assert_eq!(compiled.is_ready(&inputs, "network", &network), None);
}

#[test]
fn cycles_and_unknown_or_duplicate_ids_are_refused() {
    let object = |id: &str, value: &str| json!({"id": id, "template": {"apiVersion": "v1", "kind": "X", "spec": {"v": value}}});
    for (templates, expected) in [
        (
            json!([
                object("a", "${objects.b.x}"),
                object("b", "${objects.c.x}"),
                object("c", "${objects.a.x}")
            ]),
            expect!["templates: `a -> b -> c -> a` is a cycle: remove one of these references"],
        ),
        (
            json!([object("a", "${objects.a.x}")]),
            expect!["templates: `a -> a` is a cycle: remove one of these references"],
        ),
        (
            json!([object("a", "${objects.z.x}")]),
            expect![
                "templates[0].template.spec.v: `objects.z.x` names objects.z.x, and there is no z: use one of a"
            ],
        ),
        (
            json!([object("a", "1"), object("a", "2")]),
            expect!["templates[1].id: `a` is used twice: give each object its own id"],
        ),
        (json!([{"template": {}}]), expect!["templates[0]: `` has no id: name it"]),
        (
            json!([{"id": "a"}]),
            expect!["templates[0].template: `` is not an object: write apiVersion, kind and the rest"],
        ),
    ] {
        let source = Source { templates: Some(&templates), ..Source::default() };
        let error = CompiledClass::compile(&source).map(drop).expect_err("it must not work");
        expected.assert_eq(&error.to_string());
    }
}

#[test]
fn a_connection_has_the_keys_that_are_known() {
    let template = single(json!({}));
    let connection = json!({
        "host": "${objects.main.status.endpoint.address}",
        "port": "${objects.main.status.endpoint.port}",
        "database": "app-${claim.metadata.name}",
        "provider": "example",
    });
    let source = Source { template: Some(&template), connection: Some(&connection), ..Source::default() };
    let compiled = CompiledClass::compile(&source).expect("it can be read");
    let (claim, object) = (claim(), json!({"status": {"endpoint": {"address": "db.example.org"}}}));
    let objects = BTreeMap::from([("main".into(), &object)]);
    let inputs = Inputs { claim: Some(&claim), objects, ..Inputs::default() };
    let connection = compiled.connection().expect("it has one");
    let made = connection.prepare(&inputs, None).expect("nothing is wrong with it");
    let values: Vec<String> = made.values.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(values, ["database=\"app-orders\"", "host=\"db.example.org\"", "provider=\"example\""]);
    let waits: Vec<_> = made.waits.iter().map(|(key, outputs)| format!("{key} for {outputs}")).collect();
    assert_eq!(waits, ["port for objects.main.status.endpoint.port"]);
}

#[test]
fn keys_from_the_secret_are_deferred_with_only_their_inputs() {
    let template = single(json!({}));
    let connection = json!({
        "host": "${objects.main.status.host}",
        "password": "${secret.password}",
        "dsn": "pg://${secret.user}@${objects.main.status.host}/${claim.metadata.name}",
        "secretRef": {"name": "${objects.main.metadata.name}-app"},
    });
    let source = Source { template: Some(&template), connection: Some(&connection), ..Source::default() };
    let compiled = CompiledClass::compile(&source).expect("it can be read");
    let object =
        json!({"metadata": {"name": "db-1"}, "spec": {"big": 1}, "status": {"host": "h", "other": 2}});
    let claim = claim();
    let objects = BTreeMap::from([("main".into(), &object)]);
    let inputs = Inputs { claim: Some(&claim), objects, ..Inputs::default() };
    let connection = compiled.connection().expect("it has one");
    let prepared = connection.prepare(&inputs, None).expect("nothing is wrong with it");
    assert_eq!(prepared.secret.as_ref().map(|s| s.name.as_str()), Some("db-1-app"));
    assert_eq!(prepared.values.keys().collect::<Vec<_>>(), ["host"]);
    let travels =
        json!({"claim": {"metadata": {"name": "orders"}}, "objects": {"main": {"status": {"host": "h"}}}});
    assert_eq!(prepared.inputs, travels);
    let secret =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let whole = complete(&prepared, &secret(&[("user", "app"), ("password", "p")])).expect("complete");
    assert_eq!(json!(whole), json!({"dsn": "pg://app@h/orders", "host": "h", "password": "p"}));
    let part = complete(&prepared, &secret(&[("user", "app")])).expect("what is not there is left out");
    assert_eq!(part.keys().collect::<Vec<_>>(), ["dsn", "host"]);
}

#[test]
fn an_object_that_renders_too_large_is_refused() {
    let big = "x".repeat(60_000);
    let parameters = json!({ "big": big });
    let template = single(
        json!({"a": "${parameters.big}${parameters.big}${parameters.big}${parameters.big}${parameters.big}"}),
    );
    let source = Source { template: Some(&template), ..Source::default() };
    let compiled = CompiledClass::compile(&source).expect("it can be read");
    let inputs = Inputs { parameters: Some(&parameters), ..Inputs::default() };
    let rendered = compiled.render(&inputs).remove(0).1;
    expect!["template: `` is larger than 256 KiB when rendered: make it smaller"]
        .assert_eq(&outcome(&rendered));
}

#[test]
fn inputs_that_are_too_large_are_refused() {
    let parameters = json!({"tags": vec![0; 40_000]});
    let template = single(json!({"a": "${parameters.tags.map(t, t + 1)}"}));
    let source = Source { template: Some(&template), ..Source::default() };
    let compiled = CompiledClass::compile(&source).expect("it can be read");
    let inputs = Inputs { parameters: Some(&parameters), ..Inputs::default() };
    let rendered = compiled.render(&inputs).remove(0).1;
    expect!["inputs: `parameters` is larger than 256 KiB: make it smaller"].assert_eq(&outcome(&rendered));
}
