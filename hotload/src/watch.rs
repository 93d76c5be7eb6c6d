//! Says when to look at a folder again: when the kernel tells of a change in it, or after a while in any case. A folder
//! that is not there yet is awaited in the nearest one above it. What is in the files is `folder`'s.

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

/// A change is many events; they are over when it has been quiet for so long,
const QUIET: Duration = Duration::from_millis(50);
/// or have lasted for so long: a folder above may never be quiet.
const RESTLESS_MAX: Duration = Duration::from_secs(1);

/// Watches one folder.
pub(crate) struct Watch {
    folder: PathBuf,
    stirred: Arc<Notify>,
    watcher: Option<RecommendedWatcher>,
    armed: Option<Place>,
}

/// A folder that is watched. It may be removed and made again under its name, which is another folder.
#[derive(Clone, PartialEq)]
struct Place {
    path: PathBuf,
    identity: (u64, u64),
}

impl Watch {
    /// A watch on a folder, whether it is there or not.
    pub(crate) fn new(folder: &Path) -> Watch {
        let stirred = Arc::new(Notify::new());
        let tell = Arc::clone(&stirred);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.map_or(true, |event| is_change(event.kind)) {
                tell.notify_one();
            }
        });
        let watcher = watcher.inspect_err(|error| {
            tracing::warn!(%error, "the kernel tells of no changes to files; the folder is only looked at from time to time");
        });
        let mut watch = Watch { folder: folder.to_owned(), stirred, watcher: watcher.ok(), armed: None };
        watch.arm();
        watch
    }

    /// Returns when something has changed and come to rest, or after `most`.
    pub(crate) async fn stirred(&mut self, most: Duration) {
        // What came into being since the last look is noticed by looking once more.
        if self.arm() {
            return;
        }
        tokio::select! {
            () = self.stirred.notified() => {}
            () = sleep(most) => return,
        }
        let end = Instant::now() + RESTLESS_MAX;
        while Instant::now() < end {
            let quiet = end.min(Instant::now() + QUIET);
            if timeout_at(quiet, self.stirred.notified()).await.is_err() {
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
        let Some(place) = nearest else { return false };
        match watcher.watch(&place.path, RecursiveMode::NonRecursive) {
            Ok(()) => {
                self.armed = Some(place);
                true
            }
            Err(error) => {
                tracing::debug!(%error, folder = %place.path.display(), "the folder cannot be watched");
                false
            }
        }
    }
}

/// The folder, or the nearest one above it.
fn nearest(folder: &Path) -> Option<Place> {
    folder.ancestors().find_map(|path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let found = fs::metadata(path).ok().filter(fs::Metadata::is_dir)?;
        Some(Place { path: path.to_owned(), identity: (found.dev(), found.ino()) })
    })
}

/// Whether files may have changed. Our own looks are events too, and must not lead to the next.
fn is_change(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}
