//! Everything of a run: three masters, the databases, NATS, the game servers, the proxies between them, and the hands that break and mend them.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::database::{DATABASE, Pair};
use crate::history::{Event, Recorder};
use crate::nats::Nats;
use crate::plan::{Fault, Link, MASTERS, Planned, Way};
use crate::program::{SECRET_KEY, free_ports};
use crate::proxy::Proxy;

/// The whole.
pub(crate) struct Cluster {
    masters: Vec<MasterProcess>,
    pub(crate) database: Pair,
    bus: Nats,
    links: Links,
    /// Faults that are going on, and the process of a game server that is stopped.
    active: BTreeMap<usize, (Fault, Option<u32>)>,
    recorder: Recorder,
    folder: PathBuf,
    /// Carries the proxies.
    _runtime: tokio::runtime::Runtime,
}

/// The proxies.
struct Links {
    database: Vec<Proxy>,
    bus: Vec<Proxy>,
    /// From the game servers of a master to a master.
    games: Vec<Vec<Proxy>>,
    /// From a player's connection to a master.
    players: Vec<Vec<Proxy>>,
    /// From the players' calls over HTTP to a master.
    calls: Vec<Proxy>,
}

/// A master that is kept running, as an operator's supervisor would.
struct MasterProcess {
    child: Option<Child>,
    command: MasterCommand,
    /// True while a fault keeps it down.
    down: bool,
    ended: Option<Instant>,
}

struct MasterCommand {
    port: u16,
    database: u16,
    bus: u16,
    first_port: u16,
    game: String,
    game_seconds: u32,
    clock: PathBuf,
    log: PathBuf,
    folder: PathBuf,
}

