//! The page of each document.

use super::chart::{Bar, Series, bars, duration, grouped, lines};
use super::{Cell, CheckRow, Headline, Page, Row, Table, Tile};
use crate::compare::{Comparison, Figures};
use crate::diff::{ChangedClaim, ClaimChange, ClaimResult, Difference, ResourceChange};
use crate::gate::Verdict as GateVerdict;
use crate::plan::{Outcome, Plan, PlannedClaim, Summary};
use crate::record::Verdict;
use crate::replay::{Explanation, Replay, Sample};
use crate::whatif::{ClassImpact, WhatIf};
use std::collections::{BTreeMap, BTreeSet};

/// The page of a plan.
pub fn plan(plan: &Plan) -> Page {
    Page {
        title: "Plan".to_owned(),
        subtitle: "The outcome of every claim".to_owned(),
        verdict: Some(summary_verdict(plan.summary)),
        tiles: tiles(plan.summary, None),
        charts: plan_charts(plan),
        tables: vec![claims_table(plan), resources_table(plan)],
        footer: plan.digest.clone(),
        ..Page::default()
    }
}

/// The page of a what-if.
pub fn what_if(document: &WhatIf) -> Page {
    let WhatIf { edits, before, after, difference, .. } = document;
    Page {
        title: "What if".to_owned(),
        subtitle: "Only what changes".to_owned(),
        verdict: Some(difference_verdict(difference, before.summary, after.summary)),
        tiles: tiles(after.summary, Some(before.summary)),
        edits: edits.clone(),
        tables: difference_tables(difference, "changes", "Claims that change"),
        footer: format!("before {} · after {}", before.digest, after.digest),
        ..Page::default()
    }
}

/// The page of an edited class.
pub fn class_impact(document: &ClassImpact) -> Page {
    let mut tables = difference_tables(&document.now, "changes", "Changes when the class is applied");
    tables.extend(difference_tables(&document.anew, "anew", "Changes if its claims were bound again"));
    Page {
        title: format!("Class {}", document.class),
        subtitle: format!("{} claims count under it", document.claims),
        verdict: Some(difference_verdict(&document.now, document.before.summary, document.after.summary)),
        tiles: tiles(document.after.summary, Some(document.before.summary)),
        tables,
        footer: format!("before {} · after {}", document.before.digest, document.after.digest),
        ..Page::default()
    }
}

/// The page of a comparison.
pub fn comparison(document: &Comparison) -> Page {
    let Comparison { a, b, difference, moved, .. } = document;
    let mut all = tiles(b.summary, Some(a.summary));
    all.push(tile("moved", moved.to_string(), "warn", None));
    all.push(tile("waste", b.waste.clone(), "", Some(format!("was {}", a.waste))));
    let mut rows = [
        ("bound", a.summary.bound.to_string(), b.summary.bound.to_string()),
        ("provision", a.summary.provision.to_string(), b.summary.provision.to_string()),
        ("pending", a.summary.pending.to_string(), b.summary.pending.to_string()),
        ("lost", a.summary.lost.to_string(), b.summary.lost.to_string()),
        ("resources in use", a.used.to_string(), b.used.to_string()),
    ]
    .map(|(name, a, b)| (name.to_owned(), a, b))
    .to_vec();
    let capacities: BTreeSet<&String> =
        a.waste_by_capacity.keys().chain(b.waste_by_capacity.keys()).collect();
    let waste = |f: &Figures, capacity: &String| {
        let waste = f.waste_by_capacity.get(capacity);
        waste.map_or("none".to_owned(), |waste| format!("{} ({}\u{a0}%)", waste.left, waste.percent))
    };
    rows.extend(
        capacities.into_iter().map(|name| (format!("waste of {name}"), waste(a, name), waste(b, name))),
    );
    rows.push(("waited, median".to_owned(), waited(a, 50), waited(b, 50)));
    rows.push(("waited, 95th percentile".to_owned(), waited(a, 95), waited(b, 95)));
    let row = |(name, a, b): (String, String, String)| Row {
        label: if a == b { "same" } else { "different" }.to_owned(),
        cells: vec![Cell::new(name), Cell::toned(a, "figure"), Cell::toned(b, "figure")],
    };
    let figures =
        Table::new("figures", "Figures", &["Figure", "A", "B"], rows.into_iter().map(row).collect());
    let mut tables = vec![figures];
    tables.extend(difference_tables(difference, "changes", "Claims that differ"));
    Page {
        title: "Comparison".to_owned(),
        subtitle: format!("A: {} · B: {}", a.name, b.name),
        verdict: Some(difference_verdict(difference, a.summary, b.summary)),
        tiles: all,
        tables,
        footer: format!("A {} · B {}", a.digest, b.digest),
        ..Page::default()
    }
}

