//! The running controller: leads as soon as it may, and stops in order.

use super::error::Error;
use super::event_loop::Message;
use super::metrics::Metrics;
use conductor_runtime::elector::Elector;
use conductor_runtime::leadership::Leadership;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The part that finishes its calls when the controller stops.
pub(super) const WRITER: &str = "writer";

/// The tasks of the controller. They end when this is dropped.
pub(super) struct Running {
    pub tasks: JoinSet<&'static str>,
    pub elector: Option<Elector>,
    pub inbox: mpsc::Sender<Message>,
    pub leadership: Leadership,
    pub metrics: Arc<Metrics>,
    pub halt: CancellationToken,
    pub drain: Duration,
}

impl Running {
    /// Leads as soon as it may, until it must not.
    pub async fn lead(&mut self) -> Error {
        let (tasks, elector) = (&mut self.tasks, &mut self.elector);
        let (inbox, leadership, metrics) = (&self.inbox, &self.leadership, &self.metrics);
        let lead = async {
            match elector {
                Some(elector) => elector.acquire().await,
                None => leadership.lead(),
            }
            metrics.leads(true);
            // The event loop ends before this task only when everything ends.
            let _ = inbox.send(Message::Leading).await;
            match elector {
                Some(elector) => {
                    tracing::info!(lease = elector.name(), "this process leads");
                    elector.hold().await
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            lost = lead => lost.into(),
            ended = tasks.join_next() => match ended {
                Some(Ok(part)) => Error::PartEnded { part, why: "it returned".to_owned() },
                Some(Err(error)) => Error::PartEnded { part: "controller", why: error.to_string() },
                None => Error::PartEnded { part: "controller", why: "nothing runs".to_owned() },
            },
        }
    }

    /// Starts nothing more, waits a while for calls in flight, and releases the lease.
    pub async fn wind_down(mut self) {
        tracing::info!("stopping: waiting for calls in flight");
        self.halt.cancel();
        let writers = async {
            while let Some(ended) = self.tasks.join_next().await {
                if matches!(ended, Ok(WRITER)) {
                    return;
                }
            }
        };
        if tokio::time::timeout(self.drain, writers).await.is_err() {
            tracing::warn!(seconds = self.drain.as_secs_f32(), "the API did not answer some calls in time");
        }
        self.tasks.shutdown().await;
        if let Some(elector) = self.elector.take() {
            elector.release().await;
        }
    }
}

/// A part that returns its name when it ends.
pub(super) async fn named<T>(name: &'static str, part: impl Future<Output = T>) -> &'static str {
    part.await;
    name
}
