//! A small sparse min-cost flow: the cheapest way to send as much as possible through a network.
//! petgraph has none, and assignment crates want a dense square matrix.
//!
//! Costs are pairs compared in order, so that "serve the more important claims" always outweighs
//! "waste less" without either being scaled into the other.

use std::collections::VecDeque;

/// A cost: what must be least first, then what must be least among equals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cost(pub i128, pub i128);

impl Cost {
    fn plus(self, other: Cost) -> Cost {
        Cost(self.0.saturating_add(other.0), self.1.saturating_add(other.1))
    }

    fn minus(self) -> Cost {
        Cost(-self.0, -self.1)
    }
}

#[derive(Debug)]
struct Edge {
    to: usize,
    room: u64,
    cost: Cost,
}

/// A network. Edges come in pairs: an edge and its way back are neighbours.
#[derive(Debug, Default)]
pub(super) struct Network {
    edges: Vec<Edge>,
    from: Vec<Vec<usize>>,
}

/// The work was not finished within its bound.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMuchWork;

impl Network {
    pub fn add_node(&mut self) -> usize {
        self.from.push(Vec::new());
        self.from.len() - 1
    }

    /// Adds an edge and returns its number, by which its flow is read.
    pub fn add_edge(&mut self, from: usize, to: usize, room: u64, cost: Cost) -> usize {
        let id = self.edges.len();
        self.edges.push(Edge { to, room, cost });
        self.edges.push(Edge { to: from, room: 0, cost: cost.minus() });
        self.from[from].push(id);
        self.from[to].push(id + 1);
        id
    }

    /// How much flows through an edge.
    pub fn flow(&self, edge: usize) -> u64 {
        self.edges[edge ^ 1].room
    }

    /// Sends as much as possible from `source` to `sink` at the least cost.
    ///
    /// # Errors
    /// When more than `work_max` edges would have to be visited.
    pub fn send(&mut self, source: usize, sink: usize, work_max: usize) -> Result<(), TooMuchWork> {
        let mut work = 0;
        while let Some(path) = self.cheapest_path(source, sink, &mut work, work_max)? {
            let room = path.iter().map(|e| self.edges[*e].room).min().unwrap_or(0);
            for edge in path {
                self.edges[edge].room -= room;
                self.edges[edge ^ 1].room += room;
            }
        }
        Ok(())
    }

    /// Bellman-Ford with a queue. Way-back edges have negative costs, which Dijkstra would not bear;
    /// cheapest paths first keep the network free of negative cycles.
    fn cheapest_path(
        &self,
        source: usize,
        sink: usize,
        work: &mut usize,
        work_max: usize,
    ) -> Result<Option<Vec<usize>>, TooMuchWork> {
        let nodes = self.from.len();
        let mut best: Vec<Option<Cost>> = vec![None; nodes];
        let mut via = vec![usize::MAX; nodes];
        let mut waiting = vec![false; nodes];
        let mut queue = VecDeque::from([source]);
        best[source] = Some(Cost::default());
        while let Some(node) = queue.pop_front() {
            waiting[node] = false;
            let Some(here) = best[node] else { continue };
            *work += self.from[node].len();
            if *work > work_max {
                return Err(TooMuchWork);
            }
            for id in &self.from[node] {
                let edge = &self.edges[*id];
                let cost = here.plus(edge.cost);
                if edge.room > 0 && best[edge.to].is_none_or(|known| cost < known) {
                    best[edge.to] = Some(cost);
                    via[edge.to] = *id;
                    if !waiting[edge.to] {
                        waiting[edge.to] = true;
                        queue.push_back(edge.to);
                    }
                }
            }
        }
        if best[sink].is_none() {
            return Ok(None);
        }
        let mut path = Vec::new();
        let mut node = sink;
        while node != source {
            path.push(via[node]);
            node = self.edges[via[node] ^ 1].to;
        }
        Ok(Some(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The least cost of serving as many as possible, by trying everything.
    fn brute_force(costs: &[Vec<Option<i128>>], taken: u32, row: usize) -> (i128, i128) {
        let Some(options) = costs.get(row) else { return (0, 0) };
        let mut best = brute_force(costs, taken, row + 1);
        for (column, cost) in options.iter().enumerate() {
            if let Some(cost) = cost
                && taken & (1 << column) == 0
            {
                let (served, spent) = brute_force(costs, taken | 1 << column, row + 1);
                best = best.min((served - 1, spent + cost));
            }
        }
        best
    }

    fn by_flow(costs: &[Vec<Option<i128>>]) -> (i128, i128) {
        let mut network = Network::default();
        let (source, sink) = (network.add_node(), network.add_node());
        let columns: Vec<usize> = (0..8).map(|_| network.add_node()).collect();
        for column in &columns {
            network.add_edge(*column, sink, 1, Cost::default());
        }
        let mut edges = Vec::new();
        for row in costs {
            let node = network.add_node();
            network.add_edge(source, node, 1, Cost(-1, 0));
            for (column, cost) in row.iter().enumerate() {
                if let Some(cost) = cost {
                    edges.push((network.add_edge(node, columns[column], 1, Cost(0, *cost)), *cost));
                }
            }
        }
        network.send(source, sink, usize::MAX).unwrap();
        let used = edges.iter().filter(|(edge, _)| network.flow(*edge) == 1);
        used.fold((0, 0), |(served, spent), (_, cost)| (served - 1, spent + cost))
    }

    proptest! {
        #[test]
        fn serves_the_most_at_the_least_cost(
            costs in prop::collection::vec(prop::collection::vec(prop::option::of(0i128..20), 0..6), 0..6)
        ) {
            prop_assert_eq!(by_flow(&costs), brute_force(&costs, 0, 0));
        }
    }

    #[test]
    fn stops_when_it_would_take_too_long() {
        let mut network = Network::default();
        let (source, sink) = (network.add_node(), network.add_node());
        network.add_edge(source, sink, 1, Cost::default());
        assert_eq!(network.send(source, sink, 0), Err(TooMuchWork));
    }
}
