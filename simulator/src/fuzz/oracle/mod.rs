//! A second scheduler, as simple as possible: for each claim in turn, it checks every resource.
//! Written from the rules, not from the engine: it shares the parsers of values with it and nothing else.

mod class;
mod quota;
mod read;

pub use quota::Charge;
pub use read::amounts;

use conductor::model::types::Rule;
use conductor::model::{Quantity, Selector, Version, VersionRange};
use conductor::predicates::Predicate;
use quota::charge_of;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Quantities by name. What is absent is zero.
pub type Amounts = BTreeMap<String, Quantity>;

/// What becomes of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A resource holds it already.
    Held(String),
    /// It gets this resource.
    Bind(String),
    /// It gets a new resource of this class.
    Provision(String),
    /// It waits: the message, and the count per predicate.
    Wait(String, Vec<(String, usize)>),
    /// Its resource is lost.
    Lost,
    /// It is being deleted.
    Leaving,
}

#[derive(Clone, Debug)]
pub struct Reference {
    pub claim: String,
    pub uid: Option<String>,
    pub requests: Amounts,
    /// Whether its claim is exclusive: no other claim may hold the resource.
    exclusive: bool,
}

#[derive(Clone, Debug)]
pub struct Db {
    pub name: String,
    /// A resource that cannot be read is offered to no claim and counted nowhere.
    readable: bool,
    class: Option<String>,
    engine: Option<String>,
    version: Option<Version>,
    highly_available: bool,
    capabilities: BTreeSet<String>,
    labels: BTreeMap<String, String>,
    capacity: Amounts,
    slots: usize,
    allowed: Vec<String>,
    cordoned: bool,
    deleting: bool,
    claimable: bool,
    says_released: bool,
    /// Which life of its name.
    uid: String,
    pub references: Vec<Reference>,
    /// UIDs that left for good.
    gone: BTreeSet<String>,
    made_for: Option<String>,
    reclaim: String,
    /// What it has of the fields that this oracle has no rule of its own for.
    others: Vec<Other>,
}

/// One side's value of a field that this oracle has no rule of its own for: it compares as its kind of value does.
#[derive(Clone, Debug)]
struct Other {
    predicate: &'static str,
    field: &'static str,
    rule: Rule,
    value: Value,
}

#[derive(Clone, Debug)]
pub struct Ask {
    pub key: String,
    pub namespace: String,
    pub uid: String,
    priority: i64,
    created: i64,
    deleting: bool,
    phase: String,
    recorded: Option<String>,
    recorded_uid: Option<String>,
    /// Its loss is that others hold the resource.
    misbound: bool,
    named: Option<String>,
    profile: Option<String>,
    class: Option<String>,
    classes: Vec<String>,
    pub engine: Option<String>,
    /// The engine that quotas count it under: known also where the rest cannot be read.
    counted_engine: Option<String>,
    range: Option<VersionRange>,
    /// A claim that cannot be read requests nothing, and its status reports that; it keeps what it has.
    readable: bool,
    highly_available: bool,
    capabilities: BTreeSet<String>,
    selector: Selector,
    pub requests: Amounts,
    exclusive: bool,
    others: Vec<Other>,
}

#[derive(Clone, Debug)]
struct Maker {
    name: String,
    default: bool,
    created: i64,
    deleting: bool,
    template: bool,
    engine: Option<String>,
    ranges: Vec<VersionRange>,
    highly_available: Option<bool>,
    capabilities: Option<BTreeSet<String>>,
    labels: BTreeMap<String, String>,
    slots: i64,
    sizes: BTreeMap<String, Value>,
    /// The text of its templates: what they take from the claim is offered.
    takes: String,
}

#[derive(Clone, Debug)]
struct Limit {
    class: Option<String>,
    engine: Option<String>,
    claims: Option<i64>,
    requests: Amounts,
}

#[derive(Clone, Debug)]
struct Budget {
    title: String,
    namespace: Option<String>,
    selector: Selector,
    limits: Vec<Limit>,
}

/// A whole world, as the plain scheduler sees it.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    pub dbs: Vec<Db>,
    pub asks: Vec<Ask>,
    makers: Vec<Maker>,
    budgets: Vec<Budget>,
    /// Namespace limits: (namespace, name) to min, max, default.
    bounds: BTreeMap<(String, String), [Amounts; 3]>,
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
    profiles: BTreeMap<String, (bool, Vec<String>)>,
    pub charges: BTreeMap<String, Charge>,
}

