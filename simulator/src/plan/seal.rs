//! The digest of a plan: SHA-256 over the summary's compact JSON and the SHA-256 of every row's, claims first, in the
//! order of the document. A row that two plans have in common is digested once.

use super::document::{Plan, PlannedClaim, PlannedResource};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::cmp::Ordering;

type Seal = [u8; 32];

/// The digests of a plan's rows.
pub(crate) struct Seals {
    claims: Vec<Seal>,
    resources: Vec<Seal>,
}

impl Seals {
    /// Of a plan about which nothing is known.
    pub fn of(plan: &Plan) -> Seals {
        Seals {
            claims: plan.claims.iter().map(seal).collect(),
            resources: plan.resources.iter().map(seal).collect(),
        }
    }

    /// Of a plan that has most rows in common with `before`, of which these are the digests.
    pub fn beside(&self, before: &Plan, plan: &Plan) -> Seals {
        Seals {
            claims: beside(&before.claims, &self.claims, &plan.claims, PlannedClaim::cmp_place),
            resources: beside(
                &before.resources,
                &self.resources,
                &plan.resources,
                PlannedResource::cmp_place,
            ),
        }
    }

    /// The digest of the plan whose rows these are of.
    pub fn digest(&self, plan: &Plan) -> String {
        let mut hasher = Sha256::new();
        hasher.update(json(&plan.summary));
        self.claims.iter().chain(&self.resources).for_each(|seal| hasher.update(seal));
        let hex: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256:{hex}")
    }
}

/// Two lists in one order: the digest of a row that is in both is taken over.
fn beside<T: Serialize + PartialEq>(
    before: &[T],
    known: &[Seal],
    rows: &[T],
    order: fn(&T, &T) -> Ordering,
) -> Vec<Seal> {
    let mut known = before.iter().zip(known).peekable();
    let find = |row: &T| {
        while known.next_if(|(was, _)| order(was, row) == Ordering::Less).is_some() {}
        let was = known.next_if(|(was, _)| order(was, row) == Ordering::Equal);
        was.filter(|(was, _)| *was == row).map_or_else(|| seal(row), |(_, seal)| *seal)
    };
    rows.iter().map(find).collect()
}

fn seal(row: &impl Serialize) -> Seal {
    Sha256::digest(json(row)).into()
}

fn json(row: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(row).expect("a row of a plan is JSON")
}
