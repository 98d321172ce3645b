//! The relay that a master hands out is the nearest by what players have measured: real relays, one of them behind a slow network.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use muse::master::{Account, MasterEvent, RelayPass};
use muse::{Client, Join, Listen, Protocol, Server, ServerEvent};
use muse_drivers::{EndpointDriver, RoomOptions, load_or_create_key, new_key, survey_relays};
use muse_relay::{LinkEvent, Refusal};
use muse_transport::token::ConnectToken;
use muse_transport::{ChannelConfig, Config, Delivery, ServerOptions};
use muse_wire::Duration;
use serde_json::{Value, json};

use super::program::{Master, Request, free_ports, wait_for};

#[test]
fn the_master_hands_out_the_nearest_relay_by_measured_round_trip() {
    let (near, far) = (Program::relay(), Program::relay());
    let slow = Program::start(&[
        "proxy",
        "--listen",
        "127.0.0.1:0",
        "--to",
        &far.address.to_string(),
        "--rtt",
        "60",
    ]);
    let places = [
        format!("far={}", slow.address),
        format!("near={}", near.address),
    ];
    let master = Master::start(&["--relay", &places[0], "--relay", &places[1]], 1.0);
    let tokens = [master.token(1), master.token(2)];
    let page = master.request(Request::get("/v1/relays").bearer(&tokens[0]));
    let page = page.expect_json(200);
    let relays = page["relays"].as_array().expect("a list");
    let address = |relay: &Value| relay["address"].as_str().and_then(|at| at.parse().ok());
    let addresses: Vec<SocketAddr> = relays.iter().filter_map(address).collect();
    assert_eq!(addresses, [slow.address, near.address]);
    let report = survey_relays(&addresses).expect("a survey");
    let ms = |n: usize| report.round_trips[n].expect("it answers").as_millis();
    assert!(ms(0) >= 50 && ms(0) > ms(1), "{report:?}");

    let nearest = |token: &str, measured: Value| {
        let body = json!({ "latency_ms": measured }).to_string();
        let answer = master.request(Request::post("/v1/relay", &body).bearer(token));
        answer.expect_json(200)["region"].clone()
    };
    let measured = json!({ "far": ms(0), "near": ms(1) });
    assert_eq!(nearest(&tokens[0], measured.clone()), "near");
    // A friend in the same room who does not reach the near one: the far one is for both.
    let room = master.request(Request::post("/v1/room", "").bearer(&tokens[0]));
    let room = room.expect_json(200);
    let code = room["code"].as_str().expect("a code").to_owned();
    let join = Request::post(&format!("/v1/room/{code}"), "").bearer(&tokens[1]);
    master.request(join).expect(200);
    assert_eq!(nearest(&tokens[1], json!({ "far": 20 })), "far");
    assert_eq!(nearest(&tokens[0], measured), "far");
}

