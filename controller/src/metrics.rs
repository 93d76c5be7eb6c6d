//! The metrics on `/metrics`, all named `conductor_*`. Labels come from fixed sets (kinds, verbs, codes, predicates) and
//! never hold a name, a namespace or a value of a user.

use super::rest;
use conductor::engine::{Engine, Stats};
use conductor_sql::Metrics as DatabaseMetrics;
use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::time::Duration;

/// A watch was restarted because the API no longer knows its revision.
pub(super) const EXPIRED: &str = "expired";
/// A watch was restarted because it failed.
pub(super) const FAILED: &str = "failed";

/// One call to the API.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct CallLabels {
    pub verb: &'static str,
    pub kind: &'static str,
    /// The HTTP status; 0 without an answer.
    pub code: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabels {
    verb: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PlaceLabels {
    place: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PredicateLabels {
    predicate: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckLabels {
    check: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RestartLabels {
    kind: &'static str,
    why: &'static str,
}

type SecondsByVerb = Family<VerbLabels, Histogram, fn() -> Histogram>;

/// Every metric.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    queue: Family<PlaceLabels, Gauge>,
    decisions: Counter,
    decision_seconds: Histogram,
    bound: Counter,
    bind_seconds: Histogram,
    bound_after_flush: Counter,
    refusals: Family<PredicateLabels, Counter>,
    conflicts: Counter,
    batches_given_up: Counter,
    index_disagreements: Counter,
    withheld_losses: Gauge,
    calls: Family<CallLabels, Counter>,
    call_seconds: SecondsByVerb,
    watch_restarts: Family<RestartLabels, Counter>,
    unreadable: Family<KindLabels, Counter>,
    events_dropped: Counter,
    leader: Gauge,
    ready: Family<CheckLabels, Gauge>,
    writes_waiting: Gauge,
    writes_flying: Gauge,
    /// The metrics of the provider of databases.
    pub databases: DatabaseMetrics,
}

impl Metrics {
    pub fn new() -> Metrics {
        let mut metrics = Metrics {
            registry: Registry::with_prefix("conductor"),
            queue: Family::default(),
            decisions: Counter::default(),
            decision_seconds: Histogram::new(exponential_buckets(1e-6, 4.0, 12)),
            bound: Counter::default(),
            bind_seconds: Histogram::new(exponential_buckets(0.001, 2.0, 18)),
            bound_after_flush: Counter::default(),
            refusals: Family::default(),
            conflicts: Counter::default(),
            batches_given_up: Counter::default(),
            index_disagreements: Counter::default(),
            withheld_losses: Gauge::default(),
            calls: Family::default(),
            call_seconds: Family::new_with_constructor(call_buckets),
            watch_restarts: Family::default(),
            unreadable: Family::default(),
            events_dropped: Counter::default(),
            leader: Gauge::default(),
            ready: Family::default(),
            writes_waiting: Gauge::default(),
            writes_flying: Gauge::default(),
            databases: DatabaseMetrics::default(),
        };
        metrics.register();
        // Present from the start, so that an alert sees the first increase.
        for kind in rest::kinds() {
            for why in [EXPIRED, FAILED] {
                metrics.watch_restarts.get_or_create(&RestartLabels { kind: kind.name(), why }).inc_by(0);
            }
        }
        metrics
    }

    #[rustfmt::skip]
    fn register(&mut self) {
        let Metrics {
            registry: r, queue, decisions, decision_seconds, bound, bind_seconds, bound_after_flush, refusals,
            conflicts, batches_given_up, index_disagreements, withheld_losses, calls, call_seconds, watch_restarts, unreadable, events_dropped,
            leader, ready, writes_waiting, writes_flying, databases,
        } = self;
        r.register("queue_claims", "Claims that wait: active, backoff, parked, in_flight", queue.clone());
        r.register("decisions", "Decisions made", decisions.clone());
        r.register("decision_seconds", "Time the engine took for one decision", decision_seconds.clone());
        r.register("claims_bound", "Claims bound", bound.clone());
        r.register("bind_seconds", "Time from the first sight of a waiting claim until it is Bound", bind_seconds.clone());
        r.register("claims_bound_after_flush", "Claims bound only because of the safety flush: each is a missed wake-up", bound_after_flush.clone());
        r.register("refusals", "Refusals, by the predicate that refused most", refusals.clone());
        r.register("conflicts", "Writes that met a newer object", conflicts.clone());
        r.register("batches_given_up", "Batches placed one by one because together would have taken too long", batches_given_up.clone());
        r.register("index_disagreements", "Resources that the index offered and a predicate refused; they are not bound", index_disagreements.clone());
        r.register("claims_loss_withheld", "Claims without their resource that are not declared Lost, because too many are missing at once", withheld_losses.clone());
        r.register("api_calls", "Calls to the API by verb, kind and HTTP status; 0 without an answer", calls.clone());
        r.register("api_call_seconds", "Time until the API answered", call_seconds.clone());
        r.register("watch_restarts", "Watches restarted before their time, by kind and reason", watch_restarts.clone());
        r.register("unreadable_objects", "Objects served without readable metadata", unreadable.clone());
        r.register("events_dropped", "Kubernetes Events not sent because too many waited", events_dropped.clone());
        r.register("leader", "1 while this process leads", leader.clone());
        r.register("ready", "1 if a check of /readyz passes, 0 if it fails", ready.clone());
        r.register("writes_waiting", "Calls that wait to be sent", writes_waiting.clone());
        r.register("writes_in_flight", "Calls in flight", writes_flying.clone());
        databases.register(r);
    }

    /// All metrics in the text format of Prometheus.
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Adds what the engine has counted since the last call; `counted` holds its counts at that time.
    pub fn update(&self, engine: &Engine, counted: &mut (Stats, u64)) {
        let lengths = engine.queue_lengths();
        let places = [
            ("active", lengths.active),
            ("backoff", lengths.backoff),
            ("parked", lengths.parked),
            ("in_flight", lengths.in_flight),
        ];
        for (place, count) in places {
            self.queue.get_or_create(&PlaceLabels { place }).set(count as i64);
        }
        self.withheld_losses.set(engine.withheld_losses() as i64);
        let Stats { decisions, bound, refusals, conflicts, batches_given_up, index_disagreements } =
            engine.stats();
        let (known, flushed) = counted;
        self.decisions.inc_by(decisions - known.decisions);
        self.bound.inc_by(bound - known.bound);
        self.conflicts.inc_by(conflicts - known.conflicts);
        self.batches_given_up.inc_by(batches_given_up - known.batches_given_up);
        self.index_disagreements.inc_by(index_disagreements - known.index_disagreements);
        self.bound_after_flush.inc_by(engine.bound_after_flush() - *flushed);
        for (predicate, count) in refusals {
            let before = known.refusals.get(predicate).copied().unwrap_or(0);
            let labels = PredicateLabels { predicate: predicate.name() };
            self.refusals.get_or_create(&labels).inc_by(count - before);
        }
        if known != engine.stats() {
            known.clone_from(engine.stats());
        }
        *flushed = engine.bound_after_flush();
    }

    pub fn decided(&self, decisions: u64, took: Duration) {
        if decisions > 0 {
            self.decision_seconds.observe(took.as_secs_f64() / decisions as f64);
        }
    }

    pub fn claim_bound(&self, after: Duration) {
        self.bind_seconds.observe(after.as_secs_f64());
    }

    pub fn called(&self, labels: CallLabels, took: Duration) {
        self.call_seconds.get_or_create(&VerbLabels { verb: labels.verb }).observe(took.as_secs_f64());
        self.calls.get_or_create(&labels).inc();
    }

    pub fn watch_restarted(&self, kind: &'static str, why: &'static str) {
        self.watch_restarts.get_or_create(&RestartLabels { kind, why }).inc();
    }

    pub fn unreadable(&self, kind: &'static str) {
        self.unreadable.get_or_create(&KindLabels { kind }).inc();
    }

    pub fn event_dropped(&self) {
        self.events_dropped.inc();
    }

    pub fn leads(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    pub fn ready(&self, check: &'static str, holds: bool) {
        self.ready.get_or_create(&CheckLabels { check }).set(i64::from(holds));
    }

    pub fn writes(&self, waiting: usize, flying: usize) {
        self.writes_waiting.set(waiting as i64);
        self.writes_flying.set(flying as i64);
    }
}

fn call_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 14))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_named_after_us() {
        let metrics = Metrics::new();
        let engine = Engine::new(conductor::engine::Config::default());
        let mut counted = (Stats::default(), 0);
        metrics.update(&engine, &mut counted);
        metrics.called(
            CallLabels { verb: "PATCH", kind: "RelationalDatabase", code: 200 },
            Duration::from_millis(3),
        );
        let text = metrics.render();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            assert!(line.starts_with("conductor_"), "{line}");
        }
        let call = r#"conductor_api_calls_total{verb="PATCH",kind="RelationalDatabase",code="200"} 1"#;
        assert!(text.contains(call), "{text}");
        assert!(text.contains(r#"conductor_queue_claims{place="parked"} 0"#), "{text}");
    }

    #[test]
    fn the_reference_lists_every_metric() {
        let text = Metrics::new().render();
        let word = |line: &str| line.split_once(' ').map(|(name, rest)| (name.to_owned(), rest.to_owned()));
        let of =
            |mark: &str| text.lines().filter_map(|line| word(line.strip_prefix(mark)?)).collect::<Vec<_>>();
        let mut page = "# Metrics\n\nWhat `/metrics` serves, in the text format of Prometheus. Generated from the program by \
                        `make references`. Do not edit.\n\n| metric | type | meaning |\n|---|---|---|\n"
            .to_owned();
        for ((name, help), (_, kind)) in of("# HELP ").into_iter().zip(of("# TYPE ")) {
            let suffix = if kind == "counter" { "_total" } else { "" };
            page.push_str(&format!("| `{name}{suffix}` | {kind} | {help} |\n"));
        }
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/metrics.md");
        if std::env::var_os("UPDATE_REFERENCES").is_some() {
            std::fs::write(&path, &page).expect("docs/reference can be written");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == page, "docs/reference/metrics.md is stale: run `make references`");
    }
}
