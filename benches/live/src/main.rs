//! How fast claims are bound on a real API server: what a bare client reaches at most, what Kubernetes' own
//! binder of volumes reaches, what Conductor reaches, one after the other on one API server.
//! Every figure comes from this run; nothing is asserted, and nothing is tuned between the runs.

mod binder;
mod cluster;
mod meter;
mod provision;
mod report;
mod scenario;
mod scenes;

use anyhow::Result;
use binder::{Binder, Rival};
use clap::Parser;
use cluster::Cluster;
use std::path::{Path, PathBuf};

/// Bind claims on a real API server and print how fast it went
#[derive(Debug, Parser)]
struct Arguments {
    /// The `conductor` that is measured
    #[arg(long, value_name = "FILE")]
    conductor: PathBuf,
    /// Claims in each run
    #[arg(long, default_value_t = 1_000)]
    claims: usize,
    /// Claims that are bound already before the last runs
    #[arg(long, default_value_t = 10_000)]
    crowd: usize,
    /// Only provision, which takes a minute or so, and print that
    #[arg(long, conflicts_with = "write")]
    provision: bool,
    /// Only early claims, released offers and churn, which takes some minutes, and print that
    #[arg(long, conflicts_with_all = ["write", "provision"])]
    scenes: bool,
    /// Write the tables to docs/benchmarks.md as well
    #[arg(long)]
    write: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Arguments { conductor, claims, crowd, provision, scenes, write } = Arguments::parse();
    eprintln!("starting etcd and kube-apiserver");
    let mut cluster = Cluster::start().await?;
    let mut report = report::Report::new(claims);
    if provision {
        let mut binder = Binder::new(Rival::Conductor, &conductor);
        let provisioned = provision::provision(&mut cluster, &mut binder, claims).await?;
        println!("{}", report::provisioned(claims, &provisioned));
        return Ok(());
    }
    if scenes {
        play_scenes(&mut cluster, &mut report, &conductor, claims).await?;
        println!("{}", report.scenes_text());
        return Ok(());
    }
    eprintln!("ceiling: status patches from a bare client");
    report.ceiling(scenario::ceiling(&cluster, claims).await?);
    for rival in [Rival::Volumes, Rival::Conductor] {
        let mut binder = Binder::new(rival, &conductor);
        let (backlog, arrivals) = scenario::compare(&mut cluster, &mut binder, claims).await?;
        report.compared(rival, backlog, arrivals);
    }
    play_scenes(&mut cluster, &mut report, &conductor, claims).await?;
    let mut binder = Binder::new(Rival::Conductor, &conductor);
    report.provisioned(provision::provision(&mut cluster, &mut binder, claims).await?);
    let mut binder = Binder::new(Rival::Conductor, &conductor);
    let crowded = scenario::crowd(&mut cluster, &mut binder, crowd, claims).await?;
    report.crowded(crowd, crowded);
    let text = report.text();
    println!("{text}");
    if write {
        report::write(&text)?;
    }
    Ok(())
}

async fn play_scenes(
    cluster: &mut Cluster,
    report: &mut report::Report,
    conductor: &Path,
    claims: usize,
) -> Result<()> {
    for rival in [Rival::Volumes, Rival::Conductor] {
        let mut binder = Binder::new(rival, conductor);
        report.played(rival, scenes::play(cluster, &mut binder, claims).await?);
    }
    Ok(())
}