#[test]
fn without_relays_there_is_none_to_hand_out() {
    let master = Master::start(&[], 1.0);
    let token = master.token(1);
    let asked = Request::post("/v1/relay", r#"{"latency_ms":{}}"#).bearer(&token);
    master.request(asked).expect(404);
    let many: String = (0..17).map(|n| format!(r#""r{n}":1,"#)).collect();
    let body = format!(r#"{{"latency_ms":{{{}}}}}"#, many.trim_end_matches(','));
    let asked = Request::post("/v1/relay", &body).bearer(&token);
    master.request(asked).expect(422);
}

#[test]
fn a_signed_in_player_opens_a_room_at_a_relay_that_demands_the_masters_token() {
    let folder = std::env::temp_dir().join(format!("muse-relay-token-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("relay.key");
    let relay_key = load_or_create_key(&file).expect("a key").public();
    // The key alone decides where a token is good.
    let place = format!("eu=relay.example:7788/{relay_key}");
    let master = Master::start(
        &["--relay", &place, "--relay", "us=relay.example:7789"],
        1.0,
    );
    let page = master.request(Request::get("/v1/relays/key"));
    let key = page.expect_json(200)["key"].clone();
    let key = key.as_str().expect("a key");
    let file = file.to_str().expect("text");
    let relay = Program::start(&[
        "relay",
        "--listen",
        "127.0.0.1:0",
        "--master-key",
        key,
        "--key-file",
        file,
        "--drain-seconds",
        "0",
    ]);
    let player = master.token(1);
    let ask = |path: &str, bearer: &str| {
        let request = Request::post(path, "");
        master.request(request.bearer(bearer))
    };
    ask("/v1/relays/us/token", &player).expect(404);
    ask("/v1/relays/eu/token", "somebody").expect(401);
    let answer = ask("/v1/relays/eu/token", &player).expect_json(200);
    let token = answer["token"].as_str().expect("a token");
    let token = ConnectToken::from_text(token).expect("a token");
    assert_eq!(opened(relay.address, None), Err(Refusal::NoToken));
    assert_eq!(opened(relay.address, Some(token)), Ok(()));
    std::fs::remove_dir_all(&folder).expect("our folder");
}

#[test]
fn a_host_behind_a_master_opens_a_room_with_a_pass() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("relay.key");
    let relay_key = load_or_create_key(&file).expect("a key").public();
    let at = format!("127.0.0.1:{}", free_ports());
    let place = format!("eu={at}/{relay_key}");
    let master = Master::start(&["--relay", &place, "--relay", "us=127.0.0.1:1"], 1.0);
    let page = master.request(Request::get("/v1/relays/key"));
    let key = page.expect_json(200)["key"].clone();
    let _relay = Program::start(&[
        "relay",
        "--listen",
        &at,
        "--master-key",
        key.as_str().expect("a key"),
        "--key-file",
        file.to_str().expect("text"),
        "--drain-seconds",
        "0",
    ]);
    let url = format!("http://{}", master.authority());
    let account = Account::guest_key("a device of this test");
    let mut player = muse::master::Master::connect(&url, account).expect("a thread");
    let open = pass(&mut player, "us").map(drop);
    assert_eq!(open, Err(404), "it is open to everybody");
    let pass = pass(&mut player, "eu").expect("the relay demands it");
    assert_eq!(pass.address, at);
    assert!(player.relay_pass("eu/token?").is_err());

    let protocol = || Protocol::new("passes/1");
    let key = new_key().expect("randomness");
    let listen = Listen::at("127.0.0.1:0").key(key).room(&pass.address);
    let listen = listen.room_token(pass.token);
    let mut host = Server::listen(listen, protocol()).expect("a free port");
    let invitation = host.invitation().expect("it has a room");
    let join = || {
        let join = Join::from(&invitation).timeout(Duration::from_millis(500));
        Client::connect(join, protocol()).expect("a socket")
    };
    let mut guest = join();
    wait_for("a guest", LIMIT, || {
        let mut joined = false;
        // One that came before the room was open tries again.
        if guest.tick(|_, _| Ok(())).is_err() {
            guest = join();
        }
        let ticked = host.tick(|_, event| {
            joined |= matches!(event, ServerEvent::Joined(_));
            Ok(())
        });
        ticked.expect("the host runs");
        joined
    });
}

/// Asks for a pass; returns the status if it is refused.
fn pass(player: &mut muse::master::Master, region: &str) -> Result<RelayPass, u16> {
    let asked = player.relay_pass(region).expect("a region");
    let mut answer = None;
    wait_for("an answer", LIMIT, || {
        answer = match player.poll() {
            Some(MasterEvent::RelayPass(pass)) => Some(Ok(pass)),
            Some(MasterEvent::Answered(answer)) if answer.number == asked => {
                Some(Err(answer.result.expect_err("no pass").status))
            }
            _ => None,
        };
        answer.is_some()
    });
    answer.expect("just seen")
}

/// Opens a room; says why not.
fn opened(relay: SocketAddr, token: Option<ConnectToken>) -> Result<(), Refusal> {
    let config = Config::new(7).channel(ChannelConfig::new(Delivery::Unreliable));
    let options = ServerOptions::new(new_key().expect("randomness"));
    let mut host = EndpointDriver::bind("127.0.0.1:0", config, options).expect("a free port");
    let room = RoomOptions::default();
    let room = match token {
        Some(token) => room.token(token),
        None => room,
    };
    host.open_room_with(relay, room).expect("randomness");
    loop {
        host.wait(Duration::from_millis(100)).expect("a socket");
        host.tick(|_, _| {}).expect("a socket");
        match host.poll_relay_event() {
            Some(LinkEvent::Opened { .. }) => return Ok(()),
            Some(LinkEvent::Refused(reason)) => return Err(reason),
            Some(LinkEvent::Unanswered) => unreachable!("the relay answers"),
            _ => {}
        }
    }
}

const LIMIT: std::time::Duration = std::time::Duration::from_secs(30);

/// A program that says in its first line where it listens.
struct Program {
    child: Child,
    address: SocketAddr,
}

impl Program {
    fn relay() -> Self {
        Self::start(&["relay", "--listen", "127.0.0.1:0", "--drain-seconds", "0"])
    }

    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_muse"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("piped");
        let read = BufReader::new(output).read_line(&mut line);
        read.expect("a line");
        let mut words = line.split([' ', ',', '\n']);
        let address = words.find_map(|word| word.parse().ok());
        let address = address.unwrap_or_else(|| unreachable!("no address in {line:?}"));
        Self { child, address }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
