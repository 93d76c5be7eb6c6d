//! A connection that knows its login, and the count of open connections. `driver` opens and ends them.

use crate::Error;
use ::deadpool::managed::{self, Metrics};
use deadpool_postgres::{ClientWrapper, Manager};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// A connection; it dereferences to the client of deadpool-postgres.
pub struct Connection {
    client: ClientWrapper,
    generation: u64,
    /// Each manager counts its own clients' statements.
    manager: Arc<Manager>,
    _counted: Counted,
}

impl Connection {
    pub(super) fn new(
        client: ClientWrapper,
        generation: u64,
        manager: Arc<Manager>,
        census: &Arc<Census>,
    ) -> Connection {
        Connection { client, generation, manager, _counted: Counted::new(census, generation) }
    }

    /// The number of its login: [`Source::generation`](crate::Source::generation) at the time it was opened.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) async fn recycle(&mut self, metrics: &Metrics) -> managed::RecycleResult<Error> {
        let recycled = managed::Manager::recycle(&*self.manager, &mut self.client, metrics).await;
        recycled.map_err(|error| match error {
            managed::RecycleError::Message(why) => managed::RecycleError::Message(why),
            managed::RecycleError::Backend(error) => managed::RecycleError::Backend(error.into()),
        })
    }

    pub(super) fn detach(&mut self) {
        managed::Manager::detach(&*self.manager, &mut self.client);
    }
}

impl Deref for Connection {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        &self.client
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut ClientWrapper {
        &mut self.client
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("generation", &self.generation).finish_non_exhaustive()
    }
}

/// The number of open connections, by their login.
#[derive(Debug, Default)]
pub(super) struct Census(Mutex<BTreeMap<u64, usize>>);

impl Census {
    pub(super) fn older_than(&self, generation: u64) -> usize {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.range(..generation).map(|(_, count)| count).sum()
    }

    fn change(&self, generation: u64, change: impl FnOnce(&mut usize)) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(generation).or_default();
        change(count);
        if *count == 0 {
            counts.remove(&generation);
        }
    }
}

/// Counts a connection until it is dropped.
struct Counted {
    census: Arc<Census>,
    generation: u64,
}

impl Counted {
    fn new(census: &Arc<Census>, generation: u64) -> Counted {
        census.change(generation, |count| *count += 1);
        Counted { census: Arc::clone(census), generation }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.census.change(self.generation, |count| *count -= 1);
    }
}
