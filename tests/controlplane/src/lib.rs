//! A real control plane for tests: etcd, kube-apiserver and kube-controller-manager as plain processes on free
//! loopback ports, and kubectl to talk to them. No container, no cluster, no network but loopback.
//!
//! The binaries come from `KUBEBUILDER_ASSETS` where it is set, and are built from `go.mod` beside this
//! crate otherwise, once, into a cache outside the clone. Everything else is created for one start and removed with it.

mod error;
mod etcd;
mod identity;
mod port;
mod process;

pub use error::Error;
pub use port::free_port;
pub use process::Part;

use identity::Identity;
use process::Process;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long a part may take until it answers. Generous: tests share the machine with builds.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// A running control plane. Its processes end and its files go when it is dropped.
#[derive(Debug)]
pub struct ControlPlane {
    assets: PathBuf,
    folder: PathBuf,
    api_port: u16,
    etcd_port: u16,
    identity: Identity,
    running: BTreeMap<Part, Process>,
}

impl ControlPlane {
    /// Starts etcd and kube-apiserver and waits until the API is ready.
    ///
    /// # Errors
    /// When the binaries cannot be built or a part does not come up; the message has the end of its log.
    pub fn start() -> Result<ControlPlane, Error> {
        ControlPlane::start_with([])
    }

    /// As [`ControlPlane::start`], with further arguments for the API server.
    ///
    /// # Errors
    /// As [`ControlPlane::start`].
    pub fn start_with(api_server: impl IntoIterator<Item = String>) -> Result<ControlPlane, Error> {
        let assets = find_assets()?;
        let (api_port, etcd_port) = (free_port().map_err(Error::Port)?, free_port().map_err(Error::Port)?);
        let folder =
            std::env::temp_dir().join(format!("conductor-controlplane-{}-{api_port}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|e| Error::file(&folder, e))?;
        let identity = Identity::create(&folder, api_port)?;
        let running = BTreeMap::new();
        let mut plane = ControlPlane { assets, folder, api_port, etcd_port, identity, running };
        plane.start_part(Part::Etcd)?;
        plane.start_part_with(Part::ApiServer, api_server)?;
        Ok(plane)
    }

    /// Starts a part that is not running and waits until it is ready.
    ///
    /// # Errors
    /// As [`ControlPlane::start`].
    pub fn start_part(&mut self, part: Part) -> Result<(), Error> {
        self.start_part_with(part, [])
    }

    /// As [`ControlPlane::start_part`], with further arguments.
    ///
    /// # Errors
    /// As [`ControlPlane::start`].
    pub fn start_part_with(
        &mut self,
        part: Part,
        more: impl IntoIterator<Item = String>,
    ) -> Result<(), Error> {
        let peer_port = free_port().map_err(Error::Port)?;
        let mut command = Command::new(self.assets.join(part.binary()));
        command.args(self.arguments(part, peer_port)).args(more);
        let process = Process::start(part, command, &self.folder)?;
        self.running.insert(part, process);
        self.wait_ready(part)
    }

    /// The process of a part, where it runs.
    pub fn pid(&self, part: Part) -> Option<u32> {
        self.running.get(&part).map(Process::id)
    }

    /// Kills a part as a power cut would.
    pub fn kill(&mut self, part: Part) {
        // Dropping a process kills it and waits for its end.
        self.running.remove(&part);
    }

    /// Stops a part in its tracks, without its knowing.
    ///
    /// # Errors
    /// When the signal cannot be sent.
    pub fn pause(&self, part: Part) -> Result<(), Error> {
        self.running.get(&part).map_or(Ok(()), |process| process.signal("-STOP"))
    }

    /// Lets a paused part go on.
    ///
    /// # Errors
    /// When the signal cannot be sent.
    pub fn resume(&self, part: Part) -> Result<(), Error> {
        self.running.get(&part).map_or(Ok(()), |process| process.signal("-CONT"))
    }

    /// Compacts etcd to the newest revision: a watch that continues from an older one must list again.
    ///
    /// # Errors
    /// When etcd does not answer, or refuses.
    pub fn compact(&self) -> Result<(), Error> {
        let revision = etcd::revision(self.etcd_port)?;
        etcd::compact(self.etcd_port, &revision)
    }

    /// The kubeconfig of the administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.identity.kubeconfig
    }

    /// Runs kubectl as the administrator and returns what it said, whatever its exit code.
    ///
    /// # Errors
    /// When kubectl cannot be run at all.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<Output, Error> {
        self.kubectl_with_input(arguments, "")
    }

