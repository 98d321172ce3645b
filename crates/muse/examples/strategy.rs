//! The strategy game over UDP for three: `strategy serve PORT`, and `strategy join ADDRESS` for each player. Bots give the orders. The
//! rules are `muse_lockstep::samples::rts`.

#[path = "common/table.rs"]
mod table;

use muse_lockstep::MatchConfig;
use muse_lockstep::samples::rts::{Order, Rts};

fn main() -> table::Outcome {
    let (config, game, mut shown) = (MatchConfig::lockstep(3), Rts::new(3, 50, 1), 0);
    table::play(config, game, |session, rng| {
        if rng.below(500) == 0 {
            let [from, to] = [(); 2].map(|()| [(); 2].map(|()| rng.below(64) as u8));
            let radius = 32;
            session.set_input(vec![Order { from, radius, to }])?;
        }
        if session.frame().0 >= shown {
            shown = session.frame().0 + 10;
            let alive = session.state().units.iter().filter(|unit| unit.health > 0);
            println!("turn {}: {} units", session.frame(), alive.count());
        }
        Ok(())
    })
}
