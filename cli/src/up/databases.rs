//! Databases that work, on this machine: the classes that `conductor up` brings along, and where their servers keep
//! their data. The servers themselves are the library's.

use super::manifests::{self, Manifest};
use anyhow::{Context, Result};
use conductor_sql::local::{find_missing, find_version};
use conductor_sql_plan::sql::Dialect;
use kube::Client;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The classes, as anybody could apply them.
const CLASSES: &str = include_str!("../../../examples/class-local.yaml");
/// Engines with the class that has their servers.
const ENGINES: [(Dialect, &str); 2] =
    [(Dialect::Postgresql, "local-postgresql"), (Dialect::Mariadb, "local-mariadb")];

/// Where servers keep their data.
#[derive(Debug)]
pub struct Servers {
    folder: PathBuf,
    is_temporary: bool,
}

impl Servers {
    /// In the data folder; without one, in a folder that goes with us.
    pub fn find(data: Option<&Path>) -> Result<Servers> {
        let (folder, is_temporary) = match data {
            Some(data) => (data.join("servers"), false),
            None => (std::env::temp_dir().join(format!("conductor-servers-{}", std::process::id())), true),
        };
        let folder = std::path::absolute(&folder).with_context(|| folder.display().to_string())?;
        if let Some(data) = data.filter(|data| is_root() && is_shut(data)) {
            // Servers of root run as users of their own, who pass through here. They cannot look around.
            let passable = fs::Permissions::from_mode(0o711);
            fs::set_permissions(data, passable).with_context(|| data.display().to_string())?;
        }
        Ok(Servers { folder, is_temporary })
    }

    /// The folder, made when the first server is.
    pub fn folder(&self) -> PathBuf {
        self.folder.clone()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        if self.is_temporary {
            // The servers have ended by now. What cannot be removed is the temporary folder's to clear.
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn is_shut(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|found| found.mode() & 0o777 == 0o700)
}

/// Applies the classes.
pub async fn install(client: &Client, system_namespace: &str) -> Result<()> {
    let mut classes = manifests::parse(CLASSES, "class-local.yaml")?;
    classes.iter_mut().for_each(|class: &mut Manifest| class.move_to(system_namespace));
    for (dialect, class) in ENGINES {
        // A class that says nothing of versions would promise any that is asked for.
        let version = find_version(dialect).into_iter();
        version.for_each(|version| classes.iter_mut().for_each(|one| one.offer_version(class, &version)));
    }
    manifests::apply(client, &classes, &|_| Ok(())).await
}

/// One line an engine: what a claim of its class gets.
pub fn told() -> String {
    let lines = ENGINES.map(|(dialect, class)| match find_missing(dialect) {
        None => format!("class {class}: a claim gets a database that works"),
        Some(missing) => format!("class {class}: {missing}"),
    });
    lines.join("\n              ")
}