    /// As [`ControlPlane::kubectl`], with `input` on its standard input.
    ///
    /// # Errors
    /// When kubectl cannot be run at all.
    pub fn kubectl_with_input(&self, arguments: &[&str], input: &str) -> Result<Output, Error> {
        run_kubectl(&self.assets.join("kubectl"), self.kubeconfig(), &self.folder, arguments, input)
    }

    fn arguments(&self, part: Part, peer_port: u16) -> Vec<String> {
        let etcd = format!("http://127.0.0.1:{}", self.etcd_port);
        let Identity { certificate, key, account_key, account_public_key, tokens, kubeconfig } =
            &self.identity;
        let path = |p: &Path| p.display().to_string();
        match part {
            Part::Etcd => vec![
                format!("--data-dir={}", path(&self.folder.join("etcd"))),
                format!("--listen-client-urls={etcd}"),
                format!("--advertise-client-urls={etcd}"),
                format!("--listen-peer-urls=http://127.0.0.1:{peer_port}"),
                // A test's etcd need not survive the machine.
                "--unsafe-no-fsync=true".to_owned(),
                "--log-level=warn".to_owned(),
            ],
            Part::ApiServer => vec![
                format!("--etcd-servers={etcd}"),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--secure-port={}", self.api_port),
                format!("--tls-cert-file={}", path(certificate)),
                format!("--tls-private-key-file={}", path(key)),
                format!("--token-auth-file={}", path(tokens)),
                "--authorization-mode=RBAC".to_owned(),
                "--service-cluster-ip-range=10.96.0.0/24".to_owned(),
                "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
                format!("--service-account-signing-key-file={}", path(account_key)),
                format!("--service-account-key-file={}", path(account_public_key)),
            ],
            Part::ControllerManager => vec![
                format!("--kubeconfig={}", path(kubeconfig)),
                format!("--service-account-private-key-file={}", path(account_key)),
                "--use-service-account-credentials=false".to_owned(),
                "--leader-elect=false".to_owned(),
                // Tests end many namespaces at once.
                "--concurrent-namespace-syncs=50".to_owned(),
                "--kube-api-qps=1000".to_owned(),
                "--kube-api-burst=2000".to_owned(),
                format!("--secure-port={peer_port}"),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--cert-dir={}", path(&self.folder.join("manager"))),
            ],
        }
    }

    fn wait_ready(&mut self, part: Part) -> Result<(), Error> {
        let until = Instant::now() + READY_WITHIN;
        while Instant::now() < until {
            if self.running.get_mut(&part).is_none_or(|process| process.has_ended()) {
                break;
            }
            if self.is_ready(part)? {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let log = self.running.get(&part).map(Process::log_tail).unwrap_or_default();
        Err(Error::NotReady { part: part.binary(), log })
    }

    fn is_ready(&self, part: Part) -> Result<bool, Error> {
        let listens = |port| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        match part {
            Part::Etcd => Ok(listens(self.etcd_port)),
            Part::ApiServer => {
                Ok(listens(self.api_port) && self.kubectl(&["get", "--raw=/readyz"])?.status.success())
            }
            // It has nothing to answer with: it is ready when it does not end.
            Part::ControllerManager => Ok(true),
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // The API server first: it does not shut down cleanly without etcd.
        for part in [Part::ControllerManager, Part::ApiServer, Part::Etcd] {
            self.running.remove(&part);
        }
        // What cannot be removed is the system's to clean: it is a temporary folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Where kubectl is; it is built first where need be.
///
/// # Errors
/// When it cannot be built.
pub fn find_kubectl() -> Result<PathBuf, Error> {
    Ok(find_assets()?.join("kubectl"))
}

/// Runs kubectl on the cluster of a kubeconfig, with a folder for what it caches.
///
/// # Errors
/// When it cannot be run at all.
pub fn run_kubectl(
    program: &Path,
    kubeconfig: &Path,
    home: &Path,
    arguments: &[&str],
    input: &str,
) -> Result<Output, Error> {
    let failed = |error| Error::Run { what: "kubectl".to_owned(), error };
    let mut command = Command::new(program);
    command.arg("--kubeconfig").arg(kubeconfig).args(arguments).env("HOME", home);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // kubectl may end without reading everything; what it says then is its answer.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output().map_err(failed)
}

/// The folder with the binaries, built first where need be.
fn find_assets() -> Result<PathBuf, Error> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/build");
    let run = Command::new(script).stderr(Stdio::inherit()).output();
    let output = run.map_err(|error| Error::Run { what: script.to_owned(), error })?;
    if !output.status.success() {
        return Err(Error::Build { status: output.status });
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}
