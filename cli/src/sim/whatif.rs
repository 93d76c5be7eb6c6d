//! `sim whatif`, `sim fit`, `sim size`, `sim class-impact`: reads edits from arguments, prints results as tables.

use super::args::{ClassImpactArguments, FitArguments, Input, SizeArguments, WhatIfArguments};
use super::{answer, list, plural, split, state};
use crate::table::{self, CLAIM_MAX, MESSAGE_MAX, NAME_MAX, short};
use anyhow::{Result, bail};
use comfy_table::{Cell, Color};
use conductor::model::{Kind, Object, ObjectKey, TypeId};
use conductor_simulator::diff::{ChangedClaim, ClaimChange, ClaimResult, Difference, ResourceChange};
use conductor_simulator::plan::{Outcome, Summary};
use conductor_simulator::report;
use conductor_simulator::whatif::{self, ClassImpact, Edit, Fit, PlanFigures, Size, Target, WhatIf};
use std::io::{self, Write};

const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;

/// `conductor sim whatif`.
pub fn what_if(arguments: &WhatIfArguments) -> Result<u8> {
    let answer = || -> Result<WhatIf> {
        let objects = state::read(&arguments.input)?;
        let edits = edits(arguments)?;
        if edits.is_empty() {
            bail!("no edit: give -f, --set, --lose, --delete, or --claims with --like");
        }
        Ok(whatif::what_if(objects, &edits, &state::options(&arguments.input))?)
    };
    let document = answer()?;
    let code = u8::from(!document.difference.is_empty());
    let read = answer::paths(arguments.input.paths.iter().chain(&arguments.files));
    answer::page(&arguments.page, &read, |made| report::what_if(&document).html(made))?;
    answer::print(&arguments.output, code, &document, answer, |out| what_if_table(out, &document))
}

fn edits(arguments: &WhatIfArguments) -> Result<Vec<Edit>> {
    let WhatIfArguments { input, files, set, lose, delete, claims, like, output: _, page: _ } = arguments;
    let target = |text: &String| Target::read(text, &input.namespace, &input.system_namespace);
    let mut edits: Vec<Edit> = Vec::new();
    edits.extend(state::read_overlay(input, files)?.into_iter().map(|o| Edit::Apply(Box::new(o))));
    for text in set {
        edits.push(Edit::read_set(text, &input.namespace, &input.system_namespace)?);
    }
    for text in lose {
        edits.push(Edit::Lose(target(text)?));
    }
    for text in delete {
        edits.push(Edit::Delete(target(text)?));
    }
    if let (Some(count), Some(like)) = (claims, like) {
        edits.push(Edit::Copies { like: claim(input, like)?, count: *count });
    }
    Ok(edits)
}

fn claim(input: &Input, text: &str) -> Result<Target> {
    let (namespace, name) = split(text, &input.namespace)?;
    Ok(Target { kind: Kind::Claim(TYPE), key: ObjectKey::new(namespace, name) })
}

/// `conductor sim fit`.
pub fn fit(arguments: &FitArguments) -> Result<u8> {
    let answer = || -> Result<Fit> {
        let objects = state::read(&arguments.input)?;
        let like = claim(&arguments.input, &arguments.like)?;
        Ok(whatif::fit(objects, &like, arguments.most, &state::options(&arguments.input))?)
    };
    let document = answer()?;
    answer::print(&arguments.output, 0, &document, answer, |out| fit_table(out, &document))
}

/// `conductor sim size`.
pub fn size(arguments: &SizeArguments) -> Result<u8> {
    let answer = || -> Result<Size> {
        let objects = state::read(&arguments.input)?;
        let name = match (&arguments.like, &arguments.class) {
            (Some(name), _) => name.clone(),
            (None, Some(class)) => first_of(&objects, class)?,
            (None, None) => bail!("no resource to copy: give --like NAME or --class NAME"),
        };
        let home = arguments.input.system_namespace.as_str();
        let like = Target { kind: Kind::Resource(TYPE), key: ObjectKey::new(home, name) };
        Ok(whatif::size(&objects, &like, &state::options(&arguments.input))?)
    };
    let document = answer()?;
    answer::print(&arguments.output, 0, &document, answer, |out| size_table(out, &document))
}

