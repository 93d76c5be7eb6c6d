//! The API on a socket: HTTPS on loopback, with a token, for any client with the kubeconfig.

use conductor_simulator::embedded::{Embedded, Error};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};

async fn client(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).expect("it is a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("it can be used")).expect("it makes a client")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_the_kubeconfig_comes_in_and_others_do_not() {
    let api = Embedded::in_memory();
    let served = api.serve("127.0.0.1:0".parse().expect("an address")).await.expect("it listens");
    let namespaces: Api<Namespace> = Api::all(client(&served.kubeconfig).await);
    let found = namespaces.list(&ListParams::default()).await.expect("it may list");
    assert!(found.items.iter().any(|namespace| namespace.metadata.name.as_deref() == Some("default")));
    let mut lines: Vec<&str> = served.kubeconfig.lines().collect();
    lines.iter_mut().filter(|line| line.contains("token:")).for_each(|line| *line = "    token: wrong");
    let namespaces: Api<Namespace> = Api::all(client(&lines.join("\n")).await);
    let refused = namespaces.list(&ListParams::default()).await.expect_err("a wrong token is refused");
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 401), "{refused:?}");
    assert!(!format!("{served:?} {api:?}").contains("token: "), "tokens are shown to nobody");
    served.shutdown().await;
}

#[tokio::test]
async fn only_loopback_is_served_unless_told_otherwise() {
    let refused = Embedded::in_memory().serve("0.0.0.0:0".parse().expect("an address")).await;
    assert!(matches!(refused, Err(Error::NotLoopback(_))));
}
