//! Plans the databases of claims on shared servers: the next step, and its statements. Pure: no connection, no clock, no
//! randomness and no password; `conductor-sql` carries out what is decided here.
//!
//! ```text
//! claim, server                  -> DesiredDatabase  (policy.rs)         names, schemas, extensions, limits
//! LogicalDatabase, claim, time   -> DesiredState     (desired_state.rs)  serve, retain, quarantine or drop
//! these, Observed, RotationState -> Step             (plan.rs)           a statement batch, or a write to the API
//! Step                           -> text             (sql/)              the statements, for each engine
//! ```
//!
//! # How a login reaches its application
//!
//! Three objects in the system namespace represent one database. The *LogicalDatabase* is written before anything is
//! created on the server. The *rotation state*, a Secret, holds the passwords: the active one and the pending one, so that
//! a crash between generating and publishing a password loses neither. The *login*, another Secret, holds what the
//! application may know and changes only when that changes; the resource's `connection` names it
//! (`login-<UID of the claim>`), so that the engine publishes it like any other connection and knows no servers.
//!
//! # Rotation
//!
//! Two users alternate, both members of an owner that cannot log in. Each rotation takes the spare one: store the
//! password in the rotation state -> set its verifier on the server, with the rotation's number -> try the login -> write
//! the login Secret -> close the rotation. The server and the Secrets show how far it got, so the next step after a crash
//! is the same as without one, and the password that the application holds never stops working.

pub mod database_claim;
pub mod desired_state;
pub mod identity;
pub mod names;
pub mod observed;
pub mod plan;
pub mod policy;
pub mod refusal;
pub mod role;
pub mod rotation_state;
pub mod server_config;
pub mod sql;

pub use desired_state::{DesiredState, find_desired_state};
pub use names::{Identifier, Mark, Names, User};
pub use observed::{ForeignOwner, NameState, Observed, ObservedDatabase, ObservedUser, OpenGrant};
pub use plan::{Step, next_step};
pub use policy::{DesiredDatabase, Policy};
pub use refusal::{Holder, Refusal};
pub use rotation_state::{Pending, Request, RotationState};
