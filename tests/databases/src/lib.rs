//! What the tests of databases share: real servers as processes of the test, logins as an application makes them, and
//! a house with a control plane, a controller and the objects of an application. What is true is the tests' to say.

pub mod figures;
pub mod house;
pub mod login;
mod mysql;
mod pooler;
pub mod server;
pub mod tap;
pub mod trial;

pub use figures::Figures;
pub use house::{House, SYSTEM};
pub use login::{Held, Login};
pub use mysql::engines;
pub use pooler::Pooler;
pub use server::RealServer;
pub use tap::{Cut, Said, Tap};
