//! Decides which Secret may hold the administrator's login of which server. Authors of classes and servers name a Secret
//! and a host; that must not suffice to have a password sent there. So an annotation of the Secret lists its hosts, and
//! Secrets that were written for a tenant belong to none.

use super::login_secrets::text;
use super::secret::Password;
use super::server::{Server, default_port};
use conductor::api::database::{ADMIN_HOSTS, DATABASE_ID, GENERATION, GROUP};
use conductor::api::names::{CLAIM_UID, PUBLISHED};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

/// The administrator's name and password.
///
/// # Errors
/// Why this Secret may not be used there, and what to do.
pub(super) fn read(secret: &Secret, server: &Server) -> Result<(String, Password), String> {
    let Server { admin, host, port, .. } = server;
    if is_tenants(secret) {
        return Err("is the login of an application: name a Secret with the administrator's".to_owned());
    }
    let own = address(server);
    let Some(hosts) = secret.annotations().get(ADMIN_HOSTS) else {
        return Err(format!(
            "does not say that it belongs to {host}:{port}: annotate it with {ADMIN_HOSTS}: \"{own}\""
        ));
    };
    if !hosts.split(',').any(|entry| is_host(entry.trim(), server)) {
        return Err(format!(
            "belongs to {hosts}, and its password is not sent to {host}:{port}: add \"{own}\" to its annotation \
             {ADMIN_HOSTS}, or correct spec.host and spec.port"
        ));
    }
    let username = admin.username.clone().or_else(|| text(secret, "username"));
    let username = username.ok_or("has no key username, and spec.admin.username names none")?;
    let key = admin.password_key.as_deref().unwrap_or("password");
    if !is_password_key(key, &username) {
        return Err(format!(
            "has a key {key} whose name is not that of a password: let spec.admin.passwordKey name \
             one with password in it, or the administrator's name"
        ));
    }
    let password = text(secret, key).ok_or_else(|| format!("has no key {key}"))?;
    Ok((username, Password::new(password)))
}

/// A host and a port in the annotation's notation.
pub(super) fn address(server: &Server) -> String {
    let Server { host, port, dialect, .. } = server;
    match (*port == default_port(*dialect), host.contains(':')) {
        (true, _) => host.clone(),
        (false, true) => format!("[{host}]:{port}"),
        (false, false) => format!("{host}:{port}"),
    }
}

/// Whether an entry matches this server. Without a port it matches the engine's default port only: one address may serve
/// several owners' servers, by port. `*.example.com` matches every host of that domain.
fn is_host(entry: &str, server: &Server) -> bool {
    let usual = default_port(server.dialect);
    let (host, port) = match entry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, Some(usual)),
        Some((host, port)) => (host, port.strip_prefix(':').and_then(|port| port.parse().ok())),
        None if entry.matches(':').count() == 1 => {
            entry.split_once(':').map_or((entry, None), |(host, port)| (host, port.parse().ok()))
        }
        None => (entry, Some(usual)),
    };
    let plain = |host: &str| host.trim_end_matches('.').to_ascii_lowercase();
    let (own, meant) = (plain(&server.host), plain(host));
    let is_meant = match meant.strip_prefix('*') {
        Some(domain) => {
            domain.starts_with('.') && domain.len() > 1 && own.ends_with(domain) && own.len() > domain.len()
        }
        None => own == meant,
    };
    !meant.is_empty() && is_meant && port == Some(server.port)
}

/// Whether it was published for a claim, or is one of our login Secrets: a tenant reads it, or wrote its content.
fn is_tenants(secret: &Secret) -> bool {
    let (labels, annotations) = (secret.labels(), secret.annotations());
    let is_binding = secret.type_.as_deref().is_some_and(|kind| kind.starts_with("servicebinding.io/"));
    let is_claims = secret.owner_references().iter().any(|owner| {
        let is_ours = owner.api_version.starts_with(GROUP) && !owner.kind.ends_with("Server");
        is_ours || owner.kind.ends_with("Claim")
    });
    let has_label = [PUBLISHED, DATABASE_ID].iter().any(|label| labels.contains_key(*label));
    has_label
        || [CLAIM_UID, GENERATION].iter().any(|note| annotations.contains_key(*note))
        || is_binding
        || is_claims
}

