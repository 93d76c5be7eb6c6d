//! Runs the credential plugin of a kubeconfig (`user.exec`) once, before the client library does: keeps a token without
//! an expiry, and refuses one that no request can carry. Leaves tokens that expire and certificates to the library. Shows
//! nothing that the plugin prints.

use super::kubeconfig::unfit_for_header;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use secrecy::SecretString;
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// The same user, with the plugin's token if that does not expire.
///
/// # Errors
/// What is wrong with the plugin or with what it printed.
pub(super) async fn with_lasting_token(mut user: AuthInfo) -> Result<AuthInfo, String> {
    // In the order in which the client library looks for credentials.
    let has_password = user.username.is_some() && user.password.is_some();
    let has_others = user.auth_provider.is_some() || has_password;
    if has_others || user.token.is_some() || user.token_file.is_some() {
        return Ok(user);
    }
    let Some(exec) = user.exec.clone() else { return Ok(user) };
    let run = tokio::task::spawn_blocking(move || run(&exec)).await;
    let status = run.map_err(|_| "the command could not be run".to_owned())??;
    let text = |field: &str| status.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let Some(token) = text("token") else {
        let has_identity = text("clientCertificateData").is_some() && text("clientKeyData").is_some();
        let nothing =
            "the command printed an ExecCredential without a token and without a certificate with its key";
        return if has_identity { Ok(user) } else { Err(nothing.to_owned()) };
    };
    if let Some(why) = unfit_for_header(token) {
        return Err(format!("the token that the command printed cannot be used: {why}"));
    }
    if text("expirationTimestamp").is_none() {
        user.token = Some(SecretString::from(token.to_owned()));
        user.exec = None;
    }
    Ok(user)
}

/// The status of the ExecCredential that the plugin prints.
fn run(exec: &ExecConfig) -> Result<Value, String> {
    let command = exec.command.as_ref().filter(|command| !command.is_empty());
    let command = command.ok_or("it names no command")?;
    let interactive = exec.interactive_mode != Some(ExecInteractiveMode::Never);
    let mut spec = json!({"interactive": interactive});
    if let Some(cluster) = exec.cluster.as_ref().filter(|_| exec.provide_cluster_info) {
        spec["cluster"] = serde_json::to_value(cluster).unwrap_or_default();
    }
    let info = json!({"kind": "ExecCredential", "apiVersion": exec.api_version, "spec": spec});
    let pairs = exec.env.iter().flatten().filter_map(|pair| Some((pair.get("name")?, pair.get("value")?)));
    let mut child = Command::new(command);
    child.args(exec.args.iter().flatten()).envs(pairs).env("KUBERNETES_EXEC_INFO", info.to_string());
    for name in exec.drop_env.iter().flatten() {
        child.env_remove(name);
    }
    if interactive {
        child.stdin(Stdio::inherit()).stderr(Stdio::inherit());
    } else {
        child.stdin(Stdio::null());
    }
    let output = child.output().map_err(|error| format!("the command cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "the command failed ({}); run it by hand to see why (its output is not shown, it may hold a token)",
            output.status
        ));
    }
    let printed: Option<Value> = serde_saphyr::from_slice(&output.stdout).ok();
    let status = printed.and_then(|mut printed| printed.get_mut("status").map(Value::take));
    status
        .filter(Value::is_object)
        .ok_or_else(|| "the command did not print an ExecCredential with a status".to_owned())
}
