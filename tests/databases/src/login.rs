//! A login as an application makes it: with a driver of its own and what stands in the published Secret.

use conductor_sql::Access;
use conductor_sql_plan::sql::Dialect;
use mysql_async::prelude::Queryable;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// Who logs in, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// What the server speaks.
    pub dialect: Dialect,
    /// Everything else, by the keys of the Secret.
    pub keys: BTreeMap<String, String>,
}

impl Login {
    /// From a published Secret.
    pub fn new(dialect: Dialect, keys: BTreeMap<String, String>) -> Login {
        Login { dialect, keys }
    }

    /// The administrator's.
    pub fn admin(access: &Access) -> Login {
        let keys = [
            ("host", access.host.clone()),
            ("port", access.port.to_string()),
            ("username", access.username.clone()),
            ("password", access.password.expose().to_owned()),
            ("database", access.database.clone()),
        ];
        let keys = keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Login { dialect: access.dialect, keys }
    }

    /// The same in another database.
    #[must_use]
    pub fn at(&self, database: &str) -> Login {
        let mut there = self.clone();
        there.keys.insert("database".to_owned(), database.to_owned());
        there
    }

    /// One key.
    pub fn get(&self, key: &str) -> &str {
        self.keys.get(key).map(String::as_str).unwrap_or_default()
    }

    /// Runs statements in a connection of their own; returns the first column of the rows.
    ///
    /// # Errors
    /// What the server said.
    pub async fn run(&self, text: &str) -> Result<Vec<String>, String> {
        let within = Duration::from_secs(20);
        let run = async {
            match self.dialect {
                Dialect::Postgresql => self.run_postgresql(text).await,
                Dialect::Mariadb | Dialect::Mysql => self.run_mariadb(text).await,
            }
        };
        tokio::time::timeout(within, run).await.unwrap_or_else(|_| Err("no answer".to_owned()))
    }

    /// Opens a connection that stays open.
    ///
    /// # Errors
    /// What the server said.
    pub async fn hold(&self) -> Result<Held, String> {
        match self.dialect {
            Dialect::Postgresql => {
                let opened = self.postgresql().connect(NoTls).await;
                let (client, connection) = opened.map_err(|error| error.to_string())?;
                Ok(Held::Postgresql(client, tokio::spawn(async move { drop(connection.await) })))
            }
            Dialect::Mariadb | Dialect::Mysql => {
                let opened = mysql_async::Conn::new(self.mysql()).await;
                Ok(Held::Mysql(Box::new(opened.map_err(|error| error.to_string())?)))
            }
        }
    }

    fn postgresql(&self) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        config.host(self.get("host")).port(self.get("port").parse().unwrap_or(0));
        config.user(self.get("username")).password(self.get("password")).dbname(self.get("database"));
        config
    }

    fn mysql(&self) -> mysql_async::OptsBuilder {
        mysql_async::OptsBuilder::default()
            .ip_or_hostname(self.get("host"))
            .tcp_port(self.get("port").parse().unwrap_or(0))
            .user(Some(self.get("username")))
            .pass(Some(self.get("password")))
            .db_name(Some(self.get("database")))
            .prefer_socket(false)
    }

    async fn run_postgresql(&self, text: &str) -> Result<Vec<String>, String> {
        let said = |error: tokio_postgres::Error| match error.as_db_error() {
            Some(error) => error.message().to_owned(),
            None => error.to_string(),
        };
        let (client, connection) = self.postgresql().connect(NoTls).await.map_err(said)?;
        let task = tokio::spawn(connection);
        let answer = client.simple_query(text).await.map_err(said);
        drop(client);
        let _ = task.await;
        Ok(answer?
            .into_iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
                _ => None,
            })
            .collect())
    }

    async fn run_mariadb(&self, text: &str) -> Result<Vec<String>, String> {
        let said = |error: mysql_async::Error| error.to_string();
        let mut conn = mysql_async::Conn::new(self.mysql()).await.map_err(said)?;
        let mut last = Vec::new();
        for statement in text.split(';').filter(|statement| !statement.trim().is_empty()) {
            last = conn.query::<mysql_async::Row, _>(statement).await.map_err(said)?;
        }
        let _ = conn.disconnect().await;
        Ok(last.into_iter().filter_map(|mut row| row.take::<Option<String>, usize>(0).flatten()).collect())
    }
}

/// A connection that stays open, as pools keep them.
#[derive(Debug)]
pub enum Held {
    /// On PostgreSQL, with the task that reads from it.
    Postgresql(tokio_postgres::Client, tokio::task::JoinHandle<()>),
    /// On MariaDB or MySQL.
    Mysql(Box<mysql_async::Conn>),
}

impl Held {
    /// Whether it still answers.
    pub async fn answers(&mut self) -> bool {
        match self {
            Held::Postgresql(client, _) => client.simple_query("SELECT 1").await.is_ok(),
            Held::Mysql(conn) => conn.query_drop("SELECT 1").await.is_ok(),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Held::Postgresql(_, task) = self {
            task.abort();
        }
    }
}
