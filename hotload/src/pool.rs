//! A pool whose connections follow the source: new ones are made with the login of now, those of a login before are not
//! used again.

use crate::Error;
use crate::source::{Adopted, Mode, Source};
use deadpool::managed::{self, Metrics, RecycleError, RecycleResult};
use std::ops::{Deref, DerefMut};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

/// A pool of connections that follow a source.
pub type Pool = managed::Pool<Manager>;

/// A pool with at most so many connections.
///
/// # Errors
/// The pool cannot be made.
pub fn pool(source: &Source, connections: usize) -> Result<Pool, Error> {
    let manager = Manager { now: source.now.clone(), mode: source.mode };
    let built = Pool::builder(manager).max_size(connections).build();
    built.map_err(|error| Error::Pool(error.to_string()))
}

/// Makes connections, and says which may be used again.
#[derive(Debug)]
pub struct Manager {
    now: watch::Receiver<Adopted>,
    mode: Mode,
}

/// A connection and the login that it was made with.
#[derive(Debug)]
pub struct Connection {
    client: Client,
    generation: u64,
    task: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

impl managed::Manager for Manager {
    type Type = Connection;
    type Error = Error;

    async fn create(&self) -> Result<Connection, Error> {
        let Adopted { generation, login } = self.now.borrow().clone();
        let (client, connection) = login.config.connect(NoTls).await?;
        let (mut now, mode) = (self.now.clone(), self.mode);
        let task = tokio::spawn(async move {
            match mode {
                Mode::Graceful => drop(connection.await),
                Mode::Forced => tokio::select! {
                    _ = connection => {}
                    // Another login was adopted: the connection ends here, whatever it does.
                    Ok(_) = now.wait_for(|adopted| adopted.generation != generation) => {}
                },
            }
        });
        Ok(Connection { client, generation, task })
    }

    async fn recycle(&self, connection: &mut Connection, _: &Metrics) -> RecycleResult<Error> {
        let is_of_now = connection.generation == self.now.borrow().generation;
        match is_of_now && !connection.client.is_closed() {
            true => Ok(()),
            false => Err(RecycleError::message("its login has been changed")),
        }
    }
}
