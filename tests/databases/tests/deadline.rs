//! Pools with lasting connections hold up the change of a login. Past its deadline that is reported and counted, for claims
//! and for DatabaseRoles; with `EndSessions` the sessions end and the login changes.

use conductor_databases::{Figures, Held, House, Login, RealServer, SYSTEM};
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

/// One that has a login: where its condition is, what its Secret is called, and the id of its ledger.
struct Holder {
    kind: &'static str,
    namespace: &'static str,
    object: String,
    secret: &'static str,
    id: String,
}

impl Holder {
    async fn in_time(&self, house: &House) -> Value {
        house.condition(self.kind, (self.namespace, self.object.as_str()), "RotationInTime").await
    }

    /// Waits until its condition says this.
    async fn stands(&self, house: &House, status: &str, reason: &str) -> String {
        until(&format!("{} {} is {status} {reason}", self.kind, self.object), async || {
            let found = self.in_time(house).await;
            let is_so = found["status"] == status && found["reason"] == reason;
            is_so.then(|| found["message"].as_str().unwrap_or_default().to_owned())
        })
        .await
    }

    /// A pool that keeps its connections while its login changes under it, and the login after it.
    async fn pool(&self, house: &House, login: Login) -> (Vec<Held>, Login) {
        let mut pool = Vec::new();
        for _ in 0..3 {
            pool.push(login.hold().await.expect("it logs in"));
        }
        let named = (self.namespace, self.object.as_str());
        let asked = match self.kind {
            "DatabaseRole" => command::rotate_role(&house.client, SYSTEM, named, false).await,
            _ => command::rotate(&house.client, SYSTEM, ("app", self.secret), false).await,
        };
        asked.expect("it has a login");
        let next = house.next_login("app", self.secret, &login).await;
        (pool, next)
    }

