//! What a recording keeps of a field: its shape, and where in it names stand that a pseudonym may replace.
//! Redaction itself is the simulator's.

/// Which object a field belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The claim's spec.
    Claim,
    /// The resource's spec.
    Resource,
}

/// A field that a recording keeps.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// The object.
    pub side: Side,
    /// The field of its spec.
    pub field: &'static str,
    /// What may stand in it.
    pub shape: Shape,
}

impl Recorded {
    pub(super) const fn claim(field: &'static str, shape: Shape) -> Recorded {
        Recorded { side: Side::Claim, field, shape }
    }

    pub(super) const fn resource(field: &'static str, shape: Shape) -> Recorded {
        Recorded { side: Side::Resource, field, shape }
    }
}

/// What may stand in a field, down to the last one.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// One text, number or boolean.
    Leaf,
    /// A name that users choose: a pseudonym replaces it where names are not to be shown.
    Name,
    /// A list.
    Each(&'static Shape),
    /// A mapping with names that stay.
    Named(&'static Shape),
    /// Labels: keys and values are names that users choose.
    Labels,
    /// A mapping with these fields.
    Fields(&'static [(&'static str, Shape)]),
}

impl Shape {
    /// A list of names that users choose.
    pub const NAMES: Shape = Shape::Each(&Shape::Name);
    /// Amounts by name.
    pub const QUANTITIES: Shape = Shape::Named(&Shape::Leaf);
    /// A label selector.
    pub const SELECTOR: Shape = Shape::Fields(&[
        ("matchLabels", Shape::Labels),
        (
            "matchExpressions",
            Shape::Each(&Shape::Fields(&[
                ("key", Shape::Name),
                ("operator", Shape::Leaf),
                ("values", Shape::NAMES),
            ])),
        ),
    ]);
}
