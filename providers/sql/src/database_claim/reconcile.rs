//! Reconciles one DatabaseClaim: maintains its claim, its Secret and its status, and deletes them with it.
//! `conductor_sql_plan::database_claim` reads its spec.

use super::{DatabaseClaims, database_claims};
use crate::api_client::login_name;
use crate::error::Error;
use crate::login_secrets::text;
use crate::notice::{INVALID_SPEC, NOT_AS_ASKED};
use crate::reconcile::Next;
use crate::rotation::status_patch;
use crate::{finalizer, informers, server};
use conductor::api::class::{ClassCapacity, ClassFields, RelationalDatabaseClassBody};
use conductor::api::database::front::{ConnectionInfo, DatabaseClaim, DatabaseClaimStatus};
use conductor::api::database::logical::{LogicalDatabaseStatus, ServerKind};
use conductor::api::database::server::{LocalServerSpec, Offer};
use conductor::api::database::{DATABASE_ID, DELIVERED_IN, ENGINE_VERSION, PLACED_BY};
use conductor::model::Quantity;
use conductor_sql_plan::database_claim::{Bound, ClaimRequest, Instance, choose};
use conductor_sql_plan::names::Identifier;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DynamicObject};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Kept until its claim is deleted.
const FINALIZER: &str = "database.conductor.io/front";
/// Resync period of a DatabaseClaim that is served.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// Pause between two checks of its claim's deletion.
const END: Duration = Duration::from_millis(500);

impl DatabaseClaims {
    pub(super) async fn reconcile(&self, key: &str) -> Result<Next, Error> {
        let cluster = &self.provider.cluster;
        let Some((namespace, name)) = key.split_once('/') else { return Ok(Next::Rest) };
        let Some(found) = cluster.find(&cluster.others(&database_claims(), namespace), name).await? else {
            return Ok(Next::Rest);
        };
        let database_claim: DatabaseClaim =
            found.try_parse().map_err(|_| Error::Invalid("the DatabaseClaim cannot be read".to_owned()))?;
        if database_claim.metadata.deletion_timestamp.is_some() {
            return self.end(&database_claim).await;
        }
        match self.serve(&database_claim).await {
            Ok(status) => {
                let is_served = status.connection_info.is_some();
                if is_served {
                    self.count_refusal(&database_claim, &status.error);
                }
                let pause = if is_served { Next::After(LOOK_AGAIN) } else { Next::Rest };
                let warning = is_served.then_some(NOT_AS_ASKED);
                self.report(&database_claim, status, warning).await.map(|()| pause)
            }
            Err(Error::Invalid(why)) => {
                // It waits for a user to change its spec.
                self.count_refusal(&database_claim, &why);
                let status = DatabaseClaimStatus { error: why, ..DatabaseClaimStatus::default() };
                self.report(&database_claim, status, Some(INVALID_SPEC)).await.map(|()| Next::Rest)
            }
            Err(error) => Err(error),
        }
    }

    /// Counts what is newly refused, once.
    fn count_refusal(&self, database_claim: &DatabaseClaim, error: &str) {
        let known = database_claim.status.as_ref().map(|status| status.error.as_str());
        if !error.is_empty() && known != Some(error) {
            self.provider.metrics.claim_refused();
        }
    }

