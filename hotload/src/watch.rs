//! Decides when to read a folder again: after a file event in it, or after a while. For a folder that does not exist yet it
//! watches the nearest one above it.

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

/// A change is many events; it is over after this time without one,
const QUIET: Duration = Duration::from_millis(50);
/// or after this time: a folder above may never be quiet.
const CHANGE_MAX: Duration = Duration::from_secs(1);

/// Watches one folder.
pub(crate) struct Watch {
    folder: PathBuf,
    events: Arc<Notify>,
    watcher: Option<RecommendedWatcher>,
    armed: Option<Target>,
}

/// A watched folder. If it is removed and created again under its name, it is another one.
#[derive(Clone, PartialEq)]
struct Target {
    path: PathBuf,
    identity: (u64, u64),
}

impl Watch {
    /// Watches a folder, whether it exists or not.
    pub(crate) fn new(folder: &Path) -> Watch {
        let events = Arc::new(Notify::new());
        let sender = Arc::clone(&events);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.map_or(true, |event| is_change(event.kind)) {
                sender.notify_one();
            }
        });
        let watcher = watcher.inspect_err(|error| {
            tracing::warn!(%error, "no file events from the kernel; the folder is only polled");
        });
        let mut watch = Watch { folder: folder.to_owned(), events, watcher: watcher.ok(), armed: None };
        watch.arm();
        watch
    }

    /// Returns when a change is over, or after `most`.
    pub(crate) async fn changed(&mut self, most: Duration) {
        // A folder that was created since the last read is read once more.
        if self.arm() {
            return;
        }
        tokio::select! {
            () = self.events.notified() => {}
            () = sleep(most) => return,
        }
        let end = Instant::now() + CHANGE_MAX;
        while Instant::now() < end {
            let quiet = end.min(Instant::now() + QUIET);
            if timeout_at(quiet, self.events.notified()).await.is_err() {
                break;
            }
        }
    }

    /// Watches what there is to watch now, and says whether that is something new.
    fn arm(&mut self) -> bool {
        let nearest = nearest(&self.folder);
        if nearest == self.armed {
            return false;
        }
        let Some(watcher) = &mut self.watcher else { return false };
        if let Some(before) = self.armed.take() {
            // A folder that was removed has taken its watch along.
            let _ = watcher.unwatch(&before.path);
        }
        let Some(target) = nearest else { return false };
        match watcher.watch(&target.path, RecursiveMode::NonRecursive) {
            Ok(()) => {
                self.armed = Some(target);
                true
            }
            Err(error) => {
                tracing::debug!(%error, folder = %target.path.display(), "the folder cannot be watched");
                false
            }
        }
    }
}

/// The folder, or the nearest existing one above it.
fn nearest(folder: &Path) -> Option<Target> {
    folder.ancestors().find_map(|path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let found = fs::metadata(path).ok().filter(fs::Metadata::is_dir)?;
        Some(Target { path: path.to_owned(), identity: (found.dev(), found.ino()) })
    })
}

/// Whether files may have changed. Our own reads are events too, and must not cause the next.
fn is_change(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}
