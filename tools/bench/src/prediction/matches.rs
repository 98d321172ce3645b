//! A match of eight bots and the ball, and the figures of what they predicted and saw.

use std::sync::Arc;

use muse_biobot::bots::Brain;
use muse_biobot::table::{Seats, Table};
use muse_biobot::{Command, Level, Player, Stage, StageConfig};
use muse_netcode::{ClientId, PacketError};
use muse_netem::{Conditions, Jitter};
use muse_wire::{Duration, Instant};
use serde::Serialize;

use super::seat::{Answer, CONTACT_GAP, Seat};
use super::truth::{Touch, Truth};

/// Predictions and views of eight players, in one match or several.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Figures {
    pub(super) player_seconds: f64,
    pub(super) own_touches: OwnTouches,
    pub(super) others: OthersTouches,
    pub(super) own_robot: OwnRobot,
    pub(super) handover: Handover,
    /// The largest step of a predicted ball in a frame beside its own motion.
    pub(super) ball_smoothing_cm: f64,
    /// Of the player with most.
    pub(super) down_kbit_s: f64,
}

/// Touches of the ball with nobody else near it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct OwnTouches {
    pub(super) count: u64,
    /// Those after which the ball was corrected by more than 10 cm.
    pub(super) corrected: u64,
    /// Touches that are left out because somebody else touched the ball when the player could not know it yet.
    pub(super) others_unknown: u64,
}

impl OwnTouches {
    /// Returns the share that was corrected; `None` if there was no touch.
    pub(super) fn share(&self) -> Option<f64> {
        (self.count > 0).then(|| self.corrected as f64 / self.count as f64)
    }
}

/// Corrections of a ball that others touched.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct OthersTouches {
    pub(super) corrections: u64,
    /// Those larger than change of speed x time not known yet + 10 cm.
    pub(super) beyond: u64,
    pub(super) worst_m: f64,
    /// The largest beyond that bound; negative if all are within.
    pub(super) worst_excess_m: Option<f64>,
}

/// The own robot beside the ball, without contact.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct OwnRobot {
    pub(super) answers: u64,
    /// Answers that are left out because an input had not come in time.
    pub(super) late: u64,
    pub(super) wrong: u64,
    pub(super) worst_cm: f64,
}

/// Entities that go over from interpolated to predicted or back.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Handover {
    pub(super) count: u64,
    pub(super) frames: u64,
    pub(super) worst_cm: f64,
}

impl Figures {
    /// Adds those of another match.
    pub(super) fn add(&mut self, other: Self) {
        self.player_seconds += other.player_seconds;
        self.own_touches.count += other.own_touches.count;
        self.own_touches.corrected += other.own_touches.corrected;
        self.own_touches.others_unknown += other.own_touches.others_unknown;
        self.others.corrections += other.others.corrections;
        self.others.beyond += other.others.beyond;
        self.others.worst_m = self.others.worst_m.max(other.others.worst_m);
        let excesses = [self.others.worst_excess_m, other.others.worst_excess_m];
        self.others.worst_excess_m = excesses.into_iter().flatten().reduce(f64::max);
        self.own_robot.answers += other.own_robot.answers;
        self.own_robot.late += other.own_robot.late;
        self.own_robot.wrong += other.own_robot.wrong;
        self.own_robot.worst_cm = self.own_robot.worst_cm.max(other.own_robot.worst_cm);
        self.handover.count += other.handover.count;
        self.handover.frames += other.handover.frames;
        self.handover.worst_cm = self.handover.worst_cm.max(other.handover.worst_cm);
        self.ball_smoothing_cm = self.ball_smoothing_cm.max(other.ball_smoothing_cm);
        self.down_kbit_s = self.down_kbit_s.max(other.down_kbit_s);
    }

    /// Prints them as a table.
    pub(super) fn print(&self) {
        let Self {
            own_touches,
            others,
            own_robot,
            handover,
            ..
        } = self;
        println!(
            "ball, eight bots, 150 ms there and back, 5 % loss, {:.0} s of play for each",
            self.player_seconds / f64::from(PLAYERS)
        );
        println!(
            "  own touches, nobody else within 2 m      {:6}, {} corrected by more than 10 cm; {} besides, with a touch of others not known yet",
            own_touches.count, own_touches.corrected, own_touches.others_unknown
        );
        println!(
            "  corrections after touches of others      {:6}, {} beyond the bound, {:.2} m at most",
            others.corrections, others.beyond, others.worst_m
        );
        println!(
            "  largest step of the ball beside its way  {:6.1} cm a frame",
            self.ball_smoothing_cm
        );
        println!(
            "  own robot beside the ball, no contact    {:6} answers, {} wrong, {:.1} cm at most; {} after late inputs",
            own_robot.answers, own_robot.wrong, own_robot.worst_cm, own_robot.late
        );
        println!(
            "  from interpolated to predicted and back  {:6} times, {} frames, {:.2} cm a frame at most",
            handover.count, handover.frames, handover.worst_cm
        );
        println!(
            "  bytes down, of the player with most      {:6.1} kbit/s",
            self.down_kbit_s
        );
    }
}

