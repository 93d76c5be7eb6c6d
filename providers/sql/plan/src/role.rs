//! Extra logins on a claim's database: who may have one, what they are called, and the next step towards one. The two
//! users of a role are members of a group that the database has for each kind of access; the group holds the rights,
//! so that a role comes and goes without touching what is inside the database. How logins change is `plan`'s.
//!
//! # Guarantees
//! As those of `plan`: nothing without our mark is touched, and the user that applications hold keeps its login until
//! nobody may use it any more.

use super::ledger::{Ledger, Request};
use super::names::{Identifier, Mark, Names, User, digest, plain_name};
use super::plan::{Step, log_in, revoke_first};
use super::refusal::{Refusal, Thing, taken};
use super::rules::Deadline;
use super::seen::{Place, Seen, SeenUser};
use super::sql::Dialect;
use conductor::api::database::logical::DatabasePhase;
use conductor::api::database::role::{DatabaseGrantSpec, RoleAccess};
use conductor::model::Time;

/// Counted up whenever the rights of groups change, so that those that exist are set up anew.
const GROUP_FORM: &str = "1";

/// Who asks for a login on whose database.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The role, by namespace and name.
    pub role: (&'a str, &'a str),
    /// The claim, by namespace and name.
    pub claim: (&'a str, &'a str),
    /// What it wants to do.
    pub access: RoleAccess,
}

/// Whether a role gets its login, and if not, why, and whether the one that it has ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It gets it.
    Served,
    /// It does not, or not yet.
    Waits {
        /// One word.
        reason: &'static str,
        /// A sentence.
        message: String,
        /// Whether a login that it had ends.
        ends: bool,
    },
}

fn waits(reason: &'static str, message: String, ends: bool) -> Standing {
    Standing::Waits { reason, message, ends }
}

/// Whether a role gets its login: from the grants in the claim's namespace, whether the claim is there, and the phase
/// of its database where there is one. Without a grant nothing is told about what is in the other namespace.
pub fn judge(
    asked: Asked<'_>,
    grants: &[DatabaseGrantSpec],
    is_claimed: bool,
    phase: Option<DatabasePhase>,
) -> Standing {
    let ((namespace, name), (claim_namespace, claim_name)) = (asked.role, asked.claim);
    if namespace != claim_namespace && !grants.iter().any(|grant| allows(grant, asked)) {
        let access = asked.access.word();
        let fix = format!(
            "make a DatabaseGrant in {claim_namespace} with from: [{{namespace: {namespace}, name: {name}}}] and access: {access}"
        );
        let message = format!(
            "no grant in namespace {claim_namespace} allows {access} on claim {claim_name} to this role: {fix}"
        );
        return waits("NotGranted", message, true);
    }
    let claim = format!("claim {claim_namespace}/{claim_name}");
    match (is_claimed, phase) {
        (false, _) => waits("ClaimNotFound", format!("{claim} is not there"), true),
        (true, None) => {
            waits("ClaimNotBound", format!("{claim} has no database on a server of Conductor's yet"), true)
        }
        (true, Some(DatabasePhase::Pending)) => {
            waits("DatabaseNotReady", format!("the database of {claim} is being made"), false)
        }
        (true, Some(DatabasePhase::Ready)) => Standing::Served,
        (true, Some(DatabasePhase::Retained | DatabasePhase::Quarantined | DatabasePhase::Dropping)) => {
            waits("DatabaseNotReady", format!("nobody uses the database of {claim} any more"), true)
        }
    }
}

fn allows(grant: &DatabaseGrantSpec, asked: Asked<'_>) -> bool {
    let DatabaseGrantSpec { from, claims, access } = grant;
    let (namespace, name) = asked.role;
    let is_named = |one: &conductor::api::database::role::GrantFrom| {
        one.namespace == namespace && one.name.as_deref().is_none_or(|only| only == name)
    };
    let is_meant = claims.as_ref().is_none_or(|claims| claims.iter().any(|claim| claim == asked.claim.1));
    from.iter().any(is_named) && is_meant && asked.access <= *access
}

/// What a role's login is to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedRole {
    /// What its marks are made of: the UID of the role.
    pub id: String,
    users: [Identifier; 2],
    /// What it may do.
    pub access: RoleAccess,
    /// The database that it is on.
    pub database: Names,
    /// What the server speaks.
    pub dialect: Dialect,
    /// Between changes of its login.
    pub rotation_ms: i64,
    /// When a change is overdue.
    pub deadline: Deadline,
}