fn get(amounts: &Amounts, name: &str) -> Quantity {
    amounts.get(name).copied().unwrap_or_default()
}

fn add(left: &mut Amounts, right: &Amounts) {
    for (name, amount) in right {
        let sum = get(left, name).saturating_add(*amount);
        left.insert(name.clone(), sum);
    }
}

/// Names in the order in which capacities are judged: storage first, the rest by name.
fn in_order(of: &[&Amounts]) -> Vec<String> {
    let names: BTreeSet<&String> = of.iter().flat_map(|a| a.keys()).collect();
    let mut names: Vec<String> = names.into_iter().cloned().collect();
    names.sort_by_key(|name| (name != "storage", name.clone()));
    names
}

fn compare(left: &Amounts, right: &Amounts) -> Ordering {
    let by_name = in_order(&[left, right]).into_iter().map(|n| get(left, &n).cmp(&get(right, &n)));
    by_name.fold(Ordering::Equal, Ordering::then)
}

impl Db {
    fn holds(&self, uid: &str) -> bool {
        self.references.iter().any(|r| r.uid.as_deref() == Some(uid))
    }

    /// It was held, and every holder left for good.
    fn is_released(&self) -> bool {
        let mut holders = self.references.iter().filter_map(|r| r.uid.as_ref()).peekable();
        holders.peek().is_some() && (self.says_released || holders.all(|uid| self.gone.contains(uid)))
    }

    /// What all references leave of the resource; `except`'s own reservation is not counted.
    fn left(&self, except: Option<&str>) -> Amounts {
        let mut taken = Amounts::new();
        for reference in &self.references {
            if reference.uid.is_some() || Some(reference.claim.as_str()) != except {
                add(&mut taken, &reference.requests);
            }
        }
        let left =
            |(name, have): (&String, &Quantity)| (name.clone(), have.saturating_sub(get(&taken, name)));
        let mut left: Amounts = self.capacity.iter().map(left).collect();
        left.retain(|_, amount| !amount.is_zero() && !amount.is_negative());
        left
    }

    fn lacking(&self, left: &Amounts, requests: &Amounts) -> Option<(String, Quantity, Quantity)> {
        let short = |name: String| (name.clone(), get(left, &name), get(requests, &name));
        in_order(&[requests]).into_iter().map(short).find(|(_, have, want)| have < want)
    }

    fn describe_class(&self) -> String {
        describe_class(self.class.as_deref())
    }

    /// What about the resource itself does not suit the claim, in the order of asking.
    fn unsuited(
        &self,
        ask: &Ask,
        classes: &[Option<String>],
        skip: &[&str],
    ) -> Option<(&'static str, String)> {
        let asks = |what: &str| !skip.contains(&what);
        if asks("Class") && !classes.contains(&self.class) {
            let wanted: Vec<String> = classes.iter().map(|c| describe_class(c.as_deref())).collect();
            return Some(("Class", format!("it is {}, not {}", self.describe_class(), wanted.join(" or "))));
        }
        if asks("Engine") && ask.engine.is_some() && ask.engine != self.engine {
            let (have, want) =
                (self.engine.as_deref().unwrap_or("not given"), ask.engine.as_deref().unwrap_or(""));
            return Some(("Engine", format!("its engine is {have}, not {want}")));
        }
        if !self.allowed.is_empty() && !self.allowed.contains(&ask.namespace) {
            return Some(("Sharing", format!("it is not open to namespace {}", ask.namespace)));
        }
        match (&ask.range, &self.version) {
            _ if !asks("Version") => {}
            (Some(range), None) => {
                return Some(("Version", format!("it has no version, and {range} is requested")));
            }
            (Some(range), Some(version)) if !range.matches(version) => {
                return Some(("Version", format!("its version {version} is not in {range}")));
            }
            _ => {}
        }
        if asks("HighlyAvailable") && ask.highly_available && !self.highly_available {
            return Some(("HighlyAvailable", "it is not highly-available".to_owned()));
        }
        let missing: Vec<&str> =
            ask.capabilities.difference(&self.capabilities).map(String::as_str).collect();
        if asks("Capabilities") && !missing.is_empty() {
            return Some(("Capabilities", format!("it lacks {}", missing.join(", "))));
        }
        let mut others = ask.others.iter().zip(&self.others).filter(|(want, _)| asks(want.predicate));
        if let Some((want, have)) = others.find(|(want, have)| want.refuses(have)) {
            return Some((want.predicate, want.refusal(have)));
        }
        let label = |key: &str| self.labels.get(key).map(String::as_str);
        (asks("Selector") && !ask.selector.matches(label)).then(|| ("Selector", String::new()))
    }

