//! Builds the peers, a workspace of its own beside Muse's, and finds their programs.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use indicatif::ProgressBar;

use super::measure::Library;

/// The peers, in the order in which tables show them.
pub(crate) const PEERS: [&str; 6] = ["bare", "kcp", "rusty_enet", "enet", "quinn", "renet"];

/// Builds `peers`, showing progress.
pub(crate) fn build(peers: &[String]) -> anyhow::Result<Vec<Library>> {
    for peer in peers {
        ensure!(
            PEERS.contains(&peer.as_str()),
            "there is no peer {peer:?}; there are {} (or none)",
            PEERS.join(", ")
        );
    }
    if peers.is_empty() {
        return Ok(Vec::new());
    }
    let manifest = manifest("bench/peers")?;
    let programs = run_cargo(&manifest, &[])?;
    peers
        .iter()
        .map(|peer| {
            let path = programs.get(&format!("peer-{peer}"));
            let path = path.with_context(|| format!("cargo built no program for {peer}"))?;
            Ok(Library::peer(peer, path.clone()))
        })
        .collect()
}

/// Builds one program of the peers that is not a transport.
pub(crate) fn build_program(peer: &str) -> anyhow::Result<PathBuf> {
    let manifest = manifest("bench/peers")?;
    let program = format!("peer-{peer}");
    let path = run_cargo(&manifest, &["--bin", &program])?.remove(&program);
    path.with_context(|| format!("cargo built no program for {peer}"))
}

/// Builds the programs that run plugins for Bevy, which takes long for the first time, and finds `names` among them.
pub(crate) fn build_bevy(names: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    let mut programs = run_cargo(&manifest("bench/peers/bevy")?, &["--workspace"])?;
    let find = |name: &&str| {
        let path = programs.remove(*name);
        path.with_context(|| format!("cargo built no program {name}"))
    };
    names.iter().map(find).collect()
}

/// The manifest of a workspace of peers, which is about to be built.
fn manifest(folder: &str) -> anyhow::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(folder);
    let manifest = folder.join("Cargo.toml").canonicalize().with_context(|| {
        format!(
            "the peers' source is not at {}; use --peers none to measure Muse alone",
            folder.display()
        )
    })?;
    eprintln!(
        "building the peers in {} (cargo build --release)",
        manifest.display()
    );
    Ok(manifest)
}

/// Runs cargo and returns the path of each program by name.
fn run_cargo(manifest: &Path, only: &[&str]) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args([
            "build",
            "--release",
            "--quiet",
            "--message-format=json-render-diagnostics",
        ])
        .args(only)
        .arg("--manifest-path")
        .arg(manifest)
        .stdout(Stdio::piped())
        .spawn()
        .context(
            "cannot run cargo, which builds the peers; use --peers none to measure Muse alone",
        )?;
    let progress = ProgressBar::new_spinner();
    let output = cargo.stdout.take().context("cargo has no output")?;
    let mut programs = BTreeMap::new();
    for line in BufReader::new(output).lines() {
        let message: serde_json::Value = serde_json::from_str(&line?).unwrap_or_default();
        let Some(name) = message["target"]["name"].as_str() else {
            continue;
        };
        progress.set_message(name.to_owned());
        progress.tick();
        if let Some(path) = message["executable"].as_str() {
            programs.insert(name.to_owned(), PathBuf::from(path));
        }
    }
    progress.finish_and_clear();
    let status = cargo.wait()?;
    if !status.success() {
        bail!("building the peers failed ({status}); use --peers none to measure Muse alone");
    }
    Ok(programs)
}
