//! The adapters that come with Conductor: the files of `policies/adapters`, compiled in. Those of an administrator take
//! precedence.

use super::adapter::Adapters;
use std::sync::{Arc, LazyLock};

/// Pairs of file name and content.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../policies/adapters/", $name)))),*]
    };
}

/// All files of the folder; a test fails if one is missing.
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

static BUILTIN: LazyLock<Arc<Adapters>> = LazyLock::new(|| {
    let adapters = Adapters::read(FILES);
    Arc::new(adapters.expect("they are compiled in, and a test parses them all"))
});

impl Adapters {
    /// The adapters that come with Conductor, compiled at the first call.
    pub fn builtin() -> Arc<Adapters> {
        Arc::clone(&BUILTIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_compiled_in_and_valid() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/policies/adapters");
        let entries = std::fs::read_dir(folder).expect("the folder is there");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("it is readable").file_name().to_string_lossy().into())
            .collect();
        names.sort();
        assert_eq!(FILES.map(|(name, _)| name).to_vec(), names);
        let read = Adapters::read(FILES).map_err(|error| error.to_string()).expect("all are valid");
        assert_eq!(read.all().count(), FILES.len() + 1, "one has two groups");
    }
}
