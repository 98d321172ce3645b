//! The crowd of `muse bench connections` and `muse bench flood`, over the loopback interface.

#[path = "support/program.rs"]
mod program;

use program::Program;
use serde_json::Value;

fn crowd(server: &str) -> (Program, String, Program) {
    let mut server = Program::start(server);
    let address = format!("127.0.0.1:{}", server.expect("ready"));
    let mut clients = Program::start(&format!(
        "bench-crowd clients --server {address} --clients 20 --sockets 3 --rate 20 --reliable-every 10 --seconds 1"
    ));
    clients.expect("connected");
    server.say("go");
    (server, address, clients)
}

fn assert_all_delivered(clients: &Value, server: &Value) {
    assert_eq!(clients["sent"]["unreliable"], 360);
    assert_eq!(clients["sent"]["reliable"], 40);
    for side in [&server["received"], &server["sent"], &clients["received"]] {
        assert_eq!(side, &clients["sent"]);
    }
    assert_eq!(
        (&clients["cut"], &clients["refused"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn every_message_is_counted_on_each_side() {
    let (server, _, mut clients) = crowd("bench-crowd server");
    clients.say("go");
    clients.expect("done");
    assert_all_delivered(&clients.stop(), &server.stop());
}

#[test]
fn a_flood_is_answered_with_less_than_it_asks() {
    let (server, address, mut clients) = crowd("bench-crowd server --drain");
    let mut flood = Program::start(&format!("bench-flood --server {address}"));
    flood.expect("started");
    flood.say("go");
    clients.say("go");
    clients.expect("done");
    let (flood, clients, server) = (flood.stop(), clients.stop(), server.stop());
    let number = |value: &Value| value.as_u64().expect("a number");
    assert!(number(&flood["replies"]) > 0, "{flood}");
    assert!(
        number(&flood["reply_bytes"]) < number(&flood["sent_bytes"]),
        "{flood}"
    );
    assert!(
        number(&flood["reply_len_max"]) <= number(&flood["question_len_min"]),
        "{flood}"
    );
    assert!(
        number(&server["hellos"]) > 20 && number(&server["malformed"]) > 0,
        "{server}"
    );
    assert_eq!(clients["received"]["reliable"], 40, "{clients}");
}
