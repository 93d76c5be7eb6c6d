//! Opens connections with tokio-postgres, and ends them from outside when their login must no longer be used.

use crate::error::chain;
use crate::source::Adopted;
use crate::{Engine, Error, Login, Source, SslMode};
use deadpool_postgres::Connect;
use deadpool_postgres::tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use deadpool_postgres::tokio_postgres::{self, Client, Config, NoTls, Socket};
use secrecy::ExposeSecret;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// When an unreachable server that does not refuse the connection is given up.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// The settings of the driver for a login.
///
/// # Errors
/// The login is for another engine, or holds a parameter that the driver does not know.
pub(super) fn config(login: &Login) -> Result<Config, Error> {
    if login.engine() != Engine::Postgresql {
        let why =
            format!("login {login}: deadpool-postgres supports PostgreSQL only: use the feature `sqlx`");
        return Err(Error::Unsupported(why));
    }
    let quote = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
    let parameters = login.parameters().iter();
    let pairs: Vec<String> = parameters.map(|(name, value)| format!("{name}='{}'", quote(value))).collect();
    let mut config: Config = pairs.join(" ").parse()?;
    config.host(login.host()).port(login.port()).user(login.username()).dbname(login.database());
    config.password(login.password().expose_secret());
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_WITHIN);
    }
    config.ssl_mode(match login.ssl_mode() {
        SslMode::Disable => tokio_postgres::config::SslMode::Disable,
        SslMode::Prefer => tokio_postgres::config::SslMode::Prefer,
        SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => {
            tokio_postgres::config::SslMode::Require
        }
    });
    Ok(config)
}

/// Tries a login: connects, sends one query, disconnects.
///
/// # Errors
/// The server or the driver refuses the login.
pub(crate) async fn connect_once(login: &Login) -> Result<(), String> {
    let config = config(login).map_err(|error| error.to_string())?;
    let tls = Tls::for_login(login).map_err(|error| error.to_string())?;
    let (client, connection) = tls.connect(config, None).await.map_err(|error| chain(&error))?;
    let answer = client.simple_query("SELECT 1").await;
    connection.abort();
    answer.map(drop).map_err(|error| chain(&error))
}

/// Opens connections of one login.
pub(super) struct Connector {
    tls: Tls,
    end: End,
}

/// Ends a connection as soon as the floor is above its generation.
#[derive(Clone)]
struct End {
    adoptions: watch::Receiver<Adopted>,
    generation: u64,
}

impl Connector {
    /// # Errors
    /// The login requires TLS, which this build or this machine does not support.
    pub(super) fn new(source: &Source, adopted: &Adopted) -> Result<Connector, Error> {
        let end = End { adoptions: source.adoptions(), generation: adopted.generation };
        Ok(Connector { tls: Tls::for_login(&adopted.login)?, end })
    }
}

impl Connect for Connector {
    fn connect(&self, config: &Config) -> Pin<Box<dyn Future<Output = Opened> + Send + '_>> {
        let (config, end) = (config.clone(), self.end.clone());
        Box::pin(async move { self.tls.connect(config, Some(end)).await })
    }
}

type Opened = Result<(Client, JoinHandle<()>), tokio_postgres::Error>;

/// The encryption of connections.
enum Tls {
    Plain,
    #[cfg(feature = "tls")]
    Protected(tokio_postgres_rustls::MakeRustlsConnect),
}

impl Tls {
    #[cfg(feature = "tls")]
    fn for_login(login: &Login) -> Result<Tls, Error> {
        Ok(match crate::tls::client_config(login.ssl_mode())? {
            None => Tls::Plain,
            Some(config) => Tls::Protected(tokio_postgres_rustls::MakeRustlsConnect::new(config)),
        })
    }

    #[cfg(not(feature = "tls"))]
    fn for_login(login: &Login) -> Result<Tls, Error> {
        match login.ssl_mode() {
            SslMode::Disable | SslMode::Prefer => Ok(Tls::Plain),
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => {
                Err(Error::Unsupported(format!("login {login}: TLS is required: enable the feature `tls`")))
            }
        }
    }

    async fn connect(&self, config: Config, end: Option<End>) -> Opened {
        match self {
            Tls::Plain => open(config, NoTls, end).await,
            #[cfg(feature = "tls")]
            Tls::Protected(rustls) => open(config, rustls.clone(), end).await,
        }
    }
}

async fn open<T>(config: Config, tls: T, end: Option<End>) -> Opened
where
    T: MakeTlsConnect<Socket> + Clone + Send + 'static,
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let (client, connection) = config.connect(tls.clone()).await?;
    let cancel = client.cancel_token();
    let task = tokio::spawn(async move {
        tokio::select! {
            ended = connection => if let Err(error) = ended {
                tracing::debug!(error = %chain(&error), "a connection ended");
            },
            // Its socket is closed by now. A server in a long query does not notice that, so cancel the query; in a task of
            // its own, because this one ends with the client.
            () = must_end(end) => drop(tokio::spawn(timeout(CONNECT_WITHIN, async move {
                let _ = cancel.cancel_query(tls).await;
            }))),
        }
    });
    Ok((client, task))
}

async fn must_end(end: Option<End>) {
    if let Some(End { mut adoptions, generation }) = end
        && adoptions.wait_for(|adopted| adopted.floor > generation).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}
