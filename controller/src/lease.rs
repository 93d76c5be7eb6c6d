//! Our own elector: one Lease, changed only under its revision, judged only by our own steady clock.
//! A Lease does not fence: what is destroyed is guarded by revisions as well, and that is not done here.

use super::answer::{Ask, Refusal, found, refusal};
use super::call::{Reply, call, message};
use super::chance;
use super::error::Error;
use super::gate::Gate;
use super::health::{Health, LeaseView};
use super::options::LeaseOptions;
use super::wire;
use conductor::model::ObjectKey;
use http::Method;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Keeps the Lease while its namespace is being deleted and still has resources: without a leader nothing that claims
/// hold could be looked after, and nobody can create a Lease there any more.
const FINALIZER: &str = "conductor.io/leader";

/// What a Lease says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    holder: String,
    duration: Duration,
    /// Changes with every renewal.
    revision: String,
    whole: Value,
}

/// Whether somebody has asked for its deletion.
fn is_marked(lease: &Value) -> bool {
    lease.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null())
}

fn set_finalizer(lease: &mut Value, wanted: bool) {
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
    fn read(whole: Value, fallback: Duration) -> Record {
        let text = |at: &str| whole.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let seconds = whole.pointer("/spec/leaseDurationSeconds").and_then(Value::as_u64);
        let (holder, revision) = (text("/spec/holderIdentity"), text("/metadata/resourceVersion"));
        Record { holder, duration: seconds.map_or(fallback, Duration::from_secs), revision, whole }
    }
}

/// What a candidate may do now.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Turn {
    /// There is no Lease: make one.
    Create,
    /// It is free, or was not renewed for as long as it is good: take it.
    Take(Box<Record>),
    /// Somebody holds it.
    Wait,
}

/// Somebody who would lead: remembers since when the Lease has not changed. The times in the Lease are
/// other machines' and are not compared with ours.
#[derive(Debug, Default)]
pub(super) struct Candidate {
    unchanged: Option<(String, Instant)>,
}

impl Candidate {
    /// Judges what was read.
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

/// How a try to take or renew ended.
enum Try {
    Held,
    /// Somebody else has it.
    Lost(String),
    /// Not known: to be tried again.
    Failed(String),
}

/// Reads the Lease, for those who must be sure.
#[derive(Clone)]
pub(super) struct LeaseReader {
    client: Client,
    path: String,
    collection: String,
    me: String,
    within: Duration,
}

impl LeaseReader {
    /// Whether the API says now that we hold the Lease.
    pub async fn confirm(&self) -> Result<(), String> {
        let record =
            self.read(Duration::ZERO).await.map_err(|why| format!("the lease cannot be read: {why}"))?;
        match record {
            Some(record) if record.holder == self.me => Ok(()),
            Some(record) => Err(format!("not sent: the lease is held by {:?}", record.holder)),
            None => Err("not sent: the lease is gone".to_owned()),
        }
    }

    async fn read(&self, fallback: Duration) -> Result<Option<Record>, String> {
        let request = wire::get_request(&self.path).ok_or("its name is none")?;
        let body = found(call(&self.client, request, self.within).await)?;
        Ok(body.map(|body| Record::read(body, fallback)))
    }
}

/// Wins the Lease, keeps it, and gives it back.
pub(super) struct Elector {
    reader: LeaseReader,
    options: LeaseOptions,
    gate: Gate,
    health: Arc<Health>,
    held: Option<Record>,
    /// Whether the Lease was marked for deletion at the last renewal too.
    was_marked: bool,
    /// When the last renewal that succeeded was sent; our time counts from there.
    renewed: Instant,
}

impl Elector {
    pub fn new(
        client: Client,
        me: &str,
        options: LeaseOptions,
        gate: Gate,
        health: Arc<Health>,
        within: Duration,
    ) -> Elector {
        let route = wire::Route {
            base: "/apis/coordination.k8s.io/v1".to_owned(),
            plural: "leases".to_owned(),
            namespaced: true,
        };
        let key = ObjectKey::new(options.namespace.as_str(), options.name.as_str());
        let path = route.object(&key).unwrap_or_default();
        let collection = route.collection(Some(&options.namespace));
        let within = within.min(options.renew_deadline / 2);
        let reader = LeaseReader { client, path, collection, me: me.to_owned(), within };
        Elector { reader, options, gate, health, held: None, was_marked: false, renewed: Instant::now() }
    }

