//! Quantities by name, `storage 25Gi, connections 100`: what a resource has, and what a claim requests. The name that is
//! compared first depends on the type and is an argument.

use super::fields::Field;
use super::{FieldError, Quantity};
use serde_json::{Map, Value};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The name of a capacity. The primary capacity of the type sorts first, the others by name.
#[derive(Clone, Debug)]
pub struct Dim {
    secondary: bool,
    name: Arc<str>,
}

/// Quantities by name in canonical order; an absent one is zero.
///
/// # Guarantees
/// Every quantity is more than zero, so equal capacities are equal values. The order compares quantity by quantity, the
/// primary capacity first.
///
/// # Assumptions
/// Capacities that are compared or added were read with the same primary name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Capacity {
    entries: SmallVec<[(Dim, Quantity); 2]>,
}

impl Dim {
    /// The dimension called `name` of a type whose first capacity is `primary`.
    pub fn new(primary: &str, name: &str) -> Dim {
        Dim { secondary: name != primary, name: name.into() }
    }

    /// The name as in a manifest.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is the primary capacity.
    pub fn is_primary(&self) -> bool {
        !self.secondary
    }
}

impl Capacity {
    /// Parses a map of names to quantities; `null` is an empty one.
    ///
    /// # Errors
    /// The first entry, by name, that is not a quantity or negative. The field is the name of the entry; it is empty if the
    /// value is not a map.
    pub fn parse(primary: &str, value: &Value) -> Result<Capacity, FieldError> {
        Capacity::read(primary, &Field::root(value))
    }

    /// Parses the capacity in a field; an absent one is empty.
    pub(crate) fn read(primary: &str, field: &Field<'_>) -> Result<Capacity, FieldError> {
        Ok(Capacity::from_entries(primary, field.quantities()?))
    }

    /// A capacity of these entries. Quantities of one name are summed; those that are not positive are left out.
    pub fn from_entries<'a>(
        primary: &str,
        entries: impl IntoIterator<Item = (&'a str, Quantity)>,
    ) -> Capacity {
        entries
            .into_iter()
            .filter(|(_, quantity)| *quantity > Quantity::ZERO)
            .map(|(name, quantity)| Capacity {
                entries: SmallVec::from_iter([(Dim::new(primary, name), quantity)]),
            })
            .fold(Capacity::default(), |sum, one| sum.saturating_add(&one))
    }

    /// The quantity of a name; zero if absent.
    pub fn get(&self, name: &str) -> Quantity {
        let entry = self.entries.iter().find(|(dim, _)| dim.name() == name);
        entry.map(|(_, quantity)| *quantity).unwrap_or_default()
    }

    /// Sets the quantity of a name; zero removes it.
    pub fn set(&mut self, primary: &str, name: &str, amount: Quantity) {
        self.entries.retain(|(dim, _)| dim.name() != name);
        if amount > Quantity::ZERO {
            let dim = Dim::new(primary, name);
            let at = self.entries.partition_point(|(known, _)| *known < dim);
            self.entries.insert(at, (dim, amount));
        }
    }

    /// The primary quantity, and the capacity without it.
    pub fn split_primary(&self) -> (Quantity, Capacity) {
        match self.entries.first() {
            Some((dim, amount)) if dim.is_primary() => {
                (*amount, Capacity { entries: self.entries[1..].into() })
            }
            _ => (Quantity::ZERO, self.clone()),
        }
    }

    /// Whether it is at least `request` in every dimension.
    pub fn covers(&self, request: &Capacity) -> bool {
        self.find_lacking(request).is_none()
    }