    /// What the claim requests and the resource is not. A claim that names its resource requests nothing else.
    pub fn lacks(&self, ask: &Ask) -> Option<&'static str> {
        let own_class = std::slice::from_ref(&self.class);
        if ask.named.is_some() {
            None
        } else {
            self.unsuited(ask, own_class, &[]).map(|(predicate, _)| predicate)
        }
    }

    /// The first predicate that refuses this resource to a claim that matches.
    fn refuses(&self, ask: &Ask, classes: &[Option<String>]) -> Option<&'static str> {
        if let Some((predicate, _)) = self.unsuited(ask, classes, &[]) {
            return Some(predicate);
        }
        let held = self.references.len();
        if self.deleting || self.is_released() || !self.claimable {
            Some("Phase")
        } else if self.cordoned {
            Some("Cordoned")
        } else if held > 0 && (self.slots == 1 || self.references.iter().any(|r| r.exclusive)) {
            Some("Reserved")
        } else if held >= self.slots || (held > 0 && ask.exclusive) {
            Some("Sharing")
        } else {
            self.lacking(&self.left(None), &ask.requests).map(|_| "Capacity")
        }
    }

    /// Why a resource that the claim names, or that is kept for it, cannot be had.
    fn refuses_its_own(
        &self,
        ask: &Ask,
        classes: &[Option<String>],
        skip: &[&str],
    ) -> Option<(&'static str, String)> {
        if self.deleting {
            return Some(("Phase", "it is being deleted".to_owned()));
        }
        if let Some(refusal) = self.unsuited(ask, classes, skip) {
            return Some(refusal);
        }
        if self.cordoned && !skip.contains(&"Cordoned") {
            return Some(("Cordoned", "it is unschedulable".to_owned()));
        }
        let (own, others): (Vec<&Reference>, Vec<&Reference>) =
            self.references.iter().partition(|r| r.claim == ask.key && r.uid.is_none());
        // Of more reservations than slots, the first ones count.
        let first_come = !own.is_empty() && others.len() >= self.slots;
        let others = others.into_iter().filter(|r| r.uid.is_some() || !first_come);
        let others: Vec<&str> = others.map(|r| r.claim.as_str()).collect();
        let is_alone = self.references.iter().any(|r| r.exclusive && (r.claim != ask.key || r.uid.is_some()));
        if !others.is_empty() && (self.slots == 1 || is_alone || self.is_released()) {
            return Some(("Reserved", format!("{} has it", others.join(", "))));
        }
        if others.len() >= self.slots {
            return Some(("Sharing", format!("all {} of its slots are taken", self.slots)));
        }
        if !others.is_empty() && ask.exclusive {
            return Some(("Sharing", "others hold it, and the claim is exclusive".to_owned()));
        }
        if skip.contains(&"Capacity") {
            return None;
        }
        let (what, have, want) = self.lacking(&self.left(Some(&ask.key)), &ask.requests)?;
        Some(("Capacity", format!("it has {what} {have} left, and {want} is requested")))
    }

    fn hold_for(&mut self, ask: &Ask, requests: &Amounts) {
        // Until it is written, the reservation that it fills counts in full.
        let mut counted = requests.clone();
        for kept in self.references.iter().filter(|r| r.uid.is_none() && r.claim == ask.key) {
            for (name, amount) in &kept.requests {
                counted.insert(name.clone(), get(requests, name).max(*amount));
            }
        }
        self.references.retain(|r| r.uid.is_some() || r.claim != ask.key);
        let uid = Some(ask.uid.clone());
        let (claim, exclusive) = (ask.key.clone(), ask.exclusive);
        self.references.push(Reference { claim, uid, requests: counted, exclusive });
    }
}

fn describe_class(class: Option<&str>) -> String {
    class.map_or_else(|| "classless".to_owned(), |class| format!("of class {class}"))
}

