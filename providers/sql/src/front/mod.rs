//! The second front: DatabaseClaims followed, each with a claim of our own beside it, and the configuration that says
//! which servers their labels lead to. Kinds that are not installed hold up no database: they are waited for here.

mod config;
mod pass;

use super::follow::{self, Followed, Part, Told};
use super::mirror::{Mirror, no_keys};
use super::pass::{Next, Provider};
use super::trouble::Trouble;
use super::work::{self, Round};
use super::world::{self, Wake};
use conductor::api::database::front::{FRONT_GROUP, FRONT_VERSION};
use conductor::api::database::logical::ServerRef;
use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

pub(super) use config::run as run_config;

/// What changed.
pub(super) enum FrontWake {
    Front(Arc<DynamicObject>),
    /// What instances are made from.
    Class,
    Everything,
    /// Something about databases.
    World(Wake),
}

impl From<Wake> for FrontWake {
    fn from(wake: Wake) -> FrontWake {
        FrontWake::World(wake)
    }
}

pub(super) fn fronts() -> ApiResource {
    let kind = GroupVersionKind::gvk(FRONT_GROUP, FRONT_VERSION, "DatabaseClaim");
    ApiResource::from_gvk_with_plural(&kind, "databaseclaims")
}

/// Everything that is known of DatabaseClaims.
#[derive(Clone)]
pub(super) struct Fronts {
    provider: Provider,
    fronts: Mirror,
    classes: Mirror,
}

/// Turns DatabaseClaims into claims until it is dropped.
pub(super) async fn run(
    provider: Provider,
    wakes: mpsc::UnboundedSender<FrontWake>,
    mut inbox: mpsc::UnboundedReceiver<FrontWake>,
) {
    follow::until_served(&provider.desk.client, &fronts(), &mut inbox).await;
    let mut tasks = JoinSet::new();
    let mut follow = |kind, home, part, change: fn(Arc<DynamicObject>) -> FrontWake| {
        let told = Told { wakes: &wakes, change, everything: || FrontWake::Everything };
        let followed = Followed { kind, home, keys: no_keys, part };
        follow::follow(&provider.desk.client, provider.world.occasion(), followed, told, &mut tasks)
    };
    let fronts = follow(fronts(), None, Part::Gives, FrontWake::Front);
    let home = Some(provider.desk.namespace.clone());
    let classes = follow(world::classes(), home, Part::Stands, |_| FrontWake::Class);
    for mirror in [&fronts, &classes] {
        mirror.wait_until_listed().await;
    }
    work::run(Fronts { provider, fronts, classes }, inbox).await;
}

impl Round for Fronts {
    type Wake = FrontWake;
    const WHAT: &'static str = "DatabaseClaim";

    fn concerned(&self, wake: &FrontWake) -> BTreeSet<String> {
        match wake {
            FrontWake::Front(front) => BTreeSet::from([key_of(front)]),
            // Its claim has its name.
            FrontWake::World(Wake::Claim(claim)) => self.known(key_of(claim)),
            FrontWake::World(Wake::Record(record)) => {
                let text = |pointer: &str| world::text(record, pointer).to_owned();
                self.known(format!("{}/{}", text("/spec/claim/namespace"), text("/spec/claim/name")))
            }
            FrontWake::World(Wake::Resource(_)) => BTreeSet::new(),
            FrontWake::World(Wake::Server(..) | Wake::Everything)
            | FrontWake::Class
            | FrontWake::Everything => self.fronts.all().iter().map(|front| key_of(front)).collect(),
        }
    }

    fn is_echo(wake: &FrontWake) -> bool {
        matches!(wake, FrontWake::World(Wake::Record(_)))
    }

    async fn pass(&self, key: &str) -> Result<Next, Trouble> {
        self.pass_over(key).await
    }

    /// It speaks with the API only.
    fn server_of(&self, _: &str) -> Option<ServerRef> {
        None
    }

    fn provider(&self) -> &Provider {
        &self.provider
    }
}

impl Fronts {
    fn known(&self, key: String) -> BTreeSet<String> {
        let place = key.split_once('/');
        let is_known = place.is_some_and(|(namespace, name)| self.fronts.find(namespace, name).is_some());
        is_known.then_some(key).into_iter().collect()
    }
}

fn key_of(object: &DynamicObject) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}
