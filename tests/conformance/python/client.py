"""The `kubernetes` client for Python, as people use it: typed calls, custom objects, the dynamic client, watches.

It prints what it got, one line each, without ids and times, so that two servers can be compared.
"""

import json
import sys

from kubernetes import client, config, dynamic, watch
from kubernetes.client.rest import ApiException

NAMESPACE = "python-client"
GROUP, VERSION = "conformance.example.com", "v1"


def main(kubeconfig):
    config.load_kube_config(kubeconfig)
    core = client.CoreV1Api()
    print("server:", client.VersionApi().get_code().minor)
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))
    config_maps(core)
    secrets(core)
    services(core)
    custom_objects(client.CustomObjectsApi())
    definitions(client.ApiextensionsV1Api())
    leases(client.CoordinationV1Api())
    everything_dynamic()
    watched(core)
    deployments(client.AppsV1Api())
    allowed(client.AuthorizationV1Api())


def refused(what, call, *arguments, **options):
    try:
        call(*arguments, **options)
        print(what, "was taken")
    except ApiException as refusal:
        body = json.loads(refusal.body)
        print(what, "is refused:", refusal.status, body["reason"], body["message"])


def config_maps(core):
    one = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a", labels={"app": "x"}), data={"k": "v"})
    made = core.create_namespaced_config_map(NAMESPACE, one)
    print("made:", made.metadata.name, made.data, bool(made.metadata.uid))
    refused("a second one", core.create_namespaced_config_map, NAMESPACE, one)
    changed = core.patch_namespaced_config_map("a", NAMESPACE, {"data": {"l": "m"}})
    print("patched:", sorted(changed.data.items()))
    changed.data = {"k": "w"}
    replaced = core.replace_namespaced_config_map("a", NAMESPACE, changed)
    print("replaced:", replaced.data)
    refused("an old revision", core.replace_namespaced_config_map, "a", NAMESPACE, changed)
    listed = core.list_namespaced_config_map(NAMESPACE, label_selector="app=x")
    print("listed:", [item.metadata.name for item in listed.items])
    dry = core.create_namespaced_config_map(NAMESPACE, {"metadata": {"generateName": "g-"}}, dry_run="All")
    print("dry:", dry.metadata.name.startswith("g-"))
    core.delete_namespaced_config_map("a", NAMESPACE, propagation_policy="Background")
    refused("a read", core.read_namespaced_config_map, "a", NAMESPACE)


def secrets(core):
    body = client.V1Secret(metadata=client.V1ObjectMeta(name="s"), string_data={"k": "v"})
    print("secret:", core.create_namespaced_secret(NAMESPACE, body).data)


def services(core):
    body = {"metadata": {"name": "db"}, "spec": {"type": "ExternalName", "externalName": "db.example.com"}}
    print("service:", core.create_namespaced_service(NAMESPACE, body).spec.external_name)


def custom_objects(api):
    where = (GROUP, VERSION, NAMESPACE, "widgets")
    body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 3}}
    made = api.create_namespaced_custom_object(*where, body)
    print("custom:", made["spec"])
    api.patch_namespaced_custom_object_status(*where, "w", {"status": {"phase": "Up"}})
    print("status:", api.get_namespaced_custom_object(*where, "w")["status"])
    body["spec"]["size"] = 0
    refused("a bad one", api.create_namespaced_custom_object, *where, body)
    print("scale:", api.patch_namespaced_custom_object(*where, "w", {"spec": {"replicas": 2}})["spec"]["replicas"])
    print("read:", api.get_namespaced_custom_object_scale(*where, "w")["spec"])
    api.delete_namespaced_custom_object(*where, "w")
    print("left:", api.list_namespaced_custom_object(*where)["items"])


def definitions(api):
    found = api.read_custom_resource_definition("widgets.conformance.example.com")
    print("definition:", found.spec.names.kind, found.spec.names.short_names)


def leases(api):
    body = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}
    print("lease:", api.create_namespaced_lease(NAMESPACE, body).spec.holder_identity)


def everything_dynamic():
    found = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version=f"{GROUP}/{VERSION}", kind="Widget")
    body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Widget", "metadata": {"name": "d"}, "spec": {"size": 5}}
    applied = found.server_side_apply(body=body, name="d", namespace=NAMESPACE, field_manager="python")
    print("applied:", applied.spec.size, applied.metadata.managedFields[0].manager)
    print("found:", [item.metadata.name for item in found.get(namespace=NAMESPACE).items])


def watched(core):
    for name in ("x", "y"):
        core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": name}})
    from_here = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    core.patch_namespaced_config_map("x", NAMESPACE, {"data": {"k": "v"}})
    core.delete_namespaced_config_map("y", NAMESPACE)
    stream = watch.Watch().stream(
        core.list_namespaced_config_map, NAMESPACE, resource_version=from_here, timeout_seconds=2
    )
    for event in stream:
        print("event:", event["type"], event["object"].metadata.name)


def deployments(apps):
    body = {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }
    print("deployment:", apps.create_namespaced_deployment(NAMESPACE, body).spec.replicas)
    scaled = apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 5}})
    print("scaled:", scaled.spec.replicas)


def allowed(api):
    asked = {"spec": {"resourceAttributes": {"verb": "create", "resource": "configmaps", "namespace": NAMESPACE}}}
    print("allowed:", api.create_self_subject_access_review(asked).status.allowed)


main(sys.argv[1])
