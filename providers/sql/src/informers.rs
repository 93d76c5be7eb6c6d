//! The informers of claims, resources, servers and LogicalDatabases: a watch of each kind that keeps a copy. Nothing is
//! deleted on the strength of a copy.

use super::api_client::record_name;
use super::informer::{self, ChangeSink, Occasion, Trigger, WatchReport, Watched};
use super::store::{Key, Store};
use conductor::api::database::logical::{LogicalDatabaseSpec, ServerKind, ServerRef};
use conductor::api::database::{GROUP, ON_SERVER, UNDELETE};
use conductor::api::names::RESOURCE_UID;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// A change in the cluster.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Claim(Arc<DynamicObject>),
    Resource(Arc<DynamicObject>),
    Server(ServerKind, Arc<DynamicObject>),
    /// A kind was listed again: changes in between may concern every object.
    Everything,
    LogicalDatabase(Arc<DynamicObject>),
}

/// A claim that holds a resource on a server.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub claim: Arc<DynamicObject>,
    pub resource: Arc<DynamicObject>,
    pub server: ServerRef,
}

/// The copies.
#[derive(Clone)]
pub(super) struct Informers {
    namespace: String,
    occasion: Occasion,
    claims: Store,
    resources: Store,
    servers: Store,
    locals: Store,
    records: Store,
}

/// A kind of Conductor's API.
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

pub(super) fn records() -> ApiResource {
    kind(GROUP, "LogicalDatabase", "logicaldatabases")
}

pub(super) fn servers(of: ServerKind) -> ApiResource {
    match of {
        ServerKind::DatabaseServer => kind(GROUP, "DatabaseServer", "databaseservers"),
        ServerKind::LocalServer => kind(GROUP, "LocalServer", "localservers"),
    }
}

impl Informers {
    /// Starts every watch. Changes are sent to `wakes`.
    pub fn start(
        client: &Client,
        namespace: &str,
        report: WatchReport,
        wakes: &mpsc::UnboundedSender<Change>,
        tasks: &mut JoinSet<()>,
    ) -> Informers {
        let occasion = Occasion::none(report);
        let mut start = |watched: Watched, wake: fn(Arc<DynamicObject>) -> Change| {
            let sink = ChangeSink { wakes, change: wake, everything: || Change::Everything };
            informer::start(client, &occasion, watched, sink, tasks)
        };
        let home = || Some(namespace.to_owned());
        let claims = Watched { kind: claims(), home: None, keys: keys_of_claim, trigger: Trigger::Waits };
        let resources =
            Watched { kind: resources(), home: home(), keys: keys_of_resource, trigger: Trigger::Waits };
        let records =
            Watched { kind: records(), home: home(), keys: keys_of_record, trigger: Trigger::Gives };
        let of_kind = |kind| Watched {
            kind: servers(kind),
            home: home(),
            keys: keys_of_server,
            trigger: Trigger::Gives,
        };
        Informers {
            claims: start(claims, Change::Claim),
            resources: start(resources, Change::Resource),
            servers: start(of_kind(ServerKind::DatabaseServer), |object| {
                Change::Server(ServerKind::DatabaseServer, object)
            }),
            locals: start(of_kind(ServerKind::LocalServer), |object| {
                Change::Server(ServerKind::LocalServer, object)
            }),
            records: start(records, Change::LogicalDatabase),
            namespace: namespace.to_owned(),
            occasion,
        }
    }

    /// Why claims and resources are watched.
    pub fn occasion(&self) -> &Occasion {
        &self.occasion
    }

    /// Waits until servers and LogicalDatabases have been listed.
    pub async fn wait_for_servers(&self) {
        for store in [&self.servers, &self.locals, &self.records] {
            store.wait_until_listed().await;
        }
    }

    /// Waits until every kind has been listed, which requires an occasion to.
    pub async fn wait_until_listed(&self) {
        self.wait_for_servers().await;
        for store in [&self.claims, &self.resources] {
            store.wait_until_listed().await;
        }
    }