/// Plays a match of so many seconds from a seed.
pub(super) fn play(seed: u64, seconds: u32) -> Figures {
    let level = Arc::new(Level::pitch());
    let config = StageConfig::new(Arc::clone(&level))
        .seed(seed)
        .slots(PLAYERS)
        .goals_to_win(250)
        .cancels(false);
    let mut table = Table::new(config, PLAYERS, network(), seed);
    let mut bots = Bots::new(&level, &table, seed);
    for _ in 0..BEGIN_SECONDS * STEPS_PER_SECOND {
        table.step_with(&mut bots);
    }
    bots.begin(&table);
    let before: Vec<_> = table.guests.iter().map(sent).collect();
    for _ in 0..seconds * STEPS_PER_SECOND {
        table.step_with(&mut bots);
    }
    let rates = table.guests.iter().zip(before).map(|(guest, before)| {
        let bytes = sent(guest) - before;
        bytes as f64 * 8.0 / 1e3 / f64::from(seconds)
    });
    let mut figures = bots.figures();
    figures.down_kbit_s = rates.fold(0.0, f64::max);
    figures.player_seconds = f64::from(seconds * u32::from(PLAYERS));
    figures
}

/// Bytes that were sent to a player, with what the transport adds to each datagram.
fn sent(guest: &muse_biobot::table::Guest) -> u64 {
    guest.bytes[1] + guest.packets[1] * DATAGRAM_BYTES
}

fn network() -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(75))
        .jitter(Jitter::Uniform(Duration::from_millis(5)))
        .loss(0.05)
}

/// The players.
struct Bots {
    brains: Vec<Brain>,
    commands: Vec<Command>,
    seats: Vec<Seat>,
    clients: Vec<ClientId>,
    truth: Truth,
    steps: u32,
}

impl Bots {
    fn new(level: &Arc<Level>, table: &Table, seed: u64) -> Self {
        let brain = |slot: u8| Brain::new(Arc::clone(level), seed * 100 + u64::from(slot));
        Self {
            brains: (0..PLAYERS).map(brain).collect(),
            commands: vec![Command::default(); usize::from(PLAYERS)],
            seats: seats(table),
            clients: table.guests.iter().map(|guest| guest.client).collect(),
            truth: Truth::default(),
            steps: 0,
        }
    }

    /// Forgets everything from before the match had begun.
    fn begin(&mut self, table: &Table) {
        self.seats = seats(table);
        self.truth = Truth::default();
    }

    fn figures(&self) -> Figures {
        let mut figures = Figures::default();
        let touches = self.truth.touches();
        for (slot, seat) in (0..PLAYERS).zip(&self.seats) {
            for touch in touches.iter().filter(|touch| touch.slot == slot) {
                self.judge_touch(touch, &seat.answers, &mut figures.own_touches);
            }
            for answer in &seat.answers {
                self.judge_others(slot, answer, &mut figures.others);
                self.judge_own(slot, answer, &mut figures.own_robot);
            }
            let centimetres = |metres: f32| f64::from(metres) * 100.0;
            let Handover {
                count,
                frames,
                worst_cm,
            } = &mut figures.handover;
            *count += seat.steps.handovers;
            *frames += seat.steps.handover_frames;
            *worst_cm = worst_cm.max(centimetres(seat.steps.handover_worst));
            let smoothing = &mut figures.ball_smoothing_cm;
            *smoothing = smoothing.max(centimetres(seat.steps.ball_worst));
        }
        figures
    }

