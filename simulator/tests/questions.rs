//! Many questions to one planned state: each answer is, byte for byte, the one that two plans from nothing give.

use conductor::model::{Kind, Object, ObjectKey, TypeId};
use conductor_simulator::diff::{Side, diff};
use conductor_simulator::plan::{API_VERSION, BasePlan, ObjectChange, Options, Planned};
use conductor_simulator::whatif::{Edit, EditError, FieldPath, PlanFigures, Target, WhatIf, WhatIfSession};
use proptest::prelude::*;
use serde_json::{Value, json};

const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;
const SYSTEM: &str = "conductor-system";
const NAMESPACES: [&str; 2] = ["team-a", "team-b"];
const DATABASES: u8 = 5;
const CLAIMS: u8 = 8;

fn object(kind: Kind, metadata: Value, body: Value) -> Object {
    Object { kind, metadata: serde_json::from_value(metadata).expect("metadata"), body }
}

/// What there is in a state, by small numbers.
#[derive(Clone, Debug)]
struct World {
    databases: Vec<Database>,
    claims: Vec<Claim>,
    class: Option<(bool, bool, bool)>,
    quota: Option<u8>,
    cluster_quota: Option<u8>,
    limits: Option<u8>,
    profile: Option<bool>,
    /// Which namespaces have an object of their own.
    namespaces: (bool, bool),
    /// A UID that two objects have, a place that two objects have.
    is_copied: (bool, bool),
}

#[derive(Clone, Debug)]
struct Database {
    gib: u8,
    slots: u8,
    version: u8,
    phase: u8,
    deleting: bool,
    deletes: bool,
    of_class: bool,
    holders: Vec<(u8, bool)>,
    /// Whether it says what its holders take.
    says: bool,
    kept_for: Option<u8>,
    own_uid: bool,
    elsewhere: bool,
}

#[derive(Clone, Debug)]
struct Claim {
    gib: u8,
    version: u8,
    priority: i32,
    created: Option<u8>,
    deleting: bool,
    bound_to: Option<u8>,
    names: Option<u8>,
    of_class: bool,
    lost: bool,
    own_uid: bool,
}

fn rarely() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.12)
}

fn often() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.85)
}

fn database() -> impl Strategy<Value = Database> {
    let size = (1..12_u8, 1..4_u8, 15..18_u8, 0..12_u8);
    let ends = (rarely(), any::<bool>(), rarely());
    let held = prop::collection::vec((0..CLAIMS, often()), 0..3);
    (size, ends, (held, often()), prop::option::weighted(0.15, 0..CLAIMS), often(), rarely()).prop_map(
        |(
            (gib, slots, version, phase),
            (deleting, deletes, of_class),
            (holders, says),
            kept_for,
            own_uid,
            elsewhere,
        )| {
            let elsewhere = elsewhere && phase == 0;
            Database {
                gib,
                slots,
                version,
                phase,
                deleting,
                deletes,
                of_class,
                holders,
                says,
                kept_for,
                own_uid,
                elsewhere,
            }
        },
    )
}

fn claim() -> impl Strategy<Value = Claim> {
    let requests = (1..8_u8, 15..18_u8, -1..2_i32, prop::option::of(0..3_u8));
    let stands =
        (rarely(), prop::option::weighted(0.5, 0..DATABASES), prop::option::weighted(0.15, 0..DATABASES));
    (requests, stands, rarely(), rarely(), often()).prop_map(
        |((gib, version, priority, created), (deleting, bound_to, names), of_class, lost, own_uid)| Claim {
            gib,
            version,
            priority,
            created,
            deleting,
            bound_to,
            names,
            of_class,
            lost,
            own_uid,
        },
    )
}