/// Neither a connection string nor a host is a password. Some operators name a password after its user.
fn is_password_key(key: &str, username: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    key == username || ["pass", "pwd"].iter().any(|part| lower.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor::api::database::logical::{ServerKind, ServerRef};
    use conductor::api::database::server::{AdminRef, SslMode};
    use conductor_sql_plan::Policy;
    use conductor_sql_plan::sql::Dialect;
    use serde_json::{Value, json};

    fn server(host: &str, port: u16, key: Option<&str>) -> Server {
        Server {
            reference: ServerRef { kind: ServerKind::DatabaseServer, name: "main".to_owned() },
            dialect: Dialect::Postgresql,
            host: host.to_owned(),
            port,
            ssl_mode: SslMode::Disable,
            admin: AdminRef { password_key: key.map(str::to_owned), ..AdminRef::default() },
            policy: Policy::read(None).expect("a default policy"),
            offer: None,
            identity: None,
        }
    }

    fn secret(metadata: Value, kind: &str) -> Secret {
        let text = |text: &str| k8s_openapi::ByteString(text.as_bytes().to_vec());
        let keys = ["username", "password", "uri", "root-PassWord", "postgres"];
        let data = keys.iter().map(|key| ((*key).to_owned(), text("postgres"))).collect();
        let metadata = serde_json::from_value(metadata).expect("metadata");
        Secret { metadata, type_: Some(kind.to_owned()), data: Some(data), ..Secret::default() }
    }

    fn of_hosts(hosts: &str) -> Value {
        json!({"annotations": {ADMIN_HOSTS: hosts}})
    }

    #[test]
    fn a_secret_is_used_for_the_hosts_that_it_names_alone() {
        for (hosts, host, port, is_used) in [
            ("a.example", "a.example", 5432, true),
            ("a.example.", "A.Example", 5432, true),
            ("a.example", "a.example", 5433, false),
            ("b, a.example:5433", "a.example", 5433, true),
            ("a.example:5433", "a.example", 5432, false),
            ("*.example", "a.example", 5432, true),
            ("*.example:5433", "x.a.example", 5433, true),
            ("*.example", "aexample", 5432, false),
            ("*.example", "example", 5432, false),
            ("*", "a.example", 5432, false),
            ("*.", "a.example", 5432, false),
            ("", "", 5432, false),
            ("::1", "::1", 5432, true),
            ("[::1]:5433", "::1", 5433, true),
            ("[::1]", "::1", 5433, false),
            ("a.example:x", "a.example", 5432, false),
        ] {
            let found = read(&secret(of_hosts(hosts), "Opaque"), &server(host, port, None));
            assert_eq!(found.is_ok(), is_used, "{hosts} for {host}:{port}");
        }
        for (host, port, own) in [("h", 5432, "h"), ("h", 1, "h:1"), ("::1", 1, "[::1]:1")] {
            let server = server(host, port, None);
            assert_eq!(address(&server), own);
            assert!(read(&secret(of_hosts(own), "Opaque"), &server).is_ok(), "the advice works: {own}");
        }
    }

    #[test]
    fn what_is_not_an_administrators_is_refused_with_the_fix() {
        let at = server("h", 5433, None);
        let why = |metadata: Value, kind: &str| {
            read(&secret(metadata, kind), &at).map(|(user, _)| user).expect_err("it is refused")
        };
        assert!(
            why(json!({}), "Opaque")
                .ends_with("annotate it with database.conductor.io/admin-hosts: \"h:5433\"")
        );
        assert!(
            why(of_hosts("h"), "Opaque").starts_with("belongs to h, and its password is not sent to h:5433")
        );
        let owned = |api: &str, kind: &str| {
            let mut metadata = of_hosts("h:5433");
            metadata["ownerReferences"] = json!([{"apiVersion": api, "kind": kind, "name": "x", "uid": "u"}]);
            metadata
        };
        let labelled = |label: &str| json!({"annotations": {ADMIN_HOSTS: "h:5433"}, "labels": {label: "x"}});
        for (metadata, kind) in [
            (labelled(PUBLISHED), "Opaque"),
            (labelled(DATABASE_ID), "Opaque"),
            (json!({"annotations": {ADMIN_HOSTS: "h:5433", CLAIM_UID: "u"}}), "Opaque"),
            (of_hosts("h:5433"), "servicebinding.io/postgresql"),
            (owned("storage.conductor.io/v1alpha1", "RelationalDatabaseClaim"), "Opaque"),
            (owned("database.conductor.io/v1alpha1", "LogicalDatabase"), "Opaque"),
        ] {
            let message = why(metadata.clone(), kind);
            assert!(message.starts_with("is the login of an application"), "{metadata} {message}");
        }
        let local = owned("database.conductor.io/v1alpha1", "LocalServer");
        assert!(read(&secret(local, "Opaque"), &at).is_ok(), "what Conductor runs itself");
    }

    #[test]
    fn only_a_key_that_is_named_as_a_password_is_sent() {
        for (key, is_sent) in
            [(None, true), (Some("root-PassWord"), true), (Some("postgres"), true), (Some("uri"), false)]
        {
            let found = read(&secret(of_hosts("h"), "Opaque"), &server("h", 5432, key));
            assert_eq!(found.is_ok(), is_sent, "{key:?}");
        }
    }
}
