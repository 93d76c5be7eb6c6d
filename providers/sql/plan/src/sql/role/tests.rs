//! All statements of a role's life, for review.

use super::*;
use crate::names::Names;
use crate::sql::At;

fn lines(dialect: Dialect, access: RoleAccess) -> String {
    let desired = DesiredRole::new("r'1", access, Names::new("u'1", None), dialect, 0);
    let login = |step| RoleStep::Login(step);
    let steps = [
        RoleStep::CreateGroup,
        RoleStep::SetUpGroup,
        RoleStep::CreateUser(User::A),
        RoleStep::SetAccess { user: User::A, generation: 3 },
        login(Step::SetPassword(Pending { user: User::B, generation: 7 })),
        login(Step::Revoke(User::A)),
        RoleStep::DropUser { user: User::B, is_open: true },
        RoleStep::DropUser { user: User::B, is_open: false },
    ];
    let extras = Extras { verifier: "VERIFIER", is_superuser: false };
    let (database, role) = (desired.database.owner.to_string(), desired.user(User::A).to_string());
    let role = role.trim_end_matches("_a");
    let texts = steps.iter().flat_map(|step| statements(step, &desired, extras)).map(|batch| {
        let at = if batch.at == At::Inside { "in it: " } else { "" };
        let text = batch.text.replace(&database, "C").replace(role, "R");
        format!("{at}{}", text.replace(&database.replace('_', "\\_"), "ESC"))
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_statements_on_postgresql() {
    expect_test::expect![[r#"
        CREATE ROLE "C_w" NOLOGIN; COMMENT ON ROLE "C_w" IS 'conductor:u''1'; GRANT "C_w" TO CURRENT_USER
        GRANT CONNECT, TEMPORARY ON DATABASE "C" TO "C_w"
        in it: SET LOCAL transaction_read_only = off; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL ROLE NONE; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; DO $$ BEGIN GRANT EXECUTE ON FUNCTION pg_catalog.lo_create(oid), pg_catalog.lo_creat(integer), pg_catalog.lo_from_bytea(oid, bytea) TO "C_w"; EXCEPTION WHEN insufficient_privilege THEN NULL; END $$; SET LOCAL ROLE "C"; ALTER DEFAULT PRIVILEGES FOR ROLE "C" GRANT USAGE ON SCHEMAS TO "C_w"; ALTER DEFAULT PRIVILEGES FOR ROLE "C" GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO "C_w"; ALTER DEFAULT PRIVILEGES FOR ROLE "C" GRANT SELECT, USAGE ON SEQUENCES TO "C_w"; DO $$ DECLARE found text; BEGIN FOR found IN SELECT nspname FROM pg_catalog.pg_namespace WHERE nspowner = 'C'::pg_catalog.regrole::pg_catalog.oid OR nspname = 'public' LOOP EXECUTE pg_catalog.format('GRANT USAGE ON SCHEMA %I TO "C_w"', found); END LOOP; END $$; DO $$ DECLARE found text; BEGIN FOR found IN SELECT oid::pg_catalog.regclass FROM pg_catalog.pg_class WHERE relowner = 'C'::pg_catalog.regrole::pg_catalog.oid AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relpersistence <> 't' LOOP EXECUTE pg_catalog.format('GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE %s TO "C_w"', found); END LOOP; END $$; DO $$ DECLARE found text; BEGIN FOR found IN SELECT oid::pg_catalog.regclass FROM pg_catalog.pg_class WHERE relowner = 'C'::pg_catalog.regrole::pg_catalog.oid AND relkind IN ('S') AND relpersistence <> 't' LOOP EXECUTE pg_catalog.format('GRANT SELECT, USAGE ON SEQUENCE %s TO "C_w"', found); END LOOP; END $$; ALTER DEFAULT PRIVILEGES FOR ROLE "C" GRANT EXECUTE ON FUNCTIONS TO "C_w"; DO $$ DECLARE found text; BEGIN FOR found IN SELECT oid::pg_catalog.regprocedure FROM pg_catalog.pg_proc WHERE proowner = 'C'::pg_catalog.regrole::pg_catalog.oid LOOP EXECUTE pg_catalog.format('GRANT EXECUTE ON ROUTINE %s TO "C_w"', found); END LOOP; END $$
        COMMENT ON ROLE "C_w" IS 'conductor:u''1 1'
        CREATE ROLE "R_a" NOLOGIN IN ROLE "C_w"; COMMENT ON ROLE "R_a" IS 'conductor:r''1 0 ReadWrite u''1'; GRANT "R_a" TO CURRENT_USER
        DO $$ BEGIN IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'C_r') THEN REVOKE "C_r" FROM "R_a"; END IF; END $$; GRANT "C_w" TO "R_a"; COMMENT ON ROLE "R_a" IS 'conductor:r''1 3 ReadWrite u''1'
        SELECT pg_catalog.format('ALTER ROLE %I%s RESET %I', r.rolname, CASE WHEN d.datname IS NULL THEN '' ELSE pg_catalog.format(' IN DATABASE %I', d.datname) END, n.name) FROM pg_catalog.pg_db_role_setting s LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase, pg_catalog.unnest(s.setconfig) AS c(line), LATERAL (SELECT pg_catalog.split_part(c.line, '=', 1) AS name) AS n WHERE (EXISTS (SELECT FROM pg_catalog.pg_settings g WHERE g.name = n.name AND g.context = 'user') OR n.name IN ('role', 'session_authorization', 'seed')) AND r.rolname = 'R_b'
        ALTER ROLE "R_b" LOGIN CONNECTION LIMIT -1 VALID UNTIL 'infinity' PASSWORD 'VERIFIER'; GRANT CONNECT ON DATABASE "C" TO "C_w"; COMMENT ON ROLE "R_b" IS 'conductor:r''1 7 ReadWrite u''1'
        ALTER ROLE "R_a" NOLOGIN
        SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE usename = 'R_a' AND pid <> pg_catalog.pg_backend_pid()
        SELECT p.database::text, pg_catalog.format('ROLLBACK PREPARED %L', p.gid) FROM pg_catalog.pg_prepared_xacts p WHERE p.owner = 'R_a' AND (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = CURRENT_USER)
        in it: SET LOCAL transaction_read_only = off; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL ROLE NONE; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; REASSIGN OWNED BY "R_b" TO "C"; DROP OWNED BY "R_b"
        SELECT d.datname::text, 'SET LOCAL transaction_read_only = off; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL ROLE NONE; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; DROP OWNED BY "R_b"' FROM pg_catalog.pg_database d WHERE d.datallowconn AND pg_catalog.shobj_description(d.datdba, 'pg_authid') LIKE 'conductor:%' AND EXISTS (SELECT FROM pg_catalog.pg_shdepend s WHERE s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND s.refobjid = (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = 'R_b') AND (s.dbid = d.oid OR s.objid = d.oid)) AND NOT EXISTS (SELECT FROM pg_catalog.pg_shdepend s WHERE s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND s.refobjid = (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = 'R_b') AND s.dbid = d.oid AND s.deptype = 'o')
        DROP ROLE "R_b"
        SELECT d.datname::text, 'SET LOCAL transaction_read_only = off; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL ROLE NONE; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; DROP OWNED BY "R_b"' FROM pg_catalog.pg_database d WHERE d.datallowconn AND pg_catalog.shobj_description(d.datdba, 'pg_authid') LIKE 'conductor:%' AND EXISTS (SELECT FROM pg_catalog.pg_shdepend s WHERE s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND s.refobjid = (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = 'R_b') AND (s.dbid = d.oid OR s.objid = d.oid)) AND NOT EXISTS (SELECT FROM pg_catalog.pg_shdepend s WHERE s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND s.refobjid = (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = 'R_b') AND s.dbid = d.oid AND s.deptype = 'o')
        DROP ROLE "R_b""#]].assert_eq(&lines(Dialect::Postgresql, RoleAccess::ReadWrite));
}

#[test]
fn a_reader_on_postgresql_gets_no_right_to_write() {
    let text = lines(Dialect::Postgresql, RoleAccess::ReadOnly);
    for word in ["INSERT", "UPDATE", "DELETE", "EXECUTE ON", "TEMPORARY", "USAGE ON SEQUENCE"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
}

#[test]
fn the_statements_on_mariadb() {
    expect_test::expect![[r#"
        INSERT INTO `conductor`.`marks` (kind, name, mark) VALUES ('user', 'R_a', 'conductor:r''1 0 - u''1') ON DUPLICATE KEY UPDATE mark = VALUES(mark)
        CREATE USER IF NOT EXISTS 'R_a'@'%' IDENTIFIED VIA mysql_native_password USING '*0000000000000000000000000000000000000000' ACCOUNT LOCK
        GRANT SELECT, SHOW VIEW ON `ESC`.* TO 'R_a'@'%'
        REVOKE INSERT, UPDATE, DELETE, EXECUTE, CREATE TEMPORARY TABLES ON `ESC`.* FROM 'R_a'@'%'
        UPDATE `conductor`.`marks` SET mark = 'conductor:r''1 3 ReadOnly u''1' WHERE kind = 'user' AND name = 'R_a'
        ALTER USER 'R_b'@'%' IDENTIFIED VIA mysql_native_password USING 'VERIFIER' WITH MAX_QUERIES_PER_HOUR 0 MAX_UPDATES_PER_HOUR 0 MAX_CONNECTIONS_PER_HOUR 0 PASSWORD EXPIRE NEVER ACCOUNT UNLOCK
        UPDATE `conductor`.`marks` SET mark = 'conductor:r''1 7 ReadOnly u''1' WHERE kind = 'user' AND name = 'R_b'
        ALTER USER 'R_a'@'%' ACCOUNT LOCK
        KILL HARD USER 'R_a'@'%'
        DROP USER IF EXISTS 'R_b'@'%'
        DELETE FROM `conductor`.`marks` WHERE kind = 'user' AND name = 'R_b'
        DROP USER IF EXISTS 'R_b'@'%'
        DELETE FROM `conductor`.`marks` WHERE kind = 'user' AND name = 'R_b'"#]].assert_eq(&lines(Dialect::Mariadb, RoleAccess::ReadOnly));
}
