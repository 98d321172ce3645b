//! One run of one library: starts its programs, reads the kernel's counters at both marks, collects what they report.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use muse_bench_workload::Report;
use serde::Serialize;

use super::cases::{Case, Size};
use super::counters::Traffic;
use super::isolation::Surroundings;
use super::proxy::ProxyReport;
use super::role::{Programs, Role, own_path};

/// A library under test.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    /// Name in tables.
    pub(crate) name: String,
    /// Its program and the arguments that come first.
    pub(crate) program: Vec<OsString>,
    /// Arguments that come last.
    pub(crate) options: Vec<OsString>,
}

impl Library {
    /// Muse itself, with a choice of what reliable messages pay for latency under loss, or with its default.
    pub(crate) fn muse(mode: Option<&str>) -> anyhow::Result<Self> {
        Ok(Self {
            name: mode.map_or(MUSE.to_owned(), |mode| format!("{MUSE} {mode}")),
            program: vec![own_path()?.into(), "bench-role".into()],
            options: mode.map_or(Vec::new(), |mode| vec!["--mode".into(), mode.into()]),
        })
    }

    /// A peer whose program is at `path`.
    pub(crate) fn peer(name: &str, path: PathBuf) -> Self {
        Self {
            name: name.to_owned(),
            program: vec![path.into()],
            options: Vec::new(),
        }
    }
}

/// All that one run showed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Run {
    /// CPU time of the server between the marks.
    pub(crate) server_cpu_seconds: f64,
    /// CPU time of the client between the marks.
    pub(crate) client_cpu_seconds: f64,
    /// Largest growth of the server's memory, from before the first client.
    pub(crate) server_memory_bytes: u64,
    /// Traffic between the marks.
    pub(crate) traffic: Traffic,
    /// The server's report.
    pub(crate) server: Report,
    /// The client's report.
    pub(crate) client: Report,
    /// The proxy's report, where there is one.
    pub(crate) network: Option<ProxyReport>,
}

impl Run {
    /// W1: echoes that came back.
    pub(crate) fn echoes(&self) -> u64 {
        self.client.unreliable_received + self.client.reliable_received
    }

    /// W1: true if both sides kept their ticks, so that an echo took one. A loop that lags does more per wake-up and
    /// looks cheaper than it is.
    pub(crate) fn kept_its_ticks(&self) -> bool {
        (12.0..=20.0).contains(&self.client.latency_ms.p50)
    }
}

/// Runs `library` once.
pub(crate) fn measure(
    surroundings: Surroundings,
    library: &Library,
    case: Case,
    size: Size,
    seed: u64,
) -> anyhow::Result<Run> {
    let mut programs = Programs::new(surroundings);
    let start = |programs: &mut Programs, role: &str, options: String| {
        let name = format!("{} {role}", library.name);
        let line = format!(
            "{role} --workload {} --clients {} --seconds {} --messages {} {options}",
            case.workload(),
            size.clients,
            size.seconds,
            size.messages
        );
        let mut words = library.program.clone();
        words.extend(line.split_whitespace().map(OsString::from));
        words.extend(library.options.iter().cloned());
        programs.start(&name, &words)
    };
    let mut server = start(&mut programs, "server", String::new())?;
    let mut port = server.port(START_MAX)?;
    let resident = server.memory()?.resident;
    let mut proxy = match case.network() {
        Some(network) => {
            let line = format!("bench-proxy --server 127.0.0.1:{port} --seed {seed} {network}");
            let mut proxy = programs.muse("the proxy", usize::MAX, &line)?;
            port = proxy.port(START_MAX)?;
            Some(proxy)
        }
        None => None,
    };
    let to = format!("--server 127.0.0.1:{port}");
    let mut client = start(&mut programs, "client", to)?;
    client.expect("connected", CONNECT_MAX)?;
    std::thread::sleep(SETTLE);

    let traffic = Traffic::of(server.pid())?;
    let (server_cpu, client_cpu) = (server.cpu_seconds()?, client.cpu_seconds()?);
    if let Some(proxy) = &mut proxy {
        proxy.say("go")?;
        proxy.expect("started", START_MAX)?;
    }
    client.say("go")?;
    // The receiving side knows when all is over: in W1 that is the client, which awaits echoes.
    let receiver = match case {
        Case::ManyClients => &mut client,
        _ => &mut server,
    };
    receiver.expect("done", case.time_max(size))?;
    Ok(Run {
        server_cpu_seconds: server.cpu_seconds()? - server_cpu,
        client_cpu_seconds: client.cpu_seconds()? - client_cpu,
        traffic: Traffic::of(server.pid())?.since(&traffic),
        server_memory_bytes: server.memory()?.resident_max.saturating_sub(resident),
        client: client.stop()?,
        network: proxy.map(Role::stop).transpose()?,
        server: server.stop()?,
    })
}

/// Name of Muse's rows.
pub(crate) const MUSE: &str = "muse";
const START_MAX: Duration = Duration::from_secs(10);
const CONNECT_MAX: Duration = Duration::from_secs(35);
/// Handshakes leave work behind, such as path probes: the run begins after it.
const SETTLE: Duration = Duration::from_millis(500);
