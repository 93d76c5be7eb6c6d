//! `database.conductor.io`: servers on which claims get databases of their own, and the record of each such database.
//! The engine reads none of these kinds; they are the provider's, and what they mean is decided in `database`.

pub mod logical;
pub mod server;

pub use logical::LogicalDatabase;
pub use server::{DatabaseServer, LocalServer};

/// The group of these kinds.
pub const GROUP: &str = "database.conductor.io";
/// `apiVersion` of these kinds.
pub const API_VERSION: &str = "database.conductor.io/v1alpha1";

/// Annotation on a RelationalDatabase that no template made: the DatabaseServer or LocalServer, `Kind/name`, on which
/// its claims get databases.
pub const ON_SERVER: &str = "database.conductor.io/server";
/// Annotation on a LogicalDatabase: somebody wants its login changed now. The value tells requests apart; one that
/// begins with `hard` also ends every session and every older password.
pub const ROTATE: &str = "database.conductor.io/rotate";
/// Annotation on a LogicalDatabase: `"true"` takes it out of quarantine and keeps it.
pub const UNDELETE: &str = "database.conductor.io/undelete";
/// Label on everything that the provider writes for one database: its id, the UID of the claim that it was made for.
pub const DATABASE_ID: &str = "database.conductor.io/database";
/// Annotation on a Secret that a connection comes from: why it has nothing to give. Told on the claim.
pub const TROUBLE: &str = "conductor.io/trouble";
/// Annotation on the login Secret: which of the database's passwords it holds, counted from one.
pub const GENERATION: &str = "database.conductor.io/generation";
