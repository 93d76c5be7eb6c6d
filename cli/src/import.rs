//! `conductor import`: something that exists becomes a resource that claims can have. It is looked at and recorded,
//! never owned: whatever becomes of the resource, Conductor does not delete what was imported.

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
    let wanted = Wanted::read(arguments)?;
    cluster::block_on(async {
        let (client, _) = cluster::connect(&arguments.cluster).await?;
        let resources = conductor_controller::list(&client, Kind::Resource(TYPE), None, system).await?;
        let admin = AdminClient::new(client);
        let found = wanted.look(&admin, &resources).await?;
        let mut out = output::stdout();
        if arguments.dry_run {
            writeln!(out, "# this would be created; nothing was")?;
            write!(out, "{}", serde_saphyr::to_string(&wanted.resource(&found)).context("no YAML")?)?;
            if !found.publishable {
                let (secret, label) = (&wanted.secret, names::PUBLISHABLE);
                writeln!(out, "# Secret {system}/{secret} would get the label {label}: \"true\"")?;
            }
            return Ok(out.flush()?);
        }
        wanted.carry_out(&admin, &found).await?;
        let done = if found.made { "is imported already, as" } else { "imported as" };
        writeln!(out, "{} {} {done} {}", wanted.kind, wanted.at.name, wanted.name)?;
        Ok(out.flush()?)
    })
}

/// What is asked for, checked as far as that needs no cluster.
struct Wanted {
    kind: PartKind,
    /// Where what exists is.
    at: ObjectKey,
    name: String,
    system: String,
    secret: String,
    spec: Value,
}

/// What the cluster says of it.
struct Found {
    uid: String,
    /// Whether the Secret may be published already.
    publishable: bool,
    /// Whether an earlier try has made the resource.
    made: bool,
}

impl Wanted {
    fn read(arguments: &ImportArguments) -> Result<Wanted> {
        let (api_version, kind) = arguments
            .kind
            .rsplit_once('/')
            .with_context(|| format!("{}: write the kind as group/version/Kind", arguments.kind))?;
        let (Some(host), Some(database), Some(secret)) =
            (&arguments.host, &arguments.database, &arguments.secret)
        else {
            bail!(
                "without --host, --database and --secret a claim that is bound to it could never be used: say where \
                 it is reached, and which Secret in {} has its username and password",
                arguments.cluster.system_namespace
            );
        };
        let port = arguments.port.or_else(|| port_of(&arguments.engine));
        let port =
            port.with_context(|| format!("--port: {} has no port that is known here", arguments.engine))?;
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
        Ok(Wanted {
            kind: PartKind::new(api_version, kind),
            at: ObjectKey::new(namespace, arguments.name.as_str()),
            name: arguments.name_as.clone().unwrap_or_else(|| arguments.name.clone()),
            secret: secret.clone(),
            system,
            spec,
        })
    }

