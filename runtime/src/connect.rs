//! A client for the cluster of a kubeconfig, or of the pod that this process runs in. It retries nothing by itself: a
//! write that a leader decided must not arrive after it has lost its Lease.

use super::client_error::one_line;
use super::kubeconfig::Kubeconfigs;
use super::token_file::TokenFile;
use kube::Client;
use kube::client::ClientBuilder;
use kube::config::{AuthInfo, Config};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tower::util::MapRequestLayer;

/// No cluster is known, or what is known of it cannot be used. Shows no credentials.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConnectError(pub(super) String);

/// How long connecting may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Finds the cluster: by the kubeconfig at `path`, else `KUBECONFIG` or the user's own file, else the pod's service
/// account.
///
/// # Errors
/// No cluster is known, or its kubeconfig is invalid.
pub async fn find_cluster(path: Option<&Path>, context: Option<&str>) -> Result<Config, ConnectError> {
    let named: Vec<PathBuf> = match path {
        Some(path) => vec![path.to_owned()],
        None => {
            let paths = std::env::var_os("KUBECONFIG").unwrap_or_default();
            std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty()).collect()
        }
    };
    let is_named = !named.is_empty();
    let paths = if is_named { named } else { own_file().into_iter().collect() };
    let found = match Kubeconfigs::read(paths) {
        Ok(read) => read.config(context).await,
        Err(error) => Err(error),
    };
    let mut config = match found {
        Ok(config) => config,
        Err(error) if is_named || context.is_some() => return Err(error),
        Err(no_file) => Config::incluster().map_err(|no_pod| {
            let help = "name a kubeconfig by --kubeconfig or KUBECONFIG";
            ConnectError(format!("no cluster is known ({no_file}; {no_pod}): {help}"))
        })?,
    };
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_WITHIN);
    Ok(config)
}

/// The user's own kubeconfig.
fn own_file() -> Option<PathBuf> {
    Some(std::env::home_dir()?.join(".kube").join("config"))
}

/// Creates a client for a cluster.
///
/// # Errors
/// Its certificates or credentials are invalid.
pub fn connect(mut config: Config) -> Result<Client, ConnectError> {
    config.default_retry = false;
    let server = config.cluster_url.clone();
    let token = match token_file(&mut config.auth_info) {
        Some(file) => Some(TokenFile::open(Path::new(&file)).map_err(|why| {
            ConnectError(format!("cluster {server}: the file with the token of this client: {why}"))
        })?),
        None => None,
    };
    let builder = ClientBuilder::try_from(config);
    let failed = |error: kube::Error| ConnectError(format!("cluster {server}: {}", one_line(&error)));
    let builder = builder.map_err(failed)?;
    Ok(match token {
        Some(file) => {
            let authorize = MapRequestLayer::new(move |request| file.authorize(request));
            builder.with_layer(&authorize).build()
        }
        None => builder.build(),
    })
}