fn waited(figures: &Figures, percent: u32) -> String {
    let waited = figures.waiting.as_ref().map(|w| duration(if percent == 50 { w.p50 } else { w.p95 }));
    waited.unwrap_or_else(|| "not a recording".to_owned())
}

/// The page of a replay.
pub fn replay(document: &Replay) -> Page {
    let Replay { agreement, divergences, series, waiting, .. } = document;
    let all_agree = agreement.agreed == agreement.decisions;
    let agreed =
        agreement.percent.map_or("nothing verified".to_owned(), |percent| format!("{percent}\u{a0}%"));
    let tone = if all_agree { "good" } else { "warn" };
    let mut all = tiles(document.end, None);
    all.insert(0, tile("agreement", agreed, tone, None));
    all.push(tile("decisions", agreement.decisions.to_string(), "", None));
    all.push(tile(
        "median wait",
        duration(waiting.simulated.p50),
        "",
        Some(format!("live {}", duration(waiting.live.p50))),
    ));
    all.push(tile("events", document.events.to_string(), "", Some(format!("{} by users", document.inputs))));
    let rows = divergences.iter().map(|d| {
        let text = |v: &Option<Verdict>| v.as_ref().map_or("no decision".to_owned(), verdict_text);
        let tone = if d.explanation == Explanation::Rule { "bad" } else { "warn" };
        Row {
            label: d.explanation.name().to_owned(),
            cells: vec![
                Cell::new(d.claim.clone()),
                Cell::toned(duration(d.at), "figure"),
                Cell::new(text(&d.live)),
                Cell::new(text(&d.simulated)),
                Cell { tone, ..Cell::rule(d.explanation.name()) },
                Cell::new(d.message.clone()),
            ],
        }
    });
    let head = ["Claim", "At", "Live", "Replayed", "Explanation", "Why"];
    let divergence = Table::new("divergences", "Divergences", &head, rows.collect());
    Page {
        title: "Replay".to_owned(),
        subtitle: format!(
            "{} of history, recorded by version {}",
            duration(document.duration_ms),
            document.recorder
        ),
        verdict: Some(Headline {
            text: format!("{} of {} decisions agree", agreement.agreed, agreement.decisions),
            tone,
        }),
        tiles: all,
        charts: replay_charts(series),
        tables: if divergence.rows.is_empty() { Vec::new() } else { vec![divergence] },
        footer: document.digest.clone(),
        ..Page::default()
    }
}

fn verdict_text(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Bind { resource } => format!("bound to {resource}"),
        Verdict::Provision { class } => format!("provisioned from {class}"),
        Verdict::Refuse { reason } => format!("waits: {reason}"),
        Verdict::Lost { reason } => format!("lost: {reason}"),
    }
}

/// The page of a gate's verdict.
pub fn gate(document: &GateVerdict) -> Page {
    let (text, tone) = match (document.passed, document.inconclusive) {
        (true, _) => ("passed", "good"),
        (false, true) => ("inconclusive: there is no baseline yet", "warn"),
        (false, false) => ("failed", "bad"),
    };
    let judged = document.judged.iter().map(|j| CheckRow {
        name: j.name.clone(),
        result: if j.passed { "passed" } else { "failed" },
        tone: if j.passed { "good" } else { "bad" },
        matched: j.matched,
        failures: match j.more {
            0 => j.failures.clone(),
            more => j.failures.iter().cloned().chain([format!("and {more} more")]).collect(),
        },
    });
    let changes = document.difference.iter().flat_map(|d| d.claims.iter().chain(&d.resources));
    let rows: Vec<Row> = changes
        .map(|c| Row {
            label: "changed".to_owned(),
            cells: vec![
                Cell::new(c.name.clone()),
                Cell::toned(c.before.clone().unwrap_or_else(|| "none".to_owned()), "from"),
                Cell::toned(c.after.clone().unwrap_or_else(|| "none".to_owned()), "to"),
                Cell::new(c.cause.clone().unwrap_or_default()),
            ],
        })
        .collect();
    let table = Table::new("changes", "Changes from the baseline", &["What", "Before", "After", "Why"], rows);
    Page {
        title: if document.suite.is_empty() { "Gate".to_owned() } else { document.suite.clone() },
        subtitle: "Expectations checked against the plan".to_owned(),
        verdict: Some(Headline { text: text.to_owned(), tone }),
        tiles: tiles(document.summary, None),
        judged: judged.collect(),
        tables: if table.rows.is_empty() { Vec::new() } else { vec![table] },
        footer: document.digest.clone(),
        ..Page::default()
    }
}

