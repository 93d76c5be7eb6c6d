//! Selectors as they stand in a query: by label and by field. Reading and matching only.

mod field;
mod label;

pub(super) use field::FieldSelector;
pub(super) use label::LabelSelector;

use serde_json::Value;

/// Both selectors of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    pub labels: LabelSelector,
    pub fields: FieldSelector,
}

impl Selection {
    pub fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub fn matches(&self, object: &Value) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }
}
