//! Opens connections by tokio-postgres, and ends them from outside when their login must not be used any longer.

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

/// A server that is gone without a word is noticed by then.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// The settings of the driver for a login.
///
/// # Errors
/// The login is for another engine, or holds a parameter that the driver does not know.
pub(super) fn config(login: &Login) -> Result<Config, Error> {
    if login.engine() != Engine::Postgresql {
        let why = format!("login {login}: deadpool-postgres speaks PostgreSQL only: use the feature `sqlx`");
        return Err(Error::Unsupported(why));
    }
    let quote = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
    let parameters = login.parameters().iter();
    let words: Vec<String> = parameters.map(|(name, value)| format!("{name}='{}'", quote(value))).collect();
    let mut config: Config = words.join(" ").parse()?;
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

/// Tries a login: connects, asks one question, goes.
///
/// # Errors
/// What the server or the driver says.
pub(crate) async fn knock(login: &Login) -> Result<(), String> {
    let config = config(login).map_err(|error| error.to_string())?;
    let tls = Tls::for_login(login).map_err(|error| error.to_string())?;
    let (client, connection) = tls.connect(config, None).await.map_err(|error| chain(&error))?;
    let answer = client.simple_query("SELECT 1").await;
    connection.abort();
    answer.map(drop).map_err(|error| chain(&error))
}

/// Opens connections of one login.
pub(super) struct Hot {
    tls: Tls,
    end: End,
}

/// When a connection must end: as soon as the floor is above its generation.
#[derive(Clone)]
struct End {
    told: watch::Receiver<Adopted>,
    generation: u64,
}

impl Hot {
    /// # Errors
    /// The login wants TLS, and this build or this machine cannot.
    pub(super) fn new(source: &Source, adopted: &Adopted) -> Result<Hot, Error> {
        let end = End { told: source.told(), generation: adopted.generation };
        Ok(Hot { tls: Tls::for_login(&adopted.login)?, end })
    }
}

impl Connect for Hot {
    fn connect(&self, config: &Config) -> Pin<Box<dyn Future<Output = Opened> + Send + '_>> {
        let (config, end) = (config.clone(), self.end.clone());
        Box::pin(async move { self.tls.connect(config, Some(end)).await })
    }
}

type Opened = Result<(Client, JoinHandle<()>), tokio_postgres::Error>;

/// How connections are protected.
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
                Err(Error::Unsupported(format!("login {login}: it wants TLS: choose the feature `tls`")))
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
            // Its socket is closed by now. A server in the middle of a long query does not notice that until it is
            // told; in a task of its own, for this one ends with the client.
            () = must_end(end) => drop(tokio::spawn(timeout(CONNECT_WITHIN, async move {
                let _ = cancel.cancel_query(tls).await;
            }))),
        }
    });
    Ok((client, task))
}

async fn must_end(end: Option<End>) {
    if let Some(End { mut told, generation }) = end
        && told.wait_for(|adopted| adopted.floor > generation).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}
