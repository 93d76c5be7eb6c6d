//! A disk that is full refuses writes and says so, and takes them again when there is space: no restart is needed.
//! Needs root, for a small file system of its own; otherwise it says that it was skipped.

use super::ask::{get, post};
use conductor_apiserver::Embedded;
use serde_json::json;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Generous: machines are slow at times.
const WITHIN: Duration = Duration::from_secs(60);

/// A file system of a few megabytes, gone with the test.
struct Small(PathBuf);

impl Small {
    fn mount() -> Option<Small> {
        let folder = std::env::temp_dir().join(format!("conductor-full-disk-{}", std::process::id()));
        fs::create_dir_all(&folder).ok()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=12m", "conductor-test"]).arg(&folder);
        match mount.output() {
            Ok(output) if output.status.success() => Some(Small(folder)),
            _ => {
                let _ = fs::remove_dir(&folder);
                None
            }
        }
    }

    /// Writes until nothing more fits.
    fn fill(&self) {
        let mut file = fs::File::create(self.0.join("filler")).expect("it can be made");
        let mut size = 1 << 20;
        while size > 0 {
            match file.write_all(&vec![0_u8; size]) {
                Ok(()) => {}
                Err(_) => size /= 2,
            }
        }
    }

    fn free(&self) {
        fs::remove_file(self.0.join("filler")).expect("it is there");
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = fs::remove_dir(&self.0);
    }
}

async fn write(api: &Embedded, name: &str, padding: usize) -> (u16, String) {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"padding": "x".repeat(padding)},
    });
    let reply = post(api, MAPS, map).await;
    (reply.code, reply.body["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_full_disk_that_has_space_again_takes_writes() {
    let Some(small) = Small::mount() else {
        println!("skipped: a tmpfs cannot be mounted here (root is needed)");
        return;
    };
    let api = Embedded::open(data(&small.0)).expect("it opens");
    assert_eq!(write(&api, "before", 10).await.0, 201);
    small.fill();
    // What the file has spare may take a few.
    let mut refused = None;
    for n in 0..200 {
        let (code, message) = write(&api, &format!("full-{n}"), 300_000).await;
        if code != 201 {
            refused = Some((code, message));
            break;
        }
    }
    let (code, message) = refused.expect("a full disk refuses");
    assert_eq!(code, 500, "{message}");
    assert!(message.contains("No space left") && message.contains("free space"), "{message}");
    assert_eq!(get(&api, "/livez").await.code, 200, "it lives");
    assert_eq!(get(&api, &format!("{MAPS}/before")).await.code, 200, "it can be read");
    small.free();
    let end = Instant::now() + WITHIN;
    while write(&api, "after", 300_000).await.0 != 201 {
        assert!(Instant::now() < end, "there is space again: {:?}", api.trouble());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!((get(&api, "/readyz").await.code, api.trouble()), (200, None));
    // Everything that was answered, and nothing that was refused, is there after a restart too.
    let names = |body: &serde_json::Value| -> Vec<String> {
        let items = body["items"].as_array().expect("a list has items");
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let seen = names(&get(&api, MAPS).await.body);
    drop(api);
    let again = reopened(&data(&small.0)).await;
    assert_eq!(names(&get(&again, MAPS).await.body), seen);
}

fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

/// The thread that writes ends with the last of the API.
async fn reopened(folder: &Path) -> Embedded {
    let end = Instant::now() + WITHIN;
    loop {
        match Embedded::open(folder) {
            Ok(api) => return api,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
