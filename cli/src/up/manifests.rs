//! `-f`: manifests of any kind, read before anything starts, applied server-side in an order that works: definitions,
//! then namespaces, then the rest as written. A namespace that an object names and that does not exist is created.

use super::{MANAGER, definitions, namespaces};
use crate::output;
use anyhow::{Context, Result, anyhow, bail};
use conductor_simulator::load::written_versions;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, oneshot};
use kube::{Api, Client};
use serde_json::{Value, json};
use serde_saphyr::{MessageFormatter, UserMessageFormatter};
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// One object, and the file that contains it.
#[derive(Clone, Debug)]
pub struct Manifest {
    object: Value,
    file: String,
}

impl Manifest {
    fn text(&self, at: &str) -> &str {
        self.object.pointer(at).and_then(Value::as_str).unwrap_or_default()
    }

    /// Moves the object to another namespace.
    pub fn move_to(&mut self, namespace: &str) {
        self.object["metadata"]["namespace"] = Value::from(namespace);
    }

    /// Restricts the class of this name to one version.
    pub fn offer_version(&mut self, class: &str, version: &str) {
        if self.text("/metadata/name") == class {
            self.object["version"] = Value::from(version);
        }
    }

    /// Kind, namespace and name, for messages.
    fn named(&self) -> String {
        let (kind, namespace, name) =
            (self.text("/kind"), self.text("/metadata/namespace"), self.text("/metadata/name"));
        match namespace {
            "" => format!("{kind} {name}"),
            _ => format!("{kind} {namespace}/{name}"),
        }
    }

    fn rank(&self) -> u8 {
        match self.text("/kind") {
            "CustomResourceDefinition" => 0,
            "Namespace" => 1,
            _ => 2,
        }
    }
}

/// Reads files, directories and `-`.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Manifest>> {
    let mut found = Vec::new();
    for path in paths {
        for file in files(path)? {
            let text = match file.as_os_str() == "-" {
                true => std::io::read_to_string(std::io::stdin().take(1 << 30)),
                false => fs::read_to_string(&file),
            };
            let shown = file.display().to_string();
            let text = text.with_context(|| format!("-f {shown}: cannot be read"))?;
            found.extend(parse(&text, &shown)?);
        }
    }
    found.sort_by_key(Manifest::rank);
    Ok(found)
}

/// Reads the objects of a text.
pub fn parse(text: &str, file: &str) -> Result<Vec<Manifest>> {
    // No snippet of the lines around the error: they may be a Secret's.
    let options = serde_saphyr::options! { with_snippet: false };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
        let place = error.location().map(|at| format!(":{}:{}", at.line(), at.column()));
        let why = UserMessageFormatter.format_message(&error);
        anyhow!("-f {file}{}: not YAML or JSON as kubectl reads it: {why}", place.unwrap_or_default())
    })?;
    let mut found = Vec::new();
    for document in documents {
        flatten(document, file, &mut found)?;
    }
    for warning in rounded(text, &found) {
        output::diagnostic_once(&format!("warning: -f {file}:{warning}"));
    }
    // A stable sort keeps the written order within a rank.
    found.sort_by_key(Manifest::rank);
    Ok(found)
}

/// Warns about unquoted versions that lose digits: `kubectl apply` sends them as numbers too.
fn rounded(text: &str, found: &[Manifest]) -> Vec<String> {
    let written = written_versions(text).into_iter();
    let warnings = written.filter_map(|written| {
        let hit = |manifest: &Manifest| Some((manifest.named(), written.rounded_in(&manifest.object)?));
        let (object, version) = found.iter().find_map(hit)?;
        Some(format!("{}: {object}: {version}", written.line))
    });
    warnings.collect()
}

fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let listed = fs::read_dir(path).with_context(|| format!("-f {}: cannot be listed", path.display()))?;
    let mut inside: Vec<PathBuf> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
    inside.sort();
    let mut found = Vec::new();
    for path in inside {
        let is_manifest =
            path.extension().is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|e| ending == *e));
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if is_manifest {
            found.push(path);
        }
    }
    Ok(found)
}

