//! Conditions as people write them: `delay=40,jitter=10,loss=2,rate=1mbit`, for command lines, run-time changes and tables.

use std::fmt;
use std::str::FromStr;

use muse_wire::Duration;

use super::{Conditions, Jitter, Queue};

/// An error in a text of conditions. Its message says what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// No such knob.
    #[error("there is no knob `{0}`; the knobs are {KNOBS}")]
    Knob(String),
    /// The knob has no such value.
    #[error("`{value}` is not a value for {knob}; write {expected}")]
    Value {
        /// The knob.
        knob: &'static str,
        /// The text that was given.
        value: String,
        /// The text that is allowed.
        expected: &'static str,
    },
    /// A word without a value.
    #[error("`{0}` needs a value: KNOB=VALUE, with commas in between")]
    NoValue(String),
}

impl Conditions {
    /// Sets one knob from text, leaving all others; `docs/netem.md` lists knobs and values.
    ///
    /// ```
    /// use muse_netem::Conditions;
    /// let mut link = Conditions::default();
    /// link.set("loss", "5%")?;
    /// link.set("burst", "4")?;
    /// assert_eq!(link, Conditions::default().burst_loss(0.05, 4.0));
    /// # Ok::<(), muse_netem::TextError>(())
    /// ```
    pub fn set(&mut self, knob: &str, value: &str) -> Result<(), TextError> {
        let value = value.trim();
        let whole = std::mem::take(self);
        // A value that is refused leaves the others as they were.
        let changed = whole.clone().with(knob.trim(), value);
        let (conditions, outcome) = match changed {
            Ok(conditions) => (conditions, Ok(())),
            Err(error) => (whole, Err(error)),
        };
        *self = conditions;
        outcome
    }

    fn with(self, knob: &str, value: &str) -> Result<Self, TextError> {
        Ok(match knob {
            "rtt" => self.delay(time("rtt", value)? / 2),
            "delay" => self.delay(time("delay", value)?),
            "jitter" => self.jitter(jitter(value)?),
            "order" => self.keep_order(match value {
                "keep" | "on" | "yes" => true,
                "free" | "off" | "no" => false,
                _ => return Err(wrong("order", value, "keep or free")),
            }),
            "loss" => self.with_loss(share("loss", value)?),
            "burst" => self.with_burst(match value {
                "off" => 1.0,
                _ => number(value)
                    .filter(|length| (0.0..=1e6).contains(length))
                    .ok_or_else(|| wrong("burst", value, BURST))?,
            }),
            "duplicate" => {
                let (share, delay) = share_and_time("duplicate", value, DUPLICATE_DELAY)?;
                self.duplicate(share, delay)
            }
            "reorder" => {
                let (share, delay) = share_and_time("reorder", value, REORDER_DELAY)?;
                self.reorder(share, delay)
            }
            "corrupt" => self.corrupt(share("corrupt", value)?, CORRUPT_BITS),
            "truncate" => self.truncate(share("truncate", value)?),
            "rate" => match value {
                "off" | "0" | "unlimited" => self.unlimited(),
                _ => self.rate(rate(value)?),
            },
            "queue" => self.queue(queue(value)?),
            "mark" => match value {
                "off" => Self { mark: None, ..self },
                _ => self.mark_congestion(time("mark", value)?),
            },
            "mtu" => match value {
                "off" | "0" => Self { mtu: None, ..self },
                _ => self.mtu(
                    value
                        .parse()
                        .ok()
                        .filter(|mtu| (68..=65_535).contains(mtu))
                        .ok_or_else(|| wrong("mtu", value, "bytes from 68 to 65535, or off"))?,
                ),
            },
            _ => return Err(TextError::Knob(knob.to_owned())),
        })
    }

    /// This share lost, in bursts as long as before.
    fn with_loss(self, share: f64) -> Self {
        match self.burst_length() {
            length if length > 1.0 => self.loss(0.0).burst_loss(share, length),
            _ => Self {
                burst: None,
                ..self.loss(share)
            },
        }
    }

