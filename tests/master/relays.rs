//! The relay that a master hands out is the nearest by what players have measured: real relays, one of them behind a slow network.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use muse_drivers::survey_relays;
use serde_json::{Value, json};

use super::program::{Master, Request};

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

/// A program that says in its first line where it listens.
struct Program {
    child: Child,
    address: SocketAddr,
}

impl Program {
    fn relay() -> Self {
        Self::start(&["relay", "127.0.0.1:0", "--drain-seconds", "0"])
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
