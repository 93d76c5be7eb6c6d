//! The tables that people read. Ratios are of one run; the machine is named with them.

use crate::binder::Rival;
use crate::meter::Usage;
use crate::provision::Provisioned;
use crate::scenario::{Crowded, Outcome};
use crate::scenes::Scenes;
use anyhow::Result;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

const COMMAND: &str = "make bench-live";
/// What this bench measured before, what named the cause, and what limits it now.
const BEFORE: &str = "\
Before, on 2026-11-17, while the part that serves databases followed every claim of the cluster, this bench measured a
backlog at 193 binds/s, arrivals at 114, early claims at 47, those beside released offers at 32, churn with a p50 of 1.1 s,
1,000 provisioned at 7 a second and 786 MiB after a restart with 8,000 objects, at 3.9 to 9.3 ms on a core for a bind. The
same binary with `run --no-databases` bound early claims at 131/s and those beside released offers at 177, which named the
cause: for each claim that changed that part asked the API for a record that was not there, and walked all resources. It
now follows claims only once there is a server, a record or somebody who asks for a database, and looks up what a change
names.

The limit: of the time on a core that a bind takes, less than a tenth is ours and most is the API server's. Two of a bind's four
writes stand back while others are on their way, so that a backlog is Bound sooner than a bare client could patch four times
for each. Claims that arrive are bound about as fast as they are made: making one and binding it are three writes at least,
which share the ceiling, so that four times the PV binder's rate is out of reach there on these cores. Claims that are there
before their offers get up to one write more: many are told anew how many do not fit just before their own comes. Before the record of
a claim stood back, at a ceiling of 712 patches/s, this bench measured a backlog at 183 binds/s, arrivals at 180, early claims
at 93, those beside released offers at 107 and churn with a p99 of 59 ms. Runs lie far apart on shared cores.";

/// What was measured so far.
pub struct Report {
    claims: usize,
    ceiling: f64,
    rows: Vec<(&'static str, Rival, Outcome)>,
    scenes: Vec<(Rival, Scenes)>,
    provisioned: Option<Provisioned>,
    crowded: Option<(usize, Crowded)>,
}

impl Report {
    pub fn new(claims: usize) -> Report {
        Report {
            claims,
            ceiling: 0.0,
            rows: Vec::new(),
            scenes: Vec::new(),
            provisioned: None,
            crowded: None,
        }
    }

    pub fn ceiling(&mut self, per_second: f64) {
        eprintln!("  {per_second:.0} status patches/s");
        self.ceiling = per_second;
    }

    pub fn compared(&mut self, rival: Rival, backlog: Outcome, arrivals: Outcome) {
        for (what, outcome) in [("backlog", backlog), ("arrivals", arrivals)] {
            eprintln!("  {what}: {:.0} binds/s", outcome.per_second);
            self.rows.push((what, rival, outcome));
        }
    }

    pub fn played(&mut self, rival: Rival, scenes: Scenes) {
        self.scenes.push((rival, scenes));
    }

    pub fn provisioned(&mut self, provisioned: Provisioned) {
        self.provisioned = Some(provisioned);
    }

    pub fn crowded(&mut self, bound: usize, crowded: Crowded) {
        self.crowded = Some((bound, crowded));
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "Everything, the API server too, runs on these cores.\n\n\
             Ceiling: {:.0} status patches/s from a bare client, 64 at a time.\n\n\
             {} offers, {} claims in each run. Backlog: the binder finds them when it starts, measured from the\n\
             first Bound to the last. Arrivals: claims are made as fast as 16 callers can, measured from the sending of\n\
             a claim until a watch shows it Bound. Writes are all that the API server counted but those that made the\n\
             claims; Leases and Events are left out. Of the ceiling: binds/s times writes per bind, as a share of it; in arrivals,\n\
             the writes that make the claims count too.\n",
            self.ceiling, self.claims, self.claims
        );
        self.compared_table(&mut text);
        self.used_table(&mut text);
        let _ = write!(text, "\n{}", self.scenes_text());
        if let Some(made) = &self.provisioned {
            let _ = writeln!(text, "\n{}", provisioned(self.claims, made));
        }
        self.crowded_table(&mut text);
        let _ = writeln!(text, "\n{BEFORE}");
        text
    }

    fn compared_table(&self, text: &mut String) {
        text.push_str("| run | who | binds/s | p50 | p99 | writes per bind | of the ceiling |\n");
        text.push_str("|---|---|---:|---:|---:|---:|---:|\n");
        for (what, rival, outcome) in &self.rows {
            let made = if outcome.latency.is_some() { 1.0 } else { 0.0 };
            let share = outcome.per_second * (outcome.writes_per_bind + made) / self.ceiling * 100.0;
            let (p50, p99) = outcome.latency.map_or_else(Default::default, |(a, b)| (ms(a), ms(b)));
            let (rate, writes) = (outcome.per_second, outcome.writes_per_bind);
            let name = rival.name();
            let _ = writeln!(
                text,
                "| {what} | {name} | {rate:.0} | {p50} | {p99} | {writes:.2} | {share:.0} % |"
            );
        }
        for what in ["backlog", "arrivals"] {
            let of = |rival| self.rows.iter().find(|(w, r, _)| *w == what && *r == rival).map(|(_, _, o)| o);
            let Some((theirs, ours)) = of(Rival::Volumes).zip(of(Rival::Conductor)) else { continue };
            let _ = write!(
                text,
                "\n{what}: {:.1} times the PV binder's rate",
                ours.per_second / theirs.per_second
            );
            text.push_str(&waits(theirs, ours));
            text.push_str(".\n");
        }
    }

