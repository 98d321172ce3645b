//! The example games over real sockets on the loopback interface.
#![allow(
    clippy::disallowed_methods,
    reason = "real sockets need a real clock; nothing is judged by it"
)]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use muse_lockstep::samples::duel::{Buttons, Duel};
use muse_lockstep::samples::rts::{Order, Rts};
use muse_lockstep::{
    Client, Config, Frame, Game, Host, Orderer, Peer, Rng, Role, Server, Session, Status,
};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine};

/// A machine and its socket.
struct Node<G: Game> {
    peer: Peer<G>,
    socket: UdpSocket,
}

impl<G: Game> Node<G> {
    /// Everything that can be done now.
    fn turn(&mut self, now: Instant) {
        let mut buffer = [0; 2_048];
        while let Ok((len, from)) = self.socket.recv_from(&mut buffer) {
            let payload = &mut buffer[..len];
            let ecn = Ecn::NotCapable;
            self.peer
                .handle_datagram(now, Datagram { from, ecn, payload });
        }
        if self.peer.poll_timeout().is_some_and(|at| at <= now) {
            self.peer.handle_timeout(now);
        }
        while let Some(transmit) = self.peer.poll_transmit(now, &mut buffer) {
            // A full socket is like a lost packet.
            let _ = self.socket.send_to(&buffer[..transmit.len], transmit.to);
        }
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_addr().expect("it is bound")
    }
}

fn node<G: Game>(peer: impl FnOnce() -> Peer<G>) -> Node<G> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    socket
        .set_nonblocking(true)
        .expect("it can be asked without waiting");
    let peer = peer();
    Node { peer, socket }
}

fn client<G: Game>(config: &Config, state: G, server: SocketAddr, nonce: u32) -> Node<G> {
    let session = Session::new(config.clone(), state, Role::Player, nonce);
    let session = session.expect("the settings make sense");
    node(|| Peer::Client(Box::new(Client::new(session, server))))
}

/// Plays until everybody has confirmed so many frames, then compares all states that everybody has.
fn play<G: Game>(nodes: &mut [Node<G>], frames: u32, mut act: impl FnMut(&mut Session<G>, usize)) {
    let start = std::time::Instant::now();
    let reached = |node: &Node<G>| {
        node.peer
            .session()
            .is_none_or(|session| session.confirmed().min(session.frame()).0 > frames)
    };
    while !nodes.iter().all(reached) {
        let now = Instant::from_micros(start.elapsed().as_micros() as u64);
        assert!(now < Instant::from_secs(60), "the match does not go on");
        for (index, node) in nodes.iter_mut().enumerate() {
            if let Some(session) = node.peer.session_mut() {
                act(session, index);
            }
            node.turn(now);
        }
        std::thread::yield_now();
    }
    let mut scratch = Vec::new();
    let mut compared = 0;
    for frame in (0..frames).map(Frame) {
        let sessions = nodes.iter().filter_map(|node| node.peer.session());
        let sums =
            sessions.filter_map(|session| Some(session.state_at(frame)?.checksum(&mut scratch)));
        let sums: Vec<u64> = sums.collect();
        assert!(
            sums.windows(2).all(|pair| pair[0] == pair[1]),
            "frame {frame}"
        );
        compared += sums.len();
    }
    assert!(compared as u32 >= frames, "{compared} states were compared");
}

#[test]
fn the_duel_over_udp() {
    let config = Config::rollback(2).frame(Duration::from_millis(4)).delay(0);
    let host = Host::new(config.clone(), Duel::new(3), 1).expect("the settings make sense");
    let host = node(|| Peer::Host(Box::new(host)));
    let other = client(&config, Duel::new(3), host.address(), 2);
    let mut rng = Rng::new(1);
    let mut nodes = [host, other];
    play(&mut nodes, 250, |session, _| {
        if rng.below(500) == 0 {
            session
                .set_input(Buttons::from_bits(rng.next() as u8))
                .expect("six bits");
        }
    });
    let state = nodes[0].peer.session().expect("it plays").state();
    assert!(
        state.fighters[0].at != [-1_500, 0],
        "somebody moved: {state:?}"
    );
}

#[test]
fn the_strategy_game_over_udp() {
    let config = Config::lockstep(4).frame(Duration::from_millis(5));
    let orderer = Orderer::new::<Rts>(config.clone()).expect("the settings make sense");
    let server = node(|| Peer::Server(Box::new(Server::new(orderer))));
    let address = server.address();
    let mut nodes = vec![server];
    nodes.extend((0..4).map(|nonce| client(&config, Rts::new(4, 50, 2), address, nonce)));
    let mut rng = Rng::new(1);
    play(&mut nodes, 25, |session, _| {
        if rng.below(2_000) == 0 {
            let to = [rng.below(64) as u8, rng.below(64) as u8];
            let order = Order {
                from: [32, 32],
                radius: 64,
                to,
            };
            session.set_input(vec![order]).expect("it is small");
        }
    });
    let session = nodes[1].peer.session().expect("it plays");
    assert!(matches!(
        session.status(),
        Status::Running | Status::Waiting { .. }
    ));
    let moved = session
        .state()
        .units
        .iter()
        .filter(|unit| unit.at != unit.goal)
        .count();
    assert!(moved > 0, "units are on their way");
}
