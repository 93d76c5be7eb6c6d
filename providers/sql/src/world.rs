//! What is there, as last seen: claims, resources, servers and records, each followed by a watch that keeps a copy.
//! Nothing is taken away on the word of a copy.

use super::desk::record_name;
use super::follow::{self, Followed, Occasion, Part, Told, WatchReport};
use super::mirror::{Key, Mirror};
use conductor::api::database::logical::{LogicalDatabaseSpec, ServerKind, ServerRef};
use conductor::api::database::{GROUP, ON_SERVER, UNDELETE};
use conductor::api::names::RESOURCE_UID;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// What changed.
#[derive(Clone, Debug)]
pub(super) enum Wake {
    Claim(Arc<DynamicObject>),
    Resource(Arc<DynamicObject>),
    Server(ServerKind, Arc<DynamicObject>),
    /// A list was read anew: whatever happened while nobody watched concerns everybody.
    Everything,
    Record(Arc<DynamicObject>),
}

/// A claim that holds a resource on a server.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub claim: Arc<DynamicObject>,
    pub resource: Arc<DynamicObject>,
    pub server: ServerRef,
}

/// What is there.
#[derive(Clone)]
pub(super) struct World {
    namespace: String,
    occasion: Occasion,
    claims: Mirror,
    resources: Mirror,
    servers: Mirror,
    locals: Mirror,
    records: Mirror,
}

/// How a kind is served.
pub(super) fn kind(group: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1alpha1", kind), plural)
}

pub(super) fn claims() -> ApiResource {
    kind("storage.conductor.io", "RelationalDatabaseClaim", "relationaldatabaseclaims")
}

pub(super) fn resources() -> ApiResource {
    kind("storage.conductor.io", "RelationalDatabase", "relationaldatabases")
}

pub(super) fn classes() -> ApiResource {
    kind("storage.conductor.io", "RelationalDatabaseClass", "relationaldatabaseclasses")
}

fn records() -> ApiResource {
    kind(GROUP, "LogicalDatabase", "logicaldatabases")
}

pub(super) fn servers(of: ServerKind) -> ApiResource {
    match of {
        ServerKind::DatabaseServer => kind(GROUP, "DatabaseServer", "databaseservers"),
        ServerKind::LocalServer => kind(GROUP, "LocalServer", "localservers"),
    }
}

impl World {
    /// Begins to follow everything. What changes is told to `wakes`.
    pub fn follow(
        client: &Client,
        namespace: &str,
        report: WatchReport,
        wakes: &mpsc::UnboundedSender<Wake>,
        tasks: &mut JoinSet<()>,
    ) -> World {
        let occasion = Occasion::none(report);
        let mut follow = |followed: Followed, wake: fn(Arc<DynamicObject>) -> Wake| {
            let told = Told { wakes, change: wake, everything: || Wake::Everything };
            follow::follow(client, &occasion, followed, told, tasks)
        };
        let home = || Some(namespace.to_owned());
        let claims = Followed { kind: claims(), home: None, keys: keys_of_claim, part: Part::Waits };
        let resources =
            Followed { kind: resources(), home: home(), keys: keys_of_resource, part: Part::Waits };
        let records = Followed { kind: records(), home: home(), keys: keys_of_record, part: Part::Gives };
        let of_kind =
            |kind| Followed { kind: servers(kind), home: home(), keys: keys_of_server, part: Part::Gives };
        World {
            claims: follow(claims, Wake::Claim),
            resources: follow(resources, Wake::Resource),
            servers: follow(of_kind(ServerKind::DatabaseServer), |object| {
                Wake::Server(ServerKind::DatabaseServer, object)
            }),
            locals: follow(of_kind(ServerKind::LocalServer), |object| {
                Wake::Server(ServerKind::LocalServer, object)
            }),
            records: follow(records, Wake::Record),
            namespace: namespace.to_owned(),
            occasion,
        }
    }

    /// What claims and resources are followed for.
    pub fn occasion(&self) -> &Occasion {
        &self.occasion
    }

