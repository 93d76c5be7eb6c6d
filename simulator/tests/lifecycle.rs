//! The life of a claim in a world without faults: bound, used, released, as seed 004 tells it.

use conductor::engine::Config;
use conductor::model::{Kind, ObjectKey, Time, TypeId};
use conductor_simulator::lab::Lab;
use conductor_simulator::load::{LoadOptions, load};
use conductor_simulator::world::World;

const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;

fn seed() -> Lab {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/seed-004");
    let files = ["relational-database", "relational-database-claim", "relational-database-class"];
    let paths = files.map(|file| format!("{folder}/{file}.yaml"));
    let loaded = load(&paths, &LoadOptions::default()).unwrap();
    let mut world = World::new();
    for loaded in loaded.objects {
        world.put(loaded.object);
    }
    Lab::start(world, Config::default(), Time(1_000_000))
}

#[test]
fn the_seeds_claim_is_bound_to_its_database() {
    let lab = seed();
    let claim = lab.world.get(Kind::Claim(TYPE), &ObjectKey::new("wordpress", "wordpress-db")).unwrap();
    assert_eq!(claim.body["status"]["phase"], "Bound", "{:#}", claim.body);
    assert_eq!(claim.body["status"]["resourceRef"]["name"], "database-445");
    let resource =
        lab.world.get(Kind::Resource(TYPE), &ObjectKey::new("conductor-system", "database-445")).unwrap();
    assert_eq!(resource.body["spec"]["claimRefs"][0]["name"], "wordpress-db");
    assert_eq!(resource.body["status"]["phase"], "Bound");
    lab.engine.audit().unwrap();
}

#[test]
fn a_restart_writes_nothing() {
    let lab = seed();
    let again = lab.restart(Config::default());
    assert_eq!(again.writes(), 0);
}
