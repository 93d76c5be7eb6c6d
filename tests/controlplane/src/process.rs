//! One process of the control plane: started with its output in a log, killed when it is dropped.

use crate::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The parts of a control plane that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The store.
    Etcd,
    /// The API.
    ApiServer,
    /// Kubernetes' own controllers: garbage collection, namespaces, the PV binder.
    ControllerManager,
}

impl Part {
    pub(crate) fn binary(self) -> &'static str {
        match self {
            Part::Etcd => "etcd",
            Part::ApiServer => "kube-apiserver",
            Part::ControllerManager => "kube-controller-manager",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    pub fn start(part: Part, mut command: Command, folder: &Path) -> Result<Process, Error> {
        let log = folder.join(format!("{}.log", part.binary()));
        let open = || File::options().create(true).append(true).open(&log).map_err(|e| Error::file(&log, e));
        command.stdin(Stdio::null()).stdout(open()?).stderr(open()?);
        let what = part.binary().to_owned();
        let child = command.spawn().map_err(|error| Error::Run { what, error })?;
        Ok(Process { child, log })
    }

    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: &str) -> Result<(), Error> {
        let run = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        run.map(drop).map_err(|error| Error::Run { what: format!("kill {signal}"), error })
    }

    pub fn log_tail(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing of it stays.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
