//! An application that starts at any moment gets in: a login with the mounted files, twenty times a second.

use deadpool_postgres::tokio_postgres::{NoTls, connect};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Logs in twenty times a second with what is mounted at that moment.
pub struct Probe {
    stop: Arc<AtomicBool>,
    task: JoinHandle<(u64, Vec<String>)>,
}

impl Probe {
    /// Begins.
    pub fn start(folder: PathBuf) -> Probe {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let task = tokio::spawn(async move {
            let (mut logins, mut refused) = (0, Vec::new());
            let mut tick = tokio::time::interval(Duration::from_millis(50));
            while !stopped.load(Ordering::SeqCst) {
                tick.tick().await;
                logins += 1;
                refused.extend(log_in(&folder).await.err());
            }
            (logins, refused)
        });
        Probe { stop, task }
    }

    /// Ends; says how many logins were tried, and why which were refused.
    pub async fn stop(self) -> (u64, Vec<String>) {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.expect("the probe does not panic")
    }
}

/// Refused, unless something else was mounted while we knocked.
async fn log_in(folder: &Path) -> Result<(), String> {
    loop {
        let uri = mounted(folder);
        let refused = match connect(&uri, NoTls).await {
            Ok((_, connection)) => {
                drop(connection);
                return Ok(());
            }
            Err(error) => format!("{error:?}"),
        };
        if mounted(folder) == uri {
            return Err(refused);
        }
    }
}

/// A reader of one file through the link sees it whole; between the swap and the removal it may have to look again.
fn mounted(folder: &Path) -> String {
    loop {
        if let Ok(uri) = std::fs::read_to_string(folder.join("uri")) {
            return uri;
        }
    }
}
