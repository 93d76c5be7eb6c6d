//! The tables of docs/benchmarks.md. Ratios are of one run; the machine is named with them.

use crate::Run;
use crate::binder::Rival;
use crate::limit::Limit;
use crate::meter::Usage;
use crate::provision::Provisioned;
use crate::scenario::{Crowded, Outcome};
use crate::scenes::{Churn, Early};
use anyhow::Result;
use clap::ValueEnum;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

const COMMAND: &str = "make bench-live";
/// Earlier measurements, their cause, and what limits the rate now.
const BEFORE: &str = "\
Before 2026-11-17 the database controller watched every claim of the cluster, and this bench measured a backlog at 193
binds/s, arrivals at 114, early claims at 47, those beside released offers at 32, churn with a p50 of 1.1 s, 1,000 provisioned
at 7 a second and 786 MiB after a restart with 8,000 objects, at 3.9 to 9.3 ms on a core for a bind. The same binary with
`run --no-databases` bound early claims at 131/s and those beside released offers at 177, which named the cause: for each
claim that changed, the database controller requested a record that did not exist, and walked all resources. It now watches
claims only once there is a server, a record or a DatabaseClaim, and looks up only what a change names.

What limits it: of the time on a core that a bind takes, less than a tenth is ours and most is the API server's. A profile of
kube-apiserver under the bare client's patches (`kubectl get --raw '/debug/pprof/profile?seconds=12'`) names no single cost: it
decodes, copies, encodes and garbage-collects the object several times for each write, so the number of writes and the size of
the object count. Therefore a claim that is next in the queue gets no new numbers just before its own offer comes (4.5 writes for
each early claim before, 4 now), and the status of claims and resources is atomic: without managed fields for its parts, a bound
claim has 1,338 bytes, 1,701 before. That took the bare client from 598 patches/s, 320 and 268 binds/s to 660, 364 and 284, in two
runs one after the other without its watches. Two of a bind's four writes have low priority and are deferred while others are in
flight, which is why the share of the ceiling exceeds 100 %. Where the limit itself is less than four times the PV binder's rate,
no client that writes both sides of a binding as custom resources can be faster on these cores. In churn, the bare client's row
shows the three calls alone.

Before 2026-11-18 both ran on one API server, one after the other, and the second inherited the state of the first: churn had a p99
of 59 to 240 ms for Conductor and 217 to 263 ms for the PV binder. On a fresh API server (`bench-live --only churn`), it is 38 ms for
Conductor and 34 ms for the PV binder. Then two machines of the same size, each with all runs of the PV binder before all of
Conductor's, gave 4.2 and 5.8 times the PV binder's rate in backlog, 2.1 and 4.0 in arrivals, 3.0 and 4.5 for early claims, 3.1 and
4.8 beside released offers: the PV binder bound its own arrivals at 90 and at 64 a second. Runs vary widely on shared cores; since
then both take turns in each run. The first such run had churn with a p99 of 158 ms for Conductor, where the two before had 36 and 43
ms; the other API server on the same cores may be the cause, which was not measured separately.";

/// The measurements so far.
pub struct Report {
    claims: usize,
    limit: Option<Limit>,
    rows: Vec<Row>,
    early: Vec<(Rival, Early)>,
    churn: Vec<(Rival, Churn)>,
    provisioned: Option<Provisioned>,
    crowded: Option<(usize, Crowded)>,
}

/// One run of one of the two.
struct Row {
    run: Run,
    rival: Rival,
    outcome: Outcome,
}

impl Report {
    pub fn new(claims: usize) -> Report {
        Report {
            claims,
            limit: None,
            rows: Vec::new(),
            early: Vec::new(),
            churn: Vec::new(),
            provisioned: None,
            crowded: None,
        }
    }

    pub fn limit(&mut self, limit: Limit) {
        let Limit { patches, backlog, arrivals, released, .. } = limit;
        eprintln!(
            "  {patches:.0} status patches/s, {backlog:.0} binds/s, {arrivals:.0} with the creation of the claim, \
             {released:.0} beside released offers"
        );
        self.limit = Some(limit);
    }

    pub fn bound(&mut self, run: Run, rival: Rival, outcome: Outcome) {
        eprintln!("  {:.0} binds/s", outcome.per_second);
        self.rows.push(Row { run, rival, outcome });
    }

    pub fn early(&mut self, rival: Rival, early: Early) {
        eprintln!("  {:.0} binds/s", early.per_second);
        self.early.push((rival, early));
    }

    pub fn churn(&mut self, rival: Rival, churn: Churn) {
        eprintln!("  p99 {}", ms(churn.latencies[2]));
        self.churn.push((rival, churn));
    }

    pub fn provisioned(&mut self, provisioned: Provisioned) {
        self.provisioned = Some(provisioned);
    }

