//! Connections that say nothing keep no client out and are closed; one that watches stays. Real sockets on loopback.

use conductor_apiserver::{Embedded, Options, Served};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Generous: machines are slow at times.
const WITHIN: Duration = Duration::from_secs(60);

async fn serve(options: Options) -> Served {
    let api = Embedded::in_memory_with(options);
    api.serve("127.0.0.1:0".parse().expect("an address")).await.expect("it listens")
}

async fn client(served: &Served) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&served.kubeconfig).expect("it is a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("it can be used")).expect("it makes a client")
}

async fn connect(served: &Served) -> TcpStream {
    TcpStream::connect(served.address).await.expect("it accepts")
}

/// Waits until the server has closed a connection.
async fn until_closed(mut stream: TcpStream) {
    let mut buffer = [0_u8; 64];
    let closed = async { while !matches!(stream.read(&mut buffer).await, Ok(0) | Err(_)) {} };
    tokio::time::timeout(WITHIN, closed).await.expect("the server closes it");
}

async fn count_namespaces(served: &Served) -> usize {
    let namespaces: Api<Namespace> = Api::all(client(served).await);
    let listed = tokio::time::timeout(WITHIN, namespaces.list(&ListParams::default())).await;
    listed.expect("it is answered").expect("it may list").items.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_a_handshake_is_closed() {
    let served = serve(Options { greet_within: Duration::from_millis(200), ..Options::default() }).await;
    until_closed(connect(&served).await).await;
    let mut half = connect(&served).await;
    half.write_all(&[0x16, 0x03, 0x01]).await.expect("it is accepted");
    until_closed(half).await;
    served.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_keep_no_client_out() {
    let options =
        Options { strangers_max: 4, connections_max: 8, greet_within: WITHIN, ..Options::default() };
    let served = serve(options).await;
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(connect(&served).await);
    }
    assert_eq!(count_namespaces(&served).await, 4);
    // Their time is not over: those that are closed made room.
    until_closed(silent.remove(0)).await;
    served.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_handshakes_keep_no_client_out() {
    let patient = Duration::from_secs(3600);
    let options = Options {
        strangers_max: 128,
        connections_max: 128,
        greet_within: patient,
        idle_max: patient,
        ..Options::default()
    };
    let served = serve(options).await;
    let mut held = Vec::new();
    for _ in 0..320 {
        held.push(connect(&served).await);
    }
    // The youngest go on with a handshake, byte by byte, for as long as honest clients come.
    let slow = tokio::spawn(async move {
        for byte in [0x16, 0x03, 0x01, 0x40, 0x00, 0x01].into_iter().chain(std::iter::repeat(0x01)) {
            for stream in &mut held[200..] {
                // Those that were closed meanwhile made room.
                let _ = stream.write_all(&[byte]).await;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        held
    });
    for _ in 0..4 {
        assert_eq!(count_namespaces(&served).await, 4);
    }
    slow.abort();
    served.shutdown().await;
}

/// As controllers do that start: each of their watches has a connection of its own, and all of them come at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_clients_is_served_in_full() {
    let served = serve(Options::default()).await;
    let counts = futures::future::join_all((0..200).map(|_| count_namespaces(&served))).await;
    assert_eq!(counts, vec![4; 200]);
    served.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_outlives_the_idle_time_of_its_connection() {
    let brief = Duration::from_millis(100);
    let served = serve(Options { idle_max: brief, ..Options::default() }).await;
    let maps: Api<ConfigMap> = Api::namespaced(client(&served).await, "default");
    let stream = maps.watch(&WatchParams::default(), "0").await.expect("it may watch");
    let mut stream = pin!(stream);
    tokio::time::sleep(brief * 10).await;
    let map = ConfigMap {
        metadata: kube::api::ObjectMeta { name: Some("a".into()), ..Default::default() },
        ..Default::default()
    };
    maps.create(&PostParams::default(), &map).await.expect("it may create");
    let event = tokio::time::timeout(WITHIN, stream.try_next()).await.expect("the watch goes on");
    assert!(matches!(event, Ok(Some(WatchEvent::Added(_)))), "{event:?}");
    served.shutdown().await;
}
