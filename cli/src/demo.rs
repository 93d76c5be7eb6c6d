//! `conductor demo`: everything in a minute. It starts `conductor up` as anybody would, lets three teams claim over
//! HTTPS, shows what came of it, and checks that: whatever is not as shown ends the demo with an error.
//! Nothing is played: every table and every line comes from the running controllers.

mod script;
mod stage;
mod view;
mod working;

use crate::cluster;
use anyhow::Result;
use stage::Stage;

/// Something was not as shown.
#[derive(Debug)]
pub struct NotAsShown(String);

impl std::fmt::Display for NotAsShown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not as promised: {}", self.0)
    }
}

impl std::error::Error for NotAsShown {}

/// `conductor demo`.
pub fn demo() -> Result<()> {
    cluster::block_on(async {
        let stage = Stage::start().await?;
        let played = script::play(&stage).await;
        let ended = stage.end();
        played.and(ended)
    })
}
