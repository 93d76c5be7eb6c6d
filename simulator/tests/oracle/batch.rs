//! Placing together held against trying every placement: with `batch: optimal` no other placement serves more
//! claims of a higher priority, more claims, or the same with less left over.

use crate::engine_on;
use crate::seeds::seeds;
use crate::worlds::{SYSTEM, TYPE, object, uid};
use conductor::engine::Binding;
use conductor::model::{Kind, Object, Uid, Version, VersionRange};
use conductor_simulator::fuzz::rng::Rng;
use serde_json::json;
use std::collections::BTreeMap;

/// A claim: priority, range, storage in Gi.
type Asked = (i64, Option<&'static str>, i64);
/// A resource: version, storage in Gi.
type Had = (&'static str, i64);

const RANGES: [&str; 5] = [">= 12", "14", "< 14", "12", ">= 14"];
const VERSIONS: [&str; 4] = ["12.3", "13.1", "14.2", "15"];

fn draw(rng: &mut Rng) -> (Vec<Asked>, Vec<Had>) {
    let claims = (0..rng.between(2, 6)).map(|_| {
        let range = rng.maybe(80, &RANGES).copied();
        (*rng.pick(&[0, 0, 0, 5, 9]), range, *rng.pick(&[1, 2, 4]))
    });
    let claims = claims.collect();
    let resources =
        (0..rng.between(1, 6)).map(|_| (*rng.pick(&VERSIONS), *rng.pick(&[1, 2, 4, 8]))).collect();
    (claims, resources)
}

fn objects(rng: &mut Rng, claims: &[Asked], resources: &[Had]) -> Vec<Object> {
    let mut objects = vec![object(
        Kind::Profile,
        "",
        "default",
        json!({"uid": "profile", "resourceVersion": "1"}),
        json!({"spec": {"batch": "optimal"}}),
    )];
    for (at, (priority, range, storage)) in claims.iter().enumerate() {
        let mut spec =
            json!({"priority": priority, "resources": {"requests": {"storage": format!("{storage}Gi")}}});
        if let Some(range) = range {
            spec["version"] = json!(range);
        }
        let name = format!("c-{at}");
        objects.push(object(
            Kind::Claim(TYPE),
            "a",
            &name,
            json!({"uid": uid(rng, &name)}),
            json!({"spec": spec}),
        ));
    }
    for (at, (version, storage)) in resources.iter().enumerate() {
        let spec =
            json!({"engine": "x", "version": version, "capacity": {"storage": format!("{storage}Gi")}});
        let name = format!("db-{at}");
        objects.push(object(
            Kind::Resource(TYPE),
            SYSTEM,
            &name,
            json!({"uid": uid(rng, &name)}),
            json!({"spec": spec}),
        ));
    }
    objects
}

fn fits(claim: &Asked, resource: &Had) -> bool {
    let version = Version::parse(resource.0).expect("a version");
    let range = claim.1.map(|r| VersionRange::parse(r).expect("a range"));
    range.is_none_or(|r| r.matches(&version)) && claim.2 <= resource.1
}

/// What a placement is worth, the better the smaller: the unserved of each priority, the highest first, then
/// what is left over.
fn worth(claims: &[Asked], resources: &[Had], placed: &[Option<usize>]) -> (Vec<usize>, i64) {
    let mut unserved: BTreeMap<std::cmp::Reverse<i64>, usize> = BTreeMap::new();
    let mut waste = 0;
    for ((priority, _, storage), place) in claims.iter().zip(placed) {
        *unserved.entry(std::cmp::Reverse(*priority)).or_default() += usize::from(place.is_none());
        waste += place.map_or(0, |at| resources[at].1 - storage);
    }
    (unserved.into_values().collect(), waste)
}

fn best(claims: &[Asked], resources: &[Had], placed: &mut Vec<Option<usize>>) -> (Vec<usize>, i64) {
    if placed.len() == claims.len() {
        return worth(claims, resources, placed);
    }
    placed.push(None);
    let mut found = best(claims, resources, placed);
    placed.pop();
    for at in 0..resources.len() {
        if !placed.contains(&Some(at)) && fits(&claims[placed.len()], &resources[at]) {
            placed.push(Some(at));
            found = found.min(best(claims, resources, placed));
            placed.pop();
        }
    }
    found
}

#[test]
fn no_placement_is_better_than_the_one_that_is_placed_together() {
    for seed in seeds("CONDUCTOR_WORLDS", 1_500) {
        let mut rng = Rng::new(seed);
        let (claims, resources) = draw(&mut rng);
        let objects = objects(&mut rng, &claims, &resources);
        let (engine, _) = engine_on(&objects);
        let place = |at: usize| {
            let uid =
                objects.iter().find(|o| o.metadata.name == Some(format!("c-{at}")))?.metadata.uid.clone()?;
            match engine.binding(&Uid::from(uid)) {
                Some(Binding::Assumed { resource, .. }) => resource.strip_prefix("db-")?.parse().ok(),
                _ => None,
            }
        };
        let placed: Vec<Option<usize>> = (0..claims.len()).map(place).collect();
        for (claim, at) in placed.iter().enumerate().filter_map(|(claim, at)| Some((claim, (*at)?))) {
            assert!(
                fits(&claims[claim], &resources[at]),
                "CONDUCTOR_SEED={seed}: c-{claim} does not fit db-{at}"
            );
        }
        let got = worth(&claims, &resources, &placed);
        let expected = best(&claims, &resources, &mut Vec::new());
        assert_eq!(got, expected, "CONDUCTOR_SEED={seed}: {claims:?} over {resources:?}: {placed:?}");
    }
}
