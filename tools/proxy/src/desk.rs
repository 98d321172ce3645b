//! Changes at run time: one small language for standard input and the page.

use std::sync::Arc;

use muse_netem::{Conditions, Profile};
use muse_wire::{Duration, Instant};

use super::engine::Engine;
use super::report;
use super::way::{Pair, Way};

/// The present conditions with their name, and the previous ones.
pub(super) struct Desk {
    /// The profile that was chosen last, and whether something was changed after it.
    name: String,
    started_with: (String, Pair),
}

/// The answer to a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// This.
    Text(String),
    /// Nothing more: the proxy is to end.
    Quit,
}

impl Desk {
    pub(super) fn new(name: &str, conditions: &Pair) -> Self {
        Self {
            name: name.to_owned(),
            started_with: (name.to_owned(), conditions.clone()),
        }
    }

    /// Returns the name of the conditions.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Executes a command line. The error is one line for people.
    pub(super) fn execute(&mut self, engine: &mut Engine, line: &str) -> Result<Answer, String> {
        let line = line.trim().to_ascii_lowercase();
        let words: Vec<&str> = line
            .split([' ', '\t', '=', ','])
            .filter(|word| !word.is_empty())
            .collect();
        let text = match words.as_slice() {
            [] => String::new(),
            ["quit" | "exit"] => return Ok(Answer::Quit),
            ["help" | "?"] => HELP.to_owned(),
            ["stats"] => report::table(&engine.statistics()),
            ["show"] => self.show(engine),
            ["clients"] => match engine.client_lines() {
                lines if lines.is_empty() => "no clients".to_owned(),
                lines => lines.join("\n"),
            },
            ["profiles"] => report::profiles(),
            _ => self.change(engine, &words)?,
        };
        Ok(Answer::Text(text))
    }

    fn change(&mut self, engine: &mut Engine, words: &[&str]) -> Result<String, String> {
        let (ways, words): (&[Way], _) = match words {
            ["up", rest @ ..] => (&[Way::Up], rest),
            ["down", rest @ ..] => (&[Way::Down], rest),
            _ => (&Way::BOTH, words),
        };
        let now = engine.now();
        let mut changed = engine.conditions().clone();
        let mut name = self.name.clone();
        for &way in ways {
            let mut conditions = Conditions::clone(&changed[way.index()]).forget_outages(now);
            match words {
                ["profile", wanted] => {
                    let profile = Profile::named(wanted).ok_or_else(|| unknown_profile(wanted))?;
                    profile.name().clone_into(&mut name);
                    conditions = of_profile(profile, way);
                }
                ["reset"] => {
                    name.clone_from(&self.started_with.0);
                    conditions = Conditions::clone(&self.started_with.1[way.index()]);
                }
                ["cut"] => conditions = conditions.outage(now, Instant::FAR_FUTURE),
                ["cut", seconds] => {
                    let time = seconds_of(seconds).ok_or_else(|| {
                        format!("`{seconds}` is no time; write seconds, as cut 5")
                    })?;
                    conditions = conditions.outage(now, now + time);
                }
                ["heal"] => conditions = conditions.without_outages(),
                pairs => {
                    set_all(&mut conditions, pairs)?;
                    if !name.ends_with(CHANGED) {
                        name += CHANGED;
                    }
                }
            }
            changed[way.index()] = Arc::new(conditions);
        }
        if ways.len() == 1 && name != self.name && !name.ends_with(CHANGED) {
            // One direction alone is not the whole profile.
            name += CHANGED;
        }
        self.name = name;
        engine.set_conditions(changed);
        Ok(self.show(engine))
    }

    fn show(&self, engine: &Engine) -> String {
        let now = engine.now();
        let line = |way: Way| {
            let conditions = &engine.conditions()[way.index()];
            let cut = if conditions.is_out(now) { " [cut]" } else { "" };
            format!("{:<5} {conditions}{cut}", way.name())
        };
        format!("{}\n{}\n{}", self.name, line(Way::Up), line(Way::Down))
    }
}

/// Returns the conditions of a profile in one direction.
pub(super) fn of_profile(profile: Profile, way: Way) -> Conditions {
    match way {
        Way::Up => profile.up(),
        Way::Down => profile.down(),
    }
}

pub(super) fn unknown_profile(name: &str) -> String {
    let names: Vec<&str> = Profile::all().iter().map(Profile::name).collect();
    format!(
        "there is no profile `{name}`; the profiles are {}",
        names.join(", ")
    )
}