    pub fn reader(&self) -> LeaseReader {
        self.reader.clone()
    }

    /// Namespace and name of the Lease.
    pub fn name(&self) -> String {
        format!("{}/{}", self.options.namespace, self.options.name)
    }

    /// Stands by until we lead.
    pub async fn acquire(&mut self) {
        let (mut candidate, mut failures) = (Candidate::default(), 0_u32);
        let mut holder = String::new();
        loop {
            match self.try_acquire(&mut candidate).await {
                Try::Held => {
                    self.health.set_lease(LeaseView::Held);
                    return;
                }
                Try::Lost(by) => {
                    failures = 0;
                    self.health.set_lease(LeaseView::StandingBy);
                    if by != holder {
                        tracing::info!(lease = self.name(), holder = by, "standing by");
                        holder = by;
                    }
                }
                Try::Failed(why) => {
                    failures += 1;
                    self.health.set_lease(LeaseView::Failed(format!("it cannot be taken: {why}")));
                    if failures.is_power_of_two() {
                        tracing::error!(
                            lease = self.name(),
                            failures,
                            why,
                            "cannot take the lease, trying again"
                        );
                    }
                }
            }
            tokio::time::sleep(chance::pause(self.options.retry)).await;
        }
    }

    async fn try_acquire(&mut self, candidate: &mut Candidate) -> Try {
        let found = match self.reader.read(self.options.duration).await {
            Ok(found) => found,
            Err(why) => return Try::Failed(why),
        };
        let holder = found.as_ref().map(|record| record.holder.clone()).unwrap_or_default();
        match candidate.judge(found, &self.reader.me, Instant::now()) {
            Turn::Create => self.put(None).await,
            Turn::Take(record) => self.put(Some(*record)).await,
            Turn::Wait => Try::Lost(holder),
        }
    }

    /// Renews until that has not worked for too long, or somebody else has the Lease.
    pub async fn hold(&mut self) -> Error {
        let mut trouble = "nobody answered".to_owned();
        loop {
            let left = self.options.renew_deadline.saturating_sub(self.renewed.elapsed());
            if left.is_zero() {
                let seconds = self.options.renew_deadline.as_secs_f32();
                return self.lost(format!("it could not be renewed for {seconds} s ({trouble})"));
            }
            tokio::time::sleep(self.options.retry.min(left)).await;
            match tokio::time::timeout(self.reader.within, self.renew()).await {
                Ok(Try::Held) => {
                    self.health.set_lease(LeaseView::Held);
                    self.let_go_if_marked().await;
                    continue;
                }
                Ok(Try::Lost(holder)) => return self.lost(format!("it is held by {holder:?}")),
                Ok(Try::Failed(why)) => trouble = why,
                Err(_) => "no answer in time".clone_into(&mut trouble),
            }
            self.health.set_lease(LeaseView::Failed(format!("it was not renewed: {trouble}")));
        }
    }

    /// Lets a Lease end whose deletion was asked for, so that the next renewal creates it anew; not while its namespace
    /// is being deleted with resources in it. Decided at the second sight: by then the watch has shown the namespace.
    async fn let_go_if_marked(&mut self) {
        let Some(record) = self.held.as_ref().filter(|record| is_marked(&record.whole)) else {
            self.was_marked = false;
            return;
        };
        if !std::mem::replace(&mut self.was_marked, true) || self.health.keeps_lease() {
            return;
        }
        let mut lease = record.whole.clone();
        set_finalizer(&mut lease, false);
        let request = wire::request(Method::PUT, &self.reader.path, Some(("application/json", &lease)));
        if let Some(request) = request {
            // Whatever comes of it, the next renewal sees.
            let _ = call(&self.reader.client, request, self.reader.within).await;
        }
    }

    fn lost(&self, why: String) -> Error {
        self.gate.shut();
        self.health.set_lease(LeaseView::Failed(why.clone()));
        Error::LeaseLost { lease: self.name(), why }
    }

    async fn renew(&mut self) -> Try {
        match self.put(self.held.clone()).await {
            // Our own renewal may have been done without our knowing: read whose it is.
            Try::Lost(_) => match self.reader.read(self.options.duration).await {
                Ok(Some(record)) if record.holder == self.reader.me => self.put(Some(record)).await,
                Ok(Some(record)) => Try::Lost(record.holder),
                Ok(None) => self.put(None).await,
                Err(why) => Try::Failed(why),
            },
            other => other,
        }
    }

