//! Executes the engine's actions: calls in parallel, limited in number and rate, each after a check of the leadership.
//! Decides nothing; retries no write, but returns its answer to the engine.

use super::event_loop::Message;
use super::metrics::{CallLabels, Metrics};
use super::response;
use super::rest;
use super::write_priority::{InFlight, WriteQueue};
use conductor::action::{PartAction, Write};
use conductor::event::{Answer, Event};
use conductor::model::{AllowedKinds, Kind, Object, ObjectKey, Publication, Revision, Slot, Uid, WriteId};
use conductor_runtime::backoff::Backoff;
use conductor_runtime::call::{Reply, WriteVerb, call};
use conductor_runtime::discovery::Routes;
use conductor_runtime::leadership::Leadership;
use conductor_runtime::rate_limit::RateLimit;
use conductor_runtime::rest::RestRequest;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use kube::Client;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The pauses between attempts to read an object.
const READ_AGAIN: Backoff = Backoff { first: Duration::from_millis(200), max: Duration::from_secs(10) };

/// One call.
#[derive(Debug)]
pub(super) enum Job {
    Write(Write),
    Create {
        id: WriteId,
        object: Object,
    },
    Delete {
        id: WriteId,
        kind: Kind,
        key: ObjectKey,
        uid: Uid,
        revision: Revision,
    },
    /// Retried until the API answers: the engine knows no failed read.
    Read {
        kind: Kind,
        key: ObjectKey,
        failures: u32,
    },
    /// Everything about a part except the watch of its kind.
    Part {
        action: PartAction,
        failures: u32,
    },
    Publish {
        id: WriteId,
        publication: Box<Publication>,
    },
    /// Retried as `Read` is.
    ReadSecret {
        claim: Uid,
        key: ObjectKey,
        failures: u32,
    },
    Withdraw {
        id: WriteId,
        slot: Slot,
        key: ObjectKey,
        uid: Uid,
    },
}

/// The name in metrics of published objects and of their sources.
pub(super) const METRIC_PUBLISHED: &str = "Published";

/// The outcome of a job.
pub(super) enum Outcome {
    Done(Event),
    Retry(Job, Duration),
}

/// Takes jobs from the event loop and executes them in parallel.
pub(super) struct Writer {
    executor: Arc<Executor>,
    jobs: mpsc::UnboundedReceiver<Job>,
    inbox: mpsc::Sender<Message>,
    parallel: usize,
}

impl Writer {
    pub fn new(
        executor: Executor,
        jobs: mpsc::UnboundedReceiver<Job>,
        inbox: mpsc::Sender<Message>,
        parallel: usize,
    ) -> Writer {
        Writer { executor: Arc::new(executor), jobs, inbox, parallel: parallel.max(1) }
    }

    /// Runs until `halt`, then waits for calls in flight and starts no more.
    pub async fn run(mut self, halt: CancellationToken) {
        let mut queue = WriteQueue::default();
        let mut in_flight: FuturesUnordered<BoxFuture<'static, (Outcome, bool)>> = FuturesUnordered::new();
        let mut counts = InFlight::default();
        let mut paused: FuturesUnordered<BoxFuture<'static, Job>> = FuturesUnordered::new();
        loop {
            while in_flight.len() < self.parallel
                && let Some((job, deferred)) = queue.pop(counts)
            {
                *counts.count(deferred) += 1;
                let executor = Arc::clone(&self.executor);
                in_flight.push(Box::pin(async move { (executor.execute(job).await, deferred) }));
            }
            self.executor.metrics.writes(queue.len(), in_flight.len());
            tokio::select! {
                biased;
                () = halt.cancelled() => break,
                Some((outcome, deferred)) = in_flight.next() => {
                    *counts.count(deferred) -= 1;
                    match outcome {
                        Outcome::Done(event) => if self.inbox.send(Message::Event(event)).await.is_err() { break },
                        Outcome::Retry(job, pause) => paused.push(Box::pin(after(pause, job))),
                    }
                }
                Some(job) = paused.next() => queue.push(job),
                job = self.jobs.recv() => match job {
                    Some(job) => {
                        queue.push(job);
                        // Take all that wait, so that the queue can order them.
                        while let Ok(job) = self.jobs.try_recv() {
                            queue.push(job);
                        }
                    }
                    None => break,
                },
            }
        }
        while in_flight.next().await.is_some() {}
    }
}

async fn after(pause: Duration, job: Job) -> Job {
    tokio::time::sleep(pause).await;
    job
}

