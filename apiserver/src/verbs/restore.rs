//! The system namespace, which the controllers on this API cannot do without: why it is not deleted, and how it comes
//! back where an earlier version let its deletion begin. A real cluster can neither refuse the deletion by itself nor
//! end it; objects in it that are marked for deletion stay marked here too.

use crate::api::Api;
use crate::object::{is_deleting, set_meta};
use crate::registry::NAMESPACE_TABLE;
use crate::store::{Expect, Leave, Write};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Claims that a message names at most.
const NAMED_MAX: usize = 3;

/// Why the system namespace is kept, and what to delete instead.
pub(super) fn why_kept(api: &Api, name: &str) -> String {
    let holders = holders(api, name);
    let shown = holders.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    let held = match holders.len() {
        0 => String::new(),
        1 => format!("claim {shown} holds a resource in it; "),
        count if count <= NAMED_MAX => format!("claims {shown} hold resources in it; "),
        count => format!("{count} claims hold resources in it ({shown}, ...); "),
    };
    format!(
        "this is the system namespace of conductor, which holds the records of every resource; {held}delete claims and \
         resources one by one instead"
    )
}

/// The claims that hold resources in a namespace.
fn holders(api: &Api, namespace: &str) -> BTreeSet<String> {
    let prefix = format!("{namespace}/");
    let state = api.store.read();
    let mut found = BTreeSet::new();
    for (_, objects) in state.tables() {
        for (_, stored) in objects.range(&prefix, None) {
            let references = stored.value.pointer("/spec/claimRefs").and_then(Value::as_array);
            let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
            let named = references.into_iter().flatten();
            found.extend(named.map(|one| format!("{}/{}", text(one, "namespace"), text(one, "name"))));
        }
    }
    found
}

/// Makes the system namespace Active again where it is on its way out; returns whether it was.
pub(crate) async fn system_namespace(api: &Api) -> Result<bool, String> {
    let Some(name) = &api.system_namespace else { return Ok(false) };
    let Some(kept) = api.store.find(NAMESPACE_TABLE, name) else { return Ok(false) };
    if !is_deleting(&kept.value) {
        return Ok(false);
    }
    let mut value = kept.value.clone();
    set_meta(&mut value, "deletionTimestamp", Value::Null);
    set_meta(&mut value, "deletionGracePeriodSeconds", Value::Null);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("status".to_owned(), json!({"phase": "Active"}));
    }
    let expect = Expect::Revision(kept.revision);
    let write =
        Write { table: Arc::from(NAMESPACE_TABLE), key: name.clone(), expect, leave: Leave::Put(value) };
    let failed = |refusal| format!("namespace {name}: its deletion cannot be ended: {refusal:?}");
    api.store.commit(write).await.map(|_| true).map_err(failed)
}
