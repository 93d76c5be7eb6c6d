//! TLS to database servers: `require` takes any certificate, as in database drivers; `verify-full` requires one for the
//! server's name that this machine trusts.

use super::error::Error;
use conductor::api::database::server::SslMode;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// The settings for a mode; none without TLS.
///
/// # Errors
/// This machine trusts no certificates.
pub(super) fn client_config(mode: SslMode) -> Result<Option<ClientConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let failed = |error: rustls::Error| Error::Invalid(format!("TLS cannot be set up: {error}"));
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = builder.map_err(failed)?;
    Ok(match mode {
        SslMode::Disable => None,
        SslMode::Require => {
            let any = Arc::new(AnyCertificate(provider));
            Some(builder.dangerous().with_custom_certificate_verifier(any).with_no_client_auth())
        }
        SslMode::VerifyFull => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                let why = "sslMode verify-full: this machine trusts no certificates; install ca-certificates";
                return Err(Error::Invalid(why.to_owned()));
            }
            Some(builder.with_root_certificates(roots).with_no_client_auth())
        }
    })
}

/// Takes any certificate; signatures are checked all the same.
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