/// Executes one job.
pub(super) struct Executor {
    pub client: Client,
    pub leadership: Leadership,
    pub routes: Routes,
    pub rate_limit: RateLimit,
    pub metrics: Arc<Metrics>,
    pub within: Duration,
    pub allowed_kinds: AllowedKinds,
}

impl Executor {
    async fn execute(self: Arc<Self>, job: Job) -> Outcome {
        let (id, answer) = match job {
            Job::Write(write) => {
                let request = rest::patch_request(&write);
                (write.id, self.write(WriteVerb::Patch, write.kind, request).await)
            }
            Job::Create { id, object } => {
                let request = rest::create_request(&object);
                (id, self.write(WriteVerb::Create, object.kind, request).await)
            }
            Job::Delete { id, kind, key, uid, revision } => {
                let request = rest::delete_request(&rest::route(kind), &key, &uid, revision);
                (id, self.write(WriteVerb::Delete, kind, request).await)
            }
            Job::Read { kind, key, failures } => return self.read(kind, key, failures).await,
            Job::ReadSecret { claim, key, failures } => return self.read_secret(claim, key, failures).await,
            Job::Part { action, failures } => return self.execute_part(action, failures).await,
            Job::Publish { id, publication } => (id, self.publish(&publication).await),
            Job::Withdraw { id, slot, key, uid } => (id, self.withdraw(slot, &key, &uid).await),
        };
        Outcome::Done(Event::Answered { id, answer })
    }

    async fn write(&self, verb: WriteVerb, kind: Kind, request: Option<RestRequest>) -> Answer {
        let Some(request) = request else {
            return match verb {
                WriteVerb::Create => Answer::Invalid("it has no namespace or an invalid name".to_owned()),
                WriteVerb::Patch | WriteVerb::Delete => Answer::Missing,
            };
        };
        match self.send(verb, kind.name(), request).await {
            Ok(reply) => response::to_write(verb, kind, reply),
            Err(why) => Answer::Unknown(why),
        }
    }

    /// Sends a write, if this process may.
    pub(super) async fn send(
        &self,
        verb: WriteVerb,
        kind: &'static str,
        request: RestRequest,
    ) -> Result<Reply, String> {
        self.rate_limit.wait_turn().await;
        self.may_write(verb).await?;
        Ok(self.call(kind, request).await)
    }

    /// Whether this process leads. Reads the Lease before it destroys anything.
    async fn may_write(&self, verb: WriteVerb) -> Result<(), String> {
        match verb {
            WriteVerb::Delete => self.leadership.confirm().await,
            WriteVerb::Patch | WriteVerb::Create => self.leadership.require(),
        }
    }

    async fn read(&self, kind: Kind, key: ObjectKey, failures: u32) -> Outcome {
        let path = rest::route(kind).object(&key.namespace, &key.name);
        let Some(request) = path.and_then(|path| conductor_runtime::rest::get(&path)) else {
            // The name is invalid.
            return Outcome::Done(Event::Read { kind, key, found: None });
        };
        self.rate_limit.wait_turn().await;
        match response::to_read(kind, self.call(kind.name(), request).await) {
            Ok(found) => Outcome::Done(Event::Read { kind, key, found }),
            Err(why) => {
                let (failures, pause) = retry_read(kind.name().to_owned(), key.to_string(), failures, &why);
                Outcome::Retry(Job::Read { kind, key, failures }, pause)
            }
        }
    }

    pub(super) async fn call(&self, kind: &'static str, request: RestRequest) -> Reply {
        let verb = verb(&request);
        let begun = Instant::now();
        let reply = call(&self.client, request, self.within).await;
        let code = match &reply {
            Reply::Answered { status, .. } => u32::from(status.as_u16()),
            Reply::Lost(_) => 0,
        };
        self.metrics.called(CallLabels { verb, kind, code }, begun.elapsed());
        self.rate_limit.heed(&reply);
        reply
    }
}

/// Counts another failed read; returns the count and the pause.
pub(super) fn retry_read(kind: String, object: String, failures: u32, why: &str) -> (u32, Duration) {
    let failures = failures.saturating_add(1);
    if failures.is_power_of_two() {
        tracing::warn!(kind, object, failures, why, "cannot read, retrying");
    }
    (failures, READ_AGAIN.pause(failures))
}

fn verb(request: &RestRequest) -> &'static str {
    match request.method().as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => "other",
    }
}