    pub fn crowded(&mut self, bound: usize, crowded: Crowded) {
        self.crowded = Some((bound, crowded));
    }

    pub fn text(&self) -> String {
        let mut text = format!(
            "Everything, the API server included, runs on these cores. Each of the two has its own API server, empty at first,\n\
             and both take turns in each run.\n\n\
             {0} offers, {0} claims in each run. Backlog: the binder finds them when it starts, measured from the\n\
             first Bound to the last. Arrivals: 16 callers create claims as fast as they can, measured from the request\n\
             until a watch shows the claim Bound. Early: {1} claims exist before their offers, measured from the first\n\
             offer to the last Bound. Released: as arrivals, beside nine times as many released offers, which no claim may get.\n\
             Writes are all writes that the API server counted, without Leases, Events and the creation of claims (in early,\n\
             of offers).\n",
            self.claims,
            2 * self.claims
        );
        self.limit_text(&mut text);
        self.bound_table(&mut text);
        self.used_table(&mut text);
        self.churn_table(&mut text);
        if let Some(made) = &self.provisioned {
            let _ = writeln!(text, "\n{}", provisioned(self.claims, made));
        }
        self.crowded_table(&mut text);
        let _ = writeln!(text, "\n{BEFORE}");
        text
    }

    fn limit_text(&self, text: &mut String) {
        let Some(Limit { patches, backlog, arrivals, released, .. }) = self.limit else { return };
        let _ = writeln!(
            text,
            "\nThe limit of the API server here, measured with a bare client that knows all decisions, 64 calls at a time: {patches:.0} status\n\
             patches/s (the ceiling); {backlog:.0} binds/s for an existing claim and offer, which are two writes; {arrivals:.0} binds/s\n\
             with the creation of one of them, {released:.0} beside released offers. The share of the ceiling is binds/s times writes per\n\
             bind, creations of claims or offers included; the share of the limit is of the binds/s."
        );
    }

    fn bound_table(&self, text: &mut String) {
        text.push_str(
            "\n| run | who | binds/s | p50 | p99 | writes per bind | of the ceiling | of the limit |\n",
        );
        text.push_str("|---|---|---:|---:|---:|---:|---:|---:|\n");
        let mut ratios = String::new();
        for run in [Run::Backlog, Run::Arrivals, Run::Early, Run::Released] {
            for rival in [Rival::Volumes, Rival::Conductor] {
                let Some(rate) = self.rate(run, rival) else { continue };
                let latency = self.outcome(run, rival).and_then(|outcome| outcome.latency);
                let (p50, p99) = latency.map_or_else(Default::default, |(a, b)| (ms(a), ms(b)));
                let (of_ceiling, of_limit) = self.shares(run, rival, rate);
                let (run, rival, Rate { per_second, writes }) = (name(run), rival.name(), rate);
                let _ = writeln!(
                    text,
                    "| {run} | {rival} | {per_second:.0} | {p50} | {p99} | {writes:.2} | {of_ceiling} | {of_limit} |"
                );
            }
            ratios.push_str(&self.ratio(run));
        }
        text.push_str(&ratios);
    }

    fn outcome(&self, run: Run, rival: Rival) -> Option<&Outcome> {
        self.rows.iter().find(|row| row.run == run && row.rival == rival).map(|row| &row.outcome)
    }

    fn rate(&self, run: Run, rival: Rival) -> Option<Rate> {
        let bound = self.outcome(run, rival).map(|o| (o.per_second, o.writes_per_bind));
        let early = self.early.iter().find(|(r, _)| run == Run::Early && *r == rival);
        let early = early.map(|(_, early)| (early.per_second, early.writes_per_bind));
        bound.or(early).map(|(per_second, writes)| Rate { per_second, writes })
    }

    /// Of the ceiling, and, where we wrote, of the limit.
    fn shares(&self, run: Run, rival: Rival, rate: Rate) -> (String, String) {
        let Some(limit) = self.limit else { return Default::default() };
        let made = if run == Run::Backlog { 0.0 } else { 1.0 };
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let of_ceiling = percent(rate.per_second * (rate.writes + made) / limit.patches);
        let of_limit = (rival == Rival::Conductor).then(|| percent(rate.per_second / limit.of(run)));
        (of_ceiling, of_limit.unwrap_or_default())
    }

    fn ratio(&self, run: Run) -> String {
        let of = |rival| self.rate(run, rival);
        let Some((theirs, ours)) = of(Rival::Volumes).zip(of(Rival::Conductor)) else { return String::new() };
        let times = ours.per_second / theirs.per_second;
        let outcomes = self.outcome(run, Rival::Volumes).zip(self.outcome(run, Rival::Conductor));
        let mut waits = outcomes.map_or_else(String::new, |(theirs, ours)| waits(theirs, ours));
        if let [(_, theirs), (_, ours)] = &self.early[..]
            && run == Run::Early
        {
            let [theirs, ours] = [theirs, ours].map(|early| ms(early.after_last_offer));
            waits = format!("; the last is Bound {ours} after the last offer, the PV binder's {theirs}");
        }
        let name = name(run);
        let limit = self.limit.map_or_else(String::new, |limit| {
            format!("; the limit is {:.1} times it", limit.of(run) / theirs.per_second)
        });
        format!("\n{name}: {times:.1} times the PV binder's rate{limit}{waits}.\n")
    }

