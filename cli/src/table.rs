//! Tables for people: what needs attention first, a verdict last, 100 columns if the width is unknown. Long texts are cut;
//! `-o json` has them whole.

pub mod objects;

use crate::sim::{list, plural};
use crate::{output, sanitize};
use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Row, Table, Width, presets};
use conductor_simulator::plan::{
    ExplainedClaim, Explanation, Holder, Outcome, Plan, PlannedChange, PlannedClaim, PlannedResource, Summary,
};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Columns if the output is not a terminal.
const WIDTH: u16 = 100;
/// Longest claim that is shown whole, as `namespace/name`.
pub const CLAIM_MAX: usize = 36;
/// Longest other name that is shown whole.
pub const NAME_MAX: usize = 28;
/// Longest name of an object on a cluster that is shown whole: generated names contain a UID.
const OBJECT_MAX: usize = 48;
/// Longest message that is shown whole.
pub const MESSAGE_MAX: usize = 160;
/// Least columns for the column of messages; a narrower terminal breaks the lines itself.
const LAST_MIN: u16 = 20;
/// Most rows of one table.
pub const ROWS_MAX: usize = 500;
/// Most claims named in one cell.
const CLAIMS_MAX: usize = 3;

/// A plan as tables and a verdict.
pub fn plan(out: &mut impl Write, plan: &Plan) -> io::Result<()> {
    let mut claims: Vec<&PlannedClaim> = plan.claims.iter().collect();
    claims.sort_by_key(|claim| urgency(claim));
    rows(out, &["CLAIM", "OUTCOME", "RESOURCE", "MESSAGE"], &claims, "claim", |claim| claim_row(claim))?;
    let mut touched: Vec<&PlannedResource> =
        plan.resources.iter().filter(|r| !r.claims.is_empty() || r.reclaim.is_some()).collect();
    touched.sort_by_key(|resource| resource.reclaim.is_none());
    rows(out, &["RESOURCE", "PHASE", "RECLAIM", "CLAIMS"], &touched, "resource", |resource| {
        resource_row(resource)
    })?;
    writeln!(out, "{}", verdict(plan, touched.len()))
}

/// Writes a table and how many rows are left out; nothing without rows.
pub fn rows<T>(
    out: &mut impl Write,
    header: &[&str],
    items: &[T],
    what: &str,
    row: impl Fn(&T) -> Vec<Cell>,
) -> io::Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    let mut table = table(header);
    table.add_rows(items.iter().take(ROWS_MAX).map(row));
    writeln!(out, "{}\n", table.trim_fmt())?;
    match items.len().saturating_sub(ROWS_MAX) {
        0 => Ok(()),
        more => writeln!(out, "{} more, in -o json\n", plural(more, what)),
    }
}

/// `4 claims: 2 bound, 1 provision, 1 pending`.
fn verdict(plan: &Plan, touched: usize) -> String {
    let Summary { claims, bound, provision, pending, lost } = plan.summary;
    let counts = [(bound, "bound"), (provision, "provision"), (pending, "pending"), (lost, "lost")];
    let shown: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    let colon = if shown.is_empty() { "" } else { ": " };
    let idle = match plan.resources.len() - touched {
        0 => String::new(),
        idle => format!("; {} without a claim", plural(idle, "resource")),
    };
    format!("{}{colon}{}{idle}", plural(claims, "claim"), shown.join(", "))
}

fn claim_row(claim: &PlannedClaim) -> Vec<Cell> {
    let resource = match (&claim.resource, claim.outcome, &claim.class) {
        (Some(resource), _, _) => resource.name.to_string(),
        (None, Outcome::Provision, Some(class)) => format!("new {class}"),
        (None, _, _) => "-".to_owned(),
    };
    vec![
        Cell::new(short(&format!("{}/{}", claim.namespace, claim.name), CLAIM_MAX)),
        outcome(claim.outcome),
        Cell::new(short(&resource, NAME_MAX)),
        Cell::new(message(claim)),
    ]
}

/// Lost and pending claims come first, unchanged ones last.
fn urgency(claim: &PlannedClaim) -> (u8, bool) {
    let rank = match claim.outcome {
        Outcome::Lost => 0,
        Outcome::Pending => 1,
        Outcome::Provision => 2,
        Outcome::Bound => 3,
    };
    (rank, claim.kept)
}

fn outcome(outcome: Outcome) -> Cell {
    let colour = match outcome {
        Outcome::Lost => Color::Red,
        Outcome::Pending => Color::Yellow,
        Outcome::Provision => Color::Cyan,
        Outcome::Bound => Color::Green,
    };
    Cell::new(outcome.name()).fg(colour)
}

fn message(claim: &PlannedClaim) -> String {
    match (claim.outcome, claim.nearest.first()) {
        (Outcome::Bound, _) => {
            let class = claim.class.as_ref().map(|class| format!(", class {class}")).unwrap_or_default();
            format!("{}{class}", if claim.kept { "bound already" } else { "newly bound" })
        }
        (Outcome::Provision, _) => "no resource fits; the class would provision one".to_owned(),
        (Outcome::Pending | Outcome::Lost, None) => short(&claim.message, MESSAGE_MAX),
        (Outcome::Pending | Outcome::Lost, Some(nearest)) => {
            let change = short(&format!("{} -> {}", nearest.change, serves(nearest)), MESSAGE_MAX);
            format!("{}\ntry: {change}", short(&claim.message, MESSAGE_MAX))
        }
    }
}

fn serves(change: &PlannedChange) -> &str {
    change.binds.as_deref().unwrap_or("a new one")
}

