//! Where the demo plays: `conductor up` as a process on free ports, a client for it, and the same binary again for
//! the commands that a person would type. Everything ends with the stage.

use super::NotAsShown;
use super::view::View;
use crate::up::manifests;
use anyhow::{Context, Result, bail};
use kube::Client;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long anything may take to come about. Generous: machines are slow at times.
const PATIENCE: Duration = Duration::from_secs(45);

/// A running `conductor up`.
pub struct Stage {
    /// What a person sees.
    pub view: Arc<View>,
    /// A client over HTTPS, as everybody's.
    pub client: Client,
    kubeconfig: PathBuf,
    folder: PathBuf,
    up: Child,
}

impl Stage {
    /// Starts it, and waits until it says that it is up.
    pub async fn start() -> Result<Stage> {
        let view = Arc::new(View::new());
        let folder = std::env::temp_dir().join(format!("conductor-demo-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("the folder {}", folder.display()))?;
        let kubeconfig = folder.join("kubeconfig");
        view.chapter("conductor up: a Kubernetes API of its own, and the controllers on it")?;
        let mut command = Command::new(std::env::current_exe().context("where this program is")?);
        command.arg("up").arg("--write-kubeconfig").arg(&kubeconfig);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut up = command.spawn().context("conductor up does not start")?;
        let is_up = relay(&mut up, &view);
        let begun = Instant::now();
        while !is_up.load(Ordering::Acquire) {
            if let Some(status) = up.try_wait()? {
                bail!("conductor up ended: {status}");
            }
            if begun.elapsed() > PATIENCE {
                bail!("conductor up is not up after {} s", PATIENCE.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let config = conductor_controller::find_cluster(Some(&kubeconfig), None).await?;
        Ok(Stage { view, client: conductor_controller::connect(config)?, kubeconfig, folder, up })
    }

    /// Applies manifests, as `kubectl apply --server-side` would.
    pub async fn apply(&self, file: &str, text: &str) -> Result<()> {
        let read = manifests::parse(text, file)?;
        manifests::apply(&self.client, &read, &|line| self.view.event(line)).await
    }

    /// Runs a command of this program, shows it and what it prints.
    pub fn show(&self, arguments: &[&str]) -> Result<()> {
        self.view.line(&format!("\n  $ conductor {}", arguments.join(" ")))?;
        let printed = self.ask(arguments)?;
        printed.lines().try_for_each(|line| self.view.line(format!("  {line}").trim_end()))
    }

    /// Runs a command of this program and gives what it printed.
    pub fn ask(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(std::env::current_exe()?);
        let output = command.args(arguments).arg("--kubeconfig").arg(&self.kubeconfig).output()?;
        if !output.status.success() {
            bail!("conductor {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// What stands at a path of the API, or null where nothing does.
    pub async fn get(&self, path: &str) -> Result<Value> {
        let request = http::Request::get(path).body(Vec::new())?;
        match self.client.request(request).await {
            Ok(found) => Ok(found),
            Err(kube::Error::Api(refused)) if refused.code == 404 => Ok(Value::Null),
            Err(other) => Err(other.into()),
        }
    }

    /// Waits until it is so.
    pub async fn until(&self, what: &str, mut is_so: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
        let begun = Instant::now();
        while !is_so().await? {
            if begun.elapsed() > PATIENCE {
                return Err(NotAsShown(what.to_owned()).into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Interrupts `conductor up`, as Ctrl-C would, and waits for its end.
    pub fn end(mut self) -> Result<()> {
        let interrupt = format!("kill -INT {}", self.up.id());
        Command::new("sh").args(["-c", &interrupt]).status().context("the interrupt cannot be sent")?;
        let status = self.up.wait()?;
        match status.success() {
            true => Ok(()),
            false => Err(NotAsShown(format!("conductor up ended with {status}")).into()),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // It has ended, unless the demo did first.
        let _ = self.up.kill();
        let _ = self.up.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Shows what `conductor up` prints once it is up; true from then on.
fn relay(up: &mut Child, view: &Arc<View>) -> Arc<AtomicBool> {
    let is_up = Arc::new(AtomicBool::new(false));
    if let Some(printed) = up.stdout.take() {
        let (is_up, view) = (Arc::clone(&is_up), Arc::clone(view));
        std::thread::spawn(move || {
            for line in BufReader::new(printed).lines().map_while(Result::ok) {
                if is_up.load(Ordering::Acquire) && !line.is_empty() {
                    // Nobody reads any more: the demo ends by itself.
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
