//! Why a database cannot be created or served, worded for the claim's user: what is in the way, its owner as far as the
//! user may know it, and what to choose instead. A user is never advised to remove another claim's object.

use super::names::Identifier;
use super::observed::{ForeignOwner, NameState, OpenGrant};
use std::fmt;

/// Why a database cannot proceed until a user changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A foreign object has the name.
    Taken {
        /// The kind of object.
        what: Thing,
        /// Its name.
        name: Identifier,
        /// Its owner.
        by: ForeignOwner,
    },
    /// A grant of the server would let other logins into a database of that name.
    Open {
        /// The name of the database.
        name: Identifier,
        /// The grant.
        grant: OpenGrant,
    },
    /// The database existed and is lost.
    Gone,
    /// The claim's restored database is on another server.
    Elsewhere {
        /// That server, by kind and name.
        server: String,
    },
}

/// The kinds of objects on a server that have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    /// A database.
    Database,
    /// A user, which can log in.
    User,
    /// An owner or a group, which cannot log in.
    Role,
}

impl Thing {
    fn as_str(self) -> &'static str {
        match self {
            Thing::Database => "database",
            Thing::User => "user",
            Thing::Role => "role",
        }
    }

    /// How a claim can choose another name, if it chose this one.
    fn choice(self, name: &Identifier) -> Option<&'static str> {
        let field = match self {
            Thing::Database => "choose another parameters.databaseName",
            Thing::User => "choose another parameters.userName",
            Thing::Role => return None,
        };
        Identifier::read_chosen(name.as_str()).is_ok().then_some(field)
    }
}

/// The refusal where the object is not ours.
pub(super) fn taken<T>(place: &NameState<T>, what: Thing, name: &Identifier) -> Option<Refusal> {
    place.foreign_owner().map(|by| Refusal::Taken { what, name: name.clone(), by: by.clone() })
}

/// The claim that owns the object in the way, from its LogicalDatabase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder<'a> {
    /// The claim, by namespace and name.
    pub claim: (&'a str, &'a str),
    /// Whether the claim was deleted, and its database is retained or in quarantine.
    pub is_left: bool,
}

impl Refusal {
    /// The refusal where the name is reserved for the database with this id.
    pub fn reserved(name: Identifier, id: String) -> Refusal {
        Refusal::Taken { what: Thing::Database, name, by: ForeignOwner::Another(id) }
    }

    /// The id of the database or role whose mark is in the way.
    pub fn marked_by(&self) -> Option<&str> {
        match self {
            Refusal::Taken { by: ForeignOwner::Another(id), .. } => Some(id),
            Refusal::Taken { by: ForeignOwner::Unmarked, .. }
            | Refusal::Open { .. }
            | Refusal::Gone
            | Refusal::Elsewhere { .. } => None,
        }
    }