/// What a resource that is kept for a claim is not asked.
const KEPT_SKIPS: [&str; 3] = ["Class", "Selector", "Cordoned"];

impl Oracle {
    /// Decides about every claim, in the order of their turns, and keeps what each was given.
    pub fn decide_all(&mut self) -> BTreeMap<String, Outcome> {
        let mut outcomes = BTreeMap::new();
        let mut waiting = Vec::new();
        for mut ask in self.asks.clone() {
            match self.stand(&ask) {
                Some(outcome) => drop(outcomes.insert(ask.key.clone(), outcome)),
                None => {
                    self.fill_in(&mut ask);
                    waiting.push(ask);
                }
            }
        }
        waiting
            .sort_by_key(|a| (std::cmp::Reverse(a.priority), a.created, a.namespace.clone(), a.key.clone()));
        for ask in waiting {
            let outcome = self.decide(&ask);
            self.carry_out(&ask, &outcome);
            outcomes.insert(ask.key.clone(), outcome);
        }
        outcomes
    }

    /// Holders that are not there have left for good: at rest, each has been asked after.
    pub fn bury_absent(&mut self) {
        let known: BTreeSet<&String> = self.asks.iter().map(|ask| &ask.uid).collect();
        for db in &mut self.dbs {
            let holders = db.references.iter().filter_map(|reference| reference.uid.as_ref());
            db.gone.extend(holders.filter(|uid| !known.contains(uid)).cloned());
        }
    }

    /// Where a claim stands before anything is decided; nothing where it is to be decided about.
    fn stand(&mut self, ask: &Ask) -> Option<Outcome> {
        let holders: Vec<usize> = (0..self.dbs.len()).filter(|at| self.dbs[*at].holds(&ask.uid)).collect();
        if ask.deleting {
            holders.iter().for_each(|at| self.dbs[*at].gone.extend([ask.uid.clone()]));
            return Some(Outcome::Leaving);
        }
        if ask.phase == "Lost" {
            // It ends where the same resource, not another of its name, holds the claim again.
            let same = |at: &&usize| Some(&self.dbs[**at].uid) == ask.recorded_uid.as_ref();
            if let Some(at) = holders.iter().find(same).copied() {
                return Some(self.hold(ask, at));
            }
            // Or exists again, with room, and others never held it meanwhile.
            let is_same = |db: &Db| {
                Some(&db.uid) == ask.recorded_uid.as_ref() && Some(&db.name) == ask.recorded.as_ref()
            };
            let is_returned = !ask.misbound && self.dbs.iter().any(is_same);
            return Some(if is_returned { self.restore(ask) } else { Outcome::Lost });
        }
        let named =
            |name: &Option<String>| holders.iter().find(|at| Some(&self.dbs[**at].name) == name.as_ref());
        let holder = named(&ask.recorded).or_else(|| named(&ask.named)).or(holders.first()).copied();
        // By its own record the claim was bound to another resource: that one has its data, and the holder does not.
        let recorded = ask.recorded.as_ref().filter(|_| ask.phase == "Bound");
        let holder = holder.filter(|at| recorded.is_none_or(|name| self.dbs[*at].name == *name));
        for other in holders.into_iter().filter(|at| Some(*at) != holder) {
            let db = &mut self.dbs[other];
            if db.made_for.as_ref() == Some(&ask.uid) && db.reclaim == "Delete" {
                db.gone.insert(ask.uid.clone());
            }
        }
        if let Some(holder) = holder {
            return Some(self.hold(ask, holder));
        }
        if ask.phase == "Bound" || ask.recorded.is_some() {
            return Some(self.restore(ask));
        }
        None
    }

    /// A claim that a resource holds is charged for what it was given.
    fn hold(&mut self, ask: &Ask, at: usize) -> Outcome {
        let db = &self.dbs[at];
        let (name, class) = (db.name.clone(), db.class.clone());
        let held = db.references.iter().find(|r| r.uid.as_ref() == Some(&ask.uid));
        let given = held.map(|r| r.requests.clone()).unwrap_or_default();
        let counted = db.counted(ask, &given);
        self.charge(ask, class, counted);
        Outcome::Held(name)
    }

