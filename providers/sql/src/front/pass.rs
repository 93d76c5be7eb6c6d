//! One pass over one DatabaseClaim: its claim is there, its Secret has what its applications know, its status says how
//! it stands; and when it goes, so do they. What it asks for is read in `database::front`.

use super::{Fronts, fronts};
use crate::book::text;
use crate::desk::login_name;
use crate::notice::{INVALID_SPEC, NOT_AS_ASKED};
use crate::pass::Next;
use crate::trouble::Trouble;
use crate::{server, world};
use conductor::api::class::{ClassCapacity, ClassFields, RelationalDatabaseClassBody};
use conductor::api::database::front::{
    ConnectionInfo, DatabaseClaim, DatabaseClaimStatus, FRONT_GROUP, FRONT_VERSION,
};
use conductor::api::database::logical::{LogicalDatabaseStatus, ServerKind};
use conductor::api::database::server::{LocalServerSpec, Offer};
use conductor::api::database::{DATABASE_ID, DELIVERED_IN, ENGINE_VERSION, PLACED_BY};
use conductor::model::Quantity;
use conductor_sql_plan::front::{Asked, Bound, Instance, choose};
use conductor_sql_plan::names::Identifier;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{Api, DynamicObject};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Kept until its claim is gone.
const FINALIZER: &str = "database.conductor.io/front";
/// How often one that is served is looked at where nothing seems to happen.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// How long the end of its claim is waited for before it is looked at again.
const END: Duration = Duration::from_millis(500);

