//! The duel over UDP, for two processes: `duel host 7000 [FILE]` and `duel join ADDRESS`. Bots hold the swords; the host records a replay
//! into FILE, which `muse replay FILE --verify` runs again.
#![allow(
    clippy::disallowed_methods,
    reason = "a program needs a clock and sleeps between frames"
)]

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration as StdDuration;

use muse_lockstep::replay::Recorder;
use muse_lockstep::samples::duel::{Buttons, Duel};
use muse_lockstep::{Client, Config, Happening, Host, Peer, Rng, Role, Session, Status};
use muse_wire::{Datagram, Ecn, Instant, Machine};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let config = Config::rollback(2);
    let (mut peer, port, file) = match words.as_slice() {
        ["host", port, file @ ..] => {
            let host = Host::new(config.clone(), Duel::new(1), std::process::id())?;
            (Peer::Host(Box::new(host)), port.parse()?, file.first())
        }
        ["join", address] => {
            let session = Session::new(
                config.clone(),
                Duel::new(1),
                Role::Player,
                std::process::id(),
            )?;
            let server: SocketAddr = address.parse()?;
            (
                Peer::Client(Box::new(Client::new(session, server))),
                0,
                None,
            )
        }
        _ => return Err("usage: duel host PORT [FILE] | duel join ADDRESS".into()),
    };
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
    socket.set_nonblocking(true)?;
    let mut recorder = Recorder::new(&config);
    let mut file = file.map(std::fs::File::create).transpose()?;
    let (start, mut rng, mut buffer) =
        (std::time::Instant::now(), Rng::new(port.into()), [0; 2_048]);
    while start.elapsed() < StdDuration::from_secs(60) {
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
        let Some(session) = peer.session_mut() else {
            break;
        };
        if matches!(session.status(), Status::Over(_) | Status::Lost) {
            break;
        }
        if rng.below(15) == 0 {
            session.set_input(Buttons::from_bits(rng.next() as u8))?;
        }
        while let Some(happening) = session.poll_happening() {
            if let Happening::Finalized(frame, event) = happening {
                println!("frame {frame}: {event:?}");
            }
        }
        recorder.record(session);
        if let Some(file) = &mut file {
            file.write_all(&recorder.take_bytes())?;
        }
        std::thread::sleep(StdDuration::from_millis(2));
    }
    if let Some(file) = &mut file {
        file.write_all(&recorder.finish())?;
    }
    Ok(())
}
