//! One history: a world, an engine, and everything that can go wrong between them. Watch events wait in a queue per kind,
//! writes wait to land, answers and reads wait for delivery; the steps choose what happens next. See `actors` for what
//! users do, `invariants` for what must hold, `quiesce` for the end.

use super::invariants::Invariants;
use super::mutant::Mutant;
use super::rng::Rng;
use super::{TYPE, actors, trace};
use crate::world::World;
use conductor::action::{Action, PartAction};
use conductor::engine::{Config, Engine};
use conductor::event::{Answer, Event};
use conductor::model::{Kind, ObjectKey, PartKey, Revision, Time, Uid, WriteId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub const KINDS: [Kind; 8] = [
    Kind::Claim(TYPE),
    Kind::Resource(TYPE),
    Kind::Class(TYPE),
    Kind::Quota,
    Kind::ClusterQuota,
    Kind::Limits,
    Kind::Profile,
    Kind::Namespace,
];

/// A history takes a few dozen writes; one with this many does not end.
const WRITES_MAX: usize = 2_000;

/// Something that happens. Both numbers are seeds, so that dropping a step does not change the others.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub what: usize,
    pub how: u64,
}

/// A write in flight. It may land after the engine that sent it crashed (`late`).
#[derive(Debug)]
pub struct Sent {
    pub action: Action,
    pub late: bool,
}

#[derive(Debug)]
pub struct Run {
    pub world: World,
    pub engine: Engine,
    synced: bool,
    pub now: Time,
    pub invariants: Invariants,
    /// Whether everything that quotas count stays as it was, so that their usage can be checked exactly.
    pub calm: bool,
    /// Watch events not yet delivered, by kind.
    pub watches: BTreeMap<Kind, VecDeque<Event>>,
    /// Recently delivered events, for redelivery.
    delivered: BTreeMap<Kind, VecDeque<Event>>,
    pub sent: Vec<Sent>,
    pub answers: Vec<Event>,
    /// Live reads in flight.
    pub reads: Vec<Action>,
    /// Undelivered watch events of parts.
    pub part_watch: VecDeque<Event>,
    pub wakes: BTreeSet<Time>,
    in_flight: BTreeMap<WriteId, (WriteTarget, Option<Uid>)>,
    pub writes: usize,
    trace: Option<Vec<String>>,
    /// How the engine is deliberately broken, if it is.
    mutant: Option<Mutant>,
    /// The world's initial objects.
    pub beginning: Vec<conductor::model::Object>,
}

/// What a step does, and its weight in the draw.
const WEIGHTS: [(usize, Op); 12] = [
    (22, Op::User),
    (24, Op::Watch),
    (22, Op::Land),
    (10, Op::Answer),
    (8, Op::Read),
    (6, Op::Time),
    (2, Op::Replay),
    (2, Op::Relist),
    (2, Op::Crash),
    (3, Op::WatchAll),
    (3, Op::LandAll),
    (2, Op::Implement),
];

#[derive(Clone, Copy, Debug)]
enum Op {
    User,
    Watch,
    Land,
    Answer,
    Read,
    Time,
    Replay,
    Relist,
    Crash,
    WatchAll,
    LandAll,
    Implement,
}

/// Draws a history's steps.
pub fn steps(rng: &mut Rng) -> Vec<Step> {
    let total: usize = WEIGHTS.iter().map(|(weight, _)| weight).sum();
    (0..rng.between(10, 70)).map(|_| Step { what: rng.below(total), how: rng.next() }).collect()
}

fn op_of(what: usize) -> Op {
    let mut left = what;
    for (weight, op) in WEIGHTS {
        if left < weight {
            return op;
        }
        left -= weight;
    }
    Op::Time
}

impl Run {
    /// Draws a world from `seed`, leaves out some of its initial objects, and starts an engine on it.
    pub fn start(
        seed: u64,
        without: &BTreeSet<usize>,
        mutant: Option<Mutant>,
        traced: bool,
    ) -> Result<Run, String> {
        let mut rng = Rng::new(seed);
        let mut run = Run::bare(rng.chance(50), traced);
        run.mutant = mutant;
        if rng.chance(15) {
            run.world.uninstall(&actors::thing(), conductor::event::WhyMissing::NotInstalled);
        }
        actors::settle_in(&mut run, &mut rng);
        run.beginning = run.world.objects().cloned().collect();
        for at in without {
            if let Some(object) = run.beginning.get(*at) {
                let (kind, key) = (object.kind, crate::world::key_of(object));
                let _ = run.world.edit(kind, &key, |o| o.metadata.finalizers = None);
                let _ = run.world.delete(kind, &key);
            }
        }
        // The trace starts with the initial objects, without those left out.
        run.trace.iter_mut().for_each(Vec::clear);
        run.beginning = run.world.objects().cloned().collect();
        run.restart(&mut rng)?;
        Ok(run)
    }

