//! Wins the Lease, renews it and releases it. Changes the Lease only under the revision that it read. While it holds the
//! Lease, [`Leadership`] leads until the renew deadline.

use super::backoff;
use super::call::{Refusal, Reply, WriteVerb, call, message, refusal};
use super::leadership::Leadership;
use super::lease::{Candidate, LeaseOptions, LeaseReader, Record, Turn, claimed, is_marked, set_finalizer};
use super::rest;
use std::sync::Arc;
use std::time::Instant;

/// The state of the Lease, for health checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// No leader is elected.
    Unneeded,
    /// It has not been read yet.
    Unread,
    /// This process holds it.
    Held,
    /// Another process holds it, and this one is ready to take over.
    StandingBy,
    /// The last read, acquisition or renewal failed.
    Failed(String),
}

/// What an elector reports to, and requires from, its controller.
pub trait LeaseObserver: Send + Sync {
    /// Takes the new state.
    fn set_lease(&self, state: LeaseState);
    /// Whether the Lease must survive the deletion of its namespace.
    fn keeps_lease(&self) -> bool;
}

/// This process does not lead any more.
#[derive(Debug, thiserror::Error)]
#[error("lost the lease {lease}: {why}; this process writes nothing any more, start it again to stand by")]
pub struct LeaseLost {
    /// Namespace and name of the Lease.
    pub lease: String,
    /// Why.
    pub why: String,
}

/// How an attempt to acquire or renew ended.
enum Attempt {
    Held,
    /// Another process has the Lease.
    Lost(String),
    /// Unknown: retry.
    Failed(String),
}

/// Elects this process.
pub struct Elector {
    reader: LeaseReader,
    options: LeaseOptions,
    leadership: Leadership,
    observer: Arc<dyn LeaseObserver>,
    held: Option<Record>,
    /// Whether the Lease was marked for deletion at the last renewal too.
    was_marked: bool,
    /// When the last successful renewal was sent; the renew deadline counts from there.
    renewed: Instant,
}

impl Elector {
    /// Acquires by `acquire` and renews by `hold`.
    pub fn new(
        reader: LeaseReader,
        options: LeaseOptions,
        leadership: Leadership,
        observer: Arc<dyn LeaseObserver>,
    ) -> Elector {
        let renewed = Instant::now();
        Elector { reader, options, leadership, observer, held: None, was_marked: false, renewed }
    }

    /// Namespace and name of the Lease.
    pub fn name(&self) -> String {
        format!("{}/{}", self.options.namespace, self.options.name)
    }

    /// Stands by until this process leads.
    pub async fn acquire(&mut self) {
        let (mut candidate, mut failures) = (Candidate::default(), 0_u32);
        let mut holder = String::new();
        loop {
            match self.try_acquire(&mut candidate).await {
                Attempt::Held => return self.observer.set_lease(LeaseState::Held),
                Attempt::Lost(by) => {
                    failures = 0;
                    self.observer.set_lease(LeaseState::StandingBy);
                    if by != holder {
                        tracing::info!(lease = self.name(), holder = by, "standing by");
                        holder = by;
                    }
                }
                Attempt::Failed(why) => {
                    failures += 1;
                    self.observer.set_lease(LeaseState::Failed(format!("cannot acquire it: {why}")));
                    if failures.is_power_of_two() {
                        tracing::error!(
                            lease = self.name(),
                            failures,
                            why,
                            "cannot acquire the lease, retrying"
                        );
                    }
                }
            }
            tokio::time::sleep(backoff::jitter(self.options.retry)).await;
        }
    }

    async fn try_acquire(&mut self, candidate: &mut Candidate) -> Attempt {
        let found = match self.reader.read(self.options.duration).await {
            Ok(found) => found,
            Err(why) => return Attempt::Failed(why),
        };
        let holder = found.as_ref().map(|record| record.holder.clone()).unwrap_or_default();
        match candidate.judge(found, &self.reader.me, Instant::now()) {
            Turn::Create => self.put(None).await,
            Turn::Take(record) => self.put(Some(*record)).await,
            Turn::Wait => Attempt::Lost(holder),
        }
    }

