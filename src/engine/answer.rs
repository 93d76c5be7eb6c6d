//! Answers to writes. Where the API did not say whether a write was done, a live read decides.

use super::Engine;
use super::memory::{Effect, Flight, Target};
use crate::event::Answer;
use crate::model::{Name, Object, Revision, Time, TypeId, WriteId};

impl Engine {
    pub(super) fn answered(&mut self, id: WriteId, answer: Answer, now: Time) {
        let Some(Flight { target, effect, from }) = self.writes.land(id) else { return };
        match target {
            Target::Part(part) => self.part_answered(part, effect, answer, now),
            Target::Publication(claim) => self.publication_answered(claim, answer, now),
            published @ Target::Published(..) => self.withdrawal_answered(published, answer, now),
            target @ (Target::Claim(_) | Target::Resource(..) | Target::Class(..) | Target::Quota(_)) => {
                self.object_answered(target, effect, from, answer, now);
            }
        }
    }

    fn object_answered(
        &mut self,
        target: Target,
        effect: Effect,
        from: Option<Revision>,
        answer: Answer,
        now: Time,
    ) {
        if let Target::Resource(ty, name) = &target {
            self.touch_owner(*ty, name);
        }
        match answer {
            // It was done and nothing is different: the object says something that is read here as something else.
            // Written again at once, it would be written for ever.
            Answer::Written(object) if from.is_some_and(|from| is_still(from, &object)) => {
                self.observe(&object, now);
                self.emit_idle_write(&target);
                self.writes.hold_and_retry(target, now);
            }
            Answer::Written(object) => {
                self.writes.succeed(&target, effect);
                self.observe(&object, now);
                self.work.touch(target);
            }
            Answer::PartWritten(_) | Answer::Published(_) | Answer::Incomplete(_) | Answer::Taken(_) => {
                self.free(target);
            }
            Answer::Deleted => {
                self.writes.succeed(&target, effect);
                self.read_target(&target);
            }
            Answer::Conflict | Answer::Missing | Answer::Exists => {
                self.stats.conflicts += 1;
                self.release_assumed(&target, now);
                self.read_target(&target);
            }
            Answer::Invalid(why) => {
                self.emit_refused_write(&target, &why);
                self.release_assumed(&target, now);
                self.writes.refuse(target, effect, why, now);
            }
            // It may have been done: what is assumed stays until a read decides.
            Answer::Unknown(why) => self.writes.miss_answer(target, effect, why, now),
        }
    }

    /// A create is answered: the claim that it was for is reconciled.
    pub(super) fn touch_owner(&mut self, ty: TypeId, name: &Name) {
        let owner = self.provisioning.owner(ty, name);
        self.work.touch_all(owner.map(|uid| Target::Claim(uid.clone())));
    }
}

/// Whether an object is of the revision that it was before a write.
fn is_still(from: Revision, object: &Object) -> bool {
    from != Revision::default() && from == Revision::read(object.metadata.resource_version.as_deref())
}
