//! `DatabaseClaim`: the second front, for manifests written for the database controller that this one takes over from.
//! It becomes a RelationalDatabaseClaim. What its words mean is decided in `database::front`; no password is in it.

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The group of the kind, as its users write it.
pub const FRONT_GROUP: &str = "persistance.atlas.infoblox.com";
/// Its version.
pub const FRONT_VERSION: &str = "v1";

/// What the application asks for. Names of fields are read without regard to case: `AppID` and `appId` are one.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "persistance.atlas.infoblox.com",
    version = "v1",
    kind = "DatabaseClaim",
    plural = "databaseclaims",
    singular = "databaseclaim",
    shortname = "dbc",
    category = "conductor",
    namespaced,
    status = "DatabaseClaimStatus",
    derive = "PartialEq",
    doc = "A request for a database by the label of an instance. It becomes a RelationalDatabaseClaim of the same name, and its Secret has the keys that its applications know.",
    printcolumn(name = "Label", type_ = "string", json_path = ".status.matchedLabel"),
    printcolumn(name = "Database", type_ = "string", json_path = ".status.connectionInfo[0].databaseName"),
    printcolumn(name = "Updated", type_ = "date", json_path = ".status.connectionInfoUpdatedAt"),
    printcolumn(name = "Error", type_ = "string", json_path = ".status.error"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(transparent)]
pub struct DatabaseClaimSpec {
    /// Fields as they are written.
    pub fields: BTreeMap<String, Value>,
}

impl JsonSchema for DatabaseClaimSpec {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "DatabaseClaimSpec".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text = |description: &str, most: u32| serde_json::json!({"type": "string", "description": description, "maxLength": most});
        let number = |description: &str| serde_json::json!({"x-kubernetes-int-or-string": true, "description": description});
        json_schema!({
            "type": "object",
            "description": "What the application asks for. Names of fields are read without regard to case: AppID and appId are one.",
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": {
                "appId": text("The application.", 253),
                "secretName": text("Name of the Secret with the connection; absent, the name of the claim.", 253),
                "type": text("The type of the database, such as Postgres.", 63),
                "instanceLabel": text("Label of the instance; the longest label that it begins with wins, whole segments between dots only.", 253),
                "userName": text("The user; two that alternate are made of it, with _a and _b. Absent, a name is made.", 61),
                "databaseName": text("Name of the database; absent, the application's.", 63),
                "dbNameOverride": text("Name of the database where it is not the application's.", 63),
                "dsnName": text("Key of the connection string in the Secret; absent, dsn.", 200),
                "host": text("Host, where not every instance of the label will do. One that is registered.", 253),
                "port": number("Port, where not every instance of the label will do."),
                "shape": text("Shape that the instance must have, where it says which it has.", 63),
                "minStorageGB": number("Storage that the instance must have at least, where it says how much it has."),
                "deletePolicy": text("delete: as the instance says. recycle: the database is kept when the claim goes.", 63),
            },
        })
    }
}

/// What the application got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct DatabaseClaimStatus {
    /// What stands in the way; empty where nothing does.
    #[serde(default)]
    #[schemars(length(max = 32768))]
    pub error: String,
    /// When the database was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub db_created_at: Option<String>,
    /// When the connection was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub connection_info_updated_at: Option<String>,
    /// The label of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub matched_label: Option<String>,
    /// The connection, without its password: that is in the Secret only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub connection_info: Option<Vec<ConnectionInfo>>,
}

/// A connection, without its password.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ConnectionInfo {
    /// The user.
    #[schemars(length(max = 63))]
    pub username: String,
    /// Where the server is.
    #[schemars(length(max = 253))]
    pub host: String,
    /// On which port.
    #[schemars(length(max = 5))]
    pub port: String,
    /// The database.
    #[schemars(length(max = 63))]
    pub database_name: String,
    /// When this user last got a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub user_updated_at: Option<String>,
}
