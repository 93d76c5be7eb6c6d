//! Works on the objects of the provider: databases, roles and DatabaseClaims, each by the shared work queue, a few at a
//! time on each server.

use super::error::Error;
use super::reconcile::{Next, Provider};
use conductor::api::database::logical::ServerRef;
use conductor_runtime::backoff::Backoff;
use conductor_runtime::work_queue::{Limits, Outcome, WorkQueue, Worker};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::mpsc;

/// How often a process that does not lead checks whether it does.
const STAND_BY: Duration = Duration::from_secs(1);
/// The pause after a conflict: another client wrote the object meanwhile.
const PAUSE_CONFLICT: Duration = Duration::from_millis(200);
const LIMITS: Limits = Limits {
    parallel: 64,
    parallel_in_group: super::pool::SESSIONS_MAX,
    resync: Duration::from_secs(600),
    standby: STAND_BY,
    backoff: Backoff { first: Duration::from_millis(500), max: Duration::from_secs(30) },
};

/// What is worked on, one by one.
pub(super) trait Reconciler: Clone + Send + Sync + 'static {
    /// What happens outside.
    type Wake: Send;
    /// What one of them is called.
    const WHAT: &'static str;

    /// The ids that it concerns.
    fn concerned(&self, wake: &Self::Wake) -> BTreeSet<String>;
    /// Whether our own write may have caused it.
    fn is_echo(wake: &Self::Wake) -> bool;
    /// One pass over one of them.
    fn pass(&self, id: &str) -> impl Future<Output = Result<Next, Error>> + Send;
    /// The server that it is on, if any.
    fn server_of(&self, id: &str) -> Option<ServerRef>;
    /// What everything is done with.
    fn provider(&self) -> &Provider;
    /// After each turn of the queue.
    fn turned(&self) {}
}

/// Works until it is dropped.
pub(super) async fn run<R: Reconciler>(round: R, wakes: mpsc::UnboundedReceiver<R::Wake>) {
    WorkQueue::new(LIMITS).run(QueueWorker(round), wakes).await;
}

/// A round as the worker of a queue.
#[derive(Clone)]
struct QueueWorker<R>(R);

impl<R: Reconciler> Worker for QueueWorker<R> {
    type Wake = R::Wake;
    type Group = ServerRef;
    const WHAT: &'static str = R::WHAT;

    fn keys(&self, wake: &R::Wake) -> BTreeSet<String> {
        self.0.concerned(wake)
    }

    fn is_echo(wake: &R::Wake) -> bool {
        R::is_echo(wake)
    }

    fn group(&self, key: &str) -> Option<ServerRef> {
        self.0.server_of(key)
    }

    fn may_start(&self) -> bool {
        self.0.provider().cluster.leadership.leads()
    }

    async fn work(&self, key: String) -> Outcome {
        let provider = self.0.provider();
        provider.informers.wait_until_listed().await;
        match self.0.pass(&key).await {
            Ok(Next::Rest) => Outcome::Done,
            Ok(Next::After(pause)) => Outcome::After(pause),
            Err(Error::Conflict) => Outcome::Retry(PAUSE_CONFLICT),
            Err(Error::NotLeading) => Outcome::Retry(STAND_BY),
            Err(error) => {
                provider.metrics.failed(error.reason());
                Outcome::Failed(error.to_string())
            }
        }
    }

    fn turned(&self) {
        self.0.turned();
    }
}
