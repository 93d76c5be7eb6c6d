//! The source of logins: follows a folder and holds the login last adopted from it. Pools read the source; `adoption`
//! decides which login is adopted.

use crate::adoption::{Adoption, Next};
use crate::probe::{self, Probe, try_login};
use crate::watch::Watch;
use crate::{Error, Login, folder, login};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// What happens to connections of earlier logins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Connections in use are left alone, and close when they return to the pool.
    #[default]
    Graceful,
    /// Connections end at once, whatever they do: for leaked passwords.
    Forced,
}

/// An adopted login and its number.
#[derive(Clone, Debug)]
pub(crate) struct Adopted {
    /// Counts adoptions, from 1.
    pub generation: u64,
    /// Connections of logins before this one must end now.
    pub floor: u64,
    pub login: Arc<Login>,
}

/// Follows a folder. Clones share it; following ends with the last clone and the last pool.
#[derive(Clone)]
pub struct Source {
    sender: Arc<watch::Sender<Adopted>>,
    adopted: watch::Receiver<Adopted>,
    trouble: watch::Receiver<Option<String>>,
}

impl Source {
    /// Opens a folder with the default settings: [`Source::at`].
    ///
    /// # Errors
    /// No login has worked for a minute; the error has the last reason.
    pub async fn open(folder: impl AsRef<Path>) -> Result<Source, Error> {
        Source::at(folder).open().await
    }

    /// Settings for a folder, to change and then open.
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

    /// The current login.
    pub fn login(&self) -> Arc<Login> {
        Arc::clone(&self.adopted.borrow().login)
    }

    /// Why the newest content of the folder is not adopted, if it is not. For a health page: the pool still works with
    /// the current login.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.borrow().clone()
    }

    /// Waits until another login has been adopted, or [`Source::trouble`] has changed.
    pub async fn changed(&mut self) {
        tokio::select! {
            // The source holds the sender, so neither channel closes first.
            Ok(()) = self.adopted.changed() => {}
            Ok(()) = self.trouble.changed() => {}
            else => std::future::pending().await,
        }
    }

    /// Ends connections of earlier logins now, those in use too.
    pub fn end_older(&self) {
        self.sender.send_modify(|adopted| adopted.floor = adopted.generation);
    }

    pub(crate) fn now(&self) -> Adopted {
        self.adopted.borrow().clone()
    }

    /// Receives each adoption.
    #[cfg(any(feature = "deadpool", feature = "sqlx"))]
    pub(crate) fn adoptions(&self) -> watch::Receiver<Adopted> {
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
    /// Reads the login from one file, a connection string: the key that `DSNName` names.
    pub fn dsn(mut self, file: impl Into<String>) -> Settings {
        self.dsn = Some(file.into());
        self
    }

    /// What happens to connections of earlier logins.
    pub fn mode(mut self, mode: Mode) -> Settings {
        self.mode = mode;
        self
    }

    /// Sets how often the folder is read without a file event: every 2 s by default.
    pub fn poll(mut self, every: Duration) -> Settings {
        self.poll = every;
        self
    }

    /// Sets how long `open` waits for a working login: a minute by default, as Pods may start before their database.
    pub fn patience(mut self, patience: Duration) -> Settings {
        self.patience = patience;
        self
    }

    /// Replaces the built-in driver as the way to try logins. Its errors are logged.
    pub fn probe<F, T>(mut self, probe: F) -> Settings
    where
        F: Fn(Arc<Login>) -> T + Send + Sync + 'static,
        T: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.probe = Arc::new(move |login| Box::pin(probe(login)));
        self
    }

    /// Waits for a working login, and follows the folder from then on.
    ///
    /// # Errors
    /// No login has worked within the patience; the error has the last reason.
    pub async fn open(self) -> Result<Source, Error> {
        let patience = self.patience;
        let mut follower = Follower::new(self);
        let first = tokio::time::timeout(patience, follower.next()).await;
        let Ok(login) = first else {
            let trouble = follower.adoption.trouble().unwrap_or("the folder was not read in time");
            let folder = follower.settings.folder.display();
            return Err(Error::Incomplete(format!(
                "folder {folder}: no login within {patience:?}: {trouble}"
            )));
        };
        let (sender, adopted) = watch::channel(Adopted { generation: 1, floor: 0, login });
        let sender = Arc::new(sender);
        let trouble = follower.trouble.subscribe();
        tokio::spawn(follower.follow(Arc::clone(&sender)));
        Ok(Source { sender, adopted, trouble })
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

/// Reads the folder and tries its logins.
struct Follower {
    settings: Settings,
    names: Vec<String>,
    adoption: Adoption,
    watch: Watch,
    trouble: watch::Sender<Option<String>>,
}

impl Follower {
    fn new(settings: Settings) -> Follower {
        let names = login::file_names(settings.dsn.as_deref()).into_iter().map(str::to_owned).collect();
        let watch = Watch::new(&settings.folder);
        Follower { settings, names, adoption: Adoption::default(), watch, trouble: watch::Sender::new(None) }
    }

    async fn follow(mut self, sender: Arc<watch::Sender<Adopted>>) {
        loop {
            let login = tokio::select! {
                login = self.next() => login,
                // No source and no pool is left.
                () = sender.closed() => return,
            };
            let is_forced = self.settings.mode == Mode::Forced;
            sender.send_modify(|adopted| {
                adopted.generation += 1;
                adopted.login = login;
                if is_forced {
                    adopted.floor = adopted.generation;
                }
            });
        }
    }

    /// The next working login.
    async fn next(&mut self) -> Arc<Login> {
        loop {
            let files = folder::read(&self.settings.folder, &self.names).await;
            let observed = files.and_then(|files| Login::from_files(&files, self.settings.dsn.as_deref()));
            let next = self.adoption.observe(observed, Instant::now());
            let adopted = match next {
                Next::Try(login) => self.try_login(&login).await,
                Next::Pause(pause) => self.wait(pause).await,
                Next::Rest => self.wait(self.settings.poll).await,
            };
            self.publish_trouble();
            if let Some(login) = adopted {
                return login;
            }
        }
    }

    async fn try_login(&mut self, login: &Arc<Login>) -> Option<Arc<Login>> {
        let outcome = try_login(&self.settings.probe, login).await;
        let adopted = self.adoption.record_try(login, outcome, Instant::now());
        adopted.inspect(|login| tracing::info!(%login, "adopted a login"))
    }

    async fn wait(&mut self, most: Duration) -> Option<Arc<Login>> {
        self.publish_trouble();
        self.watch.changed(most.min(self.settings.poll)).await;
        None
    }

    fn publish_trouble(&self) {
        self.trouble.send_if_modified(|published| {
            let is_new = published.as_deref() != self.adoption.trouble();
            if is_new {
                *published = self.adoption.trouble().map(str::to_owned);
            }
            is_new
        });
    }
}
