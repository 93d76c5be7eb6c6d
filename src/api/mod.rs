//! The wire: CRD types as users write them, and the words of their statuses.
//! No rule lives here beyond what a schema can refuse; reading a body into validated values is `model`'s.
//!
//! The files under `crds/` are generated from these types; a test says when they are stale.

#![allow(clippy::duplicated_attributes, reason = "printer columns share their types; that is no mistake")]

pub mod claim;
pub mod class;
pub mod common;
pub mod database;
pub mod limits;
pub mod names;
pub mod profile;
pub mod quota;
pub mod reasons;
pub mod relational_database;
pub mod selector;
pub mod status;
pub mod template;

pub use claim::RelationalDatabaseClaim;
pub use class::RelationalDatabaseClass;
pub use limits::ClaimLimits;
pub use profile::SchedulingProfile;
pub use quota::{ClaimQuota, ClusterClaimQuota};
pub use relational_database::RelationalDatabase;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// Every CRD that Conductor serves: resource, claim, class, what governs them, then what databases are made on.
///
/// # Guarantees
/// The order and the content are the same on every call.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        RelationalDatabase::crd(),
        RelationalDatabaseClaim::crd(),
        RelationalDatabaseClass::crd(),
        ClaimQuota::crd(),
        ClusterClaimQuota::crd(),
        ClaimLimits::crd(),
        SchedulingProfile::crd(),
        database::DatabaseServer::crd(),
        database::LocalServer::crd(),
        database::LogicalDatabase::crd(),
        database::DatabaseRole::crd(),
        database::DatabaseGrant::crd(),
        database::DatabaseClaim::crd(),
    ]
}
