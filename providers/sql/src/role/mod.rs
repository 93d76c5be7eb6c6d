//! Extra logins on databases of claims: roles and grants followed, and one worker a role. Kinds that are not installed
//! hold up no database: they are waited for here and nowhere else.

mod pass;
mod status;

use super::follow::{self, Followed, Part, Told};
use super::mirror::{Key, Mirror, no_keys};
use super::pass::{Next, Provider};
use super::trouble::Trouble;
use super::work::{self, Round};
use super::world::{self, Wake};
use conductor::api::database::GROUP;
use conductor::api::database::logical::ServerRef;
use conductor::api::database::role::{DatabaseGrantSpec, DatabaseRoleSpec};
use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
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
    roles: Mirror,
    grants: Mirror,
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
    let mut follow = |kind, keys, part, wake: fn(Arc<DynamicObject>) -> RoleWake| {
        let told = Told { wakes: &wakes, change: wake, everything: || RoleWake::Everything };
        let followed = Followed { kind, home: None, keys, part };
        follow::follow(&client, provider.world.occasion(), followed, told, &mut tasks)
    };
    let roles = follow(roles(), keys_of_role, Part::Gives, RoleWake::Role);
    let grants = follow(grants(), no_keys, Part::Stands, RoleWake::Grant);
    for mirror in [&roles, &grants] {
        mirror.wait_until_listed().await;
    }
    work::run(Roles { provider, roles, grants }, inbox).await;
}

impl Round for Roles {
    type Wake = RoleWake;
    const WHAT: &'static str = "role";

    fn concerned(&self, wake: &RoleWake) -> BTreeSet<String> {
        match wake {
            RoleWake::Role(role) => BTreeSet::from([key_of(role)]),
            RoleWake::Grant(grant) => {
                let namespace = grant.namespace().unwrap_or_default();
                let is_there = |role: &DynamicObject| claimed(role).is_some_and(|(of, _)| of == namespace);
                names(self.roles.all().iter().filter(|role| is_there(role)))
            }
            RoleWake::World(Wake::Claim(claim)) => self.on(key_of(claim)),
            RoleWake::World(Wake::Record(record)) => {
                let text = |pointer: &str| world::text(record, pointer);
                self.on(format!("{}/{}", text("/spec/claim/namespace"), text("/spec/claim/name")))
            }
            // A role is looked at through its claim's database; what happens to a server is told by its record.
            RoleWake::World(Wake::Resource(_)) => BTreeSet::new(),
            RoleWake::World(Wake::Server(..) | Wake::Everything) | RoleWake::Everything => {
                names(self.roles.all().iter())
            }
        }
    }

    fn is_echo(wake: &RoleWake) -> bool {
        matches!(wake, RoleWake::Role(role) if role.metadata.deletion_timestamp.is_none())
    }

    async fn pass(&self, key: &str) -> Result<Next, Trouble> {
        self.pass_over(key).await
    }

    fn server_of(&self, key: &str) -> Option<ServerRef> {
        let (namespace, name) = key.split_once('/')?;
        let role = self.roles.find(namespace, name)?;
        serde_json::from_value(role.data.pointer("/status/madeOn/server")?.clone()).ok()
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

    /// The grants of a namespace, as last seen.
    fn grants_in(&self, namespace: &str) -> Vec<DatabaseGrantSpec> {
        let all = self.grants.all().into_iter();
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
