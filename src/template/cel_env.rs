//! The CEL environment: the Kubernetes functions, and the fields of claims and resources. Created once and shared; it
//! contains no values.

use super::scope::{Scope, Shape};
use crate::api;
use kube_cel::KubeCelExt;
use kube_cel::cel::Context;
use std::fmt;
use std::sync::LazyLock;

/// The functions and names that expressions can use.
pub struct CelEnv {
    root: Context<'static>,
    names: Scope,
}

static SHARED: LazyLock<CelEnv> = LazyLock::new(|| {
    let names = [
        ("claim", fields_of("RelationalDatabaseClaim")),
        ("resource", fields_of("RelationalDatabase")),
        ("class", Shape::Open),
        ("parameters", Shape::Open),
    ];
    let names = names.into_iter().map(|(name, shape)| (name.to_owned(), shape)).collect();
    CelEnv { root: Context::default().with_all(), names }
});

impl CelEnv {
    /// The shared environment.
    pub fn shared() -> &'static CelEnv {
        &SHARED
    }

    /// A context for one evaluation, without variables.
    pub(super) fn context(&self) -> Context<'_> {
        self.root.new_inner_scope()
    }

    /// The names that expressions can use in a class with objects of these ids.
    pub(super) fn scope(&self, ids: &[&str]) -> Scope {
        let objects = Shape::of_fields(ids.iter().map(|id| ((*id).to_owned(), Shape::Open)));
        self.names.clone().into_iter().chain([("objects".to_owned(), objects)]).collect()
    }
}

/// The fields of a kind without its status: what is provisioned must not depend on its result.
fn fields_of(kind: &str) -> Shape {
    let crds = api::crds();
    let schema = crds.iter().find(|crd| crd.spec.names.kind == kind).and_then(|crd| {
        serde_json::to_value(&crd.spec.versions.first()?.schema.as_ref()?.open_api_v3_schema).ok()
    });
    let spec = schema.as_ref().and_then(|schema| schema.pointer("/properties/spec"));
    Shape::of_fields([
        ("metadata".to_owned(), Shape::Open),
        ("spec".to_owned(), spec.map_or(Shape::Open, Shape::of_schema)),
    ])
}

impl fmt::Debug for CelEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CelEnv")
    }
}
