//! `conductor demo`: everything in a minute. It starts `conductor up` as a user would, lets three teams claim over HTTPS,
//! shows the results and checks them: an unexpected result ends the demo with an error. Nothing is simulated: every
//! table and every line comes from the running controllers.

mod script;
mod stage;
mod view;
mod working;

use crate::cluster;
use anyhow::Result;
use stage::Stage;

/// A step of the demo had another result than expected.
#[derive(Debug)]
pub struct Unexpected(String);

impl std::fmt::Display for Unexpected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the demo expected: {}", self.0)
    }
}

impl std::error::Error for Unexpected {}

/// `conductor demo`.
pub fn demo() -> Result<()> {
    cluster::block_on(async {
        let stage = Stage::start().await?;
        let result = script::run(&stage).await;
        let ended = stage.end();
        result.and(ended)
    })
}