impl Cluster {
    /// Starts everything; the first master makes the tables, of which the database then notes every change.
    pub(crate) fn start(folder: &Path, players: usize, recorder: &Recorder) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime");
        let database = Pair::start(&runtime);
        let bus = Nats::start();
        // Held until the proxies have theirs, or one of them might get a master's.
        let held: Vec<TcpListener> = (0..MASTERS)
            .map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"))
            .collect();
        let port = |listener: &TcpListener| listener.local_addr().expect("bound").port();
        let ports: Vec<u16> = held.iter().map(port).collect();
        let each = |target: u16| -> Vec<Proxy> {
            let proxies = ports.iter().map(|_| Proxy::start(&runtime, target));
            proxies.collect()
        };
        let to_masters = || -> Vec<Proxy> {
            let proxies = ports.iter().map(|port| Proxy::start(&runtime, *port));
            proxies.collect()
        };
        let links = Links {
            database: each(database.primary().port()),
            bus: each(bus.port()),
            games: ports.iter().map(|_| to_masters()).collect(),
            players: (0..players).map(|_| to_masters()).collect(),
            calls: to_masters(),
        };
        drop(held);
        let masters = (0..MASTERS).map(|number| MasterProcess {
            child: None,
            command: MasterCommand {
                port: ports[number],
                database: links.database[number].port(),
                bus: links.bus[number].port(),
                first_port: free_ports(),
                game: game_command(&links.games[number], number),
                game_seconds: GAME_SECONDS[number],
                clock: folder.join(format!("clock-{number}")),
                log: folder.join(format!("master-{number}.log")),
                folder: folder.to_owned(),
            },
            down: true,
            ended: None,
        });
        let mut cluster = Self {
            masters: masters.collect(),
            database,
            bus,
            links,
            active: BTreeMap::new(),
            recorder: recorder.clone(),
            folder: folder.to_owned(),
            _runtime: runtime,
        };
        for number in 0..MASTERS {
            cluster.set_clock(number, 0);
        }
        cluster.bring_up(0);
        cluster.database.watch();
        for number in 1..MASTERS {
            cluster.masters[number].down = false;
        }
        cluster
    }

    fn bring_up(&mut self, number: usize) {
        self.masters[number].down = false;
        let begun = Instant::now();
        let port = self.masters[number].command.port;
        while crate::http::call(port, "GET", "/ready", None, "").map(|(status, _)| status)
            != Ok(204)
        {
            self.keep_up();
            assert!(begun.elapsed() < START_MAX, "master {number} is not ready");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Addresses of the masters for a player's connection.
    pub(crate) fn player_links(&self, player: usize) -> Vec<Proxy> {
        self.links.players[player].clone()
    }

    /// Ports of the masters for calls.
    pub(crate) fn call_ports(&self) -> Vec<u16> {
        self.links.calls.iter().map(Proxy::port).collect()
    }

    /// True if the primary has a disk that can be filled.
    pub(crate) fn has_disk(&self) -> bool {
        self.database.primary().disk().is_some()
    }

    /// Starts masters that ended, a moment after they did.
    pub(crate) fn keep_up(&mut self) {
        for master in &mut self.masters {
            if let Some(child) = &mut master.child
                && child.try_wait().expect("asked").is_some()
            {
                master.child = None;
                master.ended = Some(Instant::now());
            }
            let rests = master
                .ended
                .is_some_and(|ended| ended.elapsed() < RESTART_AFTER);
            if master.child.is_none() && !master.down && !rests {
                master.child = Some(master.command.spawn());
            }
        }
    }

    /// Carries out a plan.
    pub(crate) fn suffer(&mut self, plan: &[Planned]) {
        let begun = Instant::now();
        let mut steps: Vec<(u64, usize, bool)> = Vec::new();
        for (number, planned) in plan.iter().enumerate() {
            steps.push((planned.at_ms, number, true));
            steps.push((planned.at_ms + planned.for_ms, number, false));
        }
        steps.sort_unstable();
        for (at_ms, number, begins) in steps {
            while begun.elapsed() < Duration::from_millis(at_ms) {
                self.keep_up();
                std::thread::sleep(LOOK_EVERY);
            }
            match begins {
                true => self.break_it(number, plan[number].fault),
                false => self.mend_it(number),
            }
        }
        let left: Vec<usize> = self.active.keys().copied().collect();
        for number in left {
            self.mend_it(number);
        }
        self.recorder.note(Event::Healed);
    }

    fn break_it(&mut self, number: usize, fault: Fault) {
        let game = match fault {
            Fault::PauseGame { pick } | Fault::KillGame { pick } => self.pick_game(pick),
            _ => None,
        };
        self.recorder.note(Event::Broken {
            number,
            fault,
            address: game.as_ref().map(|(_, address)| address.clone()),
        });
        let pid = game.map(|(pid, _)| pid);
        self.active.insert(number, (fault, pid));
        match fault {
            Fault::PauseMaster { master } => self.masters[master].signal("STOP"),
            Fault::KillMaster { master } => {
                self.masters[master].down = true;
                self.masters[master].kill();
            }
            Fault::StepClock { master, by_s } => self.set_clock(master, by_s),
            Fault::PauseGame { .. } => signal_any(pid, "STOP"),
            Fault::KillGame { .. } => signal_any(pid, "KILL"),
            Fault::IsolateMaster { .. } | Fault::Cut { .. } => self.apply_cuts(),
            Fault::PausePrimary => self.database.signal("STOP"),
            Fault::KillPrimary => self.database.kill(),
            Fault::FailOver => {
                if let Some(port) = self.database.fail_over() {
                    for proxy in &self.links.database {
                        proxy.lead_to(port);
                    }
                }
            }
            Fault::FillDisk => self.database.fill(),
            Fault::PauseBus => signal(self.bus.pid(), "STOP"),
            Fault::KillBus => self.bus.stop(),
        }
    }

    fn mend_it(&mut self, number: usize) {
        let Some((fault, pid)) = self.active.remove(&number) else {
            return;
        };
        match fault {
            Fault::PauseMaster { master } => self.masters[master].signal("CONT"),
            Fault::KillMaster { master } => self.masters[master].down = false,
            Fault::StepClock { master, .. } => self.set_clock(master, 0),
            Fault::PauseGame { .. } => signal_any(pid, "CONT"),
            Fault::KillGame { .. } => {}
            Fault::IsolateMaster { .. } | Fault::Cut { .. } => self.apply_cuts(),
            Fault::PausePrimary => self.database.signal("CONT"),
            Fault::KillPrimary => self.database.start_again(),
            Fault::FailOver => self.database.rebuild(),
            Fault::FillDisk => self.database.make_room(),
            Fault::PauseBus => signal(self.bus.pid(), "CONT"),
            Fault::KillBus => self.bus.start_again(),
        }
        self.recorder.note(Event::Mended { number });
    }

    /// Mends every link, and cuts those that faults still cut.
    fn apply_cuts(&self) {
        let links = &self.links;
        let nested = links.games.iter().chain(&links.players).flatten();
        let all = links
            .database
            .iter()
            .chain(&links.bus)
            .chain(&links.calls)
            .chain(nested)
            .chain([&self.database.replication]);
        for proxy in all {
            proxy.mend();
        }
        for (fault, _) in self.active.values() {
            match *fault {
                Fault::Cut { link, way } => self.cut(link, way),
                Fault::IsolateMaster { master } => {
                    self.cut(Link::Database { master }, Way::Both);
                    self.cut(Link::Bus { master }, Way::Both);
                    self.cut(Link::Players { at: master }, Way::Both);
                    for of in 0..MASTERS {
                        self.cut(Link::Games { of, at: master }, Way::Both);
                    }
                }
                _ => {}
            }
        }
    }

    fn cut(&self, link: Link, way: Way) {
        let links = &self.links;
        match link {
            Link::Database { master } => links.database[master].cut(way),
            Link::Bus { master } => links.bus[master].cut(way),
            Link::Games { of, at } => links.games[of][at].cut(way),
            Link::Players { at } => {
                links.calls[at].cut(way);
                for proxies in &links.players {
                    proxies[at].cut(way);
                }
            }
            Link::Replication => self.database.replication.cut(way),
        }
    }

    /// Sets a master's clock, and that of its game servers, so many seconds apart from this machine's.
    fn set_clock(&self, master: usize, by_s: i64) {
        let file = &self.masters[master].command.clock;
        // Replaced as a whole, because it is read at any moment.
        let fresh = file.with_extension("new");
        std::fs::write(&fresh, format!("{by_s:+}s\n")).expect("written");
        std::fs::rename(&fresh, file).expect("replaced");
    }

    /// One of the game servers, with its address.
    fn pick_game(&self, pick: u32) -> Option<(u32, String)> {
        let games = games(&self.folder);
        let index = usize::try_from(pick).expect("a small number") % games.len().max(1);
        games.into_iter().nth(index)
    }

    /// Copies the logs of the databases to the others.
    pub(crate) fn keep_logs(&self) {
        let log = self.database.primary().log();
        let _ = std::fs::copy(log, self.folder.join("postgres.log"));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.database.signal("CONT");
        signal(self.bus.pid(), "CONT");
        for master in &mut self.masters {
            master.down = true;
            master.kill();
        }
        for (pid, _) in games(&self.folder) {
            signal(pid, "KILL");
        }
    }
}

impl MasterProcess {
    fn signal(&self, name: &str) {
        if let Some(child) = &self.child {
            signal(child.id(), name);
        }
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl MasterCommand {
    fn spawn(&self) -> Child {
        let log = File::options().create(true).append(true).open(&self.log);
        Command::new(env!("CARGO_BIN_EXE_muse"))
            .args(["master", "--listen", &format!("127.0.0.1:{}", self.port)])
            .args(["--nats", &format!("nats://127.0.0.1:{}", self.bus)])
            .args(["--first-port", &self.first_port.to_string()])
            .args(["--game", &self.game])
            .args(["--requests-per-second", "0"])
            .args(["--account-requests-per-second", "0"])
            .args(["--connections-per-ip", "0"])
            .args(["--passwords-per-minute", "0"])
            .env(
                "MUSE_MASTER_DATABASE",
                format!("postgres://muse@127.0.0.1:{}/{DATABASE}", self.database),
            )
            .env("MUSE_SECRET_KEY", SECRET_KEY)
            .env("MUSE_GAME_SECONDS", self.game_seconds.to_string())
            .env("MUSE_TEST_FOLDER", &self.folder)
            .env("RUST_LOG", "info,muse_master=debug")
            .env("NO_COLOR", "1")
            .env("LD_PRELOAD", faketime())
            .env("FAKETIME_TIMESTAMP_FILE", &self.clock)
            .env("FAKETIME_CACHE_DURATION", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("a log"))
            .spawn()
            .expect("the binary")
    }
}

/// The command of the game servers of a master: they know all masters, their own first, each by a proxy.
fn game_command(proxies: &[Proxy], own: usize) -> String {
    let order = (0..MASTERS).map(|step| &proxies[(own + step) % MASTERS]);
    let masters: Vec<String> = order
        .map(|proxy| format!("ws://127.0.0.1:{}", proxy.port()))
        .collect();
    let program = env!("CARGO_BIN_EXE_muse");
    format!(
        "env MUSE_MASTER={} '{program}' master-game",
        masters.join(",")
    )
}

/// All game servers of a run, with their addresses, the oldest first.
fn games(folder: &Path) -> Vec<(u32, String)> {
    let mark = format!("MUSE_TEST_FOLDER={}", folder.display());
    let processes = std::fs::read_dir("/proc").expect("Linux").flatten();
    let mut found: Vec<(u32, String)> = processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid: u32| {
            let read = |what: &str| {
                let bytes = std::fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
                let parts = bytes.split(|byte| *byte == 0);
                let texts = parts.map(|part| String::from_utf8_lossy(part).into_owned());
                texts.collect::<Vec<String>>()
            };
            let environment = read("environ");
            let is_game = read("cmdline").iter().any(|part| part == "master-game");
            let address = environment
                .iter()
                .find_map(|line| line.strip_prefix("MUSE_SERVER_ADDRESS="))?;
            let is_own = is_game && environment.contains(&mark);
            is_own.then(|| (pid, address.to_owned()))
        })
        .collect();
    found.sort_unstable();
    found
}

/// Sends a signal to a process, which may be gone.
pub(crate) fn signal(pid: u32, name: &str) {
    let _ = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .stderr(Stdio::null())
        .status();
}

fn signal_any(pid: Option<u32>, name: &str) {
    if let Some(pid) = pid {
        signal(pid, name);
    }
}

/// The library that shows programs another clock.
fn faketime() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").expect("Linux").flatten();
    let mut libraries = folders.map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"));
    let found = libraries.find(|library| library.exists());
    found.expect("faketime is installed (apt-get install faketime)")
}

/// Seconds of a match on the game servers of each master: some end before silence is noticed and some do not.
const GAME_SECONDS: [u32; MASTERS] = [5, 11, 16];
const START_MAX: Duration = Duration::from_secs(30);
const RESTART_AFTER: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(20);
