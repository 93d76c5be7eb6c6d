//! Extra logins on a claim's database: who may have one, their names, and the next step towards one. The two users of a
//! role are members of a group that the database has for each kind of access; the group holds the rights, so that a role
//! comes and goes without touching what is inside the database. `plan` decides the rotation of logins.
//!
//! # Guarantees
//! As those of `plan`: nothing without our mark is touched, and the user that applications hold keeps its login until the
//! role loses its access.

use super::names::{Identifier, Mark, Names, User, digest, plain_name};
use super::observed::{NameState, Observed, ObservedUser};
use super::plan::{Step, log_in, revoke_first};
use super::policy::Deadline;
use super::refusal::{Refusal, Thing, taken};
use super::rotation_state::{Request, RotationState};
use super::sql::Dialect;
use conductor::api::database::logical::DatabasePhase;
use conductor::api::database::role::{DatabaseGrantSpec, RoleAccess};
use conductor::api::reasons::role as reason;
use conductor::model::Time;

/// Incremented whenever the rights of groups change, so that existing groups are set up again.
const GROUP_FORM: &str = "1";

/// A role's request for a login on a claim's database.
#[derive(Clone, Copy, Debug)]
pub struct RoleRequest<'a> {
    /// The role, by namespace and name.
    pub role: (&'a str, &'a str),
    /// The claim, by namespace and name.
    pub claim: (&'a str, &'a str),
    /// The access that it requests.
    pub access: RoleAccess,
}

/// Whether a role gets a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It gets one.
    Served,
    /// It gets none, or not yet.
    Waits {
        /// The condition's reason.
        reason: &'static str,
        /// The condition's message.
        message: String,
        /// Whether an existing login is revoked.
        ends: bool,
    },
}

fn waits(reason: &'static str, message: String, ends: bool) -> Standing {
    Standing::Waits { reason, message, ends }
}

/// Decides whether a role gets a login: from the grants in the claim's namespace, whether the claim exists, and the phase
/// of its database. Without a grant, the message reveals nothing about the other namespace.
pub fn judge(
    role_request: RoleRequest<'_>,
    grants: &[DatabaseGrantSpec],
    is_claimed: bool,
    phase: Option<DatabasePhase>,
) -> Standing {
    let ((namespace, name), (claim_namespace, claim_name)) = (role_request.role, role_request.claim);
    if namespace != claim_namespace && !grants.iter().any(|grant| allows(grant, role_request)) {
        let access = role_request.access.word();
        let fix = format!(
            "make a DatabaseGrant in {claim_namespace} with from: [{{namespace: {namespace}, name: {name}}}] and access: {access}"
        );
        let message = format!(
            "no grant in namespace {claim_namespace} allows {access} on claim {claim_name} to this role: {fix}"
        );
        return waits(reason::NOT_GRANTED, message, true);
    }
    let claim = format!("claim {claim_namespace}/{claim_name}");
    match (is_claimed, phase) {
        (false, _) => waits(reason::CLAIM_NOT_FOUND, format!("{claim} does not exist"), true),
        (true, None) => {
            waits(reason::CLAIM_NOT_BOUND, format!("{claim} has no database on a server yet"), true)
        }
        (true, Some(DatabasePhase::Pending)) => {
            waits(reason::DATABASE_NOT_READY, format!("the database of {claim} is being created"), false)
        }
        (true, Some(DatabasePhase::Ready)) => Standing::Served,
        (true, Some(DatabasePhase::Retained | DatabasePhase::Quarantined | DatabasePhase::Dropping)) => {
            waits(reason::DATABASE_NOT_READY, format!("the database of {claim} is no longer in use"), true)
        }
    }
}

fn allows(grant: &DatabaseGrantSpec, role_request: RoleRequest<'_>) -> bool {
    let DatabaseGrantSpec { from, claims, access } = grant;
    let (namespace, name) = role_request.role;
    let is_named = |one: &conductor::api::database::role::GrantFrom| {
        one.namespace == namespace && one.name.as_deref().is_none_or(|only| only == name)
    };
    let is_meant =
        claims.as_ref().is_none_or(|claims| claims.iter().any(|claim| claim == role_request.claim.1));
    from.iter().any(is_named) && is_meant && role_request.access <= *access
}

/// A role's desired login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredRole {
    /// The id in its marks: the UID of the role.
    pub id: String,
    users: [Identifier; 2],
    /// Its access.
    pub access: RoleAccess,
    /// The database that it is on.
    pub database: Names,
    /// The server's dialect.
    pub dialect: Dialect,
    /// The time between rotations.
    pub rotation_ms: i64,
    /// When a rotation is overdue.
    pub deadline: Deadline,
}

impl DesiredRole {
    /// The role of this UID on a database.
    pub fn new(
        id: &str,
        access: RoleAccess,
        database: Names,
        dialect: Dialect,
        rotation_ms: i64,
    ) -> DesiredRole {
        let name = |suffix: &str| plain_name(format!("r_{}{suffix}", digest(id)));
        DesiredRole {
            id: id.to_owned(),
            users: [name("_a"), name("_b")],
            access,
            database,
            dialect,
            rotation_ms,
            deadline: Deadline::default(),
        }
    }

    /// A user's name.
    pub fn user(&self, user: User) -> &Identifier {
        &self.users[user as usize]
    }

    /// The group that holds the rights, where the engine has groups.
    pub fn group(&self) -> &Identifier {
        self.database.group(self.access)
    }

