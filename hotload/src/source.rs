//! The source of logins: a folder that is followed, and the login that was last adopted from it. Pools hold a source
//! and ask it; which login is adopted is decided by `desk`.

use crate::desk::{Desk, Next};
use crate::probe::{self, Probe, try_login};
use crate::watch::Watch;
use crate::{Error, Login, folder, login};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// What becomes of connections of the login before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Those in use are left alone, and closed when they are given back.
    #[default]
    Graceful,
    /// They end at once, whatever they do: for passwords that have leaked.
    Forced,
}

/// A login and its number.
#[derive(Clone, Debug)]
pub(crate) struct Adopted {
    /// Counts adoptions, from 1.
    pub generation: u64,
    /// Connections of logins before this one must end now.
    pub floor: u64,
    pub login: Arc<Login>,
}

/// Follows a folder. Clones follow the same; the following ends with the last of them and of its pools.
#[derive(Clone)]
pub struct Source {
    tell: Arc<watch::Sender<Adopted>>,
    adopted: watch::Receiver<Adopted>,
    trouble: watch::Receiver<Option<String>>,
}

impl Source {
    /// Opens a folder with the default settings: [`Source::at`].
    ///
    /// # Errors
    /// No login has worked for a minute: the last trouble.
    pub async fn open(folder: impl AsRef<Path>) -> Result<Source, Error> {
        Source::at(folder).open().await
    }

    /// Settings for a folder, to be changed and opened.
    pub fn at(folder: impl AsRef<Path>) -> Settings {
        Settings {
            folder: folder.as_ref().to_owned(),
            dsn: None,
            mode: Mode::Graceful,
            poll: Duration::from_secs(2),
            patience: Duration::from_secs(60),
            probe: probe::built_in(),
        }
    }

    /// How many logins have been adopted.
    pub fn generation(&self) -> u64 {
        self.adopted.borrow().generation
    }

    /// The login of now.
    pub fn login(&self) -> Arc<Login> {
        Arc::clone(&self.adopted.borrow().login)
    }

    /// Why the folder's newest content is not adopted, if it is not. Something for a health page: the pool still works
    /// with the login before.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.borrow().clone()
    }

    /// Waits until another login has been adopted, or there is another trouble.
    pub async fn changed(&mut self) {
        tokio::select! {
            // The sender lives as long as we do.
            Ok(()) = self.adopted.changed() => {}
            Ok(()) = self.trouble.changed() => {}
            else => std::future::pending().await,
        }
    }

    /// Ends connections of earlier logins now, those in use too.
    pub fn end_older(&self) {
        self.tell.send_modify(|adopted| adopted.floor = adopted.generation);
    }

    pub(crate) fn now(&self) -> Adopted {
        self.adopted.borrow().clone()
    }

    /// What is told with each adoption.
    #[cfg(any(feature = "deadpool", feature = "sqlx"))]
    pub(crate) fn told(&self) -> watch::Receiver<Adopted> {
        self.adopted.clone()
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Adopted { generation, login, .. } = self.now();
        f.debug_struct("Source")
            .field("generation", &generation)
            .field("login", &login)
            .finish_non_exhaustive()
    }
}

/// How a folder is followed.
#[must_use = "settings follow nothing until they are opened"]
pub struct Settings {
    folder: PathBuf,
    dsn: Option<String>,
    mode: Mode,
    poll: Duration,
    patience: Duration,
    probe: Probe,
}

impl Settings {
    /// Reads the whole login from one file, a connection string: the key that `DSNName` names.
    pub fn dsn(mut self, file: impl Into<String>) -> Settings {
        self.dsn = Some(file.into());
        self
    }

    /// What becomes of connections of the login before.
    pub fn mode(mut self, mode: Mode) -> Settings {
        self.mode = mode;
        self
    }

    /// How often the folder is looked at when the kernel tells nothing: 2 s.
    pub fn poll(mut self, every: Duration) -> Settings {
        self.poll = every;
        self
    }

