//! The install manifests on a real API server: all of it is accepted as it would be installed, and the rights
//! are those that the table names, by the server's own authoriser. No image is built and no pod runs here.

use conductor_controlplane::{ControlPlane, Part};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, thread};

const CONTROLLER: &str = "system:serviceaccount:conductor-system:conductor";
const SYSTEM: &str = "conductor-system";
/// A user of no other right than those of this group.
const OWNER_GROUP: &str = "group:application-owners";
const STORAGE: &str = "storage.conductor.io";
const OURS: &str = "conductor.io";
const CLAIMS: &str = "relationaldatabaseclaims";
const RESOURCES: &str = "relationaldatabases";
const CLASSES: &str = "relationaldatabaseclasses";

fn root(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

fn path(under: &str) -> String {
    root(under).display().to_string()
}

/// Every YAML file under `deploy/`, the optional ones too, as (file, object).
fn manifests() -> Vec<(String, Value)> {
    let folders = ["deploy", "deploy/optional"];
    let files = folders.iter().flat_map(|folder| fs::read_dir(root(folder)).unwrap());
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "yaml"));
    files.sort();
    files
        .iter()
        .flat_map(|file| {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            let objects: Vec<Value> =
                serde_saphyr::from_multiple(&fs::read_to_string(file).unwrap()).unwrap();
            objects.into_iter().map(move |object| (name.clone(), object))
        })
        .collect()
}

#[test]
fn no_rule_has_a_wildcard_and_only_publishing_gives_secrets() {
    let mut rules = 0;
    for (file, object) in manifests() {
        for rule in object["rules"].as_array().into_iter().flatten() {
            rules += 1;
            for word in ["apiGroups", "resources", "verbs", "resourceNames"] {
                for value in rule[word].as_array().into_iter().flatten().filter_map(Value::as_str) {
                    assert!(!value.contains('*'), "{file}: {word} has a wildcard: {rule}");
                    assert!(value != "secrets" || file.starts_with("publishing-"), "{file}: {rule}");
                    let grabs = ["escalate", "bind", "impersonate"].contains(&value);
                    assert!(!grabs, "{file}: {value} gives every other right: {rule}");
                }
            }
        }
    }
    assert!(rules > 15, "only {rules} rules were found");
}

/// Who may list or watch Secrets may read all of them: that is given in the system namespace only.
#[test]
fn no_role_shows_all_secrets_of_another_namespace() {
    let mut roles = 0;
    for (file, object) in manifests() {
        let is_system = object["kind"] == "Role" && object["metadata"]["namespace"] == SYSTEM;
        for rule in object["rules"].as_array().into_iter().flatten() {
            let has = |word: &str, value: &str| {
                rule[word].as_array().into_iter().flatten().any(|known| known.as_str() == Some(value))
            };
            if has("resources", "secrets") {
                roles += 1;
                let shows = ["list", "watch", "deletecollection"].into_iter().find(|verb| has("verbs", verb));
                assert!(is_system || shows.is_none(), "{file}: {shows:?} on secrets: {rule}");
            }
        }
    }
    assert_eq!(roles, 2, "for the system namespace, for each namespace that is granted");
}

#[test]
fn kustomize_lists_every_file_that_is_not_optional() {
    let list: Value =
        serde_saphyr::from_str(&fs::read_to_string(root("deploy/Kustomization")).unwrap()).unwrap();
    let listed = list["resources"].as_array().unwrap().iter().filter_map(Value::as_str);
    let mut listed: Vec<String> = listed.filter(|name| *name != "../crds").map(str::to_owned).collect();
    let files = fs::read_dir(root("deploy")).unwrap().map(|file| file.unwrap().file_name());
    let files = files.map(|name| name.to_string_lossy().into_owned());
    let mut files: Vec<String> = files.filter(|name| name.ends_with(".yaml")).collect();
    listed.sort();
    files.sort();
    assert_eq!(listed, files);
}

