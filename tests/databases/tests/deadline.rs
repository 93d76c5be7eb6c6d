//! Pools with lasting connections hold up the change of a login. Past its deadline that is reported and counted, for claims
//! and for DatabaseRoles; with `EndSessions` the sessions end and the login changes.

use conductor_databases::{Cluster, Held, Login, Metrics, RealServer, SYSTEM};
use conductor_live::{Controller, until};
use conductor_sql::command;
use conductor_sql_plan::sql::Dialect;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

const OVERDUE: &str = "conductor_database_rotations_overdue";
const BLOCKED: &str = "conductor_database_rotations_blocked";
const FAILED: &str = "conductor_database_rotations_failed_total";

const LONG_AGO: &str = "2020-01-01T00:00:00Z";

/// An object with a login: its condition, the name of its Secret, and the id of its rotation state.
struct Holder {
    kind: &'static str,
    namespace: &'static str,
    object: String,
    secret: &'static str,
    id: String,
}

impl Holder {
    async fn in_time(&self, cluster: &Cluster) -> Value {
        cluster.condition(self.kind, (self.namespace, self.object.as_str()), "RotationInTime").await
    }

    /// Waits until its condition says this.
    async fn stands(&self, cluster: &Cluster, status: &str, reason: &str) -> String {
        until(&format!("{} {} is {status} {reason}", self.kind, self.object), async || {
            let found = self.in_time(cluster).await;
            let is_so = found["status"] == status && found["reason"] == reason;
            is_so.then(|| found["message"].as_str().unwrap_or_default().to_owned())
        })
        .await
    }

    /// A pool that keeps its connections while its login changes under it, and the login after it.
    async fn pool(&self, cluster: &Cluster, login: Login) -> (Vec<Held>, Login) {
        let mut pool = Vec::new();
        for _ in 0..3 {
            pool.push(login.hold().await.expect("it logs in"));
        }
        let named = (self.namespace, self.object.as_str());
        let request = match self.kind {
            "DatabaseRole" => command::rotate_role(&cluster.client, SYSTEM, named, false).await,
            _ => command::rotate(&cluster.client, SYSTEM, ("app", self.secret), false).await,
        };
        request.expect("it has a login");
        let next = cluster.next_login("app", self.secret, &login).await;
        (pool, next)
    }

    /// Makes the last change one of long ago. What the controller writes meanwhile is not overwritten.
    async fn age(&self, cluster: &Cluster) {
        let secrets = cluster.secrets(SYSTEM);
        until("the rotation state is idle and backdated", async || {
            let mut state: Secret = secrets.get_opt(&format!("ledger-{}", self.id)).await.ok()??;
            let data = state.data.as_mut()?;
            let is_changed = data.get("generation")?.0 == b"2" && data.contains_key("done");
            if !is_changed || data.contains_key("pendingUser") {
                return None;
            }
            data.insert("rotatedAt".to_owned(), ByteString(LONG_AGO.as_bytes().to_vec()));
            let name = state.name_any();
            secrets.replace(&name, &Default::default(), &state).await.ok()
        })
        .await;
        match self.kind {
            "DatabaseRole" => {
                // A write makes the controller reconcile it.
                let older = Patch::Merge(json!({"status": {"rotatedAt": LONG_AGO}}));
                let roles = cluster.api_in(self.kind, self.namespace);
                let written = roles.patch_status(&self.object, &PatchParams::default(), &older).await;
                written.expect("it exists");
            }
            _ => cluster.touch("app", self.secret).await,
        }
    }
}

async fn answers(pool: &mut [Held]) -> bool {
    let mut all = true;
    for held in pool {
        all &= held.answers().await;
    }
    all
}

async fn count(metrics: Metrics, name: &str, expected: f64) {
    until(&format!("{name} is {expected}"), async || (metrics.sum(name).await? == expected).then_some(()))
        .await;
}

