//! One step at a time: from what is to become of a database, what the server shows of it and how its logins stand, to
//! the next thing to do. Nothing is remembered between steps, so a crash after any of them changes nothing.
//!
//! # Guarantees
//! No step touches what does not carry our mark. No step that changes a user's password or right to log in names the
//! user that applications hold, unless to restore it, because nobody may use it any more, or because its password
//! leaked: a hard request revokes every login first, before anything that could fail for what a tenant wrote.

use super::goal::Goal;
use super::ledger::{Ledger, Pending, Request};
use super::names::User;
use super::refusal::{Refusal, Thing, taken};
use super::rules::{Deadline, Wanted};
use super::seen::{Place, Seen, SeenDatabase, SeenLimits, SeenUser};
use conductor::api::database::role::RoleAccess;
use conductor::model::Time;

/// How long a user that still has sessions is waited for.
const SESSIONS_MS: i64 = 60_000;
/// The same where somebody asked for the change, and waits for it.
const ASKED_SESSIONS_MS: i64 = 5_000;
/// How long an application's Secret is waited for before it is looked at again.
const DELIVERY_MS: i64 = 300;
/// The same where the Secret is waited for longer than a publication takes.
const LATE_DELIVERY_MS: i64 = 5_000;
/// Why a change waits for the application's Secret.
pub const UNDELIVERED: &str =
    "the login is not changed yet: the Secret of its application does not hold the present one";
/// The same after a leak: the old login is dead by then.
pub const UNDELIVERED_HARD: &str =
    "the old login is dead, but the Secret of its application does not hold the new one";

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make the owner, with its mark.
    CreateOwner,
    /// Make a user that cannot log in yet, with its mark.
    CreateUser(User),
    /// Make the database.
    CreateDatabase,
    /// Rights, schemas, extensions, limits; the mark says that it was done. For the first time, or again.
    SetUp {
        /// Whether nothing of it was done before.
        is_first: bool,
    },
    /// Put back what the owner of the database changed of the database itself: its limit of connections, its right to
    /// connect, whether it is a template.
    PutBackLimits,
    /// Write into the record that the database is there.
    RecordMade,
    /// Give the database its name back and let connections in.
    Restore {
        /// Whether it has its name in quarantine.
        is_renamed: bool,
    },
    /// Think of a password and write it into the ledger, before anybody else knows it.
    StorePending {
        /// Whose.
        user: User,
        /// Which change this is.
        generation: u64,
        /// The request that it answers.
        answers: Option<String>,
    },
    /// Give a user the password from the ledger and let it log in.
    SetPassword {
        /// Whose.
        user: User,
        /// Which change this is.
        generation: u64,
    },
    /// Try the login, then write it into the login Secret.
    Publish {
        /// Whose.
        user: User,
        /// Which change this is.
        generation: u64,
    },
    /// Close the change in the ledger.
    Promote {
        /// Whose.
        user: User,
        /// Which change this is.
        generation: u64,
    },
    /// Take a user's right to log in, and end its sessions.
    Revoke(User),
    /// Take what the holders of the logins granted to other logins, and write into the ledger that every login was
    /// revoked for this request. Every password is discarded, also that of a change on its way: it may have leaked too.
    EndRights {
        /// The request.
        token: String,
    },
    /// Write into the ledger that a request has been carried out.
    CloseRequest {
        /// Which.
        token: String,
    },
    /// Let no connection in, and end those that are.
    Seal,
    /// Give the database its name in quarantine.
    Rename,
    /// Write into the record that the quarantine begins now.
    StartQuarantine,
    /// Remove the login and the ledger.
    ForgetLogins,
    /// Drop the database.
    DropDatabase {
        /// Whether it has its name in quarantine.
        is_renamed: bool,
    },
    /// Drop a user.
    DropUser(User),
    /// Drop a group of other applications' users.
    DropGroup(RoleAccess),
    /// Drop the owner.
    DropOwner,
    /// Remove the record.
    Forget,
    /// Look again then.
    Wait {
        /// When.
        until: Time,
        /// Why, where something is in the way.
        why: Option<String>,
    },
    /// It cannot go on by itself.
    Refuse(Refusal),
}

