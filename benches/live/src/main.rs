//! How fast claims are bound on a real API server: what a bare client reaches at most, what Kubernetes' own
//! binder of volumes reaches, what Conductor reaches, run by run in turn, each on an API server that holds nothing else:
//! what one leaves behind would be carried by the next. Every figure comes from this run; nothing is asserted, and
//! nothing is tuned between the runs.

mod binder;
mod cluster;
mod limit;
mod meter;
mod provision;
mod report;
mod scenario;
mod scenes;

use anyhow::Result;
use binder::{Binder, Rival};
use clap::{Parser, ValueEnum};
use cluster::Cluster;
use report::Report;
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
    /// Only these runs, and only print them
    #[arg(long, value_name = "RUN", value_delimiter = ',', conflicts_with = "write")]
    only: Vec<Run>,
    /// Write the tables to docs/benchmarks.md as well
    #[arg(long)]
    write: bool,
}

/// One run
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Run {
    /// What a bare client reaches
    Limit,
    /// Claims that exist when the binder starts
    Backlog,
    /// Claims that arrive as fast as they can be created
    Arrivals,
    /// Claims that exist before their offers
    Early,
    /// Claims beside offers that no claim may get
    Released,
    /// Claims that are created and deleted
    Churn,
    /// Claims for which a class creates everything
    Provision,
    /// Claims beside many that are bound, and a restart
    Crowd,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Arguments { conductor, claims, crowd, only, write } = Arguments::parse();
    let asked = |run| only.is_empty() || only.contains(&run);
    let mut report = Report::new(claims);
    if asked(Run::Limit) {
        let cluster = start().await?;
        eprintln!("limit: a bare client");
        report.limit(limit::measure(&cluster, claims).await?);
    }
    compare(&conductor, claims, &asked, &mut report).await?;
    if asked(Run::Provision) {
        let mut binder = Binder::new(Rival::Conductor, &conductor);
        report.provisioned(provision::provision(&mut start().await?, &mut binder, claims).await?);
    }
    if asked(Run::Crowd) {
        let mut binder = Binder::new(Rival::Conductor, &conductor);
        let crowded = scenario::crowd(&mut start().await?, &mut binder, crowd, claims).await?;
        report.crowded(crowd, crowded);
    }
    let text = report.text();
    println!("{text}");
    if write {
        report::write(&text)?;
    }
    Ok(())
}

async fn start() -> Result<Cluster> {
    eprintln!("starting etcd and kube-apiserver");
    Cluster::start().await
}

/// One of the two, on its own API server.
struct Side {
    cluster: Cluster,
    binder: Binder,
}

impl Side {
    async fn start(rival: Rival, conductor: &Path) -> Result<Side> {
        Ok(Side { cluster: start().await?, binder: Binder::new(rival, conductor) })
    }

    async fn run(&mut self, run: Run, claims: usize, report: &mut Report) -> Result<()> {
        let rival = self.binder.rival;
        let Side { cluster, binder } = self;
        if run != Run::Backlog && !binder.is_started() {
            binder.start(cluster).await?;
        }
        match run {
            Run::Backlog => report.bound(run, rival, scenario::backlog(cluster, binder, claims).await?),
            Run::Arrivals => {
                report.bound(run, rival, scenario::arrive(cluster, binder, "arrival", claims).await?)
            }
            Run::Early => report.early(rival, scenes::early(cluster, rival, 2 * claims).await?),
            Run::Released => report.bound(run, rival, scenes::among_released(cluster, binder, claims).await?),
            Run::Churn => report.churn(rival, scenes::churn(cluster, rival).await?),
            Run::Limit | Run::Provision | Run::Crowd => {}
        }
        Ok(())
    }
}

/// The same work for both, run after run, each run one after the other: on cores that others use too, an hour is not like
/// the next, and two runs in a row are.
async fn compare(
    conductor: &Path,
    claims: usize,
    asked: &impl Fn(Run) -> bool,
    report: &mut Report,
) -> Result<()> {
    let all = [Run::Backlog, Run::Arrivals, Run::Early, Run::Released, Run::Churn];
    let runs: Vec<Run> = all.into_iter().filter(|run| asked(*run)).collect();
    if runs.is_empty() {
        return Ok(());
    }
    let mut sides =
        [Side::start(Rival::Volumes, conductor).await?, Side::start(Rival::Conductor, conductor).await?];
    for run in runs {
        for side in &mut sides {
            side.run(run, claims, report).await?;
        }
    }
    sides.iter_mut().for_each(|side| side.binder.kill(&mut side.cluster));
    Ok(())
}