    /// A claim that was bound, and whose resource does not say so.
    fn restore(&mut self, ask: &Ask) -> Outcome {
        let Some(name) = ask.recorded.clone().or_else(|| ask.named.clone()) else { return Outcome::Lost };
        let Some(at) = self.dbs.iter().position(|db| db.name == name) else {
            // Asked live before it is called lost.
            return Outcome::Held(name);
        };
        let db = &self.dbs[at];
        let is_other = |r: &&Reference| r.uid.as_ref().map_or(r.claim != ask.key, |uid| *uid != ask.uid);
        let others: Vec<&Reference> = db.references.iter().filter(is_other).collect();
        if others.len() >= db.slots {
            return Outcome::Lost;
        }
        let mut taken = Amounts::default();
        others.iter().for_each(|r| add(&mut taken, &r.requests));
        // No more than is there, of what the resource says that it has.
        let mut given = ask.requests.clone();
        for (name, amount) in given.iter_mut().filter(|(name, _)| !get(&db.capacity, name).is_zero()) {
            *amount = (*amount).min(get(&db.capacity, name).saturating_sub(get(&taken, name)));
        }
        given.retain(|_, amount| !amount.is_zero());
        let class = db.class.clone();
        self.dbs[at].hold_for(ask, &given);
        let counted = self.dbs[at].counted(ask, &given);
        self.charge(ask, class, counted);
        Outcome::Bind(name)
    }

    /// Fills in what the namespace's limits ask where the claim says nothing.
    pub fn fill_in(&self, ask: &mut Ask) {
        for ((namespace, _), [_, _, default]) in &self.bounds {
            for (name, amount) in default.iter().filter(|_| *namespace == ask.namespace) {
                if get(&ask.requests, name).is_zero() {
                    ask.requests.insert(name.clone(), *amount);
                }
            }
        }
    }

    pub fn carry_out(&mut self, ask: &Ask, outcome: &Outcome) {
        match outcome {
            Outcome::Bind(name) => {
                let Some(db) = self.dbs.iter_mut().find(|db| db.name == *name) else { return };
                db.hold_for(ask, &ask.requests);
                let (class, counted) = (db.class.clone(), db.counted(ask, &ask.requests));
                self.charge(ask, class, counted);
            }
            Outcome::Provision(class) => {
                let maker = self.makers.iter().find(|maker| maker.name == *class);
                let counted = maker.map_or_else(|| ask.requests.clone(), |maker| maker.counted(ask));
                self.charge(ask, Some(class.clone()), counted);
            }
            Outcome::Held(_) | Outcome::Wait(..) | Outcome::Lost | Outcome::Leaving => {}
        }
    }

    /// Decides about one claim whose requests are filled in.
    pub fn decide(&self, ask: &Ask) -> Outcome {
        if !ask.readable {
            return Outcome::Wait("it cannot be read".to_owned(), Vec::new());
        }
        let profile = match &ask.profile {
            None => self.profiles.get("default").cloned().unwrap_or_default(),
            Some(name) => match self.profiles.get(name) {
                Some(profile) => profile.clone(),
                None => {
                    return Outcome::Wait(format!("scheduling profile {name} does not exist"), Vec::new());
                }
            },
        };
        if let Some(refusal) = self.outside_limits(ask) {
            return refusal;
        }
        match &ask.named {
            Some(name) => self.decide_named(ask, name),
            None => self.decide_match(ask, &profile),
        }
    }

    fn outside_limits(&self, ask: &Ask) -> Option<Outcome> {
        let mut broken = Vec::new();
        let own = self.bounds.iter().filter(|((namespace, _), _)| *namespace == ask.namespace);
        for (_, [min, max, _]) in own {
            for (name, least) in min.iter().filter(|(name, least)| get(&ask.requests, name) < **least) {
                broken
                    .push(format!("{name} {} is below the least allowed, {least}", get(&ask.requests, name)));
            }
            for (name, most) in max.iter().filter(|(name, most)| get(&ask.requests, name) > **most) {
                broken.push(format!("{name} {} is above the most allowed, {most}", get(&ask.requests, name)));
            }
        }
        let message = format!("outside the limits of namespace {}: {}", ask.namespace, broken.join("; "));
        (!broken.is_empty()).then(|| Outcome::Wait(message, vec![("Limits".to_owned(), broken.len())]))
    }

