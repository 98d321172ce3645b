//! This program, started once more as a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

/// A running program. When dropped it is told to end, so that it can end its own children, and killed if it does not.
pub struct Program {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Program {
    /// Starts this program with arguments that are separated by blanks, and with whatever else `set` gives the command.
    pub fn start(line: &str, set: impl FnOnce(&mut Command)) -> anyhow::Result<Self> {
        let path = std::env::current_exe().context("this program does not know its own path")?;
        let mut command = Command::new(path);
        command
            .args(line.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        set(&mut command);
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start `muse {line}`"))?;
        let output = child.stdout.take().context("a program without output")?;
        let output = BufReader::new(output);
        Ok(Self { child, output })
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the next line of its output; an empty one if it has ended.
    pub fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    /// Tells it to end, and returns the rest of its output.
    pub fn finish(mut self) -> anyhow::Result<String> {
        self.terminate();
        let mut rest = String::new();
        self.output.read_to_string(&mut rest)?;
        Ok(rest)
    }

    fn terminate(&self) {
        // It may have ended by itself.
        let _ = Command::new("kill")
            .arg(self.id().to_string())
            .stderr(Stdio::null())
            .status();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.terminate();
        let since = Instant::now();
        while since.elapsed() < END_MAX {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const END_MAX: Duration = Duration::from_secs(10);
