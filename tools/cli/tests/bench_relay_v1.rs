//! The programs of `muse bench relay --v1`, over the loopback interface and with few clients.
#![cfg(unix)]

#[path = "support/program.rs"]
mod program;

use program::Program;

#[test]
fn every_broadcast_over_tcp_arrives_even_beside_hostile_clients() {
    let mut server = Program::start("bench-relay server");
    let port = server.expect("ready");
    let mut clients = Program::start(&format!(
        "bench-relay clients --server 127.0.0.1:{port} --clients 6 --rate 20 --seconds 1 --hostile"
    ));
    clients.expect("connected");
    server.say("go");
    clients.say("go");
    clients.expect("done");
    let (clients, server) = (clients.stop(), server.stop());
    assert_eq!(
        (&clients["tcp_sent"], &clients["cut"]),
        (&12.into(), &0.into())
    );
    assert_eq!(clients["tcp_received"], 12 * 5);
    assert_eq!(clients["udp_sent"], 6 * 20);
    assert!(server["datagrams_limited"].as_u64() > Some(0), "{server}");
    assert!(server["ticks"].as_u64() > Some(0), "{server}");
}

#[test]
fn the_idle_timer_reports_how_late_it_wakes() {
    let mut timer = Program::start("bench-relay timer");
    timer.expect("connected");
    timer.say("go");
    let report = timer.stop();
    assert!(
        report["p99"].is_number() && report["max"].is_number(),
        "{report}"
    );
}
