//! Putting a refusal into words: the counts from the index, the sentences from the plugins.
//! Equal requests share one refusal for as long as the resources stay as they are.

use super::request::kept_refusal;
use super::{Decision, Request, alternatives};
use crate::cache::{Ask, ClassAsk, State, Tally};
use crate::framework::{Considered, Reason, Refusal};
use crate::model::{ClassWant, Name, Predicate, TypeId, Wants};
use crate::plugins;
use crate::queue::Wait;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// What stood in the way, class by class.
#[derive(Default)]
pub(super) struct Refused {
    pub quota: Vec<Refusal>,
    /// Whether any class was searched at all.
    pub matched: bool,
    /// The classes that could not make one: by which predicate, and why.
    pub classes: Vec<(Predicate, String)>,
}

/// Refusals of equal requests at one generation of the index, before quotas and provisioning are added.
#[derive(Clone, Debug, Default)]
pub(super) struct Memo {
    generation: BTreeMap<TypeId, u64>,
    refusals: BTreeMap<MemoKey, Arc<Refusal>>,
}

type MemoKey = (TypeId, Name, Vec<Option<Name>>, Arc<Wants>);

impl Memo {
    fn refusal(&mut self, state: &State, request: &Request<'_>, classes: &[Option<Name>]) -> Arc<Refusal> {
        let ty = request.claim.ty;
        let index = state.index_of(ty);
        if state.reserved_for(ty, &request.claim.meta.key).next().is_some() {
            // What is kept for this claim is seen by no other as it is by this one.
            return Arc::new(of_kept_for(state, request, classes));
        }
        if self.generation.insert(ty, index.generation()) != Some(index.generation()) {
            self.refusals.clear();
        }
        let key = (ty, request.namespace().clone(), classes.to_vec(), request.wants.clone());
        let refusal = self.refusals.entry(key).or_insert_with(|| {
            let ask = ask(request, classes);
            Arc::new(of_tally(&index.tally(&ask), &ask, ty))
        });
        refusal.clone()
    }
}

/// The refusal of a claim that resources are kept for: those count by what they lack, not as somebody else's.
fn of_kept_for(state: &State, request: &Request<'_>, classes: &[Option<Name>]) -> Refusal {
    let ty = request.claim.ty;
    let (index, ask) = (state.index_of(ty), ask(request, classes));
    let mut tally = index.tally(&ask);
    for id in state.reserved_for(ty, &request.claim.meta.key) {
        let refusal = kept_refusal(state, request, id);
        let lacks = refusal.and_then(|refusal| Some(refusal.reasons.first()?.predicate));
        if let (Some(counted), Some(lacks)) = (index.first_refusal(&ask, id), lacks) {
            tally.recount(counted, lacks);
        }
    }
    of_tally(&tally, &ask, ty)
}

/// The ask over all classes that a claim may be of.
pub(super) fn ask<'a>(request: &'a Request<'_>, classes: &'a [Option<Name>]) -> Ask<'a> {
    let class = match request.wants.class {
        ClassWant::Any => ClassAsk::Any,
        ClassWant::Absent | ClassWant::Classless | ClassWant::Named(_) => ClassAsk::OneOf(classes),
    };
    Ask { namespace: request.namespace(), class, wants: &request.wants, headroom: None }
}

impl Refused {
    pub fn into_decision(self, state: &State, request: &Request<'_>, memo: &mut Memo) -> Decision {
        let namespace = request.namespace().clone();
        if let (false, Some(refusal)) = (self.matched, self.quota.first()) {
            return Decision::Refuse { refusal: Arc::new(refusal.clone()), wait: Wait::Quota(namespace) };
        }
        let classes = alternatives(state, request.claim.ty, &request.wants.class);
        let mut refusal = memo.refusal(state, request, &classes);
        if self.classes.is_empty() && self.quota.is_empty() {
            return Decision::Refuse { refusal, wait: Wait::Match };
        }
        let told = Arc::make_mut(&mut refusal);
        add_classes(told, &self.classes);
        for quota in &self.quota {
            told.message.push_str("; ");
            told.message.push_str(&quota.message);
            told.reasons.extend(quota.reasons.iter().cloned());
        }
        let made_over_quota = self.classes.iter().any(|(predicate, _)| *predicate == Predicate::Quota);
        let wait = match self.quota.is_empty() && !made_over_quota {
            true => Wait::Match,
            false => Wait::MatchOrQuota(namespace),
        };
        Decision::Refuse { refusal, wait }
    }
}

