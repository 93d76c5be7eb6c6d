//! Records notes of the engine as log lines and Kubernetes Events, with repeats counted. Best effort at its own rate: no
//! binding waits for it; what exceeds the rate is dropped and counted.

use super::metrics::Metrics;
use conductor::action::Note;
use conductor::model::Uid;
use conductor_runtime::call::{Reply, call, message};
use conductor_runtime::leadership::Leadership;
use conductor_runtime::rate_limit::RateLimit;
use conductor_runtime::rest::{self, RestRequest, Route};
use http::StatusCode;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// The reporting controller.
const CONTROLLER: &str = "conductor.io/conductor";
/// Notes that may wait to be sent.
const WAITING_MAX: usize = 1_024;
/// Notes that are kept to count their repeats.
const REMEMBERED_MAX: usize = 16_384;
/// Events a second in the long run: each is a write that a binding could have been.
const PER_SECOND: u32 = 10;
const BURST: u32 = 100;
const SEND_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of a message that the API takes.
const MESSAGE_MAX: usize = 1_024;
/// Characters of an object's name in the name of its Event.
const NAME_MAX: usize = 200;

/// One note, and how often it was recorded.
#[derive(Debug)]
pub(super) struct RecordedNote {
    note: Note,
    count: u64,
}

/// The side of the event loop: logs notes, counts repeats, and queues what is to be sent.
pub(super) struct EventRecorder {
    counts: HashMap<u64, u64>,
    order: VecDeque<u64>,
    sender: mpsc::Sender<RecordedNote>,
    metrics: Arc<Metrics>,
}

impl EventRecorder {
    /// A recorder, and the queue of what it records.
    pub fn new(metrics: Arc<Metrics>) -> (EventRecorder, mpsc::Receiver<RecordedNote>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (EventRecorder { counts: HashMap::new(), order: VecDeque::new(), sender, metrics }, receiver)
    }

    /// Records a note; a repeat only when its count doubles.
    pub fn record(&mut self, note: Note) {
        let count = self.count(fingerprint(&note));
        if !count.is_power_of_two() {
            return;
        }
        log(&note, count);
        if self.sender.try_send(RecordedNote { note, count }).is_err() {
            self.metrics.event_dropped();
        }
    }

    fn count(&mut self, print: u64) -> u64 {
        let count = self.counts.entry(print).or_default();
        *count += 1;
        let count = *count;
        if count == 1 {
            self.order.push_back(print);
        }
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.counts.remove(&oldest);
        }
        count
    }
}

fn log(note: &Note, count: u64) {
    let Note { kind, key, uid: _, warning, reason, message } = note;
    let kind = kind.name();
    match warning {
        true => tracing::warn!(kind, object = %key, reason, message, count),
        false => tracing::info!(kind, object = %key, reason, message, count),
    }
}

/// The same for the same note, also in another process, so that an existing Event is counted on.
fn fingerprint(note: &Note) -> u64 {
    let mut hasher = DefaultHasher::new();
    let Note { kind, key, uid, warning: _, reason, message } = note;
    (kind.name(), &*key.namespace, &*key.name, uid as &Uid, reason, message).hash(&mut hasher);
    hasher.finish()
}

/// Sends recorded notes as Events.
pub(super) struct EventSender {
    pub client: Client,
    pub leadership: Leadership,
    pub identity: String,
    pub notes: mpsc::Receiver<RecordedNote>,
}

impl EventSender {
    /// Runs until the event loop ends.
    pub async fn run(mut self) {
        let limit = RateLimit::new(PER_SECOND, BURST);
        while let Some(recorded) = self.notes.recv().await {
            limit.wait_turn().await;
            if self.leadership.leads() {
                self.send(&recorded).await;
            }
        }
    }

    async fn send(&self, recorded: &RecordedNote) {
        let (collection, path) = paths(&recorded.note);
        let event = event(recorded, &self.identity, Timestamp::now());
        let request = match recorded.count {
            1 => rest::post(&collection, &event),
            _ => repeat(&path, recorded.count),
        };
        let Some(request) = request else { return };
        match call(&self.client, request, SEND_WITHIN).await {
            Reply::Answered { status, .. } if status.is_success() => {}
            // It exists since an earlier run of this controller, or it was deleted.
            Reply::Answered { status: StatusCode::CONFLICT, .. } => self.send_once(repeat(&path, 2)).await,
            Reply::Answered { status: StatusCode::NOT_FOUND, .. } => {
                self.send_once(rest::post(&collection, &event)).await;
            }
            Reply::Answered { status, body, .. } => log_refusal(&message(status, &body)),
            Reply::Lost(why) => log_refusal(&why),
        }
    }

