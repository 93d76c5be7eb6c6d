//! A client for the cluster of a kubeconfig, or of the pod that we run in. It retries nothing by itself:
//! a write that was decided while we led must not land after the lease is lost.

use super::error::Error;
use crate::client_error::one_line;
use kube::Client;
use kube::client::ClientBuilder;
use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError, LoadDataError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a connection may take to be made.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// What is known of the cluster: the kubeconfig at `path`, else `KUBECONFIG` or the user's own file,
/// else the pod's service account.
///
/// # Errors
/// When no cluster is known, or what is known of it cannot be read.
pub async fn find_cluster(path: Option<&Path>, context: Option<&str>) -> Result<Config, Error> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let named: Vec<PathBuf> = match path {
        Some(path) => vec![path.to_owned()],
        None => {
            let paths = std::env::var_os("KUBECONFIG").unwrap_or_default();
            std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty()).collect()
        }
    };
    let mut config = if named.is_empty() {
        match Config::from_kubeconfig(&options).await {
            Ok(config) => config,
            Err(error) if context.is_some() => {
                return Err(Error::Connect(format!("kubeconfig: {}", without_content(&error))));
            }
            Err(no_file) => Config::incluster().map_err(|no_pod| {
                let help = "name a kubeconfig by --kubeconfig or KUBECONFIG";
                let no_file = without_content(&no_file);
                Error::Connect(format!("no cluster is known ({no_file}; {no_pod}): {help}"))
            })?,
        }
    } else {
        let kubeconfig = read_all(&named)?;
        let all: Vec<String> = named.iter().map(|path| path.display().to_string()).collect();
        let failed =
            |error| Error::Connect(format!("kubeconfig {}: {}", all.join(", "), without_content(&error)));
        Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(failed)?
    };
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_WITHIN);
    Ok(config)
}

/// A client for a cluster.
///
/// # Errors
/// When its certificates or credentials cannot be used.
pub fn connect(mut config: Config) -> Result<Client, Error> {
    config.default_retry = false;
    let server = config.cluster_url.clone();
    let builder = ClientBuilder::try_from(config);
    let failed = |error: kube::Error| Error::Connect(format!("cluster {server}: {}", one_line(&error)));
    Ok(builder.map_err(failed)?.build())
}

/// The kubeconfigs at `paths` as one. Each that cannot be read is named.
fn read_all(paths: &[PathBuf]) -> Result<Kubeconfig, Error> {
    paths.iter().try_fold(Kubeconfig::default(), |all, path| {
        let failed =
            |error| Error::Connect(format!("kubeconfig {}: {}", path.display(), without_content(&error)));
        all.merge(Kubeconfig::read_from(path).map_err(failed)?).map_err(failed)
    })
}

/// What is wrong with a kubeconfig, and where, without a word of what stands in it: it holds tokens and keys, and a line
/// that cannot be read may be one of them.
fn without_content(error: &KubeconfigError) -> String {
    let unusable = |field: &str, error: &LoadDataError| match error {
        LoadDataError::ReadFile(error, path) => format!("{field}: cannot read {}: {error}", path.display()),
        LoadDataError::NoBase64DataOrFile => format!("{field} is missing"),
        LoadDataError::DecodeBase64(_) => format!("{field}-data is not base64"),
    };
    match error {
        KubeconfigError::Parse(error) => {
            let at = error.location().map(|at| format!("line {}, column {}: ", at.line(), at.column()));
            let at = at.unwrap_or_default();
            format!(
                "{at}this is not YAML of a kubeconfig; repair it there (the line is not shown, it may hold a secret)"
            )
        }
        KubeconfigError::LoadCertificateAuthority(error) => unusable("certificate-authority", error),
        KubeconfigError::LoadClientCertificate(error) => unusable("client-certificate", error),
        KubeconfigError::LoadClientKey(error) => unusable("client-key", error),
        KubeconfigError::ParseCertificates(_) => "certificate-authority is not PEM".to_owned(),
        KubeconfigError::ParseClusterUrl(_) => "server of the cluster is not a URL".to_owned(),
        KubeconfigError::ReadConfig(error, path) => format!("cannot read {}: {error}", path.display()),
        KubeconfigError::CurrentContextNotSet
        | KubeconfigError::KindMismatch
        | KubeconfigError::ApiVersionMismatch
        | KubeconfigError::LoadContext(_)
        | KubeconfigError::LoadClusterOfContext(_)
        | KubeconfigError::FindPath
        | KubeconfigError::MissingClusterUrl => error.to_string(),
        // ParseProxyUrl, and ParseNoProxy where the library is built with proxies.
        _ => "proxy-url of the cluster, or NO_PROXY, is not understood".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::client::AuthError;

    const TOKEN: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6Im9uZS1sb25nLXRva2VuLW9mLTY0LWNoYXJzIn0";

    fn told(name: &str, text: &str) -> String {
        let path = std::env::temp_dir().join(format!("conductor-{name}-{}", std::process::id()));
        std::fs::write(&path, text).expect("a file can be made");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let told =
            runtime.block_on(find_cluster(Some(&path), None)).expect_err("it is malformed").to_string();
        let _ = std::fs::remove_file(&path);
        assert!(told.contains(&path.display().to_string()), "{told}");
        told
    }

    #[test]
    fn no_part_of_a_malformed_kubeconfig_is_shown() {
        let config = |user: &str| {
            format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{{name: x, cluster: {{server: 'https://127.0.0.1:1'}}}}]\n\
                 contexts: [{{name: x, context: {{cluster: x, user: x}}}}]\nusers:\n- name: x\n  user:\n{user}\n"
            )
        };
        for (name, user, expected) in [
            ("no-colon", format!("    token {TOKEN}"), "line "),
            ("no-quote", format!("    token: \"{TOKEN}"), "line "),
            ("tab", format!("    \ttoken: {TOKEN}\n   x: ["), "line "),
            ("a-list", format!("    token: [{TOKEN}]"), "not YAML of a kubeconfig"),
            ("a-word", format!("    - {TOKEN}"), "not YAML of a kubeconfig"),
        ] {
            let told = told(name, &config(&user));
            let leaks =
                TOKEN.as_bytes().windows(8).any(|part| told.contains(&String::from_utf8_lossy(part)[..]));
            assert!(!leaks && told.contains(expected), "{name}: {told}");
        }
    }

    #[test]
    fn what_a_credential_plugin_prints_is_not_shown() {
        use std::os::unix::process::ExitStatusExt;
        let status = std::process::ExitStatus::from_raw(256);
        let out = std::process::Output { status, stdout: TOKEN.into(), stderr: TOKEN.into() };
        let error = AuthError::AuthExecRun { cmd: format!("get --key {TOKEN}"), out: Box::new(out) };
        let told = one_line(&kube::Error::Auth(error));
        assert!(told.contains("user.exec") && !told.contains("eyJ"), "{told}");
        // A token where the name of its file belongs.
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        let error = AuthError::ReadTokenFile(missing, TOKEN.into());
        let told = one_line(&kube::Error::Auth(error));
        assert!(told.contains("tokenFile") && !told.contains("eyJ"), "{told}");
    }
}
