//! What a class says to a claim, and what it would make, as plainly as it can be said.

use super::quota::Holding;
use super::{Amounts, Ask, Maker, get, in_order};
use conductor::model::Quantity;

impl Maker {
    /// Whether it declares anything of what it makes.
    fn declares(&self) -> bool {
        self.engine.is_some()
            || !self.ranges.is_empty()
            || self.highly_available.is_some()
            || self.capabilities.is_some()
            || !self.sizes.is_empty()
    }

    /// Why it does not offer what it does not declare.
    fn undeclared(&self, field: &str, asked: &str) -> String {
        let name = &self.name;
        format!(
            "class {name} declares no {field}: take spec.{asked} out of the claim, or declare it in the class"
        )
    }

    fn makes_alone(&self, ask: &Ask) -> bool {
        self.slots <= 1 || ask.exclusive
    }

    /// What quotas count of what is made for the claim.
    pub(super) fn counted(&self, ask: &Ask) -> Amounts {
        let mut counted = ask.requests.clone();
        if self.makes_alone(ask) {
            for (name, size) in self.sizes.iter().filter(|(name, _)| get(&ask.requests, name).is_zero()) {
                // Nothing is requested of it, so it is made as small as it may be.
                let least = if size.is_object() { &size["min"] } else { size };
                if !least.is_null() {
                    counted.insert(name.clone(), Quantity::from_json(least).expect("a quantity"));
                }
            }
        }
        counted
    }

    pub(super) fn holding(&self, ask: &Ask) -> Holding {
        let name = &self.name;
        match self.makes_alone(ask) {
            true => Holding {
                has: format!("class {name} makes"),
                uncounted: format!(
                    "class {name} declares none that could be counted: add capacity.WHAT to it"
                ),
            },
            false => Holding {
                has: String::new(),
                uncounted: format!(
                    "the claim requests none of the shared resource that class {name} makes: add \
                     spec.resources.requests.WHAT to the claim"
                ),
            },
        }
    }

    /// Why it makes nothing for the claim.
    pub(super) fn refuses(&self, ask: &Ask) -> Option<(&'static str, String)> {
        let name = &self.name;
        if self.deleting {
            return Some(("Class", format!("class {name} is being deleted")));
        }
        if !self.template {
            return Some(("Class", format!("class {name} has no template to make one from")));
        }
        let offers = [
            ("Engine", "engine", self.engine.is_none() || ask.engine.is_none() || self.engine == ask.engine),
            (
                "Version",
                "version",
                match &ask.range {
                    Some(_) if self.ranges.is_empty() => true,
                    Some(range) => self.ranges.iter().any(|r| r.overlaps(range)),
                    None => true,
                },
            ),
            (
                "HighlyAvailable",
                "highly-available",
                !ask.highly_available
                    || self
                        .highly_available
                        .unwrap_or_else(|| self.takes.contains("claim.spec[\"highly-available\"]")),
            ),
            (
                "Capabilities",
                "requests",
                match &self.capabilities {
                    Some(have) => ask.capabilities.is_subset(have),
                    None => ask.capabilities.is_empty() || self.takes.contains("claim.spec.requests"),
                },
            ),
        ];
        if let Some((predicate, field, _)) = offers.iter().find(|(_, _, offered)| !offered) {
            let why = match (&self.engine, &ask.engine) {
                (Some(made), Some(asked)) if *field == "engine" => {
                    format!("class {name} makes {made}, and {asked} is requested")
                }
                _ if *field == "highly-available" && self.highly_available.is_none() => {
                    self.undeclared("highly-available", field)
                }
                _ if *field == "requests" && self.capabilities.is_none() => {
                    self.undeclared("capabilities", field)
                }
                _ => format!("class {name} does not offer the {field} asked"),
            };
            return Some((predicate, why));
        }
        if !ask.selector.matches(|key| self.labels.get(key).map(String::as_str)) {
            let why = format!("class {name} does not have the labels that the selector requires");
            return Some(("Selector", why));
        }
        for (what, size) in &self.sizes {
            let most = if size.is_object() { &size["max"] } else { size };
            let asked = get(&ask.requests, what);
            if most.is_null() {
                continue;
            }
            let most = Quantity::from_json(most).expect("a quantity");
            if asked > most {
                let why = format!("class {name} makes {what} up to {most}, and {asked} is requested");
                return Some(("Capacity", why));
            }
        }
        for what in in_order(&[&ask.requests]) {
            let taken = self.takes.contains(&format!("resource.spec.capacity.{what}"));
            let declared = self.sizes.contains_key(&what) || taken || !self.declares();
            if !declared && !get(&ask.requests, &what).is_zero() {
                let (field, asked) = (format!("capacity.{what}"), format!("resources.requests.{what}"));
                return Some(("Capacity", self.undeclared(&field, &asked)));
            }
        }
        None
    }
}