    fn used_table(&self, text: &mut String) {
        text.push_str("\n| run | who | process | time on a core | per bind | peak memory |\n");
        text.push_str("|---|---|---|---:|---:|---:|\n");
        for (what, rival, outcome) in &self.rows {
            for (process, Usage { cpu, peak_mib }) in &outcome.used {
                let each = ms(*cpu / self.claims.max(1) as u32);
                let (name, cpu) = (rival.name(), cpu.as_secs_f64());
                let _ =
                    writeln!(text, "| {what} | {name} | {process} | {cpu:.2} s | {each} | {peak_mib} MiB |");
            }
        }
    }

    /// The runs that are not quiet.
    pub fn scenes_text(&self) -> String {
        let Some((_, Scenes { early, released: _, churn })) = self.scenes.first() else {
            return String::new();
        };
        let mut text = format!(
            "Early: {} claims are there before their offers are made; the rate is from the first offer to the last Bound,\n\
             the wait from the last offer to it. Released: {} claims arrive beside nine times as many offers that\n\
             nobody may have. Churn: {} claims come, 20 a second, and go when 200 younger ones are there.\n\n\
             | run | who | binds/s | wait | p50 | p90 | p99 | most | writes per bind |\n\
             |---|---|---:|---:|---:|---:|---:|---:|---:|\n",
            early.claims, self.claims, churn.claims
        );
        for (rival, Scenes { early, released, churn }) in &self.scenes {
            let (name, wait) = (rival.name(), ms(early.after_last_offer));
            let (rate, writes) = (early.per_second, early.writes_per_bind);
            let _ = writeln!(text, "| early | {name} | {rate:.0} | {wait} | | | | | {writes:.2} |");
            let (p50, p99) = released.latency.map_or_else(Default::default, |(a, b)| (ms(a), ms(b)));
            let (rate, writes) = (released.per_second, released.writes_per_bind);
            let _ = writeln!(text, "| released | {name} | {rate:.0} | | {p50} | | {p99} | | {writes:.2} |");
            let [p50, p90, p99, most] = churn.latencies.map(ms);
            let _ = writeln!(text, "| churn | {name} | | | {p50} | {p90} | {p99} | {most} | |");
        }
        self.scenes_ratios(&mut text);
        text
    }

    fn scenes_ratios(&self, text: &mut String) {
        let of = |rival| self.scenes.iter().find(|(r, _)| *r == rival).map(|(_, scenes)| scenes);
        let Some((theirs, ours)) = of(Rival::Volumes).zip(of(Rival::Conductor)) else { return };
        let early = ours.early.per_second / theirs.early.per_second;
        let _ = write!(text, "\nearly: {early:.1} times the PV binder's rate.\n");
        let rate = ours.released.per_second / theirs.released.per_second;
        let waits = waits(&theirs.released, &ours.released);
        let _ = write!(text, "\nreleased: {rate:.1} times the PV binder's rate{waits}");
        let [.., theirs, _] = theirs.churn.latencies;
        let [.., ours, _] = ours.churn.latencies;
        let churn = ours.as_secs_f64() / theirs.as_secs_f64();
        let _ = write!(text, ".\n\nchurn: {churn:.2} times the PV binder's p99.\n");
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

/// How long claims that arrive wait, beside the other's, and how fast they were made.
fn waits(theirs: &Outcome, ours: &Outcome) -> String {
    let Some(((_, their_p99), (_, our_p99))) = theirs.latency.zip(ours.latency) else { return String::new() };
    let ratio = our_p99.as_secs_f64() / their_p99.as_secs_f64();
    let made = ours.made_per_second.zip(theirs.made_per_second).map_or_else(String::new, |(ours, theirs)| {
        format!("; claims were made at {ours:.0} a second beside Conductor, {theirs:.0} beside the PV binder")
    });
    format!(", {ratio:.2} times its p99{made}")
}

/// What provisioning took, for people.
pub fn provisioned(claims: usize, provisioned: &Provisioned) -> String {
    let Provisioned { per_second, p50, p99, writes_per_claim, ready } = provisioned;
    format!(
        "Provisioned: {claims} claims, each with a resource, an object and a connection of its own, at\n\
         {per_second:.0} a second, p50 {}, p99 {} from the sending of a claim until it is Bound; {ready} of them have\n\
         their connection. {writes_per_claim:.2} writes per claim, without the claim itself and the operator's word.",
        ms(*p50),
        ms(*p99)
    )
}

fn ms(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}

/// Writes the tables where people look for them.
pub fn write(text: &str) -> Result<()> {
    let page = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/benchmarks.md"));
    Ok(conductor_bench_document::write(page, conductor_bench_document::Section::Live, COMMAND, text)?)
}
