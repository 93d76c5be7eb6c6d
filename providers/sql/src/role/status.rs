//! What a role says of itself: what it waits for, who its application logs in as, and where its users are. The last is
//! written before anything is made, with a finalizer, so that nothing that was made is forgotten.

use super::roles;
use crate::clock;
use crate::desk::Desk;
use crate::rotation::{self, Report};
use crate::trouble::Trouble;
use conductor::api::database::API_VERSION;
use conductor::api::database::role::{DatabaseRole, DatabaseRoleStatus, MadeOn, RoleBinding};
use conductor::api::reasons::ready::LOGIN_REVOKED;
use conductor_sql_plan::ledger::Ledger;
use conductor_sql_plan::role::WantedRole;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};

/// Kept until its users are gone.
const FINALIZER: &str = "database.conductor.io/role";

/// The name of the Secret of a role.
pub(super) fn secret_name(role: &DatabaseRole) -> String {
    role.spec.secret_name.clone().unwrap_or_else(|| role.name_any())
}

/// Where the users of a role are.
pub(super) fn made_on(role: &DatabaseRole) -> Option<&MadeOn> {
    role.status.as_ref()?.made_on.as_ref()
}

/// Writes down where users are about to be made.
pub(super) async fn begin(desk: &Desk, role: &DatabaseRole, made_on: &MadeOn) -> Result<(), Trouble> {
    let (api, name) = (desk.others(&roles(), &role.namespace().unwrap_or_default()), role.name_any());
    let mut finalizers = role.metadata.finalizers.clone().unwrap_or_default();
    if !finalizers.iter().any(|one| one == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
        let change = json!({"metadata": {"resourceVersion": role.resource_version(), "uid": role.uid(), "finalizers": finalizers}});
        let _: DynamicObject = desk.merge(&api, &name, change).await?;
    }
    if role.status.as_ref().and_then(|status| status.made_on.as_ref()) != Some(made_on) {
        let _: DynamicObject = desk.merge_status(&api, &name, json!({"madeOn": made_on})).await?;
    }
    Ok(())
}

/// Nothing of the role is left on any server.
pub(super) async fn forget(desk: &Desk, role: &DatabaseRole) -> Result<(), Trouble> {
    let (api, name) = (desk.others(&roles(), &role.namespace().unwrap_or_default()), role.name_any());
    if made_on(role).is_some() {
        let _: DynamicObject = desk.merge_status(&api, &name, json!({"madeOn": null})).await?;
    }
    let kept: Vec<&String> = role.finalizers().iter().filter(|one| *one != FINALIZER).collect();
    if kept.len() == role.finalizers().len() {
        return Ok(());
    }
    let bare = json!({"metadata": {"uid": role.uid(), "finalizers": kept}});
    match desk.merge::<DynamicObject>(&api, &name, bare).await {
        Err(Trouble::Api(why)) if why.starts_with("404") => Ok(()),
        other => other.map(drop),
    }
}

/// What is known of a role's login.
pub(super) enum Login<'a> {
    /// There is none.
    None,
    /// As it is written there: nobody could ask the server.
    AsBefore,
    /// As it is now.
    Now(&'a WantedRole, &'a Ledger),
}

/// Writes down how the role stands, where that is not what is written there.
pub(super) async fn tell(
    desk: &Desk,
    role: &DatabaseRole,
    report: Report<'_>,
    login: Login<'_>,
) -> Result<(), Trouble> {
    let was = role.status.clone().unwrap_or_default();
    let conditions = report.conditions(was.conditions.as_deref(), role.metadata.generation);
    let is_as_before = matches!(login, Login::AsBefore);
    let of_login = match login {
        Login::None => DatabaseRoleStatus::default(),
        Login::AsBefore => was.clone(),
        Login::Now(wanted, ledger) => {
            let user = ledger.active.map(|user| wanted.user(user).to_string());
            DatabaseRoleStatus {
                binding: user.is_some().then(|| RoleBinding { name: secret_name(role) }),
                username: user,
                rotated_at: ledger.rotated_at.map(clock::write),
                rotation_done: ledger.done.clone(),
                rotation_revoked: ledger.revoked.clone(),
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
    let mut change = serde_json::to_value(&status).unwrap_or_default();
    // What a merge does not name, it keeps; where users are is written elsewhere.
    for field in ["binding", "username", "rotatedAt", "rotationDone"] {
        if change.get(field).is_none() {
            change[field] = Value::Null;
        }
    }
    // What was written in this pass is not in what was read before it.
    if !is_as_before && change.get("rotationRevoked").is_none() {
        change["rotationRevoked"] = Value::Null;
    }
    let api = desk.others(&roles(), &role.namespace().unwrap_or_default());
    desk.merge_status::<DynamicObject>(&api, &role.name_any(), change).await.map(drop)
}

/// Writes down that every login was revoked: whoever asked for it learns that now, whatever becomes of the next login.
pub(super) async fn revoked(
    desk: &Desk,
    role: &DatabaseRole,
    wanted: &WantedRole,
    ledger: &Ledger,
) -> Result<DatabaseRole, Trouble> {
    let message = rotation::REVOKED.to_owned();
    let report = Report { is_ready: false, reason: LOGIN_REVOKED, message, rotation: None };
    tell(desk, role, report, Login::Now(wanted, ledger)).await?;
    let api: Api<DatabaseRole> = Api::namespaced(desk.client.clone(), &role.namespace().unwrap_or_default());
    desk.find(&api, &role.name_any()).await?.ok_or(Trouble::Conflict)
}

/// A role as an owner.
pub(super) fn reference(role: &DatabaseRole) -> OwnerReference {
    OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: "DatabaseRole".to_owned(),
        name: role.name_any(),
        uid: role.uid().unwrap_or_default(),
        ..OwnerReference::default()
    }
}
