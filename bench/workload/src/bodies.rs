//! Bodies that all move on smooth paths: the scene of the netcode workloads N1 and N2.
//!
//! The motion is made by additions, multiplications, divisions and roots only, so every machine makes the same.

use fastrand::Rng;

/// A body's position, rotation and velocity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Body {
    /// Metres.
    pub position: [f32; 3],
    /// A unit quaternion: x, y, z, w.
    pub rotation: [f32; 4],
    /// Metres per second.
    pub velocity: [f32; 3],
}

/// A body that is steered at random, but smoothly.
///
/// ```
/// use fastrand::Rng;
/// use muse_bench_workload::bodies::Moving;
/// let mut rng = Rng::with_seed(1);
/// let mut moving = Moving::new(&mut rng);
/// let before = moving.body;
/// moving.step(&mut rng);
/// assert_ne!(moving.body, before);
/// ```
#[derive(Clone, Debug)]
pub struct Moving {
    /// Its present state.
    pub body: Body,
    acceleration: [f32; 3],
    wanted: [f32; 3],
    turn: [f32; 3],
    turn_wanted: [f32; 3],
}

impl Moving {
    /// A body somewhere, on its way somewhere.
    pub fn new(rng: &mut Rng) -> Self {
        Self {
            body: Body {
                position: [0.0; 3].map(|_: f32| (rng.f32() - 0.5) * 400.0),
                rotation: [0.0, 0.0, 0.0, 1.0],
                velocity: [0.0; 3].map(|_: f32| (rng.f32() - 0.5) * 8.0),
            },
            acceleration: [0.0; 3],
            wanted: [0.0; 3],
            turn: [0.0; 3].map(|_: f32| rng.f32() - 0.5),
            turn_wanted: [0.0; 3].map(|_: f32| rng.f32() - 0.5),
        }
    }

    /// A tick, in finer steps so that the path has no corners.
    pub fn step(&mut self, rng: &mut Rng) {
        if rng.u32(0..20) == 0 {
            // Towards the middle, or anywhere.
            let centre = self.body.position.map(|place| -place * 0.01);
            self.wanted = centre.map(|pull| pull + (rng.f32() - 0.5) * 8.0);
            self.turn_wanted = [0.0; 3].map(|_: f32| (rng.f32() - 0.5) * 3.0);
        }
        let seconds = 1.0 / (TICKS_PER_SECOND as f32 * STEPS as f32);
        for _ in 0..STEPS {
            for axis in 0..3 {
                let wish = self.wanted[axis] - self.body.velocity[axis] * 0.2;
                self.acceleration[axis] += (wish - self.acceleration[axis]) * seconds * 3.0;
                self.body.velocity[axis] += self.acceleration[axis] * seconds;
                self.body.position[axis] += self.body.velocity[axis] * seconds;
                self.turn[axis] += (self.turn_wanted[axis] - self.turn[axis]) * seconds * 2.0;
            }
            self.rotate(seconds);
        }
    }

    fn rotate(&mut self, seconds: f32) {
        let [x, y, z, w] = self.body.rotation;
        let [a, b, c] = self.turn.map(|turn| turn * seconds / 2.0);
        let turned = [
            x + a * w + b * z - c * y,
            y + b * w + c * x - a * z,
            z + c * w + a * y - b * x,
            w - a * x - b * y - c * z,
        ];
        let length = turned.iter().map(|part| part * part).sum::<f32>().sqrt();
        self.body.rotation = turned.map(|part| part / length);
    }
}

/// Ticks of the scene.
pub const TICKS_PER_SECOND: f64 = 20.0;
/// Steps of the motion in a tick.
const STEPS: usize = 4;
