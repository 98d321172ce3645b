//! The bad network of W3 and W4: the engine of `muse proxy`, for one client, driven by a benchmark's harness.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use muse_bench_workload::control::Control;
use muse_netem::{Conditions, Jitter};
use muse_wire::Duration;
use serde::{Deserialize, Serialize};

use muse_proxy::engine::{Engine, Setup};

/// Network conditions, the same in both directions.
#[derive(Args)]
pub struct ProxyArguments {
    /// Address that datagrams of clients are forwarded to.
    #[arg(long)]
    server: SocketAddr,
    /// Random seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Delay one way.
    #[arg(long, default_value_t = 50)]
    delay_ms: u64,
    /// Further delay, uniform from zero to this.
    #[arg(long, default_value_t = 0)]
    jitter_ms: u64,
    /// Share of datagrams lost.
    #[arg(long, default_value_t = 0.0)]
    loss: f64,
    /// Mean length of a burst of losses; 1 for independent losses.
    #[arg(long, default_value_t = 1.0)]
    burst: f64,
}

/// Traffic that the two sides offered to the network since the run began, lost datagrams included.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ProxyReport {
    /// Datagrams from the client.
    pub(crate) client_datagrams: u64,
    /// Their bytes with IP and UDP headers.
    pub(crate) client_ip_bytes: u64,
    /// Datagrams from the server.
    pub(crate) server_datagrams: u64,
    /// Their bytes with IP and UDP headers.
    pub(crate) server_ip_bytes: u64,
    /// Datagrams of both sides that were lost.
    pub(crate) lost: u64,
}

/// Runs the proxy until it is told to stop.
pub(crate) fn run(arguments: &ProxyArguments) -> anyhow::Result<ExitCode> {
    let control = Control::start();
    let setup = Setup {
        listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
        server: arguments.server,
        seed: arguments.seed,
        clients_max: 1,
        idle: Duration::from_secs(3_600),
        shared: false,
        tcp: false,
    };
    let conditions = Arc::new(arguments.conditions());
    let mut engine = Engine::new(setup, [Arc::clone(&conditions), conditions])?;
    control.ready(engine.local_addr().port());
    let mut baseline = None;
    while !control.has_stopped() {
        if control.has_started() && baseline.is_none() {
            baseline = Some(ProxyReport::of(&engine));
            control.started();
        }
        engine.turn(TURN_MAX)?;
    }
    control.result(&ProxyReport::of(&engine).since(&baseline.unwrap_or_default()));
    Ok(ExitCode::SUCCESS)
}

impl ProxyArguments {
    fn conditions(&self) -> Conditions {
        let base = Conditions::default()
            .delay(Duration::from_millis(self.delay_ms))
            .jitter(Jitter::Uniform(Duration::from_millis(self.jitter_ms)));
        if self.burst > 1.0 {
            base.burst_loss(self.loss, self.burst)
        } else {
            base.loss(self.loss)
        }
    }
}

impl ProxyReport {
    fn of(engine: &Engine) -> Self {
        let [client, server] = engine.statistics().ways;
        Self {
            client_datagrams: client.offered,
            client_ip_bytes: client.offered_ip_bytes,
            server_datagrams: server.offered,
            server_ip_bytes: server.offered_ip_bytes,
            lost: client.lost() + server.lost(),
        }
    }

    /// Datagrams of both sides.
    pub(crate) fn datagrams(&self) -> u64 {
        self.client_datagrams + self.server_datagrams
    }

    /// Bytes of both sides with IP and UDP headers.
    pub(crate) fn ip_bytes(&self) -> u64 {
        self.client_ip_bytes + self.server_ip_bytes
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            client_datagrams: self.client_datagrams - earlier.client_datagrams,
            client_ip_bytes: self.client_ip_bytes - earlier.client_ip_bytes,
            server_datagrams: self.server_datagrams - earlier.server_datagrams,
            server_ip_bytes: self.server_ip_bytes - earlier.server_ip_bytes,
            lost: self.lost - earlier.lost,
        }
    }
}

/// Interval at which the proxy checks whether it is to stop.
const TURN_MAX: Duration = Duration::from_millis(20);
