//! The example application as users run it: it keeps writing through a rotation, and prints it.

use crate::house::{House, WITHIN};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_writes_on_through_a_rotation_and_reports_it() {
    let mut house = House::build().await;
    let deps = std::env::current_exe().expect("a test is a program");
    let example = deps.ancestors().nth(2).expect("it lies in a folder").join("examples/orders");
    assert!(example.is_file(), "the example is not built: cargo build --package hotload --examples");
    let mut command = Command::new(example);
    command.arg(house.mount.folder()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = Running(command.spawn().expect("it can be run"));
    let printed = lines(&mut running.0);

    find(&printed, |line| line.starts_with("login 1: postgresql://app_a@127.0.0.1:"));
    find(&printed, |line| line.ends_with(" 0 failed; last: app_a"));
    house.rotate().await;
    find(&printed, |line| line.starts_with("login 2: postgresql://app_b@127.0.0.1:"));
    find(&printed, |line| line.ends_with(" 0 failed; last: app_b"));
    let port = house.server.port;
    house.mount.publish(&crate::house::published("postgresql", port, "app_a", "wrong"));
    find(&printed, |line| {
        line.starts_with("login 2 stays: ") && line.contains("password authentication failed")
    });
    find(&printed, |line| line.ends_with(" 0 failed; last: app_b"));
}

fn lines(child: &mut Child) -> Receiver<String> {
    let (sender, printed) = channel();
    let out = child.stdout.take().expect("it is piped");
    std::thread::spawn(move || {
        BufReader::new(out).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    printed
}

/// Reads on until a line is found; a failed order on the way is one too many.
fn find(printed: &Receiver<String>, is_it: impl Fn(&str) -> bool) {
    let end = Instant::now() + WITHIN;
    let mut seen = Vec::new();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let line = printed.recv_timeout(left).unwrap_or_else(|_| panic!("not printed: {seen:#?}"));
        assert!(!line.contains("orders written") || line.contains(" 0 failed"), "{line}");
        if is_it(&line) {
            return;
        }
        seen.push(line);
    }
}
