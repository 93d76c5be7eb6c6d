//! Hostile input: whatever stands in a UID, a name or a parameter, the servers hear exactly the statements that are
//! meant, or none. Ten thousand of each field on the pure side, where every statement is taken apart as the server would;
//! a few hundred on real servers, whose own logs are held against what was meant.

use conductor::database::names::{Names, User};
use conductor::database::sql::{Batch, Dialect, Extras, statements, survey};
use conductor::database::{Rules, Step, Wanted};
use conductor::provider::Pool;
use conductor_databases::RealServer;
use rand::prelude::*;
use serde_json::{Value, json};

/// Of each field, on the pure side.
const CASES: usize = 10_000;
/// On each real server.
const ON_SERVER: usize = 250;

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

fn hostile(rng: &mut StdRng) -> String {
    let count = rng.random_range(0..8);
    (0..count).map(|_| *PIECES.choose(rng).expect("there are some")).collect()
}

/// Statements with everything in quotes taken out, as a server reads them: what is left is structure.
fn structure(dialect: Dialect, text: &str) -> Result<String, String> {
    let mut left = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let is_open = c == '\'' || c == '"' || (c == '`' && dialect == Dialect::Mariadb);
        if !is_open {
            left.push(c);
            continue;
        }
        let escapes = c == '\'' && (dialect == Dialect::Mariadb || left.ends_with('E'));
        loop {
            match chars.next() {
                None => return Err(format!("a quote is not closed: {text}")),
                Some('\\') if escapes => drop(chars.next()),
                Some(end) if end == c && chars.peek() == Some(&c) => drop(chars.next()),
                Some(end) if end == c => break,
                Some(_) => {}
            }
        }
        left.push('?');
    }
    Ok(left.replace(" E?", "?"))
}

/// Every step that speaks to a server.
fn steps() -> Vec<Step> {
    vec![
        Step::CreateOwner,
        Step::CreateUser(User::A),
        Step::CreateUser(User::B),
        Step::CreateDatabase,
        Step::SetUp { is_first: true },
        Step::SetPassword { user: User::A, generation: 1 },
        Step::Revoke(User::A),
        Step::Seal,
        Step::Rename,
        Step::Restore { is_renamed: true },
        Step::DropDatabase { is_renamed: false },
        Step::DropUser(User::A),
        Step::DropUser(User::B),
        Step::DropOwner,
    ]
}

fn wanted(dialect: Dialect, uid: &str, spec: &Value) -> Option<Wanted> {
    let rules = Rules::read(None).expect("the defaults are fine");
    Wanted::read(Names::new(uid, None), dialect, &rules, spec, true).ok()
}

fn said(wanted: &Wanted) -> Vec<Batch> {
    let extras = Extras { verifier: "SCRAM-SHA-256$4096:x", is_superuser: false };
    steps().iter().flat_map(|step| statements(step, wanted, extras)).collect()
}

/// The structure of everything that is said for a claim, the look at the server included.
fn shape(wanted: &Wanted) -> Vec<String> {
    let dialect = wanted.dialect;
    let texts = said(wanted).into_iter().map(|batch| batch.text).chain([survey(dialect, &wanted.names)]);
    texts.map(|text| structure(dialect, &text).unwrap_or_else(|why| why)).collect()
}

#[test]
fn no_input_changes_the_structure_of_what_is_said() {
    let mut rng = StdRng::seed_from_u64(6);
    let mut taken = 0;
    for dialect in BOTH {
        let plain = shape(&wanted(dialect, "u-1", &json!({})).expect("it is fine"));
        for _ in 0..CASES {
            let uid = hostile(&mut rng);
            let found = wanted(dialect, &uid, &json!({})).expect("a UID may hold anything");
            assert_eq!(shape(&found), plain, "{uid:?}");
        }
    }
    let schema = |name: &str| json!({"parameters": {"schemas": [name]}});
    let one = shape(&wanted(Dialect::Postgresql, "u-1", &schema("app")).expect("it is fine"));
    for field in ["schemas", "extensions", "connections"] {
        for _ in 0..CASES {
            let text = hostile(&mut rng);
            let spec = match field {
                "connections" => json!({"resources": {"requests": {"connections": text}}}),
                field => json!({"parameters": {field: [text]}}),
            };
            match (field, wanted(Dialect::Postgresql, "u-1", &spec)) {
                (_, None) => {}
                ("schemas", Some(found)) => {
                    taken += 1;
                    assert_eq!(shape(&found), one, "{text:?}");
                }
                // Nothing that a claim writes there is ever said: an extension must be allowed, a limit be a number.
                (_, Some(found)) => {
                    assert!(found.extensions.is_empty() && found.connection_limit.is_none(), "{text:?}")
                }
            }
        }
    }
    println!(
        "{CASES} UIDs for each of 2 engines; {CASES} schemas, {taken} of them names; {CASES} extensions, {CASES} limits"
    );
    assert!(taken > 0, "some were names, or nothing was tried");
}