fn world() -> impl Strategy<Value = World> {
    let class = prop::option::weighted(0.5, (rarely(), rarely(), rarely()));
    let rules = (prop::option::weighted(0.3, 1..5_u8), prop::option::weighted(0.2, 2..9_u8));
    let more = (prop::option::weighted(0.2, 2..9_u8), prop::option::weighted(0.3, any::<bool>()));
    (
        prop::collection::vec(database(), 0..=usize::from(DATABASES)),
        prop::collection::vec(claim(), 0..=usize::from(CLAIMS)),
        class,
        rules,
        more,
        (any::<bool>(), any::<bool>()),
        (prop::bool::weighted(0.04), prop::bool::weighted(0.04)),
    )
        .prop_map(
            |(databases, claims, class, (quota, cluster_quota), (limits, profile), namespaces, is_copied)| {
                World {
                    databases,
                    claims,
                    class,
                    quota,
                    cluster_quota,
                    limits,
                    profile,
                    namespaces,
                    is_copied,
                }
            },
        )
}

fn database_object(at: u8, database: &Database) -> Object {
    let holders = database.holders.iter().map(|(claim, with_uid)| {
        let mut named =
            json!({"namespace": NAMESPACES[usize::from(claim % 2)], "name": format!("claim-{claim}")});
        if *with_uid {
            named["uid"] = json!(format!("c-{claim}"));
        }
        if *with_uid && database.says {
            named["requests"] = json!({"storage": "1Gi"});
        }
        named
    });
    let kept = database.kept_for.map(|claim| {
        json!({"namespace": NAMESPACES[usize::from(claim % 2)], "name": format!("claim-{claim}"), "requests": {"storage": "1Gi"}})
    });
    let mut spec = json!({
        "engine": "postgresql", "version": format!("{}.1", database.version),
        "capacity": {"storage": format!("{}Gi", database.gib)}, "sharing": {"maxClaims": database.slots},
        "reclaimPolicy": if database.deletes { "Delete" } else { "Retain" },
        "claimRefs": holders.chain(kept).collect::<Vec<_>>(),
    });
    if database.of_class {
        spec["class"] = json!("gold");
    }
    let phase = match database.phase {
        1 => Some("Released"),
        2 => Some("Failed"),
        3 => Some("Creating"),
        4..7 => None,
        _ => Some("Available"),
    };
    let mut metadata = json!({
        "name": format!("db-{at}"), "namespace": if database.elsewhere { "elsewhere" } else { SYSTEM },
        "resourceVersion": format!("{}", 40 + at),
    });
    if database.own_uid {
        metadata["uid"] = json!(format!("r-{at}"));
    }
    if database.deleting {
        metadata["deletionTimestamp"] = json!("2024-01-03T00:00:00Z");
        metadata["finalizers"] = json!(["conductor.io/resource-protection"]);
    }
    let status = phase.map_or(json!({}), |phase| json!({"phase": phase}));
    object(Kind::Resource(TYPE), metadata, json!({"spec": spec, "status": status}))
}

fn claim_object(at: u8, claim: &Claim) -> Object {
    let mut metadata = json!({"name": format!("claim-{at}"), "namespace": NAMESPACES[usize::from(at % 2)]});
    if claim.own_uid {
        metadata["uid"] = json!(format!("c-{at}"));
        metadata["resourceVersion"] = json!("700");
    }
    if let Some(day) = claim.created {
        metadata["creationTimestamp"] = json!(format!("2024-01-0{}T00:00:00Z", day + 1));
    }
    if claim.deleting {
        metadata["deletionTimestamp"] = json!("2024-01-03T00:00:00Z");
        metadata["finalizers"] = json!(["conductor.io/claim-protection"]);
    }
    if claim.priority != 0 {
        metadata["annotations"] = json!({"conductor.io/priority": claim.priority.to_string()});
    }
    let mut spec = json!({
        "engine": "postgresql", "version": format!(">= {}", claim.version),
        "resources": {"requests": {"storage": format!("{}Gi", claim.gib)}},
    });
    if claim.of_class {
        spec["class"] = json!("gold");
    }
    if let Some(names) = claim.names {
        spec["resourceName"] = json!(format!("db-{names}"));
    }
    let status = match claim.bound_to {
        _ if claim.lost => json!({"phase": "Lost"}),
        Some(database) => {
            json!({"phase": "Bound", "resourceRef": {"name": format!("db-{database}"), "namespace": SYSTEM}})
        }
        None => json!({}),
    };
    object(Kind::Claim(TYPE), metadata, json!({"spec": spec, "status": status}))
}

