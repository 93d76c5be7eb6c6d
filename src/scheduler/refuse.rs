//! Putting a refusal into words: the counts from the index, the sentences from the plugins.
//! Equal requests share one refusal for as long as the resources stay as they are.

use super::{Decision, Request, alternatives};
use crate::cache::{Ask, ClassAsk, State, Tally};
use crate::framework::{Considered, Reason, Refusal};
use crate::model::{ClassWant, Name, Predicate, TypeId, Wants};
use crate::plugins;
use crate::queue::Wait;
use std::collections::BTreeMap;
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

/// The ask over all classes that a claim may be of.
pub(super) fn ask<'a>(request: &'a Request<'_>, classes: &'a [Option<Name>]) -> Ask<'a> {
    let class = match request.wants.class {
        ClassWant::Any => ClassAsk::Any,
        ClassWant::Absent | ClassWant::Classless | ClassWant::Named(_) => ClassAsk::OneOf(classes),
    };
    Ask { namespace: request.namespace(), class, wants: &request.wants }
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
        for refusal in of_classes(&self.classes).iter().chain(&self.quota) {
            told.message.push_str("; ");
            told.message.push_str(&refusal.message);
            told.reasons.extend(refusal.reasons.iter().cloned());
        }
        let wait = if self.quota.is_empty() { Wait::Match } else { Wait::MatchOrQuota(namespace) };
        Decision::Refuse { refusal, wait }
    }
}

/// `0/214 resources fit: 120 class, 71 version, 23 capacity`, with a sentence for each.
pub(super) fn of_tally(tally: &Tally, ask: &Ask<'_>, ty: TypeId) -> Refusal {
    let counts = in_order(tally.refused.iter().map(|(p, n)| (*p, *n)));
    let message = count(tally.total, "resources", &counts);
    let filters = plugins::filters(ty);
    let reason = |(predicate, count): &(Predicate, usize)| {
        let filter = filters.iter().find(|f| f.predicate() == *predicate);
        let message = filter.map_or_else(String::new, |f| f.summary(ask, *count));
        Reason { predicate: *predicate, count: *count, of: Considered::Resources, message }
    };
    Refusal { message, reasons: counts.iter().map(reason).collect() }
}

/// `0/2 classes fit: 1 version, 1 capacity (...)`, with what each class says; nothing where none was asked.
fn of_classes(refused: &[(Predicate, String)]) -> Option<Refusal> {
    let mut said: BTreeMap<Predicate, Vec<&str>> = BTreeMap::new();
    refused.iter().for_each(|(predicate, why)| said.entry(*predicate).or_default().push(why));
    let counts = in_order(said.iter().map(|(predicate, said)| (*predicate, said.len())));
    let reason = |(predicate, count): &(Predicate, usize)| {
        let message = said.get(predicate).map(|said| said.join("; ")).unwrap_or_default();
        Reason { predicate: *predicate, count: *count, of: Considered::Classes, message }
    };
    let reasons: Vec<Reason> = counts.iter().map(reason).collect();
    let sentences: Vec<&str> = refused.iter().map(|(_, why)| why.as_str()).collect();
    let message = format!("{} ({})", count(refused.len(), "classes", &counts), sentences.join("; "));
    (!refused.is_empty()).then_some(Refusal { message, reasons })
}

/// The most frequent first; the predicates' own order, which is the order of asking, breaks ties.
fn in_order(counts: impl Iterator<Item = (Predicate, usize)>) -> Vec<(Predicate, usize)> {
    let mut counts: Vec<(Predicate, usize)> = counts.collect();
    counts.sort_by_key(|(predicate, count)| (std::cmp::Reverse(*count), *predicate));
    counts
}

/// How many of all fit, and what refused the others.
fn count(total: usize, what: &str, refused: &[(Predicate, usize)]) -> String {
    let fit = total - refused.iter().map(|(_, count)| count).sum::<usize>();
    let words: Vec<String> = refused.iter().map(|(p, n)| format!("{n} {}", p.word())).collect();
    let colon = if words.is_empty() { "" } else { ": " };
    format!("{fit}/{total} {what} fit{colon}{}", words.join(", "))
}

/// The refusal of one resource that was asked for by name.
pub(super) fn of_resource(name: &Name, predicate: Predicate, lack: &str) -> Refusal {
    Refusal::single(predicate, format!("resource {name}: {lack}"))
}
