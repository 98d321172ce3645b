//! Several relays: everybody measures, and the choice is the one that suits all.

use std::net::SocketAddr;

use muse_netem::{Conditions, Network, NodeId, Simulation};
use muse_relay::{Limits, Relay, Report, Survey, choose};
use muse_wire::{Datagram, Duration, Instant, Machine, Transmit};

use crate::world::seeds;

enum Node {
    Relay(Box<Relay>),
    Survey(Box<Survey>),
}

impl Node {
    fn machine(&mut self) -> &mut dyn Machine {
        match self {
            Self::Relay(relay) => relay.as_mut(),
            Self::Survey(survey) => survey.as_mut(),
        }
    }
}

impl Machine for Node {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.machine().handle_datagram(now, datagram);
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.machine().handle_timeout(now);
    }
    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        self.machine().poll_transmit(now, buffer)
    }
    fn poll_timeout(&mut self) -> Option<Instant> {
        self.machine().poll_timeout()
    }
}

/// Members at points of a plane measure relays at other points, over lossy links with jitter.
fn measured(seed: u64) -> (Vec<Report>, Vec<Vec<u64>>) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut point = || (rng.u64(0..100), rng.u64(0..100));
    let relays: Vec<(u64, u64)> = (0..5).map(|_| point()).collect();
    let members: Vec<(u64, u64)> = (0..4).map(|_| point()).collect();
    let mut network = Network::new(seed);
    network.set_default(Conditions::default());
    let mut simulation = Simulation::new(network);
    let relay_at = |index: usize| SocketAddr::from(([203, 0, 113, index as u8], 1));
    let addresses: Vec<SocketAddr> = (0..relays.len()).map(relay_at).collect();
    let relay_nodes: Vec<NodeId> = (0..relays.len())
        .map(|index| {
            let relay = Relay::danger_open(Instant::ZERO, Limits::default(), [index as u8; 32]);
            simulation.add(relay_at(index), Node::Relay(Box::new(relay)))
        })
        .collect();
    let mut truth = Vec::new();
    let mut nodes = Vec::new();
    for (index, member) in members.iter().enumerate() {
        let survey = Survey::new(Instant::ZERO, &addresses, [index as u8; 32]);
        let at = SocketAddr::from(([198, 51, 100, index as u8], 1));
        let node = simulation.add(at, Node::Survey(Box::new(survey)));
        let delays: Vec<u64> = relays
            .iter()
            .map(|relay| 1 + relay.0.abs_diff(member.0) + relay.1.abs_diff(member.1))
            .collect();
        for (relay, delay) in relay_nodes.iter().zip(&delays) {
            let conditions = Conditions::default()
                .delay(Duration::from_millis(*delay))
                .loss(0.1);
            let network = simulation.network_mut();
            network.set_links(node, *relay, conditions);
        }
        truth.push(delays.iter().map(|delay| 2 * delay).collect());
        nodes.push(node);
    }
    simulation.run_for(Duration::from_secs(3));
    let reports = nodes.iter().map(|node| match simulation.node(*node) {
        Node::Survey(survey) => {
            assert!(survey.is_done(simulation.now()));
            survey.report()
        }
        Node::Relay(_) => unreachable!("no member"),
    });
    (reports.collect(), truth)
}

#[test]
fn the_choice_by_measurement_is_the_choice_by_truth() {
    let seeds = seeds(100);
    let mut right = 0;
    for seed in 0..seeds {
        let (reports, truth) = measured(seed);
        let longest = |relay: usize| {
            let ways = truth[1..]
                .iter()
                .map(|guest| truth[0][relay] + guest[relay]);
            ways.max().expect("there are guests")
        };
        let best = (0..5).map(longest).min().expect("there are relays");
        let chosen = choose(&reports).expect("some relay answers");
        let lost_all = |report: &Report| report.round_trips.iter().any(Option::is_none);
        if reports.iter().any(lost_all) {
            continue;
        }
        assert_eq!(longest(chosen), best, "seed {seed}");
        right += 1;
    }
    assert!(right > seeds / 2);
}