    /// As much lost as before, in bursts of this mean length.
    fn with_burst(self, length: f64) -> Self {
        let share = self.loss_share();
        match length > 1.0 {
            true => self.loss(0.0).burst_loss(share, length),
            false => Self {
                burst: None,
                ..self.loss(share)
            },
        }
    }
}

/// A comma-separated list of `KNOB=VALUE`; all knobs that are not in it are off.
impl FromStr for Conditions {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let mut conditions = Self::default();
        for word in text.split([',', ' ']).filter(|word| !word.is_empty()) {
            let (knob, value) = word
                .split_once('=')
                .ok_or_else(|| TextError::NoValue(word.to_owned()))?;
            conditions.set(knob, value)?;
        }
        Ok(conditions)
    }
}

/// A sentence for people.
impl fmt::Display for Conditions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", Millis(self.delay))?;
        match self.jitter {
            Jitter::None => (),
            Jitter::Uniform(max) => write!(out, " + 0..{}", Millis(max))?,
            Jitter::Around(spread) => write!(out, " ± {}", Millis(spread))?,
            Jitter::Normal { mean, deviation } => {
                write!(out, " + normal {} ± {}", Millis(mean), Millis(deviation))?;
            }
            Jitter::Pareto { scale, shape, max } => {
                write!(
                    out,
                    " + Pareto {}, shape {shape}, at most {}",
                    Millis(scale),
                    Millis(max)
                )?;
            }
        }
        if self.keep_order {
            write!(out, " in order")?;
        }
        let loss = self.loss_share();
        if loss > 0.0 {
            write!(out, ", {} lost", Percent(loss))?;
            if self.burst_length() > 1.0 {
                write!(out, " in bursts of {}", rounded(self.burst_length()))?;
            }
        }
        for (share, what) in [
            (self.duplicate, "twice"),
            (self.hold_back, "held back"),
            (self.corrupt, "corrupted"),
            (self.truncate, "cut short"),
        ] {
            if share > 0.0 {
                write!(out, ", {} {what}", Percent(share))?;
            }
        }
        if let Some(rate) = self.rate {
            write!(out, ", {} with a queue of ", Rate(rate))?;
            match self.queue {
                Queue::Bytes(bytes) => write!(out, "{bytes} bytes")?,
                Queue::Time(time) => write!(out, "{}", Millis(time))?,
            }
        }
        if let Some(mtu) = self.mtu {
            write!(out, ", MTU {mtu}")?;
        }
        Ok(())
    }
}

struct Millis(Duration);

impl fmt::Display for Millis {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ms", rounded(self.0.as_millis_f64()))
    }
}

struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} %", rounded(self.0 * 100.0))
    }
}

struct Rate(u64);

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (divisor, unit) = match self.0 {
            1_000_000_000.. => (1e9, "Gbit/s"),
            1_000_000.. => (1e6, "Mbit/s"),
            1_000.. => (1e3, "kbit/s"),
            _ => (1.0, "bit/s"),
        };
        write!(out, "{} {unit}", rounded(self.0 as f64 / divisor))
    }
}

/// Three decimals, which is as fine as a microsecond in milliseconds.
fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

fn wrong(knob: &'static str, value: &str, expected: &'static str) -> TextError {
    TextError::Value {
        knob,
        value: value.to_owned(),
        expected,
    }
}