    /// The classes that a claim may be of, in order.
    fn alternatives(&self, ask: &Ask) -> Vec<Option<String>> {
        match (&ask.class, ask.classes.is_empty()) {
            (_, false) => ask.classes.iter().cloned().map(Some).collect(),
            (Some(class), true) => vec![Some(class.clone()).filter(|c| !c.is_empty())],
            (None, true) => {
                let mut defaults: Vec<&Maker> =
                    self.makers.iter().filter(|m| m.default && !m.deleting).collect();
                defaults.sort_by_key(|m| (std::cmp::Reverse(m.created), m.name.clone()));
                let default = defaults.first().map(|m| Some(m.name.clone()));
                std::iter::once(None).chain(default).collect()
            }
        }
    }

    fn decide_named(&self, ask: &Ask, name: &str) -> Outcome {
        let single =
            |predicate: &str, message: String| Outcome::Wait(message, vec![(predicate.to_owned(), 1)]);
        let Some(db) = self.dbs.iter().find(|db| db.name == name) else {
            return single("ResourceName", format!("resource {name} does not exist; the claim waits for it"));
        };
        if !db.readable {
            let why = "spec.sharing.maxClaims: `0` is not a number of claims: write 1 or more";
            return single("ResourceName", format!("resource {name} cannot be read: {why}"));
        }
        let mut skip = vec!["Selector"];
        if db.class.is_none() {
            skip.push("Class");
        }
        // Both sides name each other: only what would take something from other claims is checked.
        if db.references.iter().any(|r| r.uid.is_none() && r.claim == ask.key) {
            skip.extend(["Class", "Engine", "Version", "HighlyAvailable", "Capabilities", "Cordoned"]);
            skip.extend((db.slots == 1).then_some("Capacity"));
        }
        if let Some((predicate, lack)) = db.refuses_its_own(ask, &self.alternatives(ask), &skip) {
            return single(predicate, format!("resource {name}: {lack}"));
        }
        match self.gate_db(ask, db) {
            Some((message, count)) => Outcome::Wait(message, vec![("Quota".to_owned(), count)]),
            None => Outcome::Bind(name.to_owned()),
        }
    }

    fn decide_match(&self, ask: &Ask, (newest, order): &(bool, Vec<String>)) -> Outcome {
        let classes = self.alternatives(ask);
        let mut over: Vec<(String, usize)> = Vec::new();
        if let Some(db) = self.kept_for(ask) {
            match self.gate_db(ask, db) {
                Some(refusal) => over.push(refusal),
                None => return Outcome::Bind(db.name.clone()),
            }
        }
        let (mut searched, mut makers_said) = (false, Vec::new());
        for class in &classes {
            if let Some(refusal) = self.gate(ask, class.as_deref()) {
                over.push(refusal);
                continue;
            }
            searched = true;
            let default = ["Either", "Provision"].map(str::to_owned);
            for means in if order.is_empty() { &default[..] } else { &order[..] } {
                let found = match means.as_str() {
                    "Provision" => match self.ask_maker(ask, class.as_deref()) {
                        Some(Ok(class)) => return Outcome::Provision(class),
                        Some(Err(why)) => {
                            makers_said.push(why);
                            None
                        }
                        None => None,
                    },
                    means => {
                        let within = |db: &&Db| self.gate_db(ask, db).is_none();
                        let found = self.best(ask, class, means, *newest, within);
                        // Where quotas alone are in the way, of the best one.
                        let best = || self.best(ask, class, means, *newest, |_| true);
                        if let Some(best) = found.is_none().then(best).flatten() {
                            over.extend(self.gate_db(ask, best));
                        }
                        found
                    }
                };
                if let Some(db) = found {
                    return Outcome::Bind(db.name.clone());
                }
            }
        }
        self.refusal(ask, &classes, searched, &makers_said, &over)
    }

    /// The resource that an administrator keeps for the claim, the smallest that can serve.
    fn kept_for(&self, ask: &Ask) -> Option<&Db> {
        let kept =
            self.dbs.iter().filter(|db| db.references.iter().any(|r| r.uid.is_none() && r.claim == ask.key));
        let able = kept.filter(|db| db.readable && db.refuses_its_own(ask, &[], &KEPT_SKIPS).is_none());
        able.min_by(|a, b| compare(&a.capacity, &b.capacity).then_with(|| a.name.cmp(&b.name)))
    }

