//! The two Secrets of a login: the *rotation state*, which holds its passwords, and the *login*, from which the
//! application's connection is published; for an extra login on a database that is the connection itself. Both are read
//! live, written whole, and never adopted from another owner.

use super::access::Access;
use super::api_client::{ApiClient, ledger_name};
use super::clock;
use super::error::Error;
use super::secret::Password;
use super::server::Server;
use conductor::api::database::{DATABASE_ID, GENERATION, REVOKED, TROUBLE};
use conductor::api::names::PUBLISHED;
use conductor_sql_plan::names::User;
use conductor_sql_plan::rotation_state::{Pending, RotationState};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::ResourceExt;
use kube::api::Api;
use std::collections::BTreeMap;

/// The owners of the two Secrets.
#[derive(Clone, Debug)]
pub(super) struct Owners {
    pub id: String,
    /// The LogicalDatabase, which owns the rotation state.
    pub record: OwnerReference,
    /// The login Secret, by namespace and name.
    pub login: (String, String),
    /// The resource, whose Secrets may be published to its claims; or the role.
    pub login_owner: OwnerReference,
    /// Whether applications read the login Secret itself: then it has every key of a connection.
    pub is_connection: bool,
    /// Whether the login is only being removed: then a foreign Secret is ignored.
    pub is_ending: bool,
    /// The Secret that the application reads, by namespace and name.
    pub application: Option<(String, String)>,
}

/// The Secret that an application reads and that does not hold its login.
pub(super) struct Undelivered {
    pub secret: String,
    /// Whether it is not Conductor's.
    pub is_taken: bool,
}

/// The Secrets of a database's logins.
pub(super) struct LoginSecrets {
    owners: Owners,
    state_secret: Option<Secret>,
    login: Option<Secret>,
    /// Why the Secret with the login's name is not ours.
    in_the_way: Option<String>,
    /// The Secret that the application holds.
    delivered: Option<Secret>,
    /// The server's current host, port and TLS mode. A login with others counts as unpublished.
    address: Option<[String; 3]>,
    pub state: Option<RotationState>,
}

impl LoginSecrets {
    /// Reads both.
    pub async fn open(cluster: &ApiClient, owners: Owners) -> Result<LoginSecrets, Error> {
        let api = cluster.secrets();
        let state_secret = cluster.find(&api, &ledger_name(&owners.id)).await?;
        let login = cluster.find(&cluster.secrets_in(&owners.login.0), &owners.login.1).await?;
        let is_ours = |secret: &Secret| secret.labels().get(DATABASE_ID) == Some(&owners.id);
        let login = login.filter(|login| !owners.is_ending || is_ours(login));
        if let Some(state_secret) = state_secret.as_ref().filter(|state_secret| !is_ours(state_secret)) {
            return Err(Error::Invalid(taken(state_secret, owners.is_connection)));
        }
        let in_the_way = login.as_ref().filter(|login| !is_ours(login));
        let in_the_way = in_the_way.map(|login| taken(login, owners.is_connection));
        let login = login.filter(is_ours);
        let delivered = match &owners.application {
            // A tenant chooses its name: an unreadable one was not delivered, and holds nothing else up.
            Some((namespace, name)) => cluster
                .find(&Api::namespaced(cluster.client.clone(), namespace), name)
                .await
                .unwrap_or_default(),
            None => None,
        };
        let mut secrets =
            LoginSecrets { owners, state_secret, login, in_the_way, delivered, address: None, state: None };
        secrets.read_state();
        Ok(secrets)
    }

    /// From here on, a published login counts only if it has this server's current address.
    pub fn compare_with(&mut self, server: &Server) {
        let ssl = server.ssl_mode.word().to_owned();
        self.address = Some([server.host.clone(), server.port.to_string(), ssl]);
        self.read_state();
    }

    /// Whether a login has the server's current address, and a password of ours.
    fn is_current(&self, login: &Secret, state_secret: &Secret) -> bool {
        let held = ["host", "port", "sslMode"].map(|key| text(login, key).unwrap_or_default());
        let password = text(login, "password");
        let is_ours = ["password", "pendingPassword"].iter().any(|key| text(state_secret, key) == password);
        password.is_some() && is_ours && self.address.as_ref().is_none_or(|now| *now == held)
    }

