//! Looks: what claims can see of a resource once its class, engine and version are settled. There are few of
//! them, so each question is asked once per distinct answer, and who passes is a set of bits.

use super::arena::Arena;
use super::bits::Bits;
use crate::model::selector::{Operator, Requirement};
use crate::model::{FieldValue, FieldWant, Labels, Lookup, Name, Predicate, TypeId, Wants};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A look's place, reused once nothing looks like that any more.
pub(super) type LookId = u32;

/// The fields other than group and version, and the labels that tell shapes apart.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Look {
    fields: Box<[FieldValue]>,
    labels: Labels,
}

/// Every look, and which looks give which answer.
#[derive(Clone, Debug)]
pub(super) struct Looks {
    /// The fields that a look keeps, in the order in which they are asked.
    fields: Vec<(usize, Predicate)>,
    ids: Lookup<Arc<Look>, LookId>,
    /// Each look, and how many resources have it.
    looks: Arena<(Arc<Look>, u32)>,
    all: Bits,
    /// Who has which value, for each of `fields`.
    by_field: Vec<BTreeMap<FieldValue, Bits>>,
    by_label: BTreeMap<Name, ByValue>,
}

#[derive(Clone, Debug, Default)]
struct ByValue {
    present: Bits,
    values: BTreeMap<Name, Bits>,
}

/// Which looks an ask accepts, question by question.
#[derive(Debug)]
pub(super) struct Accepted {
    /// The looks that pass each question, in the order of asking.
    pub questions: Vec<(Predicate, Bits)>,
    /// The looks that pass all of them.
    pub all: Bits,
}

impl Accepted {
    /// The first question that refuses a look.
    pub fn first_refusal(&self, look: LookId) -> Option<usize> {
        self.questions.iter().position(|(_, passing)| !passing.contains(look))
    }
}

impl Looks {
    pub fn new(ty: TypeId) -> Looks {
        let rules = ty.rules();
        let (group, version) = (rules.group_field(), rules.version_field());
        let rest = (0..rules.fields.len()).filter(|at| Some(*at) != group && Some(*at) != version);
        let fields: Vec<_> = rest.map(|at| (at, rules.fields[at].predicate)).collect();
        Looks {
            by_field: fields.iter().map(|_| BTreeMap::new()).collect(),
            fields,
            ids: Lookup::default(),
            looks: Arena::default(),
            all: Bits::default(),
            by_label: BTreeMap::new(),
        }
    }

    /// The look of a resource with these fields and labels, which is counted.
    pub fn take(&mut self, fields: &[FieldValue], labels: &Labels) -> LookId {
        let fields = self.fields.iter().map(|(at, _)| fields[*at].clone()).collect();
        let look = Look { fields, labels: labels.clone() };
        if let Some(id) = self.ids.get(&look) {
            self.looks[*id].1 += 1;
            return *id;
        }
        let look = Arc::new(look);
        let id = self.looks.add((look.clone(), 1));
        self.ids.insert(look.clone(), id);
        self.all.insert(id);
        for (values, value) in self.by_field.iter_mut().zip(&look.fields) {
            values.entry(value.clone()).or_default().insert(id);
        }
        for (key, value) in look.labels.iter() {
            let label = self.by_label.entry(key.clone()).or_default();
            label.present.insert(id);
            label.values.entry(value.clone()).or_default().insert(id);
        }
        id
    }

    /// One more than the highest place that was ever taken.
    pub fn len(&self) -> usize {
        self.looks.len()
    }

    /// Counts one resource of this look less.
    pub fn give_back(&mut self, id: LookId) {
        self.looks[id].1 -= 1;
        if self.looks[id].1 > 0 {
            return;
        }
        let (look, _) = self.looks.remove(id);
        self.ids.remove(&look);
        self.all.remove(id);
        for (values, value) in self.by_field.iter_mut().zip(&look.fields) {
            remove_from(values, value, id);
        }
        for (key, value) in look.labels.iter() {
            if let Some(label) = self.by_label.get_mut(key) {
                label.present.remove(id);
                remove_from(&mut label.values, value, id);
                if label.values.is_empty() {
                    self.by_label.remove(key);
                }
            }
        }
    }

    /// The looks that `wants` accepts. `told` says which requirements looks can answer.
    pub fn accepted(&self, wants: &Wants, told: impl Fn(&Requirement) -> bool) -> Accepted {
        let mut questions = Vec::new();
        for ((at, predicate), values) in self.fields.iter().zip(&self.by_field) {
            if wants.fields[*at] != FieldWant::Any {
                let accepted = values.iter().filter(|(value, _)| wants.fields[*at].accepts(value));
                questions.push((*predicate, Bits::union(accepted.map(|(_, bits)| bits))));
            }
        }
        for requirement in wants.selector.requirements().iter().filter(|r| told(r)) {
            questions.push((Predicate::Selector, self.meeting(requirement)));
        }
        let mut all = self.all.clone();
        questions.iter().for_each(|(_, passing)| all.keep(passing));
        Accepted { questions, all }
    }

    fn meeting(&self, requirement: &Requirement) -> Bits {
        let label = self.by_label.get(&requirement.key);
        let mut bits = match (requirement.operator, label) {
            (_, None) => Bits::default(),
            (Operator::In, Some(label)) => {
                Bits::union(requirement.values.iter().filter_map(|v| label.values.get(v)))
            }
            (Operator::NotIn | Operator::Exists | Operator::DoesNotExist, Some(label)) => {
                let met = label.values.iter().filter(|(value, _)| requirement.matches(Some(value)));
                Bits::union(met.map(|(_, bits)| bits))
            }
        };
        if requirement.matches(None) {
            let mut absent = self.all.clone();
            label.into_iter().for_each(|label| absent.drop_all(&label.present));
            bits.add(&absent);
        }
        bits
    }
}

fn remove_from<K: Ord>(map: &mut BTreeMap<K, Bits>, key: &K, id: LookId) {
    if let Some(bits) = map.get_mut(key) {
        bits.remove(id);
        if bits.is_empty() {
            map.remove(key);
        }
    }
}
