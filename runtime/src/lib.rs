//! What every controller of Conductor shares: the client, REST calls, discovery, list and watch, work queue, backoff,
//! rate limits, leader election, clocks. Knows no decision, no kind and no provider.

pub mod backoff;
pub mod call;
pub mod client_error;
pub mod clock;
pub mod collection;
mod connect;
pub mod discovery;
pub mod elector;
mod exec_plugin;
mod kubeconfig;
pub mod leadership;
pub mod lease;
pub mod list_watch;
pub mod rate_limit;
pub mod rest;
mod token_file;
pub mod work_queue;

pub use connect::{ConnectError, connect, find_cluster};
