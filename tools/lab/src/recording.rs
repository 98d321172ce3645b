//! Recorded inputs: what players' hands did, tick by tick, to be played again in every case of a grid (the evaluation of
//! `docs/laboratory.md`).
//!
//! A recording is a small text that reviews well: a line for every stretch of ticks in which the keys stay as they are and the mouse turns
//! evenly. The hand that aims is not recorded but the finger that fires: aim follows what is on the screen, which differs from case
//! to case.

mod model;

pub use model::{STYLES, Style, record};

use thiserror::Error;

use crate::character::{Body, Keys};

/// The inputs of one player.
///
/// ```
/// use muse_lab::recording::Recording;
/// let text = "muse inputs 1\nname circle\nstart 1 -2\n50 1 0 0 82 0\n25 0 1 4 0 1\n";
/// let recording = Recording::parse(text)?;
/// assert_eq!(recording.ticks(), 75);
/// assert_eq!(recording.keys(2).yaw, 164);
/// assert!(!recording.fires(49) && recording.fires(50));
/// assert_eq!(recording.emit(), text);
/// # Ok::<(), muse_lab::recording::RecordingError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    name: String,
    start: [f32; 2],
    presses: Vec<Press>,
}

/// A player's input in one tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Press {
    /// Backwards, not at all, forwards.
    pub forward: i8,
    /// To the left, not at all, to the right.
    pub right: i8,
    /// The direction the player looks in, in 1/4,096 of a turn.
    pub yaw: u16,
    /// The trigger is pulled.
    pub trigger: bool,
}

/// Why a text is no recording.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// It does not begin with the format's name and version.
    #[error("not a recording of inputs: the first line is not `muse inputs 1`")]
    Format,
    /// A line cannot be read.
    #[error("line {0} is neither `name`, `start` nor `ticks forward right yaw turn trigger`")]
    Line(usize),
    /// It is empty, or longer than an hour.
    #[error("a recording holds between one tick and an hour")]
    Length,
}

impl Recording {
    /// A recording of these inputs, tick by tick, from a place to start at.
    pub fn new(name: &str, start: [f32; 2], presses: Vec<Press>) -> Result<Self, RecordingError> {
        match presses.len() {
            1..=TICKS_MAX => Ok(Self {
                name: name.to_owned(),
                start,
                presses,
            }),
            _ => Err(RecordingError::Length),
        }
    }

    /// The recordings that come with the laboratory.
    pub fn shipped() -> Vec<Self> {
        SHIPPED
            .iter()
            .map(|text| Self::parse(text).expect("what is shipped can be read"))
            .collect()
    }

    /// Reads a recording.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let mut lines = text.lines().enumerate();
        if lines.next().map(|(_, line)| line) != Some(FORMAT) {
            return Err(RecordingError::Format);
        }
        let (mut name, mut start, mut presses) = (String::new(), [0.0; 2], Vec::new());
        for (number, line) in lines {
            let wrong = RecordingError::Line(number + 1);
            if let Some(rest) = line.strip_prefix("name ") {
                name = rest.to_owned();
            } else if let Some(rest) = line.strip_prefix("start ") {
                start = numbers(rest).ok_or(wrong)?;
            } else {
                let stretch: [i32; 6] = numbers(line).ok_or(wrong.clone())?;
                add_stretch(&mut presses, stretch).ok_or(wrong)?;
            }
            if presses.len() > TICKS_MAX {
                return Err(RecordingError::Length);
            }
        }
        Self::new(&name, start, presses)
    }

    /// Writes it.
    pub fn emit(&self) -> String {
        let [x, z] = self.start;
        let mut text = format!("{FORMAT}\nname {}\nstart {x} {z}\n", self.name);
        let mut rest = self.presses.as_slice();
        while let Some(first) = rest.first() {
            let turn = rest.get(1).map_or(0, |next| turned(*first, *next));
            let even = |pair: &[Press]| {
                let alike = Press {
                    yaw: pair[0].yaw,
                    ..pair[1]
                };
                alike == pair[0] && turned(pair[0], pair[1]) == turn
            };
            let len = 1 + rest.windows(2).take_while(|pair| even(pair)).count();
            let turn = if len == 1 { 0 } else { turn };
            text.push_str(&format!(
                "{len} {} {} {} {turn} {}\n",
                first.forward,
                first.right,
                first.yaw,
                u8::from(first.trigger)
            ));
            rest = &rest[len..];
        }
        text
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its length.
    pub fn ticks(&self) -> u32 {
        self.presses.len() as u32
    }

    /// Returns the state in which its player starts.
    pub fn start(&self) -> Body {
        Body::at(self.start[0], self.start[1])
    }

    /// Returns the keys of a tick, without a shot. After its end a recording starts over.
    pub fn keys(&self, tick: u32) -> Keys {
        let press = self.press(tick);
        Keys {
            forward: press.forward,
            right: press.right,
            yaw: press.yaw,
            fire: None,
        }
    }

    /// True if the trigger was pulled in a tick.
    pub fn fires(&self, tick: u32) -> bool {
        self.press(tick).trigger
    }

    fn press(&self, tick: u32) -> Press {
        self.presses[tick as usize % self.presses.len()]
    }
}

