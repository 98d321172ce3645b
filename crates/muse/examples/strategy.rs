//! The strategy game over UDP, encrypted, for three: `strategy serve 7001`, which prints an address, and `strategy join ADDRESS` for each
//! player. Or in a relay's room, where the match goes on when its host is gone: `strategy room RELAY`, which prints a code, and `strategy join RELAY CODE`. Bots give the orders. The rules are `muse_lockstep::samples::rts`.

#[path = "common/table.rs"]
mod table;

use muse::lockstep::samples::rts::{Order, Rts};
use muse::prelude::*;

fn main() -> table::Outcome {
    let mut shown = 0;
    table::play(
        MatchConfig::lockstep(3),
        Rts::new(3, 50, 1),
        |rng| {
            let [from, to] = [(); 2].map(|()| [(); 2].map(|()| rng.below(64) as u8));
            let radius = 32;
            match rng.below(3) {
                0 => vec![Order { from, radius, to }],
                _ => Vec::new(),
            }
        },
        |session, _| {
            if let Some(state) = session.state()
                && session.frame().0 >= shown
            {
                shown = session.frame().0 + 10;
                let alive = state.units.iter().filter(|unit| unit.health > 0);
                println!("turn {}: {} units", session.frame(), alive.count());
            }
        },
    )
}
