//! Game servers in a cluster: the shipped binary beside a sidecar, from its first word to its end.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use muse_master::director::NoServer;
use muse_master::fleet::agones::{AgonesConfig, server_id};
use muse_master::{Master, MasterConfig};

use crate::cluster::Cluster;
use crate::sidecar::Sidecar;
use crate::{KEY, PROTOCOL, Watching, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_match_is_played_on_a_server_of_the_cluster() {
    let town = Town::start().await;
    town.control();
    let mut pods = [town.pod("pod-1"), town.pod("pod-2")];
    for name in ["pod-1", "pod-2"] {
        until("a ready server", || town.is(name, "Ready")).await;
    }
    {
        // Labels that servers give themselves have Agones' prefix.
        let model = town.cluster.model();
        let labels = &model.servers["pod-1"]["metadata"]["labels"];
        assert_eq!(labels["agones.dev/sdk-muse-protocol"], "4d55534500000001");
        assert_eq!(labels["agones.dev/sdk-muse-node"], "machine-1");
    }
    let players = [town.player(1), town.player(2)];
    for player in &players {
        until("a match to its end", || player.said("back")).await;
        let back = player.line("back").expect("said");
        assert!(back.ends_with("Finished"), "{back}");
    }
    let found = players[0].line("playing").expect("the player has played");
    let match_id = found.trim_start_matches("playing ").to_owned();
    assert_eq!(players[1].line("playing"), Some(found));
    // The match was written to its server when it was given away, and the server has gone with it.
    let asked = town.cluster.model().asked.concat();
    let annotation = format!(r#""muse.dev/match":"{match_id}""#);
    assert!(asked.contains(&annotation), "{asked}");
    assert!(!asked.contains(KEY));
    until("a server that has ended", || {
        town.cluster.model().servers.len() == 1
    })
    .await;
    let ended = pods.iter_mut().filter_map(|pod| pod.ended());
    assert_eq!(ended.collect::<Vec<bool>>(), [true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn to_ask_to_be_ready_is_not_to_be_ready() {
    let town = Town::start().await;
    let watching = Watching::start_at(town.cluster.clone(), |config| config).await;
    let _pod = town.pod("pod-1");
    until("the request", || town.is("pod-1", "RequestReady")).await;
    watching.counts(1, 0, 0).await;
    assert_eq!(watching.allocate(1, &[]).await, Err(NoServer::Full));
    town.cluster.set_state("pod-1", "Ready");
    let allocated = watching.allocate(1, &[]).await;
    assert_eq!(allocated, Ok(server_id("pod-1")));
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_of_life_go_on_when_the_sidecar_has_restarted() {
    let town = Town::start().await;
    town.control();
    let mut pod = town.pod("pod-1");
    until("a sign", || pod.signs() > 0).await;
    pod.restart_sidecar(&town.cluster);
    // One is what the first task after the restart carries; two are a task that lives.
    until("signs to the new one", || pod.signs() > 1).await;
    assert_eq!(pod.ended(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_given_to_a_match_that_nobody_knows_is_ended() {
    let town = Town::start().await;
    town.control();
    let watching = Watching::start_at(town.cluster.clone(), |config| config).await;
    let mut pod = town.pod("pod-1");
    until("a ready server", || town.is("pod-1", "Ready")).await;
    // As if a master had died between the allocation and writing it down.
    assert!(watching.allocate(424_242, &[]).await.is_ok());
    until("the server's end", || pod.ended() == Some(true)).await;
    until("its object's end", || {
        town.cluster.model().servers.is_empty()
    })
    .await;
}

/// A cluster with a master.
struct Town {
    cluster: Cluster,
    master: Master,
    _folder: tempfile::TempDir,
}

impl Town {
    async fn start() -> Self {
        let cluster = Cluster::start(Duration::from_millis(10)).await;
        let folder = tempfile::tempdir().expect("a folder");
        let agones = AgonesConfig::new(&cluster.url(), "biobot", KEY)
            .namespace("muse")
            .kubernetes(&cluster.url());
        let listen = "127.0.0.1:0".parse().expect("an address");
        let config = MasterConfig::new(listen, folder.path().join("muse.db"))
            .protocol_id(PROTOCOL)
            .agones(agones);
        let master = Master::start(config).await.expect("a master");
        Self {
            cluster,
            master,
            _folder: folder,
        }
    }

    /// Does what Agones' controllers do: servers that ask become ready, those that are done are deleted.
    fn control(&self) {
        let cluster = self.cluster.clone();
        tokio::spawn(async move {
            loop {
                let states: Vec<(String, Option<String>)> = {
                    let names: Vec<String> = cluster.model().servers.keys().cloned().collect();
                    let state = |name: String| (name.clone(), cluster.state(&name));
                    names.into_iter().map(state).collect()
                };
                for (name, state) in states {
                    match state.as_deref() {
                        Some("RequestReady") => cluster.set_state(&name, "Ready"),
                        Some("Shutdown") => cluster.remove(&name),
                        _ => {}
                    }
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    }

    fn is(&self, name: &str, state: &str) -> bool {
        self.cluster.state(name).as_deref() == Some(state)
    }

    /// A game server with its sidecar.
    fn pod(&self, name: &str) -> Pod {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("a port");
        let port = socket.local_addr().expect("bound").port();
        drop(socket);
        self.cluster
            .add_at(name, "Scheduled", "machine-1", &[], port);
        let sidecar = Sidecar::start(&self.cluster, name, 0);
        let child = Command::new(env!("CARGO_BIN_EXE_muse"))
            .arg("master-game")
            .env("MUSE_MASTER", format!("ws://{}", self.master.address()))
            .env("MUSE_FLEET_KEY", KEY)
            .env("MUSE_SERVER_PORT", port.to_string())
            .env("MUSE_NODE", "machine-1")
            .env("MUSE_GAME_SECONDS", "0.5")
            .env("AGONES_SDK_GRPC_PORT", sidecar.address.port().to_string())
            .stdin(Stdio::null())
            .spawn();
        Pod {
            name: name.to_owned(),
            child: child.expect("the binary starts"),
            sidecar: Some(sidecar),
        }
    }

    fn player(&self, n: u32) -> Player {
        let mut child = Command::new(env!("CARGO_BIN_EXE_muse"))
            .arg("master-player")
            .arg(self.master.address().to_string())
            .args(["--device-key", &format!("player of the cluster {n}")])
            .arg("--play")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let output = child.stdout.take().expect("piped");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                heard.lock().expect("no panic").push(line);
            }
        });
        Player { child, lines }
    }
}

struct Pod {
    name: String,
    child: Child,
    sidecar: Option<Sidecar>,
}

impl Pod {
    fn signs(&self) -> usize {
        self.sidecar.as_ref().map_or(0, Sidecar::signs)
    }

    fn restart_sidecar(&mut self, cluster: &Cluster) {
        let old = self.sidecar.take().expect("there is one");
        let port = old.address.port();
        drop(old);
        self.sidecar = Some(Sidecar::start(cluster, &self.name, port));
    }

    /// Returns true if the process has ended as it should, false if otherwise, `None` while it runs.
    fn ended(&mut self) -> Option<bool> {
        let status = self.child.try_wait().expect("a child");
        status.map(|status| status.success())
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Player {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Player {
    fn line(&self, begin: &str) -> Option<String> {
        let lines = self.lines.lock().expect("no panic");
        lines.iter().find(|line| line.starts_with(begin)).cloned()
    }

    fn said(&self, begin: &str) -> bool {
        self.line(begin).is_some()
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