    /// Makes the last change one of long ago. What the controller writes meanwhile is not overwritten.
    async fn age(&self, house: &House) {
        let secrets = house.secrets(SYSTEM);
        until("the ledger is at rest and made older", async || {
            let mut ledger: Secret = secrets.get_opt(&format!("ledger-{}", self.id)).await.ok()??;
            let data = ledger.data.as_mut()?;
            let is_changed = data.get("generation")?.0 == b"2" && data.contains_key("done");
            if !is_changed || data.contains_key("pendingUser") {
                return None;
            }
            data.insert("rotatedAt".to_owned(), ByteString(LONG_AGO.as_bytes().to_vec()));
            let name = ledger.name_any();
            secrets.replace(&name, &Default::default(), &ledger).await.ok()
        })
        .await;
        match self.kind {
            "DatabaseRole" => {
                // It is looked at when somebody writes to it.
                let older = Patch::Merge(json!({"status": {"rotatedAt": LONG_AGO}}));
                let roles = house.api_in(self.kind, self.namespace);
                let written = roles.patch_status(&self.object, &PatchParams::default(), &older).await;
                written.expect("it is there");
            }
            _ => house.touch("app", self.secret).await,
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

async fn count(figures: Figures, name: &str, expected: f64) {
    until(&format!("{name} is {expected}"), async || (figures.sum(name).await? == expected).then_some(()))
        .await;
}

async fn a_pool_past_the_deadline(dialect: Dialect) {
    let server = RealServer::start(dialect).await;
    let house = House::enter().await;
    house.register("main", &server, json!({"rotationMinutes": 60, "rotationDeadlineMinutes": 1})).await;
    let figures = Figures::choose();
    let controller = Controller::start(house.turn.controller_client(), figures.options());
    let id = house.claim("app", "orders", "main", json!({})).await;
    let owner = house.login(dialect, "app", "orders").await;
    house.record_in(&id, "Ready").await;
    let (uid, reader) = house.role(dialect, "app", "reports", "orders").await;
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
        holder.stands(&house, "True", "OnTime").await;
    }
    let mut pools = Vec::new();
    for (holder, login) in holders.iter().zip([owner, reader]) {
        pools.push(holder.pool(&house, login).await);
    }
    for holder in &holders {
        holder.age(&house).await;
        let told = holder.stands(&house, "False", "Overdue").await;
        for part in ["3 sessions", "rotationDeadlinePolicy", "DatabaseServer main"] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
    count(figures, OVERDUE, 2.0).await;
    count(figures, BLOCKED, 2.0).await;
    // Each once, however often it is looked at.
    count(figures, FAILED, 2.0).await;
    for (holder, (pool, next)) in holders.iter().zip(&mut pools) {
        assert!(answers(pool).await, "{dialect:?} {}: with Report, nobody ends sessions", holder.kind);
        assert_eq!(
            house.published("app", holder.secret).await.as_ref(),
            Some(&next.keys),
            "nor changes the login"
        );
    }
    let policy = json!({"spec": {"databases": {"rotationDeadlinePolicy": "EndSessions"}}});
    let servers = house.api("DatabaseServer");
    servers.patch("main", &PatchParams::default(), &Patch::Merge(policy)).await.expect("it is there");
    house.touch("app", "orders").await;
    for (holder, (pool, before)) in holders.iter().zip(&mut pools) {
        let next = house.next_login("app", holder.secret, before).await;
        next.run("SELECT 1").await.expect("the new login works");
        for held in pool {
            assert!(!held.answers().await, "{dialect:?} {}: the sessions in the way are ended", holder.kind);
        }
        holder.stands(&house, "True", "OnTime").await;
    }
    count(figures, OVERDUE, 0.0).await;
    count(figures, BLOCKED, 0.0).await;
    controller.stop().await.expect("it stops when asked to");
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
    let house = House::enter().await;
    house.register("main", &server, json!({"rotationDeadlineMinutes": 1})).await;
    let figures = Figures::choose();
    let controller = Controller::start(house.turn.controller_client(), figures.options());
    let id = house.claim("app", "orders", "main", json!({})).await;
    let owner = house.login(Dialect::Postgresql, "app", "orders").await;
    house.record_in(&id, "Ready").await;
    let (uid, reader) = house.role(Dialect::Postgresql, "app", "reports", "orders").await;
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
        let (pool, _) = holder.pool(&house, login).await;
        drop(pool);
    }
    let admin = Login::admin(&server.access());
    let set = format!("ALTER DATABASE {database} SET session_preload_libraries = 'nope'");
    admin.run(&set).await.expect("a superuser may");
    for holder in &holders {
        holder.age(&house).await;
        let told = holder.stands(&house, "False", "Overdue").await;
        assert!(told.contains("session_preload_libraries"), "{told}");
    }
    count(figures, OVERDUE, 2.0).await;
    let reset = format!("ALTER DATABASE {database} RESET session_preload_libraries");
    admin.run(&reset).await.expect("a superuser may");
    for holder in &holders {
        holder.stands(&house, "True", "OnTime").await;
    }
    count(figures, OVERDUE, 0.0).await;
    controller.stop().await.expect("it stops when asked to");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_goes_is_overdue_no_more() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let house = House::enter().await;
    house.register("main", &server, json!({"rotationDeadlineMinutes": 1})).await;
    let figures = Figures::choose();
    let controller = Controller::start(house.turn.controller_client(), figures.options());
    let id = house.claim("app", "orders", "main", json!({})).await;
    house.login(Dialect::Postgresql, "app", "orders").await;
    house.record_in(&id, "Ready").await;
    let (uid, reader) = house.role(Dialect::Postgresql, "app", "reports", "orders").await;
    let role = Holder {
        kind: "DatabaseRole",
        namespace: "app",
        object: "reports".to_owned(),
        secret: "reports",
        id: uid,
    };
    let _pool = role.pool(&house, reader).await;
    role.age(&house).await;
    role.stands(&house, "False", "Overdue").await;
    count(figures, OVERDUE, 1.0).await;
    house.api_in("DatabaseRole", "app").delete("reports", &Default::default()).await.expect("it is there");
    count(figures, OVERDUE, 0.0).await;
    controller.stop().await.expect("it stops when asked to");
}
