//! One run of one library: starts its programs, reads the kernel's counters at both marks, collects what they report.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use muse_bench_workload::Report;
use serde::Serialize;

use super::cases::{Case, Size};
use super::counters::{Traffic, cpu_time, memory};
use super::isolation::Surroundings;
use super::proxy::ProxyReport;
use super::role::Role;

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
        let muse = std::env::current_exe().context("this program's own path")?;
        Ok(Self {
            name: mode.map_or(MUSE.to_owned(), |mode| format!("{MUSE} {mode}")),
            program: vec![muse.into(), "bench-role".into()],
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
    surroundings: &Surroundings,
    library: &Library,
    case: Case,
    size: Size,
    seed: u64,
) -> anyhow::Result<Run> {
    let run = Starter {
        surroundings,
        library,
        case,
        size,
    };
    let mut server = run.start_server()?;
    let server_port: u16 = server
        .expect("ready", START_MAX)?
        .parse()
        .context("no port")?;
    let (first, resident) = (server.pid(), memory(server.pid())?.resident);
    surroundings.raise(first);
    let mut proxy = run.start_proxy(first, server_port, seed)?;
    let port = match &mut proxy {
        Some(proxy) => proxy
            .expect("ready", START_MAX)?
            .parse()
            .context("no port")?,
        None => server_port,
    };
    let mut client = run.start_client(first, port)?;
    client.expect("connected", CONNECT_MAX)?;
    surroundings.raise(client.pid());
    if let Some(proxy) = &proxy {
        surroundings.raise(proxy.pid());
    }
    std::thread::sleep(SETTLE);

    let traffic = Traffic::of(first)?;
    let (server_cpu, client_cpu) = (cpu_time(first)?, cpu_time(client.pid())?);
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
    let server_cpu_seconds = (cpu_time(first)? - server_cpu).as_secs_f64();
    let client_cpu_seconds = (cpu_time(client.pid())? - client_cpu).as_secs_f64();
    let traffic = Traffic::of(first)?.since(&traffic);
    let server_memory_bytes = memory(first)?.resident_max.saturating_sub(resident);

    Ok(Run {
        server_cpu_seconds,
        client_cpu_seconds,
        server_memory_bytes,
        traffic,
        client: client.stop()?,
        network: proxy.map(Role::stop).transpose()?,
        server: server.stop()?,
    })
}

struct Starter<'a> {
    surroundings: &'a Surroundings,
    library: &'a Library,
    case: Case,
    size: Size,
}

impl Starter<'_> {
    fn start_server(&self) -> anyhow::Result<Role> {
        let words = self.words("server", &[]);
        Role::start(self.name("server"), self.surroundings.first(&words))
    }

    fn start_client(&self, first: u32, port: u16) -> anyhow::Result<Role> {
        let words = self.words("client", &["--server", &format!("127.0.0.1:{port}")]);
        Role::start(
            self.name("client"),
            self.surroundings.further(first, &words),
        )
    }

    fn start_proxy(&self, first: u32, port: u16, seed: u64) -> anyhow::Result<Option<Role>> {
        let Some(network) = self.case.network() else {
            return Ok(None);
        };
        let muse = std::env::current_exe().context("this program's own path")?;
        let mut words: Vec<OsString> = vec![muse.into(), "bench-proxy".into()];
        words.extend(["--server".into(), format!("127.0.0.1:{port}").into()]);
        words.extend(["--seed".into(), seed.to_string().into()]);
        words.extend(network.iter().map(OsString::from));
        let command = self.surroundings.further(first, &words);
        Role::start("the proxy".to_owned(), command).map(Some)
    }

    fn words(&self, role: &str, more: &[&str]) -> Vec<OsString> {
        let mut words = self.library.program.clone();
        words.extend([role, "--workload", self.case.workload()].map(OsString::from));
        words.extend(["--clients".into(), self.size.clients.to_string().into()]);
        words.extend(["--seconds".into(), self.size.seconds.to_string().into()]);
        words.extend(["--messages".into(), self.size.messages.to_string().into()]);
        words.extend(more.iter().map(OsString::from));
        words.extend(self.library.options.iter().cloned());
        words
    }

    fn name(&self, role: &str) -> String {
        format!("{} {role}", self.library.name)
    }
}

/// Name of Muse's rows.
pub(crate) const MUSE: &str = "muse";
const START_MAX: Duration = Duration::from_secs(10);
const CONNECT_MAX: Duration = Duration::from_secs(35);
/// Handshakes leave work behind, such as path probes: the run begins after it.
const SETTLE: Duration = Duration::from_millis(500);
