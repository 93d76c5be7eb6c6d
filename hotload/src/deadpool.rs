//! Pools of deadpool-postgres that follow a source. One pool lives for as long as the application; its connections know
//! the login that they were made with, and those of an earlier one are not lent again. Deliberately absent: a second
//! pool beside the first, which would need twice the connections in the middle of a change.

mod connection;
mod driver;

pub use connection::Connection;
pub use deadpool_postgres::{self, ManagerConfig, PoolConfig, RecyclingMethod, Runtime, tokio_postgres};

use crate::source::Adopted;
use crate::{Error, Source};
use ::deadpool::managed::{self, Metrics};
use connection::Census;
use driver::Hot;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(crate) use driver::knock;

/// A pool of connections that follow a source.
pub type Pool = managed::Pool<Manager>;

/// How often idle connections of earlier logins are closed, while there are any.
const SWEEP: Duration = Duration::from_secs(1);
/// How often it is seen whether the pool is gone.
const SWEEP_IDLE: Duration = Duration::from_secs(10);

/// A pool with at most so many connections.
pub fn pool(source: &Source, connections: usize) -> Pool {
    pool_with(source, PoolConfig::new(connections), ManagerConfig::default())
}

/// A pool with time-outs, an order of lending and a way of recycling of your own.
pub fn pool_with(source: &Source, pool: PoolConfig, manager: ManagerConfig) -> Pool {
    let manager = Manager::new(source, manager);
    let (told, census) = (source.told(), Arc::clone(&manager.census));
    let built = Pool::builder(manager).config(pool).runtime(Runtime::Tokio1).build();
    let pool = built.expect("a pool is refused only for time-outs without a runtime, and it has one");
    tokio::spawn(sweep(pool.weak(), told, census));
    pool
}

/// Opens connections with the login of now, and says which may be lent again.
pub struct Manager {
    source: Source,
    config: ManagerConfig,
    /// The manager of the newest login; those before live as long as their connections.
    newest: Mutex<Option<(u64, Arc<deadpool_postgres::Manager>)>>,
    census: Arc<Census>,
}

impl Manager {
    fn new(source: &Source, config: ManagerConfig) -> Manager {
        Manager { source: source.clone(), config, newest: Mutex::default(), census: Arc::default() }
    }

    /// What the pool follows.
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
                let hot = Hot::new(&self.source, adopted)?;
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
                // The login was changed while we knocked: what the old one got, or was refused, does not matter.
                Ok(_) | Err(_) => {}
            }
        }
    }

    async fn recycle(&self, connection: &mut Connection, metrics: &Metrics) -> managed::RecycleResult<Error> {
        if connection.generation() != self.source.generation() {
            return Err(managed::RecycleError::message("its login has been changed"));
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

/// Closes idle connections of earlier logins. Without it they would stay until they are asked for, and a user with
/// sessions is not given a new password.
async fn sweep(
    pool: managed::WeakPool<Manager>,
    mut told: tokio::sync::watch::Receiver<Adopted>,
    census: Arc<Census>,
) {
    loop {
        let generation = told.borrow_and_update().generation;
        let Some(pool) = pool.upgrade() else { return };
        drop(pool.retain(|connection, _| connection.generation() == generation));
        // Not held while waiting, so that the pool can go.
        drop(pool);
        let pause = if census.older_than(generation) > 0 { SWEEP } else { SWEEP_IDLE };
        if let Ok(Err(_)) = tokio::time::timeout(pause, told.changed()).await {
            return;
        }
    }
}
