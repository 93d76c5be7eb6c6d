//! Extra logins on the databases of claims: watches DatabaseRoles and DatabaseGrants, and reconciles each role. Kinds that
//! are not installed hold up no database: only this module waits for them.

mod reconcile;
mod status;

use super::error::Error;
use super::informer::{self, ChangeSink, Trigger, Watched};
use super::informers::{self, Change};
use super::reconcile::{Next, Provider};
use super::store::{Key, Store, no_keys};
use super::workqueue::{self, Reconciler};
use conductor::api::database::GROUP;
use conductor::api::database::logical::ServerRef;
use conductor::api::database::role::{DatabaseGrantSpec, DatabaseRoleSpec};
use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// A change that may concern roles.
pub(super) enum RoleChange {
    Role(Arc<DynamicObject>),
    Grant(Arc<DynamicObject>),
    Everything,
    /// A change that concerns databases.
    Databases(Change),
}

impl From<Change> for RoleChange {
    fn from(wake: Change) -> RoleChange {
        RoleChange::Databases(wake)
    }
}

pub(super) fn roles() -> ApiResource {
    informers::kind(GROUP, "DatabaseRole", "databaseroles")
}

pub(super) fn grants() -> ApiResource {
    informers::kind(GROUP, "DatabaseGrant", "databasegrants")
}

/// The copies of roles and grants.
#[derive(Clone)]
pub(super) struct Roles {
    provider: Provider,
    roles: Store,
    grants: Store,
}

/// Reconciles roles until it is dropped.
pub(super) async fn run(
    provider: Provider,
    wakes: mpsc::UnboundedSender<RoleChange>,
    mut inbox: mpsc::UnboundedReceiver<RoleChange>,
) {
    let mut tasks = JoinSet::new();
    let client = provider.cluster.client.clone();
    for kind in [roles(), grants()] {
        informer::until_served(&client, &kind, &mut inbox).await;
    }
    let mut start = |kind, keys, trigger, wake: fn(Arc<DynamicObject>) -> RoleChange| {
        let sink = ChangeSink { wakes: &wakes, change: wake, everything: || RoleChange::Everything };
        let watched = Watched { kind, home: None, keys, trigger };
        informer::start(&client, provider.informers.occasion(), watched, sink, &mut tasks)
    };
    let roles = start(roles(), keys_of_role, Trigger::Gives, RoleChange::Role);
    let grants = start(grants(), no_keys, Trigger::Neither, RoleChange::Grant);
    for store in [&roles, &grants] {
        store.wait_until_listed().await;
    }
    workqueue::run(Roles { provider, roles, grants }, inbox).await;
}

impl Reconciler for Roles {
    type Wake = RoleChange;
    const WHAT: &'static str = "role";

    fn concerned(&self, wake: &RoleChange) -> BTreeSet<String> {
        match wake {
            RoleChange::Role(role) => BTreeSet::from([key_of(role)]),
            RoleChange::Grant(grant) => {
                let namespace = grant.namespace().unwrap_or_default();
                let is_there = |role: &DynamicObject| claimed(role).is_some_and(|(of, _)| of == namespace);
                names(self.roles.all().iter().filter(|role| is_there(role)))
            }
            RoleChange::Databases(Change::Claim(claim)) => self.on(key_of(claim)),
            RoleChange::Databases(Change::LogicalDatabase(record)) => self.on(informers::claim_of(record)),
            // A role depends on its claim's database, and its LogicalDatabase reports changes of the server.
            RoleChange::Databases(Change::Resource(_)) => BTreeSet::new(),
            RoleChange::Databases(Change::Server(..) | Change::Everything) | RoleChange::Everything => {
                names(self.roles.all().iter())
            }
        }
    }

    fn is_echo(wake: &RoleChange) -> bool {
        matches!(wake, RoleChange::Role(role) if role.metadata.deletion_timestamp.is_none())
    }

    async fn pass(&self, key: &str) -> Result<Next, Error> {
        self.reconcile(key).await
    }

    fn server_of(&self, key: &str) -> Option<ServerRef> {
        let (namespace, name) = key.split_once('/')?;
        informers::read(&*self.roles.find(namespace, name)?, "/status/madeOn/server")
    }

    fn provider(&self) -> &Provider {
        &self.provider
    }
}

impl Roles {
    /// The roles on the claim `namespace/name`.
    fn on(&self, claim: String) -> BTreeSet<String> {
        names(self.roles.by(&Key::ClaimNamed(claim)).iter())
    }

    /// The copies of a namespace's grants.
    fn grants_in(&self, namespace: &str) -> Vec<DatabaseGrantSpec> {
        let all = self.grants.all().into_iter();
        let there = all.filter(|grant| grant.namespace().as_deref() == Some(namespace));
        there.filter_map(|grant| read_grant(&grant)).collect()
    }
}

/// A grant's spec, unless the grant is being deleted.
fn read_grant(grant: &DynamicObject) -> Option<DatabaseGrantSpec> {
    let is_there = grant.metadata.deletion_timestamp.is_none();
    is_there.then(|| informers::read(grant, "/spec")).flatten()
}

/// The claim that a role is on, by namespace and name.
fn claimed(role: &DynamicObject) -> Option<(String, String)> {
    let spec: DatabaseRoleSpec = informers::read(role, "/spec")?;
    let namespace = spec.claim_ref.namespace.or_else(|| role.namespace()).unwrap_or_default();
    Some((namespace, spec.claim_ref.name))
}

fn keys_of_role(role: &DynamicObject) -> Vec<Key> {
    let claim = claimed(role).map(|(namespace, name)| format!("{namespace}/{name}"));
    claim.map(Key::ClaimNamed).into_iter().collect()
}

fn names<'a>(roles: impl Iterator<Item = &'a Arc<DynamicObject>>) -> BTreeSet<String> {
    roles.map(|role| key_of(role)).collect()
}

fn key_of(role: &DynamicObject) -> String {
    format!("{}/{}", role.namespace().unwrap_or_default(), role.name_any())
}