    /// Refuses a step where a foreign Secret has the login's name. Tenants can create one, so it never holds up the
    /// revocation of a login.
    pub fn allow(&self, is_revocation: bool) -> Result<(), Error> {
        match &self.in_the_way {
            Some(why) if !is_revocation => Err(Error::Invalid(why.clone())),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether either Secret exists.
    pub fn has_secrets(&self) -> bool {
        self.state_secret.is_some() || self.login.is_some()
    }

    fn read_state(&mut self) {
        let Some(secret) = &self.state_secret else {
            self.state = None;
            return;
        };
        let number = |key: &str| text(secret, key).and_then(|text| text.parse().ok()).unwrap_or(0_u64);
        let pending = text(secret, "pendingUser").and_then(|letter| User::find(&letter));
        let published = self.login.as_ref().filter(|login| self.is_current(login, secret));
        let published = published.and_then(|login| login.annotations().get(GENERATION)?.parse().ok());
        let held = if self.owners.is_connection { &self.login } else { &self.delivered };
        let held = held.as_ref().and_then(|secret| text(secret, "password"));
        let delivered = match held.is_some() && held == text(secret, "password") {
            true => number("generation"),
            false => 0,
        };
        self.state = Some(RotationState {
            delivered,
            active: text(secret, "user").and_then(|letter| User::find(&letter)),
            generation: number("generation"),
            rotated_at: text(secret, "rotatedAt").and_then(|text| clock::read(&text)),
            pending: pending.map(|user| Pending { user, generation: number("pendingGeneration") }),
            published: published.unwrap_or(0),
            answered: text(secret, "answered"),
            revoked: text(secret, "revoked"),
            done: text(secret, "done"),
        });
    }

    /// The password of a rotation.
    pub fn password(&self, generation: u64) -> Result<Password, Error> {
        let lost =
            || Error::Invalid("no password is stored for this rotation: rotate the login again".to_owned());
        let (secret, state) =
            (self.state_secret.as_ref().ok_or_else(lost)?, self.state.as_ref().ok_or_else(lost)?);
        let key = match &state.pending {
            Some(pending) if pending.generation == generation => "pendingPassword",
            _ if state.generation == generation => "password",
            _ => return Err(lost()),
        };
        text(secret, key).map(Password::new).ok_or_else(lost)
    }

    /// Generates a password and stores it.
    pub async fn store_pending(
        &mut self,
        cluster: &ApiClient,
        (user, generation, answers): (User, u64, Option<&str>),
        length: usize,
    ) -> Result<(), Error> {
        let password = Password::make(length);
        let answered = answers.map(str::to_owned).or_else(|| self.field("answered"));
        let change = [
            ("pendingUser", Some(user.letter().to_owned())),
            ("pendingGeneration", Some(generation.to_string())),
            ("pendingPassword", Some(password.expose().to_owned())),
            ("answered", answered),
        ];
        self.write(cluster, change).await
    }

    /// Closes a rotation: the pending login becomes the active one.
    pub async fn promote(&mut self, cluster: &ApiClient, user: User, generation: u64) -> Result<(), Error> {
        let password = self.password(generation)?;
        let change = [
            ("user", Some(user.letter().to_owned())),
            ("generation", Some(generation.to_string())),
            ("password", Some(password.expose().to_owned())),
            ("rotatedAt", Some(clock::write(clock::now()))),
            ("pendingUser", None),
            ("pendingGeneration", None),
            ("pendingPassword", None),
        ];
        self.write(cluster, change).await
    }

    /// Records that every login was revoked for a request. Their passwords are discarded, so that no later step can restore
    /// one.
    pub async fn note_revoked(&mut self, cluster: &ApiClient, token: &str) -> Result<(), Error> {
        let change = [
            ("revoked", Some(token.to_owned())),
            ("rotatedAt", None),
            ("password", None),
            ("pendingUser", None),
            ("pendingGeneration", None),
            ("pendingPassword", None),
        ];
        self.write(cluster, change).await
    }

    /// Records that a request was carried out.
    pub async fn close_request(&mut self, cluster: &ApiClient, token: &str) -> Result<(), Error> {
        self.write(cluster, [("done", Some(token.to_owned()))]).await
    }

    /// Writes the login for applications.
    pub async fn publish(
        &mut self,
        cluster: &ApiClient,
        access: &Access,
        generation: u64,
    ) -> Result<(), Error> {
        let (user, password) = (access.username.as_str(), access.password.expose());
        let (scheme, host, port) = (access.dialect.word(), access.host.as_str(), access.port);
        let shown = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let ssl = access.ssl_mode.word();
        let query = if scheme == "postgresql" { format!("?sslmode={ssl}") } else { String::new() };
        let uri = format!("{scheme}://{user}:{password}@{shown}:{port}/{}{query}", access.database);
        let port = port.to_string();
        let data = [
            ("host", host),
            ("port", port.as_str()),
            ("username", user),
            ("password", password),
            ("database", access.database.as_str()),
            ("sslMode", ssl),
            ("uri", uri.as_str()),
        ];
        let whole = [("type", kind(access)), ("provider", "conductor")];
        let whole = whole.into_iter().filter(|_| self.owners.is_connection);
        let data: BTreeMap<String, ByteString> =
            data.into_iter().chain(whole).map(|(key, text)| entry(key, text)).collect();
        let note = (GENERATION.to_owned(), generation.to_string());
        let kind = match self.owners.is_connection {
            true => format!("servicebinding.io/{}", kind(access)),
            false => "Opaque".to_owned(),
        };
        self.write_login(cluster, Some((data, kind)), BTreeMap::from([note])).await
    }

    /// Writes into the login Secret why it has no login yet.
    pub async fn report_problem(&mut self, cluster: &ApiClient, why: &str) -> Result<(), Error> {
        let message = self.login.as_ref().and_then(|login| login.annotations().get(TROUBLE).cloned());
        let is_published = self.login.as_ref().is_some_and(|login| login.data.is_some());
        let is_revoked = self.is_revoked();
        // An application that reads the login Secret itself keeps its login until there is another.
        if (is_published && (!is_revoked || self.owners.is_connection)) || message.as_deref() == Some(why) {
            return Ok(());
        }
        let revoked = is_revoked.then(|| (REVOKED.to_owned(), "true".to_owned()));
        let message = (TROUBLE.to_owned(), why.to_owned());
        self.write_login(cluster, None, BTreeMap::from_iter([message].into_iter().chain(revoked))).await
    }

    /// Whether every login was revoked, and no other is active yet.
    fn is_revoked(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.revoked.is_some() && state.rotated_at.is_none())
    }

    /// Why the application does not hold the published login.
    pub fn why_undelivered(&self) -> Option<Undelivered> {
        let (namespace, name) = self.owners.application.as_ref()?;
        let is_ours = |secret: &Secret| {
            let labels = secret.labels();
            labels.contains_key(PUBLISHED) || labels.contains_key(DATABASE_ID)
        };
        let is_taken = self.delivered.as_ref().is_some_and(|secret| !is_ours(secret));
        Some(Undelivered { secret: format!("{namespace}/{name}"), is_taken })
    }

    /// Deletes both: the login first, so that nothing is published from a deleted rotation state.
    pub async fn forget(&mut self, cluster: &ApiClient) -> Result<(), Error> {
        for secret in [self.login.take(), self.state_secret.take()].into_iter().flatten() {
            let api = cluster.secrets_in(&secret.namespace().unwrap_or_default());
            cluster.delete(&api, &secret.name_any(), secret.metadata.uid.clone()).await?;
        }
        self.read_state();
        Ok(())
    }

    fn field(&self, key: &str) -> Option<String> {
        self.state_secret.as_ref().and_then(|secret| text(secret, key))
    }

    async fn write<const N: usize>(
        &mut self,
        cluster: &ApiClient,
        change: [(&str, Option<String>); N],
    ) -> Result<(), Error> {
        let api = cluster.secrets();
        let is_new = self.state_secret.is_none();
        let mut secret = self
            .state_secret
            .clone()
            .unwrap_or_else(|| self.new_secret(ledger_name(&self.owners.id), self.owners.record.clone()));
        let data = secret.data.get_or_insert_default();
        for (key, value) in change {
            match value {
                Some(value) => drop(data.insert(key.to_owned(), ByteString(value.into_bytes()))),
                None => drop(data.remove(key)),
            }
        }
        self.state_secret = Some(match is_new {
            true => cluster.create(&api, &secret).await?,
            false => cluster.replace(&api, &secret).await?,
        });
        self.read_state();
        Ok(())
    }

    async fn write_login(
        &mut self,
        cluster: &ApiClient,
        content: Option<(BTreeMap<String, ByteString>, String)>,
        annotations: BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let (namespace, name) = self.owners.login.clone();
        let api = cluster.secrets_in(&namespace);
        let mut secret = self.new_secret(name, self.owners.login_owner.clone());
        secret.metadata.annotations = Some(annotations);
        if let Some((data, kind)) = content {
            (secret.data, secret.type_) = (Some(data), Some(kind));
        }
        self.login = Some(match &self.login {
            None => cluster.create(&api, &secret).await?,
            Some(found) => {
                secret.metadata.uid.clone_from(&found.metadata.uid);
                secret.metadata.resource_version.clone_from(&found.metadata.resource_version);
                cluster.replace(&api, &secret).await?
            }
        });
        self.read_state();
        Ok(())
    }

    fn new_secret(&self, name: String, owner: OwnerReference) -> Secret {
        let labels = BTreeMap::from([
            (DATABASE_ID.to_owned(), self.owners.id.clone()),
            ("app.kubernetes.io/managed-by".to_owned(), "conductor".to_owned()),
        ]);
        let metadata = ObjectMeta {
            name: Some(name),
            labels: Some(labels),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        };
        Secret { metadata, type_: Some("Opaque".to_owned()), ..Secret::default() }
    }
}

/// The owner of a Secret that is in the way, and the fix. A user chose the name of a connection; others are generated.
fn taken(secret: &Secret, was_chosen: bool) -> String {
    let name = secret.name_any();
    let is_published = secret.labels().contains_key(PUBLISHED) || secret.labels().contains_key(DATABASE_ID);
    let owner = secret.owner_references().first().filter(|_| is_published);
    match (owner, was_chosen) {
        (Some(owner), true) => {
            let (kind, of) = (&owner.kind, &owner.name);
            format!("Secret {name} is the login of {kind} {of}: choose another spec.secretName")
        }
        (None, true) => format!(
            "Secret {name} exists and does not belong to Conductor: choose another spec.secretName, or remove it"
        ),
        (_, false) => format!("Secret {name} exists and does not belong to Conductor: remove it"),
    }
}

/// The kind of database, by its name in bindings.
fn kind(access: &Access) -> &'static str {
    access.dialect.word()
}

