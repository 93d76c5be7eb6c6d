//! Whatever users write into any field, a server gets exactly the intended statements, or none. Ten thousand values of
//! each field (`make test-all`; a tenth of them in `make test`, another one each day) are read as the controller reads
//! them, and every statement that comes of them is taken apart as a server would. All that carry something of a value are sent to real servers, whose own logs are held against what was meant;
//! and some of each field are lived through, with everything made and dropped again.

mod fields;
mod listen;

use conductor_databases::{Login, RealServer};
use conductor_live::Portion;
use conductor_sql::{Access, Pool};
use conductor_sql_plan::sql::{At, Batch, Dialect};
use fields::{FIELDS, Field, Input, Plan, Way, plan};
use listen::{heard, structure};
use mysql_async::prelude::Queryable;
use rand::prelude::*;
use std::collections::BTreeSet;
use std::time::Instant;
use tokio_postgres::NoTls;

/// Values of each field.
const CASES: usize = 10_000;
/// Of those that come through, how many are lived through, of each field on each server.
const LIVES: usize = 10;

const BOTH: [Dialect; 2] = [Dialect::Postgresql, Dialect::Mariadb];
/// What has broken others.
const PIECES: [&str; 30] = [
    "'",
    "\"",
    "`",
    "\\",
    "\0",
    ";",
    "--",
    "/*",
    "*/",
    "$$",
    "$tag$",
    "\n",
    "\r\n",
    " ",
    "E'",
    "\\'",
    "''",
    "\"\"",
    "``",
    "%",
    "_",
    "; DROP ROLE postgres",
    "' OR '1'='1",
    "') ; CREATE ROLE x SUPERUSER; --",
    "\u{feff}",
    "\u{202e}",
    "ä",
    "\u{bf}\u{27}",
    "conductor:",
    "a",
];
/// Names by their letters, and keywords to a server unless they are quoted.
const NAMES: [&str; 12] = [
    "select",
    "user",
    "public",
    "null",
    "grant",
    "table",
    "all",
    "default",
    "current_user",
    "orders",
    "x",
    "end",
];

/// A value: pieces, a name, a name with a piece in it, or a number.
fn value(rng: &mut StdRng) -> String {
    let name = |rng: &mut StdRng| {
        format!("{}_{}", NAMES.choose(rng).expect("there are some"), rng.random_range(0..1_000_000))
    };
    let pieces = |rng: &mut StdRng, count: usize| -> String {
        (0..count).map(|_| *PIECES.choose(rng).expect("there are some")).collect()
    };
    match rng.random_range(0..8) {
        0..4 => {
            let count = rng.random_range(0..8);
            pieces(rng, count)
        }
        4..6 => name(rng),
        6 => [name(rng), pieces(rng, 1), name(rng)].concat(),
        _ => rng.random_range(-9..99_999).to_string(),
    }
}

/// The values of a field: of one part, the same in every test.
fn values(at: usize) -> impl Iterator<Item = String> {
    let mut rng = StdRng::seed_from_u64(at as u64);
    Portion::chosen().of((0..CASES).map(move |_| value(&mut rng))).into_iter()
}

fn planned(dialect: Dialect, plain: &Input, field: &Field, text: &str) -> Result<Plan, String> {
    let mut input = plain.clone();
    (field.put)(&mut input, text);
    plan(dialect, field.way, &input)
}

fn verifier(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgresql => {
            "SCRAM-SHA-256$4096:c2FsdHNhbHRzYWx0c2FsdA==$SV/kVhXaPHeR3OkmSdUs/r/Gm1Vq6Z4FlKy0r8XLh2s=:iyMFmoNMkkOKZ6zvk3sF0Hq5BMV1hTHJYQvdMkhHHr4="
        }
        Dialect::Mysql => "$A$005$abcdefghijklmnopqrstYy1cVJ5jT.fk4HyAGlowRhOkI55As4SAesbspXHQvFD",
        Dialect::Mariadb => "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7",
    }
}

fn said(dialect: Dialect, plan: &Plan) -> Vec<Batch> {
    plan.statements(verifier(dialect))
}

fn shape(dialect: Dialect, said: &[Batch]) -> Vec<String> {
    said.iter().map(|batch| structure(dialect, &batch.text).unwrap_or_else(|why| why)).collect()
}

/// What came of the values of one field.
#[derive(Debug, Default)]
struct Outcome {
    refused: usize,
    /// Nothing of the value is wanted of a server.
    without: usize,
    /// A part of it does: every different plan, and its statements.
    with: Vec<(Plan, Vec<Batch>)>,
}

