//! Watches: what happened after a revision, and what happens, as lines of JSON. A watcher walks the log at its own
//! pace; one that falls behind the log has to list again.

use super::list::selection;
use super::read::{no_number, not_newer};
use crate::accept::Shape;
use crate::answer::{Answer, Content, Lines};
use crate::api::Api;
use crate::call::Call;
use crate::encode;
use crate::object;
use crate::scope::Scope;
use crate::select::Selection;
use crate::status::{Cause, Named, Status};
use crate::store::{Change, Gone, Shared, Stored};
use crate::table;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use http::StatusCode;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often a watcher that requested bookmarks gets one although nothing changed.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// A watch that names no end has one.
const LONGEST: Duration = Duration::from_secs(3600);
/// So long before its end a watch says where it is.
const LAST_WORD: Duration = Duration::from_secs(2);

/// One watcher.
struct Watcher {
    store: Shared,
    scope: Scope,
    selection: Selection,
    shape: Shape,
    include: String,
    /// The last revision that was sent.
    at: u64,
    news: watch::Receiver<u64>,
    waiting: VecDeque<Bytes>,
    bookmarks: bool,
    next_bookmark: Instant,
    end: Instant,
    said_last_word: bool,
    over: bool,
    closing: CancellationToken,
    first_table: bool,
}

pub(super) fn answer(api: &Api, call: &Call, scope: &Scope) -> Result<Answer, Status> {
    let wanted = call.wanted()?;
    let mut selection = selection(call, scope)?;
    if !scope.name.is_empty() {
        selection.fields = crate::select::FieldSelector::read(&format!("metadata.name={}", scope.name))
            .map_err(Status::bad_request)?;
    }
    let scope = Scope { name: String::new(), ..scope.clone() };
    let initial = initial_events(call)?;
    let timeout = call.query.number("timeoutSeconds")?.filter(|seconds| *seconds > 0);
    let timeout = timeout.map_or(LONGEST, |seconds| Duration::from_secs(seconds.unsigned_abs()));
    let table_name = Arc::clone(&scope.served.resource.table);
    let asked = call.query.find("resourceVersion").map(revision).transpose()?.unwrap_or(0);
    let state = api.store.read();
    not_newer(&state, asked)?;
    let current = state.revision();
    let Some(table) = state.table(&table_name) else { return Err(Status::no_such_path()) };
    let news = table.news();
    let now = Instant::now();
    let mut watcher = Watcher {
        store: api.store.share(),
        selection,
        shape: wanted.shape,
        include: table::included(call.query.find("includeObject"))?.to_owned(),
        at: current,
        news,
        waiting: VecDeque::new(),
        bookmarks: call.query.is("allowWatchBookmarks"),
        next_bookmark: now + BOOKMARK_EVERY,
        end: now + timeout,
        said_last_word: timeout <= LAST_WORD,
        over: false,
        closing: api.closing.clone(),
        first_table: true,
        scope,
    };
    let starts_with_all = asked == 0 || initial == Some(true);
    if starts_with_all && initial != Some(false) {
        let prefix = watcher.scope.prefix();
        let all: Vec<Arc<Stored>> =
            table.range(&prefix, None).map(|(_, stored)| Arc::clone(stored)).collect();
        drop(state);
        watcher.send_all(&all, initial == Some(true), current);
    } else {
        drop(state);
        watcher.at = if asked == 0 { current } else { asked };
        watcher.catch_up();
    }
    let lines: Lines = Box::pin(stream::unfold(watcher, |mut watcher| async move {
        let line = watcher.next().await?;
        Some((line, watcher))
    }));
    Ok(Answer::of(StatusCode::OK, Content::Lines(lines.boxed())))
}

/// A real server has no class for a watch from a revision that is no number.
fn revision(text: &str) -> Result<u64, Status> {
    text.parse().map_err(|_| Status::plain(no_number(text)))
}

/// Whether the watch begins with every object, as a streaming list.
fn initial_events(call: &Call) -> Result<Option<bool>, Status> {
    let asked = call.query.flag("sendInitialEvents");
    let matching = call.query.find("resourceVersionMatch");
    let refuse = |causes: &[Cause]| {
        let named = Named { group: "meta.k8s.io".to_owned(), name: "ListOptions".to_owned() };
        Err(Status::invalid(&named, "", causes))
    };
    let needed = || {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        Cause::forbidden("resourceVersionMatch", why)
    };
    match (asked, matching) {
        (None, None) | (Some(_), Some("NotOlderThan")) => Ok(asked),
        (None, Some(_)) => {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            refuse(&[Cause::forbidden("resourceVersionMatch", why)])
        }
        (Some(_), None) => refuse(&[needed()]),
        (Some(_), Some(other)) => {
            let unknown = Cause::unsupported("resourceVersionMatch", &other.into(), &["NotOlderThan"]);
            refuse(&[needed(), unknown])
        }
    }
}