    /// The ids of the databases that a change concerns. Most claims and resources are on no server and concern none.
    pub fn concerned(&self, wake: &Change) -> BTreeSet<String> {
        match wake {
            Change::LogicalDatabase(record) => id_of(record).into_iter().collect(),
            Change::Claim(claim) => {
                let uid = claim.uid().unwrap_or_default();
                let mut ids = ids(self.records.by(&Key::Claim(uid.clone())));
                if self.is_database(&uid) {
                    ids.insert(uid);
                }
                ids
            }
            Change::Resource(resource) => {
                let mut ids = ids(self.records.by(&Key::Resource(resource.name_any())));
                ids.extend(holders(resource).into_iter().filter(|uid| self.is_database(uid)));
                ids
            }
            Change::Server(kind, server) => {
                let on_it = on_server(*kind, &server.name_any());
                let mut resources = self.resources.by(&on_it);
                if let Some(uid) = server.annotations().get(RESOURCE_UID) {
                    resources.extend(self.resources.by(&Key::Uid(uid.clone())));
                }
                let mut ids = ids(self.records.by(&on_it));
                ids.extend(resources.iter().flat_map(|resource| holders(resource)));
                ids
            }
            Change::Everything => {
                let mut ids = ids(self.records.all());
                let resources = self.resources.all();
                let on_servers = resources.iter().filter(|resource| self.server_of(resource).is_some());
                ids.extend(on_servers.flat_map(|resource| holders(resource)));
                ids
            }
        }
    }

    /// Whether a database of this id is recorded, or a claim of this UID gets one.
    fn is_database(&self, id: &str) -> bool {
        self.record(id).is_some() || self.assignment(id).is_some()
    }

    /// The claim of this UID, its resource and that resource's server, if all three exist.
    pub fn assignment(&self, claim_uid: &str) -> Option<Assignment> {
        let held = self.resources.by(&Key::Claim(claim_uid.to_owned()));
        let on_server = |resource: Arc<DynamicObject>| Some((self.server_of(&resource)?, resource));
        let (server, resource) = held.into_iter().find_map(on_server)?;
        let claim = self.claims.first(&Key::Uid(claim_uid.to_owned()))?;
        Some(Assignment { claim, resource, server })
    }

