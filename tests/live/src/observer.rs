//! Watches everything and never writes: the objects of each trial, and every revision that they have had. The invariants
//! check this history, not what the controller believes.

use crate::kinds::{self, api_of};
use futures::TryStreamExt;
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::Value;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// One revision of one object.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The cluster's own counter: it orders objects of all kinds.
    pub revision: u64,
    /// Whether it was deleted.
    pub gone: bool,
    /// The object as it was.
    pub object: Value,
}

/// Kind, namespace, name.
pub type Key = (String, String, String);
/// The objects of one trial.
pub type State = BTreeMap<Key, Value>;

#[derive(Debug, Default)]
struct Records {
    history: BTreeMap<String, Vec<Seen>>,
    now: BTreeMap<String, State>,
    /// Counts the events of each trial.
    pages: BTreeMap<String, u64>,
}

/// The observer; it watches until it is dropped.
#[derive(Debug)]
pub struct Observer {
    records: Arc<Mutex<Records>>,
    _watches: JoinSet<()>,
}

impl Observer {
    /// Starts to watch every kind of [`kinds::ALL`].
    ///
    /// # Errors
    /// When a kind cannot be listed.
    pub async fn start(client: &Client) -> kube::Result<Observer> {
        let records = Arc::new(Mutex::new(Records::default()));
        let mut watches = JoinSet::new();
        for kind in kinds::ALL {
            let api = api_of(client, kind, None);
            let revision = api.list(&ListParams::default().limit(1)).await?.metadata.resource_version;
            watches.spawn(watch(api, kind, revision.unwrap_or_default(), records.clone()));
        }
        Ok(Observer { records, _watches: watches })
    }

    /// A trial's objects now, with a number that changes when they do.
    pub fn state(&self, trial: &str) -> (u64, State) {
        let records = self.lock();
        let page = records.pages.get(trial).copied().unwrap_or_default();
        (page, records.now.get(trial).cloned().unwrap_or_default())
    }

    /// A number that changes when a trial's objects do.
    pub fn page(&self, trial: &str) -> u64 {
        self.lock().pages.get(trial).copied().unwrap_or_default()
    }

    /// The history of a trial's objects, in order.
    pub fn history(&self, trial: &str) -> Vec<Seen> {
        let mut history = self.lock().history.get(trial).cloned().unwrap_or_default();
        history.sort_by_key(|seen| seen.revision);
        history
    }

    /// Forgets a trial that is over.
    pub fn forget(&self, trial: &str) {
        let mut records = self.lock();
        records.history.remove(trial);
        records.now.remove(trial);
        records.pages.remove(trial);
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn watch(
    api: Api<DynamicObject>,
    kind: &'static str,
    mut revision: String,
    records: Arc<Mutex<Records>>,
) {
    loop {
        // A stream continues where it ended: no revision is missed.
        if let Ok(stream) = api.watch(&WatchParams::default(), &revision).await {
            let mut stream = pin!(stream);
            while let Ok(Some(event)) = stream.try_next().await {
                match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                        note(object, false, kind, &mut revision, &records);
                    }
                    WatchEvent::Deleted(object) => note(object, true, kind, &mut revision, &records),
                    WatchEvent::Bookmark(mark) => revision = mark.metadata.resource_version,
                    // The API no longer knows the revision: only the current objects are left to record.
                    WatchEvent::Error(_) => {
                        if let Ok(list) = api.list(&ListParams::default()).await {
                            revision = list.metadata.resource_version.unwrap_or_default();
                            list.items
                                .into_iter()
                                .for_each(|o| note(o, false, kind, &mut String::new(), &records));
                        }
                        break;
                    }
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn note(object: DynamicObject, gone: bool, kind: &str, revision: &mut String, records: &Mutex<Records>) {
    *revision = object.metadata.resource_version.clone().unwrap_or_default();
    let Some(trial) = trial_of(&object).filter(|_| is_of_interest(&object, kind)) else { return };
    let mut json = serde_json::to_value(&object).unwrap_or_default();
    json["kind"] = Value::from(kind);
    if let Some(meta) = json["metadata"].as_object_mut() {
        meta.remove("managedFields");
    }
    let key = (
        kind.to_owned(),
        object.metadata.namespace.unwrap_or_default(),
        object.metadata.name.unwrap_or_default(),
    );
    let mut records = records.lock().unwrap_or_else(PoisonError::into_inner);
    *records.pages.entry(trial.clone()).or_default() += 1;
    let now = records.now.entry(trial.clone()).or_default();
    match gone {
        true => drop(now.remove(&key)),
        false => drop(now.insert(key, json.clone())),
    }
    let seen = Seen { revision: revision.parse().unwrap_or_default(), gone, object: json };
    records.history.entry(trial).or_default().push(seen);
}

/// Of Secrets and the like, only those that were published.
fn is_of_interest(object: &DynamicObject, kind: &str) -> bool {
    let labels = object.metadata.labels.as_ref();
    !kinds::PUBLISHED.contains(&kind) || labels.is_some_and(|l| l.contains_key("conductor.io/published"))
}

/// The trial of an object: `trial-0001` for what is in the namespaces `trial-0001` and `trial-0001-system`.
fn trial_of(object: &DynamicObject) -> Option<String> {
    let meta = &object.metadata;
    let named = meta.namespace.as_ref().or(meta.name.as_ref())?;
    let labelled = meta.labels.as_ref().and_then(|labels| labels.get("trial"));
    let name = labelled.unwrap_or(named);
    name.starts_with("trial-").then(|| name.trim_end_matches("-system").to_owned())
}