    /// Waits until servers and records have been listed once.
    pub async fn wait_for_servers(&self) {
        for mirror in [&self.servers, &self.locals, &self.records] {
            mirror.wait_until_listed().await;
        }
    }

    /// Waits until everything has been listed once, which is not before there is an occasion to.
    pub async fn wait_until_listed(&self) {
        self.wait_for_servers().await;
        for mirror in [&self.claims, &self.resources] {
            mirror.wait_until_listed().await;
        }
    }

    /// The databases, by id, that a change concerns. Most claims and resources are on no server: they concern nobody.
    pub fn concerned(&self, wake: &Wake) -> BTreeSet<String> {
        match wake {
            Wake::Record(record) => id_of(record).into_iter().collect(),
            Wake::Claim(claim) => {
                let uid = claim.uid().unwrap_or_default();
                let mut ids = ids(self.records.by(&Key::Claim(uid.clone())));
                if self.is_database(&uid) {
                    ids.insert(uid);
                }
                ids
            }
            Wake::Resource(resource) => {
                let mut ids = ids(self.records.by(&Key::Resource(resource.name_any())));
                ids.extend(holders(resource).into_iter().filter(|uid| self.is_database(uid)));
                ids
            }
            Wake::Server(kind, server) => {
                let on_it = on_server(*kind, &server.name_any());
                let mut resources = self.resources.by(&on_it);
                if let Some(uid) = server.annotations().get(RESOURCE_UID) {
                    resources.extend(self.resources.by(&Key::Uid(uid.clone())));
                }
                let mut ids = ids(self.records.by(&on_it));
                ids.extend(resources.iter().flat_map(|resource| holders(resource)));
                ids
            }
            Wake::Everything => {
                let mut ids = ids(self.records.all());
                let resources = self.resources.all();
                let on_servers = resources.iter().filter(|resource| self.server_of(resource).is_some());
                ids.extend(on_servers.flat_map(|resource| holders(resource)));
                ids
            }
        }
    }

    /// Whether a database of this id is on record, or a claim of this UID is to have one.
    fn is_database(&self, id: &str) -> bool {
        self.record(id).is_some() || self.assignment(id).is_some()
    }

    /// The claim of this UID, the resource that it holds and the server that this is on, where there are all three.
    pub fn assignment(&self, claim_uid: &str) -> Option<Assignment> {
        let held = self.resources.by(&Key::Claim(claim_uid.to_owned()));
        let on_server = |resource: Arc<DynamicObject>| Some((self.server_of(&resource)?, resource));
        let (server, resource) = held.into_iter().find_map(on_server)?;
        let claim = self.claims.first(&Key::Uid(claim_uid.to_owned()))?;
        Some(Assignment { claim, resource, server })
    }

    /// The server that a resource is on: the one that it names, or the one that was made for it.
    fn server_of(&self, resource: &DynamicObject) -> Option<ServerRef> {
        if let Some(named) = resource.annotations().get(ON_SERVER) {
            let (kind, name) = named.split_once('/')?;
            let kind = [ServerKind::DatabaseServer, ServerKind::LocalServer]
                .into_iter()
                .find(|k| k.word() == kind)?;
            return Some(ServerRef { kind, name: name.to_owned() });
        }
        let made_for = Key::MadeFor(resource.uid()?);
        let mirrors = [(ServerKind::DatabaseServer, &self.servers), (ServerKind::LocalServer, &self.locals)];
        mirrors
            .into_iter()
            .find_map(|(kind, mirror)| Some(ServerRef { kind, name: mirror.first(&made_for)?.name_any() }))
    }

    /// A server, as last seen.
    pub fn server(&self, server: &ServerRef) -> Option<Arc<DynamicObject>> {
        match server.kind {
            ServerKind::DatabaseServer => self.servers.find(&self.namespace, &server.name),
            ServerKind::LocalServer => self.locals.find(&self.namespace, &server.name),
        }
    }

