//! Decides the next step for a database from its desired state, what the server shows of it, and its rotation state.
//! Nothing is remembered between steps, so a crash after any of them changes nothing.
//!
//! # Guarantees
//! No step touches an object without Conductor's mark. A step changes the password or the login right of the user that
//! applications hold only to restore it, because no application may use it any more, or because its password leaked: a
//! hard request revokes every login first, before any step that a tenant's settings could make fail.

use super::desired_state::DesiredState;
use super::names::User;
use super::observed::{NameState, Observed, ObservedDatabase, ObservedLimits, ObservedUser};
use super::policy::{Deadline, DesiredDatabase};
use super::refusal::{Refusal, Thing, taken};
use super::rotation_state::{Pending, Request, RotationState};
use conductor::api::database::role::RoleAccess;
use conductor::model::Time;

/// Pause before a user that still has sessions is checked again.
const SESSIONS_MS: i64 = 60_000;
/// The same where a user requested the rotation and waits for it.
const ASKED_SESSIONS_MS: i64 = 5_000;
/// Pause before an application's Secret is checked again.
const DELIVERY_MS: i64 = 300;
/// The same once the Secret takes longer than a publication takes.
const LATE_DELIVERY_MS: i64 = 5_000;
/// Why a rotation waits for the application's Secret.
pub const UNDELIVERED: &str =
    "the login is not changed yet: the Secret of its application does not hold the present one";
/// The same after a hard request, which has revoked the old login by then.
pub const UNDELIVERED_HARD: &str =
    "the old login is dead, but the Secret of its application does not hold the new one";

/// The next thing to do for a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Create the owner, with its mark.
    CreateOwner,
    /// Create a user that cannot log in yet, with its mark.
    CreateUser(User),
    /// Create the database.
    CreateDatabase,
    /// Set rights, schemas, extensions and limits, and record them in the mark.
    SetUp {
        /// Whether this is the first set-up.
        is_first: bool,
    },
    /// Restore what the database's owner changed of the database itself: its connection limit, its right to connect,
    /// whether it is a template.
    PutBackLimits,
    /// Record in the LogicalDatabase that the database exists.
    RecordMade,
    /// Restore the database's name and let connections in.
    Restore {
        /// Whether it has its quarantine name.
        is_renamed: bool,
    },
    /// Generate a password and store it in the rotation state before anything else gets it.
    StorePending {
        /// The user that gets it.
        user: User,
        /// The rotation's number.
        generation: u64,
        /// The request that this rotation answers.
        answers: Option<String>,
    },
    /// Set a user's password from the rotation state and let it log in.
    SetPassword(Pending),
    /// Try the login, then write it into the login Secret.
    Publish(Pending),
    /// Close the rotation in the rotation state.
    Promote(Pending),
    /// Revoke a user's right to log in, and end its sessions.
    Revoke(User),
    /// Revoke what the holders of the logins granted to other logins, and record that every login was revoked for this
    /// request. Every password is discarded, also that of a pending rotation: it may have leaked too.
    EndRights {
        /// The request's token.
        token: String,
    },
    /// Record that a request was carried out.
    CloseRequest {
        /// The request's token.
        token: String,
    },
    /// Refuse new connections, and end the open ones.
    Seal,
    /// Give the database its quarantine name.
    Rename,
    /// Record that the quarantine begins now.
    StartQuarantine,
    /// Delete the login Secret and the rotation state.
    ForgetLogins,
    /// Drop the database.
    DropDatabase {
        /// Whether it has its quarantine name.
        is_renamed: bool,
    },
    /// Drop a user.
    DropUser(User),
    /// Drop a group of other applications' users.
    DropGroup(RoleAccess),
    /// Drop the owner.
    DropOwner,
    /// Delete the LogicalDatabase.
    Forget,
    /// Requeue.
    Wait {
        /// The time of the next check.
        until: Time,
        /// What holds it up, if anything does.
        why: Option<String>,
    },
    /// Stop until a user changes something.
    Refuse(Refusal),
}

impl Step {
    /// Whether it revokes logins or rights.
    pub fn revokes(&self) -> bool {
        matches!(self, Step::Revoke(_) | Step::EndRights { .. })
    }
}

