//! `conductor grant`: the rights that publishing needs in named namespaces, as manifests. They are made from those in
//! `deploy/optional`, so that both say the same; no cluster is asked.

use crate::args::GrantArguments;
use crate::output;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::Write;

/// The rights of the controller in one namespace.
const PUBLISHING: &str = include_str!("../../deploy/optional/publishing-in-a-namespace.yaml");
/// The rights of application owners in the system namespace.
const OWNERS: &str = include_str!("../../deploy/optional/application-owners.yaml");

/// Prints them.
pub fn print(arguments: &GrantArguments) -> Result<()> {
    let mut out = output::stdout();
    for (at, object) in objects(arguments)?.iter().enumerate() {
        if at > 0 {
            writeln!(out, "---")?;
        }
        let text = serde_saphyr::to_string(object).context("a right cannot be written as YAML")?;
        out.write_all(text.as_bytes())?;
    }
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
        // One binding for each, so that a later grant takes nobody's right away.
        let prefix = kind.to_lowercase();
        binding["metadata"]["name"] = Value::from(format!("conductor-resource-reader:{prefix}:{name}"));
        binding["metadata"]["namespace"] = Value::from(system_namespace.as_str());
        binding["subjects"] = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}]);
        objects.push(binding);
    }
    Ok(objects)
}

fn read(manifest: &str) -> Result<Value> {
    serde_saphyr::from_str(manifest).context("a manifest of deploy/optional cannot be read")
}

/// A name that no namespace can have would only be found when it is applied.
fn check(namespace: &str) -> Result<()> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name = !namespace.is_empty()
        && namespace.len() <= 63
        && namespace.chars().all(is_inner)
        && !namespace.starts_with('-')
        && !namespace.ends_with('-');
    if !is_name {
        bail!("{namespace:?} is no name of a namespace: lower-case letters, digits and - only");
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
    fn every_namespace_gets_a_binding_of_its_own() {
        let objects = granted(&["shop", "blog"], &["shop-team"]).expect("they are names");
        let places: Vec<&Value> = objects.iter().map(|object| &object["metadata"]["namespace"]).collect();
        assert_eq!(places, ["shop", "blog", "system"]);
        assert_eq!(objects[0]["subjects"][0]["namespace"], "system");
        assert_eq!(objects[2]["subjects"][0]["name"], "shop-team");
    }

    #[test]
    fn what_is_no_name_of_a_namespace_is_refused() {
        for name in ["", "Shop", "a b", "-a", "a\nb"] {
            assert!(granted(&[name], &[]).is_err(), "{name:?}");
        }
    }
}
