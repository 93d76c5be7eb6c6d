//! A new login is tried before an application gets it. Where the server refuses it, what an application chose that
//! sessions in its database begin with ends, and it is tried once more. What is refused then is not published: the
//! message names what an administrator chose that may be in the way.

use super::access::Access;
use super::pool::{Session, run_as};
use super::trouble::Trouble;
use conductor_sql_plan::names::Identifier;
use conductor_sql_plan::sql::{Dialect, remaining_settings, reset_settings};

/// Most settings that a message names.
const NAMED_MAX: usize = 10;

/// Tries a login before it is published.
///
/// # Errors
/// The login does not work, or the server does not answer.
pub(super) async fn require_login(
    session: &mut Session,
    access: &Access,
    (database, user): (&Identifier, &Identifier),
) -> Result<(), Trouble> {
    let first = try_login(access).await;
    if !is_refused(&first) {
        return first;
    }
    if let Some(batch) = reset_settings(session.dialect(), database) {
        session.send_batch(&batch).await?;
        let second = try_login(access).await;
        if !is_refused(&second) {
            return second;
        }
    }
    let settings = match remaining_settings(session.dialect(), database, user) {
        Some(question) => session.ask(&question).await?,
        None => Vec::new(),
    };
    let settings: Vec<String> = settings.into_iter().filter_map(|[first, ..]| first).collect();
    let said = first.err().map(|trouble| trouble.to_string()).unwrap_or_default();
    Err(Trouble::LoginRefused(message(session.dialect(), user, &said, &settings)))
}

/// Logs in as an application would, and asks for nothing but an answer. One that is told that all its connections are
/// taken has been let in by its password: whoever takes them shall not keep a leaked login alive.
///
/// # Errors
/// The login does not work.
pub(super) async fn try_login(access: &Access) -> Result<(), Trouble> {
    match run_as(access, "SELECT 1").await {
        Ok(_) | Err(Trouble::Crowded(_)) => Ok(()),
        Err(trouble) => Err(trouble),
    }
}

/// A server that does not answer refuses nobody.
fn is_refused(tried: &Result<(), Trouble>) -> bool {
    matches!(tried, Err(Trouble::Refused(_) | Trouble::Credentials(_)))
}

/// What happened, and what an administrator can do. `settings` are the statements that end what sessions begin with.
fn message(dialect: Dialect, user: &Identifier, said: &str, settings: &[String]) -> String {
    let fix = match (dialect, settings) {
        (Dialect::Mariadb | Dialect::Mysql, _) => {
            format!("look at SHOW CREATE USER and SHOW GRANTS FOR '{user}'@'%', and end what keeps it out")
        }
        (Dialect::Postgresql, []) => {
            format!(
                "no setting of the database or of {user} is left; look at pg_hba.conf and at the server's log"
            )
        }
        (Dialect::Postgresql, settings) => {
            let named = settings.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join("; ");
            let more = match settings.len().saturating_sub(NAMED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("settings may keep it out, and a superuser can end them: {named}{more}")
        }
    };
    format!("the new login {user} is not published, because it cannot be used: {said}; {fix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_login_is_told_with_what_may_end_the_refusal() {
        let user = Identifier::read("u").expect("plain");
        let settings =
            |count: usize| (0..count).map(|at| format!("ALTER DATABASE d RESET s{at}")).collect::<Vec<_>>();
        let told = message(Dialect::Postgresql, &user, "server h:1: no", &settings(2));
        assert_eq!(
            told,
            "the new login u is not published, because it cannot be used: server h:1: no; settings may keep it out, and a \
             superuser can end them: ALTER DATABASE d RESET s0; ALTER DATABASE d RESET s1"
        );
        let told = message(Dialect::Postgresql, &user, "no", &settings(12));
        assert!(told.ends_with("RESET s9 and 2 more"), "{told}");
        assert!(message(Dialect::Postgresql, &user, "no", &[]).contains("pg_hba.conf"));
        assert!(message(Dialect::Mariadb, &user, "no", &[]).contains("SHOW CREATE USER"));
    }

    #[test]
    fn a_server_that_does_not_answer_refuses_nobody() {
        for (tried, refused) in [
            (Ok(()), false),
            (Err(Trouble::Unreachable(String::new())), false),
            (Err(Trouble::Invalid(String::new())), false),
            (Err(Trouble::Refused(String::new())), true),
            (Err(Trouble::Credentials(String::new())), true),
        ] {
            assert_eq!(is_refused(&tried), refused, "{tried:?}");
        }
    }
}
