//! Working databases on this machine: the classes that `conductor up` installs, and the folder of their servers' data.
//! The SQL provider runs the servers.

use super::manifests::{self, Manifest};
use anyhow::{Context, Result};
use conductor_sql::local::{find_missing, find_version};
use conductor_sql_plan::sql::Dialect;
use kube::Client;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The classes, as a user could apply them.
const CLASSES: &str = include_str!("../../../examples/class-local.yaml");
/// Engines, and the class of their servers.
const ENGINES: [(Dialect, &str); 2] =
    [(Dialect::Postgresql, "local-postgresql"), (Dialect::Mariadb, "local-mariadb")];

/// The folder in which servers keep their data.
#[derive(Debug)]
pub struct Servers {
    folder: PathBuf,
    /// Removes the folder, after the servers have ended.
    _temporary: Option<TempDir>,
}

impl Servers {
    /// Picks the data folder; without one, a temporary folder that is removed at the end.
    pub fn find(data: Option<&Path>) -> Result<Servers> {
        // Servers started by root run as their own users, who pass through these folders and cannot list them.
        let passable = fs::Permissions::from_mode(0o711);
        let Some(data) = data else {
            let folder =
                tempfile::Builder::new().prefix("conductor-servers-").permissions(passable).tempdir();
            let folder = folder.context("cannot create a temporary folder for database servers")?;
            return Ok(Servers { folder: folder.path().to_owned(), _temporary: Some(folder) });
        };
        if is_root() && is_shut(data) {
            fs::set_permissions(data, passable).with_context(|| data.display().to_string())?;
        }
        let folder = std::path::absolute(data.join("servers")).with_context(|| data.display().to_string())?;
        Ok(Servers { folder, _temporary: None })
    }

    /// The path of the folder.
    pub fn folder(&self) -> PathBuf {
        self.folder.clone()
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn is_shut(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|found| found.mode() & 0o777 == 0o700)
}

/// Applies the classes to the system namespace.
pub async fn install(client: &Client, system_namespace: &str) -> Result<()> {
    let mut classes = manifests::parse(CLASSES, "class-local.yaml")?;
    classes.iter_mut().for_each(|class: &mut Manifest| class.move_to(system_namespace));
    for (dialect, class) in ENGINES {
        // A class without a version would promise every version that claims request.
        let version = find_version(dialect).into_iter();
        version.for_each(|version| classes.iter_mut().for_each(|one| one.offer_version(class, &version)));
    }
    manifests::apply(client, &classes, &|_| Ok(())).await
}

/// One line per engine: what a claim of its class gets.
pub fn summary() -> String {
    let lines = ENGINES.map(|(dialect, class)| match find_missing(dialect) {
        None => format!("class {class}: a claim gets a working database"),
        Some(missing) => format!("class {class}: {missing}"),
    });
    lines.join("\n              ")
}