    /// Writes us into the Lease, where it is still as it was read.
    async fn put(&mut self, record: Option<Record>) -> Try {
        let begun = Instant::now();
        if begun.duration_since(self.renewed) >= self.options.renew_deadline && self.held.is_some() {
            return Try::Failed("too late".to_owned());
        }
        let (whole, ask) =
            (self.claimed(record.as_ref()), if record.is_some() { Ask::Patch } else { Ask::Create });
        let request = match record {
            Some(_) => wire::request(Method::PUT, &self.reader.path, Some(("application/json", &whole))),
            None => wire::post_request(&self.reader.collection, &whole),
        };
        let Some(request) = request else { return Try::Failed("its name is none".to_owned()) };
        match call(&self.reader.client, request, self.reader.within).await {
            Reply::Answered { status, body, .. } if status.is_success() => {
                self.held = Some(Record::read(body, self.options.duration));
                self.renewed = begun;
                self.gate.open_until(begun + self.options.renew_deadline);
                Try::Held
            }
            Reply::Answered { status, body, .. } => match refusal(ask, status, &body) {
                Refusal::Conflict | Refusal::Exists | Refusal::Missing => Try::Lost(String::new()),
                Refusal::Invalid | Refusal::Unknown => Try::Failed(message(status, &body)),
            },
            Reply::Lost(why) => Try::Failed(why),
        }
    }

    /// The Lease with us as its holder.
    fn claimed(&self, record: Option<&Record>) -> Value {
        let now = json!(MicroTime(Timestamp::now()));
        let mut lease = match record {
            Some(record) => record.whole.clone(),
            None => json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": self.options.name, "namespace": self.options.namespace},
            }),
        };
        set_finalizer(&mut lease, true);
        let spec = &mut lease["spec"];
        if record.is_none_or(|record| record.holder != self.reader.me) {
            let transitions = spec["leaseTransitions"].as_i64().unwrap_or(0);
            spec["leaseTransitions"] =
                Value::from(if record.is_some() { transitions + 1 } else { transitions });
            spec["acquireTime"] = now.clone();
        }
        spec["holderIdentity"] = Value::from(self.reader.me.as_str());
        spec["leaseDurationSeconds"] = Value::from(self.options.duration.as_secs().max(1));
        spec["renewTime"] = now;
        lease
    }

    /// Gives the Lease back, so that a successor need not wait for it to run out.
    pub async fn release(mut self) {
        self.gate.shut();
        let Some(record) = self.held.take() else { return };
        let mut lease = self.claimed(Some(&record));
        lease["spec"]["holderIdentity"] = Value::from("");
        lease["spec"]["leaseDurationSeconds"] = Value::from(1);
        // Without a leader the Lease must hold up no deletion, but that of a namespace with resources.
        let stays = is_marked(&lease) && self.health.keeps_lease();
        set_finalizer(&mut lease, stays);
        let request = wire::request(Method::PUT, &self.reader.path, Some(("application/json", &lease)));
        if let Some(request) = request {
            match call(&self.reader.client, request, self.reader.within).await {
                Reply::Answered { status, .. } if status.is_success() => {
                    tracing::info!(lease = self.name(), "gave the lease back");
                }
                Reply::Answered { status, body, .. } => {
                    tracing::warn!(
                        lease = self.name(),
                        why = message(status, &body),
                        "cannot give the lease back"
                    );
                }
                Reply::Lost(why) => tracing::warn!(lease = self.name(), why, "cannot give the lease back"),
            }
        }
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
    fn a_lease_is_taken_when_it_is_free_or_has_run_out() {
        let (start, mut candidate) = (Instant::now(), Candidate::default());
        let mut at = |seconds, found| candidate.judge(found, "me", start + Duration::from_secs(seconds));
        assert_eq!(at(0, None), Turn::Create);
        assert!(takes(&at(0, lease("", 1))), "it was given back");
        assert!(takes(&at(0, lease("me", 1))), "it is ours");
        assert_eq!(at(0, lease("other", 2)), Turn::Wait);
        assert_eq!(at(14, lease("other", 2)), Turn::Wait);
        assert_eq!(at(14, lease("other", 3)), Turn::Wait, "it was renewed");
        assert_eq!(at(28, lease("other", 3)), Turn::Wait, "counted from when the renewal was seen");
        assert!(takes(&at(29, lease("other", 3))));
        assert_eq!(at(30, lease("third", 4)), Turn::Wait, "somebody was faster");
    }
}
