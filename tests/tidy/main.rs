//! Checks what Cargo and Clippy do not: headers, orphans, purity, the order of modules, form, and plain words.
//! Every check is shown a bad sample first, so that it can fail; then the repository.
//!
//! A line that must break a rule says so, with its reason: `// tidy-allow: the hasher is fixed`.

mod commits;
mod form;
mod layers;
mod orphans;
mod purity;
mod source;
mod words;

use source::{Source, Violation};

/// All violations at once, so that one run shows them all.
#[track_caller]
fn none(violations: Vec<Violation>) {
    let shown: Vec<_> = violations.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "\n{}\n", shown.join("\n"));
}

#[test]
fn every_file_opens_with_its_purpose() {
    none(Source::all().iter().flat_map(form::header).collect());
}

#[test]
fn every_file_is_well_formed() {
    none(Source::all().iter().flat_map(form::form).collect());
}

#[test]
fn nothing_is_left_to_do() {
    none(Source::all().iter().flat_map(form::leftovers).collect());
}

#[test]
fn every_file_is_reachable_from_its_crate() {
    none(orphans::orphans(&Source::all()));
}

#[test]
fn pure_packages_are_pure() {
    let sources = Source::all();
    let pure = purity::PURE.into_iter().flat_map(|folder| orphans::shipped(&sources, folder));
    none(pure.flat_map(purity::impurities).collect());
}

#[test]
fn modules_use_only_the_modules_below_them() {
    let sources = Source::all();
    none(orphans::shipped(&sources, "src/").into_iter().flat_map(layers::intrusions).collect());
}
