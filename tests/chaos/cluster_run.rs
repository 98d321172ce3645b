//! Whole runs: seeds of faults, and what they found.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::checker::{Violation, check};
use crate::cluster::Cluster;
use crate::history::{Answer, Change, Entry, Event, Recorder};
use crate::nats::Nats;
use crate::plan::{Planned, Way, plan};
use crate::players::{self, Common};
use crate::postgres::Postgres;
use crate::program::{Master, OPERATOR_PASSWORD, Player, Request};
use crate::proxy::Proxy;

/// Faults of every kind, from seeds: nothing that masters promise is broken, and everybody plays on afterwards.
///
/// `MUSE_SEEDS` is the number of seeds, `MUSE_CHAOS_SEED` the first one, `MUSE_CHAOS_SECONDS` how long the faults of each go on.
#[test]
fn faults_of_every_kind_break_no_promise() {
    let seconds = number("MUSE_CHAOS_SECONDS", 25);
    let first = number("MUSE_CHAOS_SEED", 1);
    let mut failed = Vec::new();
    for seed in first..first + number("MUSE_SEEDS", 1) {
        let run = run(seed, seconds);
        println!("seed {seed}, {seconds} s: {}", run.summary());
        if !run.violations.is_empty() {
            run.explain();
            failed.push(seed);
        }
    }
    assert!(failed.is_empty(), "seeds that broke promises: {failed:?}");
}

/// A player goes from one master to another, which hears of the first connection only then: the newer one stays.
#[test]
fn a_late_note_of_an_older_connection_closes_nothing() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let (database, bus) = (Postgres::start(), Nats::start());
    let url = database.database("muse");
    let link = Proxy::start(&runtime, bus.port());
    let start = |bus: u16| {
        let bus = format!("nats://127.0.0.1:{bus}");
        let arguments = ["--database", &url, "--nats", &bus, "--operator", "ada"];
        Master::start(&arguments, 1.0)
    };
    let (first, second) = (start(bus.port()), start(link.port()));
    let limit = Duration::from_secs(30);
    let announce = |text: &str| {
        let body = format!(r#"{{"name":"ada","password":"{OPERATOR_PASSWORD}"}}"#);
        let operator = first.request(Request::post("/admin/api/sign-in", &body));
        let operator = operator.expect_json(200)["token"].clone();
        let operator = operator.as_str().expect("a token");
        let body = format!(r#"{{"text":"{text}"}}"#);
        let announce = Request::post("/admin/api/announcements", &body).bearer(operator);
        first.request(announce).expect(204);
    };
    // The second master hears the first one.
    let witness = Player::start(&second, 2, false);
    witness.expect("online", limit);
    announce("early");
    witness.expect("announced", limit);
    link.cut(Way::Back);
    let old = Player::start(&first, 1, false);
    old.expect("online", limit);
    drop(old);
    let new = Player::start(&second, 1, false);
    new.expect("online", limit);
    link.mend();
    announce("late");
    new.expect("announced", limit);
}

/// A run and what is wrong with it.
struct Run {
    seed: u64,
    plan: Vec<Planned>,
    folder: PathBuf,
    history: Vec<Entry>,
    violations: Vec<Violation>,
}

fn run(seed: u64, seconds: u64) -> Run {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chaos/seed-{seed}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let recorder = Recorder::create(&folder.join("history.jsonl"));
    let mut cluster = Cluster::start(&folder, PLAYERS, &recorder);
    let plan = plan(seed, seconds, cluster.has_disk());
    let planned: Vec<String> = plan.iter().map(|one| format!("{one:?}\n")).collect();
    std::fs::write(folder.join("plan"), planned.concat()).expect("written");
    let common = Arc::new(Common {
        recorder: recorder.clone(),
        calm: AtomicBool::new(false),
        stop: AtomicBool::new(false),
        accounts: Mutex::new(vec![None; PLAYERS]),
        played_ms: (0..PLAYERS).map(|_| AtomicU64::new(0)).collect(),
    });
    let threads: Vec<_> = (0_u32..)
        .zip(0..PLAYERS)
        .flat_map(|(player, index)| {
            let links = cluster.player_links(index);
            let calls = cluster.call_ports();
            [
                players::connect(&common, player, seed, links),
                players::call(&common, player, seed, calls),
            ]
        })
        .collect();
    cluster.suffer(&plan);
    common.calm.store(true, Ordering::Relaxed);
    settle(&mut cluster, &common);
    common.stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("a player's thread ends");
    }
    cluster.database.tell(&recorder);
    cluster.keep_logs();
    let history = recorder.entries();
    let violations = check(&history);
    Run {
        seed,
        plan,
        folder,
        history,
        violations,
    }
}

/// Waits until everybody has played since the faults were over.
fn settle(cluster: &mut Cluster, common: &Common) {
    let healed_ms = common.recorder.now_ms();
    let begun = Instant::now();
    let waits = |played: &AtomicU64| played.load(Ordering::Relaxed) < healed_ms;
    while common.played_ms.iter().any(waits) && begun.elapsed() < SETTLE_MAX {
        cluster.keep_up();
        std::thread::sleep(Duration::from_millis(50));
    }
    for (played, player) in common.played_ms.iter().zip(0..) {
        if waits(played) {
            common.recorder.note(Event::Stuck { player });
        }
    }
}

impl Run {
    /// Counts what was done and what came of it, in a line.
    fn summary(&self) -> String {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        let mut healed_ms = 0;
        for entry in &self.history {
            let name = match &entry.event {
                Event::Answered { answer, .. } => match answer {
                    Answer::Refused { .. } => "calls refused".to_owned(),
                    Answer::Unknown { .. } => "calls without an answer".to_owned(),
                    _ => "calls answered".to_owned(),
                },
                Event::Stored {
                    change: Change::MatchEnded { outcome, .. },
                } => format!("matches {outcome}"),
                Event::Broken { .. } => "faults".to_owned(),
                Event::Linked { .. } => "connections".to_owned(),
                Event::Healed => {
                    healed_ms = entry.at_ms;
                    continue;
                }
                _ => continue,
            };
            *counts.entry(name).or_default() += 1;
        }
        let end_ms = self.history.last().map_or(0, |entry| entry.at_ms);
        let counts: Vec<String> = counts
            .into_iter()
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        format!(
            "{}, {} violations, all played again within {:.1} s",
            counts.join(", "),
            self.violations.len(),
            end_ms.saturating_sub(healed_ms) as f64 / 1_000.0
        )
    }

    fn explain(&self) {
        println!(
            "seed {} broke promises; its history and logs are in {}. The plan:",
            self.seed,
            self.folder.display()
        );
        for planned in &self.plan {
            println!("    {planned:?}");
        }
        for violation in &self.violations {
            println!("  {violation}");
        }
    }
}

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().expect("a number"))
}

const PLAYERS: usize = 8;
/// Time for everybody to play again once everything is healed: a match of those who are still in one, then the next.
const SETTLE_MAX: Duration = Duration::from_secs(90);
