//! The order of the rooms: which room may use which. The table below is the architecture; change it on purpose.
//! Tests may use any room.

use crate::source::{Source, Violation, paths};

/// Rooms that look outside; pure rooms never use them.
pub const WINDOWS: [&str; 4] = ["client_error", "live", "provider", "broker"];

/// Every room and the rooms it may use, from the ground up. Only the engine composes.
#[rustfmt::skip]
const ROOMS: &[(&str, &[&str])] = &[
    ("api",       &[]),
    ("model",     &["api"]),
    ("event",     &["api", "model"]),
    ("action",    &["api", "model"]),
    ("database",  &["api", "model"]),
    ("cache",     &["model"]),
    ("queue",     &["model"]),
    ("template",  &["api", "model"]),
    ("framework", &["model", "cache"]),
    ("plugins",   &["model", "cache", "framework"]),
    ("scheduler", &["api", "model", "cache", "framework", "plugins", "queue"]),
    ("lifecycle", &["api", "model", "cache", "template", "event", "action"]),
    ("engine",    PURE),
    ("client_error", &[]),
    ("provider",  &["api", "model", "database", "client_error"]),
    ("broker",    PURE),
    ("live",      ALL),
];

const PURE: &[&str] = &[
    "api",
    "model",
    "event",
    "action",
    "cache",
    "queue",
    "template",
    "framework",
    "plugins",
    "scheduler",
    "lifecycle",
    "engine",
];

const ALL: &[&str] = &[
    "api",
    "model",
    "event",
    "action",
    "cache",
    "queue",
    "template",
    "framework",
    "plugins",
    "scheduler",
    "lifecycle",
    "engine",
    "database",
    "client_error",
    "provider",
    "broker",
];

/// The room a file belongs to; empty for the crate root, which only opens doors.
pub fn room_of(source: &Source) -> String {
    source.module().into_iter().next().unwrap_or_default()
}

/// Uses of rooms that the table does not allow.
pub fn intrusions(source: &Source) -> Vec<Violation> {
    let room = room_of(source);
    if room.is_empty() {
        return Vec::new();
    }
    let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        let message =
            format!("the room `{room}` is not in the table: add it to ROOMS in tests/tidy/rooms.rs");
        return vec![source.violation(1, message)];
    };
    let module = source.module();
    paths(&source.shipped_code())
        .into_iter()
        .filter_map(|(line, path)| Some((line, used_room(&module, &path)?)))
        .filter(|(line, used)| *used != room && !allowed.contains(&used.as_str()) && !source.allows(*line))
        .map(|(line, used)| source.violation(line, refusal(&room, &used, allowed)))
        .collect()
}

fn refusal(room: &str, used: &str, allowed: &[&str]) -> String {
    let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
    match ROOMS.iter().any(|(name, _)| *name == used) {
        true => format!(
            "`{room}` uses `{used}`, and may use: {allowed}. Move the code, or change ROOMS in tests/tidy/rooms.rs"
        ),
        false => format!("`crate::{used}` is no room: name the room it lives in"),
    }
}

/// The room that a path in `module` leads to, where it leaves through the crate or through parents.
fn used_room(module: &[String], path: &[String]) -> Option<String> {
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
        ("src/scheduler/mod.rs", "use crate::live::Run;", true),
        ("src/engine.rs", "use crate::{cache, queue, scheduler, lifecycle};", false),
        ("src/engine.rs", "use crate::live::Run;", true),
        ("src/model/a.rs", "use crate::Engine;", true),
        ("src/attic/mod.rs", "", true),
        ("src/lib.rs", "pub use crate::engine::Engine;", false),
    ] {
        assert_eq!(!intrusions(&Source::new(path, code)).is_empty(), bad, "{path}: {code}");
    }
}

#[test]
fn no_room_uses_a_room_that_uses_it() {
    for (room, allowed) in ROOMS {
        for used in allowed.iter().filter(|used| *used != room) {
            let (_, below) = ROOMS.iter().find(|(name, _)| name == used).expect("the table names every room");
            assert!(!below.contains(room), "{room} and {used} use each other");
        }
    }
}