/// `0/214 resources fit: 120 class, 71 version, 23 capacity`, with a sentence for each.
pub(super) fn of_tally(tally: &Tally, ask: &Ask<'_>, ty: TypeId) -> Refusal {
    let counts = in_order(tally.refused.iter().map(|(p, n)| (*p, *n)));
    let mut message = String::new();
    tell_counts(&mut message, tally.total, "resources", &counts);
    let filters = plugins::filters(ty);
    let reason = |(predicate, count): &(Predicate, usize)| {
        let filter = filters.iter().find(|f| f.predicate() == *predicate);
        let message = filter.map_or_else(String::new, |f| f.summary(ask, *count));
        Reason { predicate: *predicate, count: *count, of: Considered::Resources, message }
    };
    Refusal { message, reasons: counts.iter().map(reason).collect() }
}

/// Adds `0/2 classes fit: 1 version, 1 capacity (...)`, with what each class says; nothing where none was asked. It is
/// said at every decision that serves nobody, so it is written where it belongs and built nowhere else.
fn add_classes(told: &mut Refusal, refused: &[(Predicate, String)]) {
    if refused.is_empty() {
        return;
    }
    let mut counted: BTreeMap<Predicate, usize> = BTreeMap::new();
    refused.iter().for_each(|(predicate, _)| *counted.entry(*predicate).or_default() += 1);
    let counts = in_order(counted.into_iter());
    told.message.push_str("; ");
    tell_counts(&mut told.message, refused.len(), "classes", &counts);
    let mut before = " (";
    for (_, why) in refused {
        told.message.push_str(before);
        told.message.push_str(why);
        before = "; ";
    }
    told.message.push(')');
    told.reasons.extend(counts.iter().map(|(predicate, count)| class_reason(*predicate, *count, refused)));
}

fn class_reason(predicate: Predicate, count: usize, refused: &[(Predicate, String)]) -> Reason {
    let mut message = String::new();
    for (_, why) in refused.iter().filter(|(of, _)| *of == predicate) {
        message.push_str(if message.is_empty() { "" } else { "; " });
        message.push_str(why);
    }
    Reason { predicate, count, of: Considered::Classes, message }
}

/// The most frequent first; the predicates' own order, which is the order of asking, breaks ties.
fn in_order(counts: impl Iterator<Item = (Predicate, usize)>) -> Vec<(Predicate, usize)> {
    let mut counts: Vec<(Predicate, usize)> = counts.collect();
    counts.sort_by_key(|(predicate, count)| (std::cmp::Reverse(*count), *predicate));
    counts
}

/// Tells how many of all fit, and what refused the others.
fn tell_counts(text: &mut String, total: usize, what: &str, refused: &[(Predicate, usize)]) {
    let fit = total - refused.iter().map(|(_, count)| count).sum::<usize>();
    // Writing to a text cannot fail.
    let _ = write!(text, "{fit}/{total} {what} fit");
    let mut before = ": ";
    for (predicate, count) in refused {
        let _ = write!(text, "{before}{count} {}", predicate.word());
        before = ", ";
    }
}

/// The refusal of one resource that was asked for by name.
pub(super) fn of_resource(name: &Name, predicate: Predicate, lack: &str) -> Refusal {
    Refusal::single(predicate, format!("resource {name}: {lack}"))
}
