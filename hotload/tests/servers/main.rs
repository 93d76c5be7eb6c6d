//! Pools on real servers: logins change under them, the server goes away, the login does not work. The servers are
//! started by the tests, from what is installed.

mod example;
mod house;
mod load;
mod mariadb;
#[allow(dead_code, reason = "the tests of watching use the rest of it")]
mod mount;
mod pool;
mod probe;
mod rotation;
mod server;
mod sqlx_pool;
mod tls;