fn number(text: &str) -> Option<f64> {
    let number: f64 = text.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

/// Milliseconds unless a unit says otherwise.
fn time(knob: &'static str, text: &str) -> Result<Duration, TextError> {
    let (digits, seconds) = match text {
        _ if text.ends_with("us") => (text.strip_suffix("us"), 1e-6),
        _ if text.ends_with("ms") => (text.strip_suffix("ms"), 1e-3),
        _ if text.ends_with('s') => (text.strip_suffix('s'), 1.0),
        _ => (Some(text), 1e-3),
    };
    digits
        .and_then(number)
        .map(|number| number * seconds)
        .filter(|&time| time <= TIME_SECS_MAX)
        .map(|time| Duration::from_micros((time * 1e6).round() as u64))
        .ok_or_else(|| wrong(knob, text, TIME))
}

/// Percent, with or without the sign.
fn share(knob: &'static str, text: &str) -> Result<f64, TextError> {
    match text {
        "off" => Ok(0.0),
        _ => number(text.strip_suffix('%').unwrap_or(text))
            .filter(|&percent| percent <= 100.0)
            .map(|percent| percent / 100.0)
            .ok_or_else(|| wrong(knob, text, SHARE)),
    }
}

fn share_and_time(
    knob: &'static str,
    text: &str,
    usual: Duration,
) -> Result<(f64, Duration), TextError> {
    match text.split_once(':') {
        Some((percent, extra)) => Ok((share(knob, percent)?, time(knob, extra)?)),
        None => Ok((share(knob, text)?, usual)),
    }
}

fn jitter(text: &str) -> Result<Jitter, TextError> {
    let mut words = text.split(':');
    let kind = words.next().unwrap_or_default();
    let figures: Vec<&str> = words.collect();
    let at = |word: &str| time("jitter", word);
    match (kind, figures.as_slice()) {
        ("off", []) => Ok(Jitter::None),
        ("uniform", [most]) => Ok(Jitter::Uniform(at(most)?)),
        ("normal", [mean, deviation]) => Ok(Jitter::Normal {
            mean: at(mean)?,
            deviation: at(deviation)?,
        }),
        ("pareto", [scale, shape, max]) => Ok(Jitter::Pareto {
            scale: at(scale)?,
            shape: number(shape).ok_or_else(|| wrong("jitter", text, JITTER))?,
            max: at(max)?,
        }),
        (spread, []) => match at(spread) {
            Ok(Duration::ZERO) => Ok(Jitter::None),
            Ok(spread) => Ok(Jitter::Around(spread)),
            Err(_) => Err(wrong("jitter", text, JITTER)),
        },
        _ => Err(wrong("jitter", text, JITTER)),
    }
}

fn rate(text: &str) -> Result<u64, TextError> {
    let lower = text.to_ascii_lowercase();
    let digits =
        lower.trim_end_matches(|letter: char| letter.is_ascii_alphabetic() || letter == '/');
    let factor = match &lower[digits.len()..] {
        "" | "bit" | "bit/s" | "bps" => 1.0,
        "k" | "kbit" | "kbit/s" | "kbps" => 1e3,
        "m" | "mbit" | "mbit/s" | "mbps" => 1e6,
        "g" | "gbit" | "gbit/s" | "gbps" => 1e9,
        _ => return Err(wrong("rate", text, RATE)),
    };
    number(digits)
        .map(|number| number * factor)
        .filter(|rate| (1.0..=1e12).contains(rate))
        .map(|rate| rate.round() as u64)
        .ok_or_else(|| wrong("rate", text, RATE))
}

fn queue(text: &str) -> Result<Queue, TextError> {
    let bytes = |digits: &str, factor: f64| {
        number(digits)
            .map(|number| number * factor)
            .filter(|&bytes| bytes <= 1e12)
            .map(|bytes| Queue::Bytes(bytes as u64))
            .ok_or_else(|| wrong("queue", text, QUEUE))
    };
    match text {
        _ if text.ends_with("kb") => bytes(&text[..text.len() - 2], 1e3),
        _ if text.ends_with("mb") => bytes(&text[..text.len() - 2], 1e6),
        _ if text.ends_with('b') => bytes(&text[..text.len() - 1], 1.0),
        _ => time("queue", text)
            .map(Queue::Time)
            .map_err(|_| wrong("queue", text, QUEUE)),
    }
}

const KNOBS: &str = "rtt, delay, jitter, order, loss, burst, rate, queue, duplicate, reorder, corrupt, truncate, mark and mtu";
const TIME: &str = "milliseconds (80, 80ms, 0.5s, 250us), at most 600 s";
const SHARE: &str = "a percentage from 0 to 100 (2, 0.5, 2%), or off";
const BURST: &str = "the mean number of packets lost in a row (4), or off";
const JITTER: &str = "milliseconds to both sides (10), uniform:MAX, normal:MEAN:DEVIATION, pareto:SCALE:SHAPE:MAX or off";
const RATE: &str = "bits a second (500kbit, 1mbit, 2.5mbit, 1gbit), or off";
const QUEUE: &str = "a time (100ms) or a size (64kb)";
/// Longest time: ten minutes.
const TIME_SECS_MAX: f64 = 600.0;
/// The default delay of a copy.
const DUPLICATE_DELAY: Duration = Duration::from_millis(1);
/// The default delay of a datagram that is held back.
const REORDER_DELAY: Duration = Duration::from_millis(20);
/// Most bits flipped in a corrupted datagram.
const CORRUPT_BITS: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Conditions {
        text.parse().expect(text)
    }

    #[test]
    fn texts_say_what_the_setters_say() {
        let millis = Duration::from_millis;
        assert_eq!(
            of("delay=40,jitter=10ms,loss=2%,rate=1.5mbit,queue=64kb,mtu=1400,order=keep"),
            Conditions::default()
                .delay(millis(40))
                .jitter(Jitter::Around(millis(10)))
                .loss(0.02)
                .rate(1_500_000)
                .queue(Queue::Bytes(64_000))
                .mtu(1_400)
                .keep_order(true)
        );
        assert_eq!(
            of("rtt=81 duplicate=1 reorder=2:30 corrupt=0.5 truncate=3 mark=5"),
            Conditions::default()
                .delay(Duration::from_micros(40_500))
                .duplicate(0.01, millis(1))
                .reorder(0.02, millis(30))
                .corrupt(0.005, 3)
                .truncate(0.03)
                .mark_congestion(millis(5))
        );
        assert_eq!(
            of("jitter=pareto:6:2:0.15s"),
            Conditions::default().jitter(Jitter::Pareto {
                scale: millis(6),
                shape: 2.0,
                max: millis(150)
            })
        );
        assert_eq!(of("rate=1mbit,rate=off"), Conditions::default());
    }

    #[test]
    fn loss_and_bursts_can_be_set_in_any_order_and_changed() {
        let bursts = Conditions::default().burst_loss(0.05, 4.0);
        assert_eq!(of("loss=5,burst=4"), bursts);
        assert_eq!(of("burst=4,loss=5"), bursts);
        let mut link = of("loss=1,burst=4");
        link.set("loss", "5").expect("a share");
        assert!((link.loss_share() - 0.05).abs() < 1e-12 && link.burst_length() == 4.0);
        link.set("burst", "off").expect("a length");
        assert!((link.loss - 0.05).abs() < 1e-12 && link.burst.is_none());
    }

    #[test]
    fn mistakes_say_what_would_be_right_and_change_nothing() {
        let mut link = of("loss=2,rate=1mbit");
        let before = link.clone();
        for (knob, value, hint) in [
            ("los", "2", "the knobs are rtt, delay"),
            ("loss", "200", "a percentage"),
            ("loss", "-1", "a percentage"),
            ("delay", "soon", "milliseconds"),
            ("delay", "1e9", "milliseconds"),
            ("rate", "1 parsec", "bits a second"),
            ("rate", "nan", "bits a second"),
            ("queue", "b", "a time"),
            ("mtu", "3", "68"),
            ("jitter", "normal:1", "pareto"),
            ("jitter", "", "pareto"),
            ("order", "some", "keep or free"),
        ] {
            let error = link.set(knob, value).expect_err(value).to_string();
            assert!(error.contains(hint), "{error}");
            assert_eq!(link, before);
        }
        assert!("loss".parse::<Conditions>().is_err());
    }

    #[test]
    fn people_can_read_it() {
        assert_eq!(
            of("delay=40,jitter=10,loss=2,burst=4,rate=1mbit,duplicate=1").to_string(),
            "40 ms ± 10 ms, 2 % lost in bursts of 4, 1 % twice, 1 Mbit/s with a queue of 100 ms"
        );
        assert_eq!(Conditions::default().to_string(), "0 ms");
    }
}
