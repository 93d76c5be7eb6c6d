//! A folder as a kubelet mounts a Secret: the files lie in a folder of their own with a time in its name, the link
//! `..data` leads there, and a change is a new folder and a rename over that link.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A mounted Secret. It goes with the test.
#[derive(Debug)]
pub struct Mount {
    base: PathBuf,
    writes: u32,
}

impl Mount {
    /// A place for one; nothing is mounted yet.
    pub fn new() -> Mount {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let base = std::env::temp_dir().join(format!("hotload-mount-{}-{count}", std::process::id()));
        fs::create_dir_all(&base).expect("a folder can be made");
        Mount { base, writes: 0 }
    }

    /// The folder that the application reads.
    pub fn folder(&self) -> PathBuf {
        self.base.join("connection")
    }

    /// Writes the files as a kubelet's atomic writer does.
    pub fn publish(&mut self, files: &BTreeMap<String, String>) {
        self.writes += 1;
        let folder = self.folder();
        fs::create_dir_all(&folder).expect("the folder can be made");
        let before = fs::read_link(folder.join("..data")).ok();
        let name = format!("..2026_11_17_04_00_00.{:09}", self.writes);
        fs::create_dir(folder.join(&name)).expect("the new folder can be made");
        for (key, value) in files {
            fs::write(folder.join(&name).join(key), value).expect("a file can be written");
        }
        symlink(&name, folder.join("..data_tmp")).expect("the new link can be made");
        fs::rename(folder.join("..data_tmp"), folder.join("..data")).expect("the link can be swapped");
        for key in files.keys() {
            if fs::symlink_metadata(folder.join(key)).is_err() {
                symlink(Path::new("..data").join(key), folder.join(key)).expect("a file's link can be made");
            }
        }
        if let Some(before) = before {
            fs::remove_dir_all(folder.join(before)).expect("the folder of before can be removed");
        }
    }

    /// Takes the whole mount away.
    pub fn remove(&self) {
        fs::remove_dir_all(self.folder()).expect("the folder can be removed");
    }
}

impl Default for Mount {
    fn default() -> Mount {
        Mount::new()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.base);
    }
}
