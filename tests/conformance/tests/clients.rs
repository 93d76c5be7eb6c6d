//! Programs that know nothing of us, unchanged, over HTTPS: the Python client and a client-go program with shared
//! informers and leader election. What they print is the same on both APIs.

use conductor_conformance::here;
use conductor_conformance::side::{Own, Real, connect, install_kinds};
use std::path::Path;
use std::process::Command;

#[tokio::test(flavor = "multi_thread")]
async fn clients_in_python_and_go_see_no_difference() {
    let (real, own) = (Real::start().unwrap(), Own::start().await.unwrap());
    for kubeconfig in [real.plane.kubeconfig(), &own.kubeconfig] {
        install_kinds(&connect(kubeconfig).await.unwrap()).await.unwrap();
    }
    let informer = built("go/build");
    let python = built("python/build");
    let script = here("python/client.py").display().to_string();
    for program in [&[informer.as_str()][..], &[python.as_str(), script.as_str()]] {
        let theirs = run(program, real.plane.kubeconfig());
        let ours = run(program, &own.kubeconfig);
        assert_eq!(ours, theirs, "{program:?}");
        assert!(theirs.lines().count() > 15, "{program:?} did little: {theirs}");
    }
}

/// What a build script printed: where the program is.
fn built(script: &str) -> String {
    let output = Command::new(here(script)).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn run(program: &[&str], kubeconfig: &Path) -> String {
    // A proxy of the machine's is not for loopback.
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).arg(kubeconfig).env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program:?}: {out}{err}");
    out.into_owned()
}
