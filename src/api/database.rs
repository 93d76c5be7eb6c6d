//! `database.conductor.io`: servers on which claims get databases of their own, and the record of each such database.
//! The engine reads none of these kinds; they are the provider's, and what they mean is decided in `database`.

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

/// Annotation on a RelationalDatabase that no template made: the DatabaseServer or LocalServer, `Kind/name`, on which
/// its claims get databases.
pub const ON_SERVER: &str = "database.conductor.io/server";
/// Annotation on a LogicalDatabase: somebody wants its login changed now. The value tells requests apart; one that
/// begins with `hard` also ends every session and every older password.
pub const ROTATE: &str = "database.conductor.io/rotate";
/// Annotation on a DatabaseServer: the identity of the server that an administrator accepts in place of the one on record,
/// or `unmarked` for one that has none yet. Removed once it has been accepted.
pub const ACCEPT_SERVER: &str = "database.conductor.io/accept-server";
/// Annotation on a LogicalDatabase: `"true"` takes it out of quarantine and keeps it.
pub const UNDELETE: &str = "database.conductor.io/undelete";
/// Annotation on a RelationalDatabase: its own reclaim policy, while databases on its server that outlast their claims
/// make it stay. `spec.reclaimPolicy` reads Retain meanwhile.
pub const HELD: &str = "database.conductor.io/held-reclaim-policy";
/// Annotation on a claim of a DatabaseClaim: where its DatabaseClaim asked to be when it was last placed, as JSON.
pub const PLACED_BY: &str = "database.conductor.io/placed-by";
/// Annotation on a claim: the Secret beside it that its application reads in place of its own.
pub const DELIVERED_IN: &str = "database.conductor.io/delivered-in";
/// Annotation on a Secret in the system namespace: the hosts, with commas between them, whose administrator's password it
/// holds. It is sent to no other. `host` is the engine's usual port there, `host:port` another; `*.example.com` is a domain.
pub const ADMIN_HOSTS: &str = "database.conductor.io/admin-hosts";
/// Annotation on a server: the version that claims on it ask for, where they come by the label of an instance.
pub const ENGINE_VERSION: &str = "database.conductor.io/engine-version";
/// Annotation on a server: the configuration that it comes from.
pub const FROM_CONFIGURATION: &str = "database.conductor.io/from-configuration";
/// Label on everything that the provider writes for one database: its id, the UID of the claim, or of the role or
/// DatabaseClaim, that it was made for.
pub const DATABASE_ID: &str = "database.conductor.io/database";
/// Annotation on a Secret that a connection comes from: why it has nothing to give. Told on the claim.
pub const TROUBLE: &str = "conductor.io/trouble";
/// Annotation on a Secret that a connection comes from, beside [`TROUBLE`]: `"true"` where what it gave before does not
/// work any more, because every login was revoked.
pub const REVOKED: &str = "conductor.io/revoked";
/// Annotation on the login Secret: which of the database's passwords it holds, counted from one.
pub const GENERATION: &str = "database.conductor.io/generation";