fn class_object(is_default: bool, has_schema: bool, deleting: bool) -> Object {
    let mut metadata = json!({"name": "gold", "namespace": SYSTEM, "uid": "class-gold"});
    if is_default {
        metadata["annotations"] = json!({"conductor.io/is-default-class": "true"});
    }
    if deleting {
        metadata["deletionTimestamp"] = json!("2024-01-03T00:00:00Z");
        metadata["finalizers"] = json!(["conductor.io/class-protection"]);
    }
    let mut body = json!({
        "engine": "postgresql", "version": "16.1", "capacity": {"storage": "6Gi"},
        "template": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}},
    });
    if has_schema {
        body["parameterSchema"] = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    }
    object(Kind::Class(TYPE), metadata, body)
}

fn quota(kind: Kind, claims: u8) -> Object {
    let metadata = match kind {
        Kind::Quota => json!({"name": "quota", "namespace": NAMESPACES[0]}),
        _ => json!({"name": "everywhere"}),
    };
    let mut spec = json!({"limits": [{"claims": claims}]});
    if kind == Kind::ClusterQuota && claims.is_multiple_of(2) {
        spec["namespaceSelector"] = json!({"matchLabels": {"counted": "yes"}});
    }
    object(kind, metadata, json!({"spec": spec}))
}

fn objects(world: &World) -> Vec<Object> {
    let databases = (0..).zip(&world.databases).map(|(at, database)| database_object(at, database));
    let claims = (0..).zip(&world.claims).map(|(at, claim)| claim_object(at, claim));
    let mut objects: Vec<Object> = databases.chain(claims).collect();
    objects.extend(world.class.map(|(default, schema, deleting)| class_object(default, schema, deleting)));
    objects.extend(world.quota.map(|most| quota(Kind::Quota, most)));
    objects.extend(world.cluster_quota.map(|most| quota(Kind::ClusterQuota, most)));
    objects.extend(world.limits.map(|most| {
        let body = json!({"spec": {"limits": [{"max": {"storage": format!("{most}Gi")}}]}});
        object(Kind::Limits, json!({"name": "limits", "namespace": NAMESPACES[1]}), body)
    }));
    objects.extend(world.profile.map(|ordered| {
        let spec = if ordered { json!({"order": ["existing", "share", "provision"]}) } else { json!({}) };
        object(Kind::Profile, json!({"name": "default"}), json!({"spec": spec}))
    }));
    let namespaces = NAMESPACES.into_iter().zip([world.namespaces.0, world.namespaces.1]);
    objects.extend(namespaces.filter(|(_, is_there)| *is_there).map(|(name, _)| {
        object(Kind::Namespace, json!({"name": name, "labels": {"counted": "yes"}}), json!({}))
    }));
    let (same_uid, same_place) = world.is_copied;
    if let Some(first) = objects.first().cloned().filter(|_| same_uid) {
        let mut copy = first;
        copy.metadata.name = Some("copied".to_owned());
        objects.push(copy);
    }
    if let Some(first) = objects.first().cloned().filter(|_| same_place) {
        let mut copy = first;
        copy.body["spec"]["capacity"] = json!({"storage": "3Gi"});
        objects.push(copy);
    }
    objects
}

fn target(kind: Kind, at: u8) -> Target {
    let key = match kind {
        Kind::Claim(_) => ObjectKey::new(NAMESPACES[usize::from(at % 2)], format!("claim-{at}")),
        Kind::Resource(_) => ObjectKey::new(SYSTEM, format!("db-{at}")),
        Kind::Class(_) => ObjectKey::new(SYSTEM, "gold"),
        Kind::Quota => ObjectKey::new(NAMESPACES[0], "quota"),
        Kind::ClusterQuota => ObjectKey::new("", "everywhere"),
        Kind::Limits => ObjectKey::new(NAMESPACES[1], "limits"),
        Kind::Profile => ObjectKey::new("", "default"),
        Kind::Namespace => ObjectKey::new("", NAMESPACES[usize::from(at % 2)]),
    };
    Target { kind, key }
}