    /// An engine on an empty world.
    pub fn empty(traced: bool) -> Result<Run, String> {
        let mut run = Run::bare(false, traced);
        run.restart(&mut Rng::new(0))?;
        Ok(run)
    }

    fn bare(calm: bool, traced: bool) -> Run {
        let mut world = World::new();
        world.install(&actors::thing());
        Run {
            world,
            engine: Engine::new(Config::default()),
            synced: false,
            now: Time(1_704_300_000_000),
            invariants: Invariants::default(),
            calm,
            watches: BTreeMap::new(),
            delivered: BTreeMap::new(),
            sent: Vec::new(),
            answers: Vec::new(),
            reads: Vec::new(),
            part_watch: VecDeque::new(),
            wakes: BTreeSet::new(),
            in_flight: BTreeMap::new(),
            writes: 0,
            trace: traced.then(Vec::new),
            mutant: None,
            beginning: Vec::new(),
        }
    }

    pub fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(line());
        }
    }

    pub fn trace(&self) -> String {
        self.trace.as_ref().map(|lines| lines.join("\n")).unwrap_or_default()
    }

    /// Queues a watch event.
    pub fn watch(&mut self, event: Option<Event>) {
        let kind = match &event {
            Some(Event::Seen(object)) => object.kind,
            Some(Event::Gone(gone)) => gone.kind,
            Some(Event::Part(_)) => return self.part_watch.extend(event),
            _ => return,
        };
        if let Some(Event::Seen(object)) = &event {
            self.invariants.note_requests(object, self.now);
        }
        self.watches.entry(kind).or_default().extend(event);
    }

    pub fn step(&mut self, step: Step) -> Result<(), String> {
        let mut rng = Rng::new(step.how);
        match op_of(step.what) {
            Op::User => actors::act(self, &mut rng),
            Op::Implement => actors::implement(self, &mut rng),
            Op::Watch if !self.part_watch.is_empty() && rng.chance(25) => {
                self.deliver_parts(rng.between(1, 2))?
            }
            Op::Watch => {
                let kind = self.watched_kind(&mut rng);
                self.deliver(kind, rng.between(1, 3))?
            }
            Op::WatchAll => {
                KINDS.into_iter().try_for_each(|kind| self.deliver(kind, usize::MAX))?;
                self.deliver_parts(usize::MAX)?
            }
            Op::Land => self.land_one(&mut rng)?,
            Op::LandAll => {
                while !self.sent.is_empty() {
                    self.land(0, Fate::Answered)?;
                }
            }
            Op::Answer => self.answer(rng.next() as usize)?,
            Op::Read => self.answer_read(rng.next() as usize)?,
            Op::Time => self.pass(rng.between(0, 3_000) as i64)?,
            Op::Replay => self.replay(&mut rng)?,
            Op::Relist if rng.chance(15) => self.relist_parts(),
            Op::Relist => {
                let kind = *rng.pick(&KINDS);
                self.relist(kind)?
            }
            Op::Crash => self.crash(&mut rng)?,
        }
        Ok(())
    }

    /// A kind with undelivered events, if there is one.
    fn watched_kind(&self, rng: &mut Rng) -> Kind {
        let waiting: Vec<Kind> =
            self.watches.iter().filter(|(_, q)| !q.is_empty()).map(|(k, _)| *k).collect();
        if waiting.is_empty() { KINDS[0] } else { *rng.pick(&waiting) }
    }

    /// Delivers an event to the engine and queues its actions.
    pub fn deliver_event(&mut self, event: Event) -> Result<(), String> {
        let Some(event) = Mutant::on_event(self.mutant, event) else { return Ok(()) };
        self.note(|| format!("  engine receives {}", trace::event(&event)));
        self.synced |= matches!(event, Event::Synced);
        self.invariants.note_policies(&self.world);
        let actions = self.engine.handle(event, self.now);
        let bent: Vec<Action> = actions
            .into_iter()
            .flat_map(|action| Mutant::on_action(self.mutant, action, &self.world))
            .collect();
        for action in bent {
            match &action {
                Action::Read { .. } | Action::ReadSecret { .. } | Action::Part(PartAction::Read { .. }) => {
                    self.reads.push(action);
                }
                Action::Watch(kind) => self.part_watch.push_back(self.world.follow(kind)),
                Action::Emit(_) => {}
                Action::WakeAt(at) => drop(self.wakes.insert(*at)),
                Action::Write(_)
                | Action::Create { .. }
                | Action::Delete { .. }
                | Action::Part(_)
                | Action::Publish { .. }
                | Action::Withdraw { .. } => {
                    self.note(|| format!("    engine sends {}", trace::action(&action)));
                    self.writes += 1;
                    if self.writes > WRITES_MAX {
                        return Err("I10: endless writes".to_owned());
                    }
                    let (id, place) = target_of(&action);
                    let uid = match &action {
                        Action::Write(write) => Some(write.uid.clone()),
                        Action::Delete { uid, .. } => Some(uid.clone()),
                        _ => None,
                    };
                    let target = (place, uid);
                    if self.in_flight.values().any(|known| *known == target) {
                        return Err(format!("a second write of {target:?} before the first is answered"));
                    }
                    self.in_flight.insert(id, target);
                    self.invariants.check_sent(&action, &self.engine)?;
                    self.sent.push(Sent { action, late: false });
                }
            }
        }
        if self.synced { self.engine.audit() } else { Ok(()) }
    }

    pub fn deliver(&mut self, kind: Kind, most: usize) -> Result<(), String> {
        for _ in 0..most {
            let Some(event) = self.watches.get_mut(&kind).and_then(VecDeque::pop_front) else { break };
            let delivered = self.delivered.entry(kind).or_default();
            delivered.push_back(event.clone());
            if delivered.len() > 6 {
                delivered.pop_front();
            }
            self.deliver_event(event)?;
        }
        Ok(())
    }

    /// A reopened watch repeats the last events.
    fn replay(&mut self, rng: &mut Rng) -> Result<(), String> {
        let kind = *rng.pick(&KINDS);
        let known = self.delivered.get(&kind).cloned().unwrap_or_default();
        let from = rng.below(known.len() + 1);
        self.note(|| format!("the watch of {} is reopened and repeats events", kind.name()));
        known.into_iter().skip(from).try_for_each(|event| self.deliver_event(event))
    }

    /// A list replaces undelivered events.
    pub fn relist(&mut self, kind: Kind) -> Result<(), String> {
        self.watches.remove(&kind);
        self.delivered.remove(&kind);
        let objects = self.world.objects().filter(|o| o.kind == kind).cloned().collect();
        let revision = Revision(self.world.revision());
        self.note(|| format!("{} is listed", kind.name()));
        self.deliver_event(Event::Listed { kind, objects, revision })
    }

    fn land_one(&mut self, rng: &mut Rng) -> Result<(), String> {
        if self.sent.is_empty() {
            return Ok(());
        }
        let at = rng.below(self.sent.len());
        let fate = match rng.below(20) {
            0 => Fate::Unknown,
            1 => Fate::NotDone,
            2 => Fate::Refused,
            3..=8 => Fate::Waits,
            _ => Fate::Answered,
        };
        self.land(at, fate)
    }

    /// Lets a write land or not, and answers it, as `fate` says.
    pub fn land(&mut self, at: usize, fate: Fate) -> Result<(), String> {
        let Sent { action, late } = self.sent.remove(at);
        let (id, place) = target_of(&action);
        self.note(|| {
            format!("{}{}: {}", if late { "late, " } else { "" }, trace::fate(fate), trace::action(&action))
        });
        let unknown = |why: &str| Event::Answered { id, answer: Answer::Unknown(why.to_owned()) };
        let answer = match fate {
            Fate::NotDone => unknown("timeout"),
            Fate::Refused => {
                Event::Answered { id, answer: Answer::Invalid("denied by a webhook".to_owned()) }
            }
            Fate::Unknown | Fate::Waits | Fate::Answered => {
                let before = match &place {
                    WriteTarget::Object(kind, key) => self.world.get(*kind, key).cloned(),
                    WriteTarget::Part(_) => None,
                };
                let Some((_, outcome)) = self.world.apply(&action) else { return Ok(()) };
                if let Some(seen) = outcome.seen {
                    self.watch(Some(seen));
                    let (world, calm, now) = (&self.world, self.calm, self.now);
                    match &action {
                        Action::Part(action) => self.invariants.check_part_landed(action, world, late)?,
                        _ => {
                            self.invariants.check_landed(&action, before.as_ref(), world, late, calm, now)?
                        }
                    }
                }
                if let Fate::Unknown = fate {
                    unknown("reset")
                } else {
                    Event::Answered { id, answer: outcome.answer }
                }
            }
        };
        // The engine that sent it has crashed.
        if late {
            return Ok(());
        }
        self.answers.push(answer);
        if let Fate::Waits = fate { Ok(()) } else { self.answer(self.answers.len() - 1) }
    }

    pub fn answer(&mut self, at: usize) -> Result<(), String> {
        if self.answers.is_empty() {
            return Ok(());
        }
        let event = self.answers.remove(at % self.answers.len());
        if let Event::Answered { id, .. } = &event {
            self.in_flight.remove(id);
        }
        self.deliver_event(event)
    }

    /// Live reads see the world as it is.
    pub fn answer_read(&mut self, at: usize) -> Result<(), String> {
        if self.reads.is_empty() {
            return Ok(());
        }
        match self.reads.remove(at % self.reads.len()) {
            Action::Read { kind, key } => {
                let found = self.world.get(kind, &key).cloned();
                found.iter().for_each(|object| self.invariants.was_read(object));
                self.deliver_event(Event::Read { kind, key, found })
            }
            Action::Part(PartAction::Read { key }) => {
                // Reads of unavailable kinds get no answer; watchers of the kind learn that it is missing.
                self.world.read_part(&key).map_or(Ok(()), |event| self.deliver_event(event))
            }
            secret @ Action::ReadSecret { .. } => {
                self.world.carry_out(&secret).into_iter().try_for_each(|event| self.deliver_event(event))
            }
            other => unreachable!("{other:?} is not a read"),
        }
    }

    pub fn deliver_parts(&mut self, most: usize) -> Result<(), String> {
        for _ in 0..most {
            let Some(event) = self.part_watch.pop_front() else { break };
            self.deliver_event(event)?;
        }
        Ok(())
    }

    /// A list replaces undelivered events of parts.
    pub fn relist_parts(&mut self) {
        self.part_watch.clear();
        self.part_watch.push_back(self.world.follow(&actors::thing()));
    }

    pub fn pass(&mut self, ms: i64) -> Result<(), String> {
        self.now = self.now.plus_ms(ms);
        let due = self.wakes.first().is_some_and(|at| *at <= self.now);
        self.wakes.retain(|at| *at > self.now);
        if due { self.deliver_event(Event::Tick) } else { Ok(()) }
    }

    /// Crashes the engine. Writes in flight may still land.
    pub fn crash(&mut self, rng: &mut Rng) -> Result<(), String> {
        self.note(|| "crash".to_owned());
        self.sent.retain(|_| rng.chance(60));
        self.sent.iter_mut().for_each(|sent| sent.late = true);
        self.restart(rng)
    }

    /// Starts a new engine, which knows only what the world holds.
    pub fn restart(&mut self, rng: &mut Rng) -> Result<(), String> {
        self.engine = Engine::new(Config::default());
        self.synced = false;
        self.watches.clear();
        self.delivered.clear();
        self.answers.clear();
        self.reads.clear();
        self.part_watch.clear();
        self.wakes.clear();
        self.in_flight.clear();
        let mut kinds = KINDS;
        rng.shuffle(&mut kinds);
        kinds.into_iter().try_for_each(|kind| self.relist(kind))?;
        self.deliver_event(Event::Synced)?;
        // Published objects are listed separately: decisions do not wait for them.
        self.world.published().into_iter().try_for_each(|event| self.deliver_event(event))
    }
}

/// The fate of a write.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// Executed and answered.
    Answered,
    /// Executed; the answer comes later.
    Waits,
    /// Executed; the answer is lost.
    Unknown,
    /// Not executed; the engine learns nothing.
    NotDone,
    /// Refused for its content.
    Refused,
}

/// The target of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteTarget {
    Object(Kind, ObjectKey),
    Part(PartKey),
}

pub fn target_of(action: &Action) -> (WriteId, WriteTarget) {
    match action {
        Action::Write(write) => (write.id, WriteTarget::Object(write.kind, write.key.clone())),
        Action::Create { id, object } => {
            (*id, WriteTarget::Object(object.kind, crate::world::key_of(object)))
        }
        Action::Delete { id, kind, key, .. } => (*id, WriteTarget::Object(*kind, key.clone())),
        Action::Part(PartAction::Create { id, part } | PartAction::Update { id, part, .. }) => {
            (*id, WriteTarget::Part(part.key()))
        }
        Action::Part(PartAction::Delete { id, key, .. }) => (*id, WriteTarget::Part(key.clone())),
        other => unreachable!("{other:?} is not a write"),
    }
}
