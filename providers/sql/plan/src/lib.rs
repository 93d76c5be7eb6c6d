//! Databases of claims on shared servers: what is to be done next, and the statements that do it. Pure: no connection,
//! no clock, no randomness and no password; `provider` carries out what is decided here.
//!
//! ```text
//! claim, server        -> Wanted   (rules.rs)  what the claim's database is to be like
//! record, claim, time  -> Goal     (goal.rs)   serve, retain, quarantine or drop
//! Goal, Seen, Ledger   -> Step     (plan.rs)   one step: a statement batch, or a write to the API
//! Step                 -> text     (sql/)      the statements, for each engine
//! ```
//!
//! # How a login reaches its application
//!
//! Three objects in the system namespace stand for one database. The *record* (`LogicalDatabase`) is written before
//! anything is made. The *ledger*, a Secret, holds the passwords: the one in use and the one that is on its way, so
//! that a crash between "thought of" and "published" leaves both known. The *login*, another Secret, holds what the
//! application may know and changes only when that changes; its name, `login-<UID of the claim>`, stands in the
//! resource's `connection`, so that the binder publishes it as it publishes everything else. A source of its own
//! inside the engine was the other road: it would have taught the engine about servers, and it has to know none.
//!
//! # Rotation
//!
//! Two users alternate, both members of an owner that cannot log in. Each change takes the one that is not in use:
//! password into the ledger -> its verifier onto the server, with the count of the change beside it -> a login is
//! tried -> the login Secret -> the ledger closes. What is seen on the server and in the Secrets says how far it got,
//! so the next step after a crash is the same as the next step without one, and at no point does the password that
//! the application holds stop working.

pub mod fleet;
pub mod front;
pub mod goal;
pub mod identity;
pub mod ledger;
pub mod names;
pub mod plan;
pub mod refusal;
pub mod role;
pub mod rules;
pub mod seen;
pub mod sql;

pub use goal::{Goal, find_goal};
pub use ledger::{Ledger, Pending, Request};
pub use names::{Identifier, Mark, Names, User};
pub use plan::{Step, next_step};
pub use refusal::{Holder, Refusal};
pub use rules::{Rules, Wanted};
pub use seen::{OpenGrant, Place, Seen, SeenDatabase, SeenUser, Stranger};
