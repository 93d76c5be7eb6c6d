//! The demo's environment: `conductor up` as a process on free ports, a client for it, and the same binary again for
//! the commands that a user would type. Dropping the stage ends everything.

use super::Unexpected;
use super::view::View;
use crate::up::manifests;
use anyhow::{Context, Result, bail};
use kube::Client;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long any step may take. Generous: machines are slow at times.
const WITHIN: Duration = Duration::from_secs(45);

/// A running `conductor up`.
pub struct Stage {
    /// The output.
    pub view: Arc<View>,
    /// A client over HTTPS.
    pub client: Client,
    kubeconfig: PathBuf,
    up: Child,
    _folder: TempDir,
}

impl Stage {
    /// Starts `conductor up`, and waits until it has printed its greeting.
    pub async fn start() -> Result<Stage> {
        let view = Arc::new(View::new());
        let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
        let kubeconfig = folder.path().join("kubeconfig");
        view.chapter("conductor up: an embedded Kubernetes API, and the controllers on it")?;
        let mut command =
            Command::new(std::env::current_exe().context("cannot find the path of this program")?);
        command.arg("up").arg("--write-kubeconfig").arg(&kubeconfig);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut up = command.spawn().context("cannot start conductor up")?;
        let is_up = relay(&mut up, &view);
        let begun = Instant::now();
        while !is_up.load(Ordering::Acquire) {
            if let Some(status) = up.try_wait()? {
                bail!("conductor up ended: {status}");
            }
            if begun.elapsed() > WITHIN {
                bail!("conductor up is not up after {} s", WITHIN.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let config = conductor_controller::find_cluster(Some(&kubeconfig), None).await?;
        Ok(Stage { view, client: conductor_controller::connect(config)?, kubeconfig, up, _folder: folder })
    }

    /// Applies manifests, as `kubectl apply --server-side` would.
    pub async fn apply(&self, file: &str, text: &str) -> Result<()> {
        let read = manifests::parse(text, file)?;
        manifests::apply(&self.client, &read, &|line| self.view.event(line)).await
    }

    /// Runs a command of this program, and shows it and its output.
    pub fn show(&self, arguments: &[&str]) -> Result<()> {
        self.view.line(&format!("\n  $ conductor {}", arguments.join(" ")))?;
        let printed = self.output_of(arguments)?;
        printed.lines().try_for_each(|line| self.view.line(format!("  {line}").trim_end()))
    }

    /// Runs a command of this program and returns its output.
    pub fn output_of(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(std::env::current_exe()?);
        let output = command.args(arguments).arg("--kubeconfig").arg(&self.kubeconfig).output()?;
        if !output.status.success() {
            bail!("conductor {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Gets an object or a list from the API; null if it does not exist.
    pub async fn get(&self, path: &str) -> Result<Value> {
        let request = http::Request::get(path).body(Vec::new())?;
        match self.client.request(request).await {
            Ok(found) => Ok(found),
            Err(kube::Error::Api(refused)) if refused.code == 404 => Ok(Value::Null),
            Err(other) => Err(other.into()),
        }
    }

    /// Waits until the condition holds.
    pub async fn until(&self, what: &str, mut is_so: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
        let begun = Instant::now();
        while !is_so().await? {
            if begun.elapsed() > WITHIN {
                return Err(Unexpected(what.to_owned()).into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Interrupts `conductor up`, as Ctrl-C would, and waits until it ends.
    pub fn end(mut self) -> Result<()> {
        let interrupt = format!("kill -INT {}", self.up.id());
        Command::new("sh").args(["-c", &interrupt]).status().context("cannot send the interrupt")?;
        let status = self.up.wait()?;
        match status.success() {
            true => Ok(()),
            false => Err(Unexpected(format!("conductor up ended with {status}")).into()),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // `up` has ended already, unless the demo failed first.
        let _ = self.up.kill();
        let _ = self.up.wait();
    }
}

/// Shows the output of `conductor up` after its greeting; the flag is true from then on.
fn relay(up: &mut Child, view: &Arc<View>) -> Arc<AtomicBool> {
    let is_up = Arc::new(AtomicBool::new(false));
    if let Some(printed) = up.stdout.take() {
        let (is_up, view) = (Arc::clone(&is_up), Arc::clone(view));
        std::thread::spawn(move || {
            for line in BufReader::new(printed).lines().map_while(Result::ok) {
                if is_up.load(Ordering::Acquire) && !line.is_empty() {
                    // If the output is closed, the demo ends by itself.
                    let _ = view.event(&line);
                }
                if line.starts_with("Ctrl-C ends it") {
                    is_up.store(true, Ordering::Release);
                }
            }
        });
    }
    is_up
}