fn first_of(objects: &[Object], class: &str) -> Result<String> {
    let of_class = |o: &&Object| {
        o.kind == Kind::Resource(TYPE)
            && o.body.pointer("/spec/class").and_then(|c| c.as_str()) == Some(class)
    };
    let name = objects.iter().filter(of_class).filter_map(|o| o.metadata.name.clone()).min();
    name.ok_or_else(|| {
        anyhow::anyhow!("no resource of class {class} in the state to copy: name one with --like NAME")
    })
}

/// `conductor sim class-impact`.
pub fn class_impact(arguments: &ClassImpactArguments) -> Result<u8> {
    let answer = || -> Result<ClassImpact> {
        let objects = state::read(&arguments.input)?;
        let overlay = state::read_overlay(&arguments.input, std::slice::from_ref(&arguments.file))?;
        let classes: Vec<&Object> = overlay.iter().filter(|o| matches!(o.kind, Kind::Class(_))).collect();
        let [class] = classes[..] else {
            let file = arguments.file.display();
            bail!("{file} contains {} classes: give exactly one", classes.len());
        };
        Ok(whatif::class_impact(objects, class, &state::options(&arguments.input))?)
    };
    let document = answer()?;
    let code = u8::from(!document.is_empty());
    let read = answer::paths(arguments.input.paths.iter().chain([&arguments.file]));
    answer::page(&arguments.page, &read, |made| report::class_impact(&document).html(made))?;
    answer::print(&arguments.output, code, &document, answer, |out| impact_table(out, &document))
}

fn what_if_table(out: &mut impl Write, document: &WhatIf) -> io::Result<()> {
    difference(out, &document.difference)?;
    writeln!(out, "{}", verdict(&document.difference, &document.before, &document.after))
}

/// Writes the changed claims and resources as two tables.
pub fn difference(out: &mut impl Write, difference: &Difference) -> io::Result<()> {
    let mut claims: Vec<&ChangedClaim> = difference.claims.iter().collect();
    claims.sort_by_key(|claim| claim.change);
    table::rows(out, &["CLAIM", "CHANGE", "FROM", "TO", "RULE", "MESSAGE"], &claims, "claim", |claim| {
        vec![
            Cell::new(short(&format!("{}/{}", claim.namespace, claim.name), CLAIM_MAX)),
            change(claim),
            Cell::new(fate(claim.before.as_ref())),
            Cell::new(fate(claim.after.as_ref())),
            Cell::new(&claim.cause.rule),
            Cell::new(short(&claim.cause.message, MESSAGE_MAX)),
        ]
    })?;
    let resources = &difference.resources;
    table::rows(out, &["RESOURCE", "CHANGE", "CLAIMS BEFORE"], resources, "resource", |resource| {
        let held = if resource.held.is_empty() { "-".to_owned() } else { list(&resource.held) };
        let colour = match resource.change {
            ResourceChange::Deleted | ResourceChange::Gone => Color::Red,
            ResourceChange::Retained | ResourceChange::Phase => Color::Yellow,
            ResourceChange::Spared | ResourceChange::Added => Color::Green,
        };
        let text = match (resource.change, resource.after) {
            (ResourceChange::Phase, Some(phase)) => format!("is {phase}"),
            (change, _) => change.label().to_owned(),
        };
        let name = Cell::new(short(&resource.name, NAME_MAX));
        vec![name, Cell::new(text).fg(colour), Cell::new(held)]
    })
}

fn change(claim: &ChangedClaim) -> Cell {
    let refused = claim.after.as_ref().is_some_and(|f| matches!(f.outcome, Outcome::Pending | Outcome::Lost));
    let colour = match claim.change {
        ClaimChange::Lost | ClaimChange::Waits => Color::Red,
        ClaimChange::Leaves | ClaimChange::Removed | ClaimChange::Moved | ClaimChange::Returns => {
            Color::Yellow
        }
        ClaimChange::Added if refused => Color::Yellow,
        ClaimChange::NewlyBound | ClaimChange::Provisioned | ClaimChange::Added => Color::Green,
    };
    Cell::new(claim.change.label()).fg(colour)
}

fn fate(fate: Option<&ClaimResult>) -> String {
    let Some(fate) = fate else { return "-".to_owned() };
    match (&fate.resource, fate.outcome, &fate.class) {
        (Some(resource), _, _) => short(&resource.name, NAME_MAX),
        (None, Outcome::Provision, Some(class)) => short(&format!("new {class}"), NAME_MAX),
        (None, outcome, _) => outcome.name().to_owned(),
    }
}

