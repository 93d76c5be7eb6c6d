//! Condition types and reasons: each defined once, with what it means and what to do about it.
//! `docs/reference/conditions.md` is generated from this table. Messages are composed where the decision is made.

/// Condition type: claim and resource refer to each other.
pub const BOUND: &str = "Bound";
/// Condition type: the object is usable.
pub const READY: &str = "Ready";
/// Condition type of servers: no login reaches the data of another claim.
pub const ISOLATED: &str = "Isolated";
/// Condition type of logins: they rotate within the deadline.
pub const ROTATION_IN_TIME: &str = "RotationInTime";

/// A reason and its documentation.
#[derive(Clone, Copy, Debug)]
pub struct Reason {
    /// The constant's name, to find its uses.
    pub constant: &'static str,
    /// The reason as in a condition or an Event.
    pub name: &'static str,
    /// The status of the condition (True or False), or the type of the Event (Normal or Warning).
    pub status: &'static str,
    /// When Conductor sets it, and what that means.
    pub meaning: &'static str,
    /// What to do.
    pub action: &'static str,
}

/// The reasons of one condition type, or those that only Events have.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The module with the constants.
    pub module: &'static str,
    /// The kinds that have the condition, or that the Events regard.
    pub kinds: &'static [&'static str],
    /// The condition type; None for Events.
    pub condition: Option<&'static str>,
    /// The reasons, in the order of the reference.
    pub reasons: &'static [Reason],
}

