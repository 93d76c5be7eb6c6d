//! The life of a claim in a world without faults: bound, used, released, as in seed 004.

use conductor::engine::Config;
use conductor::model::{Kind, ObjectKey, Time, TypeId};
use conductor_simulator::harness::Harness;
use conductor_simulator::load::{LoadOptions, load};
use conductor_simulator::world::World;

const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;

fn seed() -> Harness {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/seed-004");
    let files = ["relational-database", "relational-database-claim", "relational-database-class"];
    let paths = files.map(|file| format!("{folder}/{file}.yaml"));
    let loaded = load(&paths, &LoadOptions::default()).unwrap();
    let mut world = World::new();
    for loaded in loaded.objects {
        world.put(loaded.object);
    }
    Harness::start(world, Config::default(), Time(1_000_000))
}

#[test]
fn the_seeds_claim_is_bound_to_its_database() {
    let harness = seed();
    let claim = harness.world.get(Kind::Claim(TYPE), &ObjectKey::new("wordpress", "wordpress-db")).unwrap();
    assert_eq!(claim.body["status"]["phase"], "Bound", "{:#}", claim.body);
    assert_eq!(claim.body["status"]["resourceRef"]["name"], "database-445");
    let resource =
        harness.world.get(Kind::Resource(TYPE), &ObjectKey::new("conductor-system", "database-445")).unwrap();
    assert_eq!(resource.body["spec"]["claimRefs"][0]["name"], "wordpress-db");
    assert_eq!(resource.body["status"]["phase"], "Bound");
    harness.engine.audit().unwrap();
}

#[test]
fn a_restart_writes_nothing() {
    let harness = seed();
    let again = harness.restart(Config::default());
    assert_eq!(again.writes(), 0);
}