impl Watcher {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.waiting.pop_front() {
                return Some(line);
            }
            if self.over {
                return None;
            }
            let last_word = self.end.checked_sub(LAST_WORD).unwrap_or(self.end);
            let speaks_last = self.bookmarks && !self.said_last_word;
            tokio::select! {
                biased;
                () = self.closing.cancelled() => self.over = true,
                changed = self.news.changed() => match changed {
                    Ok(()) => self.catch_up(),
                    Err(_) => self.over = true,
                },
                () = tokio::time::sleep_until(self.end) => self.over = true,
                () = tokio::time::sleep_until(last_word), if speaks_last => {
                    self.said_last_word = true;
                    self.bookmark();
                }
                () = tokio::time::sleep_until(self.next_bookmark), if self.bookmarks => {
                    self.next_bookmark += BOOKMARK_EVERY;
                    self.bookmark();
                }
            }
        }
    }

    /// Sends every object, and with a streaming list the bookmark that ends it.
    fn send_all(&mut self, all: &[Arc<Stored>], marks_end: bool, revision: u64) {
        for stored in all {
            if self.matches(stored) {
                let line = self.line("ADDED", stored);
                self.waiting.push_back(line);
            }
        }
        self.at = revision;
        if marks_end {
            let mut bookmark = self.bookmark_object();
            let annotations = json!({"k8s.io/initial-events-end": "true"});
            bookmark["metadata"]["annotations"] = annotations;
            self.push_event("BOOKMARK", &self.shaped_bookmark(bookmark));
            if self.bookmarks {
                self.push_event("BOOKMARK", &self.shaped_bookmark(self.bookmark_object()));
            }
        }
    }

    fn catch_up(&mut self) {
        let state = self.store.read();
        let revision = state.revision();
        let since = state.table(&self.scope.served.resource.table).map(|table| table.since(self.at));
        drop(state);
        match since {
            None => self.over = true,
            Some(Ok(changes)) => {
                for change in &changes {
                    self.send(change);
                }
                self.at = revision;
            }
            Some(Err(Gone { oldest })) => {
                let message = format!("too old resource version: {} ({oldest})", self.at);
                self.push_event("ERROR", &Status::expired(message).to_value());
                self.over = true;
            }
        }
    }

    /// A change as this watcher sees it: what stops matching is deleted for it.
    fn send(&mut self, change: &Change) {
        if !change.key.starts_with(&self.scope.prefix()) {
            return;
        }
        let before = change.before.as_ref().is_some_and(|stored| self.matches(stored));
        let after = !change.deleted && self.matches(&change.after);
        let (kind, stored) = match (before, after) {
            (false, false) => return,
            (false, true) => ("ADDED", Arc::clone(&change.after)),
            (true, true) => ("MODIFIED", Arc::clone(&change.after)),
            (true, false) if change.deleted => ("DELETED", Arc::clone(&change.after)),
            (true, false) => ("DELETED", self.last_seen(change)),
        };
        let line = self.line(kind, &stored);
        self.waiting.push_back(line);
    }

    /// What an object was before it stopped matching, under the revision at which it did.
    fn last_seen(&self, change: &Change) -> Arc<Stored> {
        let before = change.before.as_ref().unwrap_or(&change.after);
        let mut value = before.value.clone();
        object::set_meta(&mut value, "resourceVersion", change.revision.to_string().into());
        Arc::new(Stored::new(value, change.revision))
    }

    fn matches(&self, stored: &Stored) -> bool {
        if self.selection.is_everything() {
            return true;
        }
        match self.selection.fields.is_empty() {
            true => self.selection.matches(&stored.value),
            false => self.selection.matches(&encode::to_served(&stored.value, &self.scope.served)),
        }
    }

    fn line(&mut self, kind: &str, stored: &Stored) -> Bytes {
        let object = match self.shape {
            Shape::Table => {
                let value = encode::to_served(&stored.value, &self.scope.served);
                let first = std::mem::replace(&mut self.first_table, false);
                Bytes::from(table::of_event(value, &self.scope.served, &self.include, first).to_string())
            }
            shape => encode::object(stored, &self.scope.served, shape),
        };
        let mut line = Vec::with_capacity(object.len() + kind.len() + 24);
        line.extend_from_slice(b"{\"type\":\"");
        line.extend_from_slice(kind.as_bytes());
        line.extend_from_slice(b"\",\"object\":");
        line.extend_from_slice(&object);
        line.extend_from_slice(b"}\n");
        Bytes::from(line)
    }

    fn push_event(&mut self, kind: &str, object: &Value) {
        let line = format!("{}\n", json!({"type": kind, "object": object}));
        self.waiting.push_back(Bytes::from(line));
    }

    fn bookmark(&mut self) {
        // Every change up to here must have been sent.
        self.catch_up();
        let bookmark = self.shaped_bookmark(self.bookmark_object());
        self.push_event("BOOKMARK", &bookmark);
    }

    fn bookmark_object(&self) -> Value {
        json!({
            "kind": self.scope.served.resource.kind,
            "apiVersion": self.scope.served.api_version(),
            "metadata": {"resourceVersion": self.at.to_string()},
        })
    }

    fn shaped_bookmark(&self, bookmark: Value) -> Value {
        match self.shape {
            Shape::Metadata => encode::metadata(&bookmark),
            Shape::Table => table::of_bookmark(&bookmark),
            Shape::Whole | Shape::Discovery => bookmark,
        }
    }
}