    /// Every server.
    pub fn servers(&self) -> Vec<(ServerRef, Arc<DynamicObject>)> {
        let named = |kind: ServerKind, mirror: &Mirror| {
            let refer =
                move |object: Arc<DynamicObject>| (ServerRef { kind, name: object.name_any() }, object);
            mirror.all().into_iter().map(refer).collect::<Vec<_>>()
        };
        let mut all = named(ServerKind::DatabaseServer, &self.servers);
        all.extend(named(ServerKind::LocalServer, &self.locals));
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all
    }

    /// A resource, as last seen.
    pub fn resource(&self, name: &str) -> Option<Arc<DynamicObject>> {
        self.resources.find(&self.namespace, name)
    }

    /// The resource that a server was made for.
    pub fn resource_of_server(&self, server: &DynamicObject) -> Option<Arc<DynamicObject>> {
        self.resources.first(&Key::Uid(server.annotations().get(RESOURCE_UID)?.clone()))
    }

    /// A database that was asked back for the claim of this namespace and name, and is on another server than this one:
    /// the server's name.
    pub fn undeleted_elsewhere(&self, (namespace, name): (&str, &str), server: &ServerRef) -> Option<String> {
        let asked_back = self.records.by(&Key::ClaimNamed(format!("{namespace}/{name}")));
        asked_back.into_iter().find_map(|record| {
            let of: ServerRef = serde_json::from_value(record.data.pointer("/spec/server")?.clone()).ok()?;
            (of != *server).then(|| format!("{} {}", of.kind.word(), of.name))
        })
    }

    /// A resource that takes no claims yet, and whose server has a database that was restored for a claim of this namespace
    /// and name.
    pub fn closed_resource_of_restored(&self, namespace: &str, name: &str) -> Option<String> {
        let restored = self.records.by(&Key::ClaimNamed(format!("{namespace}/{name}")));
        restored.into_iter().find_map(|record| {
            let resource = self.resources.first(&Key::Uid(text(&record, "/spec/resource/uid").to_owned()))?;
            (text(&resource, "/status/phase") == "Released").then(|| resource.name_any())
        })
    }

    /// A database that somebody asked back for a claim of this name on this server.
    pub fn undeleted(&self, claim: &DynamicObject, server: &ServerRef) -> Option<Arc<DynamicObject>> {
        let (namespace, name) = (claim.namespace().unwrap_or_default(), claim.name_any());
        let asked_back = self.records.by(&Key::ClaimNamed(format!("{namespace}/{name}")));
        asked_back.into_iter().find(|record| {
            text(record, "/spec/server/name") == server.name
                && text(record, "/spec/server/kind") == server.kind.word()
        })
    }

    /// A claim, as last seen.
    pub fn claim(&self, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        self.claims.find(namespace, name)
    }

    /// The record of a claim's database.
    pub fn record_of(&self, claim_uid: &str) -> Option<Arc<DynamicObject>> {
        self.records.first(&Key::Claim(claim_uid.to_owned()))
    }

    /// The record of this id.
    pub fn record(&self, id: &str) -> Option<Arc<DynamicObject>> {
        self.records.first(&Key::Id(id.to_owned()))
    }

    /// The server that a database is on, or will be.
    pub fn server_of_database(&self, id: &str) -> Option<ServerRef> {
        match self.records.find(&self.namespace, &record_name(id)) {
            Some(record) => serde_json::from_value(record.data.pointer("/spec/server")?.clone()).ok(),
            None => self.assignment(id).map(|assignment| assignment.server),
        }
    }

    /// Whether some database is this claim's.
    pub fn has_record_of(&self, claim_uid: &str) -> bool {
        self.record_of(claim_uid).is_some()
    }

    /// The id of another database that was made under this name on the server, whatever became of it: while a database
    /// is in quarantine it has another name there, and can be restored only where its own is free.
    pub fn reserved_by(&self, server: &ServerRef, name: &str, id: &str) -> Option<String> {
        let on_it = self.records.by(&on_server(server.kind, &server.name));
        let holder = on_it.iter().find(|record| {
            text(record, "/spec/databaseName") == name
                && text(record, "/spec/id") != id
                && !text(record, "/status/createdAt").is_empty()
        });
        holder.and_then(|record| id_of(record))
    }

