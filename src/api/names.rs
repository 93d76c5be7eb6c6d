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

/// Annotation on a resource that stands for something that was imported: the UID of what it stands for.
pub const IMPORTED: &str = "conductor.io/imported";

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

/// Label on everything that is published for a claim.
pub const PUBLISHED: &str = "conductor.io/published";
/// Annotation on everything that is published for a claim: the claim's UID.
pub const CLAIM_UID: &str = "conductor.io/claim-uid";
/// Annotation on everything that is published for a claim: a digest of what it was made from.
pub const MADE_FROM: &str = "conductor.io/made-from";
/// Annotation on everything that is published for a claim: how many objects were published together.
pub const TOGETHER: &str = "conductor.io/published-together";
/// Annotation on everything that is published for a claim: a hash of its content, so that workloads can roll with it.
pub const CONTENT_HASH: &str = "conductor.io/content-hash";
/// Annotation on the ConfigMap that is published for a claim: the names under which a Secret may be published for it,
/// with commas between them. Written before the Secret is: such Secrets are never listed, so a name that is not on record
/// would be forgotten.
pub const PUBLISHED_SECRETS: &str = "conductor.io/published-secrets";
/// Label that an administrator puts on a Secret in the system namespace: `"true"` lets it be published to the claims
/// of a resource that names it.
pub const PUBLISHABLE: &str = "conductor.io/publishable";
