//! Tables for people: what needs attention first, a verdict last, 100 columns where nobody says how many.
//! Long texts are cut here; `-o json` has them whole.

pub mod objects;

use crate::sim::{list, plural};
use crate::{output, plain};
use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Row, Table, Width, presets};
use conductor_simulator::plan::{
    ExplainedClaim, Explanation, Holder, Outcome, Plan, PlannedChange, PlannedClaim, PlannedResource, Summary,
};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Columns where the output is no terminal.
const WIDTH: u16 = 100;
/// Longest claim that is shown whole, as `namespace/name`.
pub const CLAIM_MAX: usize = 36;
/// Longest other name that is shown whole.
pub const NAME_MAX: usize = 28;
/// Longest name of an object on a cluster that is shown whole: those that we make have a UID in them.
const OBJECT_MAX: usize = 48;
/// Longest message that is shown whole.
pub const MESSAGE_MAX: usize = 160;
/// Least columns for the column with the sentences; a narrower terminal breaks the lines itself.
const LAST_MIN: u16 = 20;
/// Most rows of one table; a person reads no more.
pub const ROWS_MAX: usize = 500;
/// Most claims named in one cell.
const CLAIMS_MAX: usize = 3;

/// A plan as tables and a verdict.
pub fn plan(out: &mut impl Write, plan: &Plan) -> io::Result<()> {
    if !plan.claims.is_empty() {
        writeln!(out, "{}\n", claims(&plan.claims).trim_fmt())?;
        left_out(out, plan.claims.len(), "claim")?;
    }
    let touched: Vec<&PlannedResource> =
        plan.resources.iter().filter(|r| !r.claims.is_empty() || r.reclaim.is_some()).collect();
    if !touched.is_empty() {
        writeln!(out, "{}\n", resources(&touched).trim_fmt())?;
        left_out(out, touched.len(), "resource")?;
    }
    writeln!(out, "{}", verdict(plan, touched.len()))
}

pub fn left_out(out: &mut impl Write, count: usize, what: &str) -> io::Result<()> {
    match count.saturating_sub(ROWS_MAX) {
        0 => Ok(()),
        more => writeln!(out, "{} more, in -o json\n", plural(more, what)),
    }
}

/// `4 claims: 2 bound, 1 provision, 1 pending`.
fn verdict(plan: &Plan, touched: usize) -> String {
    let Summary { claims, bound, provision, pending, lost } = plan.summary;
    let counts = [(bound, "bound"), (provision, "provision"), (pending, "pending"), (lost, "lost")];
    let told: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    let colon = if told.is_empty() { "" } else { ": " };
    let idle = match plan.resources.len() - touched {
        0 => String::new(),
        idle => format!("; {} without a claim", plural(idle, "resource")),
    };
    format!("{}{colon}{}{idle}", plural(claims, "claim"), told.join(", "))
}

fn claims(claims: &[PlannedClaim]) -> Table {
    let mut table = table(&["CLAIM", "OUTCOME", "GETS", "WHY"]);
    let mut sorted: Vec<&PlannedClaim> = claims.iter().collect();
    sorted.sort_by_key(|claim| urgency(claim));
    for claim in sorted.into_iter().take(ROWS_MAX) {
        let gets = match (&claim.resource, claim.outcome, &claim.class) {
            (Some(resource), _, _) => resource.name.to_string(),
            (None, Outcome::Provision, Some(class)) => format!("new {class}"),
            (None, _, _) => "-".to_owned(),
        };
        table.add_row(vec![
            Cell::new(short(&format!("{}/{}", claim.namespace, claim.name), CLAIM_MAX)),
            outcome(claim.outcome),
            Cell::new(short(&gets, NAME_MAX)),
            Cell::new(why(claim)),
        ]);
    }
    table
}

/// What is lost or waits comes first, what stays as it is last.
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

fn why(claim: &PlannedClaim) -> String {
    match (claim.outcome, claim.nearest.first()) {
        (Outcome::Bound, _) => {
            let class = claim.class.as_ref().map(|class| format!(", class {class}")).unwrap_or_default();
            format!("{}{class}", if claim.kept { "bound already" } else { "newly bound" })
        }
        (Outcome::Provision, _) => "no resource fits; one would be made".to_owned(),
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

fn resources(resources: &[&PlannedResource]) -> Table {
    let mut table = table(&["RESOURCE", "PHASE", "RECLAIM", "CLAIMS"]);
    let mut sorted = resources.to_vec();
    sorted.sort_by_key(|resource| resource.reclaim.is_none());
    for resource in sorted.into_iter().take(ROWS_MAX) {
        let reclaim = match resource.reclaim {
            Some("Delete") => Cell::new("Delete").fg(Color::Red),
            Some(other) => Cell::new(other).fg(Color::Yellow),
            None => Cell::new("-"),
        };
        table.add_row(vec![
            Cell::new(short(&resource.name, NAME_MAX)),
            Cell::new(resource.phase),
            reclaim,
            Cell::new(holders(&resource.claims)),
        ]);
    }
    table
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

/// Explanations, one for all claims that wait alike.
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

/// Claims with one explanation, which they share in memory too.
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
        let mut table = table(&["  COUNT", "PREDICATE", "WHY"]);
        for reason in claim.reasons.iter().chain(claim.class_reasons.iter()) {
            table.add_row([
                format!("  {}", reason.count),
                reason.predicate.to_owned(),
                plain::line(&reason.message).into_owned(),
            ]);
        }
        writeln!(out, "\n{}", table.trim_fmt())?;
    }
    if !near_misses.is_empty() {
        let mut table = table(&["  NEAREST", "LACKS"]);
        for miss in near_misses.iter() {
            let lacks: Vec<String> =
                miss.lacks.iter().map(|l| format!("{}: {}", l.predicate, plain::line(&l.message))).collect();
            let name = short(&miss.resource.name, NAME_MAX);
            table.add_row([format!("  {name}"), lacks.join("\n")]);
        }
        writeln!(out, "\n{}", table.trim_fmt())?;
    }
    if !claim.nearest.is_empty() {
        // Several that wait may need more than one of them, or one of them twice.
        let enough = if group.len() == 1 { "FOR THIS CLAIM ALONE" } else { "FOR ONE OF THESE CLAIMS ALONE" };
        let mut table = table(&["  TO GET", &format!("ANY ONE OF THESE IS ENOUGH {enough}")]);
        for change in claim.nearest.iter() {
            table.add_row([
                format!("  {}", short(serves(change), NAME_MAX)),
                plain::line(&change.change).into_owned(),
            ]);
        }
        writeln!(out, "\n{}", table.trim_fmt())?;
    }
    Ok(())
}

/// Rows of texts that are cut where they are long; the last column has the sentences.
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

/// An empty table: no lines, a header, the last column but none other broken into lines.
pub fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    let bold = |text: &&str| Cell::new(text).add_attribute(Attribute::Bold);
    table.set_header(Row::from(header.iter().map(bold).collect::<Vec<_>>()));
    match output::is_colourful() {
        true => table.enforce_styling(),
        false => table.force_no_tty(),
    };
    // Some terminals do not know their width and say 0.
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

/// Cut at a word, with a mark where something is missing.
pub fn short(text: &str, max: usize) -> String {
    let text = &*plain::line(text);
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let cut: String = text.chars().take(max - 1).collect();
    let at = cut.rfind(' ').filter(|at| *at > max / 2).unwrap_or(cut.len());
    format!("{}…", cut[..at].trim_end())
}
