//! What the tests of the live controller share: one control plane per test binary, clients whose calls are recorded,
//! controllers that can be stopped or killed, and waiting; a wire with faults, trials of workflows over it, an observer
//! and the invariants.

mod calls;
mod cluster;
mod controller;
pub mod fault;
pub mod invariants;
pub mod kinds;
pub mod normal;
pub mod observer;
pub mod operator;
mod portion;
pub mod scope;
mod site;
pub mod trial;
pub mod workflow;

pub use calls::{Call, Calls};
pub use cluster::{Turn, root, turn, turn_on};
pub use controller::Controller;
pub use portion::Portion;
pub use site::{Side, Site};

use std::time::{Duration, Instant};

/// Longest wait for anything. Generous: tests share the machine with builds.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Polls until there is a result.
///
/// # Panics
/// There is none within [`PATIENCE`]; `what` names it.
pub async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < end, "waited {} s in vain: {what}", PATIENCE.as_secs());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