/// The next step towards the desired state.
pub fn next_step(
    desired_state: DesiredState,
    desired: &DesiredDatabase,
    observed: &Observed,
    state: Option<&RotationState>,
    request: Option<&Request>,
    now: Time,
) -> Step {
    match desired_state {
        DesiredState::Serve => serve(desired, observed, state, request, now),
        // The claim was refused, or was deleted before its database existed: there is no data to keep.
        DesiredState::Retain | DesiredState::Quarantine(_) if was_never_made(desired, observed) => {
            drop_all(desired, observed, state)
        }
        DesiredState::Retain => retain(desired, observed, state),
        DesiredState::Quarantine(ends) => quarantine(desired, observed, state, ends),
        DesiredState::Drop => drop_all(desired, observed, state),
    }
}

/// Nothing to do until something changes.
const REST: Step = Step::Wait { until: Time(i64::MAX), why: None };

fn serve(
    desired: &DesiredDatabase,
    observed: &Observed,
    state: Option<&RotationState>,
    request: Option<&Request>,
    now: Time,
) -> Step {
    let none = RotationState::default();
    let state = state.unwrap_or(&none);
    if let Some(step) = revoke_first(observed, state, request) {
        return step;
    }
    if let Some(taken) = find_taken(desired, observed) {
        return Step::Refuse(taken);
    }
    // Before anything is created: roles do not bring the data back.
    if desired.was_made && !observed.has_database() {
        return Step::Refuse(Refusal::Gone);
    }
    // An existing database stays in use: its data would be no safer without a login. The server's status reports the grant.
    if let Some(grant) =
        observed.open.clone().filter(|_| !desired.was_made && observed.database == NameState::Free)
    {
        return Step::Refuse(Refusal::Open { name: desired.names.database.clone(), grant });
    }
    if observed.owner == NameState::Free {
        return Step::CreateOwner;
    }
    if let Some(missing) = User::BOTH.into_iter().find(|user| *observed.user(*user) == NameState::Free) {
        return Step::CreateUser(missing);
    }
    match (observed.database.ours(), observed.quarantined.ours()) {
        (None, Some(_)) => Step::Restore { is_renamed: true },
        (Some(ObservedDatabase { is_open: false, .. }), _) => Step::Restore { is_renamed: false },
        (None, None) => Step::CreateDatabase,
        (Some(database), _) if !desired.was_made => {
            match desired.unread.is_none() && database.set_up != desired.set_up() {
                true => Step::SetUp { is_first: database.set_up.is_empty() },
                false => Step::RecordMade,
            }
        }
        (Some(database), _) if is_limited(desired, database) => Step::PutBackLimits,
        (Some(database), _) => {
            // Logins first: a set-up can fail because of its owner's settings, and must not keep a login alive.
            let login = log_in((desired.rotation_ms, desired.deadline), observed, state, request, now);
            let is_outdated = desired.unread.is_none() && database.set_up != desired.set_up();
            match is_outdated && matches!(login, Step::Wait { .. }) {
                true => Step::SetUp { is_first: false },
                false => login,
            }
        }
    }
}

/// Whether the owner of a database has changed who may use it. A limit of its own would make every later login unusable.
fn is_limited(desired: &DesiredDatabase, database: &ObservedDatabase) -> bool {
    database.limits.as_ref().is_some_and(|ObservedLimits { connections, is_template, owner_connects }| {
        *connections != desired.connection_limit || *is_template || !owner_connects
    })
}

/// A hard request revokes every login before any other check: a tenant can change what is published, delivered, set up
/// or in the way, and none of it may delay the revocation.
pub(super) fn revoke_first(
    observed: &Observed,
    state: &RotationState,
    request: Option<&Request>,
) -> Option<Step> {
    let request = state.open_request(request).filter(|request| request.is_hard)?;
    if state.revoked.as_deref() == Some(&request.token) {
        return None;
    }
    let end = || Step::EndRights { token: request.token.clone() };
    Some(find_live(observed).map_or_else(end, Step::Revoke))
}

