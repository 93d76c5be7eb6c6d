//! DatabaseClaims: watches them, reconciles each into a claim of our own, and applies the configuration of the servers that
//! their labels select. Kinds that are not installed hold up no database: only this module waits for them.

mod config;
mod reconcile;

use super::error::Error;
use super::informer::{self, ChangeSink, Trigger, Watched};
use super::informers::{self, Change};
use super::reconcile::{Next, Provider};
use super::store::{Store, no_keys};
use super::workqueue::{self, Reconciler};
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

/// A change that may concern DatabaseClaims.
pub(super) enum DatabaseClaimChange {
    DatabaseClaim(Arc<DynamicObject>),
    /// A class, which may create instances.
    Class,
    Everything,
    /// A change that concerns databases.
    Databases(Change),
}

impl From<Change> for DatabaseClaimChange {
    fn from(wake: Change) -> DatabaseClaimChange {
        DatabaseClaimChange::Databases(wake)
    }
}

pub(super) fn database_claims() -> ApiResource {
    let kind = GroupVersionKind::gvk(FRONT_GROUP, FRONT_VERSION, "DatabaseClaim");
    ApiResource::from_gvk_with_plural(&kind, "databaseclaims")
}

/// The copies of DatabaseClaims and classes.
#[derive(Clone)]
pub(super) struct DatabaseClaims {
    provider: Provider,
    database_claims: Store,
    classes: Store,
}

/// Reconciles DatabaseClaims until it is dropped.
pub(super) async fn run(
    provider: Provider,
    wakes: mpsc::UnboundedSender<DatabaseClaimChange>,
    mut inbox: mpsc::UnboundedReceiver<DatabaseClaimChange>,
) {
    informer::until_served(&provider.cluster.client, &database_claims(), &mut inbox).await;
    let mut tasks = JoinSet::new();
    let mut start = |kind, home, trigger, change: fn(Arc<DynamicObject>) -> DatabaseClaimChange| {
        let sink = ChangeSink { wakes: &wakes, change, everything: || DatabaseClaimChange::Everything };
        let watched = Watched { kind, home, keys: no_keys, trigger };
        informer::start(&provider.cluster.client, provider.informers.occasion(), watched, sink, &mut tasks)
    };
    let database_claims = start(database_claims(), None, Trigger::Gives, DatabaseClaimChange::DatabaseClaim);
    let home = Some(provider.cluster.namespace.clone());
    let classes = start(informers::classes(), home, Trigger::Neither, |_| DatabaseClaimChange::Class);
    for store in [&database_claims, &classes] {
        store.wait_until_listed().await;
    }
    workqueue::run(DatabaseClaims { provider, database_claims, classes }, inbox).await;
}

impl Reconciler for DatabaseClaims {
    type Wake = DatabaseClaimChange;
    const WHAT: &'static str = "DatabaseClaim";

    fn concerned(&self, wake: &DatabaseClaimChange) -> BTreeSet<String> {
        match wake {
            DatabaseClaimChange::DatabaseClaim(database_claim) => BTreeSet::from([key_of(database_claim)]),
            // Its claim has its name.
            DatabaseClaimChange::Databases(Change::Claim(claim)) => self.known(key_of(claim)),
            DatabaseClaimChange::Databases(Change::LogicalDatabase(record)) => {
                self.known(informers::claim_of(record))
            }
            DatabaseClaimChange::Databases(Change::Resource(_)) => BTreeSet::new(),
            DatabaseClaimChange::Databases(Change::Server(..) | Change::Everything)
            | DatabaseClaimChange::Class
            | DatabaseClaimChange::Everything => {
                self.database_claims.all().iter().map(|database_claim| key_of(database_claim)).collect()
            }
        }
    }

    fn is_echo(wake: &DatabaseClaimChange) -> bool {
        matches!(wake, DatabaseClaimChange::Databases(Change::LogicalDatabase(_)))
    }

    async fn pass(&self, key: &str) -> Result<Next, Error> {
        self.reconcile(key).await
    }

    /// None: it writes to the API only.
    fn server_of(&self, _: &str) -> Option<ServerRef> {
        None
    }

    fn provider(&self) -> &Provider {
        &self.provider
    }
}

impl DatabaseClaims {
    fn known(&self, key: String) -> BTreeSet<String> {
        let place = key.split_once('/');
        let is_known =
            place.is_some_and(|(namespace, name)| self.database_claims.find(namespace, name).is_some());
        is_known.then_some(key).into_iter().collect()
    }
}

fn key_of(object: &DynamicObject) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}