/// Flattens lists, and skips empty documents.
fn flatten(document: Value, file: &str, found: &mut Vec<Manifest>) -> Result<()> {
    if document.is_null() {
        return Ok(());
    }
    let is_list =
        document["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) && document["items"].is_array();
    if let (true, Some(items)) = (is_list, document["items"].as_array()) {
        return items.iter().try_for_each(|item| flatten(item.clone(), file, found));
    }
    let manifest = Manifest { object: document, file: file.to_owned() };
    let missing =
        ["/apiVersion", "/kind", "/metadata/name"].into_iter().find(|at| manifest.text(at).is_empty());
    match missing {
        Some(at) => bail!("-f {file}: {}: needs {}", manifest.named().trim(), at[1..].replace('/', ".")),
        None => {
            found.push(manifest);
            Ok(())
        }
    }
}

/// Applies manifests, creates the namespaces that they name, and reports each step.
pub async fn apply(client: &Client, manifests: &[Manifest], say: &dyn Fn(&str) -> Result<()>) -> Result<()> {
    let mut existing: BTreeSet<String> = BTreeSet::new();
    for manifest in manifests {
        let at = |error: anyhow::Error| error.context(format!("-f {}: {}", manifest.file, manifest.named()));
        let mut object = manifest.object.clone();
        let resource = discover(client, &mut object).await.map_err(at)?;
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        if !namespace.is_empty() && existing.insert(namespace.clone()) {
            create_namespace(client, &namespace, say).await.map_err(at)?;
        }
        put(client, &resource, &object).await.map_err(at)?;
        say(&format!("applied   {}", manifest.named()))?;
    }
    Ok(())
}

/// Finds the object's API resource, and fills in its namespace if it needs one.
async fn discover(client: &Client, object: &mut Value) -> Result<ApiResource> {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let wanted = GroupVersionKind::gvk(group, version, &kind);
    let unknown = |why: String| {
        anyhow!("the API does not serve {api_version} {kind}: apply its CustomResourceDefinition too ({why})")
    };
    let found = oneshot::pinned_kind(client, &wanted).await;
    let (resource, capabilities) = found.map_err(|error| unknown(api_message(&error)))?;
    if capabilities.scope == Scope::Namespaced && object["metadata"]["namespace"].is_null() {
        object["metadata"]["namespace"] = Value::from("default");
    }
    Ok(resource)
}

async fn create_namespace(client: &Client, name: &str, say: &dyn Fn(&str) -> Result<()>) -> Result<()> {
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &namespaces());
    if all.get_opt(name).await?.is_some() {
        return Ok(());
    }
    say(&format!("applied   Namespace {name}, which an object names and did not exist"))?;
    put(client, &namespaces(), &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
        .await
}

/// Applies one object, and takes over fields that other managers changed.
pub async fn put(client: &Client, resource: &ApiResource, object: &Value) -> Result<()> {
    let mut object = object.clone();
    // Controllers write the status, not users; kubectl omits it as well.
    if let Some(fields) = object.as_object_mut().filter(|_| resource.plural != definitions().plural) {
        fields.remove("status");
    }
    let name = object["metadata"]["name"].as_str().ok_or_else(|| anyhow!("no metadata.name"))?.to_owned();
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let applied = api.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&object)).await;
    applied.map_err(|error| anyhow!(api_message(&error)))?;
    Ok(())
}

/// The API server's own message; the client's Display adds its internal form.
fn api_message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(refused) => refused.message.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_flattened_and_definitions_come_first() {
        let mut found = Vec::new();
        let list = json!({"kind": "List", "items": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}},
            {"apiVersion": "x/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "d"}},
        ]});
        flatten(list, "x.yaml", &mut found).unwrap();
        found.sort_by_key(Manifest::rank);
        let named: Vec<String> = found.iter().map(Manifest::named).collect();
        assert_eq!(named, ["CustomResourceDefinition d", "Namespace n", "ConfigMap a"]);
    }

    #[test]
    fn a_version_that_loses_digits_is_reported() {
        let text = "apiVersion: x/v1\nkind: Db\nmetadata: {name: a}\nspec: {version: 5.10}\n";
        let object =
            json!({"apiVersion": "x/v1", "kind": "Db", "metadata": {"name": "a"}, "spec": {"version": 5.1}});
        let found = [Manifest { object, file: "x.yaml".to_owned() }];
        let warning = "4: Db a: spec.version: 5.10 without quotes is the number 5.1; quote it: \"5.10\"";
        assert_eq!(rounded(text, &found), [warning]);
    }

    #[test]
    fn a_malformed_secret_is_not_quoted() {
        for text in [
            "kind: Secret\nstringData:\n  password hunter2-long\n  x: y\n",
            "kind: Secret\nstringData: {password: \"hunter2-long\n",
            "kind: Secret\nstringData:\n  password: hunter2-long\n x: [\n",
        ] {
            let error = format!("{:#}", parse(text, "x.yaml").unwrap_err());
            assert!(error.starts_with("-f x.yaml:") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn an_object_without_a_name_is_reported_with_its_file() {
        let error =
            flatten(json!({"apiVersion": "v1", "kind": "Secret"}), "x.yaml", &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "-f x.yaml: Secret: needs metadata.name");
    }
}
