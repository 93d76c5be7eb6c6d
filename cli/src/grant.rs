//! `conductor grant`: RBAC manifests that let the controller publish in named namespaces. They derive from those in
//! `deploy/optional`, so that the two agree; the command calls no cluster.

use crate::args::{CrdFormat, GrantArguments};
use crate::output;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::Write;

/// The controller's permissions in one namespace.
const PUBLISHING: &str = include_str!("../../deploy/optional/publishing-in-a-namespace.yaml");
/// The permissions of application owners in the system namespace.
const OWNERS: &str = include_str!("../../deploy/optional/application-owners.yaml");

/// `conductor grant`.
pub fn print(arguments: &GrantArguments) -> Result<()> {
    let mut out = output::stdout();
    output::manifests(&mut out, CrdFormat::Yaml, &objects(arguments)?)?;
    Ok(out.flush()?)
}

fn objects(arguments: &GrantArguments) -> Result<Vec<Value>> {
    let GrantArguments { namespaces, group, user, system_namespace } = arguments;
    let mut objects = Vec::new();
    for namespace in namespaces.iter().chain([system_namespace]) {
        check(namespace)?;
    }
    for namespace in namespaces {
        let mut binding = read(PUBLISHING)?;
        binding["metadata"]["namespace"] = Value::from(namespace.as_str());
        binding["subjects"][0]["namespace"] = Value::from(system_namespace.as_str());
        if namespace == system_namespace {
            // The binding of that name there is the installation's own.
            binding["metadata"]["name"] = Value::from("conductor-namespace-publisher");
        }
        objects.push(binding);
    }
    let people = group.iter().map(|name| ("Group", name)).chain(user.iter().map(|name| ("User", name)));
    for (kind, name) in people {
        let mut binding = read(OWNERS)?;
        // One binding per subject, so that a later grant revokes no earlier one.
        let prefix = kind.to_lowercase();
        binding["metadata"]["name"] = Value::from(format!("conductor-resource-reader:{prefix}:{name}"));
        binding["metadata"]["namespace"] = Value::from(system_namespace.as_str());
        binding["subjects"] = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}]);
        objects.push(binding);
    }
    Ok(objects)
}

fn read(manifest: &str) -> Result<Value> {
    serde_saphyr::from_str(manifest).context("the built-in manifest of deploy/optional cannot be read")
}

/// Refuses an invalid namespace name, which the API server would reject only when the manifests are applied.
fn check(namespace: &str) -> Result<()> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name = !namespace.is_empty()
        && namespace.len() <= 63
        && namespace.chars().all(is_inner)
        && !namespace.starts_with('-')
        && !namespace.ends_with('-');
    if !is_name {
        bail!("{namespace:?} is not a namespace name: use lower-case letters, digits and -");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(namespaces: &[&str], group: &[&str]) -> Result<Vec<Value>> {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        objects(&GrantArguments {
            namespaces: texts(namespaces),
            group: texts(group),
            user: Vec::new(),
            system_namespace: "system".to_owned(),
        })
    }

    #[test]
    fn every_namespace_gets_its_own_binding() {
        let objects = granted(&["shop", "blog"], &["shop-team"]).expect("they are names");
        let targets: Vec<&Value> = objects.iter().map(|object| &object["metadata"]["namespace"]).collect();
        assert_eq!(targets, ["shop", "blog", "system"]);
        assert_eq!(objects[0]["subjects"][0]["namespace"], "system");
        assert_eq!(objects[2]["subjects"][0]["name"], "shop-team");
    }

    #[test]
    fn an_invalid_namespace_name_is_refused() {
        for name in ["", "Shop", "a b", "-a", "a\nb"] {
            assert!(granted(&[name], &[]).is_err(), "{name:?}");
        }
    }
}