fn set_all(conditions: &mut Conditions, words: &[&str]) -> Result<(), String> {
    if words.is_empty() {
        return Err("up and down need a command after them; try help".to_owned());
    }
    for pair in words.chunks(2) {
        match pair {
            [knob, value] => conditions.set(knob, value).map_err(|error| match error {
                muse_netem::TextError::Knob(_) => {
                    format!("`{}` is no command; try help", words.join(" "))
                }
                error => error.to_string(),
            })?,
            word => {
                return Err(format!(
                    "`{}` is no command, or needs a value; try help",
                    word.join(" ")
                ));
            }
        }
    }
    Ok(())
}

fn seconds_of(text: &str) -> Option<Duration> {
    let seconds: f64 = text.strip_suffix('s').unwrap_or(text).parse().ok()?;
    (0.0..=86_400.0)
        .contains(&seconds)
        .then(|| Duration::from_secs_f64(seconds))
}

/// Suffix of the name of a profile that was changed.
const CHANGED: &str = " (changed)";
const HELP: &str = "\
rtt 80            round trip in ms, half in each direction
delay 40          one way, in ms; with `up` or `down` before it in that direction alone
jitter 10         delays vary by so many ms to both sides (off; uniform:10, normal:6:3, pareto:6:2:150)
order keep|free   whether jitter may change the order
loss 2            percent lost          burst 4      in bursts of 4 on average (off)
rate 1mbit        bits a second (off)   queue 100ms  before the rate, as time or size (64kb)
duplicate 1       percent twice         reorder 2    percent held back by 20 ms (2:50 by 50 ms)
corrupt 0.5       percent with flipped bits          mtu 1200  largest IP packet (off)
up loss 5         in one direction; also down, and several at once: down loss 2 rate 1mbit
profile wifi      all of a network (profiles lists them)
cut 5             nothing passes for 5 s (cut alone: until heal)
reset             as at the start
show stats clients profiles help quit";

#[cfg(test)]
mod tests {
    use super::super::engine::Setup;
    use super::*;

    fn engine() -> (Desk, Engine) {
        let local = "127.0.0.1:0".parse().expect("an address");
        let setup = Setup {
            listen: vec![local],
            server: local,
            seed: 1,
            clients_max: 4,
            idle: Duration::from_secs(1),
            shared: false,
            tcp: false,
        };
        let start: Pair = Way::BOTH.map(|_| Arc::new(Conditions::default()));
        let desk = Desk::new("perfect", &start);
        (desk, Engine::new(setup, start).expect("a socket"))
    }

    fn say(desk: &mut Desk, engine: &mut Engine, line: &str) -> String {
        match desk.execute(engine, line) {
            Ok(Answer::Text(text)) => text,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn commands_change_both_directions_or_one() {
        let (mut desk, mut engine) = engine();
        let shown = say(&mut desk, &mut engine, "rtt 80 loss 2");
        assert_eq!(
            shown,
            "perfect (changed)\nup    40 ms, 2 % lost\ndown  40 ms, 2 % lost"
        );
        let shown = say(&mut desk, &mut engine, "down Loss=5, rate=1mbit");
        assert!(
            shown.ends_with("down  40 ms, 5 % lost, 1 Mbit/s with a queue of 100 ms"),
            "{shown}"
        );
        assert!(shown.contains("up    40 ms, 2 % lost\n"), "{shown}");
        let shown = say(&mut desk, &mut engine, "profile satellite");
        assert!(shown.starts_with("satellite\nup    270 ms"), "{shown}");
        let shown = say(&mut desk, &mut engine, "cut 5");
        assert!(shown.contains("[cut]"), "{shown}");
        assert!(!say(&mut desk, &mut engine, "heal").contains("[cut]"));
        assert_eq!(
            say(&mut desk, &mut engine, "reset"),
            "perfect\nup    0 ms\ndown  0 ms"
        );
        assert_eq!(desk.execute(&mut engine, "quit"), Ok(Answer::Quit));
    }

    #[test]
    fn mistakes_change_nothing_and_say_what_would_be_right() {
        let (mut desk, mut engine) = engine();
        for (line, hint) in [
            ("lose 5", "try help"),
            ("loss", "try help"),
            ("up", "try help"),
            ("loss 200", "a percentage"),
            ("profile pigeon", "the profiles are perfect, lan"),
            ("cut soon", "write seconds"),
            ("loss 3 rate fast", "bits a second"),
        ] {
            let error = desk.execute(&mut engine, line).expect_err(line);
            assert!(error.contains(hint) && !error.contains('\n'), "{error}");
        }
        assert_eq!(
            say(&mut desk, &mut engine, "show"),
            "perfect\nup    0 ms\ndown  0 ms"
        );
    }

    #[test]
    fn questions_have_answers() {
        let (mut desk, mut engine) = engine();
        for (line, part) in [
            ("help", "profile wifi"),
            ("stats", "lost"),
            ("clients", "no clients"),
            ("profiles", "hotel"),
            ("", ""),
        ] {
            assert!(say(&mut desk, &mut engine, line).contains(part), "{line}");
        }
    }
}