impl Fronts {
    pub(super) async fn pass_over(&self, key: &str) -> Result<Next, Trouble> {
        let desk = &self.provider.desk;
        let Some((namespace, name)) = key.split_once('/') else { return Ok(Next::Rest) };
        let Some(found) = desk.find(&desk.others(&fronts(), namespace), name).await? else {
            return Ok(Next::Rest);
        };
        let front: DatabaseClaim =
            found.try_parse().map_err(|_| Trouble::Invalid("the DatabaseClaim cannot be read".to_owned()))?;
        if front.metadata.deletion_timestamp.is_some() {
            return self.end(&front).await;
        }
        match self.serve(&front).await {
            Ok(status) => {
                let is_served = status.connection_info.is_some();
                if is_served {
                    self.count_refusal(&front, &status.error);
                }
                let pause = if is_served { Next::After(LOOK_AGAIN) } else { Next::Rest };
                let warning = is_served.then_some(NOT_AS_ASKED);
                self.tell(&front, status, warning).await.map(|()| pause)
            }
            Err(Trouble::Invalid(why)) => {
                // It waits for somebody to write something else.
                self.count_refusal(&front, &why);
                let status = DatabaseClaimStatus { error: why, ..DatabaseClaimStatus::default() };
                self.tell(&front, status, Some(INVALID_SPEC)).await.map(|()| Next::Rest)
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// Counts what is newly refused, once.
    fn count_refusal(&self, front: &DatabaseClaim, error: &str) {
        let known = front.status.as_ref().map(|status| status.error.as_str());
        if !error.is_empty() && known != Some(error) {
            self.provider.figures.claim_refused();
        }
    }

    async fn serve(&self, front: &DatabaseClaim) -> Result<DatabaseClaimStatus, Trouble> {
        let asked = Asked::read(&front.name_any(), &front.spec)
            .map_err(|error| Trouble::Invalid(error.to_string()))?;
        let claim = self.claim(front, &asked).await?;
        let label = world::text(&claim, "/spec/selector/matchLabels/instance").to_owned();
        let mut status = DatabaseClaimStatus { matched_label: Some(label), ..DatabaseClaimStatus::default() };
        let uid = claim.uid().unwrap_or_default();
        let record = self.provider.world.record_of(&uid);
        let of_record: LogicalDatabaseStatus = record
            .and_then(|record| serde_json::from_value(record.data.get("status")?.clone()).ok())
            .unwrap_or_default();
        status.db_created_at = of_record.created_at;
        let desk = &self.provider.desk;
        let login = desk.find(&desk.secrets(), &login_name(&uid)).await?;
        let Some(login) = login.filter(|login| text(login, "password").is_some()) else {
            status.error = waits_for(&claim);
            return Ok(status);
        };
        let keys = ["username", "password", "host", "port", "database", "sslMode", "uri"];
        let keys: BTreeMap<String, String> =
            keys.into_iter().filter_map(|key| Some((key.to_owned(), text(&login, key)?))).collect();
        let updated_at = of_record.rotated_at.unwrap_or_default();
        status.error = self.deliver(front, &asked, &claim, asked.to_secret(&keys, &updated_at)).await?;
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

    /// Writes the Secret under the name that is asked for, and removes the one of the name before. Where the new name is
    /// somebody else's, the one before goes on. Says what is wrong, where something is.
    async fn deliver(
        &self,
        front: &DatabaseClaim,
        asked: &Asked,
        claim: &DynamicObject,
        keys: BTreeMap<String, String>,
    ) -> Result<String, Trouble> {
        let instances = self.instances();
        let bound = Bound {
            placed_by: claim.annotations().get(PLACED_BY).and_then(|text| serde_json::from_str(text).ok()),
            resource: world::text(claim, "/status/resourceRef/name"),
            class: world::text(claim, "/spec/class"),
            instances: &instances,
        };
        let too_late = asked.find_too_late(&claim.data["spec"], &bound);
        let before = claim.annotations().get(DELIVERED_IN).filter(|name| **name != asked.secret);
        match (self.publish(front, &asked.secret, keys.clone()).await, before) {
            (Ok(()), None) => Ok(too_late.unwrap_or_default()),
            (Ok(()), Some(before)) => {
                self.remove_secret(front, before).await?;
                // Last: from here on the change of logins waits for the new one only.
                self.edit(claim, json!({"metadata": {"annotations": {DELIVERED_IN: asked.secret}}})).await?;
                Ok(too_late.unwrap_or_default())
            }
            (Err(Trouble::Invalid(why)), Some(before)) => {
                self.publish(front, before, keys).await?;
                Ok(format!("{why}; until then it is Secret {before}"))
            }
            (Err(trouble), _) => Err(trouble),
        }
    }

    /// Merges into the claim, as it was read.
    async fn edit(&self, claim: &DynamicObject, mut change: Value) -> Result<DynamicObject, Trouble> {
        let desk = &self.provider.desk;
        let api = desk.others(&world::claims(), &claim.namespace().unwrap_or_default());
        change["metadata"]["resourceVersion"] = json!(claim.resource_version());
        desk.merge(&api, &claim.name_any(), change).await
    }

    /// Removes a Secret of ours.
    async fn remove_secret(&self, front: &DatabaseClaim, name: &str) -> Result<(), Trouble> {
        let desk = &self.provider.desk;
        let secrets: Api<Secret> = desk.secrets_in(&front.namespace().unwrap_or_default());
        match desk.find(&secrets, name).await? {
            Some(secret) if secret.labels().get(DATABASE_ID) == front.uid().as_ref() => {
                desk.may_destroy().await?;
                desk.delete(&secrets, name, secret.uid()).await
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The claim of a DatabaseClaim: made where it is not there, brought in line while nothing is bound to it. Then only
    /// what becomes of its database can still be changed.
    async fn claim(&self, front: &DatabaseClaim, asked: &Asked) -> Result<DynamicObject, Trouble> {
        let desk = &self.provider.desk;
        let (namespace, name) = (front.namespace().unwrap_or_default(), front.name_any());
        let api = desk.others(&world::claims(), &namespace);
        let found = desk.find(&api, &name).await?;
        let uid = front.uid().unwrap_or_default();
        if let Some(found) = &found {
            if !found.owner_references().iter().any(|owner| owner.uid == uid) {
                return Err(Trouble::Invalid(format!(
                    "RelationalDatabaseClaim {name} exists and is not this claim's: rename one of the two"
                )));
            }
            if world::text(found, "/status/phase") == "Bound" {
                return match self.bound_change(found, asked).await? {
                    Some(change) => self.edit(found, change).await,
                    None => Ok(found.clone()),
                };
            }
        }
        let instances = self.instances();
        let instance = choose(asked, &instances).map_err(Trouble::Invalid)?;
        self.protect(front).await?;
        let spec = asked.to_claim(instance);
        let annotations = json!({DELIVERED_IN: asked.secret, PLACED_BY: asked.placement().to_string()});
        match found {
            None => {
                // Written now, its claim would be bound to another server, where no empty database takes its place.
                if let Some(resource) = self.provider.world.closed_resource_of_restored(&namespace, &name) {
                    return Err(Trouble::Refused(format!(
                        "the database that was restored for it is on {resource}, which does not take claims again yet"
                    )));
                }
                let claim = json!({
                    "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
                    "metadata": {"name": name, "namespace": namespace, "annotations": annotations,
                                 "ownerReferences": [reference(front)]},
                    "spec": spec,
                });
                let claim = serde_json::from_value(claim)
                    .map_err(|_| Trouble::Invalid("the claim cannot be written".to_owned()))?;
                desk.create(&api, &claim).await
            }
            Some(found) if differs(&found, &spec) => {
                let change = json!({
                    "metadata": {"resourceVersion": found.resource_version(), "annotations": annotations},
                    "spec": spec,
                });
                desk.merge(&api, &name, change).await
            }
            Some(found) => Ok(found),
        }
    }

    /// What of a bound claim can still be changed: what becomes of its database, and while it has none, the names.
    async fn bound_change(&self, found: &DynamicObject, asked: &Asked) -> Result<Option<Value>, Trouble> {
        let mut change = json!({});
        let is = |name: &str| {
            let pointer = format!("/spec/parameters/{name}");
            found.data.pointer(&pointer).and_then(Value::as_str).map(str::to_owned)
        };
        let mut wish = |name: &str, wanted: Option<&str>| {
            if is(name).as_deref() != wanted {
                change["spec"]["parameters"][name] = json!(wanted);
            }
        };
        wish("reclaimPolicy", asked.reclaim_policy());
        if !self.has_database(found).await? {
            wish("databaseName", asked.database.as_ref().map(Identifier::as_str));
            wish("userName", asked.user.as_ref().map(Identifier::as_str));
        }
        if !found.annotations().contains_key(PLACED_BY) {
            change["metadata"]["annotations"][PLACED_BY] = json!(asked.placement().to_string());
        }
        Ok((change != json!({})).then_some(change))
    }

    /// Whether a claim's database was ever made; asked of the API itself.
    async fn has_database(&self, claim: &DynamicObject) -> Result<bool, Trouble> {
        let record = claim.uid().and_then(|uid| self.provider.world.record_of(&uid));
        let Some(record) = record else { return Ok(false) };
        let desk = &self.provider.desk;
        let live = desk.find(&desk.records(), &record.name_any()).await?;
        Ok(live.and_then(|record| record.status?.created_at).is_some())
    }

    /// The servers that say under which label they can be had, and the classes that make one of a label.
    fn instances(&self) -> Vec<Instance> {
        let read = |(reference, object): (_, std::sync::Arc<DynamicObject>)| {
            let found = server::read(&reference, &object).ok();
            let offer = match &found {
                Some(server) => server.offer.clone(),
                // One of ours that does not run yet is known by its label all the same.
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
        let servers = self.provider.world.servers().into_iter().filter_map(read);
        let classes = self.classes.all().into_iter().filter_map(|class| on_demand(&class));
        servers.chain(classes).collect()
    }

    /// Writes the Secret, where that is not what is there. One that is somebody else's is left alone.
    async fn publish(
        &self,
        front: &DatabaseClaim,
        name: &str,
        keys: BTreeMap<String, String>,
    ) -> Result<(), Trouble> {
        let desk = &self.provider.desk;
        let api = desk.secrets_in(&front.namespace().unwrap_or_default());
        let found = desk.find(&api, name).await?;
        let uid = front.uid().unwrap_or_default();
        if found.as_ref().is_some_and(|found| found.labels().get(DATABASE_ID) != Some(&uid)) {
            return Err(Trouble::Invalid(format!(
                "spec.SecretName: Secret {name} exists and is not this claim's: rename it, or write another name"
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
            owner_references: Some(vec![reference(front)]),
            resource_version: found.as_ref().and_then(Secret::resource_version),
            ..ObjectMeta::default()
        };
        let secret =
            Secret { metadata, data: Some(data), type_: Some("Opaque".to_owned()), ..Secret::default() };
        match found {
            None => desk.create(&api, &secret).await.map(drop),
            Some(_) => desk.replace(&api, &secret).await.map(drop),
        }
    }

    /// Its claim goes first, then its Secret, then itself.
    async fn end(&self, front: &DatabaseClaim) -> Result<Next, Trouble> {
        let desk = &self.provider.desk;
        let (namespace, name) = (front.namespace().unwrap_or_default(), front.name_any());
        let uid = front.uid().unwrap_or_default();
        if !front.finalizers().iter().any(|one| one == FINALIZER) {
            return Ok(Next::Rest);
        }
        let claims = desk.others(&world::claims(), &namespace);
        let claim = desk.find(&claims, &name).await?;
        let is_ours = |claim: &DynamicObject| claim.owner_references().iter().any(|owner| owner.uid == uid);
        if let Some(claim) = claim.filter(is_ours) {
            if claim.metadata.deletion_timestamp.is_none() {
                if let Ok(asked) = Asked::read(&name, &front.spec)
                    && let Some(pause) = self.settle_end(&claim, &asked).await?
                {
                    return Ok(Next::After(pause));
                }
                desk.may_destroy().await?;
                desk.delete(&claims, &name, claim.uid()).await?;
            }
            return Ok(Next::After(END));
        }
        if let Ok(asked) = Asked::read(&name, &front.spec) {
            self.remove_secret(front, &asked.secret).await?;
        }
        let kept: Vec<&String> = front.finalizers().iter().filter(|one| *one != FINALIZER).collect();
        let bare = json!({"metadata": {"uid": uid, "finalizers": kept}});
        match desk.merge::<DynamicObject>(&desk.others(&fronts(), &namespace), &name, bare).await {
            Err(Trouble::Api(why)) if why.starts_with("404") => Ok(Next::Rest),
            other => other.map(|_| Next::Rest),
        }
    }

    /// What becomes of its database must be on record before its claim is deleted: afterwards nobody can ask.
    async fn settle_end(&self, claim: &DynamicObject, asked: &Asked) -> Result<Option<Duration>, Trouble> {
        let record = claim.uid().and_then(|uid| self.provider.world.record_of(&uid));
        if asked.reclaim_policy().is_none() || record.is_none() {
            return Ok(None);
        }
        if world::text(claim, "/spec/parameters/reclaimPolicy") != "Retain" {
            self.edit(claim, json!({"spec": {"parameters": {"reclaimPolicy": "Retain"}}})).await?;
            return Ok(Some(END));
        }
        let is_settled = record.is_some_and(|record| world::text(&record, "/spec/reclaimPolicy") == "Retain");
        Ok((!is_settled).then_some(END))
    }

    /// From here on it goes only after its claim.
    async fn protect(&self, front: &DatabaseClaim) -> Result<(), Trouble> {
        let mut finalizers = front.metadata.finalizers.clone().unwrap_or_default();
        if finalizers.iter().any(|one| one == FINALIZER) {
            return Ok(());
        }
        finalizers.push(FINALIZER.to_owned());
        let desk = &self.provider.desk;
        let api = desk.others(&fronts(), &front.namespace().unwrap_or_default());
        let change = json!({"metadata": {"uid": front.uid(), "resourceVersion": front.resource_version(), "finalizers": finalizers}});
        desk.merge::<DynamicObject>(&api, &front.name_any(), change).await.map(drop)
    }

    /// Writes down how it stands, where that is not what is written there; with an Event of this reason, where it is one.
    async fn tell(
        &self,
        front: &DatabaseClaim,
        status: DatabaseClaimStatus,
        warning: Option<&str>,
    ) -> Result<(), Trouble> {
        if front.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let mut change = serde_json::to_value(&status).unwrap_or_default();
        // What a merge does not name, it keeps.
        for field in ["dbCreatedAt", "connectionInfoUpdatedAt", "matchedLabel", "connectionInfo"] {
            if change.get(field).is_none() {
                change[field] = Value::Null;
            }
        }
        let desk = &self.provider.desk;
        let api = desk.others(&fronts(), &front.namespace().unwrap_or_default());
        desk.merge_status::<DynamicObject>(&api, &front.name_any(), change).await?;
        let known = front.status.as_ref().map(|status| status.error.as_str()).unwrap_or_default();
        // What it only waits for needs nobody's attention.
        if let Some(reason) = warning.filter(|_| known != status.error && !status.error.is_empty()) {
            desk.warn(front.object_ref(&()), reason, &status.error).await;
        }
        Ok(())
    }
}

/// A class that makes instances of a label.
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

/// What a class says, in whichever form it is written.
pub(super) fn class_fields(class: &DynamicObject) -> Option<ClassFields> {
    let body: RelationalDatabaseClassBody = serde_json::from_value(class.data.clone()).ok()?;
    Some(body.effective())
}

/// What a claim says that it waits for.
fn waits_for(claim: &DynamicObject) -> String {
    let conditions = claim.data.pointer("/status/conditions").and_then(Value::as_array);
    let not_so = |condition: &&Value| condition["status"] != "True";
    let first = conditions.into_iter().flatten().find(not_so);
    let message = first.and_then(|condition| condition["message"].as_str()).unwrap_or_default();
    // The claim is ours; its reader writes the fields that it was made of.
    let message = message.replace("parameters.databaseName", "spec.DatabaseName");
    let message = message.replace("parameters.userName", "spec.Username");
    if message.is_empty() { "it waits for its database".to_owned() } else { message }
}

/// Whether a claim says something else than it should, as far as it is ours to say.
fn differs(found: &DynamicObject, spec: &Value) -> bool {
    let fields = spec.as_object().into_iter().flatten();
    fields.into_iter().any(|(key, value)| found.data.pointer(&format!("/spec/{key}")) != Some(value))
}

fn reference(front: &DatabaseClaim) -> OwnerReference {
    OwnerReference {
        api_version: format!("{FRONT_GROUP}/{FRONT_VERSION}"),
        kind: "DatabaseClaim".to_owned(),
        name: front.name_any(),
        uid: front.uid().unwrap_or_default(),
        controller: Some(true),
        ..OwnerReference::default()
    }
}
