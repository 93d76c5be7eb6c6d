//! What provisioning remembers: which claim a resource is created for, the claims as written that templates need, and
//! compiled templates. Which class provisions is decided elsewhere.

use crate::model::{FieldError, Name, Script, TypeId, Uid};
use crate::template::{CompiledClass, Source};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Compiled templates that are kept: as many as there are classes, and some more.
const COMPILED_CLASSES_MAX: usize = 1_024;

/// Resources on their way to being created.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct Provisioning {
    /// The claim that a resource is created for, by the resource's name.
    owners: BTreeMap<(TypeId, Name), Uid>,
    /// Claims that are read live so that their text is kept.
    awaited: BTreeSet<Uid>,
    /// The text of claims, until their resource is created.
    written: BTreeMap<Uid, Value>,
    /// By the text of the script: the resources of one class share it.
    compiled_classes: BTreeMap<String, Arc<Result<CompiledClass, FieldError>>>,
}

impl Provisioning {
    pub fn begin(&mut self, ty: TypeId, resource: &Name, claim: &Uid) {
        self.owners.insert((ty, resource.clone()), claim.clone());
    }

    /// The claim that a resource is created for.
    pub fn owner(&self, ty: TypeId, resource: &Name) -> Option<&Uid> {
        self.owners.get(&(ty, resource.clone()))
    }

    pub fn end(&mut self, ty: TypeId, resource: Name) {
        self.owners.remove(&(ty, resource));
    }

    /// Keeps the text of a claim the next time it is read live.
    pub fn await_text(&mut self, claim: &Uid) {
        self.awaited.insert(claim.clone());
    }

    /// Keeps the text of a claim where it is awaited.
    pub fn keep_text(&mut self, claim: &str, text: impl FnOnce() -> Value) {
        if self.awaited.remove(claim) {
            self.written.insert(Uid::from(claim), text());
        }
    }

    pub fn text(&self, claim: &Uid) -> Option<&Value> {
        self.written.get(claim)
    }

    pub fn drop_text(&mut self, claim: &Uid) {
        self.written.remove(claim);
    }

    /// The claim is provisioned for no more.
    pub fn forget(&mut self, claim: &Uid) {
        self.awaited.remove(claim);
        self.drop_text(claim);
    }

    pub fn compiled(&self, script: &Script) -> Option<Result<&CompiledClass, &FieldError>> {
        self.compiled_classes.get(script.text.as_str()).map(|compiled| (**compiled).as_ref())
    }

    /// Compiles a script, unless another resource of its class has had it compiled.
    pub fn compile(&mut self, script: &Script) {
        if self.compiled_classes.contains_key(script.text.as_str()) {
            return;
        }
        if self.compiled_classes.len() >= COMPILED_CLASSES_MAX {
            self.compiled_classes.clear();
        }
        let of = |name: &str| script.source.get(name);
        let source = Source {
            template: of("template"),
            templates: of("templates"),
            ready: of("ready").and_then(Value::as_str),
            connection: of("connection"),
        };
        self.compiled_classes.insert(script.text.clone(), Arc::new(CompiledClass::compile(&source)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_claim_is_kept_only_while_it_is_awaited() {
        let mut provisioning = Provisioning::default();
        let claim = Uid::from("orders");
        provisioning.keep_text(&claim, || Value::from("unasked"));
        assert_eq!(provisioning.text(&claim), None);
        provisioning.await_text(&claim);
        provisioning.keep_text(&claim, || Value::from("first"));
        provisioning.keep_text(&claim, || Value::from("second"));
        assert_eq!(provisioning.text(&claim), Some(&Value::from("first")));
        provisioning.await_text(&claim);
        provisioning.forget(&claim);
        provisioning.keep_text(&claim, || Value::from("third"));
        assert_eq!(provisioning.text(&claim), None);
    }
}