#[test]
fn the_reader_of_statements_sees_an_injection() {
    let quoted = Dialect::Postgresql.text("a'; DROP ROLE b; --");
    assert_eq!(structure(Dialect::Postgresql, &format!("SELECT {quoted}")).as_deref(), Ok("SELECT ?"));
    let naive = "COMMENT ON ROLE x IS 'a'; DROP ROLE b; --'";
    assert!(structure(Dialect::Postgresql, naive).is_err(), "a naive one is noticed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_servers_own_log_shows_exactly_what_was_meant() {
    let mut rng = StdRng::seed_from_u64(60);
    for dialect in BOTH {
        let server = RealServer::start(dialect).await;
        let pool = Pool::default();
        let mut session = pool.session(&server.access()).await.expect("the administrator logs in");
        // The first look prepares the place for marks; from then on everything is counted.
        session.survey(&Names::new("first", None)).await.expect("it answers");
        let before = heard(dialect, &server.statements()).len();
        let mut meant = Vec::new();
        for _ in 0..ON_SERVER {
            let found = wanted(dialect, &hostile(&mut rng), &json!({})).expect("a UID may hold anything");
            // Without a database each: it is users, marks and passwords that carry text.
            for step in steps().iter().filter(|step| !is_of_database(step)) {
                let extras = Extras { verifier: verifier(dialect), is_superuser: false };
                let batches = statements(step, &found, extras);
                session
                    .carry_out(&batches, &found.names)
                    .await
                    .unwrap_or_else(|why| panic!("{step:?}: {why}"));
                meant.extend(batches.into_iter().map(|batch| batch.text));
            }
            let left = session.survey(&found.names).await.expect("it answers");
            assert!(left.owner.ours().is_none() && left.users.iter().all(|user| user.ours().is_none()));
            meant.push(survey(dialect, &found.names));
        }
        drop(session);
        let log = server.statements();
        let heard = heard(dialect, &log).split_off(before);
        println!(
            "{dialect:?}: {ON_SERVER} hostile UIDs, {} statements meant, {} heard",
            meant.len(),
            heard.len()
        );
        assert_eq!(heard.len(), meant.len());
        for (heard, meant) in heard.iter().zip(&meant) {
            assert_eq!(heard, meant);
        }
    }
}

fn is_of_database(step: &Step) -> bool {
    matches!(
        step,
        Step::CreateDatabase
            | Step::SetUp { .. }
            | Step::Seal
            | Step::Rename
            | Step::Restore { .. }
            | Step::DropDatabase { .. }
    )
}

fn verifier(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgresql => {
            "SCRAM-SHA-256$4096:c2FsdHNhbHRzYWx0c2FsdA==$SV/kVhXaPHeR3OkmSdUs/r/Gm1Vq6Z4FlKy0r8XLh2s=:iyMFmoNMkkOKZ6zvk3sF0Hq5BMV1hTHJYQvdMkhHHr4="
        }
        Dialect::Mariadb => "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7",
    }
}

/// The statements in a server's log, each as it stands there.
fn heard(dialect: Dialect, log: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_statement = false;
    for line in log.trim_end_matches('\n').split('\n') {
        let begun = match dialect {
            Dialect::Postgresql => line.split_once("LOG:  statement: ").map(|(_, text)| text),
            Dialect::Mariadb => line.split_once(" Query\t").map(|(_, text)| text),
        };
        match begun {
            Some(text) => {
                found.push(text.to_owned());
                is_statement = true;
            }
            None if is_statement && is_rest(dialect, line) => {
                if let Some(last) = found.last_mut() {
                    last.push('\n');
                    last.push_str(line.strip_prefix('\t').unwrap_or(line));
                }
            }
            None => is_statement = false,
        }
    }
    if dialect == Dialect::Postgresql {
        found.retain(|text| !text.starts_with("SELECT 1"));
    }
    found
}

/// Whether a line goes on with the statement before it.
fn is_rest(dialect: Dialect, line: &str) -> bool {
    match dialect {
        Dialect::Postgresql => line.starts_with('\t'),
        Dialect::Mariadb => {
            !["Connect\t", "Quit\t", "Init DB\t", "Prepare\t", "Reset"].iter().any(|word| line.contains(word))
        }
    }
}