fn tile(label: &'static str, value: String, tone: &'static str, note: Option<String>) -> Tile {
    Tile { label, value, tone, note }
}

fn tiles(now: Summary, before: Option<Summary>) -> Vec<Tile> {
    let note = |was: fn(&Summary) -> usize| {
        before.as_ref().filter(|b| was(b) != was(&now)).map(|b| format!("was {}", grouped(was(b) as f64)))
    };
    // Fewer waiting or lost claims are an improvement, however many are left.
    let fewer_is_better = |of: fn(&Summary) -> usize, else_tone| match before.map(|before| of(&before)) {
        Some(before) if of(&now) < before => "good",
        Some(before) if of(&now) > before => "bad",
        Some(_) | None => else_tone,
    };
    let figure = |value: usize| grouped(value as f64);
    let lost = if now.lost > 0 { "bad" } else { "" };
    vec![
        tile("claims", figure(now.claims), "", note(|s| s.claims)),
        tile("bound", figure(now.bound), "good", note(|s| s.bound)),
        tile("provision", figure(now.provision), "cool", note(|s| s.provision)),
        tile("pending", figure(now.pending), fewer_is_better(|s| s.pending, "warn"), note(|s| s.pending)),
        tile("lost", figure(now.lost), fewer_is_better(|s| s.lost, lost), note(|s| s.lost)),
    ]
}

fn summary_verdict(summary: Summary) -> Headline {
    match (summary.lost, summary.pending) {
        (0, 0) => Headline { text: "every claim is served".to_owned(), tone: "good" },
        (0, n) => Headline { text: format!("{n} of {} claims wait", summary.claims), tone: "warn" },
        (n, _) => Headline { text: format!("{n} claims lost"), tone: "bad" },
    }
}

/// Summarises a difference. Red if claims lose their resource and no more claims are served for it, green if none does.
fn difference_verdict(difference: &Difference, before: Summary, after: Summary) -> Headline {
    let worse = difference.claims.iter().any(|c| matches!(c.change, ClaimChange::Lost | ClaimChange::Waits));
    let destroys = difference
        .resources
        .iter()
        .any(|r| matches!(r.change, ResourceChange::Deleted | ResourceChange::Gone));
    let served = |s: Summary| s.bound + s.provision;
    let improves = served(after) > served(before) && after.lost <= before.lost;
    let tone = match (worse, improves) {
        (true, false) => "bad",
        (true, true) => "warn",
        (false, true) if !destroys => "good",
        (false, _) => "warn",
    };
    match (difference.claims.len(), difference.resources.len()) {
        (0, 0) => Headline { text: "nothing changes".to_owned(), tone: "good" },
        (c, r) => {
            let text = format!("{} claims and {} resources change", grouped(c as f64), grouped(r as f64));
            Headline { text, tone }
        }
    }
}

fn difference_tables(difference: &Difference, id: &'static str, title: &'static str) -> Vec<Table> {
    let claims: Vec<Row> = difference.claims.iter().map(changed_claim).collect();
    let resources = difference.resources.iter().map(|r| {
        let tone = match r.change {
            ResourceChange::Deleted | ResourceChange::Gone => "bad",
            ResourceChange::Retained | ResourceChange::Phase => "warn",
            ResourceChange::Spared | ResourceChange::Added => "good",
        };
        Row {
            label: r.change.label().to_owned(),
            cells: vec![
                Cell::new(r.name.to_string()),
                Cell::toned(r.change.label(), tone),
                Cell::new(r.held.join(", ")),
            ],
        }
    });
    let resources: Vec<Row> = resources.collect();
    let mut tables = Vec::new();
    if !claims.is_empty() {
        tables.push(Table::new(id, title, &["Claim", "Change", "From", "To", "Rule", "Why"], claims));
    }
    if !resources.is_empty() {
        let id = if id == "changes" { "resources" } else { "resources-anew" };
        tables.push(Table::new(
            id,
            "Resources that change",
            &["Resource", "Change", "Held before by"],
            resources,
        ));
    }
    tables
}

