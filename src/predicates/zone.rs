//! Zone: the example of a predicate, compiled for tests only. It proves that one file and one registry line are all that a
//! predicate needs: the tests below and `simulator/tests/oracle/zone.rs` show what it takes part in.

use super::{Definition, Shape, engine};
use crate::model::types::{FieldRule, Rule};

pub(super) const ZONE: Definition = Definition {
    about: "The resource is in the zone that the claim names.",
    field: Some(FieldRule {
        of: "RelationalDatabase",
        claim: "zone",
        resource: "zone",
        rule: Rule::Name { aliases: &[] },
        recorded: Shape::Name,
    }),
    ..engine::BY_NAME
};

#[cfg(test)]
mod tests {
    use crate::api::names::DEFAULT_PROFILE;
    use crate::cache::State;
    use crate::model::{Claim, Kind, Name, Object, ProfileObject, Resource, TypeId};
    use crate::predicates::Predicate;
    use crate::scheduler::{Decision, Memo, explain, prepare, schedule_one};
    use serde_json::{Value, json};

    const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;

    fn object(kind: Kind, name: &str, spec: Value) -> Object {
        let metadata = json!({"namespace": "team-a", "name": name, "uid": name});
        Object { kind, metadata: serde_json::from_value(metadata).unwrap(), body: json!({"spec": spec}) }
    }

    /// Three databases, of which two are in a zone.
    fn state() -> State {
        let mut state = State::new(true);
        for (name, spec) in [
            ("anywhere", json!({"engine": "mysql", "capacity": {"storage": "1Gi"}})),
            ("north", json!({"engine": "mysql", "zone": "North", "capacity": {"storage": "3Gi"}})),
            ("south", json!({"engine": "mysql", "zone": "south", "capacity": {"storage": "2Gi"}})),
        ] {
            state.set_resource(Resource::read(TYPE, &object(Kind::Resource(TYPE), name, spec)));
        }
        state
    }

    fn claim(spec: Value) -> Claim {
        Claim::read(TYPE, &object(Kind::Claim(TYPE), "orders", spec))
    }

    fn bound(state: &State, claim: &Claim) -> Result<Name, String> {
        let request = prepare(state, claim).unwrap();
        match schedule_one(state, &request, &mut Memo::default()) {
            Decision::Bind { resource, .. } => {
                Ok(state.resource(resource).unwrap().resource.meta.key.name.clone())
            }
            Decision::Refuse { refusal, .. } => Err(refusal.message.clone()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_takes_part_in_matching_and_counting() {
        let state = state();
        assert_eq!(bound(&state, &claim(json!({"engine": "mysql"}))).as_deref(), Ok("anywhere"));
        let north = claim(json!({"engine": "mysql", "zone": " north "}));
        assert_eq!(bound(&state, &north).as_deref(), Ok("north"));
        let large =
            json!({"engine": "mysql", "zone": "south", "resources": {"requests": {"storage": "3Gi"}}});
        let expected = Err("0/3 resources fit: 2 zone, 1 capacity".to_owned());
        assert_eq!(bound(&state, &claim(large)), expected);
    }

    #[test]
    fn it_takes_part_in_explanations() {
        let (state, west) = (state(), claim(json!({"engine": "mysql", "zone": "west"})));
        let explained = explain(&state, &prepare(&state, &west).unwrap()).unwrap();
        assert_eq!(explained.refusal.reasons[0].message, "3 resources have another zone than west");
        let lacks = vec![(Predicate::Zone, "its zone is not given, not west".to_owned())];
        assert_eq!(explained.near_misses[0].lacks, lacks);
        let south =
            claim(json!({"engine": "mysql", "zone": "west", "resources": {"requests": {"storage": "2Gi"}}}));
        let explained = explain(&state, &prepare(&state, &south).unwrap()).unwrap();
        let nearest: Vec<_> = explained.nearest.iter().map(|n| (&*n.change, n.binds.as_deref())).collect();
        assert_eq!(nearest, [("set the claim's zone to south", Some("south"))]);
    }

    #[test]
    fn a_profile_switches_it_off() {
        let mut state = state();
        let spec = json!({"plugins": {"disabled": ["Zone"]}});
        let profile = ProfileObject::read(&object(Kind::Profile, DEFAULT_PROFILE, spec));
        assert!(profile.profile.is_ok(), "{profile:?}");
        state.profiles.insert(Name::from(DEFAULT_PROFILE), profile);
        let west = claim(json!({"engine": "mysql", "zone": "west"}));
        assert_eq!(bound(&state, &west).as_deref(), Ok("anywhere"));
    }
}
