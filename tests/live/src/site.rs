//! Where a live test runs, by one parameter: a real control plane of processes, or the embedded API over HTTPS. Tests must
//! pass on both; only those that kill or pause processes require the real one.

use conductor_apiserver::{Embedded, Served};
use conductor_controlplane::{ControlPlane, find_kubectl, run_kubectl};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Output;

/// The API of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// kube-apiserver and etcd.
    Real,
    /// The embedded one.
    Embedded,
}

/// A running API.
#[derive(Debug)]
pub enum Site {
    /// Processes.
    Real(Box<ControlPlane>),
    /// A server in this process, which must not outlive the test's runtime.
    Embedded(Own),
}

/// The embedded API, served.
#[derive(Debug)]
pub struct Own {
    folder: PathBuf,
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    _served: Served,
}

impl Site {
    /// Starts one.
    ///
    /// # Panics
    /// It does not start.
    pub async fn start(side: Side) -> Site {
        match side {
            Side::Real => Site::Real(Box::new(ControlPlane::start().expect("the control plane starts"))),
            Side::Embedded => Site::Embedded(Own::start().await),
        }
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        match self {
            Site::Real(plane) => plane.kubeconfig(),
            Site::Embedded(own) => &own.kubeconfig,
        }
    }

    /// Runs kubectl as the administrator, with `input` on its standard input.
    ///
    /// # Panics
    /// It cannot be run.
    pub fn kubectl_with_input(&self, arguments: &[&str], input: &str) -> Output {
        let output = match self {
            Site::Real(plane) => plane.kubectl_with_input(arguments, input),
            Site::Embedded(own) => run_kubectl(&own.kubectl, &own.kubeconfig, &own.folder, arguments, input),
        };
        output.expect("kubectl runs")
    }
}

impl Own {
    async fn start() -> Own {
        let served = Embedded::in_memory().serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await;
        let served = served.expect("the embedded API starts");
        let name = format!("conductor-live-{}-{}", std::process::id(), served.address.port());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("the temporary folder takes files");
        let kubeconfig = folder.join("kubeconfig");
        fs::write(&kubeconfig, &served.kubeconfig).expect("the temporary folder takes files");
        let kubectl = find_kubectl().expect("kubectl is built");
        Own { folder, kubeconfig, kubectl, _served: served }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // The system cleans temporary folders that cannot be removed here.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Creates two tests of each function: one on the real API, one on the embedded one.
#[macro_export]
macro_rules! on_both_apis {
    ($($test:ident),* $(,)?) => {
        mod on_the_real_api {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test($crate::Side::Real).await;
            })*
        }
        mod on_the_embedded_api {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test($crate::Side::Embedded).await;
            })*
        }
    };
}
