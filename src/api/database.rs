//! `database.conductor.io`: servers on which each claim gets its own database, and the record of each such database.
//! The SQL provider reads and writes these kinds; the engine does not.

pub mod front;
pub mod logical;
pub mod role;
pub mod server;

pub use front::DatabaseClaim;
pub use logical::LogicalDatabase;
pub use role::{DatabaseGrant, DatabaseRole};
pub use server::{DatabaseServer, LocalServer};

/// The group of these kinds.
pub const GROUP: &str = "database.conductor.io";
/// `apiVersion` of these kinds.
pub const API_VERSION: &str = "database.conductor.io/v1alpha1";

/// Annotation on a RelationalDatabase without a template: the DatabaseServer or LocalServer on which its claims get
/// databases, as `Kind/name`.
pub const ON_SERVER: &str = "database.conductor.io/server";
/// Annotation on a LogicalDatabase: requests a rotation of its login now. The value identifies the request; one that
/// begins with `hard` also ends all sessions and invalidates all older passwords.
pub const ROTATE: &str = "database.conductor.io/rotate";
/// Annotation on a DatabaseServer: the server identity that an administrator accepts instead of the recorded one, or
/// `unmarked` for a server without one. The provider removes the annotation when it has accepted the identity.
pub const ACCEPT_SERVER: &str = "database.conductor.io/accept-server";
/// Annotation on a LogicalDatabase: `"true"` takes the database out of quarantine and retains it.
pub const UNDELETE: &str = "database.conductor.io/undelete";
/// Annotation on a RelationalDatabase: its reclaim policy while its server has databases that outlive their claims.
/// `spec.reclaimPolicy` is Retain meanwhile.
pub const HELD: &str = "database.conductor.io/held-reclaim-policy";
/// Annotation on the claim of a DatabaseClaim: the placement fields of the DatabaseClaim when it was last placed, as JSON.
pub const PLACED_BY: &str = "database.conductor.io/placed-by";
/// Annotation on a claim: the Secret in its namespace that its application reads instead of the claim's Secret.
pub const DELIVERED_IN: &str = "database.conductor.io/delivered-in";
/// Annotation on a Secret in the system namespace: the comma-separated hosts whose administrator's password it holds; the
/// password is sent to no other host. `host` means the engine's default port, `host:port` another, `*.example.com` a domain.
pub const ADMIN_HOSTS: &str = "database.conductor.io/admin-hosts";
/// Annotation on a server: the version that DatabaseClaims with its instance label request.
pub const ENGINE_VERSION: &str = "database.conductor.io/engine-version";
/// Annotation on a server: the configuration that it was generated from.
pub const FROM_CONFIGURATION: &str = "database.conductor.io/from-configuration";
/// Label on every object that the provider writes for one database: its id, which is the UID of the claim, DatabaseRole or
/// DatabaseClaim that it belongs to.
pub const DATABASE_ID: &str = "database.conductor.io/database";
/// Annotation on a Secret that a connection comes from: why the connection is missing. The claim's status repeats it.
pub const TROUBLE: &str = "conductor.io/trouble";
/// Annotation on a Secret that a connection comes from, beside [`TROUBLE`]: `"true"` if all its earlier logins were
/// revoked.
pub const REVOKED: &str = "conductor.io/revoked";
/// Annotation on the login Secret: the number of the database's password that it holds, counted from 1.
pub const GENERATION: &str = "database.conductor.io/generation";
