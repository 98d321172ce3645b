//! The client's clock when the way to the server changes.

use muse_wire::Duration;

use crate::plot::*;
use crate::stage::{LabStage, TICK, conditions};

pub(super) fn plot() -> Plot {
    let mut stage = LabStage::new(3);
    stage.join(1, conditions(40));
    let (mut ahead, mut rate, mut error) = (Vec::new(), Vec::new(), Vec::new());
    let mut look = |stage: &mut LabStage| {
        let clock = stage.guest(0).client().clock();
        if !stage.is_every(Duration::from_millis(50)) || !clock.is_playing() {
            return;
        }
        let now = stage.seconds();
        // The server began its tick 0 when time began.
        let truth = now * 1e3;
        let of = |time: Option<muse_netcode::TickTime>| {
            time.map_or(0.0, |time| time.ticks() * TICK.as_millis_f64())
        };
        ahead.push((now, of(clock.play_time()) - truth));
        error.push((now, of(clock.server_time()) - truth));
        rate.push((now, clock.rate() * 100.0));
    };
    for round_trip in [40, 200, 80] {
        stage.set_conditions(0, conditions(round_trip));
        stage.run(Duration::from_secs(10), &mut look);
    }
    let half = [
        (0.0, 20.0),
        (10.0, 20.0),
        (10.0, 100.0),
        (20.0, 100.0),
        (20.0, 40.0),
        (30.0, 40.0),
    ];
    let time = || Axis::new("time (s)", 0.0, 30.0);
    Plot::new(
        "Clock: how far ahead of the server the client plays",
        "An input must be sent one way's time before its tick. When the round trip jumps from 40 to 200 ms and then to 80 ms, the clock runs up to 5 % faster or \
         slower until it is there; it never jumps, and nobody sees it. For some time after a change it keeps a tick in reserve.",
    )
    .panel(
        Panel::new(time(), ("time (ms)", 0.0, 160.0))
            .tall(240)
            .with("the way to the server", Grey, Dashed, half)
            .with("the client plays ahead by", Blue, Line, ahead),
    )
    .panel(
        Panel::new(time(), ("speed (%)", 92.0, 108.0))
            .tall(130)
            .with("speed of the client's clock", Orange, Line, rate),
    )
    .panel(
        Panel::new(time(), ("error (ms)", -30.0, 30.0))
            .tall(130)
            .with("what the client takes for the server's time, less the truth", Purple, Line, error),
    )
}
