//! Names that Conductor writes into the metadata of objects: labels, annotations and finalizers.
//! The condition words are in `reasons`.

/// Annotation on a class: `"true"` makes it the default for claims that name no class.
pub const IS_DEFAULT_CLASS: &str = "conductor.io/is-default-class";
/// Annotation on a claim: the `SchedulingProfile` to decide by.
pub const SCHEDULING_PROFILE: &str = "conductor.io/scheduling-profile";
/// Annotation on a resource that Conductor created: the class it came from.
pub const PROVISIONED_BY: &str = "conductor.io/provisioned-by";

/// Annotation on a resource that Conductor created: the UID of the claim it was made for.
pub const PROVISIONED_FOR: &str = "conductor.io/provisioned-for";

/// Label on every part of a resource's implementation: the resource's name, or a digest of a longer one.
pub const RESOURCE: &str = "conductor.io/resource";
/// Label on every part of a resource's implementation: which part it is, `main` for the only one.
pub const PART: &str = "conductor.io/part";
/// Annotation on every part of a resource's implementation: the UID of the resource that it belongs to.
pub const RESOURCE_UID: &str = "conductor.io/resource-uid";

/// Annotation on every part of a resource's implementation: a digest of what it was last made from.
pub const RENDERED: &str = "conductor.io/rendered";

/// The profile that applies where no annotation names one.
pub const DEFAULT_PROFILE: &str = "default";

/// Finalizer on a claim, set before the first outside effect and kept until its resource is released.
pub const CLAIM_PROTECTION: &str = "conductor.io/claim-protection";
/// Finalizer on a resource, kept while claims hold it or its implementation must go first.
pub const RESOURCE_PROTECTION: &str = "conductor.io/resource-protection";
/// Finalizer on a class, kept while resources of it exist.
pub const CLASS_PROTECTION: &str = "conductor.io/class-protection";

/// The short name that all kinds share: `kubectl get conductor`.
pub const CATEGORY: &str = "conductor";
