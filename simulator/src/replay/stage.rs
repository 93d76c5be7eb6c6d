//! The cluster and the engine of a replay: wishes go in, the engine's writes land at once, time is virtual. What the
//! engine decides is read off its writes, in the same words as the recording's.

use super::input;
use super::series::Holdings;
use crate::plan::{Options as PlanOptions, Plan, Planned};
use crate::record::Verdict;
use crate::world::{Telling, World};
use conductor::action::{Action, Change, Write};
use conductor::api::names::PROVISIONED_FOR;
use conductor::api::reasons::{self, bound};
use conductor::engine::{Binding, Config, Engine};
use conductor::event::{Answer, Event};
use conductor::model::{
    ClaimPhase, ClaimRef, Kind, Lookup, Name, Object, ObjectKey, Revision, Time, TypeId, Uid,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What the engine is told.
enum News {
    Event(Event),
    /// A write of its own was done as it asked, and made this revision.
    Done(Write, Revision),
}

/// A cluster and its controller.
pub(super) struct Stage {
    pub world: World,
    pub engine: Engine,
    config: Config,
    pub now: Time,
    wakes: BTreeSet<Time>,
    pub writes: u64,
    /// How often the engine hears of its own writes.
    telling: Telling,
    /// The resources that are held, by class.
    pub holdings: Holdings,
    /// What was decided about each claim, in order, with the time.
    pub decided: Lookup<Uid, Vec<(Verdict, Time)>>,
    /// Resources that were made and are not ready yet, with the time at which they will be.
    pub making: BTreeMap<(Time, Name), Kind>,
    /// Objects whose name an earlier life still has: created once that one is gone.
    waiting: BTreeMap<(Kind, ObjectKey), Object>,
    /// How long making takes where the recording does not say; never where it is not to be made up.
    pub latency_ms: Option<i64>,
    /// What was written without a look at it, since that was last checked.
    #[cfg(test)]
    unseen: Vec<(Kind, ObjectKey)>,
}

impl Stage {
    /// An engine on a cluster that holds `objects`.
    pub fn start(objects: Vec<Object>, config: Config, now: Time, telling: Telling) -> Stage {
        let mut world = World::thrifty();
        for object in objects {
            world.put(object);
        }
        let mut stage = Stage {
            world,
            engine: Engine::new(config.clone()),
            config,
            now,
            wakes: BTreeSet::new(),
            writes: 0,
            telling,
            holdings: Holdings::default(),
            decided: Lookup::default(),
            making: BTreeMap::new(),
            waiting: BTreeMap::new(),
            latency_ms: None,
            #[cfg(test)]
            unseen: Vec::new(),
        };
        stage.list();
        stage
    }

    /// A cluster of its own with other objects, under the same settings and at the same time.
    pub fn beside(&self, objects: Vec<Object>) -> Stage {
        Stage::start(objects, self.config.clone(), self.now, self.telling)
    }

    /// A new engine that knows only what the cluster holds.
    pub fn restart(&mut self) {
        self.engine = Engine::new(self.config.clone());
        self.wakes.clear();
        self.list();
    }

    fn list(&mut self) {
        self.holdings = Holdings::default();
        let mut events: Vec<Event> = self.world.objects().cloned().map(Event::Seen).collect();
        self.world.fold();
        events.push(Event::Synced);
        self.deliver(events);
    }

    /// A plan over what the cluster holds in the end, when nothing else is asked any more, and the objects where
    /// somebody wants them. An engine that hears of each write twice is not believed to know the end either: that is
    /// what the other is held against.
    pub fn plan(self, end: Option<&mut Vec<Object>>) -> Plan {
        let Stage { world, engine, decided, config, now, telling, .. } = self;
        drop(decided);
        let options =
            PlanOptions { system_namespace: config.system_namespace, absent_phase_is_available: false };
        let is_distinct = TypeId::all().map(|ty| world.count(Kind::Claim(ty))).sum::<usize>()
            == engine.state().claim_count();
        let at_rest = match telling {
            Telling::Once if is_distinct => Planned::at_rest(engine, now, &options),
            Telling::Once | Telling::Twice => None,
        };
        match (at_rest, end) {
            (Some(planned), None) => planned.plan(),
            (at_rest, end) => {
                let objects = world.into_objects_side_by_side();
                end.into_iter().for_each(|end| end.clone_from(&objects));
                at_rest.unwrap_or_else(|| Planned::new(objects, &options)).plan()
            }
        }
    }

    /// Lets time pass, waking the engine whenever it asked to be, and making what is being made.
    pub fn advance(&mut self, until: Time) {
        loop {
            let wake = self.wakes.first().copied();
            let made = self.making.first_key_value().map(|((at, _), _)| *at);
            let Some(next) = wake.into_iter().chain(made).min().filter(|at| *at <= until) else { break };
            self.now = self.now.max(next);
            if made == Some(next) {
                if let Some(((_, name), kind)) = self.making.pop_first() {
                    self.made(kind, &name, "Available");
                }
            } else {
                self.wakes.remove(&next);
                self.deliver(vec![Event::Tick]);
            }
        }
        self.now = self.now.max(until);
    }

    /// A resource's implementation says how it ended.
    pub fn made(&mut self, kind: Kind, name: &str, phase: &str) {
        let key = self.resource_key(name);
        let event = self.world.edit(kind, &key, |object| {
            if object.body.pointer("/status/phase").is_none_or(|p| p == "Creating" || p == "Pending") {
                object.body["status"]["phase"] = Value::from(phase);
            }
        });
        self.deliver(event.into_iter().collect());
    }

    /// Creates an object. Where one of an earlier life still has its name, the API refuses: then it is created once that
    /// one is gone.
    pub fn put(&mut self, object: Object) {
        let place = (object.kind, crate::world::key_of(&object));
        let earlier = self.world.get(place.0, &place.1);
        if earlier.is_some_and(|known| known.metadata.uid != object.metadata.uid) {
            self.waiting.insert(place, object);
            return;
        }
        let event = self.world.put(object);
        self.deliver(vec![event]);
    }

    pub fn edit(&mut self, kind: Kind, key: &ObjectKey, edit: impl FnOnce(&mut Object)) {
        if let Some(waiting) = self.waiting.get_mut(&(kind, key.clone())) {
            return edit(waiting);
        }
        let event = self.world.edit(kind, key, edit);
        self.deliver(event.into_iter().collect());
    }

    /// A user asks for a deletion: finalizers keep the object until they are gone, as the API does it.
    pub fn delete(&mut self, kind: Kind, key: &ObjectKey) {
        if self.waiting.remove(&(kind, key.clone())).is_some() {
            return;
        }
        let event = self.world.delete(kind, key);
        self.deliver(event.into_iter().collect());
    }

    /// It is gone in the recording. Here it stays while our engine's finalizer holds it: this engine may have given it
    /// to a claim that the live one did not, and a cluster would keep it for that claim.
    pub fn release(&mut self, kind: Kind, key: &ObjectKey) {
        let is_waiting = self.waiting.contains_key(&(kind, key.clone()));
        let has_others = self.world.get(kind, key).is_some_and(|o| o.metadata.finalizers.is_some());
        if has_others && !is_waiting {
            let event = self.world.edit(kind, key, input::keep_own_finalizers);
            self.deliver(event.into_iter().collect());
        }
        self.delete(kind, key);
    }

    /// It is gone, whatever protects it.
    pub fn remove(&mut self, kind: Kind, key: &ObjectKey) {
        if let Some(object) = self.world.get(kind, key)
            && object.metadata.finalizers.is_some()
        {
            // Without a word to the engine: in the recording nobody asked it either.
            let _ = self.world.edit(kind, key, |object| object.metadata.finalizers = None);
        }
        self.delete(kind, key);
    }

    /// Drops what waits for a name: the caller puts the object there that the recording has.
    pub fn forget_waiting(&mut self, kind: Kind, key: &ObjectKey) {
        self.waiting.remove(&(kind, key.clone()));
    }

    fn deliver(&mut self, events: Vec<Event>) {
        let mut pending: VecDeque<News> = events.into_iter().map(News::Event).collect();
        while let Some(news) = pending.pop_front() {
            self.look_at(&news);
            let actions = match news {
                News::Event(event) => self.engine.handle(event, self.now),
                News::Done(write, revision) => self.engine.done_as_asked(write, revision, self.now),
            };
            for action in actions {
                self.carry_out(action, &mut pending);
            }
            self.create_waiting(&mut pending);
        }
        #[cfg(test)]
        self.check_views();
    }

    /// Creates what waited for a name that is free by now.
    fn create_waiting(&mut self, news: &mut VecDeque<News>) {
        let free = self.waiting.keys().find(|(kind, key)| self.world.get(*kind, key).is_none()).cloned();
        if let Some(object) = free.and_then(|place| self.waiting.remove(&place)) {
            news.push_back(News::Event(self.world.put(object)));
        }
    }

    /// Keeps count of the resources that are held.
    fn look_at(&mut self, news: &News) {
        let event = match news {
            News::Event(event) => event,
            News::Done(Write { kind, key, change: Change::ResourceSpec { claim_refs, .. }, .. }, _) => {
                return self.holdings.hold(*kind, key, !claim_refs.is_empty());
            }
            News::Done(..) => return,
        };
        match event {
            Event::Seen(object) => self.holdings.see(object),
            Event::Answered { answer: Answer::Written(object), .. } => self.holdings.see(object),
            Event::Gone(gone) => self.holdings.forget(gone.kind, &gone.key),
            _ => {}
        }
    }

    fn carry_out(&mut self, action: Action, news: &mut VecDeque<News>) {
        match action {
            Action::Tell(_) => {}
            Action::WakeAt(at) if at <= self.now => news.push_back(News::Event(Event::Tick)),
            Action::WakeAt(at) => drop(self.wakes.insert(at)),
            action => {
                self.writes += u64::from(action.write_id().is_some());
                if let Some(declares) = self.foresees(&action) {
                    return self.write(action, declares, news);
                }
                self.note(&action, false);
                self.hand_over(&action, news);
            }
        }
    }

    /// Whether the engine knows what becomes of an object by a write of its own, so that nobody need show it.
    fn foresees(&self, action: &Action) -> Option<bool> {
        match action {
            Action::Write(write) if self.telling == Telling::Once => self.engine.foresees(write),
            _ => None,
        }
    }

    fn write(&mut self, action: Action, declares: bool, news: &mut VecDeque<News>) {
        self.note(&action, true);
        match action {
            Action::Write(write) => match self.world.write_unseen(&write, declares) {
                Some(revision) => {
                    #[cfg(test)]
                    self.unseen.push((write.kind, write.key.clone()));
                    news.push_back(News::Done(write, revision));
                }
                None => self.hand_over(&Action::Write(write), news),
            },
            action => self.hand_over(&action, news),
        }
    }

    fn hand_over(&mut self, action: &Action, news: &mut VecDeque<News>) {
        news.extend(self.world.carry_out_telling(action, self.telling).into_iter().map(News::Event));
    }

    /// What the engine foresaw is what the objects say.
    #[cfg(test)]
    fn check_views(&mut self) {
        use conductor::model::{Claim, Resource};
        let state = self.engine.state();
        for (kind, key) in std::mem::take(&mut self.unseen) {
            let Some(object) = self.world.get(kind, &key) else { continue };
            match kind {
                Kind::Claim(ty) => {
                    assert_eq!(state.find_claim(ty, &key).map(|c| &**c), Some(&Claim::read(ty, object)))
                }
                Kind::Resource(ty) => {
                    let known = state.find_resource(ty, &key.name).and_then(|id| state.resource(id));
                    assert_eq!(known.map(|e| &e.resource), Some(&Resource::read(ty, object)));
                }
                _ => {}
            }
        }
    }

    /// Reads decisions off a write that is about to land.
    fn note(&mut self, action: &Action, foreseen: bool) {
        match action {
            Action::Write(Write { kind, key, uid, change, .. }) => match change {
                Change::ResourceSpec { claim_refs, .. } => {
                    for uid in self.new_holders(*kind, key, claim_refs, foreseen) {
                        self.decide(uid, Verdict::Bind { resource: key.name.to_string() });
                    }
                }
                Change::ClaimStatus { phase, conditions, .. } => {
                    let told = conditions.iter().find(|c| &*c.kind == reasons::BOUND && &*c.status != "True");
                    let Some(reason) = told.map(|c| c.reason.to_string()) else { return };
                    let silent =
                        [bound::SCHEDULING, bound::PROVISIONING, bound::PROVISIONING_FAILED, bound::DELETING];
                    if silent.contains(&reason.as_str()) || reason == bound::BOUND {
                        return;
                    }
                    self.decide(
                        uid.clone(),
                        match phase {
                            ClaimPhase::Lost => Verdict::Lost { reason },
                            ClaimPhase::Pending | ClaimPhase::Bound => Verdict::Refuse { reason },
                        },
                    );
                }
                Change::ResourceStatus { .. }
                | Change::ResourceRecipe { .. }
                | Change::ClaimRefusals { .. }
                | Change::ClaimSpec { .. }
                | Change::ClassFinalizers { .. }
                | Change::QuotaStatus { .. } => {}
            },
            Action::Create { object, .. } => self.note_made(object),
            _ => {}
        }
    }

    /// Whom a resource is about to name and did not before: by the object, or, where the engine knows that as it is, by
    /// what it knows.
    fn new_holders(&self, kind: Kind, key: &ObjectKey, refs: &[ClaimRef], foreseen: bool) -> Vec<Uid> {
        let uids = refs.iter().filter_map(|r| r.uid.clone());
        if let (Kind::Resource(ty), true) = (kind, foreseen) {
            let state = self.engine.state();
            let known = state.find_resource(ty, &key.name).and_then(|id| state.resource(id));
            let known = known.map(|entry| entry.resource.claim_refs.as_slice()).unwrap_or_default();
            return uids.filter(|uid| !known.iter().any(|r| r.uid.as_ref() == Some(uid))).collect();
        }
        let before = self.world.get(kind, key).map(holders).unwrap_or_default();
        uids.filter(|uid| !before.contains(&**uid)).collect()
    }

    fn note_made(&mut self, object: &Object) {
        let made_for = object.metadata.annotations.as_ref().and_then(|a| a.get(PROVISIONED_FOR));
        let Some(uid) = made_for else { return };
        let class = object.body.pointer("/spec/class").and_then(Value::as_str).unwrap_or_default();
        self.decide(Uid::from(uid.as_str()), Verdict::Provision { class: class.to_owned() });
        if let (Some(ms), Some(name)) = (self.latency_ms, object.metadata.name.as_deref()) {
            self.making.insert((self.now.plus_ms(ms), Name::from(name)), object.kind);
        }
    }

    fn decide(&mut self, uid: Uid, verdict: Verdict) {
        let now = self.now;
        let decided = self.decided.or_default(uid);
        if decided.last().is_none_or(|(last, _)| *last != verdict) {
            decided.push((verdict, now));
        }
    }

    /// Where resources live.
    pub fn system(&self) -> &Name {
        &self.config.system_namespace
    }

    /// Where a resource of a name is.
    pub fn resource_key(&self, name: &str) -> ObjectKey {
        ObjectKey::new(self.config.system_namespace.clone(), name)
    }

    /// What the engine holds of a claim, in the recording's words; nothing where it has not decided.
    pub fn verdict(&self, uid: &Uid) -> Option<Verdict> {
        match self.engine.binding(uid)? {
            Binding::Bound { resource } | Binding::Assumed { resource, .. } => {
                Some(Verdict::Bind { resource: resource.to_string() })
            }
            Binding::Provisioning { class, .. } => Some(Verdict::Provision { class: class.to_string() }),
            Binding::Waiting(refused) => {
                refused.as_ref().map(|r| Verdict::Refuse { reason: r.reason.to_owned() })
            }
            Binding::Lost { reason, .. } => Some(Verdict::Lost { reason: (*reason).to_owned() }),
            Binding::Leaving | Binding::Unmanaged { .. } => None,
        }
    }
}

/// The UIDs that a resource's references name.
pub(super) fn holders(resource: &Object) -> BTreeSet<String> {
    let refs = resource.body.pointer("/spec/claimRefs").and_then(Value::as_array).into_iter().flatten();
    refs.filter_map(|r| r.get("uid")?.as_str().map(str::to_owned)).collect()
}
