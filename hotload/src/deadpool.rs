//! deadpool-postgres pools that follow a source. One pool lives as long as the application; its connections know their
//! login, and those of an earlier one are not reused. Deliberately absent: a second pool beside the first, which would
//! need twice the connections during a change.

mod connection;
mod driver;

pub use connection::Connection;
pub use deadpool_postgres::{self, ManagerConfig, PoolConfig, RecyclingMethod, Runtime, tokio_postgres};

use crate::source::Adopted;
use crate::{Error, Source};
use ::deadpool::managed::{self, Metrics};
use connection::Census;
use driver::Connector;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(crate) use driver::connect_once;

/// A pool of connections that follow a source.
pub type Pool = managed::Pool<Manager>;

/// How often idle connections of earlier logins are closed, while there are any.
const SWEEP: Duration = Duration::from_secs(1);
/// How often to check whether the pool was dropped.
const SWEEP_IDLE: Duration = Duration::from_secs(10);

/// A pool with at most `connections` connections.
pub fn pool(source: &Source, connections: usize) -> Pool {
    pool_with(source, PoolConfig::new(connections), ManagerConfig::default())
}

/// A pool with your own timeouts, queue mode and recycling method.
pub fn pool_with(source: &Source, pool: PoolConfig, manager: ManagerConfig) -> Pool {
    let manager = Manager::new(source, manager);
    let (adoptions, census) = (source.adoptions(), Arc::clone(&manager.census));
    let built = Pool::builder(manager).config(pool).runtime(Runtime::Tokio1).build();
    let pool = built.expect("a pool is refused only for time-outs without a runtime, and it has one");
    tokio::spawn(sweep(pool.weak(), adoptions, census));
    pool
}

/// Opens connections with the current login, and decides which may be reused.
pub struct Manager {
    source: Source,
    config: ManagerConfig,
    /// The manager of the newest login; earlier ones live as long as their connections.
    newest: Mutex<Option<(u64, Arc<deadpool_postgres::Manager>)>>,
    census: Arc<Census>,
}

impl Manager {
    fn new(source: &Source, config: ManagerConfig) -> Manager {
        Manager { source: source.clone(), config, newest: Mutex::default(), census: Arc::default() }
    }

    /// The source of the pool.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// How many connections of earlier logins are still open.
    pub fn older(&self) -> usize {
        self.census.older_than(self.source.generation())
    }

    fn for_login(&self, adopted: &Adopted) -> Result<Arc<deadpool_postgres::Manager>, Error> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*newest {
            Some((generation, manager)) if *generation == adopted.generation => Ok(Arc::clone(manager)),
            _ => {
                let config = driver::config(&adopted.login)?;
                let hot = Connector::new(&self.source, adopted)?;
                let manager = deadpool_postgres::Manager::from_connect(config, hot, self.config.clone());
                let manager = Arc::new(manager);
                *newest = Some((adopted.generation, Arc::clone(&manager)));
                Ok(manager)
            }
        }
    }
}

impl managed::Manager for Manager {
    type Type = Connection;
    type Error = Error;

    async fn create(&self) -> Result<Connection, Error> {
        loop {
            let adopted = self.source.now();
            let manager = self.for_login(&adopted)?;
            let made = managed::Manager::create(&*manager).await;
            let is_of_now = self.source.generation() == adopted.generation;
            match made {
                Ok(client) if is_of_now => {
                    return Ok(Connection::new(client, adopted.generation, manager, &self.census));
                }
                Err(error) if is_of_now => return Err(error.into()),
                // The login changed meanwhile: the outcome for the old one does not matter.
                Ok(_) | Err(_) => {}
            }
        }
    }

    async fn recycle(&self, connection: &mut Connection, metrics: &Metrics) -> managed::RecycleResult<Error> {
        if connection.generation() != self.source.generation() {
            return Err(managed::RecycleError::message("its login has changed"));
        }
        connection.recycle(metrics).await
    }

    fn detach(&self, connection: &mut Connection) {
        connection.detach();
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Manager");
        shown.field("source", &self.source).field("older", &self.older()).finish_non_exhaustive()
    }
}

/// Closes idle connections of earlier logins. They would stay until they are requested, and Conductor gives a user with
/// sessions no new password.
async fn sweep(
    pool: managed::WeakPool<Manager>,
    mut adoptions: tokio::sync::watch::Receiver<Adopted>,
    census: Arc<Census>,
) {
    loop {
        let generation = adoptions.borrow_and_update().generation;
        let Some(pool) = pool.upgrade() else { return };
        drop(pool.retain(|connection, _| connection.generation() == generation));
        // Release the pool while waiting, so that it can be dropped.
        drop(pool);
        let pause = if census.older_than(generation) > 0 { SWEEP } else { SWEEP_IDLE };
        if let Ok(Err(_)) = tokio::time::timeout(pause, adoptions.changed()).await {
            return;
        }
    }
}
