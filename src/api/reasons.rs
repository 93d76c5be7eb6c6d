//! The words of a status: condition types and reasons, written once and shown everywhere.
//! Messages are composed where the decision is made; only the machine-readable words are here.

/// Condition: both sides of the binding agree.
pub const BOUND: &str = "Bound";
/// Condition: of a claim, its connection is published and complete; of a resource, it can be used.
pub const READY: &str = "Ready";
/// Condition of quotas, limits and profiles: the object could be read and is in force.
pub const ACCEPTED: &str = "Accepted";

/// Reasons of the claim's `Bound` condition.
pub mod bound {
    /// True: the resource is this claim's.
    pub const BOUND: &str = "Bound";
    /// True: the resource is this claim's, and lacks what the claim asks for now; nothing is done about that.
    pub const NOT_AS_ASKED: &str = "NotAsAsked";
    /// An Event, not a condition: the `resourceName` of a bound claim was edited, and is restored.
    pub const RESOURCE_NAME_RESTORED: &str = "ResourceNameRestored";
    /// An Event, not a condition: a claim became exclusive while others hold its resource too.
    pub const SHARED_WITH_OTHERS: &str = "SharedWithOthers";
    /// False: not looked at yet.
    pub const SCHEDULING: &str = "Scheduling";
    /// False: a resource is being made from the class.
    pub const PROVISIONING: &str = "Provisioning";
    /// False: making a resource failed; the message says what would help.
    pub const PROVISIONING_FAILED: &str = "ProvisioningFailed";
    /// False: no resource fits and no class may provision; the message counts why.
    pub const NO_MATCH: &str = "NoMatch";
    /// False: the class that the claim names does not exist.
    pub const CLASS_NOT_FOUND: &str = "ClassNotFound";
    /// False: a quota is used up; the message has the numbers.
    pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
    /// False: the requests are outside the namespace's limits.
    pub const LIMITS_EXCEEDED: &str = "LimitsExceeded";
    /// False: the claim cannot be read, such as an unreadable version range.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// False: the resource named by `resourceName` does not exist yet.
    pub const WAITING_FOR_RESOURCE: &str = "WaitingForResource";
    /// False: the resource named by `resourceName` does not fit.
    pub const RESOURCE_MISMATCH: &str = "ResourceMismatch";
    /// False: the resource named by `resourceName` is held by, or reserved for, another claim.
    pub const RESOURCE_TAKEN: &str = "ResourceTaken";
    /// False: the bound resource was deleted. Ends only when the same resource holds the claim again.
    pub const LOST: &str = "Lost";
    /// False: the bound resource holds another claim. Ends only when it holds this one again.
    pub const MISBOUND: &str = "Misbound";
    /// False: the claim is being deleted and is left alone.
    pub const DELETING: &str = "Deleting";
    /// Of an Event: too many resources are missing at once for their claims to become Lost.
    pub const RESOURCES_MISSING: &str = "ResourcesMissing";
    /// Of an Event: the resource is in a namespace that this controller does not manage.
    pub const NOT_MANAGED: &str = "NotManaged";

    /// Every reason of this condition.
    pub const ALL: &[&str] = &[
        BOUND,
        NOT_AS_ASKED,
        SCHEDULING,
        PROVISIONING,
        PROVISIONING_FAILED,
        NO_MATCH,
        CLASS_NOT_FOUND,
        QUOTA_EXCEEDED,
        LIMITS_EXCEEDED,
        INVALID_SPEC,
        WAITING_FOR_RESOURCE,
        RESOURCE_MISMATCH,
        RESOURCE_TAKEN,
        LOST,
        MISBOUND,
        DELETING,
    ];

    /// The reason that is spelled `word`; any other counts as scheduling.
    pub fn find(word: &str) -> &'static str {
        ALL.iter().copied().find(|known| *known == word).unwrap_or(SCHEDULING)
    }
}

/// Reasons of the claim's `Ready` condition.
pub mod ready {
    /// True: the connection is published and complete.
    pub const CONNECTION_PUBLISHED: &str = "ConnectionPublished";
    /// False: the claim is not bound.
    pub const NOT_BOUND: &str = "NotBound";
    /// False: the implementation has not told everything that the connection needs.
    pub const CONNECTION_INCOMPLETE: &str = "ConnectionIncomplete";
    /// False: the connection is on its way to the claim.
    pub const PUBLISHING: &str = "Publishing";
    /// False: the Secret that the connection comes from may not be published.
    pub const SECRET_NOT_ALLOWED: &str = "SecretNotAllowed";
    /// False: an object of that name exists and is not ours.
    pub const SECRET_CONFLICT: &str = "SecretConflict";
    /// False: the login that is published was revoked, and there is no other yet.
    pub const LOGIN_REVOKED: &str = "LoginRevoked";
}

/// Reasons of the resource's `Ready` condition.
pub mod resource {
    /// True: it can be used.
    pub const AVAILABLE: &str = "Available";
    /// False: its implementation is being created.
    pub const CREATING: &str = "Creating";
    /// False: the implementation exists and is not ready yet.
    pub const IMPLEMENTATION_NOT_READY: &str = "ImplementationNotReady";
    /// False: the implementation's kind is not installed in the cluster.
    pub const KIND_NOT_INSTALLED: &str = "KindNotInstalled";
    /// False: objects of the implementation's kind cannot be made: we may not, or they live in no namespace.
    pub const KIND_NOT_ALLOWED: &str = "KindNotAllowed";
    /// False: the implementation was ready once and is gone; it is not replaced by an empty one.
    pub const IMPLEMENTATION_GONE: &str = "ImplementationGone";
    /// False, for good: it was not ready in the time that its class gives it.
    pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
    /// An Event, not a condition: the resource is gone, and what implemented it is not.
    pub const IMPLEMENTATION_RETAINED: &str = "ImplementationRetained";
    /// False: the implementation says that it has failed.
    pub const IMPLEMENTATION_FAILED: &str = "ImplementationFailed";
    /// False: an object of the implementation's name exists and is not ours.
    pub const NAME_CONFLICT: &str = "NameConflict";
    /// False: the template cannot be rendered.
    pub const TEMPLATE_ERROR: &str = "TemplateError";
    /// False: the API does not take what was rendered; it is tried again.
    pub const IMPLEMENTATION_REFUSED: &str = "ImplementationRefused";
    /// False: the spec cannot be read.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// False: its last claim is gone; the reclaim policy decides.
    pub const RELEASED: &str = "Released";
    /// False: reclaiming failed; it is tried again.
    pub const RECLAIM_FAILED: &str = "ReclaimFailed";
    /// False: it and its implementation are being deleted.
    pub const DELETING: &str = "Deleting";

    /// The reason spelled `word`, where it keeps a resource from being made until somebody does something.
    pub fn find_trouble(word: &str) -> Option<&'static str> {
        let troubles =
            [KIND_NOT_INSTALLED, KIND_NOT_ALLOWED, NAME_CONFLICT, TEMPLATE_ERROR, IMPLEMENTATION_REFUSED];
        troubles.into_iter().find(|known| *known == word)
    }
}

/// Reasons of the `Accepted` condition.
pub mod accepted {
    /// True: read and in force.
    pub const ACCEPTED: &str = "Accepted";
    /// False: cannot be read; the message says which field.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// False: names a plugin or score that does not exist.
    pub const UNKNOWN_PLUGIN: &str = "UnknownPlugin";
}
