//! A recorded match, at any instant and from any player's eyes.

use glam::Vec3;
use muse::lockstep::replay::CHUNK_HEADER_BYTES;
use muse::netcode::{EntityId, TickTime};
use muse::schema::{Blend, State};

use super::RecordingError;
use super::container::chunks;
use super::log::Begin;
use super::snapshot::{self, Figures, News, Rows};
use crate::TICK_SECONDS;
use crate::level::Level;
use crate::messages::{Name, ToPlayer};
use crate::player::{
    BallShown, BoltShown, DeviceShown, EnemyShown, Frame, NetStatistics, OwnShown, RobotShown, Seen,
};
use crate::states::{Ball, Bolt, Device, Enemy, Robot, Round};

/// A recorded match that can be watched.
///
/// ```
/// use std::sync::Arc;
/// use muse_biobot::replay::Recording;
/// use muse_biobot::{Command, Level, Practice, StageConfig};
/// use muse::wire::Instant;
/// let config = StageConfig::new(Arc::new(Level::arena())).cancels(false);
/// let mut practice = Practice::recorded(config, 2, Instant::ZERO);
/// for milli in (0..3_000).step_by(10) {
///     practice.tick(Instant::from_millis(milli), |_, _| Command { forward: 1, ..Command::default() });
/// }
/// let file = practice.stage_mut().finish_recording();
/// let mut recording = Recording::parse(file)?;
/// let (first, last) = recording.ticks();
/// assert!(last - first > 100);
/// let frame = recording.frame(f64::from(last) - 3.5, 1);
/// assert_eq!(frame.own.as_ref().expect("it plays").robot.slot, 1);
/// # Ok::<(), muse_biobot::replay::RecordingError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recording {
    file: Vec<u8>,
    level: Level,
    seed: u64,
    /// Tick and place in the file of each snapshot, in order.
    places: Vec<Place>,
    names: Vec<Name>,
    marks: Vec<Mark>,
    /// The snapshots around what was shown last.
    at: usize,
    before: Rows,
    after: Rows,
    figures: Vec<Figures>,
    shown: f64,
    frame: Frame,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    tick: u32,
    start: usize,
    end: usize,
    whole: bool,
}

/// Something worth a mark on the timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// The tick.
    pub tick: u32,
    /// The message.
    pub message: ToPlayer,
}

impl Recording {
    /// Reads a file. What was not finished can be watched as far as it goes.
    pub fn parse(file: Vec<u8>) -> Result<Self, RecordingError> {
        let mut begin = None;
        let mut places = Vec::new();
        for chunk in chunks(&file)? {
            let Ok((at, letter, content)) = chunk else {
                break;
            };
            match letter {
                b'J' => begin = Begin::parse(content),
                b'W' => {
                    let Some((tick, bytes)) = content.split_first_chunk::<4>() else {
                        break;
                    };
                    let start = at + CHUNK_HEADER_BYTES + 4;
                    places.push(Place {
                        tick: u32::from_le_bytes(*tick),
                        start,
                        end: start + bytes.len(),
                        whole: snapshot::is_whole(bytes),
                    });
                }
                _ => {}
            }
        }
        let begin = begin.ok_or(RecordingError::OtherGame)?;
        let ordered = places.windows(2).all(|pair| pair[0].tick < pair[1].tick);
        if places.is_empty() || !places[0].whole || !ordered {
            return Err(RecordingError::Empty);
        }
        let mut recording = Self {
            file,
            level: begin.level,
            seed: begin.seed,
            places,
            names: Vec::new(),
            marks: Vec::new(),
            at: usize::MAX,
            before: Rows::new(),
            after: Rows::new(),
            figures: Vec::new(),
            shown: f64::MIN,
            frame: Frame::default(),
        };
        recording.index()?;
        Ok(recording)
    }

    /// The level it was played on.
    pub const fn level(&self) -> &Level {
        &self.level
    }

    /// Returns the random seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The first and the last tick that can be shown.
    pub fn ticks(&self) -> (u32, u32) {
        let last = self.places.last().map_or(0, |place| place.tick);
        (self.places[0].tick, last)
    }

    /// Returns the players.
    pub fn names(&self) -> &[Name] {
        &self.names
    }

