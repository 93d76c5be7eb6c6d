//! TLS by rustls, with libpq's modes: `prefer` and `require` accept any certificate, `verify-ca` and `verify-full` require
//! one that this machine trusts. Deliberately stricter than libpq: `verify-ca` checks the host's name too.

use crate::{Error, SslMode};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// The TLS settings of a mode; none for plain connections.
///
/// # Errors
/// This machine trusts no certificates.
pub(crate) fn client_config(mode: SslMode) -> Result<Option<ClientConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Unsupported(format!("TLS cannot be set up: {error}")))?;
    Ok(match mode {
        SslMode::Disable => None,
        SslMode::Prefer | SslMode::Require => {
            let any = Arc::new(AnyCertificate(provider));
            Some(builder.dangerous().with_custom_certificate_verifier(any).with_no_client_auth())
        }
        SslMode::VerifyCa | SslMode::VerifyFull => {
            Some(builder.with_root_certificates(trusted()?).with_no_client_auth())
        }
    })
}

fn trusted() -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match roots.is_empty() {
        true => Err(Error::Unsupported(
            "sslmode verify-full: this machine trusts no certificates: install ca-certificates".to_owned(),
        )),
        false => Ok(roots),
    }
}

/// Accepts any certificate, and still checks that the server has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
