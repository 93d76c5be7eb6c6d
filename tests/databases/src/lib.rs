//! What the tests of databases share: real servers as processes of the test, logins as an application uses them, and
//! a control plane with a controller and the objects of an application. The assertions are in the tests.

pub mod cluster;
pub mod login;
pub mod metrics;
mod mysql;
mod pooler;
pub mod server;
pub mod tap;
pub mod trial;

pub use cluster::{Cluster, SYSTEM};
pub use login::{Held, Login};
pub use metrics::Metrics;
pub use mysql::engines;
pub use pooler::Pooler;
pub use server::RealServer;
pub use tap::{Cut, Said, Tap};