/// So many numbers and nothing else.
fn numbers<T: std::str::FromStr + Copy + Default, const N: usize>(text: &str) -> Option<[T; N]> {
    let mut numbers = [T::default(); N];
    let mut words = text.split(' ');
    for number in &mut numbers {
        *number = words.next()?.parse().ok()?;
    }
    words.next().is_none().then_some(numbers)
}

fn add_stretch(presses: &mut Vec<Press>, stretch: [i32; 6]) -> Option<()> {
    let [ticks, forward, right, yaw, turn, trigger] = stretch;
    let key = |value: i32| (-1..=1).contains(&value).then_some(value as i8);
    let (forward, right) = (key(forward)?, key(right)?);
    let fits = (1..=TICKS_MAX as i32).contains(&ticks)
        && (0..YAWS).contains(&yaw)
        && (-YAWS..YAWS).contains(&turn)
        && (0..=1).contains(&trigger);
    if !fits {
        return None;
    }
    presses.extend((0..ticks).map(|tick| Press {
        forward,
        right,
        yaw: (i64::from(yaw) + i64::from(turn) * i64::from(tick)).rem_euclid(i64::from(YAWS))
            as u16,
        trigger: trigger == 1,
    }));
    Some(())
}

/// Returns the turn from one direction to the other, the short way.
fn turned(from: Press, to: Press) -> i32 {
    let turn = (i32::from(to.yaw) - i32::from(from.yaw)).rem_euclid(YAWS);
    if turn < YAWS / 2 { turn } else { turn - YAWS }
}

/// The first line.
const FORMAT: &str = "muse inputs 1";
/// Directions in which a player can look.
const YAWS: i32 = 4_096;
/// An hour.
const TICKS_MAX: usize = 180_000;
/// In the order in which players are seated.
const SHIPPED: [&str; 4] = [
    include_str!("../inputs/duellist.inputs"),
    include_str!("../inputs/runner.inputs"),
    include_str!("../inputs/wanderer.inputs"),
    include_str!("../inputs/sentry.inputs"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for recording in Recording::shipped() {
            let text = recording.emit();
            assert_eq!(Recording::parse(&text), Ok(recording.clone()));
            assert!(text.len() < 40_000, "{}: {}", recording.name, text.len());
        }
    }

    #[test]
    fn what_is_shipped_is_what_the_model_plays() {
        for (style, recording) in STYLES.iter().zip(Recording::shipped()) {
            assert_eq!(record(style), recording, "run `muse lab inputs`");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let parse = |rest: &str| Recording::parse(&format!("{FORMAT}\n{rest}"));
        assert_eq!(Recording::parse("hello"), Err(RecordingError::Format));
        assert_eq!(parse(""), Err(RecordingError::Length));
        for line in [
            "1 2 0 0 0 0",
            "1 0 0 4096 0 0",
            "0 0 0 0 0 0",
            "1 0 0 0 0 2",
            "1 0 0 0 0",
            "1 0 0 0 0 0 0",
            "start 1",
        ] {
            assert_eq!(parse(line), Err(RecordingError::Line(2)), "{line}");
        }
        assert_eq!(
            parse("180000 0 0 0 0 0\n1 0 0 0 0 0"),
            Err(RecordingError::Length)
        );
    }
}
