//! Merges duplicates of an object, such as in two dumps of one cluster, independently of the input's order: the highest
//! resourceVersion wins.

use super::{Loaded, LoadedObject, Problem};
use conductor::model::Kind;
use std::cmp::Reverse;

/// Keeps one object per kind, namespace and name, and sorts everything.
pub(super) fn deduplicate(loaded: &mut Loaded) {
    let mut objects = std::mem::take(&mut loaded.objects);
    objects.sort_by(|a, b| (key(a), &a.source, a.line).cmp(&(key(b), &b.source, b.line)));
    let mut rest = objects.into_iter().peekable();
    while let Some(first) = rest.next() {
        let mut others = Vec::new();
        while let Some(same) = rest.next_if(|next| key(next) == key(&first)) {
            others.push(same);
        }
        let (kept, problem) = choose(first, others);
        loaded.objects.push(kept);
        loaded.problems.extend(problem);
    }
    loaded.problems.sort();
    loaded.unknown.sort();
    loaded.rounded.sort();
}

fn key(loaded: &LoadedObject) -> (Kind, Option<&str>, Option<&str>) {
    let metadata = &loaded.object.metadata;
    (loaded.object.kind, metadata.namespace.as_deref(), metadata.name.as_deref())
}

fn choose(first: LoadedObject, others: Vec<LoadedObject>) -> (LoadedObject, Option<Problem>) {
    if others.is_empty() {
        return (first, None);
    }
    let mut all = vec![first];
    all.extend(others);
    all.sort_by_cached_key(|loaded| Reverse((revision(loaded), canonical(loaded))));
    // Equal copies are no conflict; the sort is stable, so the first place stays.
    all.dedup_by(|later, earlier| later.object == earlier.object);
    let [newest, second, ..] = &all[..] else { return (all.swap_remove(0), None) };
    let decided = all.iter().all(|loaded| revision(loaded).is_some()) && revision(newest) > revision(second);
    if !decided && all.iter().any(|loaded| revision(loaded).is_none()) {
        // A hand-written copy beside a dumped one: the dump's revision does not make it newer.
        all.sort_by_cached_key(|loaded| Reverse(canonical(loaded)));
    }
    let problem = (!decided).then(|| conflict(&all));
    (all.swap_remove(0), problem)
}

/// The resourceVersion as a number, as API servers on etcd write it.
fn revision(loaded: &LoadedObject) -> Option<u128> {
    loaded.object.metadata.resource_version.as_deref()?.parse().ok()
}

/// The object as text with sorted keys (`serde_json` sorts its maps).
fn canonical(loaded: &LoadedObject) -> String {
    let metadata = serde_json::to_string(&loaded.object.metadata).unwrap_or_default();
    format!("{metadata} {}", loaded.object.body)
}

/// Reports the conflict at the first place and names the copy that is used.
fn conflict(all: &[LoadedObject]) -> Problem {
    let kept = &all[0];
    let mut places: Vec<_> = all.iter().map(|loaded| (loaded.source.clone(), loaded.line)).collect();
    places.sort();
    let (source, line) = places[0].clone();
    let others: Vec<_> = places[1..].iter().map(|(source, line)| format!("{source}:{line}")).collect();
    let (kind, namespace, name) = key(kept);
    let namespace = namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default();
    Problem {
        source,
        line,
        object: format!("{} {namespace}{}", kind.name(), name.unwrap_or_default()),
        what: format!(
            "defined again with other content at {}, and no resourceVersion shows which is newer; \
             the one at {}:{} is used: remove the other",
            others.join(", "),
            kept.source,
            kept.line
        ),
    }
}
