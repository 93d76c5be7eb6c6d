//! Placing claims together, so that the only resource that fits one is not given to another that has a choice.
//! Served are the most, by priority first, then by count, then with the least left over.
//!
//! Claims that ask the same are one node with a count, so the network grows with kinds of requests, not
//! with claims. Only resources that no claim holds take part; what is left over is decided one by one.

use super::min_cost_flow::{Cost, Network};
use super::{Request, alternatives};
use crate::cache::{Preference, ResourceId, State};
use crate::model::{ClassWant, Name, Quantity, TypeId, Uid, Wants};
use crate::predicates::{ClassQuery, Query};
use std::collections::BTreeMap;
use std::sync::Arc;

/// More edges than this in one network are not searched: the batch is placed one by one.
const EDGES_MAX: usize = 65_536;
/// More steps than this are not taken.
const WORK_MAX: usize = 20_000_000;
/// Distinct priorities that one network can hold apart; lower ones wait for the next batch.
const PRIORITIES_MAX: usize = 10;

/// How a batch was placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Together: these claims to these resources; the others have none.
    Together(Vec<(Uid, ResourceId)>),
    /// Not together, because it would have taken too long; the reason is for people.
    OneByOne(String),
}

/// Claims that are alike in everything that the network asks.
type Alike = (std::cmp::Reverse<i32>, TypeId, Arc<Wants>, Name, Option<Name>);

/// Places `requests`, which are in the order of their turns, over the resources that no claim holds.
pub fn place_together(state: &State, requests: &[Request<'_>]) -> Placement {
    let mut groups: BTreeMap<Alike, Vec<&Request<'_>>> = BTreeMap::new();
    for request in requests {
        let class = alternatives(state, request.claim.ty, &request.wants.class).into_iter().next().flatten();
        let priority = std::cmp::Reverse(request.claim.priority);
        let alike = (priority, request.claim.ty, request.wants.clone(), request.namespace().clone(), class);
        groups.entry(alike).or_default().push(request);
    }
    let rewards = rewards(groups.keys().map(|(priority, ..)| priority.0), requests.len());
    let mut network = Network::default();
    let (source, sink) = (network.add_node(), network.add_node());
    let mut resources: BTreeMap<ResourceId, usize> = BTreeMap::new();
    let mut edges = Vec::new();
    for ((priority, ty, wants, namespace, class), members) in &groups {
        let Some(reward) = rewards.get(&priority.0) else { continue };
        let node = network.add_node();
        network.add_edge(source, node, members.len() as u64, Cost(-*reward, 0));
        let class =
            if wants.class == ClassWant::Any { ClassQuery::Any } else { ClassQuery::Exactly(class.as_ref()) };
        let headroom = members[0].headroom(state);
        let query = Query { namespace, class, wants, headroom: headroom.as_ref() };
        let prefer = Preference { newest: members[0].profile.prefer_newest };
        // Beyond as many fits as there are claims, a worse fit is never needed.
        for candidate in state.index_of(*ty).vacant_fits(&query, requests.len(), prefer) {
            let left = candidate.free_primary.saturating_sub(wants.requests.get(ty.rules().primary_capacity));
            let at = *resources.entry(candidate.resource).or_insert_with(|| {
                let at = network.add_node();
                network.add_edge(at, sink, 1, Cost::default());
                at
            });
            edges.push((network.add_edge(node, at, 1, Cost(0, waste(left))), members, candidate.resource));
        }
        if edges.len() > EDGES_MAX {
            return Placement::OneByOne(format!(
                "{} claims have over {EDGES_MAX} possible places",
                requests.len()
            ));
        }
    }
    if network.send(source, sink, WORK_MAX).is_err() {
        return Placement::OneByOne(format!(
            "placing {} claims together took over {WORK_MAX} steps",
            requests.len()
        ));
    }
    Placement::Together(read_flow(&network, &edges))
}

/// What is left over, as a cost. Nano-units are more than a sum of many can bear.
fn waste(left: Quantity) -> i128 {
    left.nanos() / 1_000_000_000
}

/// What serving one claim of each priority is worth: more than serving all claims of lower ones.
fn rewards(priorities: impl Iterator<Item = i32>, claims: usize) -> BTreeMap<i32, i128> {
    let mut distinct: Vec<i32> = priorities.collect();
    distinct.sort_unstable_by_key(|p| std::cmp::Reverse(*p));
    distinct.dedup();
    distinct.truncate(PRIORITIES_MAX);
    let mut worth = 1i128;
    let mut rewards = BTreeMap::new();
    for priority in distinct.into_iter().rev() {
        rewards.insert(priority, worth);
        worth = worth.saturating_mul(claims as i128 + 1);
    }
    rewards
}

/// Which claim got which resource: within a group the claims are alike, so the first in turn takes the tightest.
fn read_flow(network: &Network, edges: &[(usize, &Vec<&Request<'_>>, ResourceId)]) -> Vec<(Uid, ResourceId)> {
    let mut given: BTreeMap<Uid, usize> = BTreeMap::new();
    let mut placed = Vec::new();
    for (edge, members, resource) in edges.iter().filter(|(edge, _, _)| network.flow(*edge) == 1) {
        let _ = edge;
        let next = given.entry(members[0].claim.meta.uid.clone()).or_default();
        if let Some(request) = members.get(*next) {
            placed.push((request.claim.meta.uid.clone(), *resource));
            *next += 1;
        }
    }
    placed
}