    /// How long `open` waits for a login that works: a minute. Pods may start before their database.
    pub fn patience(mut self, patience: Duration) -> Settings {
        self.patience = patience;
        self
    }

    /// Tries logins in another way than by the driver that is built in. What it says is printed.
    pub fn probe<F, T>(mut self, probe: F) -> Settings
    where
        F: Fn(Arc<Login>) -> T + Send + Sync + 'static,
        T: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.probe = Arc::new(move |login| Box::pin(probe(login)));
        self
    }

    /// Waits for a login that works, and follows the folder from then on.
    ///
    /// # Errors
    /// None has worked within the patience: the last trouble.
    pub async fn open(self) -> Result<Source, Error> {
        let patience = self.patience;
        let mut follower = Follower::new(self);
        let first = tokio::time::timeout(patience, follower.next()).await;
        let Ok(login) = first else {
            let trouble = follower.desk.trouble().unwrap_or("it was not looked at in time");
            let folder = follower.settings.folder.display();
            return Err(Error::Incomplete(format!(
                "folder {folder}: no login within {patience:?}: {trouble}"
            )));
        };
        let (tell, adopted) = watch::channel(Adopted { generation: 1, floor: 0, login });
        let tell = Arc::new(tell);
        let trouble = follower.trouble.subscribe();
        tokio::spawn(follower.follow(Arc::clone(&tell)));
        Ok(Source { tell, adopted, trouble })
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { folder, dsn, mode, poll, patience, probe: _ } = self;
        let mut shown = f.debug_struct("Settings");
        shown.field("folder", folder).field("dsn", dsn).field("mode", mode);
        shown.field("poll", poll).field("patience", patience).finish_non_exhaustive()
    }
}

/// Looks, asks the desk, knocks.
struct Follower {
    settings: Settings,
    names: Vec<String>,
    desk: Desk,
    watch: Watch,
    trouble: watch::Sender<Option<String>>,
}

impl Follower {
    fn new(settings: Settings) -> Follower {
        let names = login::file_names(settings.dsn.as_deref()).into_iter().map(str::to_owned).collect();
        let watch = Watch::new(&settings.folder);
        Follower { settings, names, desk: Desk::default(), watch, trouble: watch::Sender::new(None) }
    }

    async fn follow(mut self, tell: Arc<watch::Sender<Adopted>>) {
        loop {
            let login = tokio::select! {
                login = self.next() => login,
                // Nobody asks any more.
                () = tell.closed() => return,
            };
            let is_forced = self.settings.mode == Mode::Forced;
            tell.send_modify(|adopted| {
                adopted.generation += 1;
                adopted.login = login;
                if is_forced {
                    adopted.floor = adopted.generation;
                }
            });
        }
    }

    /// The next login that works.
    async fn next(&mut self) -> Arc<Login> {
        loop {
            let seen = folder::read(&self.settings.folder, &self.names).await;
            let seen = seen.and_then(|files| Login::from_files(&files, self.settings.dsn.as_deref()));
            let next = self.desk.seen(seen, Instant::now());
            let adopted = match next {
                Next::Try(login) => self.knock(&login).await,
                Next::Pause(pause) => self.wait(pause).await,
                Next::Rest => self.wait(self.settings.poll).await,
            };
            self.tell_trouble();
            if let Some(login) = adopted {
                return login;
            }
        }
    }

    async fn knock(&mut self, login: &Arc<Login>) -> Option<Arc<Login>> {
        let outcome = try_login(&self.settings.probe, login).await;
        let adopted = self.desk.tried(login, outcome, Instant::now());
        adopted.inspect(|login| tracing::info!(%login, "a login is adopted"))
    }

    async fn wait(&mut self, most: Duration) -> Option<Arc<Login>> {
        self.tell_trouble();
        self.watch.stirred(most.min(self.settings.poll)).await;
        None
    }

    fn tell_trouble(&self) {
        self.trouble.send_if_modified(|told| {
            let is_new = told.as_deref() != self.desk.trouble();
            if is_new {
                *told = self.desk.trouble().map(str::to_owned);
            }
            is_new
        });
    }
}
