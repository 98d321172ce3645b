//! The programs of the benchmark: servers and players, each a process of this binary.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

use muse_program::figures::PlayerFigures;
use muse_program::lateness::Late;

/// A server, which ends when this is dropped.
pub(super) struct Game {
    program: Program,
    address: String,
    key: String,
}

impl Game {
    pub(super) fn start(players: u32, mode: &str, level: Option<&str>) -> anyhow::Result<Self> {
        let players = players.to_string();
        let mut words = vec!["game", "--listen", "127.0.0.1:0", "--no-web", "--figures"];
        words.extend(["--danger-no-tokens", "--players", &players, "--mode", mode]);
        words.extend(["--seed", "7", "--versus-s", "3600"]);
        words.extend(level.iter().flat_map(|level| ["--level", *level]));
        let mut program = Program::start(&words)?;
        let line = program.line()?;
        let rest = line.strip_prefix("listening at ");
        let parts = rest.and_then(|rest| rest.split_once(", key "));
        let (address, key) = parts.with_context(|| format!("the server said {line:?}"))?;
        Ok(Self {
            address: address.to_owned(),
            key: key.to_owned(),
            program,
        })
    }

    pub(super) fn id(&self) -> u32 {
        self.program.child.id()
    }

    /// Ends it, and reads how late its ticks were.
    pub(super) fn finish(self) -> anyhow::Result<Late> {
        let value: Value = self.program.finish()?;
        Ok(serde_json::from_value(value["late"].clone())?)
    }
}

/// Players, who end when this is dropped.
pub(super) struct Bots {
    program: Program,
}

impl Bots {
    pub(super) fn start(game: &Game, count: u32, level: Option<&str>) -> anyhow::Result<Self> {
        let count = count.to_string();
        let mut words = vec!["bots", "--count", &count, "--figures"];
        words.extend(["--server", &game.address, "--key", &game.key]);
        words.extend(level.iter().flat_map(|level| ["--level", *level]));
        let program = Program::start(&words)?;
        Ok(Self { program })
    }

    pub(super) fn id(&self) -> u32 {
        self.program.child.id()
    }

    pub(super) fn wait_until_all_play(&mut self) -> anyhow::Result<()> {
        let line = self.program.line()?;
        match line.starts_with("all ") {
            true => Ok(()),
            false => bail!("the bots do not play: {line:?}"),
        }
    }

    /// Ends them, and reads what each counted.
    pub(super) fn finish(self) -> anyhow::Result<Vec<PlayerFigures>> {
        self.program.finish()
    }
}

/// A process whose output is read.
struct Program {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(words: &[&str]) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program's file")?;
        let mut child = Command::new(program)
            .args(words)
            .env("RUST_LOG", "error")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a program")?;
        let output = child.stdout.take().context("a program without output")?;
        let output = BufReader::new(output);
        Ok(Self { child, output })
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    /// Tells it to end; its last line is JSON.
    fn finish<T: serde::de::DeserializeOwned>(mut self) -> anyhow::Result<T> {
        let id = self.child.id().to_string();
        Command::new("kill")
            .arg(&id)
            .status()
            .context("no `kill`")?;
        let mut text = String::new();
        self.output.read_to_string(&mut text)?;
        self.child.wait()?;
        let last = text.lines().last().context("a program said nothing")?;
        serde_json::from_str(last).with_context(|| format!("not figures: {last}"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended already, unless something failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The co-operative level with every enemy in it, and all of them awake from the beginning.
pub(super) fn crowded_level() -> anyhow::Result<String> {
    let mut level: Value = serde_json::from_str(LEVEL)?;
    let enemies = level["enemies"].as_array_mut();
    for enemy in enemies.context("the level has no enemies")? {
        let enemy = enemy.as_object_mut().context("an enemy is an object")?;
        enemy.remove("wake");
        enemy.remove("chance");
    }
    Ok(level.to_string())
}

const LEVEL: &str = include_str!("../../../../game/biobot/levels/escape.json");
