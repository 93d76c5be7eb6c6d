//! Decides whether the server that answers is the recorded one. A server's identity moves with its data: on PostgreSQL the
//! identifier of its cluster, which physical standbys and restores share; on MariaDB and MySQL a marker that Conductor
//! writes beside its marks, which replication and dumps carry along. The identity is recorded at first contact; where
//! another server answers, nothing is written there before an administrator accepts it.

/// The value that accepts a server which has no identity yet.
pub const UNMARKED: &str = "unmarked";

/// The identity of the server that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Its identity.
    Identity(String),
    /// It has none yet: a marker can be written.
    Unmarked,
    /// The administrator may not read it.
    Unreadable,
}

/// What is recorded about a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known<'a> {
    /// The identity in the status of its object.
    pub recorded: Option<&'a str>,
    /// The identity that an administrator accepts.
    pub accepted: Option<&'a str>,
    /// Whether databases on it are recorded, and the server that answers has none of them.
    pub is_strange: bool,
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the recorded server, or servers cannot be distinguished.
    Same,
    /// Record this identity.
    Record(String),
    /// Write a marker there, and record it.
    Mark,
    /// It is another server.
    Refuse {
        /// What is wrong.
        why: String,
        /// The value that accepts it.
        accept: String,
    },
}

/// Compares the server that answers with the recorded one.
pub fn judge(found: &Found, known: Known<'_>) -> Verdict {
    let is_accepted = known.accepted.is_some_and(|accepted| accepted == accept_value(found));
    let refuse = |why: String| Verdict::Refuse { why, accept: accept_value(found).to_owned() };
    match (found, known.recorded) {
        (Found::Identity(identity), Some(recorded)) if identity == recorded => Verdict::Same,
        (Found::Unreadable, None) => Verdict::Same,
        (Found::Unreadable, Some(_)) => {
            let fix = "run GRANT EXECUTE ON FUNCTION pg_control_system() for the administrator";
            refuse(format!("its identity cannot be read: {fix}"))
        }
        (Found::Identity(identity), _) if is_accepted => Verdict::Record(identity.clone()),
        (Found::Unmarked, _) if is_accepted => Verdict::Mark,
        (Found::Identity(identity), Some(recorded)) => {
            refuse(format!("another server answers: its identity is {identity}, on record is {recorded}"))
        }
        (Found::Unmarked, Some(recorded)) => {
            refuse(format!("another server answers: it has no identity, on record is {recorded}"))
        }
        (Found::Identity(_) | Found::Unmarked, None) if known.is_strange => {
            refuse("none of the databases that are on record is found there".to_owned())
        }
        (Found::Identity(identity), None) => Verdict::Record(identity.clone()),
        (Found::Unmarked, None) => Verdict::Mark,
    }
}

fn accept_value(found: &Found) -> &str {
    match found {
        Found::Identity(identity) => identity,
        Found::Unmarked => UNMARKED,
        // An unreadable identity cannot be accepted.
        Found::Unreadable => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_server_is_refused_until_it_is_accepted_by_name() {
        let is = |text: &str| Found::Identity(text.to_owned());
        let judge = |found: &Found, recorded, accepted, is_strange| match judge(
            found,
            Known { recorded, accepted, is_strange },
        ) {
            Verdict::Refuse { accept, .. } => format!("refuse, accept {accept}"),
            other => format!("{other:?}"),
        };
        let lines = [
            judge(&is("a"), None, None, false),
            judge(&Found::Unmarked, None, None, false),
            judge(&Found::Unreadable, None, None, false),
            judge(&is("a"), None, None, true),
            judge(&Found::Unmarked, None, None, true),
            judge(&is("a"), Some("a"), None, true),
            judge(&is("b"), Some("a"), None, false),
            judge(&is("b"), Some("a"), Some("c"), false),
            judge(&is("b"), Some("a"), Some("b"), false),
            judge(&is("b"), None, Some("b"), true),
            judge(&Found::Unmarked, Some("a"), None, false),
            judge(&Found::Unmarked, Some("a"), Some("b"), false),
            judge(&Found::Unmarked, Some("a"), Some("unmarked"), false),
            judge(&Found::Unreadable, Some("a"), Some(""), false),
        ];
        expect_test::expect![[r#"
            Record("a")
            Mark
            Same
            refuse, accept a
            refuse, accept unmarked
            Same
            refuse, accept b
            refuse, accept b
            Record("b")
            Record("b")
            refuse, accept unmarked
            refuse, accept unmarked
            Mark
            refuse, accept "#]]
        .assert_eq(&lines.join("\n"));
    }
}
