//! The provider of databases is told by the gate and the Lease whether it may act, as every writer is.

use super::gate::Gate;
use super::lease::LeaseReader;
use conductor_sql::Leader;
use futures::FutureExt;
use futures::future::BoxFuture;

/// Whether this process leads.
pub(super) struct Leading {
    pub gate: Gate,
    pub lease: Option<LeaseReader>,
}

impl Leader for Leading {
    fn leads(&self) -> bool {
        self.gate.is_open()
    }

    fn confirm(&self) -> BoxFuture<'_, bool> {
        async {
            match &self.lease {
                Some(lease) => lease.confirm().await.is_ok(),
                None => true,
            }
        }
        .boxed()
    }
}
