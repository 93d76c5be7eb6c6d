//! What people are told: a log line and a Kubernetes Event, once per thing that happened, repeats counted.
//! Best effort, at its own rate: a binding never waits for it, and what is too much is dropped and counted.

use super::call::{Reply, call, message};
use super::gate::Gate;
use super::metrics::Metrics;
use super::wire;
use conductor::action::Note;
use conductor::model::{ObjectKey, Uid};
use governor::{Quota, RateLimiter};
use http::{Method, Request, StatusCode};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Who tells.
const CONTROLLER: &str = "conductor.io/conductor";
/// Notes that may wait to be sent.
const WAITING_MAX: usize = 1_024;
/// Notes that are remembered, so that their repeats are counted.
const REMEMBERED_MAX: usize = 16_384;
/// Events a second in the long run: each is a write that a binding could have been.
const PER_SECOND: NonZeroU32 = NonZeroU32::new(10).unwrap();
const BURST: NonZeroU32 = NonZeroU32::new(100).unwrap();
const SEND_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of a message that the API takes.
const MESSAGE_MAX: usize = 1_024;
/// Characters of an object's name in the name of its Event.
const NAME_MAX: usize = 200;

/// One note, and how often it was told by now.
#[derive(Debug)]
pub(super) struct Told {
    note: Note,
    count: u64,
}

/// The owner's side: logs, counts repeats, hands on what is to be sent.
pub(super) struct Teller {
    counts: HashMap<u64, u64>,
    order: VecDeque<u64>,
    sender: mpsc::Sender<Told>,
    metrics: Arc<Metrics>,
}

impl Teller {
    /// A teller, and what it has told.
    pub fn new(metrics: Arc<Metrics>) -> (Teller, mpsc::Receiver<Told>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Teller { counts: HashMap::new(), order: VecDeque::new(), sender, metrics }, receiver)
    }

    /// Tells a note; a repeat only when its count doubles.
    pub fn tell(&mut self, note: Note) {
        let count = self.count(fingerprint(&note));
        if !count.is_power_of_two() {
            return;
        }
        log(&note, count);
        if self.sender.try_send(Told { note, count }).is_err() {
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

/// The same for the same note, also in another process: an Event that is there already is counted on.
fn fingerprint(note: &Note) -> u64 {
    let mut hasher = DefaultHasher::new();
    let Note { kind, key, uid, warning: _, reason, message } = note;
    (kind.name(), &*key.namespace, &*key.name, uid as &Uid, reason, message).hash(&mut hasher);
    hasher.finish()
}

/// The side that sends.
pub(super) struct Postman {
    pub client: Client,
    pub gate: Gate,
    pub identity: String,
    pub told: mpsc::Receiver<Told>,
}

impl Postman {
    /// Sends until nobody tells any more.
    pub async fn run(mut self) {
        let limiter = RateLimiter::direct(Quota::per_second(PER_SECOND).allow_burst(BURST));
        while let Some(told) = self.told.recv().await {
            limiter.until_ready().await;
            if self.gate.is_open() {
                self.send(&told).await;
            }
        }
    }

    async fn send(&self, told: &Told) {
        let (collection, path) = place(&told.note);
        let event = event(told, &self.identity, Timestamp::now());
        let request = match told.count {
            1 => wire::post_request(&collection, &event),
            _ => repeat(&path, told.count),
        };
        let Some(request) = request else { return };
        match call(&self.client, request, SEND_WITHIN).await {
            Reply::Answered { status, .. } if status.is_success() => {}
            // It is there since an earlier life of ours, or it is not there any more.
            Reply::Answered { status: StatusCode::CONFLICT, .. } => self.send_once(repeat(&path, 2)).await,
            Reply::Answered { status: StatusCode::NOT_FOUND, .. } => {
                self.send_once(wire::post_request(&collection, &event)).await;
            }
            Reply::Answered { status, body, .. } => complain(&message(status, &body)),
            Reply::Lost(why) => complain(&why),
        }
    }

    async fn send_once(&self, request: Option<Request<Vec<u8>>>) {
        if let Some(request) = request {
            let _ = call(&self.client, request, SEND_WITHIN).await;
        }
    }
}

fn complain(why: &str) {
    tracing::debug!(why, "an Event was not taken");
}

/// Where an Event about an object goes: beside it, or in `default` where it is nowhere.
fn place(note: &Note) -> (String, String) {
    let route = wire::Route {
        base: "/apis/events.k8s.io/v1".to_owned(),
        plural: "events".to_owned(),
        namespaced: true,
    };
    let key = ObjectKey::new(namespace(note), name(note));
    (route.collection(Some(&key.namespace)), route.object(&key).unwrap_or_default())
}

fn namespace(note: &Note) -> &str {
    if note.key.namespace.is_empty() { "default" } else { &note.key.namespace }
}

fn name(note: &Note) -> String {
    let name: String = note.key.name.chars().take(NAME_MAX).collect();
    format!("{}.{:016x}", name.trim_end_matches(['.', '-']), fingerprint(note))
}

fn event(told: &Told, identity: &str, now: Timestamp) -> Value {
    let Note { kind, key, uid, warning, reason, message } = &told.note;
    let mut regarding = json!({
        "apiVersion": kind.api_version(), "kind": kind.name(), "name": &*key.name, "uid": &**uid,
    });
    if !key.namespace.is_empty() {
        regarding["namespace"] = Value::from(&*key.namespace);
    }
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": name(&told.note), "namespace": namespace(&told.note)},
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

fn repeat(path: &str, count: u64) -> Option<Request<Vec<u8>>> {
    let series = json!({"series": {"count": count.max(2), "lastObservedTime": MicroTime(Timestamp::now())}});
    wire::request(Method::PATCH, path, Some(("application/merge-patch+json", &series)))
}

/// A message, no longer than the API takes it.
fn cut(message: &str) -> &str {
    &message[..message.floor_char_boundary(MESSAGE_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor::model::{Kind, TypeId};

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
    fn repeats_are_counted_and_told_when_they_double() {
        let (mut teller, mut told) = Teller::new(Arc::new(Metrics::new()));
        (0..9).for_each(|_| teller.tell(note("0/3 fit")));
        teller.tell(note("0/4 fit"));
        let counts: Vec<u64> = std::iter::from_fn(|| told.try_recv().ok()).map(|t| t.count).collect();
        assert_eq!(counts, [1, 2, 4, 8, 1]);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_what_waits_is_too() {
        let (mut teller, told) = Teller::new(Arc::new(Metrics::new()));
        (0..REMEMBERED_MAX + 10).for_each(|n| teller.tell(note(&n.to_string())));
        assert_eq!((teller.counts.len(), teller.order.len()), (REMEMBERED_MAX, REMEMBERED_MAX));
        assert_eq!(told.len(), WAITING_MAX);
    }

    #[test]
    fn an_event_stands_beside_its_object() {
        let long = "ä".repeat(2_000);
        let told = Told { note: note(&long), count: 1 };
        let (collection, path) = place(&told.note);
        assert_eq!(collection, "/apis/events.k8s.io/v1/namespaces/team/events");
        assert!(path.starts_with(&format!("{collection}/db.")), "{path}");
        let event = event(&told, "me", Timestamp::UNIX_EPOCH);
        assert_eq!(event["regarding"]["uid"], "u-1");
        assert_eq!(event["type"], "Warning");
        assert_eq!(event["note"].as_str().map(str::len), Some(MESSAGE_MAX));
        let mut cluster = note("x");
        cluster.key.namespace = "".into();
        assert!(place(&cluster).0.contains("/namespaces/default/"));
    }
}
