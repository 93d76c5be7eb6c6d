//! `conductor import`: turns an existing object into a resource that claims can bind. Conductor records the object and
//! never owns it: whatever becomes of the resource, it does not delete the object.

use crate::args::ImportArguments;
use crate::{cluster, output};
use anyhow::{Context, Result, bail, ensure};
use conductor::api::names;
use conductor::model::{Capacity, Kind, Object, ObjectKey, PartKind, TypeId, Version};
use conductor_controller::AdminClient;
use serde_json::{Map, Value, json};
use std::io::Write;

const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;

/// `conductor import`.
pub fn import(arguments: &ImportArguments) -> Result<()> {
    let system = arguments.cluster.system_namespace.as_str();
    let import = Import::read(arguments)?;
    cluster::block_on(async {
        let (client, _) = cluster::connect(&arguments.cluster).await?;
        let resources = conductor_controller::list(&client, Kind::Resource(TYPE), None, system).await?;
        let admin = AdminClient::new(client);
        let found = import.check(&admin, &resources).await?;
        let mut out = output::stdout();
        if arguments.dry_run {
            writeln!(out, "# dry run: would create this resource")?;
            write!(
                out,
                "{}",
                serde_saphyr::to_string(&import.resource(&found))
                    .context("the resource cannot be written as YAML")?
            )?;
            if !found.publishable {
                let (secret, label) = (&import.secret, names::PUBLISHABLE);
                writeln!(
                    out,
                    "# dry run: would add to Secret {system}/{secret} the label {label}: \"true\""
                )?;
            }
            return Ok(out.flush()?);
        }
        import.apply(&admin, &found).await?;
        let done = if found.exists { "is imported already, as" } else { "imported as" };
        writeln!(out, "{} {} {done} {}", import.kind, import.at.name, import.name)?;
        Ok(out.flush()?)
    })
}

/// A requested import, validated as far as possible without a cluster.
struct Import {
    kind: PartKind,
    /// The existing object.
    at: ObjectKey,
    name: String,
    system: String,
    secret: String,
    spec: Value,
}

/// The state of the cluster that the import depends on.
struct Found {
    uid: String,
    /// Whether the Secret has the label that allows publishing it.
    publishable: bool,
    /// Whether an earlier import has created the resource.
    exists: bool,
}

impl Import {
    fn read(arguments: &ImportArguments) -> Result<Import> {
        let (api_version, kind) = arguments
            .kind
            .rsplit_once('/')
            .with_context(|| format!("{} is not a kind: write group/version/Kind", arguments.kind))?;
        let (Some(host), Some(database), Some(secret)) =
            (&arguments.host, &arguments.database, &arguments.secret)
        else {
            bail!(
                "--host, --database and --secret are required: without them, no application could use a bound claim. The \
                 Secret is in namespace {} and has username and password",
                arguments.cluster.system_namespace
            );
        };
        let port = arguments.port.or_else(|| port_of(&arguments.engine));
        let port = port.with_context(|| {
            format!("--port is required: engine {} has no known default port", arguments.engine)
        })?;
        let connection = json!({"host": host, "port": port, "database": database, "secretRef": secret});
        let mut spec =
            json!({"engine": arguments.engine, "reclaimPolicy": "Retain", "connection": connection});
        if let Some(version) = &arguments.version {
            Version::parse(version).context("--version")?;
            spec["version"] = Value::from(version.as_str());
        }
        if !arguments.capacity.is_empty() {
            let amounts =
                arguments.capacity.iter().map(|(name, amount)| (name.clone(), Value::from(amount.as_str())));
            let amounts = Value::Object(amounts.collect::<Map<_, _>>());
            Capacity::parse(TYPE.rules().primary_capacity, &amounts).context("--capacity")?;
            spec["capacity"] = amounts;
        }
        if let Some(class) = &arguments.class {
            spec["class"] = Value::from(class.as_str());
        }
        let system = arguments.cluster.system_namespace.clone();
        let namespace = arguments.namespace.clone().unwrap_or_else(|| system.clone());
        Ok(Import {
            kind: PartKind::new(api_version, kind),
            at: ObjectKey::new(namespace, arguments.name.as_str()),
            name: arguments.name_as.clone().unwrap_or_else(|| arguments.name.clone()),
            secret: secret.clone(),
            system,
            spec,
        })
    }

