//! What no single call shows: a foreign hand at fifty writes a second, a thousand claims for one resource, an API
//! server that is killed, an etcd that forgets. Nothing is bound twice, nothing is lost, everything settles.

use conductor_controlplane::{ControlPlane, Part};
use conductor_live::kinds::{CLAIM, NAMESPACE, RESOURCE, api_of};
use conductor_live::observer::State;
use conductor_live::trial::{Lab, Trial, install};
use conductor_live::workflow::{Act, Workflow, claim, custom, is_bound, phase, resource, wants};
use conductor_live::{Side, Site};
use futures::{StreamExt, TryStreamExt};
use kube::Client;
use kube::api::{Patch, PatchParams, WatchEvent, WatchParams};
use serde_json::json;
use std::pin::pin;
use std::time::Duration;

/// The storms that kill no process, on the embedded API.
#[tokio::test(flavor = "multi_thread")]
async fn storms_pass_on_the_embedded_api() {
    let site = Site::start(Side::Embedded).await;
    install(|arguments, input| site.kubectl_with_input(arguments, input));
    let config = conductor_controller::find_cluster(Some(site.kubeconfig()), None).await.unwrap();
    let lab = Lab::new(conductor_controller::connect(config).unwrap()).await.unwrap();
    a_foreign_hand_at_fifty_hertz(&lab).await.unwrap();
    a_thousand_claims_race_for_one_resource(&lab).await.unwrap();
}

/// One control plane, one storm after the other: the last ones kill parts of it.
#[tokio::test(flavor = "multi_thread")]
async fn storms_pass_and_everything_settles() {
    let mut plane = ControlPlane::start().unwrap();
    install(|arguments, input| plane.kubectl_with_input(arguments, input).unwrap());
    let config = conductor_controller::find_cluster(Some(plane.kubeconfig()), None).await.unwrap();
    let lab = Lab::new(conductor_controller::connect(config).unwrap()).await.unwrap();
    a_foreign_hand_at_fifty_hertz(&lab).await.unwrap();
    a_thousand_claims_race_for_one_resource(&lab).await.unwrap();
    the_api_server_is_killed_under_load(&mut plane, &lab).await.unwrap();
    etcd_forgets_and_watches_begin_anew(&mut plane, &lab).await.unwrap();
}

fn count(state: &State, kind: &str, wanted: &str) -> usize {
    let of_kind = state.iter().filter(|((k, _, _), _)| k == kind);
    of_kind.filter(|(_, object)| object["status"]["phase"] == wanted).count()
}

/// Labels and annotations of every claim and resource change all the time, under the controller's hands.
async fn a_foreign_hand_at_fifty_hertz(lab: &Lab) -> Result<(), String> {
    let story = custom(false);
    let mut trial = Trial::begin(lab, &story).await?;
    let names: Vec<String> = (0..20).map(|n| format!("x-{n:02}")).collect();
    let noise = tokio::spawn(make_noise(lab.api().clone(), trial.name().to_owned(), names.clone()));
    for name in &names {
        trial.act(&[resource(name, "Retain", "5Gi"), claim(name, wants("5Gi"))]).await?;
    }
    // The controller rests while the noise goes on: labels that decide nothing cost no write.
    trial.wait("all are bound", |state, _| count(state, CLAIM, "Bound") == 20).await?;
    for name in ["x-00", "x-05", "x-10", "x-15"] {
        trial.act(&[Act::Delete(CLAIM, name)]).await?;
    }
    let released = |state: &State| {
        count(state, RESOURCE, "Released") == 4 && count(state, CLAIM, "Bound") == 16 && state.len() == 2 + 36
    };
    trial.wait("four are released", |state, _| released(state)).await?;
    noise.abort();
    println!("a foreign hand: {:?} calls and writes of ours", trial.wire().counts());
    trial.close()
}

async fn make_noise(api: Client, trial: String, names: Vec<String>) {
    let system = format!("{trial}-system");
    for beat in 0_u64.. {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let (api, name) = (api.clone(), names[(beat / 2) as usize % names.len()].clone());
        let (kind, namespace) =
            if beat % 2 == 0 { (CLAIM, trial.clone()) } else { (RESOURCE, system.clone()) };
        // Not waited for: fifty a second, however long each takes.
        tokio::spawn(async move {
            let noise = json!({"metadata": {"labels": {"noise": beat.to_string()},
                "annotations": {"noise": format!("beat {beat}")}}});
            let api = api_of(&api, kind, Some(&namespace));
            let _ = api.patch(&name, &PatchParams::default(), &Patch::Merge(&noise)).await;
        });
    }
}

