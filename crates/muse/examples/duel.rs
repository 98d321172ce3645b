//! The duel over UDP, encrypted, for two processes: `duel host 7000 [FILE]`, which prints an address, and `duel join ADDRESS`. Bots hold
//! the swords; the host records a replay into FILE, which `muse replay FILE --verify` runs again. The rules are
//! `muse_lockstep::samples::duel`.

#[path = "common/table.rs"]
mod table;

use muse::lockstep::samples::duel::{Buttons, Duel};
use muse::prelude::*;

fn main() -> table::Outcome {
    let mut held = Buttons::default();
    table::play(
        MatchConfig::rollback(2),
        Duel::new(1),
        |rng| {
            if rng.below(15) == 0 {
                held = Buttons::from_bits(rng.next() as u8);
            }
            held
        },
        |_, events| {
            for event in events {
                match event {
                    MatchEvent::Confirmed(frame, event) => println!("frame {frame}: {event:?}"),
                    MatchEvent::Predicted(..) | MatchEvent::Cancelled(..) => {}
                    other => println!("{other:?}"),
                }
            }
        },
    )
}
