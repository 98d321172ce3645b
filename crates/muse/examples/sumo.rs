//! Sumo for two with rollback: push the other out of the ring.
//!
//!     sumo                      both in one program
//!     sumo host                 prints an address
//!     sumo join muse://...      joins it

use muse::prelude::*;

/// The whole state of the game, the same on all machines. Both wrestlers hold each other, so one place is enough.
#[derive(Clone, Default, Schema)]
struct Sumo {
    place: i32,
    speed: i32,
}

/// The buttons that a player holds in a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Schema)]
struct Buttons {
    push: bool,
}

impl DeterministicGame for Sumo {
    type Input = Buttons;
    type Event = Seat; // who is out of the ring

    /// One frame: reads the state and the inputs, and nothing else (no clock, no other randomness than `Rng`).
    fn step(&mut self, step: &mut Step<'_, Self>) {
        for (seat, buttons) in step.players() {
            let forward = [1, -1][seat.index()]; // they face each other
            self.speed += if buttons.push { forward } else { 0 };
        }
        self.place += self.speed;
        if self.place.abs() > RING {
            step.emit(Seat(u8::from(self.place > 0)));
            *self = Self::default(); // the next bout
        }
    }
}

const RING: i32 = 1_000;

/// Plays until somebody is out and leaves; `push` would come from the keyboard.
fn play(mut session: DeterministicSession<Sumo>, push: bool) -> muse::Result<()> {
    while !session.is_over() {
        // Sends and receives, runs the frame that is due, and runs frames again whose inputs were guessed wrong.
        for event in session.tick(|_frame| Buttons { push })? {
            match event {
                MatchEvent::Begun(_) => println!("you are player {:?}", session.seat()),
                MatchEvent::Confirmed(_, loser) => {
                    println!("out of the ring: {loser:?}"); // for certain, on all machines
                    if session.seat() == Some(loser) {
                        return Ok(()); // dropping the session says goodbye
                    }
                }
                MatchEvent::Left(..) => session.leave(),
                MatchEvent::Desynced(report) => println!("not deterministic: {report}"),
                MatchEvent::Interrupted => println!("connection lost, coming back"),
                _ => {}
            }
        }
        // Here a game draws `session.state()`.
    }
    Ok(())
}

fn main() -> muse::Result<()> {
    let config = MatchConfig::rollback(2); // two players, 60 frames a second
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["host"] => host("[::]:7000", config),
        ["host", address] => host(address, config),
        ["join", address] => {
            let session = DeterministicSession::join(address, config, Sumo::default())?;
            play(session, false)
        }
        _ => in_one_program(config),
    }
}

fn host(address: &str, config: MatchConfig) -> muse::Result<()> {
    // The key is made on the first run and kept in `muse-server.key`.
    let session = DeterministicSession::host(address, config, Sumo::default())?;
    println!("join with {}", session.address().expect("a host has one"));
    play(session, true)
}

/// Plays both, to try it, without a socket.
fn in_one_program(config: MatchConfig) -> muse::Result<()> {
    let mut host = DeterministicSession::host(Listen::offline(), config.clone(), Sumo::default())?;
    let way_in = host.join_offline().expect("a host has one");
    let guest = DeterministicSession::join(way_in, config, Sumo::default())?;
    let friend = std::thread::spawn(|| play(guest, false));
    play(host, true)?;
    friend.join().expect("it does not panic")
}