    async fn serve(&self, database_claim: &DatabaseClaim) -> Result<DatabaseClaimStatus, Error> {
        let request = ClaimRequest::read(&database_claim.name_any(), &database_claim.spec)
            .map_err(|error| Error::Invalid(error.to_string()))?;
        let claim = self.claim(database_claim, &request).await?;
        let label = informers::text(&claim, "/spec/selector/matchLabels/instance").to_owned();
        let mut status = DatabaseClaimStatus { matched_label: Some(label), ..DatabaseClaimStatus::default() };
        let uid = claim.uid().unwrap_or_default();
        let record = self.provider.informers.record_of(&uid);
        let of_record: LogicalDatabaseStatus = record
            .and_then(|record| serde_json::from_value(record.data.get("status")?.clone()).ok())
            .unwrap_or_default();
        status.db_created_at = of_record.created_at;
        let cluster = &self.provider.cluster;
        let login = cluster.find(&cluster.secrets(), &login_name(&uid)).await?;
        let Some(login) = login.filter(|login| text(login, "password").is_some()) else {
            status.error = waits_for(&claim);
            return Ok(status);
        };
        let keys = ["username", "password", "host", "port", "database", "sslMode", "uri"];
        let keys: BTreeMap<String, String> =
            keys.into_iter().filter_map(|key| Some((key.to_owned(), text(&login, key)?))).collect();
        let updated_at = of_record.rotated_at.unwrap_or_default();
        status.error =
            self.deliver(database_claim, &request, &claim, request.to_secret(&keys, &updated_at)).await?;
        let of = |key: &str| keys.get(key).cloned().unwrap_or_default();
        let updated_at = Some(updated_at).filter(|at| !at.is_empty());
        status.connection_info_updated_at.clone_from(&updated_at);
        status.connection_info = Some(vec![ConnectionInfo {
            username: of("username"),
            host: of("host"),
            port: of("port"),
            database_name: of("database"),
            user_updated_at: updated_at,
        }]);
        Ok(status)
    }