fn find_taken(desired: &DesiredDatabase, observed: &Observed) -> Option<Refusal> {
    let names = &desired.names;
    let user = |user: User| taken(observed.user(user), Thing::User, names.user(user));
    let owner = match desired.dialect.has_owners() {
        true => taken(&observed.owner, Thing::Role, &names.owner),
        // Without owners, the mark on the database takes the owner's part.
        false => taken(&observed.owner, Thing::Database, &names.database),
    };
    owner
        .or_else(|| user(User::A))
        .or_else(|| user(User::B))
        .or_else(|| taken(&observed.database, Thing::Database, &names.database))
}

/// The next step for the logins of a database that exists.
pub(super) fn log_in(
    (rotation_ms, deadline): (i64, Deadline),
    observed: &Observed,
    state: &RotationState,
    request: Option<&Request>,
    now: Time,
) -> Step {
    if let Some(pending) = state.pending {
        return finish(observed, state, pending);
    }
    let newest = User::BOTH.map(|user| observed.user(user).ours().map_or(0, |found| found.generation));
    let generation = newest.into_iter().fold(state.generation, u64::max) + 1;
    let store = |user: User, request: Option<&Request>| Step::StorePending {
        user,
        generation,
        answers: request.map(|request| request.token.clone()),
    };
    let (Some(active), Some(rotated_at)) = (state.active, state.rotated_at) else {
        // The first login; or every login was revoked: the login that applications hold is neither restored nor awaited.
        return store(state.active.map_or(User::A, User::other), state.open_request(request));
    };
    let (in_use, spare) = (observed_user(observed, active), observed_user(observed, active.other()));
    let open = state.open_request(request);
    let is_answered = |request: &Request| state.answered.as_deref() == Some(&request.token);
    // Another client took away the password or the login right. Restore it: applications hold it.
    if !in_use.can_log_in || in_use.generation != state.generation {
        return Step::SetPassword(Pending { user: active, generation: state.generation });
    }
    if state.published != state.generation {
        return Step::Publish(Pending { user: active, generation: state.generation });
    }
    let due = rotated_at.plus_ms(rotation_ms);
    // The application may still hold the other user's login: leave that user alone until it holds this one's.
    let waits_for_delivery = open.map_or(now >= due, |request| !request.is_hard);
    if state.delivered != state.generation && waits_for_delivery {
        return Step::Wait { until: now.plus_ms(DELIVERY_MS), why: Some(UNDELIVERED.to_owned()) };
    }
    if let Some(request) = open {
        let is_delivered = state.delivered == state.generation;
        return match (is_answered(request), request.is_hard && is_live(&spare)) {
            (_, true) => Step::Revoke(active.other()),
            // A login that does not reach its application serves no one: report what holds it up.
            (true, false) if request.is_hard && !is_delivered => {
                let pause = match now < rotated_at.plus_ms(SESSIONS_MS) {
                    true => DELIVERY_MS,
                    false => LATE_DELIVERY_MS,
                };
                Step::Wait { until: now.plus_ms(pause), why: Some(UNDELIVERED_HARD.to_owned()) }
            }
            (true, false) => Step::CloseRequest { token: request.token.clone() },
            (false, false) => {
                guarded(&spare, now.plus_ms(ASKED_SESSIONS_MS), || store(active.other(), Some(request)))
            }
        };
    }
    match now >= due {
        // Its application holds the other login by now, and had time to close its sessions with this one.
        true if deadline.ends_sessions && spare.sessions > 0 && now >= due.plus_ms(deadline.after_ms) => {
            Step::Revoke(active.other())
        }
        true => guarded(&spare, now.plus_ms(SESSIONS_MS), || store(active.other(), None)),
        false => Step::Wait { until: due, why: None },
    }
}

/// Whether a rotation is due. Where there is nothing to do all the same, something holds it up.
pub fn is_due(rotation_ms: i64, state: Option<&RotationState>, now: Time) -> bool {
    state.and_then(|state| state.rotated_at).is_some_and(|at| now >= at.plus_ms(rotation_ms))
}

/// Whether a rotation is past its deadline, and reported.
pub fn is_overdue(
    (rotation_ms, deadline): (i64, Deadline),
    state: Option<&RotationState>,
    now: Time,
) -> bool {
    let after = rotation_ms.saturating_add(deadline.after_ms);
    state.and_then(|state| state.rotated_at).is_some_and(|at| now >= at.plus_ms(after))
}

