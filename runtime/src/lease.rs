//! The Lease of a leader election as the API has it: read, judged by our own monotonic clock, and claimed. A Lease does
//! not fence: writers also guard what they destroy by revisions.

use super::call::{call, found};
use super::rest::{self, Route};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Keeps the Lease while its namespace is being deleted and still has resources: no process can create a Lease there any
/// more, and without a leader no controller would manage what claims hold.
const FINALIZER: &str = "conductor.io/leader";

/// How the leader is elected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseOptions {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// How long other processes respect a Lease that is not renewed.
    pub duration: Duration,
    /// How long this process leads without renewing. Shorter than `duration`, so that our last call has ended when
    /// another process begins.
    pub renew_deadline: Duration,
    /// The interval of reads and renewals.
    pub retry: Duration,
}

impl Default for LeaseOptions {
    fn default() -> Self {
        LeaseOptions {
            namespace: "conductor-system".to_owned(),
            name: "conductor".to_owned(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// A Lease as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub holder: String,
    pub duration: Duration,
    /// Changes with every renewal.
    pub revision: String,
    pub whole: Value,
}

/// Whether the Lease is being deleted.
pub(super) fn is_marked(lease: &Value) -> bool {
    lease.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null())
}

pub(super) fn set_finalizer(lease: &mut Value, wanted: bool) {
    let all = lease.pointer("/metadata/finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    let has = all.iter().any(|one| one == FINALIZER);
    // None can be added once the deletion has begun.
    if has == wanted || (wanted && is_marked(lease)) {
        return;
    }
    let mut all: Vec<Value> = all.into_iter().filter(|one| one != FINALIZER).collect();
    if wanted {
        all.push(FINALIZER.into());
    }
    lease["metadata"]["finalizers"] = Value::Array(all);
}

impl Record {
    pub fn read(whole: Value, fallback: Duration) -> Record {
        let text = |at: &str| whole.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let seconds = whole.pointer("/spec/leaseDurationSeconds").and_then(Value::as_u64);
        let (holder, revision) = (text("/spec/holderIdentity"), text("/metadata/resourceVersion"));
        Record { holder, duration: seconds.map_or(fallback, Duration::from_secs), revision, whole }
    }
}

/// The Lease with `me` as its holder; a new one where there is none.
pub(super) fn claimed(record: Option<&Record>, me: &str, options: &LeaseOptions) -> Value {
    let now = json!(MicroTime(Timestamp::now()));
    let mut lease = match record {
        Some(record) => record.whole.clone(),
        None => json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": options.name, "namespace": options.namespace},
        }),
    };
    set_finalizer(&mut lease, true);
    let spec = &mut lease["spec"];
    if record.is_none_or(|record| record.holder != me) {
        let transitions = spec["leaseTransitions"].as_i64().unwrap_or(0);
        spec["leaseTransitions"] = Value::from(if record.is_some() { transitions + 1 } else { transitions });
        spec["acquireTime"] = now.clone();
    }
    spec["holderIdentity"] = Value::from(me);
    spec["leaseDurationSeconds"] = Value::from(options.duration.as_secs().max(1));
    spec["renewTime"] = now;
    lease
}

/// What a candidate does next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Turn {
    /// There is no Lease: create it.
    Create,
    /// The Lease is free or has expired: take it.
    Take(Box<Record>),
    /// Another process holds it.
    Wait,
}

/// A process that wants to lead: remembers since when the Lease has not changed. The times in the Lease are those of
/// other machines and are not compared with ours.
#[derive(Debug, Default)]
pub(super) struct Candidate {
    unchanged: Option<(String, Instant)>,
}

impl Candidate {
    pub fn judge(&mut self, found: Option<Record>, me: &str, now: Instant) -> Turn {
        let Some(record) = found else { return Turn::Create };
        if record.holder.is_empty() || record.holder == me {
            return Turn::Take(Box::new(record));
        }
        match &self.unchanged {
            Some((revision, since)) if *revision == record.revision => {
                if now.duration_since(*since) >= record.duration {
                    Turn::Take(Box::new(record))
                } else {
                    Turn::Wait
                }
            }
            Some(_) | None => {
                self.unchanged = Some((record.revision, now));
                Turn::Wait
            }
        }
    }
}

/// Reads the Lease.
#[derive(Clone)]
pub struct LeaseReader {
    pub(super) client: Client,
    pub(super) path: String,
    pub(super) collection: String,
    pub(super) me: String,
    pub(super) within: Duration,
}

impl LeaseReader {
    /// Reads the Lease of `options` for the process `me`; a call may take `within`, and half of the renew deadline.
    pub fn new(client: Client, me: &str, options: &LeaseOptions, within: Duration) -> LeaseReader {
        let route = Route::namespaced("coordination.k8s.io/v1", "leases");
        let path = route.object(&options.namespace, &options.name).unwrap_or_default();
        let collection = route.collection(Some(&options.namespace));
        let within = within.min(options.renew_deadline / 2);
        LeaseReader { client, path, collection, me: me.to_owned(), within }
    }

    /// Reads whether this process holds the Lease.
    ///
    /// # Errors
    /// It does not, or the Lease cannot be read.
    pub async fn confirm(&self) -> Result<(), String> {
        let record =
            self.read(Duration::ZERO).await.map_err(|why| format!("cannot read the lease: {why}"))?;
        match record {
            Some(record) if record.holder == self.me => Ok(()),
            Some(record) => Err(format!("not sent: {:?} holds the lease", record.holder)),
            None => Err("not sent: the lease was deleted".to_owned()),
        }
    }

    pub(super) async fn read(&self, fallback: Duration) -> Result<Option<Record>, String> {
        let request = rest::get(&self.path).ok_or("its name is invalid")?;
        let body = found(call(&self.client, request, self.within).await)?;
        Ok(body.map(|body| Record::read(body, fallback)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, revision: u64) -> Option<Record> {
        let whole = json!({
            "metadata": {"resourceVersion": revision.to_string()},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15},
        });
        Some(Record::read(whole, Duration::ZERO))
    }

    fn takes(turn: &Turn) -> bool {
        matches!(turn, Turn::Take(_))
    }

    #[test]
    fn a_lease_is_taken_when_it_is_free_or_has_expired() {
        let (start, mut candidate) = (Instant::now(), Candidate::default());
        let mut at = |seconds, found| candidate.judge(found, "me", start + Duration::from_secs(seconds));
        assert_eq!(at(0, None), Turn::Create);
        assert!(takes(&at(0, lease("", 1))), "it was released");
        assert!(takes(&at(0, lease("me", 1))), "it is ours");
        assert_eq!(at(0, lease("other", 2)), Turn::Wait);
        assert_eq!(at(14, lease("other", 2)), Turn::Wait);
        assert_eq!(at(14, lease("other", 3)), Turn::Wait, "it was renewed");
        assert_eq!(at(28, lease("other", 3)), Turn::Wait, "counted from when we saw the renewal");
        assert!(takes(&at(29, lease("other", 3))));
        assert_eq!(at(30, lease("third", 4)), Turn::Wait, "another process was faster");
    }
}