    async fn look(&self, admin: &AdminClient, resources: &[Object]) -> Result<Found> {
        let Wanted { kind, at, .. } = self;
        let object = admin.read(kind, at).await?.with_context(|| format!("there is no {kind} {at}"))?;
        let uid = text(&object, "/metadata/uid").to_owned();
        if let Some(resource) = maker(&object, resources) {
            bail!("{kind} {at} was made by Conductor, and {}", has_it(resource));
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
        let made = same.is_some_and(|r| self.is_import_of(r, &uid));
        if let Some(other) =
            same.filter(|_| made).and_then(|found| difference(&found.body["spec"], &self.spec, "spec"))
        {
            let system = &self.system;
            bail!(
                "{kind} {at} is imported already, and there {other}: change it by kubectl -n {system} edit rdb {}",
                self.name
            );
        }
        ensure!(
            same.is_none() || made,
            "a RelationalDatabase {} exists: choose another name by --as",
            self.name
        );
        Ok(Found { uid, publishable: self.check_secret(admin).await?, made })
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

    /// Refuses a Secret that could not be published, or has nothing to publish; says whether it may be already.
    /// Only the names of its keys are looked at.
    async fn check_secret(&self, admin: &AdminClient) -> Result<bool> {
        let key = self.secret_key();
        let secret = admin.read(&secret_kind(), &key).await?;
        let secret = secret
            .with_context(|| format!("there is no Secret {key}: make it, with username and password"))?;
        let of_kubernetes = text(&secret, "/type").starts_with("kubernetes.io/");
        ensure!(
            !of_kubernetes,
            "Secret {key} is of type {}, and such ones are never published",
            text(&secret, "/type")
        );
        for name in ["username", "password"] {
            let there = secret.pointer("/data").and_then(|data| data.get(name)).and_then(Value::as_str);
            ensure!(there.is_some_and(|value| !value.is_empty()), "Secret {key} has no key {name}: add it");
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

    /// The Secret first: a resource that is there before it may be published would be bound and not ready.
    async fn carry_out(&self, admin: &AdminClient, found: &Found) -> Result<()> {
        if !found.publishable {
            let label = json!({"metadata": {"labels": {names::PUBLISHABLE: "true"}}});
            admin.patch(&secret_kind(), &self.secret_key(), &label).await?;
        }
        let kind = Kind::Resource(TYPE);
        let kind = PartKind::new(kind.api_version().as_str(), kind.name());
        if !found.made {
            admin.create(&kind, &self.system, &self.resource(found)).await?;
        }
        let Wanted { kind: implementation, at, .. } = self;
        let status = json!({"status": {"phase": "Available", "implementationRef": {
            "apiVersion": &*implementation.api_version, "kind": &*implementation.kind,
            "namespace": &*at.namespace, "name": &*at.name, "uid": found.uid,
        }}});
        let key = ObjectKey::new(self.system.as_str(), self.name.as_str());
        admin.patch_status(&kind, &key, &status).await?;
        Ok(())
    }
}

/// The resource that an object was made for, where that is still there. What was retained when its resource went is
/// nobody's, whatever its labels say.
fn maker<'a>(object: &Value, resources: &'a [Object]) -> Option<&'a Object> {
    let uid = object.pointer("/metadata/annotations")?.get(names::RESOURCE_UID)?.as_str()?;
    resources.iter().find(|resource| resource.metadata.uid.as_deref() == Some(uid))
}

/// Why what a resource has cannot be imported, and what to do about it.
fn has_it(resource: &Object) -> String {
    let name = resource.metadata.name.as_deref().unwrap_or_default();
    let retained = text(&resource.body, "/spec/reclaimPolicy") != "Delete";
    match text(&resource.body, "/status/phase") {
        "Released" if retained => {
            format!("resource {name} still has it, Released: delete that first. What it retains stays")
        }
        _ => format!("resource {name} has it already"),
    }
}

/// The first field that is there otherwise than it is asked for.
fn difference(there: &Value, asked: &Value, place: &str) -> Option<String> {
    match (there, asked) {
        (Value::Object(there), Value::Object(asked)) => asked.iter().find_map(|(name, asked)| {
            difference(there.get(name).unwrap_or(&Value::Null), asked, &format!("{place}.{name}"))
        }),
        _ if there == asked => None,
        (Value::Null, _) => Some(format!("{place} is not given, not {asked}")),
        _ => Some(format!("{place} is {there}, not {asked}")),
    }
}

/// The port that an engine has unless somebody chose another.
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
    fn what_was_made_is_taken_only_where_its_resource_is_still_there() {
        let resource = |phase: &str| Object {
            kind: Kind::Resource(TYPE),
            metadata: serde_json::from_value(json!({"name": "rdb-1", "uid": "u-1"})).expect("it is metadata"),
            body: json!({"spec": {"reclaimPolicy": "Retain"}, "status": {"phase": phase}}),
        };
        let made = |uid: &str| json!({"metadata": {"labels": {names::PART: "main"}, "annotations": {names::RESOURCE_UID: uid}}});
        let resources = [resource("Bound")];
        assert!(maker(&made("u-1"), &resources).is_some());
        assert!(maker(&made("u-0"), &resources).is_none(), "its resource is gone");
        assert!(maker(&json!({"metadata": {}}), &resources).is_none());
        assert_eq!(has_it(&resources[0]), "resource rdb-1 has it already");
        assert!(has_it(&resource("Released")).contains("delete that first"));
    }

    #[test]
    fn another_host_than_before_is_told_with_its_field() {
        let there = json!({"connection": {"host": "a", "port": 1}, "claimRefs": [{}]});
        assert_eq!(difference(&there, &json!({"connection": {"host": "a"}}), "spec"), None);
        assert_eq!(
            difference(&there, &json!({"connection": {"host": "b"}}), "spec").as_deref(),
            Some(r#"spec.connection.host is "a", not "b""#)
        );
        assert_eq!(
            difference(&there, &json!({"class": "gold"}), "spec").as_deref(),
            Some(r#"spec.class is not given, not "gold""#)
        );
    }
}