/// Waits while a user still has sessions: with another password they could not log in again.
fn guarded(spare: &ObservedUser, until: Time, step: impl FnOnce() -> Step) -> Step {
    match spare.sessions {
        0 => step(),
        sessions => {
            let why = format!(
                "the login is not changed yet: {sessions} sessions still use the one before the last"
            );
            Step::Wait { until, why: Some(why) }
        }
    }
}

fn finish(observed: &Observed, state: &RotationState, pending: Pending) -> Step {
    let found = observed_user(observed, pending.user);
    match found.generation == pending.generation && found.can_log_in {
        false => Step::SetPassword(pending),
        true if state.published != pending.generation => Step::Publish(pending),
        true => Step::Promote(pending),
    }
}

fn observed_user(observed: &Observed, user: User) -> ObservedUser {
    observed.user(user).ours().cloned().unwrap_or_default()
}

/// Whether a client is, or could be, logged in as this user.
fn is_live(user: &ObservedUser) -> bool {
    user.can_log_in || user.sessions > 0
}

fn find_live(observed: &Observed) -> Option<User> {
    User::BOTH.into_iter().find(|user| observed.user(*user).ours().is_some_and(is_live))
}

/// Neither recorded nor on the server: a LogicalDatabase that lost its status is no reason to drop a database.
fn was_never_made(desired: &DesiredDatabase, observed: &Observed) -> bool {
    !desired.was_made && observed.database.ours().is_none() && observed.quarantined.ours().is_none()
}

fn retain(desired: &DesiredDatabase, observed: &Observed, state: Option<&RotationState>) -> Step {
    match (find_live(observed), observed.database.ours(), observed.quarantined.ours()) {
        (Some(user), _, _) => Step::Revoke(user),
        (None, None, Some(_)) if observed.database == NameState::Free => Step::Restore { is_renamed: true },
        (None, Some(database), _) if !database.is_open && desired.dialect.renames() => {
            Step::Restore { is_renamed: false }
        }
        (None, _, _) if state.is_some() => Step::ForgetLogins,
        (None, _, _) => REST,
    }
}

fn quarantine(
    desired: &DesiredDatabase,
    observed: &Observed,
    state: Option<&RotationState>,
    ends: Option<Time>,
) -> Step {
    if let Some(user) = find_live(observed) {
        return Step::Revoke(user);
    }
    if desired.dialect.renames() {
        match observed.database.ours() {
            Some(database) if database.is_open || database.sessions > 0 => return Step::Seal,
            Some(_) if observed.quarantined == NameState::Free => return Step::Rename,
            Some(_) | None => {}
        }
    }
    match (state, ends) {
        (Some(_), _) => Step::ForgetLogins,
        (None, None) => Step::StartQuarantine,
        (None, Some(until)) => Step::Wait { until, why: None },
    }
}

fn drop_all(desired: &DesiredDatabase, observed: &Observed, state: Option<&RotationState>) -> Step {
    if let Some(user) = find_live(observed) {
        return Step::Revoke(user);
    }
    match (observed.database.ours(), observed.quarantined.ours()) {
        (Some(database), _) if desired.dialect.renames() && (database.is_open || database.sessions > 0) => {
            return Step::Seal;
        }
        (_, Some(_)) => return Step::DropDatabase { is_renamed: true },
        (Some(_), None) => return Step::DropDatabase { is_renamed: false },
        (None, None) => {}
    }
    if let Some(user) = User::BOTH.into_iter().find(|user| observed.user(*user).ours().is_some()) {
        return Step::DropUser(user);
    }
    if let Some(access) = RoleAccess::BOTH.into_iter().find(|access| observed.group(*access).ours().is_some())
    {
        return Step::DropGroup(access);
    }
    match (observed.owner.ours(), state) {
        (Some(()), _) => Step::DropOwner,
        (None, Some(_)) => Step::ForgetLogins,
        (None, None) => Step::Forget,
    }
}

#[cfg(test)]
mod tests;
