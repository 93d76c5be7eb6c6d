//! `DatabaseClaim`: accepts manifests that were written for an earlier database controller. The provider translates each
//! into a RelationalDatabaseClaim. It contains no password.

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// API group of the kind. The spelling is part of the API.
pub const FRONT_GROUP: &str = "persistance.atlas.infoblox.com";
/// API version of the kind.
pub const FRONT_VERSION: &str = "v1";

/// What the application requests. Field names are case-insensitive: AppID and appId are the same field.
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
    doc = "A request for a database by the label of an instance. Conductor translates it into a RelationalDatabaseClaim of the same name and publishes a Secret with the keys that its applications expect.",
    printcolumn(name = "Label", type_ = "string", json_path = ".status.matchedLabel"),
    printcolumn(name = "Database", type_ = "string", json_path = ".status.connectionInfo[0].databaseName"),
    printcolumn(name = "Updated", type_ = "date", json_path = ".status.connectionInfoUpdatedAt"),
    printcolumn(name = "Error", type_ = "string", json_path = ".status.error"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(transparent)]
pub struct DatabaseClaimSpec {
    /// The fields as written.
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
            "description": "What the application requests. Field names are case-insensitive: AppID and appId are the same field.",
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": {
                "appId": text("Name of the application.", 253),
                "secretName": text("Name of the Secret with the connection. Default: the name of the claim.", 253),
                "type": text("Type of the database, such as Postgres.", 63),
                "instanceLabel": text("Label of the instance, such as prod.orders. The longest instance label that it begins with wins, by whole segments between dots.", 253),
                "userName": text("Name of the user; Conductor alternates between this name with _a and with _b. Default: a generated name.", 61),
                "databaseName": text("Name of the database. Default: appId.", 63),
                "dbNameOverride": text("Name of the database if it differs from appId.", 63),
                "dsnName": text("Key of the connection string in the Secret. Default dsn.", 200),
                "host": text("Host of the instance, to require one of several instances with the label. The host must be registered.", 253),
                "port": number("Port of the instance, to require one of several instances with the label."),
                "shape": text("Shape that the instance must have, if it declares one.", 63),
                "minStorageGB": number("Minimum storage of the instance in GB, if it declares its storage."),
                "deletePolicy": text("What happens to the database when the claim is deleted: delete applies the policy of the instance, recycle keeps the database.", 63),
            },
        })
    }
}

/// State of the claim, written by Conductor.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct DatabaseClaimStatus {
    /// Current error, empty if there is none.
    #[serde(default)]
    #[schemars(length(max = 32768))]
    pub error: String,
    /// Time of creation of the database, in RFC 3339.
    #[schemars(length(max = 64))]
    pub db_created_at: Option<String>,
    /// Time of the last change of the connection, in RFC 3339.
    #[schemars(length(max = 64))]
    pub connection_info_updated_at: Option<String>,
    /// Label of the instance that was chosen.
    #[schemars(length(max = 63))]
    pub matched_label: Option<String>,
    /// Connection without its password, which is only in the Secret.
    #[schemars(length(max = 4))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub connection_info: Option<Vec<ConnectionInfo>>,
}

/// A connection without its password.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ConnectionInfo {
    /// Name of the user.
    #[schemars(length(max = 63))]
    pub username: String,
    /// Host name or address of the server.
    #[schemars(length(max = 253))]
    pub host: String,
    /// TCP port of the server.
    #[schemars(length(max = 5))]
    pub port: String,
    /// Name of the database.
    #[schemars(length(max = 63))]
    pub database_name: String,
    /// Time when the password of this user last changed, in RFC 3339.
    #[schemars(length(max = 64))]
    pub user_updated_at: Option<String>,
}