/// `(where, group/resource, verb)`: every right of the controller's account, as the manifests give it.
fn given_rights() -> BTreeSet<(String, String, String)> {
    let objects: Vec<Value> = manifests().into_iter().map(|(_, object)| object).collect();
    let mut given = BTreeSet::new();
    for binding in objects.iter().filter(|o| o["subjects"][0]["name"] == "conductor") {
        let place = match binding["metadata"]["namespace"].as_str() {
            Some(SYSTEM) => "system namespace",
            Some(_) => "granted namespace",
            // The option to grant every namespace at once has no rights of its own.
            None if binding["metadata"]["name"] == "conductor-namespace-publisher" => continue,
            None => "cluster",
        };
        let role = objects.iter().find(|o| {
            o["kind"] == binding["roleRef"]["kind"]
                && o["metadata"]["name"] == binding["roleRef"]["name"]
                && (o["kind"] == "ClusterRole"
                    || o["metadata"]["namespace"] == binding["metadata"]["namespace"])
        });
        let rules = role.expect("a binding names a role of deploy/")["rules"].as_array().cloned();
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(|v| Some(v.as_str()?.to_owned())).collect()
        };
        for rule in rules.into_iter().flatten() {
            let name = texts(&rule["resourceNames"]).first().map(|n| format!(" {n}")).unwrap_or_default();
            for (resource, verb) in texts(&rule["resources"])
                .iter()
                .flat_map(|r| texts(&rule["verbs"]).into_iter().map(move |v| (r.clone(), v)))
            {
                given.insert((place.to_owned(), format!("{resource}{name}"), verb));
            }
        }
    }
    given
}

/// The page lists every right and no other: who reads it knows what the controller's token can do.
#[test]
fn the_page_lists_every_right_of_the_controller() {
    let page = fs::read_to_string(root("docs/install.md")).unwrap();
    let table = page.split("\n| where | on | verbs | because |\n").nth(1).expect("the table of rights");
    let mut listed = BTreeSet::new();
    for line in table.lines().skip(1).take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        for resource in cells[1].split(", ") {
            for verb in cells[2].split(' ') {
                listed.insert((cells[0].to_owned(), resource.replace('`', ""), verb.to_owned()));
            }
        }
    }
    let given = given_rights();
    let unlisted: Vec<_> = given.difference(&listed).collect();
    let untrue: Vec<_> = listed.difference(&given).collect();
    assert!(unlisted.is_empty() && untrue.is_empty(), "not listed: {unlisted:#?}\nnot given: {untrue:#?}");
}

/// `--allow-kinds` of the Deployment has every kind that an adapter knows, and nothing that is a wildcard.
#[test]
fn the_deployment_names_the_kinds_that_may_be_made() {
    let deployment = manifests().into_iter().find(|(file, _)| file == "deployment.yaml").unwrap().1;
    let arguments =
        deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap().clone();
    let allowed: BTreeSet<String> = arguments
        .iter()
        .filter_map(|argument| argument.as_str()?.strip_prefix("--allow-kinds=").map(str::to_owned))
        .collect();
    let mut known = BTreeSet::new();
    for file in fs::read_dir(root("policies/adapters")).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        let adapter: Value = serde_saphyr::from_str(&text).unwrap();
        let groups = adapter["group"].as_array().cloned().unwrap_or_else(|| vec![adapter["group"].clone()]);
        known.extend(
            groups
                .iter()
                .map(|group| format!("{}.{}", adapter["kind"].as_str().unwrap(), group.as_str().unwrap())),
        );
    }
    assert_eq!(allowed, known);
}