    fn used_table(&self, text: &mut String) {
        text.push_str("\n| run | who | process | time on a core | per bind | peak memory |\n");
        text.push_str("|---|---|---|---:|---:|---:|\n");
        for Row { run, rival, outcome } in &self.rows {
            for (process, Usage { cpu, peak_mib }) in &outcome.used {
                let each = ms(*cpu / self.claims.max(1) as u32);
                let (run, rival, cpu) = (name(*run), rival.name(), cpu.as_secs_f64());
                let _ =
                    writeln!(text, "| {run} | {rival} | {process} | {cpu:.2} s | {each} | {peak_mib} MiB |");
            }
        }
    }

    fn churn_table(&self, text: &mut String) {
        let Some((_, Churn { claims, .. })) = self.churn.first() else { return };
        let _ = write!(
            text,
            "\nChurn: {claims} claims are created, 20 a second, and deleted when 200 newer ones exist. The bare client creates claims at the\n\
             same pace, writes both sides one after the other, and deletes none.\n\n\
             | who | p50 | p90 | p99 | most |\n|---|---:|---:|---:|---:|\n"
        );
        let bare = self.limit.map(|limit| ("bare client", limit.alone));
        let both = self.churn.iter().map(|(rival, churn)| (rival.name(), churn.latencies));
        for (who, latencies) in bare.into_iter().chain(both) {
            let [p50, p90, p99, most] = latencies.map(ms);
            let _ = writeln!(text, "| {who} | {p50} | {p90} | {p99} | {most} |");
        }
        if let [(_, theirs), (_, ours)] = &self.churn[..] {
            let ratio = ours.latencies[2].as_secs_f64() / theirs.latencies[2].as_secs_f64();
            let _ = write!(text, "\nchurn: {ratio:.2} times the PV binder's p99.\n");
        }
    }

    fn crowded_table(&self, text: &mut String) {
        let Some((bound, crowded)) = &self.crowded else { return };
        let Crowded { arrivals, objects, ready_after, writes_after_restart, memory_mib } = crowded;
        let (p50, p99) = arrivals.latency.map_or_else(Default::default, |(a, b)| (ms(a), ms(b)));
        let (claims, rate) = (self.claims, arrivals.per_second);
        let _ = writeln!(
            text,
            "\nConductor beside {bound} bound claims: {claims} new ones at {rate:.0} binds/s, p50 {p50}, p99 {p99}.\n\
             Killed and started again with {objects} objects and more: ready after {:.1} s, {memory_mib} MiB,\n\
             {writes_after_restart} writes.",
            ready_after.as_secs_f64()
        );
    }
}

/// How fast, and with how many writes for each.
#[derive(Clone, Copy)]
struct Rate {
    per_second: f64,
    writes: f64,
}

/// A run's name in tables.
fn name(run: Run) -> String {
    run.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// How long claims that arrive wait, beside the other's, and how fast they were made.
fn waits(theirs: &Outcome, ours: &Outcome) -> String {
    let Some(((_, their_p99), (_, our_p99))) = theirs.latency.zip(ours.latency) else { return String::new() };
    let ratio = our_p99.as_secs_f64() / their_p99.as_secs_f64();
    let made = ours.made_per_second.zip(theirs.made_per_second).map_or_else(String::new, |(ours, theirs)| {
        format!(
            "; claims were created at {ours:.0} a second beside Conductor, {theirs:.0} beside the PV binder"
        )
    });
    format!(", {ratio:.2} times its p99{made}")
}

/// The paragraph on provisioning.
fn provisioned(claims: usize, provisioned: &Provisioned) -> String {
    let Provisioned { per_second, p50, p99, writes_per_claim, ready } = provisioned;
    format!(
        "Provisioned: {claims} claims, each with a resource, an object and a connection of its own, at\n\
         {per_second:.0} a second, p50 {}, p99 {} from the request until the claim is Bound; {ready} of them have\n\
         their connection. {writes_per_claim:.2} writes per claim, without the claim itself and the operator's status.",
        ms(*p50),
        ms(*p99)
    )
}

fn ms(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}

/// Writes the tables to docs/benchmarks.md.
pub fn write(text: &str) -> Result<()> {
    let page = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/benchmarks.md"));
    Ok(conductor_bench_document::write(page, conductor_bench_document::Section::Live, COMMAND, text)?)
}
