//! Reads kubeconfigs and refuses invalid ones before the client library reads them, because it panics on some. Each
//! message names the file, the user or cluster, the field and what to do, and shows no value: an invalid line may hold a
//! token or a key. Accepts what Kubernetes' own client accepts: line breaks in base64, empty fields.

use super::connect::ConnectError;
use super::exec_plugin;
use super::token_file::TokenFile;
use http::{HeaderValue, Uri};
use kube::client::{ConfigExt, RustlsTlsError};
use kube::config::{
    AuthInfo, AuthProviderConfig, Cluster, Config, KubeConfigOptions, Kubeconfig, KubeconfigError,
    LoadDataError,
};
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Merged kubeconfigs, and the file of each user and cluster.
pub(super) struct Kubeconfigs {
    merged: Kubeconfig,
    paths: Vec<PathBuf>,
    users: BTreeMap<String, PathBuf>,
    clusters: BTreeMap<String, PathBuf>,
}

/// An invalid field.
#[derive(Debug)]
struct Wrong {
    field: &'static str,
    why: String,
}

impl Wrong {
    fn new(field: &'static str, why: impl Into<String>) -> Wrong {
        Wrong { field, why: why.into() }
    }
}

impl Kubeconfigs {
    /// Reads and merges files; of what several define, the first wins.
    pub fn read(paths: Vec<PathBuf>) -> Result<Kubeconfigs, ConnectError> {
        let mut all = Kubeconfigs {
            merged: Kubeconfig::default(),
            paths: Vec::new(),
            users: BTreeMap::new(),
            clusters: BTreeMap::new(),
        };
        for path in paths {
            let failed = |error| refused(&path, &without_content(&error));
            let read = Kubeconfig::read_from(&path).map_err(failed)?;
            for user in &read.auth_infos {
                all.users.entry(user.name.clone()).or_insert_with(|| path.clone());
            }
            for cluster in &read.clusters {
                all.clusters.entry(cluster.name.clone()).or_insert_with(|| path.clone());
            }
            all.merged = all.merged.merge(read).map_err(failed)?;
            all.paths.push(path);
        }
        Ok(all)
    }

    /// The configuration of a context, with credentials that the client library can use.
    pub async fn config(mut self, context: Option<&str>) -> Result<Config, ConnectError> {
        let (user, cluster) = self.names_in(context);
        let user_error = self.explains(&self.users, "user", user.as_deref());
        let cluster_error = self.explains(&self.clusters, "cluster", cluster.as_deref());
        let mut has_proxy = false;
        let find_cluster =
            self.merged.clusters.iter_mut().find(|named| Some(&named.name) == cluster.as_ref());
        if let Some(cluster) = find_cluster.and_then(|named| named.cluster.as_mut()) {
            prepare_cluster(cluster).map_err(&cluster_error)?;
            has_proxy = cluster.proxy_url.as_ref().is_some_and(|proxy| !proxy.is_empty());
        }
        let find_user = self.merged.auth_infos.iter_mut().find(|named| Some(&named.name) == user.as_ref());
        if let Some(user) = find_user.and_then(|named| named.auth_info.as_mut()) {
            prepare_user(user).map_err(&user_error)?;
        }
        let all: Vec<String> = self.paths.iter().map(|path| path.display().to_string()).collect();
        let options =
            KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
        let failed = |error: KubeconfigError| match of_field(&error) {
            Some((true, wrong)) => user_error(wrong),
            Some((false, wrong)) => cluster_error(wrong),
            None => ConnectError(format!("kubeconfig {}: {}", all.join(", "), without_content(&error))),
        };
        let mut config = Config::from_custom_kubeconfig(self.merged, &options).await.map_err(failed)?;
        // As Kubernetes' own client, use no proxy for this machine.
        if !has_proxy && is_loopback(&config.cluster_url) {
            config.proxy_url = None;
        }
        if config.proxy_url.is_some() {
            let why = "it, or HTTPS_PROXY, names a proxy, and proxies are not supported: unset it and reach the API server \
                       without one";
            return Err(cluster_error(Wrong::new("proxy-url", why)));
        }
        check_authority(&config).map_err(&cluster_error)?;
        check_identity(&config).map_err(&user_error)?;
        let user = exec_plugin::with_lasting_token(config.auth_info).await;
        config.auth_info = user.map_err(|why| user_error(Wrong::new("exec", why)))?;
        Ok(config)
    }

    /// The names of the user and the cluster of a context.
    fn names_in(&self, context: Option<&str>) -> (Option<String>, Option<String>) {
        let name = context.or(self.merged.current_context.as_deref());
        let found = self.merged.contexts.iter().find(|named| Some(named.name.as_str()) == name);
        match found.and_then(|named| named.context.as_ref()) {
            Some(context) => (context.user.clone(), Some(context.cluster.clone())),
            None => (None, None),
        }
    }

