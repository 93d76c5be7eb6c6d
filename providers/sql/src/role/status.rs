//! The status of a role: what it waits for, its user, and the server of its users. The last is written before anything is
//! created there, with a finalizer, so that no user is left behind.

use super::roles;
use crate::api_client::ApiClient;
use crate::clock;
use crate::error::Error;
use crate::finalizer;
use crate::rotation::{self, Report, status_patch};
use conductor::api::claim::Binding;
use conductor::api::database::role::{DatabaseRole, DatabaseRoleStatus, MadeOn};
use conductor::api::reasons::login::LOGIN_REVOKED;
use conductor_sql_plan::role::DesiredRole;
use conductor_sql_plan::rotation_state::RotationState;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject};
use serde_json::json;

/// Kept until its users are dropped.
const FINALIZER: &str = "database.conductor.io/role";

/// The name of the Secret of a role.
pub(super) fn secret_name(role: &DatabaseRole) -> String {
    role.spec.secret_name.clone().unwrap_or_else(|| role.name_any())
}

/// Where the users of a role are.
pub(super) fn made_on(role: &DatabaseRole) -> Option<&MadeOn> {
    role.status.as_ref()?.made_on.as_ref()
}

/// Records where users are about to be created.
pub(super) async fn begin(cluster: &ApiClient, role: &DatabaseRole, made_on: &MadeOn) -> Result<(), Error> {
    let (api, name) = (cluster.others(&roles(), &role.namespace().unwrap_or_default()), role.name_any());
    finalizer::add(cluster, &api, role, FINALIZER).await?;
    if role.status.as_ref().and_then(|status| status.made_on.as_ref()) != Some(made_on) {
        let _: DynamicObject = cluster.merge_status(&api, &name, json!({"madeOn": made_on})).await?;
    }
    Ok(())
}

/// Releases a role with nothing left on any server.
pub(super) async fn forget(cluster: &ApiClient, role: &DatabaseRole) -> Result<(), Error> {
    let (api, name) = (cluster.others(&roles(), &role.namespace().unwrap_or_default()), role.name_any());
    if made_on(role).is_some() {
        let _: DynamicObject = cluster.merge_status(&api, &name, json!({"madeOn": null})).await?;
    }
    finalizer::remove(cluster, &api, role, FINALIZER, None).await
}

/// The login to report.
pub(super) enum Login<'a> {
    /// None.
    None,
    /// The reported one: the server could not be queried.
    AsBefore,
    /// The current one.
    Now(&'a DesiredRole, &'a RotationState),
}

/// Writes the status of a role, if it changed.
pub(super) async fn report(
    cluster: &ApiClient,
    role: &DatabaseRole,
    report: Report<'_>,
    login: Login<'_>,
) -> Result<(), Error> {
    let was = role.status.clone().unwrap_or_default();
    let conditions = report.conditions(was.conditions.as_deref(), role.metadata.generation);
    let is_as_before = matches!(login, Login::AsBefore);
    let of_login = match login {
        Login::None => DatabaseRoleStatus::default(),
        Login::AsBefore => was.clone(),
        Login::Now(desired, state) => {
            let user = state.active.map(|user| desired.user(user).to_string());
            DatabaseRoleStatus {
                binding: user.is_some().then(|| Binding { name: secret_name(role) }),
                username: user,
                rotated_at: state.rotated_at.map(clock::write),
                rotation_done: state.done.clone(),
                rotation_revoked: state.revoked.clone(),
                ..DatabaseRoleStatus::default()
            }
        }
    };
    let status = DatabaseRoleStatus {
        made_on: None,
        conditions: Some(conditions),
        observed_generation: role.metadata.generation,
        ..of_login
    };
    if status == (DatabaseRoleStatus { made_on: None, ..was }) {
        return Ok(());
    }
    // `madeOn` is written elsewhere, and this reconcile may have written `rotationRevoked` after it read the role.
    let cleared = ["binding", "username", "rotatedAt", "rotationDone", "rotationRevoked"];
    let change = status_patch(&status, if is_as_before { &cleared[..4] } else { &cleared });
    let api = cluster.others(&roles(), &role.namespace().unwrap_or_default());
    cluster.merge_status::<DynamicObject>(&api, &role.name_any(), change).await.map(drop)
}

/// Records that every login was revoked: the requesting user sees that now, whatever happens to the next login.
pub(super) async fn revoked(
    cluster: &ApiClient,
    role: &DatabaseRole,
    desired: &DesiredRole,
    state: &RotationState,
) -> Result<DatabaseRole, Error> {
    let message = rotation::REVOKED.to_owned();
    let revoked = Report { is_ready: false, reason: LOGIN_REVOKED, message, rotation: None };
    report(cluster, role, revoked, Login::Now(desired, state)).await?;
    let api: Api<DatabaseRole> =
        Api::namespaced(cluster.client.clone(), &role.namespace().unwrap_or_default());
    cluster.find(&api, &role.name_any()).await?.ok_or(Error::Conflict)
}
