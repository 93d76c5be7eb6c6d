//! Reports whether the logins of databases and of DatabaseRoles rotate in time.

use super::clock;
use super::metrics::Metrics;
use conductor::api::database::logical::ServerRef;
use conductor::api::reasons::{READY, ROTATION_IN_TIME, rotation};
use conductor::api::status::Condition;
use conductor_sql_plan::plan::{is_due, is_overdue};
use conductor_sql_plan::policy::Deadline;
use conductor_sql_plan::rotation_state::RotationState;
use conductor_sql_plan::sql::Dialect;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as MetaTime;
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

/// The message between the end of the old logins and the next one.
pub(super) const REVOKED: &str = "every login is revoked, and its sessions are ended; a new login follows";

/// Whether a login rotates in time.
pub(super) enum Rotation {
    OnTime,
    Overdue(String),
    /// It has no login.
    None,
}

/// The conditions of an object with a login.
pub(super) struct Report<'a> {
    pub is_ready: bool,
    pub reason: &'a str,
    pub message: String,
    /// Unknown where no reconcile completed: then the condition stays as it is.
    pub rotation: Option<Rotation>,
}

impl Report<'_> {
    /// The conditions; `Ready` is the first, because commands read it there. An unchanged one keeps its transition time.
    pub fn conditions(self, before: Option<&[Condition]>, generation: Option<i64>) -> Vec<Condition> {
        let find = |of: &str| before.and_then(|all| all.iter().find(|c| c.type_ == of));
        let condition = |of: &str, is_true: bool, reason: &str, message: String| {
            let status = if is_true { "True" } else { "False" };
            let since = find(of).filter(|c| c.status == status).map(|c| c.last_transition_time.clone());
            Condition {
                type_: of.to_owned(),
                status: status.to_owned(),
                reason: reason.to_owned(),
                message,
                last_transition_time: since.unwrap_or_else(|| MetaTime(Timestamp::now())),
                observed_generation: generation,
            }
        };
        let in_time = match self.rotation {
            None => find(ROTATION_IN_TIME).cloned(),
            Some(Rotation::None) => None,
            Some(Rotation::OnTime) => Some(condition(
                ROTATION_IN_TIME,
                true,
                rotation::ON_TIME,
                "its login rotates in time".to_owned(),
            )),
            Some(Rotation::Overdue(message)) => {
                Some(condition(ROTATION_IN_TIME, false, rotation::OVERDUE, message))
            }
        };
        let ready = condition(READY, self.is_ready, self.reason, self.message);
        [Some(ready), in_time].into_iter().flatten().collect()
    }
}

/// The merge patch to a status. A merge patch keeps the fields that it does not name: absent fields of `cleared` are null.
pub(super) fn status_patch(status: &impl Serialize, cleared: &[&str]) -> Value {
    let mut patch = json!(status);
    for field in cleared {
        if patch.get(field).is_none() {
            patch[field] = Value::Null;
        }
    }
    patch
}

/// A login, and when it must rotate.
pub(super) struct Changing<'a> {
    pub dialect: Dialect,
    /// The id of the database or the role.
    pub id: &'a str,
    pub rotation_ms: i64,
    pub deadline: Deadline,
    pub server: &'a ServerRef,
}

impl Changing<'_> {
    /// Whether an idle login rotates in time, counted if it is held up by `why`.
    pub fn judge(&self, state: Option<&RotationState>, why: Option<&str>, metrics: &Metrics) -> Rotation {
        match self.is_overdue(state, metrics) {
            false => Rotation::OnTime,
            true => Rotation::Overdue(format!(
                "the rotation of its login is overdue: {}. Shorten the life of pooled connections, end these sessions, or set \
                 spec.databases.rotationDeadlinePolicy of {} {} to EndSessions",
                why.unwrap_or("it is held up"),
                self.server.kind.word(),
                self.server.name
            )),
        }
    }

    /// The same after an error. Unknown where every login is revoked: the request for that reports its progress.
    pub fn judge_failed(
        &self,
        state: Option<&RotationState>,
        why: &str,
        metrics: &Metrics,
    ) -> Option<Rotation> {
        state.and_then(|state| state.rotated_at)?;
        Some(match self.is_overdue(state, metrics) {
            false => Rotation::OnTime,
            true => Rotation::Overdue(format!("the rotation of its login is overdue: {why}")),
        })
    }

    /// Whether the rotation is overdue; counted if it is due.
    fn is_overdue(&self, state: Option<&RotationState>, metrics: &Metrics) -> bool {
        let Changing { dialect, id, rotation_ms, deadline, server: _ } = self;
        let now = clock::now();
        let is_overdue = is_overdue((*rotation_ms, *deadline), state, now);
        let is_blocked = is_due(*rotation_ms, state, now);
        metrics.rotation_blocked(*dialect, id, is_blocked.then_some(is_overdue));
        is_overdue
    }
}
