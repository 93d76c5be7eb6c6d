//! Conditions: ours are set, others' are kept, and the time of the last change moves only with the status.

use crate::model::meta::ConditionView;
use crate::model::{Name, Time};
use k8s_openapi::jiff::Timestamp;

/// `conditions` with ours of type `kind` set.
pub(super) fn with_condition(
    conditions: &[ConditionView],
    kind: &str,
    status: bool,
    reason: &str,
    message: &str,
    now: Time,
) -> Vec<ConditionView> {
    let status = if status { "True" } else { "False" };
    let ours = |c: &&ConditionView| &*c.kind == kind;
    let since = conditions.iter().find(ours).filter(|c| &*c.status == status && !c.since.is_empty());
    let since = since.map_or_else(|| Name::from(rfc3339(now)), |c| c.since.clone());
    let set = ConditionView {
        kind: Name::from(kind),
        status: Name::from(status),
        reason: Name::from(reason),
        message: Name::from(message),
        since,
    };
    let mut all: Vec<ConditionView> = conditions.to_vec();
    match all.iter_mut().find(|c| &*c.kind == kind) {
        Some(condition) => *condition = set,
        None => all.push(set),
    }
    all
}

/// The reason of our condition of type `kind`.
pub(super) fn reason_of<'a>(conditions: &'a [ConditionView], kind: &str) -> Option<&'a str> {
    conditions.iter().find(|c| &*c.kind == kind).map(|c| &*c.reason)
}

/// A time as Kubernetes writes it, to the second.
pub(super) fn rfc3339(time: Time) -> String {
    let second = Timestamp::from_second(time.0.div_euclid(1000)).unwrap_or_default();
    second.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_moves_with_the_status_and_others_conditions_stay() {
        let other = with_condition(&[], "Theirs", true, "R", "m", Time(0));
        let pending = with_condition(&other, "Bound", false, "NoMatch", "0/3", Time(1_000));
        let again = with_condition(&pending, "Bound", false, "QuotaExceeded", "x", Time(9_000));
        let bound = with_condition(&again, "Bound", true, "Bound", "", Time(61_000));
        assert_eq!(&*pending[1].since, "1970-01-01T00:00:01Z");
        assert_eq!(again[1].since, pending[1].since);
        assert_eq!(&*bound[1].since, "1970-01-01T00:01:01Z");
        assert_eq!(bound[0], other[0]);
    }
}
