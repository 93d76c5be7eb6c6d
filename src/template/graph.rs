//! Orders the objects of a class: each after those that it references.

use petgraph::algo::{tarjan_scc, toposort};
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::BTreeMap;

/// The indices, each after those that it needs; ties in the order as written.
///
/// # Errors
/// A cycle, as a path from an object back to itself.
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
    // The rank is the longest path from an object without needs. The order as written breaks ties, so that the same class
    // always has the same order.
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

/// A path from an object back to itself.
fn find_cycle(graph: &DiGraph<usize, ()>, needs: &[Vec<usize>]) -> Vec<usize> {
    let components = tarjan_scc(graph);
    let is_cycle = |component: &Vec<NodeIndex>| {
        component.len() > 1 || component.iter().any(|n| graph.contains_edge(*n, *n))
    };
    let component: Vec<usize> = components
        .iter()
        .find(|component| is_cycle(component))
        .into_iter()
        .flatten()
        .map(|n| graph[*n])
        .collect();
    let Some(first) = component.iter().min().copied() else { return Vec::new() };
    let mut path = vec![first];
    loop {
        let last = path[path.len() - 1];
        // Every object of a strongly connected component needs another one of it.
        let Some(next) = needs[last].iter().copied().find(|next| component.contains(next)) else {
            return path;
        };
        if let Some(met) = path.iter().position(|at| *at == next) {
            path.push(next);
            return path.split_off(met);
        }
        path.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn objects_come_after_those_they_reference() {
        assert_eq!(order(&[vec![1], vec![2], vec![]]), Ok(vec![2, 1, 0]));
        assert_eq!(order(&[vec![], vec![], vec![0, 1]]), Ok(vec![0, 1, 2]));
        assert_eq!(order(&[]), Ok(vec![]));
    }

    #[test]
    fn a_cycle_is_shown_as_a_path_back_to_its_start() {
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
                Err(path) => {
                    prop_assert_eq!(path.first(), path.last());
                    prop_assert!(path.len() > 1);
                    for step in path.windows(2) {
                        prop_assert!(needs[step[0]].contains(&step[1]));
                    }
                }
            }
        }
    }
}