impl WantedRole {
    /// The role of this UID on a database.
    pub fn new(
        id: &str,
        access: RoleAccess,
        database: Names,
        dialect: Dialect,
        rotation_ms: i64,
    ) -> WantedRole {
        let name = |suffix: &str| plain_name(format!("r_{}{suffix}", digest(id)));
        WantedRole {
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
        match user {
            User::A => &self.users[0],
            User::B => &self.users[1],
        }
    }

    /// The group that holds the rights, where the engine has groups.
    pub fn group(&self) -> &Identifier {
        self.database.group(self.access)
    }

    /// The mark on one of its users: the count of its password, what it may do and where.
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
pub struct SeenMember {
    /// As every user.
    pub user: SeenUser,
    /// What it may do.
    pub access: String,
    /// The id of the database that it is for.
    pub database: String,
}

impl SeenMember {
    /// Reads the note on a user's mark.
    pub fn read(note: &str, can_log_in: bool, sessions: u64) -> SeenMember {
        let mut words = note.splitn(3, ' ');
        let generation = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        let mut word = || words.next().unwrap_or_default().to_owned();
        SeenMember { user: SeenUser { generation, can_log_in, sessions }, access: word(), database: word() }
    }
}

/// Everything of one role that a server shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenRole {
    /// The group, and what it was last set up as; free where the engine has none.
    pub group: Place<String>,
    /// User A, user B.
    pub users: [Place<SeenMember>; 2],
    /// Marks of users that are not there, where marks can outlive them.
    pub left_over: [bool; 2],
    /// Whether the database is there under its name and takes connections.
    pub is_open: bool,
}

impl SeenRole {
    fn user(&self, user: User) -> &Place<SeenMember> {
        match user {
            User::A => &self.users[0],
            User::B => &self.users[1],
        }
    }

    fn is_left_over(&self, user: User) -> bool {
        match user {
            User::A => self.left_over[0],
            User::B => self.left_over[1],
        }
    }

    fn as_users(&self) -> Seen {
        let users = self.users.clone().map(|place| match place {
            Place::Free => Place::Free,
            Place::Foreign(stranger) => Place::Foreign(stranger),
            Place::Ours(member) => Place::Ours(member.user),
        });
        Seen { users, ..Seen::default() }
    }
}

/// What is to be done next for a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleStep {
    /// Make the group, with its mark.
    CreateGroup,
    /// Give the group its rights, on what is there and on what the owner makes later.
    SetUpGroup,
    /// Make a user that cannot log in yet, with its mark and its rights.
    CreateUser(User),
    /// Give a user other rights.
    SetAccess {
        /// Whom.
        user: User,
        /// The count of the password that it has and keeps.
        generation: u64,
    },
    /// Drop a user. What it may have made is given to the owner of the database, where that can be entered.
    DropUser {
        /// Whom.
        user: User,
        /// Whether the database can be entered.
        is_open: bool,
    },
    /// A step that every login takes; `Forget` says that nothing is left.
    Login(Step),
}

/// The next step towards a login for a role.
pub fn serve_role(
    wanted: &WantedRole,
    seen: &SeenRole,
    ledger: Option<&Ledger>,
    request: Option<&Request>,
    now: Time,
) -> RoleStep {
    let none = Ledger::default();
    let known = ledger.unwrap_or(&none);
    if let Some(step) = revoke_first(&seen.as_users(), known, request) {
        return RoleStep::Login(step);
    }
    if let Some(taken) = find_taken(wanted, seen) {
        return RoleStep::Login(Step::Refuse(taken));
    }
    let is_elsewhere = |member: &SeenMember| member.database != wanted.database.id;
    if User::BOTH.into_iter().any(|user| seen.user(user).ours().is_some_and(is_elsewhere)) {
        // Its claim has got another database: the old logins go first.
        return withdraw_role(seen, ledger.is_some());
    }
    if wanted.dialect == Dialect::Postgresql {
        match &seen.group {
            Place::Ours(form) if *form == wanted.group_mark().note => {}
            Place::Ours(_) => return RoleStep::SetUpGroup,
            Place::Free | Place::Foreign(_) => return RoleStep::CreateGroup,
        }
    }
    for user in User::BOTH {
        match seen.user(user).ours() {
            None => return RoleStep::CreateUser(user),
            Some(member) if member.access != wanted.access.word() => {
                return RoleStep::SetAccess { user, generation: member.user.generation };
            }
            Some(_) => {}
        }
    }
    RoleStep::Login(log_in((wanted.rotation_ms, wanted.deadline), &seen.as_users(), known, request, now))
}

/// The next step towards no login. `has_secrets` says whether anything of it is still written down.
pub fn withdraw_role(seen: &SeenRole, has_secrets: bool) -> RoleStep {
    let is_live = |user: User| {
        seen.user(user).ours().is_some_and(|member| member.user.can_log_in || member.user.sessions > 0)
    };
    let is_there = |user: User| seen.user(user).ours().is_some() || seen.is_left_over(user);
    if let Some(user) = User::BOTH.into_iter().find(|user| is_live(*user)) {
        return RoleStep::Login(Step::Revoke(user));
    }
    if has_secrets {
        return RoleStep::Login(Step::ForgetLogins);
    }
    match User::BOTH.into_iter().find(|user| is_there(*user)) {
        Some(user) => RoleStep::DropUser { user, is_open: seen.is_open },
        None => RoleStep::Login(Step::Forget),
    }
}

fn find_taken(wanted: &WantedRole, seen: &SeenRole) -> Option<Refusal> {
    let user = |user: User| taken(seen.user(user), Thing::User, wanted.user(user));
    let group = taken(&seen.group, Thing::Role, wanted.group());
    group.or_else(|| user(User::A)).or_else(|| user(User::B))
}

#[cfg(test)]
mod tests;