    async fn check(&self, admin: &AdminClient, resources: &[Object]) -> Result<Found> {
        let Import { kind, at, .. } = self;
        let object = admin.read(kind, at).await?.with_context(|| format!("{kind} {at} does not exist"))?;
        let uid = text(&object, "/metadata/uid").to_owned();
        if let Some(resource) = owner(&object, resources) {
            bail!("{kind} {at} was provisioned by Conductor: {}", ownership(resource));
        }
        let other =
            resources.iter().find(|r| self.refers(r, &uid) && r.metadata.name.as_ref() != Some(&self.name));
        if let Some(other) = other {
            bail!(
                "{kind} {at} is imported already, as {}",
                other.metadata.name.as_deref().unwrap_or_default()
            );
        }
        let same = resources.iter().find(|r| r.metadata.name.as_ref() == Some(&self.name));
        let exists = same.is_some_and(|r| self.is_import_of(r, &uid));
        if let Some(other) =
            same.filter(|_| exists).and_then(|found| difference(&found.body["spec"], &self.spec, "spec"))
        {
            let system = &self.system;
            bail!(
                "{kind} {at} is imported already, with another {other}: change it with kubectl -n {system} edit rdb {}",
                self.name
            );
        }
        ensure!(
            same.is_none() || exists,
            "RelationalDatabase {} exists: choose another name with --as",
            self.name
        );
        Ok(Found { uid, publishable: self.check_secret(admin).await?, exists })
    }

    fn refers(&self, resource: &Object, uid: &str) -> bool {
        let recorded =
            resource.body.pointer("/status/implementationRef/uid").and_then(Value::as_str) == Some(uid);
        recorded || self.is_import_of(resource, uid)
    }

    fn is_import_of(&self, resource: &Object, uid: &str) -> bool {
        let annotations = resource.metadata.annotations.as_ref();
        annotations.and_then(|a| a.get(names::IMPORTED)).is_some_and(|imported| imported == uid)
    }

    /// Refuses a Secret that cannot be published or has no login; returns whether its label allows publishing already.
    /// It checks that the values exist and uses them for nothing else.
    async fn check_secret(&self, admin: &AdminClient) -> Result<bool> {
        let key = self.secret_key();
        let secret = admin.read(&secret_kind(), &key).await?;
        let secret = secret
            .with_context(|| format!("Secret {key} does not exist: create it, with username and password"))?;
        let of_kubernetes = text(&secret, "/type").starts_with("kubernetes.io/");
        ensure!(
            !of_kubernetes,
            "Secret {key} is of type {}, which Conductor never publishes: copy its login to an Opaque Secret",
            text(&secret, "/type")
        );
        for name in ["username", "password"] {
            let value = secret.pointer("/data").and_then(|data| data.get(name)).and_then(Value::as_str);
            ensure!(value.is_some_and(|value| !value.is_empty()), "Secret {key} has no key {name}: add it");
        }
        let labels = secret.pointer("/metadata/labels");
        Ok(labels.and_then(|l| l.get(names::PUBLISHABLE)).and_then(Value::as_str) == Some("true"))
    }

    fn secret_key(&self) -> ObjectKey {
        ObjectKey::new(self.system.as_str(), self.secret.as_str())
    }

    fn resource(&self, found: &Found) -> Value {
        let kind = Kind::Resource(TYPE);
        json!({
            "apiVersion": kind.api_version(), "kind": kind.name(),
            "metadata": {"name": self.name, "namespace": self.system, "annotations": {names::IMPORTED: found.uid}},
            "spec": self.spec,
        })
    }

