//! Sharing: who may have a resource at all, whether a slot is left, and whether the claim tolerates others.
//! Capacity is asked separately.

use super::resources;
use crate::cache::{Ask, Standing};
use crate::framework::{Filter, Seen};
use crate::model::{Predicate, Wants};

/// Whether the resource is open to the claim's namespace.
pub(super) struct Access;

/// Whether a shared resource has room for one more, and the claim for others.
pub(super) struct Slots;

impl Filter for Access {
    fn predicate(&self) -> Predicate {
        Predicate::Sharing
    }

    fn lack(&self, ask: &Ask<'_>, seen: &Seen<'_>) -> Option<String> {
        let open = seen.offer.is_open_to(ask.namespace);
        (!open).then(|| format!("it is not open to namespace {}", ask.namespace))
    }

    fn remedy(&self, ask: &Ask<'_>, seen: &Seen<'_>) -> String {
        format!("add {} to the allowedNamespaces of {}", ask.namespace, seen.name)
    }

    fn summary(&self, ask: &Ask<'_>, count: usize) -> String {
        let are = resources(count, "is", "are");
        format!("{are} full, held by others, or not open to namespace {}", ask.namespace)
    }
}

impl Filter for Slots {
    fn predicate(&self) -> Predicate {
        Predicate::Sharing
    }

    fn lack(&self, ask: &Ask<'_>, seen: &Seen<'_>) -> Option<String> {
        match seen.standing {
            Standing::Full => Some(format!("all {} of its slots are taken", seen.offer.max_claims)),
            Standing::Shared if ask.wants.exclusive => {
                Some("others hold it, and the claim is exclusive".to_owned())
            }
            Standing::Shared
            | Standing::Vacant
            | Standing::Phase
            | Standing::Cordoned
            | Standing::Reserved => None,
        }
    }

    fn remedy(&self, _ask: &Ask<'_>, seen: &Seen<'_>) -> String {
        match seen.standing {
            Standing::Full => {
                format!("raise sharing.maxClaims of {} above {}", seen.name, seen.offer.max_claims)
            }
            _ => "drop exclusive from the claim".to_owned(),
        }
    }

    fn mend(&self, wants: &mut Wants, seen: &Seen<'_>) -> bool {
        let company = seen.standing != Standing::Full;
        wants.exclusive &= !company;
        company
    }

    fn summary(&self, ask: &Ask<'_>, count: usize) -> String {
        Access.summary(ask, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::{check, resource};
    use serde_json::json;

    #[test]
    fn a_resource_is_open_to_all_or_to_the_listed_namespaces() {
        check(&Access, json!({}), &resource(json!({"engine": "mysql"})), None);
        let listed =
            |names: &[&str]| resource(json!({"engine": "mysql", "sharing": {"allowedNamespaces": names}}));
        check(&Access, json!({}), &listed(&["team-a", "x"]), None);
        check(&Access, json!({}), &listed(&["x"]), Some("it is not open to namespace team-a"));
    }

    #[test]
    fn an_exclusive_claim_refuses_a_resource_that_others_hold() {
        let mut db = resource(json!({"engine": "mysql", "sharing": {"maxClaims": 3}}));
        db.standing = Standing::Shared;
        check(&Slots, json!({}), &db, None);
        check(&Slots, json!({"exclusive": true}), &db, Some("others hold it, and the claim is exclusive"));
        db.standing = Standing::Full;
        check(&Slots, json!({}), &db, Some("all 3 of its slots are taken"));
    }
}
