//! An object in the world: as it is, or folded into text, which takes a tenth of the memory. Whoever asks for a
//! folded one gets it as it was, with what was written to it since: most are never asked for.

use super::later::Later;
use conductor::action::Write;
use conductor::model::{Kind, Object, Revision};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// Deeper values than the engine or a manifest makes are not folded: they could not be read back.
const DEPTH_MAX: usize = 64;

#[derive(Clone, Debug)]
pub(crate) enum Stored {
    /// Shared with whoever was last told of it.
    Open(Arc<Object>),
    Folded {
        folded: Folded,
        /// Once somebody has looked at it.
        open: OnceLock<Arc<Object>>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Folded {
    kind: Kind,
    metadata: Box<ObjectMeta>,
    body: Box<str>,
    later: Option<Box<Later>>,
}

impl Folded {
    /// Nothing where the object could not be had back as it is.
    fn new(object: &Object) -> Option<Folded> {
        is_foldable(&object.body, 0).then(|| Folded {
            kind: object.kind,
            metadata: Box::new(object.metadata.clone()),
            body: object.body.to_string().into_boxed_str(),
            later: None,
        })
    }

    fn unfold(&self) -> Object {
        // It is our own text, of a value that was seen to be readable.
        let body = serde_json::from_str(&self.body).unwrap_or_default();
        let mut object = Object { kind: self.kind, metadata: (*self.metadata).clone(), body };
        self.later.iter().for_each(|later| later.follow(&mut object));
        object
    }

    fn revision(&self) -> Revision {
        match &self.later {
            Some(later) => later.revision,
            None => Revision::read(self.metadata.resource_version.as_deref()),
        }
    }
}

impl Stored {
    pub fn new(object: Object) -> Stored {
        Stored::Open(Arc::new(object))
    }

    /// As text from the beginning.
    pub fn folded(object: &Object) -> Stored {
        match Folded::new(object) {
            Some(folded) => Stored::Folded { folded, open: OnceLock::new() },
            None => Stored::new(object.clone()),
        }
    }

    /// The object, which stays as it is kept.
    pub fn to_object(&self) -> Object {
        match self {
            Stored::Open(object) => (**object).clone(),
            Stored::Folded { folded, .. } => folded.unfold(),
        }
    }

    pub fn open(&self) -> &Object {
        match self {
            Stored::Open(object) => object,
            Stored::Folded { folded, open } => open.get_or_init(|| Arc::new(folded.unfold())),
        }
    }

    /// The object to be changed: where nobody else has it any more, in its place.
    pub fn open_mut(&mut self) -> &mut Object {
        Arc::make_mut(self.opened())
    }

    /// The object for somebody who only looks at it.
    pub fn share(&mut self) -> Arc<Object> {
        self.opened().clone()
    }

    fn opened(&mut self) -> &mut Arc<Object> {
        if let Stored::Folded { folded, open } = self {
            let object = open.take().unwrap_or_else(|| Arc::new(folded.unfold()));
            *self = Stored::Open(object);
        }
        match self {
            Stored::Open(object) => object,
            Stored::Folded { .. } => self.opened(),
        }
    }

    /// Takes in a write without a look at the object, where it is the one that is meant and stays. Says whether it did.
    pub fn write_unseen(&mut self, write: &Write, revision: Revision, declares: bool) -> bool {
        self.fold();
        let Stored::Folded { folded, .. } = self else { return false };
        let is_meant = folded.metadata.uid.as_deref() == Some(&*write.uid)
            && write.revision == Some(folded.revision())
            && folded.revision() != Revision::default();
        if !is_meant || folded.metadata.deletion_timestamp.is_some() || !folded.body.starts_with('{') {
            return false;
        }
        folded.later.get_or_insert_default().add(write.change.clone(), revision, declares);
        true
    }

    pub fn into_object(self) -> Object {
        match self {
            Stored::Open(object) => Arc::unwrap_or_clone(object),
            Stored::Folded { folded, open } => {
                open.into_inner().map_or_else(|| folded.unfold(), Arc::unwrap_or_clone)
            }
        }
    }

    pub fn fold(&mut self) {
        match self {
            Stored::Open(object) => {
                if let Some(folded) = Folded::new(object) {
                    *self = Stored::Folded { folded, open: OnceLock::new() };
                }
            }
            Stored::Folded { open, .. } => drop(open.take()),
        }
    }
}

/// Whether a value is the same after it has been text: a fraction may lose its last digit.
fn is_foldable(value: &Value, depth: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => !number.is_f64(),
        Value::Array(items) => depth < DEPTH_MAX && items.iter().all(|item| is_foldable(item, depth + 1)),
        Value::Object(fields) => {
            depth < DEPTH_MAX && fields.values().all(|field| is_foldable(field, depth + 1))
        }
    }
}
