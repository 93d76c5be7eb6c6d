//! The adapters that come with Conductor: the files of `policies/adapters`, compiled in. What they say is theirs;
//! an administrator's own come over them.

use super::adapter::Adapters;
use std::sync::{Arc, LazyLock};

/// Files with their texts.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../policies/adapters/", $name)))),*]
    };
}

/// Every file of the folder; a test says when one is missing.
const FILES: [(&str, &str); 12] = files![
    "ack-rds.yaml",
    "cloudnative-pg.yaml",
    "crossplane-rds-classic.yaml",
    "crossplane-rds.yaml",
    "database-server.yaml",
    "local-server.yaml",
    "percona-mongodb.yaml",
    "percona-mysql.yaml",
    "percona-postgresql.yaml",
    "percona-xtradb.yaml",
    "rds-instance.yaml",
    "zalando-postgresql.yaml",
];

static SHIPPED: LazyLock<Arc<Adapters>> = LazyLock::new(|| {
    let adapters = Adapters::read(FILES);
    Arc::new(adapters.expect("they are part of this program, and a test reads them all"))
});

impl Adapters {
    /// The adapters that come with Conductor. Compiled when they are first asked for.
    pub fn shipped() -> Arc<Adapters> {
        Arc::clone(&SHIPPED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_compiled_in_and_can_be_used() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/policies/adapters");
        let entries = std::fs::read_dir(folder).expect("the folder is there");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("it is readable").file_name().to_string_lossy().into())
            .collect();
        names.sort();
        assert_eq!(FILES.map(|(name, _)| name).to_vec(), names);
        let read = Adapters::read(FILES).map_err(|error| error.to_string()).expect("all can be used");
        assert_eq!(read.all().count(), FILES.len() + 1, "one speaks of two groups");
    }
}
