//! The order of a class's objects: one after those that it speaks of. What the objects are does not matter here.

use petgraph::algo::{tarjan_scc, toposort};
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::BTreeMap;

/// Every object after those that it needs; of those that are free to go, the first as written.
///
/// # Errors
/// The cycle, as a way from an object back to itself.
pub(super) fn order(needs: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut graph = DiGraph::<usize, ()>::new();
    let nodes: Vec<NodeIndex> = (0..needs.len()).map(|at| graph.add_node(at)).collect();
    for (at, needed) in needs.iter().enumerate() {
        for other in needed {
            graph.update_edge(nodes[*other], nodes[at], ());
        }
    }
    if toposort(&graph, None).is_err() {
        return Err(find_cycle(&graph, needs));
    }
    // Rank: the longest way from an object that needs nobody. The written order breaks ties, so that the same
    // class always comes out in the same order.
    let mut ranks = BTreeMap::new();
    let mut all: Vec<usize> = (0..needs.len()).collect();
    all.sort_by_key(|at| (rank(*at, needs, &mut ranks), *at));
    Ok(all)
}

fn rank(at: usize, needs: &[Vec<usize>], ranks: &mut BTreeMap<usize, usize>) -> usize {
    if let Some(known) = ranks.get(&at) {
        return *known;
    }
    let rank = needs[at].iter().map(|other| rank(*other, needs, ranks) + 1).max().unwrap_or(0);
    ranks.insert(at, rank);
    rank
}

/// A way from an object back to itself.
fn find_cycle(graph: &DiGraph<usize, ()>, needs: &[Vec<usize>]) -> Vec<usize> {
    let knots = tarjan_scc(graph);
    let tied = |knot: &Vec<NodeIndex>| knot.len() > 1 || knot.iter().any(|n| graph.contains_edge(*n, *n));
    let knot: Vec<usize> =
        knots.iter().find(|knot| tied(knot)).into_iter().flatten().map(|n| graph[*n]).collect();
    let Some(first) = knot.iter().min().copied() else { return Vec::new() };
    let mut way = vec![first];
    loop {
        let last = way[way.len() - 1];
        // Everybody in a knot needs somebody in it.
        let Some(next) = needs[last].iter().copied().find(|next| knot.contains(next)) else { return way };
        if let Some(met) = way.iter().position(|at| *at == next) {
            way.push(next);
            return way.split_off(met);
        }
        way.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn objects_come_after_what_they_speak_of() {
        assert_eq!(order(&[vec![1], vec![2], vec![]]), Ok(vec![2, 1, 0]));
        assert_eq!(order(&[vec![], vec![], vec![0, 1]]), Ok(vec![0, 1, 2]));
        assert_eq!(order(&[]), Ok(vec![]));
    }

    #[test]
    fn a_cycle_is_shown_as_a_way_back_to_its_start() {
        assert_eq!(order(&[vec![1], vec![0]]), Err(vec![0, 1, 0]));
        assert_eq!(order(&[vec![0]]), Err(vec![0, 0]));
        assert_eq!(order(&[vec![], vec![2], vec![3], vec![1], vec![1]]), Err(vec![1, 2, 3, 1]));
    }

    proptest! {
        #[test]
        fn every_order_is_one_and_every_cycle_is_one(
            needs in (1_usize..8).prop_flat_map(|n| {
                prop::collection::vec(prop::collection::vec(0..n, 0..3), n)
            }),
        ) {
            match order(&needs) {
                Ok(order) => {
                    let place = |at: usize| order.iter().position(|o| *o == at);
                    for (at, needed) in needs.iter().enumerate() {
                        for other in needed {
                            prop_assert!(place(*other) < place(at));
                        }
                    }
                }
                Err(way) => {
                    prop_assert_eq!(way.first(), way.last());
                    prop_assert!(way.len() > 1);
                    for step in way.windows(2) {
                        prop_assert!(needs[step[0]].contains(&step[1]));
                    }
                }
            }
        }
    }
}
