//! The two Secrets of a login: the *ledger*, which holds its passwords, and the *login*, which its application's
//! connection is made of; for an extra login on a database that is the connection itself. Both are read live, written whole, and never adopted where they are somebody else's.

use super::access::Access;
use super::clock;
use super::desk::{Desk, ledger_name};
use super::secret::Password;
use super::server::Server;
use super::trouble::Trouble;
use conductor::api::database::{DATABASE_ID, GENERATION, REVOKED, TROUBLE};
use conductor::api::names::PUBLISHED;
use conductor_sql_plan::ledger::{Ledger, Pending};
use conductor_sql_plan::names::User;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::ResourceExt;
use kube::api::Api;
use std::collections::BTreeMap;

/// Whose Secrets these are.
#[derive(Clone, Debug)]
pub(super) struct Owners {
    pub id: String,
    /// The record: the ledger goes with it.
    pub record: OwnerReference,
    /// The login, by namespace and name.
    pub login: (String, String),
    /// The resource: what it owns may be published to its claims. Or the role that it is for.
    pub login_owner: OwnerReference,
    /// Whether applications read the login itself: then it has everything that a connection has.
    pub is_connection: bool,
    /// Whether it only ends: what is somebody else's is left alone then, and not complained about.
    pub is_ending: bool,
    /// The Secret that its application reads, by namespace and name.
    pub application: Option<(String, String)>,
}

/// The Secret that an application reads and that does not hold its login.
pub(super) struct Undelivered {
    pub secret: String,
    /// Whether it is not Conductor's.
    pub is_taken: bool,
}

/// What is known of a database's logins.
pub(super) struct Book {
    owners: Owners,
    ledger: Option<Secret>,
    login: Option<Secret>,
    /// Whose the Secret is that has the login's name and is not ours.
    in_the_way: Option<String>,
    /// What the application holds.
    delivered: Option<Secret>,
    /// Where the server is now: host, port, protection. A login that leads elsewhere is not published.
    address: Option<[String; 3]>,
    pub state: Option<Ledger>,
}

impl Book {
    /// Reads both.
    pub async fn open(desk: &Desk, owners: Owners) -> Result<Book, Trouble> {
        let api = desk.secrets();
        let ledger = desk.find(&api, &ledger_name(&owners.id)).await?;
        let login = desk.find(&desk.secrets_in(&owners.login.0), &owners.login.1).await?;
        let is_ours = |secret: &Secret| secret.labels().get(DATABASE_ID) == Some(&owners.id);
        let login = login.filter(|login| !owners.is_ending || is_ours(login));
        if let Some(ledger) = ledger.as_ref().filter(|ledger| !is_ours(ledger)) {
            return Err(Trouble::Invalid(taken(ledger, owners.is_connection)));
        }
        let in_the_way = login.as_ref().filter(|login| !is_ours(login));
        let in_the_way = in_the_way.map(|login| taken(login, owners.is_connection));
        let login = login.filter(is_ours);
        let delivered = match &owners.application {
            // Its name is the tenant's to write: what cannot be read was not delivered, and holds nothing else up.
            Some((namespace, name)) => {
                desk.find(&Api::namespaced(desk.client.clone(), namespace), name).await.unwrap_or_default()
            }
            None => None,
        };
        let mut book = Book { owners, ledger, login, in_the_way, delivered, address: None, state: None };
        book.read_state();
        Ok(book)
    }

    /// From here on, what is published counts only where it leads to this server as it is now.
    pub fn compare_with(&mut self, server: &Server) {
        let ssl = server.ssl_mode.word().to_owned();
        self.address = Some([server.host.clone(), server.port.to_string(), ssl]);
        self.read_state();
    }

    /// Whether a login leads to where the server is, with a password that is ours.
    fn is_current(&self, login: &Secret, ledger: &Secret) -> bool {
        let held = ["host", "port", "sslMode"].map(|key| text(login, key).unwrap_or_default());
        let password = text(login, "password");
        let is_ours = ["password", "pendingPassword"].iter().any(|key| text(ledger, key) == password);
        password.is_some() && is_ours && self.address.as_ref().is_none_or(|now| *now == held)
    }