/// Declares a module of constants for each group of reasons, and [`TABLES`] with all of them.
macro_rules! tables {
    ($(
        $(#[$doc:meta])*
        $module:ident of $kinds:expr, $condition:expr => {
            $($constant:ident = $name:literal, $status:ident: $meaning:literal, $action:literal;)*
        }
    )*) => {
        $(
            $(#[$doc])*
            pub mod $module {
                $(
                    #[doc = $meaning]
                    pub const $constant: &str = $name;
                )*

                /// Each of them with its documentation.
                pub const ALL: &[super::Reason] = &[$(super::Reason {
                    constant: stringify!($constant),
                    name: $name,
                    status: stringify!($status),
                    meaning: $meaning,
                    action: $action,
                }),*];
            }
        )*

        /// All reasons.
        pub const TABLES: &[Table] = &[$(Table {
            module: stringify!($module),
            kinds: &$kinds,
            condition: $condition,
            reasons: $module::ALL,
        }),*];
    };
}

tables! {
    /// Reasons of the claim's `Bound` condition.
    bound of ["RelationalDatabaseClaim"], Some(BOUND) => {
        BOUND = "Bound", True:
            "Claim and resource refer to each other.",
            "Nothing.";
        NOT_AS_ASKED = "NotAsAsked", True:
            "The claim is bound, and was edited since to require what its resource does not have. The edit has no effect.",
            "Revert the edit, or create a new claim with it and move the data. The message names the fields.";
        SCHEDULING = "Scheduling", False:
            "The claim has no decision yet.",
            "Wait. If it persists, check that the controller runs and leads: its /readyz, its logs.";
        PROVISIONING = "Provisioning", False:
            "A resource is being provisioned from a class, and is not Available yet.",
            "Wait. The message names the resource and what it waits for.";
        PROVISIONING_FAILED = "ProvisioningFailed", False:
            "Provisioning failed with every class that the claim accepts.",
            "Fix what the message names: the class, its template, or the operator that implements it. The claim is retried when the class or its own spec changes.";
        NO_MATCH = "NoMatch", False:
            "No resource fits and no class can provision one. The message counts the candidates by the predicate that rejected them.",
            "Relax the claim as the message suggests, add a resource, or create a class. `conductor sim explain` lists each candidate.";
        QUOTA_EXCEEDED = "QuotaExceeded", False:
            "The claim would exceed a ClaimQuota or ClusterClaimQuota. The message has usage and limit.",
            "Delete claims, request less, or raise the quota. The claim is retried when usage or limit change.";
        LIMITS_EXCEEDED = "LimitsExceeded", False:
            "A request is outside the minimum or maximum of a ClaimLimits in the namespace.",
            "Change the request to a value within the limits.";
        INVALID_SPEC = "InvalidSpec", False:
            "A field of the claim, or the SchedulingProfile that it uses, cannot be parsed, such as an unreadable version range.",
            "Correct the field that the message names.";
        WAITING_FOR_RESOURCE = "WaitingForResource", False:
            "The resource that `spec.resourceName` names does not exist.",
            "Create the resource, or correct or remove `spec.resourceName`.";
        RESOURCE_MISMATCH = "ResourceMismatch", False:
            "The resource that `spec.resourceName` names does not fit the claim.",
            "Change the claim or the resource as the message says.";
        RESOURCE_TAKEN = "ResourceTaken", False:
            "The resource that `spec.resourceName` names is bound to, or reserved for, other claims.",
            "Wait until it is free, or name another resource.";
        LOST = "Lost", False:
            "The bound resource was deleted. Conductor never binds the claim to another one, because the data would differ.",
            "Restore the resource with its claimRefs from a backup, or delete the claim and create a new one.";
        MISBOUND = "Misbound", False:
            "The bound resource refers to another claim and no longer to this one.",
            "Check the claimRefs of the resource for a manual edit. Restore the entry of this claim, or delete the claim and create a new one.";
        DELETING = "Deleting", False:
            "The claim is being deleted.",
            "Wait. Its finalizer is removed when its resource is released.";
    }

    /// Reasons of the claim's `Ready` condition.
    ready of ["RelationalDatabaseClaim"], Some(READY) => {
        CONNECTION_PUBLISHED = "ConnectionPublished", True:
            "The Secret with the connection exists and is complete.",
            "Nothing.";
        NOT_BOUND = "NotBound", False:
            "The claim is not bound any more.",
            "See the reason of the condition Bound.";
        CONNECTION_INCOMPLETE = "ConnectionIncomplete", False:
            "The implementation does not report all values of the connection yet, or the connection of the class is wrong.",
            "Wait if the implementation is starting. Otherwise correct `connection` of the class, or the Secret that it refers to.";
        PUBLISHING = "Publishing", False:
            "The connection is being written, or writing it failed and is retried.",
            "Wait. If it persists, the message and the logs have the error of the API.";
        SECRET_NOT_ALLOWED = "SecretNotAllowed", False:
            "The Secret that the connection comes from may not be published: it does not belong to the implementation.",
            "Label the Secret conductor.io/publishable=\"true\" if claims may read it, or refer to another one.";
        SECRET_CONFLICT = "SecretConflict", False:
            "An object with the name of the claim's Secret, ConfigMap or Service exists and is not Conductor's.",
            "Rename or delete that object, or set `spec.connection.secretName`.";
        LOGIN_REVOKED = "LoginRevoked", False:
            "The published login was revoked after a leak, and its successor is not published yet.",
            "Wait. If it persists, the message names what prevents the new login.";
    }

    /// Reasons of the resource's `Ready` condition.
    resource of ["RelationalDatabase"], Some(READY) => {
        AVAILABLE = "Available", True:
            "Claims can use the resource.",
            "Nothing.";
        CREATING = "Creating", False:
            "The objects of the implementation are being created.",
            "Wait. The message names the object that is missing.";
        IMPLEMENTATION_NOT_READY = "ImplementationNotReady", False:
            "The objects of the implementation exist, and one is not ready yet. The message quotes its status.",
            "Wait. If it persists, check the operator of that object.";
        KIND_NOT_INSTALLED = "KindNotInstalled", False:
            "The kind in the template is not installed in the cluster.",
            "Install the operator with its CRDs, or correct apiVersion and kind of the template.";
        KIND_NOT_ALLOWED = "KindNotAllowed", False:
            "Conductor cannot create objects of the template's kind: its RBAC rights or the allowed kinds forbid it, or the kind is cluster-scoped.",
            "Add the kind to --allow-kinds and to the controller's ClusterRole, or use another kind.";
        IMPLEMENTATION_GONE = "ImplementationGone", False:
            "An object of the implementation was ready once and was deleted. Conductor does not replace it by an empty one.",
            "Restore the object with its data from a backup, or delete the claims and the resource.";
        DEADLINE_EXCEEDED = "DeadlineExceeded", False:
            "The resource did not become ready within the deadline of its class. This is final; the claim's next class is tried.",
            "Check the implementation, then delete the resource. Raise `deadline` of the class if it is too short.";
        IMPLEMENTATION_FAILED = "ImplementationFailed", False:
            "An object of the implementation reports that it failed.",
            "Check the operator of the object that the message names.";
        NAME_CONFLICT = "NameConflict", False:
            "An object with the name of an implementation object exists and belongs to something else.",
            "Delete or rename that object. Conductor then creates its own.";
        TEMPLATE_ERROR = "TemplateError", False:
            "The template cannot be rendered. The message has the field and the expression.",
            "Correct the template of the class.";
        IMPLEMENTATION_REFUSED = "ImplementationRefused", False:
            "The API server or an admission webhook refuses an implementation object. Conductor retries.",
            "Correct the template, or the policy that refuses it. The message quotes the API server.";
        INVALID_SPEC = "InvalidSpec", False:
            "A field of the resource cannot be parsed.",
            "Correct the field that the message names.";
        RELEASED = "Released", False:
            "The last claim was deleted and the policy is Retain: the data is kept, and no claim binds to the resource.",
            "Delete the resource, or reserve it for a claim with an entry without uid in claimRefs.";
        RECLAIM_FAILED = "ReclaimFailed", False:
            "Deleting the implementation failed. Conductor retries.",
            "Remove what the message names, often a finalizer of another controller or a missing right.";
        DELETING = "Deleting", False:
            "The resource and its implementation are being deleted.",
            "Wait. The message names what remains.";
    }

    /// Reasons of the servers' `Ready` condition, beside those of [`provider`].
    server of ["DatabaseServer", "LocalServer"], Some(READY) => {
        READY = "Ready", True:
            "Conductor can create databases on the server.",
            "Nothing.";
        RIGHTS_MISSING = "RightsMissing", False:
            "The administrator's account lacks rights. The message lists them.",
            "Grant the rights as docs/databases.md lists them.";
    }

    /// Reasons of the servers' `Isolated` condition.
    isolated of ["DatabaseServer", "LocalServer"], Some(ISOLATED) => {
        NO_OPEN_GRANTS = "NoOpenGrants", True:
            "No grant of the server gives every login access to a database.",
            "Nothing.";
        OPEN_GRANTS = "OpenGrants", False:
            "A grant of the server gives every login access to databases of claims.",
            "Revoke the grants that the message lists.";
    }

    /// Reasons of the `Ready` condition that both kinds of login have.
    login of ["LogicalDatabase", "DatabaseRole"], Some(READY) => {
        READY = "Ready", True:
            "The application can log in.",
            "Nothing.";
        SECRET_CONFLICT = "SecretConflict", False:
            "An object with the name of the login's Secret exists and is not Conductor's.",
            "Rename or delete that Secret, or use another secretName.";
        LOGIN_REVOKED = "LoginRevoked", False:
            "All logins were revoked after a leak, and the new one is not published yet.",
            "Wait. If it persists, the message names what prevents the new login.";
    }

    /// Reasons of the record's `Ready` condition that only it has.
    logical_database of ["LogicalDatabase"], Some(READY) => {
        RETAINED = "Retained", False:
            "The claim was deleted and the policy is Retain: the database is kept and all logins are locked.",
            "Drop the database by hand when it is not required any more, and delete the record.";
        QUARANTINED = "Quarantined", False:
            "The claim was deleted and the policy is Delete: all logins are locked, and the database is dropped at the time in the message.",
            "Run `conductor undelete` before that time to keep the database.";
        DROPPING = "Dropping", False:
            "The quarantine is over and the database is being dropped.",
            "Wait. It cannot be restored.";
        GONE = "Gone", False:
            "The database is missing on the server although Conductor created it. Conductor does not replace it by an empty one.",
            "Restore the database on the server from a backup, or delete the claim.";
    }

    /// Reasons of the `Ready` condition of a DatabaseRole without a login.
    role of ["DatabaseRole"], Some(READY) => {
        NOT_GRANTED = "NotGranted", False:
            "The claim is in another namespace, and no DatabaseGrant there allows this access.",
            "Create the DatabaseGrant that the message spells out.";
        CLAIM_NOT_FOUND = "ClaimNotFound", False:
            "The claim in `spec.claimRef` does not exist.",
            "Create the claim, or create another DatabaseRole with the right claim.";
        CLAIM_NOT_BOUND = "ClaimNotBound", False:
            "The claim has no database on a DatabaseServer or LocalServer yet.",
            "Wait, or see the Bound condition of the claim.";
        DATABASE_NOT_READY = "DatabaseNotReady", False:
            "The database of the claim is being created, or is retained or in quarantine because its claim was deleted.",
            "Wait, or see the LogicalDatabase.";
        DELETED = "Deleted", False:
            "The DatabaseRole is being deleted and its login dropped.",
            "Wait.";
    }

    /// Reasons of the `RotationInTime` condition.
    rotation of ["LogicalDatabase", "DatabaseRole"], Some(ROTATION_IN_TIME) => {
        ON_TIME = "OnTime", True:
            "The login rotates within its deadline.",
            "Nothing.";
        OVERDUE = "Overdue", False:
            "The rotation is overdue, because sessions still use an old login or because it fails.",
            "Restart the application that the message names, or set rotationDeadlinePolicy to EndSessions.";
    }

    /// Reasons of the `Ready` condition when an operation on a server fails. All are retried with growing pauses.
    provider of ["DatabaseServer", "LocalServer", "LogicalDatabase", "DatabaseRole"], Some(READY) => {
        SERVER_UNREACHABLE = "ServerUnreachable", False:
            "The server does not respond, or not in time.",
            "Check host, port, network policies and the server itself.";
        ADMINISTRATOR_REFUSED = "AdministratorRefused", False:
            "The server refuses the administrator's name or password.",
            "Correct the Secret in `spec.admin.secretName` of the DatabaseServer.";
        SERVER_REFUSES = "ServerRefuses", False:
            "The server refuses a statement: a right is missing, a disk is full, or it is read-only.",
            "Fix what the message quotes from the server.";
        CONNECTION_LIMIT = "ConnectionLimit", False:
            "The server or the database accepts no more connections.",
            "Close connections, or raise the limit of the server.";
        LOGIN_REFUSED = "LoginRefused", False:
            "The server refuses a login that was just created, so it is not published.",
            "Check the server's authentication rules, such as pg_hba.conf, for the new user.";
        WRONG_SERVER = "WrongServer", False:
            "A server with another identity responds at the address. Conductor changes nothing on it.",
            "Check host and port. After a planned move, accept it with the annotation that the message names.";
        API_UNAVAILABLE = "ApiUnavailable", False:
            "The Kubernetes API refuses a request or does not respond.",
            "Check the API server and the RBAC rights of the controller.";
        CONFLICT = "Conflict", False:
            "Another client changed the object at the same time. Conductor retries.",
            "Nothing.";
        INVALID = "Invalid", False:
            "A field of the server, the claim or the role has a value that the server cannot satisfy.",
            "Correct the field that the message names.";
        NOT_LEADING = "NotLeading", False:
            "This process lost leader election during the operation; the new leader retries.",
            "Nothing.";
    }

    /// Reasons that only Events have. The reasons above appear on Events too, when a condition changes.
    event of ["RelationalDatabaseClaim", "RelationalDatabase", "RelationalDatabaseClass", "DatabaseClaim", "Namespace"], None => {
        RESOURCE_NAME_RESTORED = "ResourceNameRestored", Warning:
            "`spec.resourceName` of a bound claim was edited. Conductor restores it, because a bound claim does not move.",
            "Create a new claim for the other resource.";
        SHARED_WITH_OTHERS = "SharedWithOthers", Warning:
            "A bound claim was made exclusive while other claims use its resource. They stay; new ones are kept out.",
            "Delete the other claims, or create a new exclusive claim.";
        NOT_AS_ASKED = "NotAsAsked", Warning:
            "An edit of a DatabaseClaim, or of the parameters of a claim, has no effect.",
            "Revert the edit, or create a new claim.";
        RESOURCES_MISSING = "ResourcesMissing", Warning:
            "More resources are missing at once than --lost-at-once-max allows, so their claims keep their status.",
            "Check the system namespace, the CRDs and the backup that was restored; raise --lost-at-once-max to accept the loss.";
        NOT_MANAGED = "NotManaged", Warning:
            "The resource of a claim is in a namespace that this controller does not manage. The claim stays as it is.",
            "Check --system-namespace of the controllers.";
        STATUS_CONTESTED = "StatusContested", Warning:
            "Another client changes the status of a claim each time that Conductor writes it.",
            "Look for a second controller with another system namespace.";
        WRITE_WITHOUT_EFFECT = "WriteWithoutEffect", Warning:
            "The API accepted a write and the object did not change. Conductor retries with growing pauses.",
            "Look for a mutating webhook, or an older CRD in the cluster: apply `conductor crds`.";
        WRITE_REFUSED = "WriteRefused", Warning:
            "The API refused a write. Conductor retries with growing pauses.",
            "Fix what the message quotes, often a missing right or a policy.";
        BATCH_TOO_LARGE = "BatchTooLarge", Normal:
            "Too many claims are pending for an optimal batch, so they are decided one after another.",
            "Nothing, or set `batch: greedy` in the SchedulingProfile.";
        INVALID_SPEC = "InvalidSpec", Warning:
            "A class, quota, limits, profile or DatabaseClaim cannot be parsed and is not in force.",
            "Correct the field that the message names.";
        FAILED = "Failed", Warning:
            "A resource entered phase Failed. The message is that of its Ready condition.",
            "See the reason of its Ready condition.";
        RELEASED = "Released", Normal:
            "A resource entered phase Released.",
            "See the reason of its Ready condition.";
        IMPLEMENTATION_RETAINED = "ImplementationRetained", Normal:
            "A resource was deleted while its policy is Retain: the objects that implemented it stay.",
            "Delete those objects by hand when their data is not required any more.";
        IN_USE = "InUse", Warning:
            "A class is being deleted and still has resources. It provisions no new ones.",
            "Delete its resources, or recreate the class when it is gone.";
        SIZES_NOT_CHECKED = "SizesNotChecked", Warning:
            "A class neither declares capacity nor uses the requests of the claim, so any request matches it.",
            "Declare `capacity` in the class, or use claim.spec.resources.requests in its template.";
        DEFAULT_NOT_USED = "DefaultNotUsed", Warning:
            "Several classes have the default annotation. The newest is used, not this one.",
            "Remove conductor.io/is-default-class from all but one class.";
        OUTSIDE_SYSTEM_NAMESPACE = "OutsideSystemNamespace", Warning:
            "A class or resource is in another namespace than the system namespace and is ignored.",
            "Create it in the system namespace.";
        SYSTEM_NAMESPACE_TERMINATING = "SystemNamespaceTerminating", Warning:
            "The system namespace is being deleted; nothing can be created in it.",
            "Restore the namespace and its objects from a backup when it is gone.";
    }
}

/// The reason of the claim's `Bound` condition that is spelled `name`; [`bound::SCHEDULING`] for an unknown one.
pub fn known_bound(name: &str) -> &'static str {
    bound::ALL.iter().map(|reason| reason.name).find(|known| *known == name).unwrap_or(bound::SCHEDULING)
}

/// The reason spelled `name`, if it stops a resource from being provisioned until the administrator acts.
pub fn provisioning_obstacle(name: &str) -> Option<&'static str> {
    use resource::{
        IMPLEMENTATION_REFUSED, KIND_NOT_ALLOWED, KIND_NOT_INSTALLED, NAME_CONFLICT, TEMPLATE_ERROR,
    };
    let obstacles =
        [KIND_NOT_INSTALLED, KIND_NOT_ALLOWED, NAME_CONFLICT, TEMPLATE_ERROR, IMPLEMENTATION_REFUSED];
    obstacles.into_iter().find(|known| *known == name)
}
