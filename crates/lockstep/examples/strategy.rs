//! The strategy game over UDP: `strategy serve PORT PLAYERS`, and `strategy join ADDRESS PLAYERS` for each player. Bots give the orders.
#![allow(
    clippy::disallowed_methods,
    reason = "a program needs a clock and sleeps between frames"
)]

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration as StdDuration;

use muse_lockstep::samples::rts::{Order, Rts};
use muse_lockstep::{Client, Config, Orderer, Peer, Rng, Role, Server, Session, Status};
use muse_wire::{Datagram, Ecn, Instant, Machine};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [verb, place, players] = words.as_slice() else {
        return Err("usage: strategy serve PORT PLAYERS | strategy join ADDRESS PLAYERS".into());
    };
    let players: u8 = players.parse()?;
    let config = Config::lockstep(players);
    let (mut peer, port): (Peer<Rts>, u16) = match verb.as_str() {
        "serve" => {
            let orderer = Orderer::new::<Rts>(config)?;
            (Peer::Server(Box::new(Server::new(orderer))), place.parse()?)
        }
        _ => {
            let state = Rts::new(players, 50, 1);
            let session = Session::new(config, state, Role::Player, std::process::id())?;
            (
                Peer::Client(Box::new(Client::new(session, place.parse()?))),
                0,
            )
        }
    };
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
    socket.set_nonblocking(true)?;
    let mut rng = Rng::new(std::process::id().into());
    let (start, mut buffer, mut shown) = (std::time::Instant::now(), [0; 2_048], 0);
    loop {
        let now = Instant::from_micros(start.elapsed().as_micros() as u64);
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let (payload, ecn) = (&mut buffer[..len], Ecn::NotCapable);
            peer.handle_datagram(now, Datagram { from, ecn, payload });
        }
        peer.handle_timeout(now);
        while let Some(transmit) = peer.poll_transmit(now, &mut buffer) {
            // A full socket is like a lost packet.
            let _ = socket.send_to(&buffer[..transmit.len], transmit.to);
        }
        if let Some(session) = peer.session_mut() {
            if matches!(session.status(), Status::Over(_) | Status::Lost) {
                return Ok(());
            }
            if rng.below(500) == 0 {
                let mut tile = || rng.below(64) as u8;
                let order = Order {
                    from: [tile(), tile()],
                    radius: 32,
                    to: [tile(), tile()],
                };
                session.set_input(vec![order])?;
            }
            if session.frame().0 >= shown {
                shown = session.frame().0 + 10;
                let alive = session
                    .state()
                    .units
                    .iter()
                    .filter(|unit| unit.health > 0)
                    .count();
                println!(
                    "turn {}: {alive} units, {:?}",
                    session.frame(),
                    session.status()
                );
            }
        }
        std::thread::sleep(StdDuration::from_millis(2));
    }
}