    /// Refuses a step where another's Secret has the login's name. Tenants can put one there, so it never holds up the
    /// revocation of a login.
    pub fn allow(&self, is_revocation: bool) -> Result<(), Trouble> {
        match &self.in_the_way {
            Some(why) if !is_revocation => Err(Trouble::Invalid(why.clone())),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether anything is written down.
    pub fn has_secrets(&self) -> bool {
        self.ledger.is_some() || self.login.is_some()
    }

    fn read_state(&mut self) {
        let Some(secret) = &self.ledger else {
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
        self.state = Some(Ledger {
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

    /// The password of a change.
    pub fn password(&self, generation: u64) -> Result<Password, Trouble> {
        let lost =
            || Trouble::Invalid("the ledger has no password for this change: rotate the login".to_owned());
        let (secret, state) = (self.ledger.as_ref().ok_or_else(lost)?, self.state.as_ref().ok_or_else(lost)?);
        let key = match &state.pending {
            Some(pending) if pending.generation == generation => "pendingPassword",
            _ if state.generation == generation => "password",
            _ => return Err(lost()),
        };
        text(secret, key).map(Password::new).ok_or_else(lost)
    }

    /// Thinks of a password and writes it down.
    pub async fn store_pending(
        &mut self,
        desk: &Desk,
        (user, generation, answers): (User, u64, Option<&str>),
        length: usize,
    ) -> Result<(), Trouble> {
        let password = Password::make(length);
        let answered = answers.map(str::to_owned).or_else(|| self.field("answered"));
        let change = [
            ("pendingUser", Some(user.letter().to_owned())),
            ("pendingGeneration", Some(generation.to_string())),
            ("pendingPassword", Some(password.expose().to_owned())),
            ("answered", answered),
        ];
        self.write(desk, change).await
    }

    /// Closes a change: what was pending is in use.
    pub async fn promote(&mut self, desk: &Desk, user: User, generation: u64) -> Result<(), Trouble> {
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
        self.write(desk, change).await
    }

    /// Notes that every login was revoked for a request. Their passwords are discarded, so that no
    /// later step can restore one.
    pub async fn note_revoked(&mut self, desk: &Desk, token: &str) -> Result<(), Trouble> {
        let change = [
            ("revoked", Some(token.to_owned())),
            ("rotatedAt", None),
            ("password", None),
            ("pendingUser", None),
            ("pendingGeneration", None),
            ("pendingPassword", None),
        ];
        self.write(desk, change).await
    }

    /// Notes that a request has been carried out.
    pub async fn close_request(&mut self, desk: &Desk, token: &str) -> Result<(), Trouble> {
        self.write(desk, [("done", Some(token.to_owned()))]).await
    }

    /// Writes the login that applications get.
    pub async fn publish(&mut self, desk: &Desk, access: &Access, generation: u64) -> Result<(), Trouble> {
        let (user, password) = (access.username.as_str(), access.password.expose());
        let (word, host, port) = (access.dialect.word(), access.host.as_str(), access.port);
        let shown = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let ssl = access.ssl_mode.word();
        let query = if word == "postgresql" { format!("?sslmode={ssl}") } else { String::new() };
        let uri = format!("{word}://{user}:{password}@{shown}:{port}/{}{query}", access.database);
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
        self.write_login(desk, Some((data, kind)), BTreeMap::from([note])).await
    }

    /// Tells in the login Secret why it has nothing to give, where it has nothing yet.
    pub async fn tell(&mut self, desk: &Desk, why: &str) -> Result<(), Trouble> {
        let told = self.login.as_ref().and_then(|login| login.annotations().get(TROUBLE).cloned());
        let is_published = self.login.as_ref().is_some_and(|login| login.data.is_some());
        let is_revoked = self.is_revoked();
        // Who reads a connection itself keeps what it has until there is another.
        if (is_published && (!is_revoked || self.owners.is_connection)) || told.as_deref() == Some(why) {
            return Ok(());
        }
        let revoked = is_revoked.then(|| (REVOKED.to_owned(), "true".to_owned()));
        let told = (TROUBLE.to_owned(), why.to_owned());
        self.write_login(desk, None, BTreeMap::from_iter([told].into_iter().chain(revoked))).await
    }

    /// Whether every login was revoked, and no other is in use yet.
    fn is_revoked(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.revoked.is_some() && state.rotated_at.is_none())
    }

    /// Why the application does not hold the login that is published.
    pub fn why_undelivered(&self) -> Option<Undelivered> {
        let (namespace, name) = self.owners.application.as_ref()?;
        let is_ours = |secret: &Secret| {
            let labels = secret.labels();
            labels.contains_key(PUBLISHED) || labels.contains_key(DATABASE_ID)
        };
        let is_taken = self.delivered.as_ref().is_some_and(|secret| !is_ours(secret));
        Some(Undelivered { secret: format!("{namespace}/{name}"), is_taken })
    }

    /// Removes both: the login first, so that nothing is published of a ledger that is gone.
    pub async fn forget(&mut self, desk: &Desk) -> Result<(), Trouble> {
        for secret in [self.login.take(), self.ledger.take()].into_iter().flatten() {
            let api = desk.secrets_in(&secret.namespace().unwrap_or_default());
            desk.delete(&api, &secret.name_any(), secret.metadata.uid.clone()).await?;
        }
        self.read_state();
        Ok(())
    }

    fn field(&self, key: &str) -> Option<String> {
        self.ledger.as_ref().and_then(|secret| text(secret, key))
    }

    async fn write<const N: usize>(
        &mut self,
        desk: &Desk,
        change: [(&str, Option<String>); N],
    ) -> Result<(), Trouble> {
        let api = desk.secrets();
        let is_new = self.ledger.is_none();
        let mut secret = self
            .ledger
            .clone()
            .unwrap_or_else(|| self.new_secret(ledger_name(&self.owners.id), self.owners.record.clone()));
        let data = secret.data.get_or_insert_default();
        for (key, value) in change {
            match value {
                Some(value) => drop(data.insert(key.to_owned(), ByteString(value.into_bytes()))),
                None => drop(data.remove(key)),
            }
        }
        self.ledger = Some(match is_new {
            true => desk.create(&api, &secret).await?,
            false => desk.replace(&api, &secret).await?,
        });
        self.read_state();
        Ok(())
    }

    async fn write_login(
        &mut self,
        desk: &Desk,
        content: Option<(BTreeMap<String, ByteString>, String)>,
        annotations: BTreeMap<String, String>,
    ) -> Result<(), Trouble> {
        let (namespace, name) = self.owners.login.clone();
        let api = desk.secrets_in(&namespace);
        let mut secret = self.new_secret(name, self.owners.login_owner.clone());
        secret.metadata.annotations = Some(annotations);
        if let Some((data, kind)) = content {
            (secret.data, secret.type_) = (Some(data), Some(kind));
        }
        self.login = Some(match &self.login {
            None => desk.create(&api, &secret).await?,
            Some(found) => {
                secret.metadata.uid.clone_from(&found.metadata.uid);
                secret.metadata.resource_version.clone_from(&found.metadata.resource_version);
                desk.replace(&api, &secret).await?
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

/// Whose a Secret is that is in the way, and what to do. The name of a connection was chosen, others are made here.
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
            "Secret {name} exists and is not Conductor's: choose another spec.secretName, or remove it"
        ),
        (_, false) => format!("Secret {name} exists and is not Conductor's: remove it"),
    }
}

/// The kind of database, as bindings name it.
fn kind(access: &Access) -> &'static str {
    access.dialect.word()
}

fn entry(key: &str, text: &str) -> (String, ByteString) {
    (key.to_owned(), ByteString(text.as_bytes().to_vec()))
}

/// One key of a Secret, where it is text.
pub(super) fn text(secret: &Secret, key: &str) -> Option<String> {
    let bytes = secret.data.as_ref()?.get(key)?;
    String::from_utf8(bytes.0.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_the_way_is_said_to_be_whose_it_is() {
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
        let told = taken(&secret(Some(PUBLISHED), Some("shop-db")), true);
        assert_eq!(
            told,
            "Secret orders is the login of RelationalDatabaseClaim shop-db: choose another spec.secretName"
        );
        for somebodys in [secret(None, Some("x")), secret(Some(PUBLISHED), None)] {
            assert!(taken(&somebodys, true).contains("choose another spec.secretName"));
        }
        assert_eq!(
            taken(&secret(None, None), false),
            "Secret orders exists and is not Conductor's: remove it"
        );
    }
}