    /// Writes the Secret under the requested name, and removes the one with the earlier name. Where a foreign Secret has the
    /// new name, the earlier one stays. Returns the problem, if any.
    async fn deliver(
        &self,
        database_claim: &DatabaseClaim,
        request: &ClaimRequest,
        claim: &DynamicObject,
        keys: BTreeMap<String, String>,
    ) -> Result<String, Error> {
        let instances = self.instances();
        let bound = Bound {
            placed_by: claim.annotations().get(PLACED_BY).and_then(|text| serde_json::from_str(text).ok()),
            resource: informers::text(claim, "/status/resourceRef/name"),
            class: informers::text(claim, "/spec/class"),
            instances: &instances,
        };
        let too_late = request.find_too_late(&claim.data["spec"], &bound);
        let before = claim.annotations().get(DELIVERED_IN).filter(|name| **name != request.secret);
        match (self.publish(database_claim, &request.secret, keys.clone()).await, before) {
            (Ok(()), None) => Ok(too_late.unwrap_or_default()),
            (Ok(()), Some(before)) => {
                self.remove_secret(database_claim, before).await?;
                // Last: from here on the change of logins waits for the new one only.
                self.edit(claim, json!({"metadata": {"annotations": {DELIVERED_IN: request.secret}}}))
                    .await?;
                Ok(too_late.unwrap_or_default())
            }
            (Err(Error::Invalid(why)), Some(before)) => {
                self.publish(database_claim, before, keys).await?;
                Ok(format!("{why}; until then it is Secret {before}"))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Merges into the claim, as it was read.
    async fn edit(&self, claim: &DynamicObject, mut change: Value) -> Result<DynamicObject, Error> {
        let cluster = &self.provider.cluster;
        let api = cluster.others(&informers::claims(), &claim.namespace().unwrap_or_default());
        change["metadata"]["resourceVersion"] = json!(claim.resource_version());
        cluster.merge(&api, &claim.name_any(), change).await
    }

    /// Removes a Secret of ours.
    async fn remove_secret(&self, database_claim: &DatabaseClaim, name: &str) -> Result<(), Error> {
        let cluster = &self.provider.cluster;
        let secrets: Api<Secret> = cluster.secrets_in(&database_claim.namespace().unwrap_or_default());
        match cluster.find(&secrets, name).await? {
            Some(secret) if secret.labels().get(DATABASE_ID) == database_claim.uid().as_ref() => {
                cluster.may_destroy().await?;
                cluster.delete(&secrets, name, secret.uid()).await
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The claim of a DatabaseClaim: made where it is not there, brought in line while nothing is bound to it. Then only
    /// what becomes of its database can still be changed.
    async fn claim(
        &self,
        database_claim: &DatabaseClaim,
        request: &ClaimRequest,
    ) -> Result<DynamicObject, Error> {
        let cluster = &self.provider.cluster;
        let (namespace, name) = (database_claim.namespace().unwrap_or_default(), database_claim.name_any());
        let api = cluster.others(&informers::claims(), &namespace);
        let found = cluster.find(&api, &name).await?;
        let uid = database_claim.uid().unwrap_or_default();
        if let Some(found) = &found {
            if !found.owner_references().iter().any(|owner| owner.uid == uid) {
                return Err(Error::Invalid(format!(
                    "RelationalDatabaseClaim {name} exists and belongs to another owner: rename one of the two"
                )));
            }
            if informers::text(found, "/status/phase") == "Bound" {
                return match self.bound_change(found, request).await? {
                    Some(change) => self.edit(found, change).await,
                    None => Ok(found.clone()),
                };
            }
        }
        let instances = self.instances();
        let instance = choose(request, &instances).map_err(Error::Invalid)?;
        self.protect(database_claim).await?;
        let spec = request.to_claim(instance);
        let annotations = json!({DELIVERED_IN: request.secret, PLACED_BY: request.placement().to_string()});
        match found {
            None => {
                // Written now, its claim would be bound to another server, where no empty database takes its place.
                if let Some(resource) = self.provider.informers.closed_resource_of_restored(&namespace, &name)
                {
                    return Err(Error::Refused(format!(
                        "the database that was restored for it is on {resource}, which does not take claims again yet"
                    )));
                }
                let claim = json!({
                    "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
                    "metadata": {"name": name, "namespace": namespace, "annotations": annotations,
                                 "ownerReferences": [database_claim.controller_owner_ref(&())]},
                    "spec": spec,
                });
                let claim = serde_json::from_value(claim)
                    .map_err(|_| Error::Invalid("the claim cannot be written".to_owned()))?;
                cluster.create(&api, &claim).await
            }
            Some(found) if differs(&found, &spec) => {
                let change = json!({
                    "metadata": {"resourceVersion": found.resource_version(), "annotations": annotations},
                    "spec": spec,
                });
                cluster.merge(&api, &name, change).await
            }
            Some(found) => Ok(found),
        }
    }

    /// The edits that a bound claim can still take: its reclaim policy, and its names while it has no database.
    async fn bound_change(
        &self,
        found: &DynamicObject,
        request: &ClaimRequest,
    ) -> Result<Option<Value>, Error> {
        let mut change = json!({});
        let is = |name: &str| {
            let pointer = format!("/spec/parameters/{name}");
            found.data.pointer(&pointer).and_then(Value::as_str).map(str::to_owned)
        };
        let mut wish = |name: &str, desired: Option<&str>| {
            if is(name).as_deref() != desired {
                change["spec"]["parameters"][name] = json!(desired);
            }
        };
        wish("reclaimPolicy", request.reclaim_policy());
        if !self.has_database(found).await? {
            wish("databaseName", request.database.as_ref().map(Identifier::as_str));
            wish("userName", request.user.as_ref().map(Identifier::as_str));
        }
        if !found.annotations().contains_key(PLACED_BY) {
            change["metadata"]["annotations"][PLACED_BY] = json!(request.placement().to_string());
        }
        Ok((change != json!({})).then_some(change))
    }

    /// Whether a claim's database was ever created, verified against the API.
    async fn has_database(&self, claim: &DynamicObject) -> Result<bool, Error> {
        let record = claim.uid().and_then(|uid| self.provider.informers.record_of(&uid));
        let Some(record) = record else { return Ok(false) };
        let cluster = &self.provider.cluster;
        let live = cluster.find(&cluster.records(), &record.name_any()).await?;
        Ok(live.and_then(|record| record.status?.created_at).is_some())
    }

    /// The servers and classes with an instance label.
    fn instances(&self) -> Vec<Instance> {
        let read = |(reference, object): (_, std::sync::Arc<DynamicObject>)| {
            let found = server::read(&reference, &object).ok();
            let offer = match &found {
                Some(server) => server.offer.clone(),
                // A local server that does not run yet has its label all the same.
                None if reference.kind == ServerKind::LocalServer => {
                    let spec: LocalServerSpec =
                        serde_json::from_value(object.data.get("spec")?.clone()).ok()?;
                    spec.offer
                }
                None => None,
            };
            let Offer { labels, capacity, .. } = offer?;
            let labels = labels.unwrap_or_default();
            let capacity = json!(capacity.unwrap_or_default());
            Some(Instance {
                name: object.name_any(),
                label: labels.get("instance")?.clone(),
                shape: labels.get("shape").cloned(),
                storage: capacity.get("storage").and_then(|storage| Quantity::from_json(storage).ok()),
                host: found.as_ref().map(|server| server.host.clone()).unwrap_or_default(),
                port: found.as_ref().map(|server| server.port).unwrap_or_default(),
                engine: found.as_ref().map(|server| server.dialect.word().to_owned()),
                version: object.annotations().get(ENGINE_VERSION).cloned(),
                is_on_demand: false,
            })
        };
        let servers = self.provider.informers.servers().into_iter().filter_map(read);
        let classes = self.classes.all().into_iter().filter_map(|class| on_demand(&class));
        servers.chain(classes).collect()
    }

    /// Writes the Secret, if it changed. A foreign Secret is left alone.
    async fn publish(
        &self,
        database_claim: &DatabaseClaim,
        name: &str,
        keys: BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let cluster = &self.provider.cluster;
        let api = cluster.secrets_in(&database_claim.namespace().unwrap_or_default());
        let found = cluster.find(&api, name).await?;
        let uid = database_claim.uid().unwrap_or_default();
        if found.as_ref().is_some_and(|found| found.labels().get(DATABASE_ID) != Some(&uid)) {
            return Err(Error::Invalid(format!(
                "spec.SecretName: Secret {name} exists and belongs to another owner: rename it, or write another name"
            )));
        }
        let data: BTreeMap<String, ByteString> =
            keys.into_iter().map(|(key, value)| (key, ByteString(value.into_bytes()))).collect();
        if found.as_ref().is_some_and(|found| found.data.as_ref() == Some(&data)) {
            return Ok(());
        }
        let labels = BTreeMap::from([
            (DATABASE_ID.to_owned(), uid),
            ("app.kubernetes.io/managed-by".to_owned(), "conductor".to_owned()),
        ]);
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels),
            owner_references: database_claim.controller_owner_ref(&()).map(|owner| vec![owner]),
            resource_version: found.as_ref().and_then(Secret::resource_version),
            ..ObjectMeta::default()
        };
        let secret =
            Secret { metadata, data: Some(data), type_: Some("Opaque".to_owned()), ..Secret::default() };
        match found {
            None => cluster.create(&api, &secret).await.map(drop),
            Some(_) => cluster.replace(&api, &secret).await.map(drop),
        }
    }

    /// Deletes its claim first, then its Secret, then releases the DatabaseClaim itself.
    async fn end(&self, database_claim: &DatabaseClaim) -> Result<Next, Error> {
        let cluster = &self.provider.cluster;
        let (namespace, name) = (database_claim.namespace().unwrap_or_default(), database_claim.name_any());
        let uid = database_claim.uid().unwrap_or_default();
        if !database_claim.finalizers().iter().any(|one| one == FINALIZER) {
            return Ok(Next::Rest);
        }
        let claims = cluster.others(&informers::claims(), &namespace);
        let claim = cluster.find(&claims, &name).await?;
        let is_ours = |claim: &DynamicObject| claim.owner_references().iter().any(|owner| owner.uid == uid);
        if let Some(claim) = claim.filter(is_ours) {
            if claim.metadata.deletion_timestamp.is_none() {
                if let Ok(request) = ClaimRequest::read(&name, &database_claim.spec)
                    && let Some(pause) = self.settle_end(&claim, &request).await?
                {
                    return Ok(Next::After(pause));
                }
                cluster.may_destroy().await?;
                cluster.delete(&claims, &name, claim.uid()).await?;
            }
            return Ok(Next::After(END));
        }
        if let Ok(request) = ClaimRequest::read(&name, &database_claim.spec) {
            self.remove_secret(database_claim, &request.secret).await?;
        }
        let api = cluster.others(&database_claims(), &namespace);
        finalizer::remove(cluster, &api, database_claim, FINALIZER, None).await.map(|()| Next::Rest)
    }

    /// The reclaim policy of its database must be recorded before its claim is deleted: afterwards it cannot be read.
    async fn settle_end(
        &self,
        claim: &DynamicObject,
        request: &ClaimRequest,
    ) -> Result<Option<Duration>, Error> {
        let record = claim.uid().and_then(|uid| self.provider.informers.record_of(&uid));
        if request.reclaim_policy().is_none() || record.is_none() {
            return Ok(None);
        }
        if informers::text(claim, "/spec/parameters/reclaimPolicy") != "Retain" {
            self.edit(claim, json!({"spec": {"parameters": {"reclaimPolicy": "Retain"}}})).await?;
            return Ok(Some(END));
        }
        let is_settled =
            record.is_some_and(|record| informers::text(&record, "/spec/reclaimPolicy") == "Retain");
        Ok((!is_settled).then_some(END))
    }

    /// Adds the finalizer: from here on it is deleted only after its claim.
    async fn protect(&self, database_claim: &DatabaseClaim) -> Result<(), Error> {
        let cluster = &self.provider.cluster;
        let api = cluster.others(&database_claims(), &database_claim.namespace().unwrap_or_default());
        finalizer::add(cluster, &api, database_claim, FINALIZER).await
    }

    /// Writes its status, if it changed, with an Event of this reason for an error.
    async fn report(
        &self,
        database_claim: &DatabaseClaim,
        status: DatabaseClaimStatus,
        warning: Option<&str>,
    ) -> Result<(), Error> {
        if database_claim.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let cleared = ["dbCreatedAt", "connectionInfoUpdatedAt", "matchedLabel", "connectionInfo"];
        let change = status_patch(&status, &cleared);
        let cluster = &self.provider.cluster;
        let api = cluster.others(&database_claims(), &database_claim.namespace().unwrap_or_default());
        cluster.merge_status::<DynamicObject>(&api, &database_claim.name_any(), change).await?;
        let known = database_claim.status.as_ref().map(|status| status.error.as_str()).unwrap_or_default();
        // No Event for what it only waits for.
        if let Some(reason) = warning.filter(|_| known != status.error && !status.error.is_empty()) {
            cluster.warn(database_claim.object_ref(&()), reason, &status.error).await;
        }
        Ok(())
    }
}

/// A class that creates instances with a label.
fn on_demand(class: &DynamicObject) -> Option<Instance> {
    let fields = class_fields(class).filter(|_| class.metadata.deletion_timestamp.is_none())?;
    let labels = fields.labels.unwrap_or_default();
    let most = match fields.capacity.unwrap_or_default().remove("storage") {
        Some(ClassCapacity::Exactly(amount)) => Some(amount),
        Some(ClassCapacity::Range(range)) => range.max,
        None => None,
    };
    Some(Instance {
        name: class.name_any(),
        is_on_demand: true,
        label: labels.get("instance")?.clone(),
        shape: labels.get("shape").cloned(),
        storage: most.and_then(|most| Quantity::from_json(&json!(most)).ok()),
        engine: fields.engine,
        ..Instance::default()
    })
}

/// The fields of a class, in either notation.
pub(super) fn class_fields(class: &DynamicObject) -> Option<ClassFields> {
    let body: RelationalDatabaseClassBody = serde_json::from_value(class.data.clone()).ok()?;
    Some(body.effective())
}

/// What a claim reports that it waits for.
fn waits_for(claim: &DynamicObject) -> String {
    let conditions = claim.data.pointer("/status/conditions").and_then(Value::as_array);
    let not_so = |condition: &&Value| condition["status"] != "True";
    let first = conditions.into_iter().flatten().find(not_so);
    let message = first.and_then(|condition| condition["message"].as_str()).unwrap_or_default();
    // The claim is ours; its user writes the fields of the DatabaseClaim.
    let message = message.replace("parameters.databaseName", "spec.DatabaseName");
    let message = message.replace("parameters.userName", "spec.Username");
    if message.is_empty() { "it waits for its database".to_owned() } else { message }
}

/// Whether a claim's spec differs from the desired one.
fn differs(found: &DynamicObject, spec: &Value) -> bool {
    let fields = spec.as_object().into_iter().flatten();
    fields.into_iter().any(|(key, value)| found.data.pointer(&format!("/spec/{key}")) != Some(value))
}
