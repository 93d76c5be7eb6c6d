//! The objects that must be reconciled, the actions that this turn has led to, and the next wake-up. Before the start
//! objects are collected and nothing is reconciled.

use super::Target;
use crate::action::{Action, Note};
use crate::model::{Kind, Meta, Time};
use std::collections::BTreeSet;

/// What is left to do in a turn, and what it returns.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct Worklist {
    touched: BTreeSet<Target>,
    actions: Vec<Action>,
    /// The wake-up that the caller knows of.
    next_wake: Option<Time>,
}

impl Worklist {
    /// An object has changed, or what it should be has: it is reconciled in this turn.
    pub fn touch(&mut self, target: Target) {
        self.touched.insert(target);
    }

    pub fn touch_all(&mut self, targets: impl IntoIterator<Item = Target>) {
        self.touched.extend(targets);
    }

    pub fn untouch(&mut self, target: &Target) {
        self.touched.remove(target);
    }

    /// Takes the next object, in an order that depends on the objects alone.
    pub fn pop(&mut self) -> Option<Target> {
        self.touched.pop_first()
    }

    pub fn is_empty(&self) -> bool {
        self.touched.is_empty()
    }

    pub fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    pub fn push_all(&mut self, actions: impl IntoIterator<Item = Action>) {
        self.actions.extend(actions);
    }

    /// Emits a Kubernetes Event about an object.
    pub fn emit(&mut self, kind: Kind, meta: &Meta, warning: bool, reason: &'static str, message: String) {
        let (key, uid) = (meta.key.clone(), meta.uid.clone());
        let note = Note { kind, key, uid, warning, reason, message };
        self.actions.push(Action::Emit(note));
    }

    /// A wake-up has come.
    pub fn wake(&mut self) {
        self.next_wake = None;
    }

    /// Requests a wake-up at `next` where the caller does not know of it, or where it must come `at_once`.
    pub fn schedule(&mut self, next: Option<Time>, at_once: bool) {
        if next != self.next_wake || at_once {
            self.next_wake = next;
            self.actions.extend(next.map(Action::WakeAt));
        }
    }

    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_is_requested_once_unless_it_must_come_at_once() {
        let mut work = Worklist::default();
        work.schedule(Some(Time(5)), false);
        work.schedule(Some(Time(5)), false);
        assert_eq!(work.take_actions(), [Action::WakeAt(Time(5))]);
        work.schedule(Some(Time(5)), true);
        assert_eq!(work.take_actions(), [Action::WakeAt(Time(5))]);
        work.wake();
        work.schedule(Some(Time(5)), false);
        assert_eq!(work.take_actions(), [Action::WakeAt(Time(5))]);
    }
}