    async fn send_once(&self, request: Option<RestRequest>) {
        if let Some(request) = request {
            let _ = call(&self.client, request, SEND_WITHIN).await;
        }
    }
}

fn log_refusal(why: &str) {
    tracing::debug!(why, "the API refused an Event");
}

/// The paths of an Event: in the namespace of its object, or in `default` for a cluster-scoped one.
fn paths(note: &Note) -> (String, String) {
    let route = Route::namespaced("events.k8s.io/v1", "events");
    let namespace = namespace(note);
    (route.collection(Some(namespace)), route.object(namespace, &name(note)).unwrap_or_default())
}

fn namespace(note: &Note) -> &str {
    if note.key.namespace.is_empty() { "default" } else { &note.key.namespace }
}

fn name(note: &Note) -> String {
    let name: String = note.key.name.chars().take(NAME_MAX).collect();
    format!("{}.{:016x}", name.trim_end_matches(['.', '-']), fingerprint(note))
}

fn event(recorded: &RecordedNote, identity: &str, now: Timestamp) -> Value {
    let Note { kind, key, uid, warning, reason, message } = &recorded.note;
    let mut regarding = json!({
        "apiVersion": kind.api_version(), "kind": kind.name(), "name": &*key.name, "uid": &**uid,
    });
    if !key.namespace.is_empty() {
        regarding["namespace"] = Value::from(&*key.namespace);
    }
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": name(&recorded.note), "namespace": namespace(&recorded.note)},
        "eventTime": MicroTime(now),
        "reportingController": CONTROLLER,
        "reportingInstance": identity.chars().take(128).collect::<String>(),
        "action": "Scheduling",
        "reason": reason,
        "regarding": regarding,
        "note": cut(message),
        "type": if *warning { "Warning" } else { "Normal" },
    })
}

fn repeat(path: &str, count: u64) -> Option<RestRequest> {
    let series = json!({"series": {"count": count.max(2), "lastObservedTime": MicroTime(Timestamp::now())}});
    rest::merge_patch(path, &series)
}

/// A message, no longer than the API accepts.
fn cut(message: &str) -> &str {
    &message[..message.floor_char_boundary(MESSAGE_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor::model::{Kind, ObjectKey, TypeId};

    fn note(message: &str) -> Note {
        Note {
            kind: Kind::Claim(TypeId::RELATIONAL_DATABASE),
            key: ObjectKey::new("team", "db"),
            uid: Uid::from("u-1"),
            warning: true,
            reason: "NoMatch",
            message: message.to_owned(),
        }
    }

    #[test]
    fn repeats_are_counted_and_recorded_when_they_double() {
        let (mut recorder, mut notes) = EventRecorder::new(Arc::new(Metrics::new()));
        (0..9).for_each(|_| recorder.record(note("0/3 fit")));
        recorder.record(note("0/4 fit"));
        let counts: Vec<u64> = std::iter::from_fn(|| notes.try_recv().ok()).map(|t| t.count).collect();
        assert_eq!(counts, [1, 2, 4, 8, 1]);
    }

    #[test]
    fn the_counts_and_the_queue_are_bounded() {
        let (mut recorder, notes) = EventRecorder::new(Arc::new(Metrics::new()));
        (0..REMEMBERED_MAX + 10).for_each(|n| recorder.record(note(&n.to_string())));
        assert_eq!((recorder.counts.len(), recorder.order.len()), (REMEMBERED_MAX, REMEMBERED_MAX));
        assert_eq!(notes.len(), WAITING_MAX);
    }

    #[test]
    fn an_event_is_in_the_namespace_of_its_object() {
        let long = "ä".repeat(2_000);
        let recorded = RecordedNote { note: note(&long), count: 1 };
        let (collection, path) = paths(&recorded.note);
        assert_eq!(collection, "/apis/events.k8s.io/v1/namespaces/team/events");
        assert!(path.starts_with(&format!("{collection}/db.")), "{path}");
        let event = event(&recorded, "me", Timestamp::UNIX_EPOCH);
        assert_eq!(event["regarding"]["uid"], "u-1");
        assert_eq!(event["type"], "Warning");
        assert_eq!(event["note"].as_str().map(str::len), Some(MESSAGE_MAX));
        let mut cluster = note("x");
        cluster.key.namespace = "".into();
        assert!(paths(&cluster).0.contains("/namespaces/default/"));
    }
}
