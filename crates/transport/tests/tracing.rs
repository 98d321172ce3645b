//! With the feature `tracing` an endpoint says what it does, and a refused client's cause is in the server's log.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use muse_netem::{Network, Simulation};
use muse_transport::{
    ChannelConfig, Config, Connect, Delivery, Endpoint, SeededEntropy, ServerKey, ServerOptions,
};
use muse_wire::{Duration, Instant};
use tracing_subscriber::EnvFilter;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a client that connects and closes, and returns what was said about it with this filter.
fn life(filter: &str, server_protocol: u64, server_shares: &str) -> String {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .without_time()
        .finish();
    tracing::subscriber::with_default(subscriber, || run(server_protocol, server_shares));
    let bytes = lines.0.lock().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn run(server_protocol: u64, server_shares: &str) {
    let config = |protocol, shares: &str| {
        let channel = ChannelConfig::new(Delivery::ReliableOrdered);
        let config = Config::new(protocol).channel(channel).shared(shares);
        config.build().expect("a channel")
    };
    let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(1));
    let connect = Connect::pinned(key.public());
    let mut server = Endpoint::new(
        config(server_protocol, server_shares),
        SeededEntropy::danger_seeded(2),
    );
    server.listen(ServerOptions::new(key));
    let mut client = Endpoint::new(config(1, "same"), SeededEntropy::danger_seeded(3));
    let there = ([192, 0, 2, 2], 2).into();
    let connection = client.connect(Instant::ZERO, there, connect);
    let connection = connection.expect("there is room");
    let mut simulation = Simulation::new(Network::new(1));
    let client = simulation.add(([192, 0, 2, 1], 1).into(), client);
    simulation.add(there, server);
    simulation.run_for(Duration::from_millis(200));
    let now = simulation.now();
    simulation.node_mut(client).close(now, connection, 7, "");
    simulation.run_for(Duration::from_millis(200));
}

#[test]
fn a_handshake_and_its_end_are_told_step_by_step() {
    let told = life("muse_transport=debug", 1, "same");
    let steps = [
        "connecting",
        "trying an address",
        "the server answered with a cookie",
        "accepted a client",
        "connected",
        "closing",
        "ByPeer",
    ];
    let mut rest = &told[..];
    for step in steps {
        assert!(
            rest.contains(step),
            "{step} is not where it belongs in\n{told}"
        );
        rest = rest.split_once(step).map_or("", |(_, after)| after);
    }
    assert!(!told.contains("TRACE"), "{told}");
}

#[test]
fn packets_are_told_one_by_one_at_the_finest_level() {
    let told = life("muse_transport=trace", 1, "same");
    assert!(told.contains("sent") && told.contains("received"), "{told}");
}

#[test]
fn a_refusal_names_its_cause_in_the_servers_log() {
    let told = life("muse_transport=debug", 1, "other");
    assert!(told.contains("refused a client"), "{told}");
    let told = life("muse_transport=debug", 2, "same");
    assert!(told.contains("another protocol id"), "{told}");
}
