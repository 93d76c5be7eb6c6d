//! Composes a refusal: the counts from the index, the sentences from the predicates.
//! Equal requests share one refusal for as long as the resources stay as they are.

use super::request::kept_refusal;
use super::{Decision, Request, alternatives};
use crate::cache::{RefusalCounts, State};
use crate::model::{ClassWant, Name, TypeId, Wants};
use crate::predicates::{ClassQuery, Considered, Predicate, Query, Reason, Refusal, steps};
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
            let query = query(request, classes);
            Arc::new(of_counts(&index.count_refusals(&query), &query, ty))
        });
        refusal.clone()
    }
}

/// The refusal of a claim that resources are kept for: those count by what they lack, not as held by another claim.
fn of_kept_for(state: &State, request: &Request<'_>, classes: &[Option<Name>]) -> Refusal {
    let ty = request.claim.ty;
    let (index, query) = (state.index_of(ty), query(request, classes));
    let mut counts = index.count_refusals(&query);
    for id in state.reserved_for(ty, &request.claim.meta.key) {
        let refusal = kept_refusal(state, request, id);
        let lacks = refusal.and_then(|refusal| Some(refusal.reasons.first()?.predicate));
        if let (Some(counted), Some(lacks)) = (index.first_refusal(&query, id), lacks) {
            counts.recount(counted, lacks);
        }
    }
    of_counts(&counts, &query, ty)
}

/// The ask over all classes that a claim may be of.
pub(super) fn query<'a>(request: &'a Request<'_>, classes: &'a [Option<Name>]) -> Query<'a> {
    let class = match request.wants.class {
        ClassWant::Any => ClassQuery::Any,
        ClassWant::Absent | ClassWant::Classless | ClassWant::Named(_) => ClassQuery::OneOf(classes),
    };
    Query { namespace: request.namespace(), class, wants: &request.wants, headroom: None }
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
        let whole = Arc::make_mut(&mut refusal);
        add_classes(whole, &self.classes);
        for quota in &self.quota {
            whole.message.push_str("; ");
            whole.message.push_str(&quota.message);
            whole.reasons.extend(quota.reasons.iter().cloned());
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
pub(super) fn of_counts(refusals: &RefusalCounts, query: &Query<'_>, ty: TypeId) -> Refusal {
    let counts = in_order(refusals.refused.iter().map(|(p, n)| (*p, *n)));
    let mut message = String::new();
    write_counts(&mut message, refusals.total, "resources", &counts);
    let reason = |(predicate, count): &(Predicate, usize)| {
        let step = steps(ty).iter().find(|step| step.predicate == *predicate);
        let message = step.map_or_else(String::new, |step| step.summary(query, *count));
        Reason { predicate: *predicate, count: *count, of: Considered::Resources, message }
    };
    Refusal { message, reasons: counts.iter().map(reason).collect() }
}

/// Adds `0/2 classes fit: 1 version, 1 capacity (...)`, with what each class says; nothing where none was checked. It is
/// built at every decision that serves no claim, so it is written where it belongs and built nowhere else.
fn add_classes(refusal: &mut Refusal, refused: &[(Predicate, String)]) {
    if refused.is_empty() {
        return;
    }
    let mut counted: BTreeMap<Predicate, usize> = BTreeMap::new();
    refused.iter().for_each(|(predicate, _)| *counted.entry(*predicate).or_default() += 1);
    let counts = in_order(counted.into_iter());
    refusal.message.push_str("; ");
    write_counts(&mut refusal.message, refused.len(), "classes", &counts);
    let mut before = " (";
    for (_, why) in refused {
        refusal.message.push_str(before);
        refusal.message.push_str(why);
        before = "; ";
    }
    refusal.message.push(')');
    refusal.reasons.extend(counts.iter().map(|(predicate, count)| class_reason(*predicate, *count, refused)));
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

/// Writes how many of all fit, and what refused the others.
fn write_counts(text: &mut String, total: usize, what: &str, refused: &[(Predicate, usize)]) {
    let fit = total - refused.iter().map(|(_, count)| count).sum::<usize>();
    // Writing to a text cannot fail.
    let _ = write!(text, "{fit}/{total} {what} fit");
    let mut before = ": ";
    for (predicate, count) in refused {
        let _ = write!(text, "{before}{count} {}", predicate.short_name());
        before = ", ";
    }
}

/// The refusal of one resource that the claim names.
pub(super) fn of_resource(name: &Name, predicate: Predicate, lack: &str) -> Refusal {
    Refusal::single(predicate, format!("resource {name}: {lack}"))
}