fn changed_claim(claim: &ChangedClaim) -> Row {
    let tone = match claim.change {
        ClaimChange::Lost | ClaimChange::Waits => "bad",
        ClaimChange::Leaves | ClaimChange::Removed | ClaimChange::Moved | ClaimChange::Returns => "warn",
        ClaimChange::NewlyBound | ClaimChange::Provisioned | ClaimChange::Added => "good",
    };
    Row {
        label: claim.change.label().to_owned(),
        cells: vec![
            Cell::new(format!("{}/{}", claim.namespace, claim.name)),
            Cell::toned(claim.change.label(), tone),
            Cell::toned(fate(claim.before.as_ref()), "from"),
            Cell::toned(fate(claim.after.as_ref()), "to"),
            Cell::rule(claim.cause.rule.clone()),
            Cell::new(claim.cause.message.clone()),
        ],
    }
}

fn fate(fate: Option<&ClaimResult>) -> String {
    let Some(fate) = fate else { return "none".to_owned() };
    gets(fate.resource.as_ref().map(|r| &*r.name), fate.outcome, fate.class.as_deref())
}

fn gets(resource: Option<&str>, outcome: Outcome, class: Option<&str>) -> String {
    match (resource, outcome, class) {
        (Some(resource), _, _) => resource.to_owned(),
        (None, Outcome::Provision, Some(class)) => format!("new {class}"),
        (None, outcome, _) => outcome.name().to_owned(),
    }
}

fn tone(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Bound => "good",
        Outcome::Provision => "cool",
        Outcome::Pending => "warn",
        Outcome::Lost => "bad",
    }
}

fn claims_table(plan: &Plan) -> Table {
    let mut claims: Vec<&PlannedClaim> = plan.claims.iter().collect();
    // Claims that need attention first.
    claims.sort_by_key(|c| std::cmp::Reverse(c.outcome));
    let rows = claims.iter().map(|c| {
        let reasons = c.reasons.iter().chain(c.class_reasons.iter());
        let reasons = reasons.map(|r| format!("{} × {}: {}", r.count, r.predicate, r.message));
        let nearest = c.nearest.iter().map(|n| match &n.binds {
            Some(binds) => format!("to get {binds}: {}", n.change),
            None => format!("to get a new resource: {}", n.change),
        });
        Row {
            label: c.outcome.name().to_owned(),
            cells: vec![
                Cell::new(format!("{}/{}", c.namespace, c.name)),
                Cell::toned(c.outcome.name(), tone(c.outcome)),
                Cell::new(gets(c.resource.as_ref().map(|r| &*r.name), c.outcome, c.class.as_deref())),
                Cell { more: reasons.chain(nearest).collect(), ..Cell::new(c.message.to_string()) },
            ],
        }
    });
    Table::new("claims", "Claims", &["Claim", "Outcome", "Gets", "Why"], rows.collect())
}