fn set(target: Target, path: &str, value: Value) -> Edit {
    Edit::Set { target, path: FieldPath::read(path).expect("a path"), value }
}

fn any_target() -> impl Strategy<Value = Target> {
    let claim = (0..CLAIMS).prop_map(|at| target(Kind::Claim(TYPE), at));
    let database = (0..DATABASES).prop_map(|at| target(Kind::Resource(TYPE), at));
    let rules = prop::sample::select(vec![
        Kind::Class(TYPE),
        Kind::Quota,
        Kind::ClusterQuota,
        Kind::Limits,
        Kind::Profile,
    ]);
    let namespace = (0..2_u8).prop_map(|at| target(Kind::Namespace, at));
    prop_oneof![4 => claim, 4 => database, 1 => rules.prop_map(|kind| target(kind, 0)), 1 => namespace]
}

fn edit() -> impl Strategy<Value = Edit> {
    let of_database = |at: u8| target(Kind::Resource(TYPE), at);
    let of_claim = |at: u8| target(Kind::Claim(TYPE), at);
    prop_oneof![
        3 => (0..DATABASES + 1, database()).prop_map(|(at, d)| Edit::Apply(Box::new(database_object(at, &d)))),
        3 => (0..CLAIMS + 2, claim()).prop_map(|(at, c)| Edit::Apply(Box::new(claim_object(at, &c)))),
        1 => (rarely(), rarely(), rarely())
            .prop_map(|(default, schema, deleting)| Edit::Apply(Box::new(class_object(default, schema, deleting)))),
        1 => (1..4_u8).prop_map(|most| Edit::Apply(Box::new(quota(Kind::Quota, most)))),
        1 => (0..DATABASES, 1..14_u8)
            .prop_map(move |(at, gib)| set(of_database(at), "spec.capacity.storage", json!(format!("{gib}Gi")))),
        1 => (0..DATABASES).prop_map(move |at| set(of_database(at), "spec.claimRefs", Value::Null)),
        1 => (0..DATABASES, 0..CLAIMS).prop_map(move |(at, claim)| {
            let named = json!([{"namespace": NAMESPACES[usize::from(claim % 2)], "name": format!("claim-{claim}"), "uid": format!("c-{claim}")}]);
            set(of_database(at), "spec.claimRefs", named)
        }),
        1 => (0..DATABASES, prop::sample::select(vec!["Failed", "Available", "Released"]))
            .prop_map(move |(at, phase)| set(of_database(at), "status.phase", json!(phase))),
        1 => (0..CLAIMS).prop_map(move |at| set(of_claim(at), "status", Value::Null)),
        1 => (0..CLAIMS).prop_map(move |at| set(of_claim(at), "metadata.deletionTimestamp", Value::Null)),
        1 => (0..CLAIMS, 0..5_u8)
            .prop_map(move |(at, day)| set(of_claim(at), "metadata.creationTimestamp", json!(format!("2024-01-1{day}T00:00:00Z")))),
        1 => (1..5_u8).prop_map(|most| set(target(Kind::Quota, 0), "spec.limits[0].claims", json!(most))),
        4 => any_target().prop_map(Edit::Lose),
        4 => any_target().prop_map(Edit::Delete),
        2 => (0..CLAIMS, 0..4_usize).prop_map(move |(at, count)| Edit::Copies { like: of_claim(at), count }),
        2 => (0..DATABASES, 0..3_usize).prop_map(move |(at, count)| Edit::Copies { like: of_database(at), count }),
    ]
}

/// Two plans from nothing, held against each other.
fn cold(objects: &[Object], edits: &[Edit], options: &Options) -> Result<WhatIf, EditError> {
    let mut edited = objects.to_vec();
    edits.iter().try_for_each(|edit| edit.make(&mut edited))?;
    let (before, after) = (Planned::new(objects.to_vec(), options), Planned::new(edited, options));
    let (was, is) = (before.plan(), after.plan());
    Ok(WhatIf {
        api_version: API_VERSION,
        kind: "WhatIf",
        edits: edits.iter().map(ToString::to_string).collect(),
        before: PlanFigures::from(&was),
        after: PlanFigures::from(&is),
        difference: diff(Side { planned: &before, plan: &was }, Side { planned: &after, plan: &is }),
    })
}

