//! The API on a socket: HTTPS on loopback, with a token, for any client with the kubeconfig.

use conductor_apiserver::{Embedded, Error};
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
    assert!(!format!("{served:?} {api:?}").contains("token: "), "tokens are never shown");
    served.shutdown().await;
}

#[tokio::test]
async fn only_loopback_is_served_by_default() {
    let refused = Embedded::in_memory().serve("0.0.0.0:0".parse().expect("an address")).await;
    assert!(matches!(refused, Err(Error::NotLoopback(_))));
}

/// A kubeconfig with the certificate of one key and another key, as after half of a rotation.
#[tokio::test]
async fn a_key_that_is_not_of_its_certificate_is_reported_with_its_field() {
    let (one, other) =
        (rcgen::KeyPair::generate().expect("a key"), rcgen::KeyPair::generate().expect("a key"));
    let certificate = rcgen::CertificateParams::default().self_signed(&one).expect("a certificate");
    let folder = std::env::temp_dir().join(format!("conductor-identity-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let write =
        |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("a file can be written");
    write("crt", &certificate.pem());
    write("one", &one.serialize_pem());
    write("other", &other.serialize_pem());
    let config = |key: &str| {
        write(
            "config",
            &format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{{name: x, context: {{cluster: c, user: me}}}}]\n\
                 clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:1'}}}}]\n\
                 users: [{{name: me, user: {{client-certificate: crt, client-key: {key}}}}}]\n"
            ),
        );
    };
    let path = folder.join("config");
    for (key, expected) in
        [("other", "client-key: it does not belong"), ("crt", "client-key: it holds no private key")]
    {
        config(key);
        let error =
            conductor_controller::find_cluster(Some(&path), None).await.expect_err("it cannot be used");
        let error = error.to_string();
        assert!(error.contains(&format!("{}: user me: {expected}", path.display())), "{error}");
        assert!(!error.contains("BEGIN"), "{error}");
    }
    config("one");
    let found = conductor_controller::find_cluster(Some(&path), None).await.expect("it can be used");
    conductor_controller::connect(found).expect("a client can be made");
    std::fs::remove_dir_all(&folder).expect("it is there");
}
