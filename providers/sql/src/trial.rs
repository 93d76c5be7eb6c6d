//! Tries a new login before an application gets it. Where the server refuses it, the session settings that the application
//! chose for its database are reset, and it is tried once more. A login that is refused then is not published: the message
//! names the administrator's settings that may prevent it.

use super::access::Access;
use super::error::Error;
use super::pool::{Session, run_as};
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
) -> Result<(), Error> {
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
        Some(query) => session.query(&query).await?,
        None => Vec::new(),
    };
    let settings: Vec<String> = settings.into_iter().filter_map(|[first, ..]| first).collect();
    let said = first.err().map(|error| error.to_string()).unwrap_or_default();
    Err(Error::LoginRefused(message(session.dialect(), user, &said, &settings)))
}

/// Logs in as an application would. A login whose connections are all taken has passed the password check: their holder
/// must not keep a leaked login alive.
///
/// # Errors
/// The login does not work.
pub(super) async fn try_login(access: &Access) -> Result<(), Error> {
    match run_as(access, "SELECT 1").await {
        Ok(_) | Err(Error::Crowded(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A server that does not answer refuses no login.
fn is_refused(tried: &Result<(), Error>) -> bool {
    matches!(tried, Err(Error::Refused(_) | Error::Credentials(_)))
}

/// What happened, and what an administrator can do. `settings` are the statements that reset session settings.
fn message(dialect: Dialect, user: &Identifier, said: &str, settings: &[String]) -> String {
    let fix = match (dialect, settings) {
        (Dialect::Mariadb | Dialect::Mysql, _) => {
            format!("check SHOW CREATE USER and SHOW GRANTS FOR '{user}'@'%', and remove what keeps it out")
        }
        (Dialect::Postgresql, []) => {
            format!("no setting of the database or of {user} is left; check pg_hba.conf and the server's log")
        }
        (Dialect::Postgresql, settings) => {
            let named = settings.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join("; ");
            let more = match settings.len().saturating_sub(NAMED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("settings may keep it out, and a superuser can reset them: {named}{more}")
        }
    };
    format!("the new login {user} is not published, because it cannot be used: {said}; {fix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_login_is_reported_with_its_fix() {
        let user = Identifier::read("u").expect("plain");
        let settings =
            |count: usize| (0..count).map(|at| format!("ALTER DATABASE d RESET s{at}")).collect::<Vec<_>>();
        let text = message(Dialect::Postgresql, &user, "server h:1: no", &settings(2));
        assert_eq!(
            text,
            "the new login u is not published, because it cannot be used: server h:1: no; settings may keep it out, and a \
             superuser can reset them: ALTER DATABASE d RESET s0; ALTER DATABASE d RESET s1"
        );
        let text = message(Dialect::Postgresql, &user, "no", &settings(12));
        assert!(text.ends_with("RESET s9 and 2 more"), "{text}");
        assert!(message(Dialect::Postgresql, &user, "no", &[]).contains("pg_hba.conf"));
        assert!(message(Dialect::Mariadb, &user, "no", &[]).contains("SHOW CREATE USER"));
    }

    #[test]
    fn a_silent_server_refuses_no_login() {
        for (tried, refused) in [
            (Ok(()), false),
            (Err(Error::Unreachable(String::new())), false),
            (Err(Error::Invalid(String::new())), false),
            (Err(Error::Refused(String::new())), true),
            (Err(Error::Credentials(String::new())), true),
        ] {
            assert_eq!(is_refused(&tried), refused, "{tried:?}");
        }
    }
}
