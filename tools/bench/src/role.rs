//! Programs under test, driven by the line protocol of [`muse_bench_workload::control`].

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use muse_bench_workload::control::parse_result;
use serde::de::DeserializeOwned;

use super::counters::{Memory, cpu_time, forget_memory_peak, memory};
use super::isolation::Surroundings;

/// The programs of one run. They share a network namespace, which the first of them makes.
pub(crate) struct Programs {
    surroundings: Surroundings,
    first: Option<u32>,
    realtime: Option<u8>,
}

impl Programs {
    pub(crate) const fn new(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            first: None,
            realtime: None,
        }
    }

    /// Runs those that are started from now on in the real-time class, ahead of all ordinary programs, where that is allowed.
    pub(crate) const fn set_realtime(&mut self, priority: u8) {
        self.realtime = Some(priority);
    }

    /// Starts this program on one core, where cores can be chosen; on a machine with one core they share it. Arguments
    /// are separated by blanks.
    pub(crate) fn muse(&mut self, name: &str, core: usize, line: &str) -> anyhow::Result<Role> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut words: Vec<OsString> = Vec::new();
        if core < cores && Command::new("taskset").arg("--version").output().is_ok() {
            words.extend(["taskset".into(), "-c".into(), core.to_string().into()]);
        }
        words.push(own_path()?.into());
        words.extend(line.split_whitespace().map(OsString::from));
        self.start(name, &words)
    }

    /// Starts a program; `name` is what errors call it.
    pub(crate) fn start(&mut self, name: &str, words: &[OsString]) -> anyhow::Result<Role> {
        let class = self.realtime.map(|priority| priority.to_string());
        let prefix = class.as_deref().map(|priority| ["chrt", "-f", priority]);
        let prefix = prefix.filter(|prefix| {
            let tried = Command::new(prefix[0])
                .args(&prefix[1..])
                .arg("true")
                .output();
            tried.is_ok_and(|output| output.status.success())
        });
        let prefix = prefix.iter().flatten().map(OsString::from);
        let words: Vec<OsString> = prefix.chain(words.iter().cloned()).collect();
        let command = match self.first {
            None => self.surroundings.first(&words),
            Some(first) => self.surroundings.further(first, &words),
        };
        let role = Role::start(name, command, self.surroundings)?;
        self.first.get_or_insert(role.pid());
        Ok(role)
    }
}

/// A running program. It is killed when dropped; if this process dies first, its standard input ends and it exits.
pub(crate) struct Role {
    name: String,
    child: Child,
    input: ChildStdin,
    lines: Receiver<Line>,
    errors: String,
    surroundings: Surroundings,
}

enum Line {
    Output(String),
    Error(String),
}

impl Role {
    fn start(name: &str, mut command: Command, surroundings: Surroundings) -> anyhow::Result<Self> {
        tracing::debug!(?command, "start");
        let mut child = command
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let (sender, lines) = channel();
        let input = child.stdin.take().context("no standard input")?;
        let output = child.stdout.take().context("no standard output")?;
        let error = child.stderr.take().context("no standard error")?;
        let errors = sender.clone();
        read_lines(output, move |line| sender.send(Line::Output(line)).is_ok());
        read_lines(error, move |line| errors.send(Line::Error(line)).is_ok());
        Ok(Self {
            name: name.to_owned(),
            child,
            input,
            lines,
            errors: String::new(),
            surroundings,
        })
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The CPU time that it has used, in seconds.
    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        Ok(cpu_time(self.pid())?.as_secs_f64())
    }

    /// Its memory.
    pub(crate) fn memory(&self) -> anyhow::Result<Memory> {
        memory(self.pid())
    }

    /// Begins to watch its memory: the peak is forgotten. Returns what is resident now.
    pub(crate) fn watch_memory(&self) -> anyhow::Result<u64> {
        forget_memory_peak(self.pid());
        Ok(self.memory()?.resident)
    }

    /// Writes a line to the program.
    pub(crate) fn say(&mut self, line: &str) -> anyhow::Result<()> {
        writeln!(self.input, "{line}").with_context(|| format!("{} has ended", self.name))
    }

    /// Waits for a line that begins with `word` and returns the rest of it. A program that has spoken has a session of
    /// its own, and is raised above other sessions.
    pub(crate) fn expect(&mut self, word: &str, time_max: Duration) -> anyhow::Result<String> {
        let line = self.await_line(time_max, |line| {
            line.strip_prefix(word).map(|rest| rest.trim().to_owned())
        });
        self.raise();
        line.with_context(|| format!("{}: no `{word}`", self.name))
    }

    /// Raises a program that does not speak.
    pub(crate) fn raise(&self) {
        self.surroundings.raise(self.pid());
    }

    /// Waits until the program is ready and returns the port that it listens on.
    pub(crate) fn port(&mut self, time_max: Duration) -> anyhow::Result<u16> {
        self.expect("ready", time_max)?.parse().context("no port")
    }

    /// Tells the program to stop and returns the result it reports.
    pub(crate) fn stop<T: DeserializeOwned>(mut self) -> anyhow::Result<T> {
        self.say("stop")?;
        let result = self.await_line(STOP_MAX, parse_result);
        result.with_context(|| format!("{}: no result", self.name))
    }

    fn await_line<T>(
        &mut self,
        time_max: Duration,
        mut wanted: impl FnMut(&str) -> Option<T>,
    ) -> anyhow::Result<T> {
        let deadline = Instant::now() + time_max;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(Line::Output(line)) => {
                    if let Some(found) = wanted(&line) {
                        return Ok(found);
                    }
                }
                Ok(Line::Error(line)) => {
                    tracing::debug!(program = self.name, "{line}");
                    self.remember(&line);
                }
                Err(RecvTimeoutError::Timeout) => {
                    bail!("not within {} s; {}", time_max.as_secs(), self.errors)
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.why_it_ended()),
            }
        }
    }

    /// Keeps the first lines of standard error for a message of one line.
    fn remember(&mut self, line: &str) {
        if self.errors.len() < ERRORS_LEN_MAX && !line.is_empty() {
            self.errors.push_str(line);
            self.errors.push(' ');
        }
    }

    fn why_it_ended(&mut self) -> anyhow::Error {
        let status = match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        anyhow!("ended with {status}; {}", self.errors)
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        // After `stop` it is on its way out; both calls fail harmlessly on a process that has gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the path of this program.
pub(crate) fn own_path() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("this program's own path")
}

fn read_lines(
    stream: impl Read + Send + 'static,
    mut take: impl FnMut(String) -> bool + Send + 'static,
) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if !take(line) {
                return;
            }
        }
    });
}

const ERRORS_LEN_MAX: usize = 200;
const STOP_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Role {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Role::start("the shell", command, Surroundings::NONE).expect("a shell")
    }

    #[test]
    fn a_program_is_driven_by_lines() {
        let mut role = shell("echo ready 7; read line; echo result '\"'$line'\"'");
        let port = role
            .expect("ready", Duration::from_secs(10))
            .expect("a port");
        assert_eq!(port, "7");
        assert_eq!(role.stop::<String>().expect("a result"), "stop");
    }

    #[test]
    fn a_program_that_ends_early_says_why() {
        let mut role = shell("echo no room >&2; exit 5");
        let error = role
            .expect("ready", Duration::from_secs(10))
            .expect_err("it ended");
        let message = format!("{error:#}");
        assert!(
            message.contains("no room") && message.contains('5'),
            "{message}"
        );
    }
}
