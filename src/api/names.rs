//! Labels, annotations and finalizers that Conductor reads and writes. `reasons` has the condition types and reasons.

/// Annotation on a class: `"true"` makes it the default for claims without a class.
pub const IS_DEFAULT_CLASS: &str = "conductor.io/is-default-class";
/// Annotation on a claim: the `SchedulingProfile` that applies to it.
pub const SCHEDULING_PROFILE: &str = "conductor.io/scheduling-profile";
/// Annotation on a provisioned resource: its class.
pub const PROVISIONED_BY: &str = "conductor.io/provisioned-by";

/// Annotation on a provisioned resource: the UID of the claim that it was provisioned for.
pub const PROVISIONED_FOR: &str = "conductor.io/provisioned-for";

/// Annotation on an imported resource: the UID of the object that it represents.
pub const IMPORTED: &str = "conductor.io/imported";

/// Label on every part of a resource's implementation: the resource's name, or a digest of a longer one.
pub const RESOURCE: &str = "conductor.io/resource";
/// Label on every part of a resource's implementation: the id of the part, `main` for a single one.
pub const PART: &str = "conductor.io/part";
/// Annotation on every part of a resource's implementation: the UID of the resource.
pub const RESOURCE_UID: &str = "conductor.io/resource-uid";

/// Annotation on every part of a resource's implementation: a digest of the manifest that it was last written from.
pub const RENDERED: &str = "conductor.io/rendered";

/// The profile of claims without that annotation.
pub const DEFAULT_PROFILE: &str = "default";

/// Finalizer on a claim, set before the first external effect and removed when its resource is released.
pub const CLAIM_PROTECTION: &str = "conductor.io/claim-protection";
/// Finalizer on a resource, removed when no claim holds it and its implementation is deleted.
pub const RESOURCE_PROTECTION: &str = "conductor.io/resource-protection";
/// Finalizer on a class, removed when no resources of it exist.
pub const CLASS_PROTECTION: &str = "conductor.io/class-protection";

/// The category of all kinds: `kubectl get conductor`.
pub const CATEGORY: &str = "conductor";

/// Label on every object that is published for a claim.
pub const PUBLISHED: &str = "conductor.io/published";
/// Annotation on every object that is published for a claim: the UID of the claim.
pub const CLAIM_UID: &str = "conductor.io/claim-uid";
/// Annotation on every object that is published for a claim: a digest of what it was written from.
pub const MADE_FROM: &str = "conductor.io/made-from";
/// Annotation on every object that is published for a claim: the number of objects that were published together.
pub const TOGETHER: &str = "conductor.io/published-together";
/// Annotation on every object that is published for a claim: a hash of its content, so that workloads can roll out with it.
pub const CONTENT_HASH: &str = "conductor.io/content-hash";
/// Annotation on the ConfigMap that is published for a claim: the comma-separated names of its Secrets. Written before the
/// Secret, because Conductor cannot list Secrets and would forget a name that is not recorded.
pub const PUBLISHED_SECRETS: &str = "conductor.io/published-secrets";
/// Label that an administrator sets on a Secret in the system namespace: `"true"` allows to publish it to the claims of a
/// resource that refers to it.
pub const PUBLISHABLE: &str = "conductor.io/publishable";