    fn best(
        &self,
        ask: &Ask,
        class: &Option<String>,
        means: &str,
        newest: bool,
        within: impl Fn(&&Db) -> bool,
    ) -> Option<&Db> {
        let wanted = |db: &&Db| match means {
            "Existing" => db.references.is_empty(),
            "Share" => !db.references.is_empty(),
            _ => true,
        };
        let fits = self
            .dbs
            .iter()
            .filter(|db| db.readable)
            .filter(wanted)
            .filter(|db| db.refuses(ask, std::slice::from_ref(class)).is_none())
            .filter(within);
        fits.min_by(|a, b| {
            let version = if newest { b.version.cmp(&a.version) } else { a.version.cmp(&b.version) };
            compare(&a.left(None), &b.left(None)).then(version).then_with(|| a.name.cmp(&b.name))
        })
    }

    /// What a class says: that it makes one, or why not.
    fn ask_maker(&self, ask: &Ask, class: Option<&str>) -> Option<Result<String, (&'static str, String)>> {
        let class = class?;
        let Some(maker) = self.makers.iter().find(|m| m.name == class) else {
            return Some(Err(("Class", format!("class {class} does not exist"))));
        };
        if let Some(why) = maker.refuses(ask) {
            return Some(Err(why));
        }
        let charge = charge_of(ask, Some(class), maker.counted(ask));
        Some(match self.refusal_by_quota(&charge, ask, Some(&maker.holding(ask))) {
            Some((why, _)) => Err(("Quota", why)),
            None => Ok(class.to_owned()),
        })
    }

    fn refusal(
        &self,
        ask: &Ask,
        classes: &[Option<String>],
        searched: bool,
        makers_said: &[(&'static str, String)],
        over: &[(String, usize)],
    ) -> Outcome {
        if let (false, Some((message, count))) = (searched, over.first()) {
            return Outcome::Wait(message.clone(), vec![("Quota".to_owned(), *count)]);
        }
        let readable = || self.dbs.iter().filter(|db| db.readable);
        // What is kept for the claim counts by what it lacks.
        let is_kept = |db: &Db| db.references.iter().any(|r| r.uid.is_none() && r.claim == ask.key);
        let own = |db: &Db| db.refuses_its_own(ask, &[], &KEPT_SKIPS).map(|(predicate, _)| predicate);
        let counts = count_refusals(readable().filter_map(|db| {
            let refuses = db.refuses(ask, classes)?;
            Some(own(db).filter(|_| is_kept(db)).unwrap_or(refuses))
        }));
        let mut message = count("resources", readable().count(), &counts);
        let mut reasons = counts;
        if !makers_said.is_empty() {
            let counts = count_refusals(makers_said.iter().map(|(predicate, _)| *predicate));
            let said: Vec<&str> = makers_said.iter().map(|(_, why)| why.as_str()).collect();
            let counted = count("classes", makers_said.len(), &counts);
            message.push_str(&format!("; {counted} ({})", said.join("; ")));
            reasons.extend(counts);
        }
        for (said, _) in over {
            message.push_str("; ");
            message.push_str(said);
        }
        reasons.extend(over.iter().map(|(_, count)| ("Quota".to_owned(), *count)));
        Outcome::Wait(message, reasons)
    }
}

/// How often each predicate said no, the most frequent first.
fn count_refusals<'a>(refused: impl Iterator<Item = &'a str>) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for predicate in refused {
        let at = Predicate::ALL.iter().position(|p| p.name() == predicate).expect("a known predicate");
        *counts.entry(at).or_default() += 1;
    }
    let mut counts: Vec<(usize, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(at, count)| (std::cmp::Reverse(*count), *at));
    counts.into_iter().map(|(at, count)| (Predicate::ALL[at].name().to_owned(), count)).collect()
}

/// The message: how many fit, and what refuses the others.
fn count(what: &str, total: usize, counts: &[(String, usize)]) -> String {
    let word = |predicate: &str| match predicate {
        "HighlyAvailable" => "high availability".to_owned(),
        other => other.to_lowercase(),
    };
    let refused: usize = counts.iter().map(|(_, count)| count).sum();
    let words: Vec<String> = counts.iter().map(|(p, count)| format!("{count} {}", word(p))).collect();
    let colon = if words.is_empty() { "" } else { ": " };
    format!("{}/{total} {what} fit{colon}{}", total - refused, words.join(", "))
}
