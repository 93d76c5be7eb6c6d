//! Who is who in one control plane: a certificate for the API server, a key for service accounts, a token
//! for the administrator, and a kubeconfig that has them.

use crate::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// The files that make up an identity.
#[derive(Debug)]
pub(crate) struct Identity {
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub account_key: PathBuf,
    pub account_public_key: PathBuf,
    pub tokens: PathBuf,
    pub kubeconfig: PathBuf,
}

impl Identity {
    pub fn create(folder: &Path, api_port: u16) -> Result<Identity, Error> {
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|e| Error::file(&path, e))?;
            Ok::<PathBuf, Error>(path)
        };
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned(), "kubernetes.default.svc".to_owned()];
        let server = rcgen::generate_simple_self_signed(names)?;
        let accounts = rcgen::KeyPair::generate()?;
        // A key is as good a random secret as any, and the only source of randomness here.
        let token = token_of(&rcgen::KeyPair::generate()?);
        let certificate = write("apiserver.crt", &server.cert.pem())?;
        let kubeconfig = kubeconfig(api_port, &certificate, &token);
        Ok(Identity {
            key: write("apiserver.key", &server.signing_key.serialize_pem())?,
            account_key: write("accounts.key", &accounts.serialize_pem())?,
            account_public_key: write("accounts.pub", &accounts.public_key_pem())?,
            tokens: write("tokens.csv", &format!("{token},admin,admin,system:masters\n"))?,
            kubeconfig: write("kubeconfig", &kubeconfig)?,
            certificate,
        })
    }
}

fn token_of(key: &rcgen::KeyPair) -> String {
    key.serialized_der().iter().rev().take(24).map(|byte| format!("{byte:02x}")).collect()
}

fn kubeconfig(api_port: u16, certificate: &Path, token: &str) -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: test
  cluster: {{server: 'https://127.0.0.1:{api_port}', certificate-authority: '{}'}}
users:
- name: admin
  user: {{token: '{token}'}}
contexts:
- name: test
  context: {{cluster: test, user: admin}}
current-context: test
",
        certificate.display()
    )
}
