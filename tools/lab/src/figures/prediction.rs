//! The client's own player when the server knows better.

use muse_netcode::{EntityId, Server, Tick};
use muse_wire::Duration;

use crate::character::{Body, Keys, Rules, TICKS_PER_SECOND, kinds};
use crate::plot::*;
use crate::stage::{LabStage, Scene, conditions};

pub(super) fn plot() -> Plot {
    let mut stage = LabStage::new(5);
    let run = |tick: Tick| Keys {
        // To the right and back, every 0.8 s.
        right: if (tick.0 / 40).is_multiple_of(2) {
            1
        } else {
            -1
        },
        ..Keys::default()
    };
    let player = stage.join_as(Body::at(0.0, 0.0), conditions(100), run);
    let mut scene = Blast {
        player,
        server: Vec::new(),
        ghost: Vec::new(),
        drawn: Vec::new(),
    };
    stage.run(Duration::from_millis(6_000), &mut scene);
    let counters = stage.guest(0).client().prediction();
    Plot::new(
        "Prediction: the client is ahead, and corrected once",
        &format!(
            "Round trip 100 ms. The player turns when its keys say so, long before the server does the same. At 4.2 s an explosion throws it, of which the client could not know: the simulated \
             body jumps to where the server says it is by now, the drawn one follows within a moment. Of {} answers {} corrected anything.",
            counters.confirmed + counters.corrected,
            counters.corrected,
        ),
    )
    .panel(
        Panel::new(("time (s)", 3.0, 5.6), ("position (m)", -5.0, 4.0))
            .tall(330)
            .with("server", Blue, Line, scene.server)
            .with("client, simulated (ghost)", Grey, Line, scene.ghost)
            .with("client, drawn", Orange, Line, scene.drawn),
    )
}

struct Blast {
    player: EntityId,
    server: Vec<(f64, f64)>,
    ghost: Vec<(f64, f64)>,
    drawn: Vec<(f64, f64)>,
}

impl Scene for Blast {
    fn tick(&mut self, server: &mut Server<Rules>, tick: Tick) {
        if tick.0 == 42 * TICKS_PER_SECOND / 10 {
            let kind = kinds().1;
            let mut body = server.world().state(kind, self.player).expect("it plays");
            body.velocity[0] += 22.0;
            let thrown = server.world_mut().set(kind, self.player, &body);
            thrown.expect("it plays");
        }
    }

    fn look(&mut self, stage: &mut LabStage) {
        let now = stage.seconds();
        if !stage.is_every(Duration::from_millis(5)) || !(3.0..5.6).contains(&now) {
            return;
        }
        let x = |body: &Body| (now, f64::from(body.position[0]));
        self.server.extend(stage.truth(self.player).iter().map(x));
        let client = stage.guest(0).client();
        self.ghost.extend(client.predicted().map(x));
        self.drawn.extend(client.shown_player().iter().map(x));
    }
}
