//! What every controller of Conductor shares. No decision, no kind and no provider is known here: a crate that watches,
//! queues or writes takes it from here instead of writing it again.

pub mod client_error;