impl Step {
    /// Whether it takes logins or rights away.
    pub fn revokes(&self) -> bool {
        matches!(self, Step::Revoke(_) | Step::EndRights { .. })
    }
}

/// The next step towards a goal.
pub fn next_step(
    goal: Goal,
    wanted: &Wanted,
    seen: &Seen,
    ledger: Option<&Ledger>,
    request: Option<&Request>,
    now: Time,
) -> Step {
    match goal {
        Goal::Serve => serve(wanted, seen, ledger, request, now),
        // A claim that was refused, or gone before its database came: there is nothing to keep for anybody.
        Goal::Retain | Goal::Quarantine(_) if was_never_made(wanted, seen) => drop_all(wanted, seen, ledger),
        Goal::Retain => retain(wanted, seen, ledger),
        Goal::Quarantine(ends) => quarantine(wanted, seen, ledger, ends),
        Goal::Drop => drop_all(wanted, seen, ledger),
    }
}

/// Nothing to do until somebody does something.
const REST: Step = Step::Wait { until: Time(i64::MAX), why: None };

fn serve(
    wanted: &Wanted,
    seen: &Seen,
    ledger: Option<&Ledger>,
    request: Option<&Request>,
    now: Time,
) -> Step {
    let none = Ledger::default();
    let ledger = ledger.unwrap_or(&none);
    if let Some(step) = revoke_first(seen, ledger, request) {
        return step;
    }
    if let Some(taken) = find_taken(wanted, seen) {
        return Step::Refuse(taken);
    }
    // Before anything is made for it: whatever is wrong with the server, roles do not help.
    if wanted.was_made && !seen.has_database() {
        return Step::Refuse(Refusal::Gone);
    }
    // One that is there goes on: its data would be no safer without its login. The server's status reports the grant.
    if let Some(grant) = seen.open.clone().filter(|_| !wanted.was_made && seen.database == Place::Free) {
        return Step::Refuse(Refusal::Open { name: wanted.names.database.clone(), grant });
    }
    if seen.owner == Place::Free {
        return Step::CreateOwner;
    }
    if let Some(missing) = User::BOTH.into_iter().find(|user| *seen.user(*user) == Place::Free) {
        return Step::CreateUser(missing);
    }
    match (seen.database.ours(), seen.quarantined.ours()) {
        (None, Some(_)) => Step::Restore { is_renamed: true },
        (Some(SeenDatabase { is_open: false, .. }), _) => Step::Restore { is_renamed: false },
        (None, None) => Step::CreateDatabase,
        (Some(database), _) if !wanted.was_made => {
            match wanted.unread.is_none() && database.set_up != wanted.set_up() {
                true => Step::SetUp { is_first: database.set_up.is_empty() },
                false => Step::RecordMade,
            }
        }
        (Some(database), _) if is_limited(wanted, database) => Step::PutBackLimits,
        (Some(database), _) => {
            // Logins first: a set-up can fail for what its owner wrote, and must not keep a login alive.
            let login = log_in((wanted.rotation_ms, wanted.deadline), seen, ledger, request, now);
            let is_outdated = wanted.unread.is_none() && database.set_up != wanted.set_up();
            match is_outdated && matches!(login, Step::Wait { .. }) {
                true => Step::SetUp { is_first: false },
                false => login,
            }
        }
    }
}

/// Whether the owner of a database has changed who may use it. A limit of its own would make every next login unusable.
fn is_limited(wanted: &Wanted, database: &SeenDatabase) -> bool {
    database.limits.as_ref().is_some_and(|SeenLimits { connections, is_template, owner_connects }| {
        *connections != wanted.connection_limit || *is_template || !owner_connects
    })
}

