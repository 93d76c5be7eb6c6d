//! Carries out what the engine asks for: calls in parallel, governed in number and rate, each after the gate
//! was asked. Nothing is decided here; a write is never tried twice, its answer goes back to the engine.

use super::answer::{self, Ask};
use super::call::{Reply, call};
use super::chance;
use super::gate::Gate;
use super::lanes::{Flying, Lanes};
use super::lease::LeaseReader;
use super::metrics::{CallLabels, Metrics};
use super::options::Options;
use super::owner::Message;
use super::parts::Routes;
use super::wire;
use conductor::action::{PartAction, Write};
use conductor::event::{Answer, Event};
use conductor::model::{AllowedKinds, Kind, Object, ObjectKey, Publication, Revision, Slot, Uid, WriteId};
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http::{Request, StatusCode};
use kube::Client;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// First pause before a read that failed is asked again.
const READ_AGAIN_FIRST: Duration = Duration::from_millis(200);
/// Longest such pause, and longest that we let the API send us away for.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// One call to be made.
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
    /// The engine knows no failed read: it is asked again until it is answered.
    Read {
        kind: Kind,
        key: ObjectKey,
        failures: u32,
    },
    /// Anything about a part but following its kind.
    Part {
        action: PartAction,
        failures: u32,
    },
    Publish {
        id: WriteId,
        publication: Box<Publication>,
    },
    /// As with other reads.
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

/// The name in metrics of everything that is published, and of what it comes from.
pub(super) const METRIC_PUBLISHED: &str = "Published";

/// What became of a job.
pub(super) enum Outcome {
    Happened(Event),
    Again(Job, Duration),
}

/// The writer: the jobs that wait, and the hands that do them.
pub(super) struct Writer {
    hands: Arc<Hands>,
    jobs: mpsc::UnboundedReceiver<Job>,
    inbox: mpsc::Sender<Message>,
    parallel: usize,
}

impl Writer {
    pub fn new(
        hands: Hands,
        jobs: mpsc::UnboundedReceiver<Job>,
        inbox: mpsc::Sender<Message>,
        parallel: usize,
    ) -> Writer {
        Writer { hands: Arc::new(hands), jobs, inbox, parallel: parallel.max(1) }
    }

    /// Works until `halt`, then waits for what is on its way and begins nothing more.
    pub async fn run(mut self, halt: CancellationToken) {
        let mut lanes = Lanes::default();
        let mut flying: FuturesUnordered<BoxFuture<'static, (Outcome, bool)>> = FuturesUnordered::new();
        let mut counts = Flying::default();
        let mut pausing: FuturesUnordered<BoxFuture<'static, Job>> = FuturesUnordered::new();
        loop {
            while flying.len() < self.parallel
                && let Some((job, patient)) = lanes.pop(counts)
            {
                *counts.count(patient) += 1;
                let hands = Arc::clone(&self.hands);
                flying.push(Box::pin(async move { (hands.carry_out(job).await, patient) }));
            }
            self.hands.metrics.writes(lanes.len(), flying.len());
            tokio::select! {
                biased;
                () = halt.cancelled() => break,
                Some((outcome, patient)) = flying.next() => {
                    *counts.count(patient) -= 1;
                    match outcome {
                        Outcome::Happened(event) => if self.inbox.send(Message::Event(event)).await.is_err() { break },
                        Outcome::Again(job, pause) => pausing.push(Box::pin(after(pause, job))),
                    }
                }
                Some(job) = pausing.next() => lanes.push(job),
                job = self.jobs.recv() => match job {
                    Some(job) => {
                        lanes.push(job);
                        // All that are there: the order among them is the lanes'.
                        while let Ok(job) = self.jobs.try_recv() {
                            lanes.push(job);
                        }
                    }
                    None => break,
                },
            }
        }
        while flying.next().await.is_some() {}
    }
}

async fn after(pause: Duration, job: Job) -> Job {
    tokio::time::sleep(pause).await;
    job
}

/// How fast calls may follow each other.
pub(super) struct Governor {
    limiter: DefaultDirectRateLimiter,
    /// Set when the API sends us away: until then nothing is sent.
    quiet_until: Mutex<Option<Instant>>,
}

impl Governor {
    pub fn new(options: &Options) -> Governor {
        let positive = |n: u32| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        let rate = Quota::per_second(positive(options.writes_per_second));
        let limiter = RateLimiter::direct(rate.allow_burst(positive(options.burst)));
        Governor { limiter, quiet_until: Mutex::new(None) }
    }

    pub(super) async fn wait_turn(&self) {
        self.limiter.until_ready().await;
        let quiet = *self.quiet_until.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(until) = quiet {
            tokio::time::sleep_until(until.into()).await;
        }
    }