fn resources_table(plan: &Plan) -> Table {
    let rows = plan.resources.iter().map(|r| Row {
        label: r.phase.to_owned(),
        cells: vec![
            Cell::new(r.name.to_string()),
            Cell::new(r.phase),
            Cell::toned(
                r.reclaim.unwrap_or_default(),
                if r.reclaim == Some("Delete") { "bad" } else { "warn" },
            ),
            Cell::new(r.claims.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
        ],
    });
    Table::new("resources", "Resources", &["Resource", "Phase", "Reclaim", "Claims"], rows.collect())
}

fn plan_charts(plan: &Plan) -> Vec<(String, String)> {
    let s = plan.summary;
    let outcome = |name: &str, value: usize, tone| Bar {
        name: name.to_owned(),
        value: value as f64,
        of: Some(s.claims as f64),
        tone,
    };
    let outcomes = bars(&[
        outcome("bound", s.bound, "--good"),
        outcome("provision", s.provision, "--cool"),
        outcome("pending", s.pending, "--warn"),
        outcome("lost", s.lost, "--bad"),
    ]);
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for claim in plan.claims.iter().filter(|c| c.outcome == Outcome::Pending) {
        let main = claim.reasons.first().map_or("other", |r| r.predicate);
        *reasons.entry(main).or_default() += 1;
    }
    let used = plan.resources.iter().filter(|r| !r.claims.is_empty()).count();
    let use_bar = Bar {
        name: "resources".to_owned(),
        value: used as f64,
        of: Some(plan.resources.len() as f64),
        tone: "--accent",
    };
    let mut charts = vec![("Outcomes".to_owned(), outcomes)];
    if !reasons.is_empty() {
        let mut sorted: Vec<(&str, usize)> = reasons.into_iter().collect();
        sorted.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        let drawn: Vec<Bar> = sorted
            .into_iter()
            .take(8)
            .map(|(name, count)| Bar { name: name.to_owned(), value: count as f64, of: None, tone: "--warn" })
            .collect();
        charts.push(("Why claims wait: the predicate that refuses most".to_owned(), bars(&drawn)));
    }
    charts.push(("In use".to_owned(), bars(&[use_bar])));
    charts
}

fn replay_charts(series: &[Sample]) -> Vec<(String, String)> {
    if series.len() < 2 {
        return Vec::new();
    }
    let at: Vec<u64> = series.iter().map(|s| s.at).collect();
    let of = |name: &str, value: fn(&Sample) -> usize| Series {
        name: name.to_owned(),
        values: series.iter().map(|s| value(s) as f64).collect(),
    };
    let claims =
        [of("bound", |s| s.bound), of("provisioning", |s| s.provisioning), of("waiting", |s| s.waiting)];
    let mut charts = vec![("Claims over time".to_owned(), lines(&at, &claims))];
    let mut add = |title: &str, drawn: Vec<Series>| {
        if !drawn.is_empty() {
            charts.push((title.to_owned(), lines(&at, &drawn)));
        }
    };
    let held =
        |s: &Sample| s.classes.iter().map(|(class, (held, _))| (class.clone(), *held as f64)).collect();
    let mut classes = by_name(series, held);
    classes.iter_mut().filter(|s| s.name.is_empty()).for_each(|s| "classless".clone_into(&mut s.name));
    add("Resources in use, by class", classes);
    let used = |s: &Sample| s.quotas.iter().map(|(quota, used)| (quota.clone(), *used as f64)).collect();
    add("Quota usage in per cent", by_name(series, used));
    let waiting = |s: &Sample| s.reasons.iter().map(|(reason, n)| (reason.clone(), *n as f64)).collect();
    add("Why claims wait", by_name(series, waiting));
    charts
}

/// The first six named values of the samples over time; a sample without the name counts as zero.
fn by_name(samples: &[Sample], values: impl Fn(&Sample) -> BTreeMap<String, f64>) -> Vec<Series> {
    let values: Vec<BTreeMap<String, f64>> = samples.iter().map(values).collect();
    let names: BTreeSet<&String> = values.iter().flat_map(BTreeMap::keys).collect();
    let series = |name: &&String| Series {
        name: (*name).clone(),
        values: values.iter().map(|values| values.get(*name).copied().unwrap_or(0.0)).collect(),
    };
    names.iter().take(6).map(series).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(bound: usize, pending: usize, lost: usize) -> Summary {
        Summary { claims: bound + pending + lost, bound, provision: 0, pending, lost }
    }

    fn tone_of(tiles: &[Tile], label: &str) -> &'static str {
        tiles.iter().find(|tile| tile.label == label).map_or("", |tile| tile.tone)
    }

    #[test]
    fn an_improvement_is_not_shown_in_red() {
        let better = tiles(summary(7, 2, 1), Some(summary(2, 4, 4)));
        assert_eq!((tone_of(&better, "pending"), tone_of(&better, "lost")), ("good", "good"));
        let worse = tiles(summary(2, 4, 4), Some(summary(7, 2, 1)));
        assert_eq!((tone_of(&worse, "pending"), tone_of(&worse, "lost")), ("bad", "bad"));
        let alone = tiles(summary(2, 4, 4), None);
        assert_eq!((tone_of(&alone, "pending"), tone_of(&alone, "lost")), ("warn", "bad"));
    }

    #[test]
    fn figures_show_all_their_digits() {
        let tiles = tiles(summary(12_345, 1_000, 0), Some(summary(999, 0, 0)));
        let shown: Vec<_> = tiles.iter().map(|tile| (tile.value.as_str(), tile.note.as_deref())).collect();
        assert_eq!(shown[0], ("13,345", Some("was 999")));
        assert_eq!(shown[3], ("1,000", Some("was 0")));
    }
}
