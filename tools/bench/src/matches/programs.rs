//! The programs of the benchmark: servers and players, each a process of this binary.

use anyhow::{Context, bail};
use serde_json::Value;

use muse_program::child::Program;
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
        let line = format!(
            "game --listen 127.0.0.1:0 --no-web --figures --danger-no-tokens --players {players} --mode {mode} --seed 7 --versus-seconds 3600"
        );
        let mut program = start(&line, level)?;
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
        self.program.id()
    }

    /// Ends it, and reads how late its ticks were.
    pub(super) fn finish(self) -> anyhow::Result<Late> {
        let value: Value = finish(self.program)?;
        Ok(serde_json::from_value(value["late"].clone())?)
    }
}

/// Players, who end when this is dropped.
pub(super) struct Bots {
    program: Program,
}

impl Bots {
    pub(super) fn start(game: &Game, count: u32, level: Option<&str>) -> anyhow::Result<Self> {
        let Game { address, key, .. } = game;
        let line = format!("bots --count {count} --figures --server {address} --key {key}");
        let program = start(&line, level)?;
        Ok(Self { program })
    }

    pub(super) fn id(&self) -> u32 {
        self.program.id()
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
        finish(self.program)
    }
}

/// Starts a program of this crate's own, which reports nothing but errors.
fn start(line: &str, level: Option<&str>) -> anyhow::Result<Program> {
    Program::start(line, |command| {
        command.env("RUST_LOG", "error");
        command.args(level.iter().flat_map(|level| ["--level", *level]));
    })
}

/// Tells a program to end and reads the figures that it prints last.
fn finish<T: serde::de::DeserializeOwned>(program: Program) -> anyhow::Result<T> {
    let text = program.finish()?;
    let last = text.lines().last().context("a program said nothing")?;
    serde_json::from_str(last).with_context(|| format!("not figures: {last}"))
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