    /// Creates errors about the fields of a user or of a cluster.
    fn explains(
        &self,
        files: &BTreeMap<String, PathBuf>,
        what: &'static str,
        name: Option<&str>,
    ) -> impl Fn(Wrong) -> ConnectError + use<> {
        let name = name.unwrap_or_default().to_owned();
        let file = files.get(&name).or(self.paths.first()).cloned().unwrap_or_default();
        move |Wrong { field, why }| refused(&file, &format!("{what} {name}: {field}: {why}"))
    }
}

fn refused(path: &Path, why: &str) -> ConnectError {
    ConnectError(format!("kubeconfig {}: {why}", path.display()))
}

fn prepare_cluster(cluster: &mut Cluster) -> Result<(), Wrong> {
    cluster.certificate_authority_data.as_mut().map(join_lines);
    drop_empty(&mut cluster.certificate_authority_data);
    drop_empty(&mut cluster.certificate_authority);
    drop_empty(&mut cluster.tls_server_name);
    let is_name = |name: &String| rustls::pki_types::ServerName::try_from(name.as_str()).is_ok();
    if cluster.tls_server_name.as_ref().is_some_and(|name| !is_name(name)) {
        return Err(Wrong::new("tls-server-name", "it is not the name of a host"));
    }
    let Some(server) = &cluster.server else { return Ok(()) };
    let help = "write https://HOST:PORT without spaces and line breaks";
    let uri: Uri = server.parse().map_err(|_| Wrong::new("server", format!("it is not a URL: {help}")))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("https" | "http"), Some(host)) if !host.is_empty() => Ok(()),
        (_, _) => Err(Wrong::new("server", format!("it is not the URL of an API server: {help}"))),
    }
}

