//! The two sides: a real control plane with the two controllers that an API is nothing without, garbage collection
//! and the end of namespaces; and the embedded API, which has them within, served over HTTPS as usual.

use crate::{here, run};
use conductor_apiserver::{Embedded, Served};
use conductor_controlplane::{ControlPlane, Part};
use kube::Client;
use serde_json::Value;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// The real API.
#[derive(Debug)]
pub struct Real {
    /// Its processes.
    pub plane: ControlPlane,
}

impl Real {
    /// Starts it. Other controllers than the two would add objects to namespaces that no script requested, and so
    /// would the admission of service accounts to Pods.
    ///
    /// # Errors
    /// What did not start.
    pub fn start() -> Result<Real, String> {
        let shown = |error: conductor_controlplane::Error| error.to_string();
        let without = "--disable-admission-plugins=ServiceAccount".to_owned();
        let mut plane = ControlPlane::start_with([without]).map_err(shown)?;
        let only = "--controllers=garbage-collector-controller,namespace-controller".to_owned();
        plane.start_part_with(Part::ControllerManager, [only]).map_err(shown)?;
        Ok(Real { plane })
    }
}

/// The embedded API, on a port of its own.
#[derive(Debug)]
pub struct Own {
    /// The API itself.
    pub api: Embedded,
    /// A folder of its own, gone with it.
    pub folder: PathBuf,
    /// The administrator's kubeconfig, in that folder.
    pub kubeconfig: PathBuf,
    _served: Served,
}

impl Own {
    /// Starts it.
    ///
    /// # Errors
    /// What did not start.
    pub async fn start() -> Result<Own, String> {
        let api = Embedded::in_memory();
        let served = api.serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await;
        let served = served.map_err(|error| error.to_string())?;
        let name = format!("conductor-embedded-{}-{}", std::process::id(), served.address.port());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let kubeconfig = folder.join("kubeconfig");
        fs::write(&kubeconfig, &served.kubeconfig).map_err(|error| error.to_string())?;
        Ok(Own { api, folder, kubeconfig, _served: served })
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // What cannot be removed is the system's to clean: it is a temporary folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A client for the API of a kubeconfig. It tries nothing twice.
///
/// # Errors
/// When the kubeconfig cannot be used.
pub async fn connect(kubeconfig: &Path) -> Result<Client, String> {
    let config = conductor_controller::find_cluster(Some(kubeconfig), None).await;
    config.and_then(conductor_controller::connect).map_err(|error| error.to_string())
}

/// Installs the kinds that checks share.
///
/// # Errors
/// What the API did not take.
pub async fn install_kinds(client: &Client) -> Result<(), String> {
    let read = fs::read_to_string(here("kinds.yaml")).map_err(|error| error.to_string())?;
    let kinds: Vec<Value> = serde_saphyr::from_str(&read).map_err(|error| error.to_string())?;
    run::install(client, &kinds).await
}