    /// The mark on one of its users: the number of its password, its access and its database.
    pub fn mark(&self, generation: u64) -> Mark {
        let note = format!("{generation} {} {}", self.access.word(), self.database.id);
        Mark { id: self.id.clone(), note }
    }

    /// The mark on its group once the rights are there.
    pub fn group_mark(&self) -> Mark {
        self.database.mark(GROUP_FORM)
    }
}

/// A user of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedMember {
    /// What every user has.
    pub user: ObservedUser,
    /// Its access.
    pub access: String,
    /// The id of the database that it is for.
    pub database: String,
}

impl ObservedMember {
    /// Reads the note on a user's mark.
    pub fn read(note: &str, can_log_in: bool, sessions: u64) -> ObservedMember {
        let mut fields = note.splitn(3, ' ');
        let generation = fields.next().and_then(|field| field.parse().ok()).unwrap_or(0);
        let mut field = || fields.next().unwrap_or_default().to_owned();
        ObservedMember {
            user: ObservedUser { generation, can_log_in, sessions },
            access: field(),
            database: field(),
        }
    }
}

/// Everything that a server shows of one role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedRole {
    /// The group, and the digest of its last set-up; free where the engine has none.
    pub group: NameState<String>,
    /// User A, user B.
    pub users: [NameState<ObservedMember>; 2],
    /// Marks of users that do not exist, where marks can outlive them.
    pub left_over: [bool; 2],
    /// Whether the database exists under its name and takes connections.
    pub is_open: bool,
}

impl ObservedRole {
    fn user(&self, user: User) -> &NameState<ObservedMember> {
        &self.users[user as usize]
    }

    fn as_users(&self) -> Observed {
        let users = self.users.clone().map(|place| match place {
            NameState::Free => NameState::Free,
            NameState::Foreign(foreign_owner) => NameState::Foreign(foreign_owner),
            NameState::Ours(member) => NameState::Ours(member.user),
        });
        Observed { users, ..Observed::default() }
    }
}

/// The next thing to do for a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleStep {
    /// Create the group, with its mark.
    CreateGroup,
    /// Grant the group its rights, on what exists and on what the owner creates later.
    SetUpGroup,
    /// Create a user that cannot log in yet, with its mark and its rights.
    CreateUser(User),
    /// Change a user's rights.
    SetAccess {
        /// The user.
        user: User,
        /// The number of the password that it has and keeps.
        generation: u64,
    },
    /// Drop a user. The database's owner gets the objects that it created, where the database takes connections.
    DropUser {
        /// The user.
        user: User,
        /// Whether the database takes connections.
        is_open: bool,
    },
    /// A step that every login takes; `Forget` means that nothing is left.
    Login(Step),
}

/// The next step towards a login for a role.
pub fn serve_role(
    desired: &DesiredRole,
    observed: &ObservedRole,
    state: Option<&RotationState>,
    request: Option<&Request>,
    now: Time,
) -> RoleStep {
    let none = RotationState::default();
    let known = state.unwrap_or(&none);
    if let Some(step) = revoke_first(&observed.as_users(), known, request) {
        return RoleStep::Login(step);
    }
    if let Some(taken) = find_taken(desired, observed) {
        return RoleStep::Login(Step::Refuse(taken));
    }
    let is_elsewhere = |member: &ObservedMember| member.database != desired.database.id;
    if User::BOTH.into_iter().any(|user| observed.user(user).ours().is_some_and(is_elsewhere)) {
        // Its claim has another database now: remove the old logins first.
        return withdraw_role(observed, state.is_some());
    }
    if desired.dialect == Dialect::Postgresql {
        match &observed.group {
            NameState::Ours(form) if *form == desired.group_mark().note => {}
            NameState::Ours(_) => return RoleStep::SetUpGroup,
            NameState::Free | NameState::Foreign(_) => return RoleStep::CreateGroup,
        }
    }
    for user in User::BOTH {
        match observed.user(user).ours() {
            None => return RoleStep::CreateUser(user),
            Some(member) if member.access != desired.access.word() => {
                return RoleStep::SetAccess { user, generation: member.user.generation };
            }
            Some(_) => {}
        }
    }
    RoleStep::Login(log_in(
        (desired.rotation_ms, desired.deadline),
        &observed.as_users(),
        known,
        request,
        now,
    ))
}

/// The next step towards no login. `has_secrets`: whether its Secrets still exist.
pub fn withdraw_role(observed: &ObservedRole, has_secrets: bool) -> RoleStep {
    let is_live = |user: User| {
        observed.user(user).ours().is_some_and(|member| member.user.can_log_in || member.user.sessions > 0)
    };
    let is_there = |user: User| observed.user(user).ours().is_some() || observed.left_over[user as usize];
    if let Some(user) = User::BOTH.into_iter().find(|user| is_live(*user)) {
        return RoleStep::Login(Step::Revoke(user));
    }
    if has_secrets {
        return RoleStep::Login(Step::ForgetLogins);
    }
    match User::BOTH.into_iter().find(|user| is_there(*user)) {
        Some(user) => RoleStep::DropUser { user, is_open: observed.is_open },
        None => RoleStep::Login(Step::Forget),
    }
}

fn find_taken(desired: &DesiredRole, observed: &ObservedRole) -> Option<Refusal> {
    let user = |user: User| taken(observed.user(user), Thing::User, desired.user(user));
    let group = taken(&observed.group, Thing::Role, desired.group());
    group.or_else(|| user(User::A)).or_else(|| user(User::B))
}

#[cfg(test)]
mod tests;
