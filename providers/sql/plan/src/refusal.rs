//! Why a database cannot be made or served, in words for whoever claims it: what is in the way, whose it is as far as
//! they may know, and what they can choose instead. Nobody is ever advised to remove what is another claim's.

use super::names::Identifier;
use super::seen::{OpenGrant, Place, Stranger};
use std::fmt;

/// Why it cannot go on by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Something of that name is not ours.
    Taken {
        /// What it is.
        what: Thing,
        /// What it is called.
        name: Identifier,
        /// Whose it is.
        by: Stranger,
    },
    /// A grant of the server would let others into a database of that name.
    Open {
        /// What the database would be called.
        name: Identifier,
        /// The grant.
        grant: OpenGrant,
    },
    /// The database was there and is gone.
    Gone,
    /// The claim's database was asked back, and is on another server.
    Elsewhere {
        /// Which one.
        server: String,
    },
}

/// Something on a server that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    /// A database.
    Database,
    /// A user that logs in.
    User,
    /// An owner or a group, which does not.
    Role,
}

impl Thing {
    fn word(self) -> &'static str {
        match self {
            Thing::Database => "database",
            Thing::User => "user",
            Thing::Role => "role",
        }
    }

    /// What a claim can say to have another name, where the name was a claim's choice.
    fn choice(self, name: &Identifier) -> Option<&'static str> {
        let field = match self {
            Thing::Database => "choose another parameters.databaseName",
            Thing::User => "choose another parameters.userName",
            Thing::Role => return None,
        };
        Identifier::read_chosen(name.as_str()).is_ok().then_some(field)
    }
}

/// The refusal where a place is not ours.
pub(super) fn taken<T>(place: &Place<T>, what: Thing, name: &Identifier) -> Option<Refusal> {
    place.stranger().map(|by| Refusal::Taken { what, name: name.clone(), by: by.clone() })
}

/// The claim that what is in the way belongs to, as its record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder<'a> {
    /// The claim, by namespace and name.
    pub claim: (&'a str, &'a str),
    /// Whether the claim is gone, and its database kept or in quarantine.
    pub is_left: bool,
}

impl Refusal {
    /// The name of a database is reserved for another one, by its id.
    pub fn reserved(name: Identifier, id: String) -> Refusal {
        Refusal::Taken { what: Thing::Database, name, by: Stranger::Another(id) }
    }

    /// The id of the database or role whose mark is in the way.
    pub fn marked_by(&self) -> Option<&str> {
        match self {
            Refusal::Taken { by: Stranger::Another(id), .. } => Some(id),
            Refusal::Taken { by: Stranger::Unmarked, .. }
            | Refusal::Open { .. }
            | Refusal::Gone
            | Refusal::Elsewhere { .. } => None,
        }
    }

    /// The refusal as this claim may hear it. Who holds what in another namespace is not its business.
    pub fn told_to(&self, claim: (&str, &str), holder: Option<Holder<'_>>) -> String {
        let (Refusal::Taken { what, name, by: Stranger::Another(_) }, Some(holder)) = (self, holder) else {
            return self.to_string();
        };
        let (thing, (namespace, owner)) = (what.word(), holder.claim);
        let choice = what.choice(name).unwrap_or("ask an administrator");
        match (holder.claim == claim, namespace == claim.0, holder.is_left) {
            (true, _, _) => format!(
                "{thing} {name} on the server was left by an earlier claim of this name: run conductor undelete \
                 {namespace}/{owner} to have its database back, or {choice} to begin anew"
            ),
            (false, true, true) => format!(
                "{thing} {name} on the server was left by claim {owner}, which is gone and can be asked back: {choice}"
            ),
            (false, true, false) => {
                format!("{thing} {name} on the server is that of claim {owner}: {choice}")
            }
            (false, false, _) => self.to_string(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Taken { what, name, by: Stranger::Unmarked } => {
                let choice = what.choice(name).map(|choice| format!("{choice}, or ")).unwrap_or_default();
                let what = what.word();
                write!(
                    f,
                    "{what} {name} exists on the server and does not carry Conductor's mark: {choice}rename or remove it there"
                )
            }
            Refusal::Taken { what, name, by: Stranger::Another(_) } => {
                let choice = what.choice(name).unwrap_or("ask an administrator");
                write!(f, "{} {name} on the server is another claim's: {choice}", what.word())
            }
            Refusal::Elsewhere { server } => write!(
                f,
                "the database that was restored for this claim is on {server}, and the claim is bound to another server; no \
                 empty database takes its place: select the resource of {server}, or claim under another name"
            ),
            Refusal::Open { name, grant } => {
                let choice = Thing::Database.choice(name).map(|choice| format!("{choice}, or ")).unwrap_or_default();
                // Which accounts an administrator has is none of a claim's business.
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
                "the database was there and is gone; it is not replaced by an empty one: restore it on the server, or make a new claim",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(what: Thing, name: &str, by: Option<&str>, holder: Option<Holder<'_>>) -> String {
        let by = by.map_or(Stranger::Unmarked, |id| Stranger::Another(id.to_owned()));
        let name = Identifier::read(name).expect("plain");
        Refusal::Taken { what, name, by }.told_to(("shop", "orders"), holder)
    }

    #[test]
    fn a_name_that_the_servers_grants_open_is_refused_with_the_fix() {
        let name = Identifier::read("test_tenant").expect("plain");
        let open = |user: &str| {
            let grant =
                OpenGrant { pattern: "test\\_%".to_owned(), user: user.to_owned(), host: "%".to_owned() };
            Refusal::Open { name: name.clone(), grant }.told_to(("shop", "orders"), None)
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
    fn what_is_anothers_is_said_to_be_and_nobody_is_told_to_remove_it() {
        let holder = |namespace, name, is_left| Some(Holder { claim: (namespace, name), is_left });
        let lines = [
            told(Thing::Database, "main", None, None),
            told(Thing::Role, "c_1", None, None),
            told(Thing::Database, "main", Some("u"), None),
            told(Thing::User, "app_a", Some("u"), holder("bank", "ledger", false)),
            told(Thing::Database, "main", Some("u"), holder("shop", "bills", false)),
            told(Thing::Database, "main", Some("u"), holder("shop", "bills", true)),
            told(Thing::Database, "main", Some("u"), holder("shop", "orders", true)),
        ];
        expect_test::expect![[r#"
            database main exists on the server and does not carry Conductor's mark: choose another parameters.databaseName, or rename or remove it there
            role c_1 exists on the server and does not carry Conductor's mark: rename or remove it there
            database main on the server is another claim's: choose another parameters.databaseName
            user app_a on the server is another claim's: choose another parameters.userName
            database main on the server is that of claim bills: choose another parameters.databaseName
            database main on the server was left by claim bills, which is gone and can be asked back: choose another parameters.databaseName
            database main on the server was left by an earlier claim of this name: run conductor undelete shop/orders to have its database back, or choose another parameters.databaseName to begin anew"#]]
        .assert_eq(&lines.join("\n"));
        for line in &lines[2..] {
            assert!(!line.contains("remove"), "{line}");
        }
    }
}