/// A hard request ends every login before anything else is looked at: what is published, delivered, set up or in the
/// way is the tenant's to change, and must not stand between a leak and its end.
pub(super) fn revoke_first(seen: &Seen, ledger: &Ledger, request: Option<&Request>) -> Option<Step> {
    let request = ledger.open_request(request).filter(|request| request.is_hard)?;
    if ledger.revoked.as_deref() == Some(&request.token) {
        return None;
    }
    let end = || Step::EndRights { token: request.token.clone() };
    Some(find_live(seen).map_or_else(end, Step::Revoke))
}

fn find_taken(wanted: &Wanted, seen: &Seen) -> Option<Refusal> {
    let names = &wanted.names;
    let user = |user: User| taken(seen.user(user), Thing::User, names.user(user));
    let owner = match wanted.dialect.has_owners() {
        true => taken(&seen.owner, Thing::Role, &names.owner),
        // There the mark on the database stands for an owner.
        false => taken(&seen.owner, Thing::Database, &names.database),
    };
    owner
        .or_else(|| user(User::A))
        .or_else(|| user(User::B))
        .or_else(|| taken(&seen.database, Thing::Database, &names.database))
}

/// Everything is there: what about the logins?
pub(super) fn log_in(
    (rotation_ms, deadline): (i64, Deadline),
    seen: &Seen,
    ledger: &Ledger,
    request: Option<&Request>,
    now: Time,
) -> Step {
    if let Some(pending) = &ledger.pending {
        return finish(seen, ledger, pending);
    }
    let newest = User::BOTH.map(|user| seen.user(user).ours().map_or(0, |found| found.generation));
    let generation = newest.into_iter().fold(ledger.generation, u64::max) + 1;
    let store = |user: User, request: Option<&Request>| Step::StorePending {
        user,
        generation,
        answers: request.map(|request| request.token.clone()),
    };
    let (Some(active), Some(rotated_at)) = (ledger.active, ledger.rotated_at) else {
        // The first login; or every login was revoked: what applications hold is neither restored nor waited for.
        return store(ledger.active.map_or(User::A, User::other), ledger.open_request(request));
    };
    let (in_use, spare) = (state(seen, active), state(seen, active.other()));
    let open = ledger.open_request(request);
    let is_answered = |request: &Request| ledger.answered.as_deref() == Some(&request.token);
    // Somebody took the password or the right to log in away. It is given back: applications hold it.
    if !in_use.can_log_in || in_use.generation != ledger.generation {
        return Step::SetPassword { user: active, generation: ledger.generation };
    }
    if ledger.published != ledger.generation {
        return Step::Publish { user: active, generation: ledger.generation };
    }
    let due = rotated_at.plus_ms(rotation_ms);
    // What the application holds may still be the other user's: nothing happens to that one before it holds this one's.
    let waits_for_delivery = open.map_or(now >= due, |request| !request.is_hard);
    if ledger.delivered != ledger.generation && waits_for_delivery {
        return Step::Wait { until: now.plus_ms(DELIVERY_MS), why: Some(UNDELIVERED.to_owned()) };
    }
    if let Some(request) = open {
        let is_delivered = ledger.delivered == ledger.generation;
        return match (is_answered(request), request.is_hard && is_live(&spare)) {
            (_, true) => Step::Revoke(active.other()),
            // Nobody is served by a login that does not reach its application: whoever asked is told.
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
        // Its application holds the other login by now, and was given the time to let go of this one.
        true if deadline.ends_sessions && spare.sessions > 0 && now >= due.plus_ms(deadline.after_ms) => {
            Step::Revoke(active.other())
        }
        true => guarded(&spare, now.plus_ms(SESSIONS_MS), || store(active.other(), None)),
        false => Step::Wait { until: due, why: None },
    }
}

/// Whether the login is due to change. Where there is nothing to do all the same, something holds the change up.
pub fn is_due(rotation_ms: i64, ledger: Option<&Ledger>, now: Time) -> bool {
    ledger.and_then(|ledger| ledger.rotated_at).is_some_and(|at| now >= at.plus_ms(rotation_ms))
}

/// Whether the login should have changed so long ago that it is reported.
pub fn is_overdue((rotation_ms, deadline): (i64, Deadline), ledger: Option<&Ledger>, now: Time) -> bool {
    let after = rotation_ms.saturating_add(deadline.after_ms);
    ledger.and_then(|ledger| ledger.rotated_at).is_some_and(|at| now >= at.plus_ms(after))
}

/// A user that still has sessions is not given another password: they could not log in again.
fn guarded(spare: &SeenUser, until: Time, step: impl FnOnce() -> Step) -> Step {
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

fn finish(seen: &Seen, ledger: &Ledger, pending: &Pending) -> Step {
    let Pending { user, generation } = *pending;
    let found = state(seen, user);
    match found.generation == generation && found.can_log_in {
        false => Step::SetPassword { user, generation },
        true if ledger.published != generation => Step::Publish { user, generation },
        true => Step::Promote { user, generation },
    }
}

fn state(seen: &Seen, user: User) -> SeenUser {
    seen.user(user).ours().cloned().unwrap_or_default()
}

/// Whether somebody is, or could be, logged in as this user.
fn is_live(user: &SeenUser) -> bool {
    user.can_log_in || user.sessions > 0
}

fn find_live(seen: &Seen) -> Option<User> {
    User::BOTH.into_iter().find(|user| seen.user(*user).ours().is_some_and(is_live))
}

/// Neither on record nor on the server: a record that lost its status is no reason to drop what is there.
fn was_never_made(wanted: &Wanted, seen: &Seen) -> bool {
    !wanted.was_made && seen.database.ours().is_none() && seen.quarantined.ours().is_none()
}

fn retain(wanted: &Wanted, seen: &Seen, ledger: Option<&Ledger>) -> Step {
    match (find_live(seen), seen.database.ours(), seen.quarantined.ours()) {
        (Some(user), _, _) => Step::Revoke(user),
        (None, None, Some(_)) if seen.database == Place::Free => Step::Restore { is_renamed: true },
        (None, Some(database), _) if !database.is_open && wanted.dialect.renames() => {
            Step::Restore { is_renamed: false }
        }
        (None, _, _) if ledger.is_some() => Step::ForgetLogins,
        (None, _, _) => REST,
    }
}

fn quarantine(wanted: &Wanted, seen: &Seen, ledger: Option<&Ledger>, ends: Option<Time>) -> Step {
    if let Some(user) = find_live(seen) {
        return Step::Revoke(user);
    }
    if wanted.dialect.renames() {
        match seen.database.ours() {
            Some(database) if database.is_open || database.sessions > 0 => return Step::Seal,
            Some(_) if seen.quarantined == Place::Free => return Step::Rename,
            Some(_) | None => {}
        }
    }
    match (ledger, ends) {
        (Some(_), _) => Step::ForgetLogins,
        (None, None) => Step::StartQuarantine,
        (None, Some(until)) => Step::Wait { until, why: None },
    }
}

fn drop_all(wanted: &Wanted, seen: &Seen, ledger: Option<&Ledger>) -> Step {
    if let Some(user) = find_live(seen) {
        return Step::Revoke(user);
    }
    match (seen.database.ours(), seen.quarantined.ours()) {
        (Some(database), _) if wanted.dialect.renames() && (database.is_open || database.sessions > 0) => {
            return Step::Seal;
        }
        (_, Some(_)) => return Step::DropDatabase { is_renamed: true },
        (Some(_), None) => return Step::DropDatabase { is_renamed: false },
        (None, None) => {}
    }
    if let Some(user) = User::BOTH.into_iter().find(|user| seen.user(*user).ours().is_some()) {
        return Step::DropUser(user);
    }
    if let Some(access) = RoleAccess::BOTH.into_iter().find(|access| seen.group(*access).ours().is_some()) {
        return Step::DropGroup(access);
    }
    match (seen.owner.ours(), ledger) {
        (Some(()), _) => Step::DropOwner,
        (None, Some(_)) => Step::ForgetLogins,
        (None, None) => Step::Forget,
    }
}

#[cfg(test)]
mod tests;
