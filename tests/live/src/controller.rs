//! A controller in the test's own process: started, stopped, or killed between two instructions.

use conductor_controller::{Error, Options};
use kube::Client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A running controller. Dropped, it is killed.
#[derive(Debug)]
pub struct Controller {
    stop: CancellationToken,
    task: JoinHandle<Result<(), Error>>,
}

impl Controller {
    /// Starts one.
    pub fn start(client: Client, options: Options) -> Controller {
        let stop = CancellationToken::new();
        let task = tokio::spawn(conductor_controller::run(client, options, stop.clone()));
        Controller { stop, task }
    }

    /// Starts one without leader election, with the namespace of the tests.
    pub fn alone(client: Client) -> Controller {
        Controller::start(client, Options { lease: None, ..Options::default() })
    }

    /// Stops it and waits until it has.
    ///
    /// # Errors
    /// The error of the controller.
    pub async fn stop(self) -> Result<(), Error> {
        self.stop.cancel();
        self.end().await
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// The error of the controller.
    pub async fn end(mut self) -> Result<(), Error> {
        (&mut self.task).await.expect("a controller does not panic")
    }

    /// Kills it, and waits until its tasks have ended.
    pub async fn kill(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.task.abort();
    }
}