    /// Kills, chat and the result, for the timeline.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// Returns what is to be drawn at an instant, in ticks, with the robot of a slot as one's own.
    pub fn frame(&mut self, ticks: f64, slot: u8) -> &Frame {
        let (first, last) = self.ticks();
        let ticks = ticks.clamp(f64::from(first), f64::from(last));
        self.frame.seen.clear();
        self.seek(ticks);
        let time = TickTime::from_ticks(ticks);
        self.frame.time = time;
        self.frame.shown_time = time;
        self.show(ticks, slot);
        self.show_marks(ticks);
        self.shown = ticks;
        &self.frame
    }

    /// Keeps players who have left since.
    fn keep(&mut self, names: Vec<Name>) {
        for name in names.into_iter().filter(|name| !name.name.is_empty()) {
            match self
                .names
                .binary_search_by_key(&name.slot, |known| known.slot)
            {
                Ok(place) => self.names[place] = name,
                Err(place) => self.names.insert(place, name),
            }
        }
    }

    /// Collects names and marks, and checks that everything can be read.
    fn index(&mut self) -> Result<(), RecordingError> {
        let mut rows = Rows::new();
        for place in self.places.clone() {
            let damaged = RecordingError::Damaged { at: place.start };
            let news = self.read(place, &mut rows).ok_or(damaged)?;
            for message in news.messages {
                if let ToPlayer::Names { names } = message {
                    self.keep(names);
                    continue;
                }
                let told = matches!(
                    message,
                    ToPlayer::Chat { .. }
                        | ToPlayer::KillFeed { .. }
                        | ToPlayer::Goal { .. }
                        | ToPlayer::Result { .. }
                );
                if told && self.marks.len() < MARKS_MAX {
                    let tick = place.tick;
                    self.marks.push(Mark { tick, message });
                }
            }
        }
        Ok(())
    }

    fn read(&self, place: Place, rows: &mut Rows) -> Option<News> {
        snapshot::apply(self.file.get(place.start..place.end)?, rows)
    }

    /// The snapshots on either side of an instant.
    fn seek(&mut self, ticks: f64) {
        let next = self
            .places
            .partition_point(|place| f64::from(place.tick) <= ticks);
        let wanted = next.saturating_sub(1);
        if self.at == wanted {
            return;
        }
        let near = self.at < wanted && wanted - self.at < 32;
        let mut at = match near {
            true => self.at + 1,
            false => {
                let all = &self.places[..=wanted];
                self.before.clear();
                all.iter().rposition(|place| place.whole).unwrap_or(0)
            }
        };
        let mut rows = std::mem::take(&mut self.before);
        while at <= wanted {
            // Everything was read once when the file was.
            if let Some(news) = self.read(self.places[at], &mut rows)
                && !news.figures.is_empty()
            {
                self.figures = news.figures;
            }
            at += 1;
        }
        self.after = rows.clone();
        if let Some(place) = self.places.get(wanted + 1) {
            let mut after = rows.clone();
            let _ = self.read(*place, &mut after);
            self.after = after;
        }
        self.before = rows;
        self.at = wanted;
    }

    fn show(&mut self, ticks: f64, slot: u8) {
        let from = f64::from(self.places[self.at].tick);
        let to = self
            .places
            .get(self.at + 1)
            .map(|place| f64::from(place.tick));
        let span = to.map_or(1.0, |to| to - from);
        let blend = Blend {
            share: ((ticks - from) / span).clamp(0.0, 1.0) as f32,
            seconds: span as f32 * TICK_SECONDS,
        };
        let (before, after) = (
            std::mem::take(&mut self.before),
            std::mem::take(&mut self.after),
        );
        let frame = &mut self.frame;
        frame.own = None;
        frame.robots.clear();
        frame.enemies.clear();
        frame.bolts.clear();
        frame.ball = None;
        let mut devices: Vec<Option<Device>> = vec![None; self.level.devices.len()];
        for (entity, (kind, row)) in &before {
            let next = after.get(entity).filter(|(other, _)| other == kind);
            let next = next.map(|(_, row)| row.as_slice());
            let entity = EntityId::from_bits(*entity);
            match kind {
                1 => show_robot(frame, entity, (row, next), blend, slot),
                2 => show_enemy(frame, entity, (row, next), blend),
                3 => {
                    if let Ok(device) = Device::from_row(row)
                        && let Some(place) = devices.get_mut(usize::from(device.index))
                    {
                        *place = Some(device);
                    }
                }
                4 => {
                    if let Ok(bolt) = Bolt::from_row(row) {
                        frame.bolts.push(BoltShown {
                            entity: Some(entity),
                            position: bolt.at(ticks).into(),
                            bolt,
                            share: 1.0,
                        });
                    }
                }
                5 => frame.round = Round::from_row(row).ok(),
                _ => show_ball(frame, entity, (row, next), blend),
            }
        }
        (self.before, self.after) = (before, after);
        self.show_devices(ticks, devices);
        let figure = self.figures.iter().find(|figure| figure.slot == slot);
        self.frame.statistics = NetStatistics {
            rtt_ms: figure.map_or(0.0, |figure| figure.rtt_ms as f32),
            mispredictions: figure.map_or(0, |figure| u64::from(figure.late)),
            ..NetStatistics::default()
        };
    }