    /// Keeps quiet for as long as the API asked us to.
    fn heed(&self, reply: &Reply) {
        if let Reply::Answered { status: StatusCode::TOO_MANY_REQUESTS, retry_after, .. } = reply {
            let pause = retry_after.unwrap_or(Duration::from_secs(1)).min(PAUSE_MAX);
            let until = Instant::now() + pause;
            *self.quiet_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
        }
    }
}

/// What one call needs.
pub(super) struct Hands {
    pub client: Client,
    pub gate: Gate,
    pub lease: Option<LeaseReader>,
    pub routes: Routes,
    pub governor: Governor,
    pub metrics: Arc<Metrics>,
    pub within: Duration,
    pub allowed_kinds: AllowedKinds,
}

impl Hands {
    async fn carry_out(self: Arc<Self>, job: Job) -> Outcome {
        let (id, answer) = match job {
            Job::Write(write) => {
                let request = wire::patch_request(&write);
                (write.id, self.write(Ask::Patch, write.kind, request).await)
            }
            Job::Create { id, object } => {
                let request = wire::create_request(&object);
                (id, self.write(Ask::Create, object.kind, request).await)
            }
            Job::Delete { id, kind, key, uid, revision } => {
                let path = wire::route(kind).object(&key);
                let request = path.and_then(|path| wire::delete_request(&path, &uid, revision));
                (id, self.write(Ask::Delete, kind, request).await)
            }
            Job::Read { kind, key, failures } => return self.read(kind, key, failures).await,
            Job::ReadSecret { claim, key, failures } => return self.read_secret(claim, key, failures).await,
            Job::Part { action, failures } => return self.carry_out_part(action, failures).await,
            Job::Publish { id, publication } => (id, self.publish(&publication).await),
            Job::Withdraw { id, slot, key, uid } => (id, self.withdraw(slot, &key, &uid).await),
        };
        Outcome::Happened(Event::Answered { id, answer })
    }

    async fn write(&self, ask: Ask, kind: Kind, request: Option<Request<Vec<u8>>>) -> Answer {
        let Some(request) = request else {
            return match ask {
                Ask::Create => Answer::Invalid("it has no namespace, or a name that is none".to_owned()),
                Ask::Patch | Ask::Delete => Answer::Missing,
            };
        };
        match self.send(ask, kind.name(), request).await {
            Ok(reply) => answer::to_write(ask, kind, reply),
            Err(why) => Answer::Unknown(why),
        }
    }

    /// Sends what changes something, if we may.
    pub(super) async fn send(
        &self,
        ask: Ask,
        kind: &'static str,
        request: Request<Vec<u8>>,
    ) -> Result<Reply, String> {
        self.governor.wait_turn().await;
        self.may_write(ask).await?;
        Ok(self.call(kind, request).await)
    }

    /// Whether we still lead. Before anything is destroyed the Lease itself is read: a clock can stand
    /// still with us, the API's word cannot.
    async fn may_write(&self, ask: Ask) -> Result<(), String> {
        if ask == Ask::Delete
            && let Some(lease) = &self.lease
        {
            lease.confirm().await?;
        }
        match self.gate.is_open() {
            true => Ok(()),
            false => Err("not sent: this process does not lead".to_owned()),
        }
    }

    async fn read(&self, kind: Kind, key: ObjectKey, failures: u32) -> Outcome {
        let Some(request) = wire::route(kind).object(&key).and_then(|path| wire::get_request(&path)) else {
            // No object can have that name.
            return Outcome::Happened(Event::Read { kind, key, found: None });
        };
        self.governor.wait_turn().await;
        match answer::to_read(kind, self.call(kind.name(), request).await) {
            Ok(found) => Outcome::Happened(Event::Read { kind, key, found }),
            Err(why) => {
                let (failures, pause) = ask_again(kind.name().to_owned(), key.to_string(), failures, &why);
                Outcome::Again(Job::Read { kind, key, failures }, pause)
            }
        }
    }

    pub(super) async fn call(&self, kind: &'static str, request: Request<Vec<u8>>) -> Reply {
        let verb = verb(&request);
        let begun = Instant::now();
        let reply = call(&self.client, request, self.within).await;
        let code = match &reply {
            Reply::Answered { status, .. } => u32::from(status.as_u16()),
            Reply::Lost(_) => 0,
        };
        self.metrics.called(CallLabels { verb, kind, code }, begun.elapsed());
        self.governor.heed(&reply);
        reply
    }
}

/// Counts one more failed read, and says how long to wait.
pub(super) fn ask_again(kind: String, object: String, failures: u32, why: &str) -> (u32, Duration) {
    let failures = failures.saturating_add(1);
    if failures.is_power_of_two() {
        tracing::warn!(kind, object, failures, why, "cannot read, asking again");
    }
    (failures, chance::backoff(failures, READ_AGAIN_FIRST, PAUSE_MAX))
}

fn verb(request: &Request<Vec<u8>>) -> &'static str {
    match request.method().as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => "other",
    }
}
