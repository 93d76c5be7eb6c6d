//! The digest of a plan: SHA-256 over the summary's compact JSON and the SHA-256 of every row's, claims first, in the
//! document's order. Rows that two plans share are digested once.

use super::document::{Plan, PlannedClaim, PlannedResource};
use crate::record::hex;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::cmp::Ordering;

type RowDigest = [u8; 32];

/// Digests of a plan's rows.
pub(crate) struct RowDigests {
    claims: Vec<RowDigest>,
    resources: Vec<RowDigest>,
}

impl RowDigests {
    /// Digests every row.
    pub fn of(plan: &Plan) -> RowDigests {
        RowDigests {
            claims: plan.claims.iter().map(digest_row).collect(),
            resources: plan.resources.iter().map(digest_row).collect(),
        }
    }

    /// Digests a plan that shares most rows with `before`, whose digests these are.
    pub fn reusing(&self, before: &Plan, plan: &Plan) -> RowDigests {
        RowDigests {
            claims: beside(&before.claims, &self.claims, &plan.claims, PlannedClaim::cmp_place),
            resources: beside(
                &before.resources,
                &self.resources,
                &plan.resources,
                PlannedResource::cmp_place,
            ),
        }
    }

    /// The digest of the whole plan.
    pub fn digest(&self, plan: &Plan) -> String {
        let mut hasher = Sha256::new();
        hasher.update(json(&plan.summary));
        self.claims.iter().chain(&self.resources).for_each(|digest| hasher.update(digest));
        format!("sha256:{}", hex(&hasher.finalize()))
    }
}

/// Digests sorted rows, reusing the digest of each row that also stands in `before`.
fn beside<T: Serialize + PartialEq>(
    before: &[T],
    known: &[RowDigest],
    rows: &[T],
    order: fn(&T, &T) -> Ordering,
) -> Vec<RowDigest> {
    let mut known = before.iter().zip(known).peekable();
    let find = |row: &T| {
        while known.next_if(|(was, _)| order(was, row) == Ordering::Less).is_some() {}
        let was = known.next_if(|(was, _)| order(was, row) == Ordering::Equal);
        was.filter(|(was, _)| *was == row).map_or_else(|| digest_row(row), |(_, digest)| *digest)
    };
    rows.iter().map(find).collect()
}

fn digest_row(row: &impl Serialize) -> RowDigest {
    Sha256::digest(json(row)).into()
}

fn json(row: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(row).expect("a row of a plan is JSON")
}