/// `2 claims and 1 resource change: bound 4 -> 3, pending 3 -> 4`, or `nothing changes`.
pub fn verdict(difference: &Difference, before: &PlanFigures, after: &PlanFigures) -> String {
    if difference.is_empty() {
        return format!("nothing changes: {}", plural(before.summary.claims, "claim"));
    }
    let figures = |s: &Summary| [s.claims, s.bound, s.provision, s.pending, s.lost];
    let names = ["claims", "bound", "provision", "pending", "lost"];
    let moved: Vec<String> = names
        .iter()
        .zip(figures(&before.summary).into_iter().zip(figures(&after.summary)))
        .filter(|(_, (was, is))| was != is)
        .map(|(name, (was, is))| format!("{name} {was} -> {is}"))
        .collect();
    let colon = if moved.is_empty() { "" } else { ": " };
    let (claims, resources) = (difference.claims.len(), difference.resources.len());
    let changed = match (claims, resources) {
        (_, 0) => plural(claims, "claim"),
        (0, _) => plural(resources, "resource"),
        _ => format!("{} and {}", plural(claims, "claim"), plural(resources, "resource")),
    };
    let verb = if claims + resources == 1 { "changes" } else { "change" };
    format!("{changed} {verb}{colon}{}", moved.join(", "))
}

fn fit_table(out: &mut impl Write, fit: &Fit) -> io::Result<()> {
    table::rows(out, &["CLAIMS", "RESOURCE"], &fit.places, "place", |place| {
        let to = match (&place.resource, &place.class) {
            (Some(resource), _) => resource.to_string(),
            (None, Some(class)) => format!("new resources of class {class}"),
            (None, None) => "-".to_owned(),
        };
        vec![Cell::new(place.claims), Cell::new(to)]
    })?;
    let header = ["DISPLACED CLAIM", "RESOURCE WITHOUT THE COPIES"];
    table::rows(out, &header, &fit.displaced, "claim", |displaced| {
        let gets = match (&displaced.resource, &displaced.class) {
            (Some(resource), _) => resource.to_string(),
            (None, Some(class)) => format!("a new resource of class {class}"),
            (None, None) => "-".to_owned(),
        };
        vec![Cell::new(short(&displaced.claim, CLAIM_MAX)), Cell::new(gets)]
    })?;
    let at_least = if fit.limit.is_none() { "at least " } else { "" };
    let taking = match fit.fits - fit.free {
        0 => String::new(),
        taking => {
            let places = plural(fit.displaced.len(), "claim");
            format!(", {taking} of them in place of {places} of lower priority")
        }
    };
    let limit = fit.limit.as_ref().map(|limit| format!("; the next one is refused: {}", limit.message));
    let limit = limit.unwrap_or_default();
    writeln!(out, "{at_least}{} more of {} would be served{taking}{limit}", fit.fits, fit.claim)
}

fn size_table(out: &mut impl Write, size: &Size) -> io::Result<()> {
    table::rows(out, &["STILL PENDING", "MESSAGE"], &size.waiting, "claim", |waiting| {
        vec![Cell::new(short(&waiting.claim, CLAIM_MAX)), Cell::new(short(&waiting.message, MESSAGE_MAX))]
    })?;
    let more = plural(size.resources, "resource");
    match (size.resources, size.waiting_before) {
        (_, 0) => writeln!(out, "nothing waits"),
        (0, _) => writeln!(out, "no claim waits for a resource like {}", size.like),
        (_, before) => writeln!(
            out,
            "{more} more like {} would serve {} of {} that wait: {}",
            size.like,
            size.served.len(),
            plural(before, "claim"),
            list(&size.served)
        ),
    }
}

fn impact_table(out: &mut impl Write, impact: &ClassImpact) -> io::Result<()> {
    if !impact.now.is_empty() {
        writeln!(out, "as soon as the class is applied:\n")?;
        difference(out, &impact.now)?;
    }
    if !impact.anew.is_empty() {
        writeln!(out, "if its claims were provisioned again:\n")?;
        difference(out, &impact.anew)?;
    }
    let now = match impact.now.claims.len() {
        0 => "changes for no claim now".to_owned(),
        n => format!("changes for {} now", plural(n, "claim")),
    };
    let anew = match impact.anew.claims.len() {
        0 => "for none if they were provisioned again".to_owned(),
        n => format!("for {n} if they were provisioned again"),
    };
    writeln!(out, "class {}, {}: {now}, {anew}", impact.class, plural(impact.claims, "claim"))
}