    /// The answers that tell of the touch say the ball is where it was predicted, or not.
    fn judge_touch(&self, touch: &Touch, answers: &[Answer], figures: &mut OwnTouches) {
        let (slot, ticks) = (touch.slot, touch.ticks.clone());
        if self.truth.others_near(slot, ticks.clone(), NEAR_METRES) {
            return;
        }
        let tells = |answer: &&Answer| {
            answer.tick.0 >= *ticks.start() && answer.ball_before.0 < *ticks.end()
        };
        let told: Vec<_> = answers.iter().filter(tells).collect();
        let changes = told.iter().filter_map(|answer| answer.ball.as_ref());
        let Some(worst) = changes.map(|change| change.metres).reduce(f32::max) else {
            return;
        };
        let last = told.iter().map(|answer| answer.newest.0).max();
        let start = ticks.start().saturating_sub(UNKNOWN_TICKS);
        if self
            .truth
            .others_touch(slot, start..=last.unwrap_or(*ticks.end()))
        {
            // The ball was not where the player saw it, or not for long: that is judged by what others did.
            figures.others_unknown += 1;
            return;
        }
        figures.count += 1;
        figures.corrected += u64::from(worst > CORRECTED_METRES);
    }

    fn judge_others(&self, slot: u8, answer: &Answer, figures: &mut OthersTouches) {
        let unknown = answer.ball_before.0 + 1..=answer.newest.0;
        let change = answer.ball.as_ref();
        let Some(change) = change.filter(|change| change.metres > 0.0) else {
            return;
        };
        if !self.truth.others_touch(slot, unknown) {
            return;
        }
        let seconds = (answer.newest - answer.ball_before) as f32 * muse_biobot::TICK_SECONDS;
        // Of the ticks until the snapshot's the player never hears: there it is what the server says.
        let until = change.until.iter();
        let unheard = until.filter(|(tick, _)| *tick > answer.ball_before);
        let speeds = unheard.filter_map(|(tick, ball)| self.truth.speed_change(*tick, ball));
        let speed = speeds.fold(change.speed, f32::max);
        let excess = change.metres - (speed * seconds + CORRECTED_METRES);
        figures.corrections += 1;
        figures.beyond += u64::from(excess > 0.0);
        figures.worst_m = figures.worst_m.max(f64::from(change.metres));
        let worst = figures.worst_excess_m.unwrap_or(f64::MIN);
        figures.worst_excess_m = Some(worst.max(f64::from(excess)));
    }

    fn judge_own(&self, slot: u8, answer: &Answer, figures: &mut OwnRobot) {
        let told = answer.own_before.0 + 1..=answer.tick.0;
        let Some(metres) = answer.own else {
            return;
        };
        if self.truth.in_contact(slot, told.clone(), CONTACT_GAP) {
            return;
        }
        if self.truth.was_late(slot, told) {
            // The server has to guess then.
            figures.late += 1;
            return;
        }
        figures.answers += 1;
        figures.wrong += u64::from(metres > 0.0);
        figures.worst_cm = figures.worst_cm.max(f64::from(metres) * 100.0);
    }
}

impl Seats for Bots {
    fn command(&mut self, now: Instant, index: usize, player: &mut Player) -> Command {
        if index == 0 {
            self.steps += 1;
        }
        if self.steps.is_multiple_of(STEPS_PER_FRAME) {
            self.commands[index] = self.brains[index].act(now, player);
            // A bot looks once a tick only.
            player.frame(now);
            self.seats[index].look(now, player);
        }
        self.commands[index]
    }

    fn deliver(
        &mut self,
        now: Instant,
        index: usize,
        player: &mut Player,
        bytes: &[u8],
    ) -> Result<(), PacketError> {
        self.seats[index].deliver(now, player, bytes)
    }

    fn handle_tick(&mut self, stage: &Stage) {
        self.truth.note(stage, &self.clients);
    }
}

fn seats(table: &Table) -> Vec<Seat> {
    let kinds = table.stage.kinds();
    table.guests.iter().map(|_| Seat::new(kinds)).collect()
}

const PLAYERS: u8 = 8;
const STEPS_PER_SECOND: u32 = 200;
/// Frames of 15 ms.
const STEPS_PER_FRAME: u32 = 3;
/// Seconds until the match is under way.
const BEGIN_SECONDS: u32 = 10;
/// Bytes that the transport adds to a datagram.
const DATAGRAM_BYTES: u64 = 28;
/// Nobody else is as near to the ball when a touch is one's own alone.
const NEAR_METRES: f32 = 2.0;
/// Ticks of which a player does not know yet when they touch the ball.
const UNKNOWN_TICKS: u32 = 12;
/// A correction that counts.
const CORRECTED_METRES: f32 = 0.1;
