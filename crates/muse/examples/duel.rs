//! The duel over UDP, for two processes: `duel host 7000 [FILE]` and `duel join ADDRESS`. Bots hold the swords; the host records a replay
//! into FILE, which `muse replay FILE --verify` runs again. The rules are `muse_lockstep::samples::duel`.

#[path = "common/table.rs"]
mod table;

use muse_lockstep::samples::duel::{Buttons, Duel};
use muse_lockstep::{GameEvent, MatchConfig};

fn main() -> table::Outcome {
    table::play(MatchConfig::rollback(2), Duel::new(1), |session, rng| {
        if rng.below(15) == 0 {
            session.set_input(Buttons::from_bits(rng.next() as u8))?;
        }
        while let Some(event) = session.poll_game_event() {
            if let GameEvent::Confirmed(frame, event) = event {
                println!("frame {frame}: {event:?}");
            }
        }
        Ok(())
    })
}
