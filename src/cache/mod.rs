//! What the engine knows of the cluster: objects as last seen or written, indexed for decisions.
//! It answers questions and keeps counts; it decides nothing and sends nothing.

mod arena;
mod bits;
mod find;
mod index;
mod ledger;
mod looks;
mod making;
mod ordered;
mod parts;
mod publications;
mod shape;
mod state;
mod tally;

pub use find::{Ask, Candidate, ClassAsk, Found, Preference};
pub use index::{Glance, Index, ResourceId, Standing};
pub use ledger::{Charge, Headroom, Ledger, Overrun, QuotaKey, Use};
pub use making::Making;
pub use parts::{Parts, Sight};
pub use publications::Publications;
pub use state::{Departure, ResourceEntry, State};
pub use tally::Tally;