    /// Labels the Secret first: a resource that exists before its Secret may be published would bind and not be ready.
    async fn apply(&self, admin: &AdminClient, found: &Found) -> Result<()> {
        if !found.publishable {
            let label = json!({"metadata": {"labels": {names::PUBLISHABLE: "true"}}});
            admin.patch(&secret_kind(), &self.secret_key(), &label).await?;
        }
        let kind = Kind::Resource(TYPE);
        let kind = PartKind::new(kind.api_version().as_str(), kind.name());
        if !found.exists {
            admin.create(&kind, &self.system, &self.resource(found)).await?;
        }
        let Import { kind: implementation, at, .. } = self;
        let status = json!({"status": {"phase": "Available", "implementationRef": {
            "apiVersion": &*implementation.api_version, "kind": &*implementation.kind,
            "namespace": &*at.namespace, "name": &*at.name, "uid": found.uid,
        }}});
        let key = ObjectKey::new(self.system.as_str(), self.name.as_str());
        admin.patch_status(&kind, &key, &status).await?;
        Ok(())
    }
}

/// The resource that an object was provisioned for, if that still exists. An object that was retained when its resource
/// was deleted is unowned, whatever its labels say.
fn owner<'a>(object: &Value, resources: &'a [Object]) -> Option<&'a Object> {
    let uid = object.pointer("/metadata/annotations")?.get(names::RESOURCE_UID)?.as_str()?;
    resources.iter().find(|resource| resource.metadata.uid.as_deref() == Some(uid))
}

/// Why the object of a resource cannot be imported, and what to do.
fn ownership(resource: &Object) -> String {
    let name = resource.metadata.name.as_deref().unwrap_or_default();
    let retained = text(&resource.body, "/spec/reclaimPolicy") != "Delete";
    match text(&resource.body, "/status/phase") {
        "Released" if retained => {
            format!(
                "resource {name} is Released and still owns it. Delete that resource first: it retains the object"
            )
        }
        _ => format!("resource {name} owns it"),
    }
}

/// The first field whose existing value differs from the requested one.
fn difference(existing: &Value, requested: &Value, path: &str) -> Option<String> {
    match (existing, requested) {
        (Value::Object(existing), Value::Object(requested)) => {
            requested.iter().find_map(|(name, requested)| {
                difference(existing.get(name).unwrap_or(&Value::Null), requested, &format!("{path}.{name}"))
            })
        }
        _ if existing == requested => None,
        (Value::Null, _) => Some(format!("{path} (unset, not {requested})")),
        _ => Some(format!("{path} ({existing}, not {requested})")),
    }
}

/// The default port of an engine.
fn port_of(engine: &str) -> Option<u16> {
    match engine.to_ascii_lowercase().as_str() {
        "mysql" | "mariadb" => Some(3306),
        "postgres" | "postgresql" => Some(5432),
        _ => None,
    }
}

fn secret_kind() -> PartKind {
    PartKind::new("v1", "Secret")
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_an_owner_only_while_its_resource_exists() {
        let resource = |phase: &str| Object {
            kind: Kind::Resource(TYPE),
            metadata: serde_json::from_value(json!({"name": "rdb-1", "uid": "u-1"})).expect("it is metadata"),
            body: json!({"spec": {"reclaimPolicy": "Retain"}, "status": {"phase": phase}}),
        };
        let provisioned = |uid: &str| json!({"metadata": {"labels": {names::PART: "main"}, "annotations": {names::RESOURCE_UID: uid}}});
        let resources = [resource("Bound")];
        assert!(owner(&provisioned("u-1"), &resources).is_some());
        assert!(owner(&provisioned("u-0"), &resources).is_none(), "its resource was deleted");
        assert!(owner(&json!({"metadata": {}}), &resources).is_none());
        assert_eq!(ownership(&resources[0]), "resource rdb-1 owns it");
        assert!(ownership(&resource("Released")).contains("Delete that resource first"));
    }

    #[test]
    fn a_different_host_is_reported_with_its_field() {
        let existing = json!({"connection": {"host": "a", "port": 1}, "claimRefs": [{}]});
        assert_eq!(difference(&existing, &json!({"connection": {"host": "a"}}), "spec"), None);
        assert_eq!(
            difference(&existing, &json!({"connection": {"host": "b"}}), "spec").as_deref(),
            Some(r#"spec.connection.host ("a", not "b")"#)
        );
        assert_eq!(
            difference(&existing, &json!({"class": "gold"}), "spec").as_deref(),
            Some(r#"spec.class (unset, not "gold")"#)
        );
    }
}