fn resource_row(resource: &PlannedResource) -> Vec<Cell> {
    let reclaim = match resource.reclaim {
        Some("Delete") => Cell::new("Delete").fg(Color::Red),
        Some(other) => Cell::new(other).fg(Color::Yellow),
        None => Cell::new("-"),
    };
    vec![
        Cell::new(short(&resource.name, NAME_MAX)),
        Cell::new(resource.phase),
        reclaim,
        Cell::new(holders(&resource.claims)),
    ]
}

fn holders(claims: &[Holder]) -> String {
    let shown: Vec<String> =
        claims.iter().take(CLAIMS_MAX).map(|c| short(&c.to_string(), CLAIM_MAX)).collect();
    match claims.len().saturating_sub(CLAIMS_MAX) {
        0 if claims.is_empty() => "-".to_owned(),
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Explanations, one per group of claims that wait for the same reasons.
pub fn explained(out: &mut impl Write, explained: &Explanation) -> io::Result<()> {
    let groups = groups(&explained.claims);
    for (at, group) in groups.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        explain_group(out, group)?;
    }
    if groups.is_empty() {
        writeln!(out, "no claim waits")?;
    }
    Ok(())
}

/// Groups claims by their explanation, which they share in memory too.
fn groups(claims: &[ExplainedClaim]) -> Vec<Vec<&ExplainedClaim>> {
    let mut groups: Vec<Vec<&ExplainedClaim>> = Vec::new();
    let mut known = BTreeMap::new();
    for claim in claims {
        let at = *known.entry(claim.claim.message.as_ptr()).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.push(claim),
            None => groups.push(vec![claim]),
        }
    }
    groups
}

fn explain_group(out: &mut impl Write, group: &[&ExplainedClaim]) -> io::Result<()> {
    let Some(ExplainedClaim { claim, near_misses }) = group.first() else { return Ok(()) };
    let names: Vec<String> =
        group.iter().map(|e| format!("{}/{}", e.claim.namespace, e.claim.name)).collect();
    let is = if names.len() == 1 { "is" } else { "are" };
    writeln!(out, "{} {is} {}: {}", list(&names), claim.outcome.name(), claim.message)?;
    if !claim.reasons.is_empty() || !claim.class_reasons.is_empty() {
        let mut table = table(&["  COUNT", "PREDICATE", "MESSAGE"]);
        for reason in claim.reasons.iter().chain(claim.class_reasons.iter()) {
            table.add_row([
                format!("  {}", reason.count),
                reason.predicate.to_owned(),
                sanitize::line(&reason.message).into_owned(),
            ]);
        }
        writeln!(out, "\n{}", table.trim_fmt())?;
    }
    if !near_misses.is_empty() {
        let mut table = table(&["  NEAR MISS", "LACKS"]);
        for miss in near_misses.iter() {
            let lacks: Vec<String> = miss
                .lacks
                .iter()
                .map(|l| format!("{}: {}", l.predicate, sanitize::line(&l.message)))
                .collect();
            let name = short(&miss.resource.name, NAME_MAX);
            table.add_row([format!("  {name}"), lacks.join("\n")]);
        }
        writeln!(out, "\n{}", table.trim_fmt())?;
    }
    if !claim.nearest.is_empty() {
        // Several waiting claims may need more than one change, or one of them twice.
        let whom = if group.len() == 1 { "THIS CLAIM" } else { "ONE OF THESE CLAIMS" };
        let mut table = table(&["  BINDS", &format!("CHANGE (EACH IS ENOUGH FOR {whom} ALONE)")]);
        for change in claim.nearest.iter() {
            table.add_row([
                format!("  {}", short(serves(change), NAME_MAX)),
                sanitize::line(&change.change).into_owned(),
            ]);
        }
        writeln!(out, "\n{}", table.trim_fmt())?;
    }
    Ok(())
}

/// Writes rows and cuts long texts; the last column has the messages.
pub fn listed(out: &mut impl Write, header: &[&str], rows: Vec<Vec<String>>) -> io::Result<()> {
    let mut table = table(header);
    for row in rows {
        let last = row.len().saturating_sub(1);
        let most = |at| if at == last { MESSAGE_MAX } else { OBJECT_MAX };
        let cells = row.iter().enumerate().map(|(at, text)| short(text, most(at)));
        table.add_row(cells.collect::<Vec<_>>());
    }
    writeln!(out, "{}", table.trim_fmt())
}

/// An empty table without borders. Only the last column wraps.
pub fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    let bold = |text: &&str| Cell::new(text).add_attribute(Attribute::Bold);
    table.set_header(Row::from(header.iter().map(bold).collect::<Vec<_>>()));
    match output::is_colourful() {
        true => table.enforce_styling(),
        false => table.force_no_tty(),
    };
    // Some terminals do not know their width and report 0.
    let width = table.width().filter(|width| *width > 0).unwrap_or(WIDTH);
    table.set_width(width);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let whole = header.len() - 1;
    let last = ColumnConstraint::LowerBoundary(Width::Fixed(LAST_MIN));
    table.set_constraints(std::iter::repeat_n(ColumnConstraint::ContentWidth, whole).chain([last]));
    table
}

/// Cuts a text at a word, and marks the cut.
pub fn short(text: &str, max: usize) -> String {
    let text = &*sanitize::line(text);
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let cut: String = text.chars().take(max - 1).collect();
    let at = cut.rfind(' ').filter(|at| *at > max / 2).unwrap_or(cut.len());
    format!("{}…", cut[..at].trim_end())
}