fn bytes(answer: Result<WhatIf, EditError>) -> String {
    match answer {
        Ok(answer) => serde_json::to_string_pretty(&answer).expect("a document"),
        Err(error) => error.to_string(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn a_warm_answer_is_the_cold_one(
        world in world(),
        requested in prop::collection::vec(prop::collection::vec(edit(), 1..4), 1..4),
        of_manifests in any::<bool>(),
    ) {
        let options = Options { absent_phase_is_available: of_manifests, ..Options::default() };
        let objects = objects(&world);
        let questions = WhatIfSession::new(objects.clone(), &options);
        for edits in &requested {
            prop_assert_eq!(bytes(questions.what_if(edits)), bytes(cold(&objects, edits, &options)), "{:#?}", edits);
        }
    }
}

fn plain(databases: u8, claims: u8) -> Vec<Object> {
    let database = Database {
        gib: 4,
        slots: 2,
        version: 16,
        phase: 9,
        deleting: false,
        deletes: false,
        of_class: false,
        holders: Vec::new(),
        says: true,
        kept_for: None,
        own_uid: true,
        elsewhere: false,
    };
    let claim = Claim {
        gib: 1,
        version: 15,
        priority: 0,
        created: None,
        deleting: false,
        bound_to: None,
        names: None,
        of_class: false,
        lost: false,
        own_uid: true,
    };
    let databases = (0..databases).map(|at| database_object(at, &database));
    databases.chain((0..claims).map(|at| claim_object(at, &claim))).collect()
}

/// Whether a copy can answer, with the objects at these places as they are now given.
fn is_warm(objects: &[Object], replaced: Vec<Object>) -> bool {
    let replaced = replaced.into_iter().map(|object| {
        let key = ObjectKey::new(
            object.metadata.namespace.clone().unwrap_or_default(),
            object.metadata.name.clone().unwrap_or_default(),
        );
        ObjectChange { kind: object.kind, key, object: Some(object) }
    });
    BasePlan::new(objects.to_vec(), &Options::default()).with(replaced.collect()).is_some()
}

#[test]
fn a_copy_answers_where_claims_are_known_by_their_own_uids() {
    let objects = plain(2, 8);
    assert!(is_warm(&objects, vec![objects[0].clone()]));
    assert!(is_warm(&objects, vec![objects[9].clone()]));
}

#[test]
fn what_reaches_further_than_its_objects_is_planned_anew() {
    let objects = plain(2, 8);
    assert!(!is_warm(&objects, vec![class_object(false, true, false)]), "a class may refuse any claim");
    let mut other_life = objects[9].clone();
    other_life.metadata.uid = Some("another".to_owned());
    assert!(!is_warm(&objects, vec![other_life]), "another life of a claim");
    let mut nameless = objects.clone();
    nameless[9].metadata.uid = None;
    let mut holder = objects[0].clone();
    holder.body["spec"]["claimRefs"] = json!([{"namespace": NAMESPACES[1], "name": "claim-7", "uid": "u"}]);
    assert!(!is_warm(&nameless, vec![holder]), "a reference identifies the claim");
    let mut unsaid = objects.clone();
    unsaid[0].body["spec"]["claimRefs"] =
        json!([{"namespace": NAMESPACES[1], "name": "claim-7", "uid": "c-7"}]);
    assert!(!is_warm(&unsaid, vec![unsaid[9].clone()]), "it takes what it requests");
    assert!(!is_warm(&unsaid, vec![unsaid[0].clone()]), "it takes what its holder requests");
    assert!(is_warm(&unsaid, vec![unsaid[8].clone()]), "another claim");
    let mut twice = objects.clone();
    twice.push(objects[0].clone());
    assert!(!is_warm(&twice, vec![objects[9].clone()]), "two objects of one place");
}