fn is_loopback(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// Repairs what Kubernetes' own client would accept, and refuses what no request can carry.
fn prepare_user(user: &mut AuthInfo) -> Result<(), Wrong> {
    user.client_certificate_data.as_mut().map(join_lines);
    if let Some(data) = &user.client_key_data {
        let mut text = data.expose_secret().to_owned();
        join_lines(&mut text);
        user.client_key_data = Some(SecretString::from(text));
    }
    let is_empty = |secret: &SecretString| secret.expose_secret().is_empty();
    user.token = user.token.take().filter(|token| !is_empty(token));
    user.client_key_data = user.client_key_data.take().filter(|data| !is_empty(data));
    for field in [
        &mut user.token_file,
        &mut user.username,
        &mut user.client_certificate,
        &mut user.client_certificate_data,
        &mut user.client_key,
    ] {
        drop_empty(field);
    }
    if let Some(token) = &user.token {
        check_header("token", token.expose_secret())?;
    }
    if let Some(username) = &user.username {
        check_basic("username", username)?;
        if username.contains(':') {
            return Err(Wrong::new("username", "basic authentication allows no colon in it"));
        }
    }
    if let Some(password) = &user.password {
        check_basic("password", password.expose_secret())?;
    }
    if let Some(file) = &user.token_file {
        TokenFile::open(Path::new(file)).map_err(|why| Wrong::new("tokenFile", why))?;
    }
    for (field, value) in [("as", &user.impersonate), ("as-uid", &user.impersonate_uid)] {
        value.iter().try_for_each(|value| check_header(field, value))?;
    }
    let groups = user.impersonate_groups.iter().flatten();
    groups.into_iter().try_for_each(|group| check_header("as-groups", group))?;
    let extra = user.impersonate_user_extra.iter().flat_map(|extra| extra.values().flatten());
    extra.into_iter().try_for_each(|value| check_header("as-user-extra", value))?;
    user.auth_provider.as_ref().map_or(Ok(()), check_provider)
}

/// A value that is sent in a header unchanged.
fn check_header(field: &'static str, value: &str) -> Result<(), Wrong> {
    unfit_for_header(value).map_or(Ok(()), |why| Err(Wrong::new(field, why)))
}

/// Why a value cannot be sent in a header, and what to do.
pub(super) fn unfit_for_header(value: &str) -> Option<String> {
    if HeaderValue::from_str(value).is_ok() {
        return None;
    }
    Some(if value.trim().chars().all(|c| c.is_ascii_graphic() || c == ' ') {
        "it begins or ends with a line break, which no request can carry: write it on one line (in YAML, `|` adds a \
         line break at the end)"
            .to_owned()
    } else {
        "it holds a line break or another character that no request can carry: copy it again, on one line"
            .to_owned()
    })
}

/// A value that is sent in base64: the API server would refuse the login without saying why.
fn check_basic(field: &'static str, value: &str) -> Result<(), Wrong> {
    match value.chars().any(char::is_control) {
        true => {
            Err(Wrong::new(field, "it holds a line break or another control character: write it on one line"))
        }
        false => Ok(()),
    }
}

/// Of the plugins that `kubectl` once had, only tokens in the file are used.
fn check_provider(provider: &AuthProviderConfig) -> Result<(), Wrong> {
    let removed = |name: &str| {
        let why = format!(
            "{name} was removed from kubectl: use the credential plugin of your provider, in user.exec"
        );
        Err(Wrong::new("auth-provider", why))
    };
    match provider.name.as_str() {
        "oidc" if !provider.config.contains_key("id-token") => {
            Err(Wrong::new("auth-provider", "it has no id-token: log in again"))
        }
        "oidc" | "gcp" if !provider.config.contains_key("cmd-path") => {
            let tokens = ["id-token", "access-token"].into_iter().filter_map(|key| provider.config.get(key));
            tokens.into_iter().try_for_each(|token| check_header("auth-provider", token))
        }
        "gcp" => removed("a command in auth-provider gcp"),
        _ => removed("this auth-provider"),
    }
}

/// Whether the certificates of the authority can be used.
fn check_authority(config: &Config) -> Result<(), Wrong> {
    match &config.root_cert {
        None => return Ok(()),
        Some(none) if none.is_empty() => {
            return Err(Wrong::new("certificate-authority", "it holds no certificate: it must be PEM"));
        }
        Some(_) => {}
    }
    let mut alone = config.clone();
    alone.auth_info = AuthInfo::default();
    let checked = alone.rustls_client_config();
    let why = "it holds a certificate that cannot be read: copy it again";
    checked.map(drop).map_err(|_| Wrong::new("certificate-authority", why))
}

/// Whether the client's certificate and key can be used. Runs no command and reads no token.
fn check_identity(config: &Config) -> Result<(), Wrong> {
    let user = &config.auth_info;
    let alone = AuthInfo {
        client_certificate: user.client_certificate.clone(),
        client_certificate_data: user.client_certificate_data.clone(),
        client_key: user.client_key.clone(),
        client_key_data: user.client_key_data.clone(),
        ..AuthInfo::default()
    };
    // `check_authority` has checked the certificates of the authority.
    let mut unchecked = config.clone();
    (unchecked.auth_info, unchecked.root_cert) = (alone, Some(Vec::new()));
    let checked = unchecked.rustls_client_config();
    checked.map(drop).map_err(|error| match error {
        kube::Error::InferKubeconfig(error) => match of_field(&error) {
            Some((_, wrong)) => wrong,
            None => Wrong::new("client-certificate", without_content(&error)),
        },
        kube::Error::RustlsTls(error) => match error {
            RustlsTlsError::MissingPrivateKey => {
                Wrong::new("client-key", "it holds no private key: it must be PEM of PKCS#8, PKCS#1 or SEC1")
            }
            RustlsTlsError::MissingCertificate => {
                Wrong::new("client-certificate", "it holds no certificate: it must be PEM")
            }
            RustlsTlsError::InvalidPrivateKey(rustls::Error::InconsistentKeys(_)) => Wrong::new(
                "client-key",
                "it does not belong to client-certificate: take both from the same place",
            ),
            RustlsTlsError::InvalidPrivateKey(_) | RustlsTlsError::UnknownPrivateKeyFormat => Wrong::new(
                "client-key",
                "it is of a kind that cannot be used: it must be RSA, ECDSA or Ed25519",
            ),
            // The library's text may quote a line.
            _ => Wrong::new("client-certificate", "it is not PEM, or client-key is not: copy both again"),
        },
        _ => Wrong::new("client-certificate", "it cannot be used together with client-key"),
    })
}

/// Go reads base64 across lines.
fn join_lines(data: &mut String) {
    data.retain(|c| !matches!(c, '\r' | '\n'));
}

/// To Go, an empty field is an absent one.
fn drop_empty(field: &mut Option<String>) {
    *field = field.take().filter(|value| !value.is_empty());
}

/// The field that an error of the library is about, and whether it is the user's rather than the cluster's.
fn of_field(error: &KubeconfigError) -> Option<(bool, Wrong)> {
    let unusable = |error: &LoadDataError| match error {
        LoadDataError::ReadFile(error, path) => format!("cannot read {}: {error}", path.display()),
        LoadDataError::NoBase64DataOrFile => "it is missing".to_owned(),
        LoadDataError::DecodeBase64(_) => "its data is not base64: copy it again".to_owned(),
    };
    Some(match error {
        KubeconfigError::LoadCertificateAuthority(error) => {
            (false, Wrong::new("certificate-authority", unusable(error)))
        }
        KubeconfigError::LoadClientCertificate(error) => {
            (true, Wrong::new("client-certificate", unusable(error)))
        }
        KubeconfigError::LoadClientKey(error) => (true, Wrong::new("client-key", unusable(error))),
        KubeconfigError::ParseCertificates(_) => {
            (false, Wrong::new("certificate-authority", "it is not PEM: copy it again"))
        }
        _ => return None,
    })
}

/// What is wrong with a kubeconfig, and where, without any of its content.
pub(super) fn without_content(error: &KubeconfigError) -> String {
    if let Some((_, Wrong { field, why })) = of_field(error) {
        return format!("{field}: {why}");
    }
    match error {
        KubeconfigError::Parse(error) => {
            let at = error.location().map(|at| format!("line {}, column {}: ", at.line(), at.column()));
            let at = at.unwrap_or_default();
            format!(
                "{at}this is not YAML of a kubeconfig; repair it there (the line is not shown, it may hold a secret)"
            )
        }
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