    /// The server of a resource: the one that it names, or the one that was created for it.
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
            .find_map(|(kind, store)| Some(ServerRef { kind, name: store.first(&made_for)?.name_any() }))
    }

    /// The copy of a server.
    pub fn server(&self, server: &ServerRef) -> Option<Arc<DynamicObject>> {
        match server.kind {
            ServerKind::DatabaseServer => self.servers.find(&self.namespace, &server.name),
            ServerKind::LocalServer => self.locals.find(&self.namespace, &server.name),
        }
    }

    /// Every server.
    pub fn servers(&self) -> Vec<(ServerRef, Arc<DynamicObject>)> {
        let named = |kind: ServerKind, store: &Store| {
            let refer =
                move |object: Arc<DynamicObject>| (ServerRef { kind, name: object.name_any() }, object);
            store.all().into_iter().map(refer).collect::<Vec<_>>()
        };
        let mut all = named(ServerKind::DatabaseServer, &self.servers);
        all.extend(named(ServerKind::LocalServer, &self.locals));
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all
    }

    /// The copy of a resource.
    pub fn resource(&self, name: &str) -> Option<Arc<DynamicObject>> {
        self.resources.find(&self.namespace, name)
    }

    /// The resource that a server was created for.
    pub fn resource_of_server(&self, server: &DynamicObject) -> Option<Arc<DynamicObject>> {
        self.resources.first(&Key::Uid(server.annotations().get(RESOURCE_UID)?.clone()))
    }

    /// The server of a database that is restored for the claim of this namespace and name, if it is another than this one.
    pub fn undeleted_elsewhere(&self, (namespace, name): (&str, &str), server: &ServerRef) -> Option<String> {
        self.restored(namespace, name).into_iter().find_map(|record| {
            let of: ServerRef = read(&record, "/spec/server")?;
            (of != *server).then(|| format!("{} {}", of.kind.word(), of.name))
        })
    }

    /// A resource that takes no claims yet, whose server has a restored database for a claim of this namespace and name.
    pub fn closed_resource_of_restored(&self, namespace: &str, name: &str) -> Option<String> {
        self.restored(namespace, name).into_iter().find_map(|record| {
            let resource = self.resources.first(&Key::Uid(text(&record, "/spec/resource/uid").to_owned()))?;
            (text(&resource, "/status/phase") == "Released").then(|| resource.name_any())
        })
    }

    /// A database on this server that a user wants restored for this claim.
    pub fn undeleted(&self, claim: &DynamicObject, server: &ServerRef) -> Option<Arc<DynamicObject>> {
        let (namespace, name) = (claim.namespace().unwrap_or_default(), claim.name_any());
        self.restored(&namespace, &name)
            .into_iter()
            .find(|record| read(record, "/spec/server").as_ref() == Some(server))
    }

    /// The databases that users want restored for the claim of this namespace and name.
    fn restored(&self, namespace: &str, name: &str) -> Vec<Arc<DynamicObject>> {
        self.records.by(&Key::ClaimNamed(format!("{namespace}/{name}")))
    }

    /// The copy of a claim.
    pub fn claim(&self, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        self.claims.find(namespace, name)
    }

    /// The LogicalDatabase of a claim.
    pub fn record_of(&self, claim_uid: &str) -> Option<Arc<DynamicObject>> {
        self.records.first(&Key::Claim(claim_uid.to_owned()))
    }

    /// The LogicalDatabase of this id.
    pub fn record(&self, id: &str) -> Option<Arc<DynamicObject>> {
        self.records.first(&Key::Id(id.to_owned()))
    }

    /// The server that a database is on, or will be.
    pub fn server_of_database(&self, id: &str) -> Option<ServerRef> {
        match self.records.find(&self.namespace, &record_name(id)) {
            Some(record) => read(&record, "/spec/server"),
            None => self.assignment(id).map(|assignment| assignment.server),
        }
    }

    /// Whether the claim has a LogicalDatabase.
    pub fn has_record_of(&self, claim_uid: &str) -> bool {
        self.record_of(claim_uid).is_some()
    }

    /// The id of another database that was created under this name on the server, whatever its state: while a database is
    /// in quarantine it has another name there, and can be restored only where its own is free.
    pub fn reserved_by(&self, server: &ServerRef, name: &str, id: &str) -> Option<String> {
        let on_it = self.records.by(&on_server(server.kind, &server.name));
        let holder = on_it.iter().find(|record| {
            text(record, "/spec/databaseName") == name
                && text(record, "/spec/id") != id
                && !text(record, "/status/createdAt").is_empty()
        });
        holder.and_then(|record| id_of(record))
    }

    /// The databases recorded on a server.
    pub fn records_on(&self, server: &ServerRef) -> Vec<LogicalDatabaseSpec> {
        let on_it = self.records.by(&on_server(server.kind, &server.name));
        on_it.iter().filter_map(|record| read(record, "/spec")).collect()
    }

    /// The databases that were created on a server.
    pub fn made_on(&self, server: &ServerRef) -> Vec<LogicalDatabaseSpec> {
        let on_it = self.records.by(&on_server(server.kind, &server.name));
        let made = on_it.iter().filter(|record| !text(record, "/status/createdAt").is_empty());
        made.filter_map(|record| read(record, "/spec")).collect()
    }

    /// The number of recorded databases.
    pub fn record_count(&self) -> usize {
        self.records.len()
    }
}

/// The key of objects on this server, in the notation of the resource's annotation.
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
    let text = |pointer: &str| text(record, pointer).to_owned();
    let mut keys = vec![
        Key::Id(text("/spec/id")),
        Key::Claim(text("/spec/claim/uid")),
        Key::Resource(text("/spec/resource/name")),
        Key::Server(format!("{}/{}", text("/spec/server/kind"), text("/spec/server/name"))),
    ];
    if record.annotations().get(UNDELETE).is_some_and(|value| value == "true") {
        keys.push(Key::ClaimNamed(claim_of(record)));
    }
    keys
}

fn ids(records: Vec<Arc<DynamicObject>>) -> BTreeSet<String> {
    records.iter().filter_map(|record| id_of(record)).collect()
}

/// The part of a server that concerns its databases: its spec, its address, whether it is ready. Values that change with
/// every check are left out.
pub(super) fn relevant_part(server: &DynamicObject) -> Value {
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

/// A part of an object's data, if it can be read.
pub(super) fn read<T: DeserializeOwned>(object: &DynamicObject, pointer: &str) -> Option<T> {
    T::deserialize(object.data.pointer(pointer)?).ok()
}

/// The claim of a database, as `namespace/name`.
pub(super) fn claim_of(record: &DynamicObject) -> String {
    format!("{}/{}", text(record, "/spec/claim/namespace"), text(record, "/spec/claim/name"))
}

pub(super) fn text<'a>(object: &'a DynamicObject, pointer: &str) -> &'a str {
    object.data.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn id_of(record: &DynamicObject) -> Option<String> {
    Some(text(record, "/spec/id").to_owned()).filter(|id| !id.is_empty())
}