    /// The message for this claim. It does not reveal the owners in other namespaces.
    pub fn message_for(&self, claim: (&str, &str), holder: Option<Holder<'_>>) -> String {
        let (Refusal::Taken { what, name, by: ForeignOwner::Another(_) }, Some(holder)) = (self, holder)
        else {
            return self.to_string();
        };
        let (thing, (namespace, owner)) = (what.as_str(), holder.claim);
        let choice = what.choice(name).unwrap_or("ask an administrator");
        match (holder.claim == claim, namespace == claim.0, holder.is_left) {
            (true, _, _) => format!(
                "{thing} {name} on the server was left by an earlier claim of this name: run conductor undelete \
                 {namespace}/{owner} to restore its database, or {choice} to start with an empty one"
            ),
            (false, true, true) => format!(
                "{thing} {name} on the server was left by claim {owner}, which was deleted and can be restored: {choice}"
            ),
            (false, true, false) => {
                format!("{thing} {name} on the server belongs to claim {owner}: {choice}")
            }
            (false, false, _) => self.to_string(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Taken { what, name, by: ForeignOwner::Unmarked } => {
                let choice = what.choice(name).map(|choice| format!("{choice}, or ")).unwrap_or_default();
                let what = what.as_str();
                write!(
                    f,
                    "{what} {name} exists on the server and does not carry Conductor's mark: {choice}rename or remove it there"
                )
            }
            Refusal::Taken { what, name, by: ForeignOwner::Another(_) } => {
                let choice = what.choice(name).unwrap_or("ask an administrator");
                write!(f, "{} {name} on the server belongs to another claim: {choice}", what.as_str())
            }
            Refusal::Elsewhere { server } => write!(
                f,
                "the database that was restored for this claim is on {server}, and the claim is bound to another server; no \
                 empty database takes its place: select the resource of {server}, or claim under another name"
            ),
            Refusal::Open { name, grant } => {
                let choice = Thing::Database.choice(name).map(|choice| format!("{choice}, or ")).unwrap_or_default();
                // Do not reveal an administrator's accounts to a claim.
                let (whom, fix) = match grant.is_for_all() {
                    true => ("every login of the server", grant.remedy()),
                    false => ("another account", "revoke that grant".to_owned()),
                };
                write!(
                    f,
                    "database {name} would be open to {whom}, by the server's grant on `{}`: {choice}ask an administrator \
                     of the server: {fix}",
                    grant.pattern
                )
            }
            Refusal::Gone => f.write_str(
                "the database no longer exists on the server and is not replaced by an empty one: restore it there, or create a new claim",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(what: Thing, name: &str, by: Option<&str>, holder: Option<Holder<'_>>) -> String {
        let by = by.map_or(ForeignOwner::Unmarked, |id| ForeignOwner::Another(id.to_owned()));
        let name = Identifier::read(name).expect("plain");
        Refusal::Taken { what, name, by }.message_for(("shop", "orders"), holder)
    }

    #[test]
    fn a_name_that_the_servers_grants_open_is_refused_with_the_fix() {
        let name = Identifier::read("test_tenant").expect("plain");
        let open = |user: &str| {
            let grant =
                OpenGrant { pattern: "test\\_%".to_owned(), user: user.to_owned(), host: "%".to_owned() };
            Refusal::Open { name: name.clone(), grant }.message_for(("shop", "orders"), None)
        };
        assert_eq!(
            open("PUBLIC"),
            "database test_tenant would be open to every login of the server, by the server's grant on `test\\_%`: choose \
             another parameters.databaseName, or ask an administrator of the server: REVOKE ALL PRIVILEGES ON \
             `test\\_%`.* FROM PUBLIC"
        );
        assert!(!open("secretive").contains("secretive"), "{}", open("secretive"));
    }

    #[test]
    fn an_object_of_another_claim_is_named_and_never_to_be_removed() {
        let holder = |namespace, name, is_left| Some(Holder { claim: (namespace, name), is_left });
        let lines = [
            message(Thing::Database, "main", None, None),
            message(Thing::Role, "c_1", None, None),
            message(Thing::Database, "main", Some("u"), None),
            message(Thing::User, "app_a", Some("u"), holder("bank", "ledger", false)),
            message(Thing::Database, "main", Some("u"), holder("shop", "bills", false)),
            message(Thing::Database, "main", Some("u"), holder("shop", "bills", true)),
            message(Thing::Database, "main", Some("u"), holder("shop", "orders", true)),
        ];
        expect_test::expect![[r#"
            database main exists on the server and does not carry Conductor's mark: choose another parameters.databaseName, or rename or remove it there
            role c_1 exists on the server and does not carry Conductor's mark: rename or remove it there
            database main on the server belongs to another claim: choose another parameters.databaseName
            user app_a on the server belongs to another claim: choose another parameters.userName
            database main on the server belongs to claim bills: choose another parameters.databaseName
            database main on the server was left by claim bills, which was deleted and can be restored: choose another parameters.databaseName
            database main on the server was left by an earlier claim of this name: run conductor undelete shop/orders to restore its database, or choose another parameters.databaseName to start with an empty one"#]]
        .assert_eq(&lines.join("\n"));
        for line in &lines[2..] {
            assert!(!line.contains("remove"), "{line}");
        }
    }
}
