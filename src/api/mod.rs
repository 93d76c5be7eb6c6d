//! CRD types as users write them, and the reasons of their conditions. Their schemas are the only validation here; `model`
//! parses objects into validated values.
//!
//! The files under `crds/` are generated from these types; a test fails when they are stale.

#![allow(clippy::duplicated_attributes, reason = "printer columns share their types")]

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

/// All CRDs of Conductor: resource, claim, class, their policies, then those of the SQL provider.
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
