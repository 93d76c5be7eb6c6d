//! The source of logins: a folder that is looked at twice a second, and the login that was last adopted from it. One
//! that cannot log in is not adopted: what works now is better than what is new.

use crate::Error;
use crate::files::Login;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::NoTls;

/// How often the folder is looked at.
const EVERY: Duration = Duration::from_millis(500);
/// How long a login may take.
const WITHIN: Duration = Duration::from_secs(5);

/// What becomes of connections of the login before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// They are replaced when they are next taken from the pool.
    #[default]
    Graceful,
    /// They end at once, in the middle of whatever they do.
    Forced,
}

/// A login and how many were adopted before it.
#[derive(Clone, Debug)]
pub(crate) struct Adopted {
    pub generation: u64,
    pub login: Arc<Login>,
}

/// Follows a folder until it is dropped.
#[derive(Debug)]
pub struct Source {
    pub(crate) now: watch::Receiver<Adopted>,
    pub(crate) mode: Mode,
    task: JoinHandle<()>,
}

impl Source {
    /// Reads the folder, tries the login and begins to follow.
    ///
    /// # Errors
    /// There is no login in it, or it does not work.
    pub async fn open(folder: impl AsRef<Path>, mode: Mode) -> Result<Source, Error> {
        let folder = folder.as_ref().to_owned();
        let login = Login::read(&folder).await?;
        try_login(&login).await?;
        let (tell, now) = watch::channel(Adopted { generation: 1, login: Arc::new(login) });
        let task = tokio::spawn(follow(folder, tell));
        Ok(Source { now, mode, task })
    }

    /// How many logins were adopted so far.
    pub fn generation(&self) -> u64 {
        self.now.borrow().generation
    }

    /// Waits until another login has been adopted.
    pub async fn changed(&mut self) {
        if self.now.changed().await.is_err() {
            // Nobody follows any more: nothing changes.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(folder: PathBuf, tell: watch::Sender<Adopted>) {
    let mut refused = None;
    loop {
        tokio::time::sleep(EVERY).await;
        // A swap under way: looked at again.
        let Ok(login) = Login::read(&folder).await else { continue };
        let known = tell.borrow().login.digest;
        if login.digest == known {
            refused = None;
            continue;
        }
        match try_login(&login).await {
            Ok(()) => {
                let generation = tell.borrow().generation + 1;
                tracing::info!(generation, user = login.user(), "a new login is adopted");
                tell.send_replace(Adopted { generation, login: Arc::new(login) });
            }
            Err(error) if refused != Some(login.digest) => {
                tracing::warn!(user = login.user(), %error, "a new login does not work; the one before is kept");
                refused = Some(login.digest);
            }
            Err(_) => {}
        }
    }
}

async fn try_login(login: &Login) -> Result<(), Error> {
    let attempt = async {
        let (client, connection) = login.config.connect(NoTls).await?;
        let connection = tokio::spawn(connection);
        let answer = client.simple_query("SELECT 1").await;
        connection.abort();
        answer.map(drop)
    };
    match tokio::time::timeout(WITHIN, attempt).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Error::Incomplete("the server did not answer in time".to_owned())),
    }
}
