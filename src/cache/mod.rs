//! What the engine knows of the cluster: objects as last seen or written, indexed for decisions.
//! It answers questions and keeps counts; it decides nothing and sends nothing.

mod attribute_index;
mod find;
mod index;
mod keys;
mod ordered;
mod parts;
mod publications;
mod quota_usage;
mod refusal_counts;
mod shape;
mod shared_pending;
mod state;

pub use find::{Fit, Found, Preference};
pub use index::{Index, ResourceId, ResourceView};
pub use parts::{Parts, Sight};
pub use publications::Publications;
pub use quota_usage::{QuotaUsage, Use};
// What the cache is queried by and what it adds up is defined with the predicates that decide on it.
pub use crate::predicates::{Charge, ClassQuery, Query, QuotaKey, Standing};
pub use refusal_counts::RefusalCounts;
pub use shared_pending::SharedPending;
pub use state::{Departure, ResourceEntry, State};