async fn a_pool_past_the_deadline(dialect: Dialect) {
    let server = RealServer::start(dialect).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({"rotationMinutes": 60, "rotationDeadlineMinutes": 1})).await;
    let metrics = Metrics::choose();
    let controller = Controller::start(cluster.turn.controller_client(), metrics.options());
    let id = cluster.claim("app", "orders", "main", json!({})).await;
    let owner = cluster.login(dialect, "app", "orders").await;
    cluster.record_in(&id, "Ready").await;
    let (uid, reader) = cluster.role(dialect, "app", "reports", "orders").await;
    let holders = [
        Holder {
            kind: "LogicalDatabase",
            namespace: SYSTEM,
            object: format!("db-{id}"),
            secret: "orders",
            id,
        },
        Holder {
            kind: "DatabaseRole",
            namespace: "app",
            object: "reports".to_owned(),
            secret: "reports",
            id: uid,
        },
    ];
    for holder in &holders {
        holder.stands(&cluster, "True", "OnTime").await;
    }
    let mut pools = Vec::new();
    for (holder, login) in holders.iter().zip([owner, reader]) {
        pools.push(holder.pool(&cluster, login).await);
    }
    for holder in &holders {
        holder.age(&cluster).await;
        let message = holder.stands(&cluster, "False", "Overdue").await;
        for part in ["3 sessions", "rotationDeadlinePolicy", "DatabaseServer main"] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    count(metrics, OVERDUE, 2.0).await;
    count(metrics, BLOCKED, 2.0).await;
    // Each once, however often it is reconciled.
    count(metrics, FAILED, 2.0).await;
    for (holder, (pool, next)) in holders.iter().zip(&mut pools) {
        assert!(answers(pool).await, "{dialect:?} {}: with Report, no session ends", holder.kind);
        assert_eq!(
            cluster.published("app", holder.secret).await.as_ref(),
            Some(&next.keys),
            "nor changes the login"
        );
    }
    let policy = json!({"spec": {"databases": {"rotationDeadlinePolicy": "EndSessions"}}});
    let servers = cluster.api("DatabaseServer");
    servers.patch("main", &PatchParams::default(), &Patch::Merge(policy)).await.expect("it exists");
    cluster.touch("app", "orders").await;
    for (holder, (pool, before)) in holders.iter().zip(&mut pools) {
        let next = cluster.next_login("app", holder.secret, before).await;
        next.run("SELECT 1").await.expect("the new login works");
        for held in pool {
            assert!(!held.answers().await, "{dialect:?} {}: the sessions in the way are ended", holder.kind);
        }
        holder.stands(&cluster, "True", "OnTime").await;
    }
    count(metrics, OVERDUE, 0.0).await;
    count(metrics, BLOCKED, 0.0).await;
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_past_the_deadline_is_reported_or_ended_on_postgresql() {
    a_pool_past_the_deadline(Dialect::Postgresql).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_past_the_deadline_is_reported_or_ended_on_mariadb() {
    a_pool_past_the_deadline(Dialect::Mariadb).await;
}

/// Not only sessions hold a change up: the server may refuse the next login.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_fails_past_the_deadline_is_overdue_too() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({"rotationDeadlineMinutes": 1})).await;
    let metrics = Metrics::choose();
    let controller = Controller::start(cluster.turn.controller_client(), metrics.options());
    let id = cluster.claim("app", "orders", "main", json!({})).await;
    let owner = cluster.login(Dialect::Postgresql, "app", "orders").await;
    cluster.record_in(&id, "Ready").await;
    let (uid, reader) = cluster.role(Dialect::Postgresql, "app", "reports", "orders").await;
    let database = owner.get("database").to_owned();
    let holders = [
        Holder {
            kind: "LogicalDatabase",
            namespace: SYSTEM,
            object: format!("db-{id}"),
            secret: "orders",
            id,
        },
        Holder {
            kind: "DatabaseRole",
            namespace: "app",
            object: "reports".to_owned(),
            secret: "reports",
            id: uid,
        },
    ];
    for (holder, login) in holders.iter().zip([owner, reader]) {
        let (pool, _) = holder.pool(&cluster, login).await;
        drop(pool);
    }
    let admin = Login::admin(&server.access());
    let set = format!("ALTER DATABASE {database} SET session_preload_libraries = 'nope'");
    admin.run(&set).await.expect("a superuser may");
    for holder in &holders {
        holder.age(&cluster).await;
        let message = holder.stands(&cluster, "False", "Overdue").await;
        assert!(message.contains("session_preload_libraries"), "{message}");
    }
    count(metrics, OVERDUE, 2.0).await;
    let reset = format!("ALTER DATABASE {database} RESET session_preload_libraries");
    admin.run(&reset).await.expect("a superuser may");
    for holder in &holders {
        holder.stands(&cluster, "True", "OnTime").await;
    }
    count(metrics, OVERDUE, 0.0).await;
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_goes_is_overdue_no_more() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({"rotationDeadlineMinutes": 1})).await;
    let metrics = Metrics::choose();
    let controller = Controller::start(cluster.turn.controller_client(), metrics.options());
    let id = cluster.claim("app", "orders", "main", json!({})).await;
    cluster.login(Dialect::Postgresql, "app", "orders").await;
    cluster.record_in(&id, "Ready").await;
    let (uid, reader) = cluster.role(Dialect::Postgresql, "app", "reports", "orders").await;
    let role = Holder {
        kind: "DatabaseRole",
        namespace: "app",
        object: "reports".to_owned(),
        secret: "reports",
        id: uid,
    };
    let _pool = role.pool(&cluster, reader).await;
    role.age(&cluster).await;
    role.stands(&cluster, "False", "Overdue").await;
    count(metrics, OVERDUE, 1.0).await;
    cluster.api_in("DatabaseRole", "app").delete("reports", &Default::default()).await.expect("it exists");
    count(metrics, OVERDUE, 0.0).await;
    controller.stop().await.expect("it stops on request");
}
