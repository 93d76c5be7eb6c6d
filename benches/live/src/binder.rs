//! The two that are compared: what they bind, and how they are started. Both get the same work in the same words:
//! so many offers of one size, so many claims that each fit any of them.

use crate::cluster::Cluster;
use crate::meter::Process;
use anyhow::{Context, Result, bail};
use conductor_controlplane::Part;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Who binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// kube-controller-manager's binder of PersistentVolumes, without a limit on its calls.
    Volumes,
    Conductor,
}

const VOLUMES: &str = "/api/v1/persistentvolumes";
const VOLUME_CLAIMS: &str = "/api/v1/namespaces/bench/persistentvolumeclaims";
const RESOURCES: &str = "/apis/storage.conductor.io/v1alpha1/namespaces/conductor-system/relationaldatabases";
const CLAIMS: &str = "/apis/storage.conductor.io/v1alpha1/namespaces/bench/relationaldatabaseclaims";

impl Rival {
    pub fn name(self) -> &'static str {
        match self {
            Rival::Volumes => "PV binder",
            Rival::Conductor => "Conductor",
        }
    }

    pub fn claims(self) -> &'static str {
        match self {
            Rival::Volumes => VOLUME_CLAIMS,
            Rival::Conductor => CLAIMS,
        }
    }

    pub fn offers(self) -> &'static str {
        match self {
            Rival::Volumes => VOLUMES,
            Rival::Conductor => RESOURCES,
        }
    }

    /// Something to be claimed.
    pub fn offer(self, name: &str) -> Value {
        match self {
            Rival::Volumes => json!({
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
                "spec": {
                    "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "bench",
                    "hostPath": {"path": "/nowhere"},
                },
            }),
            Rival::Conductor => json!({
                "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabase",
                "metadata": {"name": name, "namespace": "conductor-system"},
                "spec": {
                    "engine": "postgresql", "version": "16.4", "class": "bench",
                    "capacity": {"storage": "10Gi"}, "reclaimPolicy": "Retain",
                },
            }),
        }
    }

    /// Something whose claim is gone, kept for an administrator to look at.
    pub fn released(self, name: &str) -> Value {
        let mut offer = self.offer(name);
        let gone = json!({"namespace": "bench", "name": "gone", "uid": format!("gone-{name}")});
        match self {
            Rival::Volumes => offer["spec"]["claimRef"] = gone,
            Rival::Conductor => offer["spec"]["claimRefs"] = json!([gone]),
        }
        offer
    }

    /// A claim of one of them.
    pub fn claim(self, name: &str) -> Value {
        match self {
            Rival::Volumes => json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": "bench"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"], "storageClassName": "bench",
                    "resources": {"requests": {"storage": "5Gi"}},
                },
            }),
            Rival::Conductor => json!({
                "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
                "metadata": {"name": name, "namespace": "bench"},
                "spec": {
                    "engine": "postgresql", "version": ">= 15", "class": "bench",
                    "resources": {"requests": {"storage": "5Gi"}},
                },
            }),
        }
    }
}

/// One of the two, running or not.
pub struct Binder {
    pub rival: Rival,
    conductor: PathBuf,
    is_started: bool,
    child: Option<Child>,
}

impl Binder {
    pub fn new(rival: Rival, conductor: &Path) -> Binder {
        Binder { rival, conductor: conductor.to_owned(), is_started: false, child: None }
    }

    pub fn is_started(&self) -> bool {
        self.is_started
    }

    /// Starts it, and says how long that took until it was ready, where it says so itself.
    pub async fn start(&mut self, cluster: &mut Cluster) -> Result<Duration> {
        let begun = Instant::now();
        self.is_started = true;
        match self.rival {
            Rival::Volumes => {
                // Without the second, claims that are deleted would never go.
                let controllers =
                    "persistentvolume-binder-controller,persistentvolumeclaim-protection-controller";
                let more = [&format!("--controllers={controllers}"), "--kube-api-qps=100000"];
                let more = more.into_iter().chain(["--kube-api-burst=100000"]).map(str::to_owned);
                cluster.plane.start_part_with(Part::ControllerManager, more)?;
            }
            Rival::Conductor => {
                let address = format!("127.0.0.1:{}", conductor_controlplane::free_port()?);
                let child = Command::new(&self.conductor)
                    .args(["run", "--listen", &address, "--kubeconfig"])
                    .arg(cluster.plane.kubeconfig())
                    .env("RUST_LOG", "error")
                    .stdin(Stdio::null())
                    .spawn()
                    .with_context(|| format!("{} cannot be run", self.conductor.display()))?;
                self.child = Some(child);
                self.wait_ready(&address).await?;
            }
        }
        Ok(begun.elapsed())
    }

    async fn wait_ready(&mut self, address: &str) -> Result<()> {
        let until = Instant::now() + Duration::from_secs(120);
        while Instant::now() < until {
            if let Some(status) = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten()) {
                bail!("conductor ended: {status}");
            }
            if is_ready(address).await {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("conductor did not become ready in two minutes")
    }

    /// Ends it, as a power cut would.
    pub fn kill(&mut self, cluster: &mut Cluster) {
        self.is_started = false;
        cluster.plane.kill(Part::ControllerManager);
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// The processes that take part.
    pub fn processes(&self, cluster: &Cluster) -> Vec<Process> {
        let ours = self.child.as_ref().map(|child| ("conductor", child.id()));
        cluster.processes().into_iter().chain(ours).collect()
    }
}

impl Drop for Binder {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Whether `/readyz` answers 200. Plain text over a socket: one line is enough.
async fn is_ready(address: &str) -> bool {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let ask = async {
        let mut stream = tokio::net::TcpStream::connect(address).await?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer.starts_with("HTTP/1.1 200"))
    };
    ask.await.unwrap_or(false)
}