async fn create_claims(trial: &Trial<'_>, count: usize) -> Result<(), String> {
    let acts: Vec<Act> = (0..count).map(|n| claim(&format!("c-{n:04}"), wants("5Gi"))).collect();
    let created = futures::stream::iter(&acts).map(|act| trial.create_surely(act)).buffer_unordered(32);
    created.try_collect::<Vec<()>>().await.map(drop)
}

async fn a_thousand_claims_race_for_one_resource(lab: &Lab) -> Result<(), String> {
    let story = custom(false);
    let mut trial = Trial::begin(lab, &story).await?;
    trial.disregard_events();
    trial.act(&[resource("only", "Retain", "5Gi")]).await?;
    create_claims(&trial, 1000).await?;
    let settled = |state: &State| count(state, CLAIM, "Bound") == 1 && count(state, CLAIM, "Pending") == 999;
    trial.wait("one is bound and 999 wait", |state, _| settled(state)).await?;
    let state = trial.state();
    let waiting = state.values().filter(|object| object["status"]["phase"] == "Pending");
    for object in waiting {
        let bound = &object["status"]["conditions"][0];
        assert_eq!(bound["reason"], "NoMatch", "{object}");
    }
    println!("a thousand claims: {:?} calls and writes of ours", trial.wire().counts());
    trial.close()
}

async fn the_api_server_is_killed_under_load(plane: &mut ControlPlane, lab: &Lab) -> Result<(), String> {
    let story = custom(false);
    let mut trial = Trial::begin(lab, &story).await?;
    trial.disregard_events();
    for n in 0..150 {
        trial.act(&[resource(&format!("r-{n:04}"), "Retain", "5Gi")]).await?;
    }
    let load = create_claims(&trial, 150);
    let kill = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        tokio::task::block_in_place(|| {
            plane.kill(Part::ApiServer);
            std::thread::sleep(Duration::from_secs(1));
            plane.start_part(Part::ApiServer).map_err(|error| error.to_string())
        })
    };
    let (created, restarted) = tokio::join!(load, kill);
    created?;
    restarted?;
    trial.wait("all are bound", |state, _| count(state, CLAIM, "Bound") == 150).await?;
    trial.close()
}

/// The API server comes back with nothing to remember and an etcd that has forgotten the rest.
async fn etcd_forgets_and_watches_begin_anew(plane: &mut ControlPlane, lab: &Lab) -> Result<(), String> {
    let story: Workflow = custom(false);
    let mut trial = Trial::begin(lab, &story).await?;
    trial.act(&[resource("before", "Retain", "5Gi"), claim("before", wants("5Gi"))]).await?;
    trial.wait("it is bound", |state, _| is_bound(state, "before")).await?;
    let lists = |trial: &Trial<'_>| {
        trial.wire().trace().iter().filter(|call| call.what == "GET relationaldatabaseclaims").count()
    };
    let (before, old) = (lists(&trial), first_revision(&trial.state()));
    // An object that no watch of ours shows: the newest revision is never compacted, and must belong to no watch.
    let unseen = plane.kubectl(&["create", "serviceaccount", "unseen", "-n", trial.name()]);
    assert!(unseen.is_ok_and(|output| output.status.success()), "a service account can be made");
    plane.kill(Part::ApiServer);
    plane.compact().map_err(|error| error.to_string())?;
    plane.start_part(Part::ApiServer).map_err(|error| error.to_string())?;
    assert!(is_forgotten(lab.api(), &old).await, "revision {old} should be gone");
    for name in ["after-1", "after-2"] {
        trial.create_surely(&resource(name, "Retain", "5Gi")).await?;
        trial.create_surely(&claim(name, wants("5Gi"))).await?;
    }
    trial.wait("all are bound", |state, _| count(state, CLAIM, "Bound") == 3).await?;
    assert!(lists(&trial) > before, "the controller should have listed anew");
    assert_eq!(phase(&trial.state(), NAMESPACE, trial.name()), Some("Active"));
    trial.close()
}

/// A revision that others surely came after: that of a namespace, which was there first. The newest is not forgotten.
fn first_revision(state: &State) -> String {
    let namespace = state.iter().find(|((kind, _, _), _)| kind == NAMESPACE);
    namespace
        .and_then(|(_, object)| object["metadata"]["resourceVersion"].as_str())
        .unwrap_or_default()
        .to_owned()
}

/// Whether a watch from a revision gets 410 Gone.
async fn is_forgotten(api: &Client, revision: &str) -> bool {
    let claims = api_of(api, CLAIM, None);
    match claims.watch(&WatchParams::default().timeout(5), revision).await {
        Err(kube::Error::Api(status)) => status.code == 410,
        Err(_) => false,
        Ok(stream) => {
            let first = pin!(stream).try_next().await;
            matches!(first, Ok(Some(WatchEvent::Error(status))) if status.code == 410)
        }
    }
}