fn entry(key: &str, text: &str) -> (String, ByteString) {
    (key.to_owned(), ByteString(text.as_bytes().to_vec()))
}

/// One key of a Secret, if it is text.
pub(super) fn text(secret: &Secret, key: &str) -> Option<String> {
    let bytes = secret.data.as_ref()?.get(key)?;
    String::from_utf8(bytes.0.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_the_way_is_reported_with_its_owner() {
        let secret = |label: Option<&str>, owner: Option<&str>| {
            let labels = label.map(|label| BTreeMap::from([(label.to_owned(), "true".to_owned())]));
            let owner = owner.map(|name| OwnerReference {
                kind: "RelationalDatabaseClaim".to_owned(),
                name: name.to_owned(),
                ..OwnerReference::default()
            });
            let owner_references = owner.map(|owner| vec![owner]);
            let name = Some("orders".to_owned());
            let metadata = ObjectMeta { name, labels, owner_references, ..ObjectMeta::default() };
            Secret { metadata, ..Secret::default() }
        };
        let message = taken(&secret(Some(PUBLISHED), Some("shop-db")), true);
        assert_eq!(
            message,
            "Secret orders is the login of RelationalDatabaseClaim shop-db: choose another spec.secretName"
        );
        for foreign in [secret(None, Some("x")), secret(Some(PUBLISHED), None)] {
            assert!(taken(&foreign, true).contains("choose another spec.secretName"));
        }
        assert_eq!(
            taken(&secret(None, None), false),
            "Secret orders exists and does not belong to Conductor: remove it"
        );
    }
}
