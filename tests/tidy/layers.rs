//! The order of the engine's modules: which module may use which. Cargo enforces the order of packages; this table enforces it
//! inside the engine. Change it on purpose. Tests may use any module.

use crate::source::{Source, Violation, paths};

/// Every module of the engine and the modules it may use, from the ground up. Only `engine` composes.
#[rustfmt::skip]
const LAYERS: &[(&str, &[&str])] = &[
    ("api",       &[]),
    ("model",     &["api"]),
    ("event",     &["api", "model"]),
    ("action",    &["api", "model"]),
    ("predicates", &["model"]),
    ("cache",     &["model", "predicates"]),
    ("queue",     &["model"]),
    ("template",  &["api", "model"]),
    ("scores",    &["model", "cache", "predicates"]),
    ("scheduler", &["api", "model", "cache", "predicates", "scores", "queue"]),
    ("lifecycle", &["api", "model", "cache", "template", "event", "action"]),
    ("engine",    &[
        "api", "model", "event", "action", "cache", "queue", "template", "predicates", "scores", "scheduler",
        "lifecycle",
    ]),
];

/// The module a file belongs to; empty for the crate root, which only declares modules.
fn layer_of(source: &Source) -> String {
    source.module().into_iter().next().unwrap_or_default()
}

/// Uses of modules that the table does not allow.
pub fn intrusions(source: &Source) -> Vec<Violation> {
    let layer = layer_of(source);
    if layer.is_empty() {
        return Vec::new();
    }
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == layer) else {
        let message =
            format!("the module `{layer}` is not in the table: add it to LAYERS in tests/tidy/layers.rs");
        return vec![source.violation(1, message)];
    };
    let module = source.module();
    paths(&source.shipped_code())
        .into_iter()
        .filter_map(|(line, path)| Some((line, used_layer(&module, &path)?)))
        .filter(|(line, used)| *used != layer && !allowed.contains(&used.as_str()) && !source.allows(*line))
        .map(|(line, used)| source.violation(line, refusal(&layer, &used, allowed)))
        .collect()
}

fn refusal(layer: &str, used: &str, allowed: &[&str]) -> String {
    let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
    match LAYERS.iter().any(|(name, _)| *name == used) {
        true => format!(
            "`{layer}` uses `{used}`, and may use: {allowed}. Move the code, or change LAYERS in tests/tidy/layers.rs"
        ),
        false => format!("`crate::{used}` is no module: name the module it lives in"),
    }
}

/// The module that a path in `module` leads to, where it leaves through the crate or through parents.
fn used_layer(module: &[String], path: &[String]) -> Option<String> {
    match path.first()?.as_str() {
        "crate" => path.get(1).cloned(),
        "super" => {
            let ups = path.iter().take_while(|part| *part == "super").count();
            let left = module.len().checked_sub(ups)?;
            if left > 0 { Some(module[0].clone()) } else { path.get(ups).cloned() }
        }
        _ => None,
    }
}

#[test]
fn intrusions_are_seen() {
    for (path, code, bad) in [
        ("src/model/a.rs", "use crate::api::X;", false),
        ("src/model/a.rs", "use crate::model::X; use super::b::Y;", false),
        ("src/model/a.rs", "use crate::cache::X;", true),
        ("src/model/a.rs", "use crate::{api::X, cache::Y};", true),
        ("src/model/a.rs", "let x = crate::cache::Y::new();", true),
        ("src/model/a.rs", "use super::super::cache::Y;", true),
        ("src/model/mod.rs", "use super::cache::Y;", true),
        ("src/model/a/b.rs", "use super::super::c::Y;", false),
        ("src/model/a.rs", "#[cfg(test)]\nmod tests { use crate::engine::Engine; }", false),
        ("src/event.rs", "use crate::model::Kind;", false),
        ("src/event.rs", "use crate::action::Action;", true),
        ("src/scheduler/mod.rs", "use crate::engine::Engine;", true),
        ("src/engine.rs", "use crate::{cache, queue, scheduler, lifecycle};", false),
        ("src/model/a.rs", "use crate::Engine;", true),
        ("src/attic/mod.rs", "", true),
        ("src/lib.rs", "pub use crate::engine::Engine;", false),
    ] {
        assert_eq!(!intrusions(&Source::new(path, code)).is_empty(), bad, "{path}: {code}");
    }
}

#[test]
fn no_module_uses_a_module_that_uses_it() {
    for (layer, allowed) in LAYERS {
        for used in allowed.iter().filter(|used| *used != layer) {
            let (_, below) =
                LAYERS.iter().find(|(name, _)| name == used).expect("the table names every module");
            assert!(!below.contains(layer), "{layer} and {used} use each other");
        }
    }
}
