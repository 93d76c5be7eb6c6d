//! Services and EndpointSlices: defaults, an address from the usual range that nothing answers at, checks.

use super::{inner, items, items_mut, put, text};
use crate::object::{key, name, namespace};
use crate::status::Cause;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub(super) fn default(object: &mut Value) {
    let Some(spec) = inner(object, "spec") else { return };
    put(spec, "sessionAffinity", "None");
    put(spec, "type", "ClusterIP");
    if text(spec, "sessionAffinity") == "ClientIP"
        && let Some(config) = inner(spec, "sessionAffinityConfig")
        && let Some(client) = inner(config, "clientIP")
    {
        put(client, "timeoutSeconds", 10_800);
    }
    for port in items_mut(spec, "ports") {
        put(port, "protocol", "TCP");
        let number = port.get("port").cloned().unwrap_or(Value::Null);
        put(port, "targetPort", number);
    }
    let kind = text(spec, "type").to_owned();
    if kind != "ExternalName" {
        put(spec, "internalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        put(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        put(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// The address and ports that a cluster would give out.
pub(super) fn prepare_created(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("status".to_owned(), json!({"loadBalancer": {}}));
    }
    allocate(object);
}

pub(super) fn prepare_updated(object: &mut Value, old: &Value) {
    let given = |field: &str| old.pointer(&format!("/spec/{field}")).cloned();
    let Some(spec) = object.get_mut("spec") else { return };
    // An address that a client leaves out is not released.
    if text(spec, "type") != "ExternalName" {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            let value = given(field).unwrap_or(Value::Null);
            if !value.is_null() && text(spec, "clusterIP").is_empty()
                || field != "clusterIP" && !value.is_null()
            {
                put(spec, field, value);
            }
        }
    }
    allocate(object);
}

fn allocate(object: &mut Value) {
    let place = key(namespace(object), name(object));
    let digest = Sha256::digest(place.as_bytes());
    let Some(spec) = object.get_mut("spec") else { return };
    let kind = text(spec, "type").to_owned();
    if kind == "ExternalName" {
        if let Some(fields) = spec.as_object_mut() {
            for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]
            {
                fields.remove(field);
            }
        }
        return;
    }
    if text(spec, "clusterIP") == "None" && spec.get("selector").is_none() {
        // Without a selector, the families of the endpoints are unknown.
        put(spec, "ipFamilies", json!(["IPv4", "IPv6"]));
        put(spec, "ipFamilyPolicy", "RequireDualStack");
    }
    put(spec, "clusterIP", format!("10.96.{}.{}", digest[0], digest[1].clamp(1, 254)));
    let address = text(spec, "clusterIP").to_owned();
    put(spec, "clusterIPs", json!([address]));
    put(spec, "ipFamilies", json!(["IPv4"]));
    put(spec, "ipFamilyPolicy", "SingleStack");
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        for (at, port) in items_mut(spec, "ports").enumerate() {
            let offset =
                u16::from_be_bytes([digest[2], digest[3]]).wrapping_add(u16::try_from(at).unwrap_or(0));
            put(port, "nodePort", 30_000 + i64::from(offset % 2_768));
        }
    }
}

pub(super) fn check(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let empty = Value::Null;
    let spec = object.get("spec").unwrap_or(&empty);
    let kind = text(spec, "type");
    let known = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if !known.contains(&kind) {
        causes.push(Cause::unsupported("spec.type", &kind.into(), &known));
    }
    let ports = items(spec, "ports");
    let headless = text(spec, "clusterIP") == "None";
    if ports.is_empty() && !headless && kind != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    if kind == "ExternalName" && text(spec, "externalName").is_empty() {
        causes.push(Cause::required("spec.externalName", ""));
    }
    let mut seen: Vec<(&str, i64)> = Vec::new();
    for (at, port) in ports.iter().enumerate() {
        let place = format!("spec.ports[{at}]");
        if ports.len() > 1 && text(port, "name").is_empty() {
            causes.push(Cause::required(format!("{place}.name"), ""));
        }
        let number = port.get("port").and_then(Value::as_i64).unwrap_or(0);
        if !(1..=65535).contains(&number) {
            let why = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(format!("{place}.port"), &number.into(), why));
        }
        if let Some(target) =
            port.get("targetPort").and_then(Value::as_i64).filter(|one| !(1..=65535).contains(one))
        {
            let why = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(format!("{place}.targetPort"), &target.into(), why));
        }
        let protocol = text(port, "protocol");
        if !["SCTP", "TCP", "UDP"].contains(&protocol) {
            causes.push(Cause::unsupported(
                format!("{place}.protocol"),
                &protocol.into(),
                &["SCTP", "TCP", "UDP"],
            ));
        }
        match seen.contains(&(protocol, number)) {
            true => {
                // As the server shows its own form of it.
                let message = format!(
                    "Duplicate value: {{\"Name\":\"\",\"Protocol\":\"{protocol}\",\"AppProtocol\":null,\"Port\":{number},\
                     \"TargetPort\":0,\"NodePort\":0}}"
                );
                causes.push(Cause { kind: "FieldValueDuplicate", field: place, message });
            }
            false => seen.push((protocol, number)),
        }
    }
    if let Some(old) = old {
        let before = old.pointer("/spec/clusterIP").and_then(Value::as_str).unwrap_or_default();
        let now = text(spec, "clusterIP");
        if !before.is_empty() && before != now && kind != "ExternalName" {
            let why = "may not change once set";
            causes.push(Cause::invalid("spec.clusterIPs[0]", &json!([now]), why));
        }
    }
    causes
}

pub(super) fn default_slice(object: &mut Value) {
    items_mut(object, "endpoints").for_each(|endpoint| put(endpoint, "conditions", json!({})));
    for port in items_mut(object, "ports") {
        put(port, "name", "");
        put(port, "protocol", "TCP");
    }
}

pub(super) fn check_slice(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let kind = text(object, "addressType");
    let known = ["FQDN", "IPv4", "IPv6"];
    match kind {
        "" => causes.push(Cause::required("addressType", "")),
        kind if !known.contains(&kind) => {
            causes.push(Cause::unsupported("addressType", &kind.into(), &known))
        }
        _ => {}
    }
    for (at, endpoint) in items(object, "endpoints").iter().enumerate() {
        if items(endpoint, "addresses").is_empty() {
            let why = "must contain at least 1 address";
            causes.push(Cause::required(format!("endpoints[{at}].addresses"), why));
        }
        for (index, address) in items(endpoint, "addresses").iter().filter_map(Value::as_str).enumerate() {
            if matches!(kind, "IPv4" | "IPv6") && address.parse::<std::net::IpAddr>().is_err() {
                let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
                causes.push(Cause::invalid_text(format!("endpoints[{at}].addresses[{index}]"), address, why));
            }
        }
    }
    if old.is_some_and(|old| text(old, "addressType") != kind) {
        causes.push(Cause::invalid_text("addressType", kind, "field is immutable"));
    }
    causes
}