    /// The first dimension with less than requested, with the available and the requested quantity.
    pub fn find_lacking<'r>(&self, request: &'r Capacity) -> Option<(&'r Dim, Quantity, Quantity)> {
        request.iter().find_map(|(dim, want)| {
            let have = self.amount(dim);
            (have < want).then_some((dim, have, want))
        })
    }

    /// The sum in every dimension, saturating at the largest quantity.
    pub fn saturating_add(&self, other: &Capacity) -> Capacity {
        self.merge(other, Quantity::saturating_add)
    }

    /// The difference in every dimension, at least zero.
    pub fn saturating_sub(&self, other: &Capacity) -> Capacity {
        self.merge(other, Quantity::saturating_sub)
    }

    /// The larger quantity in every dimension.
    pub fn larger_of_each(&self, other: &Capacity) -> Capacity {
        self.merge(other, Ord::max)
    }

    /// The own quantities, and those of `other` in dimensions that are absent here.
    pub fn or_else(&self, other: &Capacity) -> Capacity {
        self.merge(other, |ours, theirs| if ours.is_zero() { theirs } else { ours })
    }

    /// The smallest capacity in order that can cover `self`: only the primary entry.
    ///
    /// # Guarantees
    /// `c.covers(&request)` implies `c >= request.lower_bound()`, so a scan of an ordered map
    /// may start there.
    pub fn lower_bound(&self) -> Capacity {
        let primary = self.entries.iter().filter(|(dim, _)| dim.is_primary());
        Capacity { entries: primary.cloned().collect() }
    }

    /// Whether all quantities are zero.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in canonical order.
    pub fn iter(&self) -> impl Iterator<Item = (&Dim, Quantity)> {
        self.entries.iter().map(|(dim, quantity)| (dim, *quantity))
    }

    /// A map of names to quantities, as in a manifest.
    pub fn to_json(&self) -> Value {
        let texts = self.iter().map(|(dim, quantity)| (dim.name().to_owned(), quantity.to_string().into()));
        Value::Object(texts.collect::<Map<String, Value>>())
    }

    fn amount(&self, dim: &Dim) -> Quantity {
        let entry = self.entries.iter().find(|(ours, _)| ours == dim);
        entry.map(|(_, quantity)| *quantity).unwrap_or_default()
    }

    fn merge(&self, other: &Capacity, combine: fn(Quantity, Quantity) -> Quantity) -> Capacity {
        let combined = Pairs::of(self, other).map(|(dim, ours, theirs)| (dim, combine(ours, theirs)));
        let kept = combined.filter(|(_, quantity)| *quantity > Quantity::ZERO);
        Capacity { entries: kept.map(|(dim, quantity)| (dim.clone(), quantity)).collect() }
    }
}

/// Iterates over two capacities together: every dimension of either, with both quantities.
struct Pairs<'a> {
    left: &'a [(Dim, Quantity)],
    right: &'a [(Dim, Quantity)],
}

impl<'a> Pairs<'a> {
    fn of(left: &'a Capacity, right: &'a Capacity) -> Pairs<'a> {
        Pairs { left: &left.entries, right: &right.entries }
    }

    fn take_left(&mut self) -> Option<(&'a Dim, Quantity)> {
        let ((dim, quantity), rest) = self.left.split_first()?;
        self.left = rest;
        Some((dim, *quantity))
    }

    fn take_right(&mut self) -> Option<(&'a Dim, Quantity)> {
        let ((dim, quantity), rest) = self.right.split_first()?;
        self.right = rest;
        Some((dim, *quantity))
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a Dim, Quantity, Quantity);

    fn next(&mut self) -> Option<Self::Item> {
        let order = match (self.left.first(), self.right.first()) {
            (Some((left, _)), Some((right, _))) => left.cmp(right),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        match order {
            Ordering::Less => self.take_left().map(|(dim, ours)| (dim, ours, Quantity::ZERO)),
            Ordering::Greater => self.take_right().map(|(dim, theirs)| (dim, Quantity::ZERO, theirs)),
            Ordering::Equal => {
                let (dim, ours) = self.take_left()?;
                self.take_right().map(|(_, theirs)| (dim, ours, theirs))
            }
        }
    }
}