    /// Renews until that has failed for the renew deadline, or another process has the Lease.
    pub async fn hold(&mut self) -> LeaseLost {
        let mut trouble = "no answer".to_owned();
        loop {
            let left = self.options.renew_deadline.saturating_sub(self.renewed.elapsed());
            if left.is_zero() {
                let seconds = self.options.renew_deadline.as_secs_f32();
                return self.lost(format!("it could not be renewed for {seconds} s ({trouble})"));
            }
            tokio::time::sleep(self.options.retry.min(left)).await;
            match tokio::time::timeout(self.reader.within, self.renew()).await {
                Ok(Attempt::Held) => {
                    self.observer.set_lease(LeaseState::Held);
                    self.release_if_marked().await;
                    continue;
                }
                Ok(Attempt::Lost(holder)) => return self.lost(format!("{holder:?} holds it")),
                Ok(Attempt::Failed(why)) => trouble = why,
                Err(_) => "no answer in time".clone_into(&mut trouble),
            }
            self.observer.set_lease(LeaseState::Failed(format!("it was not renewed: {trouble}")));
        }
    }

    /// Removes the finalizer of a Lease that is being deleted, so that the next renewal creates a new one; but not while
    /// its namespace is being deleted with resources in it. Decides at the second renewal: by then the watch has shown
    /// the namespace.
    async fn release_if_marked(&mut self) {
        let Some(record) = self.held.as_ref().filter(|record| is_marked(&record.whole)) else {
            self.was_marked = false;
            return;
        };
        if !std::mem::replace(&mut self.was_marked, true) || self.observer.keeps_lease() {
            return;
        }
        let mut lease = record.whole.clone();
        set_finalizer(&mut lease, false);
        if let Some(request) = rest::put(&self.reader.path, &lease) {
            // The next renewal sees the outcome.
            let _ = call(&self.reader.client, request, self.reader.within).await;
        }
    }

    fn lost(&self, why: String) -> LeaseLost {
        self.leadership.resign();
        self.observer.set_lease(LeaseState::Failed(why.clone()));
        LeaseLost { lease: self.name(), why }
    }

    async fn renew(&mut self) -> Attempt {
        match self.put(self.held.clone()).await {
            // Our own renewal may have succeeded without our knowing: read who holds it.
            Attempt::Lost(_) => match self.reader.read(self.options.duration).await {
                Ok(Some(record)) if record.holder == self.reader.me => self.put(Some(record)).await,
                Ok(Some(record)) => Attempt::Lost(record.holder),
                Ok(None) => self.put(None).await,
                Err(why) => Attempt::Failed(why),
            },
            other => other,
        }
    }

    /// Writes this process into the Lease, if it is still as it was read.
    async fn put(&mut self, record: Option<Record>) -> Attempt {
        let begun = Instant::now();
        if begun.duration_since(self.renewed) >= self.options.renew_deadline && self.held.is_some() {
            return Attempt::Failed("too late".to_owned());
        }
        let whole = claimed(record.as_ref(), &self.reader.me, &self.options);
        let (verb, request) = match record {
            Some(_) => (WriteVerb::Patch, rest::put(&self.reader.path, &whole)),
            None => (WriteVerb::Create, rest::post(&self.reader.collection, &whole)),
        };
        let Some(request) = request else { return Attempt::Failed("its name is invalid".to_owned()) };
        match call(&self.reader.client, request, self.reader.within).await {
            Reply::Answered { status, body, .. } if status.is_success() => {
                self.held = Some(Record::read(body, self.options.duration));
                self.renewed = begun;
                self.leadership.lead_until(begun + self.options.renew_deadline);
                Attempt::Held
            }
            Reply::Answered { status, body, .. } => match refusal(verb, status, &body) {
                Refusal::Conflict | Refusal::Exists | Refusal::Missing => Attempt::Lost(String::new()),
                Refusal::Invalid | Refusal::Unknown => Attempt::Failed(message(status, &body)),
            },
            Reply::Lost(why) => Attempt::Failed(why),
        }
    }

    /// Resigns and releases the Lease, so that a successor need not wait until it expires.
    pub async fn release(mut self) {
        self.leadership.resign();
        let Some(record) = self.held.take() else { return };
        let mut lease = claimed(Some(&record), &self.reader.me, &self.options);
        lease["spec"]["holderIdentity"] = "".into();
        lease["spec"]["leaseDurationSeconds"] = 1.into();
        // Without a leader the Lease must delay no deletion, except that of a namespace with resources.
        let stays = is_marked(&lease) && self.observer.keeps_lease();
        set_finalizer(&mut lease, stays);
        let Some(request) = rest::put(&self.reader.path, &lease) else { return };
        let why = match call(&self.reader.client, request, self.reader.within).await {
            Reply::Answered { status, .. } if status.is_success() => {
                return tracing::info!(lease = self.name(), "released the lease");
            }
            Reply::Answered { status, body, .. } => message(status, &body),
            Reply::Lost(why) => why,
        };
        tracing::warn!(lease = self.name(), why, "cannot release the lease");
    }
}