    /// The records of databases on a server.
    pub fn records_on(&self, server: &ServerRef) -> Vec<LogicalDatabaseSpec> {
        let on_it = self.records.by(&on_server(server.kind, &server.name));
        let read =
            |record: &Arc<DynamicObject>| serde_json::from_value(record.data.get("spec")?.clone()).ok();
        on_it.iter().filter_map(read).collect()
    }

    /// The records of databases that were made on a server.
    pub fn made_on(&self, server: &ServerRef) -> Vec<LogicalDatabaseSpec> {
        let on_it = self.records.by(&on_server(server.kind, &server.name));
        let made = on_it.iter().filter(|record| !text(record, "/status/createdAt").is_empty());
        made.filter_map(|record| serde_json::from_value(record.data.get("spec")?.clone()).ok()).collect()
    }

    /// How many databases are on record.
    pub fn record_count(&self) -> usize {
        self.records.len()
    }
}

/// What is on this server, as the annotation of a resource says it.
fn on_server(kind: ServerKind, name: &str) -> Key {
    Key::Server(format!("{}/{name}", kind.word()))
}

fn keys_of_claim(claim: &DynamicObject) -> Vec<Key> {
    claim.uid().map(Key::Uid).into_iter().collect()
}

fn keys_of_resource(resource: &DynamicObject) -> Vec<Key> {
    let server = resource.annotations().get(ON_SERVER).cloned().map(Key::Server);
    let holders = holders(resource).into_iter().map(Key::Claim);
    resource.uid().map(Key::Uid).into_iter().chain(server).chain(holders).collect()
}

fn keys_of_server(server: &DynamicObject) -> Vec<Key> {
    server.annotations().get(RESOURCE_UID).cloned().map(Key::MadeFor).into_iter().collect()
}

fn keys_of_record(record: &DynamicObject) -> Vec<Key> {
    let read = |pointer: &str| text(record, pointer).to_owned();
    let mut keys = vec![
        Key::Id(read("/spec/id")),
        Key::Claim(read("/spec/claim/uid")),
        Key::Resource(read("/spec/resource/name")),
        Key::Server(format!("{}/{}", read("/spec/server/kind"), read("/spec/server/name"))),
    ];
    if record.annotations().get(UNDELETE).is_some_and(|value| value == "true") {
        let claim = format!("{}/{}", read("/spec/claim/namespace"), read("/spec/claim/name"));
        keys.push(Key::ClaimNamed(claim));
    }
    keys
}

fn ids(records: Vec<Arc<DynamicObject>>) -> BTreeSet<String> {
    records.iter().filter_map(|record| id_of(record)).collect()
}

/// What of a server concerns the databases on it: what it is told to be, where it is, whether it is well. Figures that
/// move with every look are left out: they would be news to nobody.
pub(super) fn words_of_server(server: &DynamicObject) -> Value {
    let status = |field: &str| server.data.pointer(&format!("/status/{field}")).cloned().unwrap_or_default();
    let is_going = server.metadata.deletion_timestamp.is_some();
    json!([
        server.metadata.generation,
        is_going,
        status("host"),
        status("port"),
        status("identity"),
        status("conditions/0/status")
    ])
}

/// The UIDs of the claims that hold a resource.
pub(super) fn holders(resource: &DynamicObject) -> Vec<String> {
    let refs = resource.data.pointer("/spec/claimRefs").and_then(Value::as_array).into_iter().flatten();
    refs.filter_map(|reference| reference.get("uid")?.as_str()).map(str::to_owned).collect()
}

pub(super) fn text<'a>(object: &'a DynamicObject, pointer: &str) -> &'a str {
    object.data.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn id_of(record: &DynamicObject) -> Option<String> {
    Some(text(record, "/spec/id").to_owned()).filter(|id| !id.is_empty())
}