/// The port of metrics is open to namespaces that are labelled for it, and to no other.
#[test]
fn metrics_are_reached_from_labelled_namespaces_only() {
    let policies: Vec<Value> =
        manifests().into_iter().map(|(_, o)| o).filter(|o| o["kind"] == "NetworkPolicy").collect();
    assert_eq!(policies.len(), 1);
    for rule in policies[0]["spec"]["ingress"].as_array().unwrap() {
        let from = rule["from"].as_array().expect("a rule without `from` admits every source");
        let is_labelled =
            |peer: &Value| peer["namespaceSelector"]["matchLabels"]["conductor.io/monitoring"] == "true";
        assert!(!from.is_empty() && from.iter().all(is_labelled), "{rule}");
    }
}

/// One control plane serves all of it.
#[test]
fn a_real_api_server_takes_the_installation_and_gives_the_least_rights() {
    let mut plane = ControlPlane::start().unwrap();
    // Roles are aggregated by Kubernetes' own controllers.
    plane.start_part(Part::ControllerManager).unwrap();
    run(&plane, &["apply", "--server-side", "-k", &path("crds")]);
    run(&plane, &["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]);
    run(&plane, &["apply", "--server-side", "-f", &path("deploy/namespace.yaml")]);
    dry_run(&plane);
    for file in ["controller-roles.yaml", "implementation-roles.yaml", "people-roles.yaml"] {
        run(&plane, &["apply", "--server-side", "-f", &path(&format!("deploy/{file}"))]);
    }
    rights(&plane, "the controller", &controller_rights());
    run(&plane, &["apply", "--server-side", "-f", &path("deploy/publishing-roles.yaml")]);
    eventually(&plane, "the controller that may publish nowhere yet", &no_publishing_rights());
    bind_people(&plane);
    run(&plane, &["apply", "-f", &path("deploy/optional/publishing-in-a-namespace.yaml")]);
    eventually(&plane, "the controller that publishes in one namespace", &publishing_rights("other"));
    eventually(&plane, "people", &people_rights());
    run(&plane, &["apply", "-f", &path("deploy/optional/application-owners.yaml")]);
    eventually(&plane, "application owners who may read resources", &owner_rights());
    advice(&plane);
    run(&plane, &["apply", "-f", &path("deploy/optional/publishing-in-every-namespace.yaml")]);
    eventually(&plane, "the controller that publishes everywhere", &publishing_rights(""));
    run(&plane, &["apply", "-f", &path("deploy/optional/implementation-cloudnative-pg.yaml")]);
    eventually(&plane, "an implementation that was added", &implementation_rights());
}

#[track_caller]
fn run(plane: &ControlPlane, arguments: &[&str]) -> String {
    let output = plane.kubectl(arguments).unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "kubectl {}: {err}{out}", arguments.join(" "));
    format!("{out}{err}")
}

/// The server validates, defaults and admits everything, and stores nothing. Both ways of installing.
fn dry_run(plane: &ControlPlane) {
    let server = ["apply", "--server-side", "--dry-run=server", "--validate=strict"];
    let by_kustomize = run(plane, &[&server[..], &["-k", &path("deploy")]].concat());
    let by_file = run(plane, &[&server[..], &["-f", &path("deploy")]].concat());
    let optional = path("deploy/optional/implementation-cloudnative-pg.yaml");
    run(plane, &[&server[..], &["-f", &optional]].concat());
    for object in ["deployment.apps/conductor", "poddisruptionbudget.policy/conductor", "service/conductor"] {
        assert!(by_kustomize.contains(object), "{object} is not in:\n{by_kustomize}");
        assert!(by_file.contains(object), "{object} is not in:\n{by_file}");
    }
    // The namespace's own admission would refuse the pods: it warns about their template.
    for said in [&by_kustomize, &by_file] {
        assert!(!said.to_lowercase().contains("warning"), "{said}");
    }
    service_monitor(plane, &server);
}

/// Its kind belongs to the Prometheus Operator: a definition with the same names stands in.
fn service_monitor(plane: &ControlPlane, server: &[&str]) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
        "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced", "versions": [version],
            "names": {"kind": "ServiceMonitor", "plural": "servicemonitors"}},
    });
    let output = plane.kubectl_with_input(&["create", "-f", "-"], &definition.to_string()).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    run(plane, &["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]);
    let file = path("deploy/optional/service-monitor.yaml");
    run(plane, &[server, &["-f", &file]].concat());
    let selector = |object: &Value| object["spec"]["selector"]["matchLabels"].clone();
    let objects: BTreeMap<String, Value> =
        manifests().into_iter().map(|(_, o)| (o["kind"].as_str().unwrap().to_owned(), o)).collect();
    // What no server checks: that the parts mean each other.
    let pod = &objects["Deployment"]["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&selector(&objects["PodDisruptionBudget"]), pod);
    assert_eq!(&objects["Service"]["spec"]["selector"], pod);
    assert_eq!(&objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"], pod);
    assert_eq!(selector(&objects["ServiceMonitor"]), objects["Service"]["metadata"]["labels"]);
    assert_eq!(objects["Deployment"]["spec"]["replicas"], 2);
}

/// One question to the authoriser, and the answer that is wanted.
#[derive(Clone, Copy)]
struct Right {
    user: &'static str,
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    /// Empty means the whole cluster.
    namespace: &'static str,
    name: &'static str,
    allowed: bool,
}

/// `(verbs, group, resources, namespace, name, allowed)` for one user, spread out.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str, bool);

fn spread(user: &'static str, rows: &[Row]) -> Vec<Right> {
    let mut rights = Vec::new();
    for &(verbs, group, resources, namespace, name, allowed) in rows {
        for resource in resources.split(' ') {
            let right = |verb| Right { user, verb, group, resource, namespace, name, allowed };
            rights.extend(verbs.split(' ').map(right));
        }
    }
    rights
}

const READ: &str = "get list watch";
const WRITE: &str = "create update patch delete deletecollection";
const EVERYTHING: &str = "get list watch create update patch delete deletecollection";

fn controller_rights() -> Vec<Right> {
    spread(
        CONTROLLER,
        &[
            // What it lives on.
            ("get list watch patch", STORAGE, CLAIMS, "", "", true),
            ("patch", STORAGE, "relationaldatabaseclaims/status", "", "", true),
            (READ, OURS, "claimquotas clusterclaimquotas claimlimits schedulingprofiles", "", "", true),
            ("patch", OURS, "claimquotas/status clusterclaimquotas/status", "", "", true),
            (READ, "", "namespaces", "", "", true),
            ("create patch", "events.k8s.io", "events", "shop", "", true),
            ("get list watch create patch delete", STORAGE, RESOURCES, SYSTEM, "", true),
            ("patch", STORAGE, "relationaldatabases/status", SYSTEM, "", true),
            ("get list watch patch", STORAGE, CLASSES, SYSTEM, "", true),
            ("create", "coordination.k8s.io", "leases", SYSTEM, "", true),
            ("get update patch", "coordination.k8s.io", "leases", SYSTEM, "conductor", true),
            // Claims are their owners' to make and remove.
            ("create update delete deletecollection", STORAGE, CLAIMS, "shop", "", false),
            // Resources and classes elsewhere are not its own.
            (EVERYTHING, STORAGE, RESOURCES, "shop", "", false),
            // Every authenticated user may read classes.
            (READ, STORAGE, CLASSES, "shop", "", true),
            (WRITE, STORAGE, CLASSES, "shop", "", false),
            ("deletecollection update", STORAGE, RESOURCES, SYSTEM, "", false),
            ("create update delete", STORAGE, CLASSES, SYSTEM, "", false),
            (WRITE, OURS, "claimquotas clusterclaimquotas claimlimits schedulingprofiles", "shop", "", false),
            (WRITE, "", "namespaces", "", "", false),
            // Other people's leases, above all those of Kubernetes itself.
            ("get update patch delete", "coordination.k8s.io", "leases", SYSTEM, "other", false),
            (EVERYTHING, "coordination.k8s.io", "leases", "kube-system", "conductor", false),
            ("delete list", "coordination.k8s.io", "leases", SYSTEM, "conductor", false),
            // Permissions that a binder must not have.
            (EVERYTHING, "", "secrets", "", "", false),
            (EVERYTHING, "", "secrets", SYSTEM, "", false),
            (EVERYTHING, "", "pods configmaps serviceaccounts", SYSTEM, "", false),
            ("create", "", "pods/exec serviceaccounts/token", SYSTEM, "", false),
            (EVERYTHING, "apps", "deployments", SYSTEM, "", false),
            (EVERYTHING, "rbac.authorization.k8s.io", "roles rolebindings", SYSTEM, "", false),
            (EVERYTHING, "rbac.authorization.k8s.io", "clusterroles clusterrolebindings", "", "", false),
            (EVERYTHING, "apiextensions.k8s.io", "customresourcedefinitions", "", "", false),
            (WRITE, "admissionregistration.k8s.io", "validatingadmissionpolicies", "", "", false),
            (EVERYTHING, "postgresql.cnpg.io", "clusters", SYSTEM, "", false),
            ("*", "*", "*", "", "", false),
            ("*", "*", "*", SYSTEM, "", false),
            ("*", STORAGE, "*", SYSTEM, "", false),
        ],
    )
}

/// A viewer and an editor of the namespace `shop`, an administrator of classes in the system namespace.
fn bind_people(plane: &ControlPlane) {
    run(plane, &["create", "namespace", "shop"]);
    for (role, user, namespace) in [
        ("view", "viewer", "shop"),
        ("edit", "editor", "shop"),
        ("admin", "owner", "shop"),
        ("conductor-class-administrator", "dba", SYSTEM),
    ] {
        let (role, user) = (format!("--clusterrole={role}"), format!("--user={user}"));
        run(plane, &["create", "rolebinding", &user[7..], &role, &user, "-n", namespace]);
    }
}

fn people_rights() -> Vec<Right> {
    let viewer = spread(
        "viewer",
        &[
            (READ, STORAGE, CLAIMS, "shop", "", true),
            (READ, OURS, "claimquotas claimlimits", "shop", "", true),
            // What is offered, for `conductor get classes` and `conductor get quotas`.
            (READ, STORAGE, CLASSES, SYSTEM, "", true),
            (READ, OURS, "clusterclaimquotas schedulingprofiles", "", "", true),
            (READ, STORAGE, RESOURCES, SYSTEM, "", false),
            (WRITE, STORAGE, CLASSES, SYSTEM, "", false),
            (WRITE, STORAGE, CLAIMS, "shop", "", false),
            (READ, STORAGE, CLAIMS, "other", "", false),
        ],
    );
    let writers = ["editor", "owner"].into_iter().flat_map(|user| {
        spread(
            user,
            &[
                (EVERYTHING, STORAGE, CLAIMS, "shop", "", true),
                (READ, OURS, "claimquotas claimlimits", "shop", "", true),
                // Its status belongs to the controller; quotas and limits bind the writer.
                ("update patch", STORAGE, "relationaldatabaseclaims/status", "shop", "", false),
                (WRITE, OURS, "claimquotas claimlimits", "shop", "", false),
                (EVERYTHING, STORAGE, RESOURCES, "shop", "", false),
                (WRITE, STORAGE, CLASSES, "shop", "", false),
                (WRITE, STORAGE, CLAIMS, "other", "", false),
            ],
        )
    });
    let administrator = spread(
        "dba",
        &[
            (EVERYTHING, STORAGE, "relationaldatabaseclasses relationaldatabases", SYSTEM, "", true),
            ("update patch", STORAGE, "relationaldatabases/status", SYSTEM, "", false),
            (READ, "", "secrets", SYSTEM, "", false),
            (WRITE, STORAGE, CLAIMS, "shop", "", false),
        ],
    );
    viewer.into_iter().chain(writers).chain(administrator).collect()
}

/// What it has before a namespace is granted: nothing of an application can be written, and no Secret read.
fn no_publishing_rights() -> Vec<Right> {
    spread(
        CONTROLLER,
        &[
            (READ, "", "configmaps services", "", "", true),
            (READ, "discovery.k8s.io", "endpointslices", "", "", true),
            (WRITE, "", "configmaps services", "shop", "", false),
            (WRITE, "", "configmaps services", SYSTEM, "", false),
            (WRITE, "discovery.k8s.io", "endpointslices", "shop", "", false),
            (EVERYTHING, "", "secrets", "shop", "", false),
            (EVERYTHING, "", "secrets", "kube-system", "", false),
            ("get list watch create update delete", "", "secrets", SYSTEM, "", true),
            ("patch deletecollection", "", "secrets", SYSTEM, "", false),
        ],
    )
}

/// What it has in a namespace that is granted; `denied` is one that is not, where there is any.
fn publishing_rights(denied: &'static str) -> Vec<Right> {
    let mut rows = vec![
        ("get list watch create update delete", "", "configmaps services", "shop", "", true),
        // One Secret at a time, outside the system namespace.
        ("get create update delete", "", "secrets", "shop", "", true),
        ("list watch patch deletecollection", "", "secrets", "shop", "", false),
        ("list watch patch deletecollection", "", "secrets", "kube-system", "", false),
        ("list watch patch deletecollection", "", "secrets", "", "", false),
        ("get list watch create update delete", "", "secrets", SYSTEM, "", true),
        ("patch deletecollection", "", "secrets", SYSTEM, "", false),
        ("get list watch create update delete", "discovery.k8s.io", "endpointslices", "shop", "", true),
        ("patch deletecollection", "", "configmaps services", "shop", "", false),
        (EVERYTHING, "", "pods serviceaccounts endpoints", "shop", "", false),
        ("create", "", "serviceaccounts/token pods/exec", "shop", "", false),
    ];
    match denied {
        "" => rows.push(("get create update delete", "", "secrets configmaps services", "", "", true)),
        _ => {
            rows.push((EVERYTHING, "", "secrets", denied, "", false));
            rows.push((WRITE, "", "configmaps services", denied, "", false));
        }
    }
    spread(CONTROLLER, &rows)
}

/// A member of the group that optional/application-owners.yaml names.
fn owner_rights() -> Vec<Right> {
    spread(
        OWNER_GROUP,
        &[
            (READ, STORAGE, RESOURCES, SYSTEM, "", true),
            (WRITE, STORAGE, "relationaldatabases relationaldatabaseclasses", SYSTEM, "", false),
            (READ, STORAGE, CLAIMS, "shop", "", false),
            (READ, "", "secrets", SYSTEM, "", false),
        ],
    )
}

fn implementation_rights() -> Vec<Right> {
    let clusters = "clusters";
    spread(
        CONTROLLER,
        &[
            ("get list watch create patch delete", "postgresql.cnpg.io", clusters, SYSTEM, "", true),
            ("update deletecollection", "postgresql.cnpg.io", clusters, SYSTEM, "", false),
            (EVERYTHING, "postgresql.cnpg.io", clusters, "shop", "", false),
            (EVERYTHING, "postgresql.cnpg.io", "backups poolers", SYSTEM, "", false),
        ],
    )
}

/// What kubectl prints when something is written that is ignored where it is, or whose version may have lost a digit. The
/// policy is in force a little later than it is written.
fn advice(plane: &ControlPlane) {
    run(plane, &["apply", "--server-side", "-f", &path("deploy/admission-policy.yaml")]);
    let warnings = |namespace: &str, kind: &str, more: Value| {
        let mut object = json!({"apiVersion": "storage.conductor.io/v1alpha1", "kind": kind,
            "metadata": {"name": "advised", "namespace": namespace}});
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let dry = ["apply", "--server-side", "--dry-run=server", "-f", "-"];
        let output = plane.kubectl_with_input(&dry, &object.to_string()).unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        said
    };
    let (class, resource, claim) =
        ("RelationalDatabaseClass", "RelationalDatabase", "RelationalDatabaseClaim");
    let ignored = "is read in the system namespace only, not in default";
    let until = Instant::now() + Duration::from_secs(60);
    while !warnings("default", class, json!({})).contains(ignored) && Instant::now() < until {
        thread::sleep(Duration::from_millis(200));
    }
    let quotes = "write it in quotes, because 5.10 without them is 5.1";
    let version = |version: Value| json!({"spec": {"engine": "mysql", "version": version}});
    for (namespace, kind, more, expected) in [
        ("default", class, json!({"engine": "mysql"}), vec![ignored]),
        ("default", class, json!({"version": 5.1}), vec![ignored, "version is the number 5.1", quotes]),
        (SYSTEM, class, json!({"engine": "mysql"}), vec![]),
        ("default", resource, version(json!(5.1)), vec![ignored, "spec.version is the number 5.1", quotes]),
        (SYSTEM, resource, version(json!("5.10")), vec![]),
        ("default", claim, version(json!(5.1)), vec!["spec.version is the number 5.1", quotes]),
        ("default", claim, version(json!(15)), vec![]),
    ] {
        let said = warnings(namespace, kind, more);
        assert_eq!(
            said.to_lowercase().contains("warning"),
            !expected.is_empty(),
            "{namespace} {kind}: {said}"
        );
        for expected in expected {
            assert!(said.contains(expected), "{namespace} {kind}: {said}");
        }
    }
}

/// Roles are aggregated, and reach the authorizer, a little later than they are written.
fn eventually(plane: &ControlPlane, whose: &str, table: &[Right]) {
    let until = Instant::now() + Duration::from_secs(60);
    while !wrong(plane, table).is_empty() && Instant::now() < until {
        thread::sleep(Duration::from_millis(200));
    }
    rights(plane, whose, table);
}

fn rights(plane: &ControlPlane, whose: &str, table: &[Right]) {
    let wrong = wrong(plane, table);
    println!("permissions of {whose}: {} checked", table.len());
    assert!(wrong.is_empty(), "rights of {whose}:\n{}", wrong.join("\n"));
}

/// The questions whose answer is not the one wanted. `kubectl auth can-i`, all in one call.
fn wrong(plane: &ControlPlane, table: &[Right]) -> Vec<String> {
    let list =
        json!({"apiVersion": "v1", "kind": "List", "items": table.iter().map(review).collect::<Vec<_>>()});
    let output = plane.kubectl_with_input(&["create", "-f", "-", "-o", "json"], &list.to_string()).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    let answers: Vec<Value> = answers.map(Result::unwrap).collect();
    assert_eq!(answers.len(), table.len());
    let pairs = table.iter().zip(&answers);
    pairs
        .filter(|(right, answer)| answer["status"]["allowed"] != right.allowed)
        .map(|(right, answer)| {
            let Right { user, verb, group, resource, namespace, name, allowed } = right;
            let wanted = if *allowed { "must" } else { "must not" };
            format!(
                "{user} {wanted} {verb} {resource}.{group} in '{namespace}' '{name}': {}",
                answer["status"]
            )
        })
        .collect()
}

fn review(right: &Right) -> Value {
    let Right { user, verb, group, resource, namespace, name, allowed: _ } = right;
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let groups = match user.strip_prefix("system:serviceaccount:") {
        Some(_) => json!([
            "system:serviceaccounts",
            format!("system:serviceaccounts:{SYSTEM}"),
            "system:authenticated"
        ]),
        None => match user.strip_prefix("group:") {
            Some(group) => json!([group, "system:authenticated"]),
            None => json!(["system:authenticated"]),
        },
    };
    json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": groups, "resourceAttributes": {
            "verb": verb, "group": group, "resource": resource, "subresource": subresource,
            "namespace": namespace, "name": name,
        }},
    })
}
