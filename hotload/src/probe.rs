//! Tries a login with the built-in driver: connects, sends one query, disconnects. The settings can replace it.

use crate::{Engine, Error, Login};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// How long a try may take.
const WITHIN: Duration = Duration::from_secs(5);

/// A way to try a login.
pub(crate) type Probe =
    Arc<dyn Fn(Arc<Login>) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync>;

/// The built-in driver.
pub(crate) fn built_in() -> Probe {
    Arc::new(|login| Box::pin(async move { connect_once(&login).await }))
}

/// Tries a login.
///
/// # Errors
/// The server or the driver refuses the login, or does not respond in time.
pub(crate) async fn try_login(probe: &Probe, login: &Arc<Login>) -> Result<(), Error> {
    match tokio::time::timeout(WITHIN, probe(Arc::clone(login))).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(reason)) => Err(Error::Refused { login: login.to_string(), reason }),
        Err(_) => Err(Error::NoAnswer { login: login.to_string(), within: WITHIN }),
    }
}

async fn connect_once(login: &Login) -> Result<(), String> {
    match login.engine() {
        #[cfg(feature = "deadpool")]
        Engine::Postgresql => crate::deadpool::connect_once(login).await,
        #[cfg(all(feature = "sqlx", not(feature = "deadpool")))]
        Engine::Postgresql => crate::sqlx::connect_once::<sqlx::Postgres>(login).await,
        #[cfg(not(any(feature = "deadpool", feature = "sqlx")))]
        Engine::Postgresql => {
            Err("no driver is built in: choose the feature `deadpool` or `sqlx`".to_owned())
        }
        #[cfg(feature = "sqlx")]
        Engine::Mysql => crate::sqlx::connect_once::<sqlx::MySql>(login).await,
        #[cfg(not(feature = "sqlx"))]
        Engine::Mysql => Err("no driver for MySQL is built in: choose the feature `sqlx`".to_owned()),
    }
}