    fn show_devices(&mut self, ticks: f64, devices: Vec<Option<Device>>) {
        let time = TickTime::from_ticks(ticks);
        self.frame.devices.clear();
        for (index, (spec, state)) in self.level.devices.iter().zip(devices).enumerate() {
            let state = state.unwrap_or(Device::new(index));
            let (now, next) = (time.tick, time.tick + 1);
            let share = time.share();
            let (from, to) = (spec.offset(&state, now), spec.offset(&state, next));
            let opened = state.progress(now, spec.ticks());
            let opening = state.progress(next, spec.ticks());
            self.frame.devices.push(DeviceShown {
                offset: from.lerp(to, share).into(),
                progress: opened + (opening - opened) * share,
                state,
            });
        }
    }

    /// Shows what was said since the frame before, if that was just before.
    fn show_marks(&mut self, ticks: f64) {
        if ticks - self.shown > FORWARD_TICKS || ticks < self.shown {
            return;
        }
        let from = self
            .marks
            .partition_point(|mark| f64::from(mark.tick) <= self.shown);
        let marks = self.marks[from..]
            .iter()
            .take_while(|mark| f64::from(mark.tick) <= ticks);
        let seen = marks.map(|mark| Seen::Message(mark.message.clone()));
        self.frame.seen.extend(seen);
    }
}

fn show_robot(
    frame: &mut Frame,
    entity: EntityId,
    (row, next): (&[i32], Option<&[i32]>),
    blend: Blend,
    slot: u8,
) {
    let Ok(mut robot) = Robot::from_row(row) else {
        return;
    };
    let next = next.and_then(|row| Robot::from_row(row).ok());
    if let Some(next) = next.filter(|next| next.lives == robot.lives) {
        if next.shots != robot.shots {
            let fired = Seen::Fired {
                entity,
                weapon: next.weapon,
                origin: next.eye().into(),
                yaw: next.yaw,
                pitch: next.pitch,
            };
            if blend.share < 0.5 && frame.seen.len() < SEEN_MAX {
                frame.seen.push(fired);
            }
        }
        robot = robot.blend(&next, blend);
    }
    if robot.slot == slot {
        frame.own = Some(OwnShown { entity, robot });
    } else {
        frame.robots.push(RobotShown {
            entity,
            robot,
            overdue: false,
        });
    }
}

fn show_enemy(
    frame: &mut Frame,
    entity: EntityId,
    (row, next): (&[i32], Option<&[i32]>),
    blend: Blend,
) {
    let Ok(mut enemy) = Enemy::from_row(row) else {
        return;
    };
    if let Some(next) = next.and_then(|row| Enemy::from_row(row).ok()) {
        let near = Vec3::from(next.position).distance(enemy.position.into()) < 4.0;
        if near {
            enemy = enemy.blend(&next, blend);
        }
    }
    frame.enemies.push(EnemyShown { entity, enemy });
}

fn show_ball(
    frame: &mut Frame,
    entity: EntityId,
    (row, next): (&[i32], Option<&[i32]>),
    blend: Blend,
) {
    let Ok(mut ball) = Ball::from_row(row) else {
        return;
    };
    let next = next.and_then(|row| Ball::from_row(row).ok());
    if let Some(next) = next.filter(|next| next.serves == ball.serves) {
        ball = ball.blend(&next, blend);
    }
    frame.ball = Some(BallShown { entity, ball });
}

/// Marks of a timeline.
const MARKS_MAX: usize = 4_096;
/// Ticks between two frames of somebody who watches, and does not search.
const FORWARD_TICKS: f64 = 50.0;
const SEEN_MAX: usize = 256;