/// Reads values of a field and splits their statements.
fn try_all(dialect: Dialect, at: usize, cases: usize) -> Outcome {
    let (field, input) = (&FIELDS[at], Input::plain(dialect));
    let plain = plan(dialect, field.way, &input).expect("the plain input is fine");
    let plain_said = said(dialect, &plain);
    let plain_shape = shape(dialect, &plain_said);
    let mut outcome = Outcome::default();
    let mut known = BTreeSet::new();
    for text in values(at).take(cases) {
        let found = match planned(dialect, &input, field, &text) {
            Err(_) => {
                outcome.refused += 1;
                continue;
            }
            Ok(found) => found,
        };
        let batches = if found == plain { plain_said.clone() } else { said(dialect, &found) };
        if batches == plain_said {
            outcome.without += 1;
        } else if known.insert(text.clone()) {
            assert_eq!(shape(dialect, &batches), plain_shape, "{dialect:?}, {}: {text:?}", field.name);
            outcome.with.push((found, batches));
        }
    }
    outcome
}

#[test]
fn the_reader_of_statements_sees_an_injection() {
    let quoted = Dialect::Postgresql.text("a'; DROP ROLE b; --");
    assert_eq!(structure(Dialect::Postgresql, &format!("SELECT {quoted}")).as_deref(), Ok("SELECT ?"));
    let naive = "COMMENT ON ROLE x IS 'a'; DROP ROLE b; --'";
    assert!(structure(Dialect::Postgresql, naive).is_err(), "a naive one is noticed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_value_of_any_field_changes_the_statements_in_the_servers_logs() {
    let message = BOTH.map(|dialect| tokio::spawn(send_everything(dialect)));
    for message in message {
        message.await.expect("every statement is as it was meant");
    }
}

/// Those that must reach a server: were one missing, its values would never have been tried.
const REACH: [&str; 9] = [
    "claim metadata.uid",
    "claim parameters.databaseName",
    "claim parameters.userName",
    "claim requests.connections",
    "record id",
    "role metadata.uid",
    "DatabaseClaim Username",
    "DatabaseClaim DBNameOverride",
    "DatabaseClaim AppID, as the name",
];

/// Sends a server every statement with a part of a value, as a user without rights: each is
/// read by the server and written into its log, and finds nothing to work on.
async fn send_everything(dialect: Dialect) {
    let more: &[&str] = if dialect == Dialect::Postgresql { &["log_min_messages=log"] } else { &[] };
    let server = RealServer::start_with(dialect, 50, more).await;
    let admin = Login::admin(&server.access());
    let stranger = stranger(&admin, &server.access()).await;
    let there = catalogue(&admin).await;
    let mut line = Line::open(&stranger).await;
    let before = heard(dialect, &server.statements()).len();
    let begun = Instant::now();
    let (mut meant, mut plans, mut reach) = (Vec::new(), 0, BTreeSet::new());
    for (at, field) in FIELDS.iter().enumerate() {
        let plain = plan(dialect, field.way, &Input::plain(dialect)).expect("the plain input is fine");
        let plain: BTreeSet<String> = said(dialect, &plain).into_iter().map(|batch| batch.text).collect();
        let Outcome { refused, without, with } = try_all(dialect, at, CASES);
        let message = meant.len();
        plans += with.len();
        for (_, batches) in &with {
            let texts = batches.iter().map(|batch| &batch.text);
            meant.extend(texts.filter(|text| !plain.contains(*text)).cloned());
        }
        if !with.is_empty() {
            reach.insert(field.name);
            println!(
                "{dialect:?}, {}: {refused} refused, {without} not said, {} said in {} messages",
                field.name,
                with.len(),
                meant.len() - message
            );
        }
        line.send(&meant[message..]).await;
    }
    drop(line);
    let heard = heard(dialect, &server.statements()).split_off(before);
    println!(
        "{dialect:?}, {}: {} fields, {CASES} values each in all parts; {plans} values reach the server by {} fields, in {} messages, \
         {} heard, {:.0} s",
        Portion::chosen(),
        FIELDS.len(),
        reach.len(),
        meant.len(),
        heard.len(),
        begun.elapsed().as_secs_f32()
    );
    for name in REACH {
        assert!(reach.contains(name), "{name} reaches no server");
    }
    assert_eq!(heard.len(), meant.len());
    for (heard, meant) in heard.iter().zip(&meant) {
        assert_eq!(heard, meant);
    }
    assert_eq!(catalogue(&admin).await, there, "a user without rights changed something");
}

/// A login that may do nothing.
async fn stranger(admin: &Login, access: &Access) -> Access {
    let make = match admin.dialect {
        Dialect::Postgresql => "CREATE ROLE stranger LOGIN PASSWORD 'nothing'",
        Dialect::Mariadb | Dialect::Mysql => "CREATE USER stranger@'%' IDENTIFIED BY 'nothing'",
    };
    admin.run(make).await.expect("the administrator makes it");
    let home = if admin.dialect == Dialect::Postgresql { "postgres" } else { "information_schema" };
    access.log_in_as("stranger", conductor_sql::Password::new("nothing".to_owned()), home)
}

/// Everything on a server that statements of ours could make or drop.
async fn catalogue(admin: &Login) -> Vec<String> {
    let text = match admin.dialect {
        Dialect::Postgresql => {
            "SELECT 'role ' || rolname FROM pg_roles UNION ALL SELECT 'database ' || datname FROM pg_database \
             UNION ALL SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg_toast_temp%' \
             AND nspname NOT LIKE 'pg_temp%' UNION ALL SELECT 'extension ' || extname FROM pg_extension ORDER BY 1"
        }
        Dialect::Mariadb | Dialect::Mysql => {
            "SELECT CONCAT('user ', user, '@', host) FROM mysql.user \
             UNION ALL SELECT CONCAT('database ', schema_name) FROM information_schema.schemata ORDER BY 1"
        }
    };
    admin.run(text).await.expect("the administrator queries")
}

/// A session of the test's own, which goes on after a refusal.
enum Line {
    Postgresql(tokio_postgres::Client),
    Mariadb(mysql_async::Conn),
}

impl Line {
    async fn open(access: &Access) -> Line {
        match access.dialect {
            Dialect::Postgresql => {
                let mut config = tokio_postgres::Config::new();
                config.host(&access.host).port(access.port).dbname(&access.database);
                config.user(&access.username).password(access.password.expose());
                let (client, connection) = config.connect(NoTls).await.expect("the stranger logs in");
                tokio::spawn(connection);
                Line::Postgresql(client)
            }
            Dialect::Mariadb | Dialect::Mysql => {
                let options = mysql_async::OptsBuilder::default()
                    .ip_or_hostname(access.host.clone())
                    .tcp_port(access.port)
                    .user(Some(access.username.clone()))
                    .pass(Some(access.password.expose().to_owned()))
                    .db_name(Some(access.database.clone()))
                    .prefer_socket(false);
                Line::Mariadb(mysql_async::Conn::new(options).await.expect("the stranger logs in"))
            }
        }
    }

    /// Sends every statement. A refusal is fine; that a statement cannot be read is not.
    async fn send(&mut self, statements: &[String]) {
        match self {
            Line::Postgresql(client) => {
                // Many on their way at a time; they are answered in the order in which they were sent.
                for some in statements.chunks(64) {
                    let sent: Vec<_> = some.iter().map(|text| client.simple_query(text)).collect();
                    for (text, answer) in some.iter().zip(futures::future::join_all(sent).await) {
                        let Err(error) = answer else { continue };
                        let code = error.code().map_or("", tokio_postgres::error::SqlState::code);
                        assert!(!code.is_empty() && code != "42601", "{text}: {error:?}");
                    }
                }
            }
            Line::Mariadb(conn) => {
                for text in statements {
                    match conn.query_drop(text).await {
                        Err(mysql_async::Error::Server(error)) => {
                            assert_ne!(error.code, 1064, "{text}: {error}");
                        }
                        Err(error) => panic!("{text}: {error}"),
                        Ok(()) => {}
                    }
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whole_lives_with_hostile_values_leave_a_server_as_it_was() {
    tokio::join!(live_through(Dialect::Postgresql), live_through(Dialect::Mariadb));
}

/// Lives of databases from the first statement to the last, as the administrator, with everything really made.
async fn live_through(dialect: Dialect) {
    let server = RealServer::start(dialect).await;
    let (admin, pool) = (Login::admin(&server.access()), Pool::default());
    let mut session = pool.session(&server.access()).await.expect("the administrator logs in");
    let plain = plan(dialect, Way::Claim, &Input::plain(dialect)).expect("the plain input is fine");
    // The first look prepares the place for marks; from then on everything is counted.
    session.survey(plain.names()).await.expect("it answers");
    let there = catalogue(&admin).await;
    let before = heard(dialect, &server.statements()).len();
    let (mut meant, mut lives) = (Vec::new(), 0);
    for (at, field) in FIELDS.iter().enumerate().filter(|(_, field)| field.way != Way::Role) {
        // Most extensions that are a name do not exist: those that do are lived through by other tests.
        let chosen = try_all(dialect, at, 10 * LIVES).with.into_iter().take(LIVES);
        for (found, batches) in chosen.filter(|_| !field.name.contains("extensions")) {
            lives += 1;
            for batch in batches {
                let (text, is_inside) = (batch.text.clone(), batch.at == At::Inside);
                let done = session.carry_out(&[batch], found.names()).await;
                done.unwrap_or_else(|why| panic!("{}: {text}: {why}", field.name));
                meant.push(text);
                assert!(!is_inside || dialect == Dialect::Postgresql);
            }
        }
    }
    drop(session);
    let heard = heard(dialect, &server.statements()).split_off(before);
    println!("{dialect:?}: {lives} lives, {} statements meant, {} heard", meant.len(), heard.len());
    assert_eq!(heard.len(), meant.len());
    for (heard, meant) in heard.iter().zip(&meant) {
        assert_eq!(heard, meant);
    }
    assert_eq!(catalogue(&admin).await, there, "something is left, or gone");
}
