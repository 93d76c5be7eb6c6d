//! Extra logins on databases of claims: roles and grants followed, and one worker a role. Kinds that are not installed
//! hold up no database: they are waited for here and nowhere else.

mod pass;
mod status;

use super::follow::{self, Told};
use super::pass::{Next, Provider};
use super::trouble::Trouble;
use super::work::{Round, Work};
use super::world::{self, Wake};
use crate::api::database::GROUP;
use crate::api::database::logical::ServerRef;
use crate::api::database::role::{DatabaseGrantSpec, DatabaseRoleSpec};
use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::Store;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// What changed.
pub(super) enum RoleWake {
    Role(Arc<DynamicObject>),
    Grant(Arc<DynamicObject>),
    Everything,
    /// Something about databases.
    World(Wake),
}

impl From<Wake> for RoleWake {
    fn from(wake: Wake) -> RoleWake {
        RoleWake::World(wake)
    }
}

pub(super) fn roles() -> ApiResource {
    world::kind(GROUP, "DatabaseRole", "databaseroles")
}

pub(super) fn grants() -> ApiResource {
    world::kind(GROUP, "DatabaseGrant", "databasegrants")
}

/// Everything that is known of roles.
#[derive(Clone)]
pub(super) struct Roles {
    provider: Provider,
    roles: Store<DynamicObject>,
    grants: Store<DynamicObject>,
}

/// Makes and keeps extra logins until it is dropped.
pub(super) async fn run(
    provider: Provider,
    wakes: mpsc::UnboundedSender<RoleWake>,
    mut inbox: mpsc::UnboundedReceiver<RoleWake>,
) {
    let mut tasks = JoinSet::new();
    let client = provider.desk.client.clone();
    for kind in [roles(), grants()] {
        follow::until_served(&client, &kind, &mut inbox).await;
    }
    let mut follow = |kind, wake: fn(Arc<DynamicObject>) -> RoleWake| {
        let told = Told { wakes: &wakes, change: wake, everything: || RoleWake::Everything };
        follow::follow(&client, kind, None, told, &mut tasks)
    };
    let (roles, grants) = (follow(roles(), RoleWake::Role), follow(grants(), RoleWake::Grant));
    for store in [&roles, &grants] {
        // It ends only when everything ends.
        let _ = store.wait_until_ready().await;
    }
    Work::default().run(Roles { provider, roles, grants }, inbox).await;
}

impl Round for Roles {
    type Wake = RoleWake;
    const WHAT: &'static str = "role";

    fn concerned(&self, wake: &RoleWake) -> BTreeSet<String> {
        match wake {
            RoleWake::Role(role) => BTreeSet::from([key_of(role)]),
            RoleWake::Grant(grant) => {
                let namespace = grant.namespace().unwrap_or_default();
                self.on(|(of, _)| *of == namespace)
            }
            RoleWake::World(Wake::Claim(claim)) => {
                self.on(|claimed| *claimed == (claim.namespace().unwrap_or_default(), claim.name_any()))
            }
            RoleWake::World(Wake::Record(record)) => {
                let text = |pointer: &str| world::text(record, pointer).to_owned();
                let claim = (text("/spec/claim/namespace"), text("/spec/claim/name"));
                self.on(|claimed| *claimed == claim)
            }
            // A role is looked at through its claim's database; what happens to a server is told by its record.
            RoleWake::World(Wake::Resource(_)) => BTreeSet::new(),
            RoleWake::World(Wake::Server(..) | Wake::Everything) | RoleWake::Everything => self.on(|_| true),
        }
    }

    fn is_echo(wake: &RoleWake) -> bool {
        matches!(wake, RoleWake::Role(role) if role.metadata.deletion_timestamp.is_none())
    }

    async fn pass(&self, key: &str) -> Result<Next, Trouble> {
        self.pass_over(key).await
    }

    fn server_of(&self, key: &str) -> Option<ServerRef> {
        let role = self.roles.find(|role| key_of(role) == key)?;
        serde_json::from_value(role.data.pointer("/status/madeOn/server")?.clone()).ok()
    }

    fn provider(&self) -> &Provider {
        &self.provider
    }
}

impl Roles {
    /// The roles on claims of which something is so.
    fn on(&self, is_meant: impl Fn(&(String, String)) -> bool) -> BTreeSet<String> {
        let all = self.roles.state().into_iter();
        all.filter(|role| claimed(role).is_some_and(|claim| is_meant(&claim)))
            .map(|role| key_of(&role))
            .collect()
    }

    /// The grants of a namespace, as last seen.
    fn grants_in(&self, namespace: &str) -> Vec<DatabaseGrantSpec> {
        let all = self.grants.state().into_iter();
        let there = all.filter(|grant| grant.namespace().as_deref() == Some(namespace));
        there.filter_map(|grant| read_grant(&grant)).collect()
    }
}

/// A grant that counts: one that is going does not.
fn read_grant(grant: &DynamicObject) -> Option<DatabaseGrantSpec> {
    let is_there = grant.metadata.deletion_timestamp.is_none();
    is_there.then(|| serde_json::from_value(grant.data.get("spec")?.clone()).ok()).flatten()
}

/// The claim that a role is on, by namespace and name.
fn claimed(role: &DynamicObject) -> Option<(String, String)> {
    let spec: DatabaseRoleSpec = serde_json::from_value(role.data.get("spec")?.clone()).ok()?;
    let namespace = spec.claim_ref.namespace.or_else(|| role.namespace()).unwrap_or_default();
    Some((namespace, spec.claim_ref.name))
}

fn key_of(role: &DynamicObject) -> String {
    format!("{}/{}", role.namespace().unwrap_or_default(), role.name_any())
}