/// The file of the token, removed from `user` if the client library would read it: the library does not trim white space.
fn token_file(user: &mut AuthInfo) -> Option<String> {
    let has_password = user.username.is_some() && user.password.is_some();
    let has_others = user.auth_provider.is_some() || has_password || user.token.is_some();
    user.token_file.take().filter(|_| !has_others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::client::AuthError;

    const TOKEN: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6Im9uZS1sb25nLXRva2VuLW9mLTY0LWNoYXJzIn0";

    fn error_of(name: &str, text: &str) -> String {
        let path = std::env::temp_dir().join(format!("conductor-{name}-{}", std::process::id()));
        std::fs::write(&path, text).expect("a file can be created");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let error =
            runtime.block_on(find_cluster(Some(&path), None)).expect_err("it is malformed").to_string();
        let _ = std::fs::remove_file(&path);
        assert!(error.contains(&path.display().to_string()), "{error}");
        error
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
            let error = error_of(name, &config(&user));
            let leaks =
                TOKEN.as_bytes().windows(8).any(|part| error.contains(&String::from_utf8_lossy(part)[..]));
            assert!(!leaks && error.contains(expected), "{name}: {error}");
        }
    }

    /// A kubeconfig with these lines below `cluster:` and below `user:`.
    fn config(cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{{name: x, context: {{cluster: c1, user: u1}}}}]\n\
             clusters:\n- name: c1\n  cluster:\n{cluster}\nusers:\n- name: u1\n  user:\n{user}\n"
        )
    }

    const SERVER: &str = "    server: https://127.0.0.1:1";

    fn check_error(name: &str, text: &str, expected: &str) {
        let error = error_of(name, text);
        assert!(error.contains(expected), "{name}: {error}");
        let leaks = TOKEN.as_bytes().windows(8).any(|part| error.contains(&*String::from_utf8_lossy(part)));
        assert!(!leaks && !error.contains('\n'), "{name}: {error}");
    }

    #[test]
    fn what_no_request_can_carry_is_refused_with_its_field() {
        for (name, user, expected) in [
            (
                "newline",
                format!("    token: |\n      {TOKEN}"),
                "user u1: token: it begins or ends with a line break",
            ),
            ("inner", format!("    token: \"{TOKEN}\\n{TOKEN}\""), "user u1: token: it holds a line break"),
            ("bell", format!("    token: \"{TOKEN}\\a\""), "user u1: token: it holds"),
            ("name", format!("    username: |\n      me\n    password: {TOKEN}"), "user u1: username: "),
            ("colon", format!("    username: 'a:b'\n    password: {TOKEN}"), "user u1: username: basic"),
            ("password", format!("    username: me\n    password: \"{TOKEN}\\n\""), "user u1: password: "),
            ("as", format!("    token: {TOKEN}\n    as: \"a\\nb\""), "user u1: as: "),
            ("groups", format!("    token: {TOKEN}\n    as-groups: [\"a\\n\"]"), "user u1: as-groups: "),
            (
                "file",
                format!("    tokenFile: /nowhere/{TOKEN}"),
                "user u1: tokenFile: the file cannot be read",
            ),
            (
                "oidc",
                format!("    auth-provider: {{name: oidc, config: {{id-token: \"{TOKEN}\\n\"}}}}"),
                "auth-provider: ",
            ),
            (
                "gcp",
                "    auth-provider: {name: gcp, config: {cmd-path: echo}}".to_owned(),
                "was removed from kubectl",
            ),
            ("azure", "    auth-provider: {name: azure}".to_owned(), "was removed from kubectl"),
            (
                "cert",
                format!("    client-certificate-data: {TOKEN}-"),
                "client-certificate: its data is not base64",
            ),
            ("key", "    client-certificate-data: YQ==".to_owned(), "user u1: client-key: it is missing"),
            (
                "no-pem",
                "    client-certificate-data: YQ==\n    client-key-data: YQ==".to_owned(),
                "user u1: client-",
            ),
        ] {
            check_error(name, &config(SERVER, &user), expected);
        }
        for (name, cluster, expected) in [
            (
                "no-scheme",
                "    server: 127.0.0.1:6443",
                "cluster c1: server: it is not the URL of an API server",
            ),
            ("a-path", "    server: /api", "cluster c1: server: it is not the URL"),
            ("a-word", "    server: cluster", "cluster c1: server: it is not the URL"),
            ("other", "    server: ftp://127.0.0.1", "cluster c1: server: it is not the URL"),
            ("line", "    server: \"https://127.0.0.1:1\\n\"", "cluster c1: server: it is not a URL"),
            (
                "sni",
                "    server: https://127.0.0.1:1\n    tls-server-name: 'a b'",
                "cluster c1: tls-server-name: ",
            ),
            (
                "proxy",
                "    server: https://127.0.0.1:1\n    proxy-url: http://127.0.0.1:2",
                "cluster c1: proxy-url: ",
            ),
            (
                "ca",
                "    server: https://127.0.0.1:1\n    certificate-authority-data: '%%'",
                "cluster c1: certificate-authority: its data is not base64",
            ),
            (
                "ca-no-pem",
                "    server: https://127.0.0.1:1\n    certificate-authority-data: YQ==",
                "cluster c1: certificate-authority: it holds no certificate",
            ),
        ] {
            check_error(name, &config(cluster, &format!("    token: {TOKEN}")), expected);
        }
    }

    #[test]
    fn a_plugin_whose_token_no_request_can_carry_is_refused() {
        let plugin = |printed: &str| {
            let exec = "    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      interactiveMode: Never\n      \
                        command: printf\n      args: ['%s', ";
            config(SERVER, &format!("{exec}{}]", serde_json::to_string(printed).unwrap()))
        };
        let credential = |status: String| format!("{{\"kind\": \"ExecCredential\", \"status\": {status}}}");
        for (name, printed, expected) in [
            (
                "newline",
                credential(format!("{{\"token\": \"{TOKEN}\\n\"}}")),
                "user u1: exec: the token that the command",
            ),
            ("nothing", credential("{}".to_owned()), "without a token"),
            ("no-yaml", format!("{TOKEN}: ["), "user u1: exec: the command did not print an ExecCredential"),
        ] {
            check_error(name, &plugin(&printed), expected);
        }
        check_error(
            "failing",
            &config(SERVER, "    exec: {command: 'false'}"),
            "user u1: exec: the command failed",
        );
        check_error(
            "absent",
            &config(SERVER, "    exec: {command: no-such-plugin}"),
            "user u1: exec: the command cannot",
        );
    }

    /// As Kubernetes' own client reads them.
    #[tokio::test]
    async fn what_kubectl_accepts_is_accepted() {
        let path = std::env::temp_dir().join(format!("conductor-accepted-{}", std::process::id()));
        let token = path.with_extension("token");
        std::fs::write(&token, format!("{TOKEN}\n")).unwrap();
        for user in [
            format!("    token: {TOKEN}"),
            "    token: ''\n    username: ''".to_owned(),
            format!("    tokenFile: {}", token.display()),
        ] {
            std::fs::write(&path, config(SERVER, &user)).unwrap();
            let config = find_cluster(Some(&path), None).await.expect("it can be used");
            connect(config).expect("a client can be made");
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&token).unwrap();
    }

    #[test]
    fn what_a_credential_plugin_prints_is_not_shown() {
        use std::os::unix::process::ExitStatusExt;
        let status = std::process::ExitStatus::from_raw(256);
        let out = std::process::Output { status, stdout: TOKEN.into(), stderr: TOKEN.into() };
        let error = AuthError::AuthExecRun { cmd: format!("get --key {TOKEN}"), out: Box::new(out) };
        let error = one_line(&kube::Error::Auth(error));
        assert!(error.contains("user.exec") && !error.contains("eyJ"), "{error}");
        // A token where the name of its file belongs.
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        let error = AuthError::ReadTokenFile(missing, TOKEN.into());
        let error = one_line(&kube::Error::Auth(error));
        assert!(error.contains("tokenFile") && !error.contains("eyJ"), "{error}");
    }
}
