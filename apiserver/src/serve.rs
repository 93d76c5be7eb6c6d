//! The API on a socket: HTTPS with a certificate made for this start, HTTP/1.1 and HTTP/2. Loopback only, unless an
//! option allows others. How many connections there are, and how long one may do nothing, is the matter of the package
//! `conductor-connections`.

use super::api::Api;
use super::credentials::Credentials;
use super::service::{Service, is_public};
use super::token::Tokens;
use super::{Error, Options, User};
use conductor_connections::{Connections, Limits, Stream};
use http::{StatusCode, Uri};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// How long a client may take to send a request and to take the answer before it has shown a known token: longer than
/// the body of a request may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(90);

/// A running server. Dropped, it stops.
pub struct Served {
    /// Where it listens.
    pub address: SocketAddr,
    /// A kubeconfig of the administrator. It holds a secret.
    pub kubeconfig: String,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Served {
    /// Stops listening, ends connections and waits for both.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            // It ends by itself; a panic in it has been logged already.
            let _ = task.await;
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Listens and serves until the answer is dropped.
pub(super) async fn serve(
    api: Arc<Api>,
    options: &Options,
    folder: Option<&Path>,
    listen: SocketAddr,
) -> Result<Served, Error> {
    if !listen.ip().is_loopback() && !options.listen_anywhere {
        return Err(Error::NotLoopback(listen));
    }
    let credentials = Credentials::open(folder).map_err(Error::Certificate)?;
    let listener = bind(listen, credentials.port).await.map_err(|error| Error::Listen(listen, error))?;
    let address = listener.local_addr().map_err(|error| Error::Listen(listen, error))?;
    credentials.keep(address.port()).map_err(|error| Error::Data(error.to_string()))?;
    let Credentials { token, authority, .. } = credentials;
    let identity = Identity::make(address.ip(), authority).map_err(Error::Certificate)?;
    let token = options.token.clone().unwrap_or(token);
    let kubeconfig = kubeconfig(address, &identity.authority, &token);
    let admin = std::iter::once((token, User::admin()));
    let tokens = Arc::new(Tokens::new(admin.chain(options.tokens.iter().cloned())));
    let acceptor = identity.acceptor().map_err(Error::Certificate)?;
    let stop = CancellationToken::new();
    let service = Service::guarded(api, tokens);
    let connections = Connections::new(limits(options), identifies);
    let handshake = move |stream: TcpStream| {
        let acceptor = acceptor.clone();
        async move {
            let io = acceptor.accept(stream).await.ok()?;
            let http2 = io.get_ref().1.alpn_protocol() == Some(b"h2");
            Some(Stream { io, http2 })
        }
    };
    let served = conductor_connections::serve(listener, connections, stop.clone(), handshake, service);
    let task = tokio::spawn(served);
    Ok(Served { address, kubeconfig, stop, task: Some(task) })
}

/// Binds the requested address; with port 0 the port of the last start if it is free.
async fn bind(listen: SocketAddr, last: Option<u16>) -> std::io::Result<TcpListener> {
    if let Some(port) = last.filter(|_| listen.port() == 0)
        && let Ok(listener) = TcpListener::bind((listen.ip(), port)).await
    {
        return Ok(listener);
    }
    TcpListener::bind(listen).await
}

/// How many connections there are at a time, and how long they may do nothing.
fn limits(options: &Options) -> Limits {
    Limits {
        connections_max: options.connections_max,
        unidentified_max: options.strangers_max,
        first_request_within: options.greet_within,
        idle_max: options.idle_max,
        response_within: ANSWER_WITHIN,
    }
}

/// Whether the answer to a request says that its client showed a known token.
fn identifies(uri: &Uri, status: StatusCode) -> bool {
    !is_public(uri.path()) && status != StatusCode::UNAUTHORIZED
}

/// A certificate and who signed it.
struct Identity {
    authority: String,
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Identity {
    /// Signed with the authority's key: a client that trusts an earlier certificate of it trusts this one.
    fn make(address: IpAddr, authority_key: KeyPair) -> Result<Identity, String> {
        let text = |error: rcgen::Error| error.to_string();
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "conductor-embedded-ca");
        let authority_certificate = authority.self_signed(&authority_key).map_err(text)?;
        let issuer = Issuer::new(authority, authority_key);
        let names = vec!["localhost".to_owned(), "kubernetes.default.svc".to_owned()];
        let mut own = CertificateParams::new(names).map_err(text)?;
        own.distinguished_name.push(DnType::CommonName, "conductor-embedded-api");
        for address in [address, IpAddr::from([127, 0, 0, 1])] {
            own.subject_alt_names.push(SanType::IpAddress(address));
        }
        let key = KeyPair::generate().map_err(text)?;
        let certificate = own.signed_by(&key, &issuer).map_err(text)?;
        Ok(Identity {
            authority: authority_certificate.pem(),
            certificate: certificate.der().clone(),
            key: key.serialize_der(),
        })
    }

    fn acceptor(self) -> Result<TlsAcceptor, String> {
        let text = |error: rustls::Error| error.to_string();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key));
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(text)?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate], key)
            .map_err(text)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn kubeconfig(address: SocketAddr, authority: &str, token: &str) -> String {
    use base64::Engine;
    let authority = base64::engine::general_purpose::STANDARD.encode(authority);
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: conductor\n  cluster:\n    server: https://{address}\n    \
         certificate-authority-data: {authority}\nusers:\n- name: admin\n  user:\n    token: {token}\ncontexts:\n- \
         name: conductor\n  context:\n    cluster: conductor\n    user: admin\ncurrent-context: conductor\n"
    )
}
