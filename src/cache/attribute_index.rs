//! The static attributes that claims match by once class, engine and version are settled. There are few distinct sets of
//! them, so each question is evaluated once per distinct value, and the sets that pass are a set of bits.

use super::keys::Keys;
use crate::model::selector::{Operator, Requirement};
use crate::model::{FieldValue, FieldWant, Labels, Lookup, Name, Wants};
use crate::predicates::Predicate;
use fixedbitset::FixedBitSet;
use slab::Slab;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The place of distinct attributes, reused once no resource has them any more.
pub(super) type AttributesId = usize;

/// The values of the fields that are attributes, and the labels that separate shapes.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Attributes {
    fields: Box<[FieldValue]>,
    labels: Labels,
}

/// All distinct attributes, and which of them have which value.
#[derive(Clone, Debug, Default)]
pub(super) struct AttributeIndex {
    ids: Lookup<Arc<Attributes>, AttributesId>,
    /// Each, and how many resources have them.
    distinct: Slab<(Arc<Attributes>, u32)>,
    all: FixedBitSet,
    /// Which have which value, for each field that is an attribute.
    by_field: Vec<BTreeMap<FieldValue, FixedBitSet>>,
    by_label: BTreeMap<Name, ByValue>,
}

#[derive(Clone, Debug, Default)]
struct ByValue {
    present: FixedBitSet,
    values: BTreeMap<Name, FixedBitSet>,
}

/// What a query accepts, question by question.
#[derive(Debug)]
pub(super) struct Accepted {
    /// What passes each question, in the order of the checks.
    pub questions: Vec<(Predicate, FixedBitSet)>,
    /// What passes all of them.
    pub all: FixedBitSet,
}

impl Accepted {
    /// The first question that refuses these attributes.
    pub fn first_refusal(&self, attributes: AttributesId) -> Option<usize> {
        self.questions.iter().position(|(_, passing)| !passing.contains(attributes))
    }
}

impl AttributeIndex {
    /// The place of these fields and labels, which count one resource more.
    pub fn add(&mut self, keys: &Keys, fields: &[FieldValue], labels: &Labels) -> AttributesId {
        let fields: Box<[FieldValue]> = keys.attributes.iter().map(|key| fields[key.at].clone()).collect();
        self.by_field.resize_with(fields.len(), BTreeMap::new);
        let attributes = Attributes { fields, labels: labels.clone() };
        if let Some(id) = self.ids.get(&attributes) {
            self.distinct[*id].1 += 1;
            return *id;
        }
        let attributes = Arc::new(attributes);
        let id = self.distinct.insert((attributes.clone(), 1));
        self.ids.insert(attributes.clone(), id);
        self.all.grow_and_insert(id);
        for (values, value) in self.by_field.iter_mut().zip(&attributes.fields) {
            values.entry(value.clone()).or_default().grow_and_insert(id);
        }
        for (key, value) in attributes.labels.iter() {
            let label = self.by_label.entry(key.clone()).or_default();
            label.present.grow_and_insert(id);
            label.values.entry(value.clone()).or_default().grow_and_insert(id);
        }
        id
    }

    /// One more than the highest place that was ever taken.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Counts one resource less.
    pub fn release(&mut self, id: AttributesId) {
        self.distinct[id].1 -= 1;
        if self.distinct[id].1 > 0 {
            return;
        }
        let (attributes, _) = self.distinct.remove(id);
        self.ids.remove(&attributes);
        self.all.remove(id);
        for (values, value) in self.by_field.iter_mut().zip(&attributes.fields) {
            remove_from(values, value, id);
        }
        for (key, value) in attributes.labels.iter() {
            if let Some(label) = self.by_label.get_mut(key) {
                label.present.remove(id);
                remove_from(&mut label.values, value, id);
                if label.values.is_empty() {
                    self.by_label.remove(key);
                }
            }
        }
    }

    /// What `wants` accepts. `is_indexed` says of which requirements the labels are kept here.
    pub fn accepted(
        &self,
        keys: &Keys,
        wants: &Wants,
        is_indexed: impl Fn(&Requirement) -> bool,
    ) -> Accepted {
        let mut questions = Vec::new();
        for (key, values) in keys.attributes.iter().zip(&self.by_field) {
            if wants.fields[key.at] != FieldWant::Any {
                let accepted = values.iter().filter(|(value, _)| key.accepts(wants, value));
                questions.push((key.predicate, union(accepted.map(|(_, bits)| bits))));
            }
        }
        let (predicate, accepts) = keys.labels;
        for requirement in wants.selector.requirements().iter().filter(|r| is_indexed(r)) {
            questions.push((predicate, self.meeting(requirement, accepts)));
        }
        let mut all = self.all.clone();
        questions.iter().for_each(|(_, passing)| all.intersect_with(passing));
        Accepted { questions, all }
    }

    fn meeting(
        &self,
        requirement: &Requirement,
        accepts: fn(&Requirement, Option<&str>) -> bool,
    ) -> FixedBitSet {
        let label = self.by_label.get(&requirement.key);
        let mut bits = match (requirement.operator, label) {
            (_, None) => FixedBitSet::new(),
            (Operator::In, Some(label)) => {
                union(requirement.values.iter().filter_map(|v| label.values.get(v)))
            }
            (Operator::NotIn | Operator::Exists | Operator::DoesNotExist, Some(label)) => {
                let met = label.values.iter().filter(|(value, _)| accepts(requirement, Some(value)));
                union(met.map(|(_, bits)| bits))
            }
        };
        if accepts(requirement, None) {
            let mut absent = self.all.clone();
            label.into_iter().for_each(|label| absent.difference_with(&label.present));
            bits.union_with(&absent);
        }
        bits
    }
}

/// Everything that is in one of the sets.
fn union<'a>(sets: impl IntoIterator<Item = &'a FixedBitSet>) -> FixedBitSet {
    let mut sum = FixedBitSet::new();
    sets.into_iter().for_each(|set| sum.union_with(set));
    sum
}

fn remove_from<K: Ord>(map: &mut BTreeMap<K, FixedBitSet>, key: &K, id: AttributesId) {
    if let Some(bits) = map.get_mut(key) {
        bits.remove(id);
        if bits.is_clear() {
            map.remove(key);
        }
    }
}