impl Ord for Capacity {
    fn cmp(&self, other: &Self) -> Ordering {
        let mut orders = Pairs::of(self, other).map(|(_, ours, theirs)| ours.cmp(&theirs));
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

impl PartialOrd for Capacity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing");
        }
        for (at, (dim, quantity)) in self.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            write!(f, "{separator}{dim} {quantity}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

// Not derived because of the pointer comparison: capacities derived from one another share their names, and most comparisons
// in a scheduling cycle are between such.
impl Ord for Dim {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_rank = self.secondary.cmp(&other.secondary);
        by_rank.then_with(|| match Arc::ptr_eq(&self.name, &other.name) {
            true => Ordering::Equal,
            false => self.name.cmp(&other.name),
        })
    }
}

impl PartialOrd for Dim {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Dim {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Dim {}

impl Hash for Dim {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.secondary.hash(state);
        self.name.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn capacity(value: Value) -> Capacity {
        Capacity::parse("storage", &value).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn shows_the_primary_first_and_the_rest_by_name() {
        let c = capacity(json!({"connections": 100, "aardvarks": "2", "storage": "25Gi", "zebras": 0}));
        assert_eq!(c.to_string(), "storage 25Gi, aardvarks 2, connections 100");
        assert_eq!(c.to_json(), json!({"storage": "25Gi", "aardvarks": "2", "connections": "100"}));
        assert_eq!(Capacity::default().to_string(), "nothing");
    }

    #[test]
    fn zero_is_the_same_as_absent() {
        assert_eq!(capacity(json!({"storage": "0", "connections": 5})), capacity(json!({"connections": 5})));
        assert!(capacity(json!({"storage": "0Gi"})).is_empty());
        assert!(capacity(json!(null)).is_empty());
        assert_eq!(capacity(json!({"storage": 1})).get("connections"), Quantity::ZERO);
    }

    #[test]
    fn names_the_invalid_entry() {
        for (value, field, message) in [
            (json!({"storage": "-5Gi"}), "storage", "`-5Gi` is negative"),
            (json!({"connections": "many", "storage": 1}), "connections", "`many` is not a quantity"),
            (json!({"storage": null}), "storage", "`null` is not a quantity"),
            (json!("25Gi"), "", "is not a map of names to quantities"),
            (json!([1]), "", "`[1]` is not a map of names to quantities"),
        ] {
            let error = Capacity::parse("storage", &value).expect_err(&value.to_string());
            assert_eq!(error.field, field, "{value}");
            assert!(error.to_string().contains(message), "{error}");
        }
    }

    #[test]
    fn covers_when_there_is_enough_of_everything() {
        let have = capacity(json!({"storage": "20Gi", "connections": 100}));
        for (request, lacking) in [
            (json!({}), None),
            (json!({"storage": "20Gi"}), None),
            (json!({"storage": "20Gi", "connections": 100}), None),
            (json!({"connections": 101}), Some("connections: have 100, want 101")),
            (json!({"storage": "21Gi", "connections": 101}), Some("storage: have 20Gi, want 21Gi")),
            (json!({"iops": 1}), Some("iops: have 0, want 1")),
        ] {
            let request = capacity(request);
            let found = have.find_lacking(&request);
            let found = found.map(|(dim, have, want)| format!("{dim}: have {have}, want {want}"));
            assert_eq!(found.as_deref(), lacking);
            assert_eq!(have.covers(&request), lacking.is_none());
        }
    }

    #[test]
    fn orders_by_the_primary_then_by_each_name() {
        let ascending = [
            json!({}),
            json!({"b": 9}),
            json!({"a": 1}),
            json!({"a": 1, "b": 1}),
            json!({"a": 2}),
            json!({"storage": 1}),
            json!({"storage": 1, "b": 5}),
            json!({"storage": 1, "a": 1}),
            json!({"storage": 2}),
        ]
        .map(capacity);
        assert!(ascending.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn lower_bound_keeps_only_the_primary() {
        let bound = |value: Value| capacity(value).lower_bound().to_string();
        assert_eq!(bound(json!({"storage": 5, "connections": 9})), "storage 5");
        assert_eq!(bound(json!({"connections": 9})), "nothing");
    }

    #[test]
    fn subtracting_stops_at_nothing() {
        let left = capacity(json!({"storage": 5, "connections": 10}))
            .saturating_sub(&capacity(json!({"storage": 7, "connections": 4, "iops": 3})));
        assert_eq!(left, capacity(json!({"connections": 6})));
    }

    const NAMES: [&str; 4] = ["storage", "connections", "iops", "zones"];

    fn dense() -> impl Strategy<Value = [i64; 4]> {
        prop::array::uniform4(prop_oneof![Just(0i64), 0i64..4, 0i64..1_000_000])
    }

    fn of(amounts: [i64; 4]) -> Capacity {
        let entries = NAMES.into_iter().zip(amounts.map(Quantity::from_units));
        Capacity::from_entries("storage", entries)
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[-0-9.eEKMGi]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(2, 8, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{0,3}", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn never_panics_on_any_json(value in json_value()) {
            let _ = Capacity::parse("a", &value);
        }

        #[test]
        fn order_is_that_of_the_dense_vectors(a in dense(), b in dense()) {
            // NAMES stands in canonical order, so the arrays' own order is the one to agree with.
            prop_assert_eq!(of(a).cmp(&of(b)), a.cmp(&b));
            prop_assert_eq!(of(a) == of(b), a == b);
        }

        #[test]
        fn covering_is_never_below_the_lower_bound(a in dense(), request in dense()) {
            let (a, request) = (of(a), of(request));
            if a.covers(&request) {
                prop_assert!(a >= request && request >= request.lower_bound());
            }
            let more = a.saturating_add(&request);
            prop_assert!(more.covers(&request) && more >= request.lower_bound());
        }

        #[test]
        fn covers_means_enough_in_each_dimension(a in dense(), b in dense()) {
            prop_assert_eq!(of(a).covers(&of(b)), a.iter().zip(b).all(|(a, b)| *a >= b));
        }

        #[test]
        fn what_was_added_can_be_taken_away(a in dense(), b in dense()) {
            let sum = of(a).saturating_add(&of(b));
            prop_assert_eq!(sum.saturating_sub(&of(b)), of(a));
            prop_assert_eq!(sum, of(b).saturating_add(&of(a)));
            prop_assert!(of(a).saturating_sub(&of(a)).is_empty());
        }

        #[test]
        fn json_reads_back_as_the_same_capacity(a in dense()) {
            prop_assert_eq!(Capacity::parse("storage", &of(a).to_json()), Ok(of(a)));
        }
    }
}
