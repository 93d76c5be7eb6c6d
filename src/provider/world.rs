//! What is there, as last seen: claims, resources, servers and records, each followed by a watch that keeps a copy.
//! Nothing is taken away on the word of a copy.

use super::desk::record_name;
use super::follow::{self, Told};
use crate::api::database::logical::{LogicalDatabaseSpec, ServerKind, ServerRef};
use crate::api::database::{GROUP, ON_SERVER, UNDELETE};
use crate::api::names::RESOURCE_UID;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::reflector::{ObjectRef, Store};
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
    claims: Store<DynamicObject>,
    resources: Store<DynamicObject>,
    servers: Store<DynamicObject>,
    locals: Store<DynamicObject>,
    records: Store<DynamicObject>,
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
        wakes: &mpsc::UnboundedSender<Wake>,
        tasks: &mut JoinSet<()>,
    ) -> World {
        let mut follow = |kind: ApiResource, home: Option<&str>, wake: fn(Arc<DynamicObject>) -> Wake| {
            let told = Told { wakes, change: wake, everything: || Wake::Everything };
            follow::follow(client, kind, home, told, tasks)
        };
        let home = Some(namespace);
        World {
            claims: follow(claims(), None, Wake::Claim),
            resources: follow(resources(), home, Wake::Resource),
            servers: follow(servers(ServerKind::DatabaseServer), home, |object| {
                Wake::Server(ServerKind::DatabaseServer, object)
            }),
            locals: follow(servers(ServerKind::LocalServer), home, |object| {
                Wake::Server(ServerKind::LocalServer, object)
            }),
            records: follow(kind(GROUP, "LogicalDatabase", "logicaldatabases"), home, Wake::Record),
            namespace: namespace.to_owned(),
        }
    }

    /// Waits until everything has been listed once.
    pub async fn wait_until_ready(&self) {
        for store in [&self.claims, &self.resources, &self.servers, &self.locals, &self.records] {
            // It ends only when everything ends.
            let _ = store.wait_until_ready().await;
        }
    }

    /// The databases, by id, that a change concerns.
    pub fn concerned(&self, wake: &Wake) -> BTreeSet<String> {
        match wake {
            Wake::Record(record) => id_of(record).into_iter().collect(),
            Wake::Claim(claim) => {
                let uid = claim.uid().unwrap_or_default();
                let theirs = self.records.state().into_iter().filter(|record| claim_of(record) == uid);
                theirs.filter_map(|record| id_of(&record)).chain([uid.clone()]).collect()
            }
            Wake::Resource(resource) => {
                let name = resource.name_any();
                let of_resource = |record: &Arc<DynamicObject>| text(record, "/spec/resource/name") == name;
                let records = self.records.state().into_iter().filter(of_resource);
                records.filter_map(|record| id_of(&record)).chain(holders(resource)).collect()
            }
            Wake::Server(kind, server) => {
                let (kind, name) = (kind.word(), server.name_any());
                let on_it = |record: &Arc<DynamicObject>| {
                    text(record, "/spec/server/name") == name && text(record, "/spec/server/kind") == kind
                };
                let records = self.records.state().into_iter().filter(on_it).filter_map(|r| id_of(&r));
                let resources = self.resources.state().into_iter();
                let on_it = |resource: &Arc<DynamicObject>| {
                    self.server_of(resource).is_some_and(|on| on.kind.word() == kind && on.name == name)
                };
                records.chain(resources.filter(on_it).flat_map(|resource| holders(&resource))).collect()
            }
            Wake::Everything => {
                let records = self.records.state().into_iter().filter_map(|record| id_of(&record));
                let holders = self.resources.state().into_iter().flat_map(|resource| holders(&resource));
                records.chain(holders).collect()
            }
        }
    }

    /// The claim of this UID, the resource that it holds and the server that this is on, where there are all three.
    pub fn assignment(&self, claim_uid: &str) -> Option<Assignment> {
        let claim = self.claims.find(|claim| claim.uid().as_deref() == Some(claim_uid))?;
        let holds = |resource: &DynamicObject| holders(resource).iter().any(|holder| holder == claim_uid);
        let resource = self.resources.find(holds)?;
        let server = self.server_of(&resource)?;
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
        let uid = resource.uid()?;
        let is_part = |server: &DynamicObject| server.annotations().get(RESOURCE_UID) == Some(&uid);
        let stores = [(ServerKind::DatabaseServer, &self.servers), (ServerKind::LocalServer, &self.locals)];
        stores
            .into_iter()
            .find_map(|(kind, store)| Some(ServerRef { kind, name: store.find(is_part)?.name_any() }))
    }

    /// A server, as last seen.
    pub fn server(&self, server: &ServerRef) -> Option<Arc<DynamicObject>> {
        let reference = ObjectRef::new_with(&server.name, servers(server.kind)).within(&self.namespace);
        match server.kind {
            ServerKind::DatabaseServer => self.servers.get(&reference),
            ServerKind::LocalServer => self.locals.get(&reference),
        }
    }

    /// Every server.
    pub fn servers(&self) -> Vec<(ServerRef, Arc<DynamicObject>)> {
        let named = |kind: ServerKind, store: &Store<DynamicObject>| {
            let refer =
                move |object: Arc<DynamicObject>| (ServerRef { kind, name: object.name_any() }, object);
            store.state().into_iter().map(refer).collect::<Vec<_>>()
        };
        let mut all = named(ServerKind::DatabaseServer, &self.servers);
        all.extend(named(ServerKind::LocalServer, &self.locals));
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all
    }

    /// A resource, as last seen.
    pub fn resource(&self, name: &str) -> Option<Arc<DynamicObject>> {
        self.resources.get(&ObjectRef::new_with(name, resources()).within(&self.namespace))
    }

    /// A database that somebody asked back for a claim of this name on this server.
    pub fn undeleted(&self, claim: &DynamicObject, server: &ServerRef) -> Option<Arc<DynamicObject>> {
        let (namespace, name) = (claim.namespace().unwrap_or_default(), claim.name_any());
        self.records.find(|record| {
            record.annotations().get(UNDELETE).is_some_and(|value| value == "true")
                && text(record, "/spec/claim/namespace") == namespace
                && text(record, "/spec/claim/name") == name
                && text(record, "/spec/server/name") == server.name
                && text(record, "/spec/server/kind") == server.kind.word()
        })
    }

    /// A claim, as last seen.
    pub fn claim(&self, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        self.claims.get(&ObjectRef::new_with(name, claims()).within(namespace))
    }

    /// The record of a claim's database.
    pub fn record_of(&self, claim_uid: &str) -> Option<Arc<DynamicObject>> {
        self.records.find(|record| claim_of(record) == claim_uid)
    }

    /// The record of this id.
    pub fn record(&self, id: &str) -> Option<Arc<DynamicObject>> {
        self.records.find(|record| id_of(record).as_deref() == Some(id))
    }

    /// The server that a database is on, or will be.
    pub fn server_of_database(&self, id: &str) -> Option<ServerRef> {
        let kind = kind(GROUP, "LogicalDatabase", "logicaldatabases");
        let reference = ObjectRef::new_with(&record_name(id), kind).within(&self.namespace);
        match self.records.get(&reference) {
            Some(record) => serde_json::from_value(record.data.pointer("/spec/server")?.clone()).ok(),
            None => self.assignment(id).map(|assignment| assignment.server),
        }
    }

    /// Whether some database is this claim's.
    pub fn has_record_of(&self, claim_uid: &str) -> bool {
        self.record_of(claim_uid).is_some()
    }

    /// The records of databases on a server.
    pub fn records_on(&self, server: &ServerRef) -> Vec<LogicalDatabaseSpec> {
        let all = self.records.state().into_iter();
        let specs = all.filter_map(|record| serde_json::from_value(record.data.get("spec")?.clone()).ok());
        specs.filter(|spec: &LogicalDatabaseSpec| spec.server == *server).collect()
    }

    /// How many databases are on record.
    pub fn record_count(&self) -> usize {
        self.records.len()
    }
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

fn claim_of(record: &DynamicObject) -> String {
    text(record, "/spec/claim/uid").to_owned()
}
