//! A game server's connection to Agones, through the sidecar that Agones runs beside it.
//!
//! Three things are not as they seem. `ready` is only a request: the server is ready when the watch says so, and the request is repeated until then.
//! Labels that a server gives itself get the prefix `agones.dev/sdk-`. And the task that carries health pings ends silently
//! when the sidecar restarts, so each ping checks that somebody still receives it, and starts a new task if not.

use std::sync::mpsc as std_mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use agones::Sdk;
use anyhow::{Context, anyhow};
use muse_master::fleet::agones::{NODE, PROTOCOL, protocol_label};
use tokio::sync::mpsc;

/// The connection. Dropping it tells Agones that this server may go.
pub(crate) struct Sidecar {
    name: String,
    uid: String,
    address: String,
    commands: Option<mpsc::UnboundedSender<Command>>,
    asked: bool,
    thread: Option<JoinHandle<()>>,
}

enum Command {
    Ready,
}

/// The state that Agones reports about this server.
struct Posted {
    name: String,
    uid: String,
    address: String,
}

impl Sidecar {
    /// Waits until Agones knows this server's address, and starts to send health pings.
    pub(crate) fn connect(protocol_id: u64) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the runtime")?;
        let (commands, received) = mpsc::unbounded_channel();
        let (posted, answer) = std_mpsc::channel();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                match begin(protocol_id).await {
                    Ok((sdk, found)) => {
                        let _ = posted.send(Ok(found));
                        live(sdk, received).await;
                    }
                    Err(error) => drop(posted.send(Err(error))),
                }
            });
        });
        let posted = answer
            .recv()
            .map_err(|_| anyhow!("Agones does not answer"))??;
        tracing::info!(name = posted.name, address = posted.address, "in a cluster");
        Ok(Self {
            name: posted.name,
            uid: posted.uid,
            address: posted.address,
            commands: Some(commands),
            asked: false,
            thread: Some(thread),
        })
    }

    /// The server's name in the cluster.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The unique id that the cluster gave to the server.
    pub(crate) fn uid(&self) -> &str {
        &self.uid
    }

    /// Returns the address at which players reach it.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Marks the server as ready for a match. Only the first call has an effect.
    pub(crate) fn ready(&mut self) {
        if !std::mem::replace(&mut self.asked, true)
            && let Some(commands) = &self.commands
        {
            let _ = commands.send(Command::Ready);
        }
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        // Without a sender the thread tells Agones to shut the server down, and ends.
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Connects, labels this server and finds out its address, which Agones knows once the pod is scheduled.
async fn begin(protocol_id: u64) -> anyhow::Result<(Sdk, Posted)> {
    let mut sdk = Sdk::new(None, None)
        .await
        .context("cannot reach the Agones sidecar")?;
    let own = |label: &'static str| label.trim_start_matches(SDK_PREFIX);
    sdk.set_label(own(PROTOCOL), protocol_label(protocol_id))
        .await?;
    if let Ok(node) = std::env::var("MUSE_NODE") {
        sdk.set_label(own(NODE), node).await?;
    }
    loop {
        let found = sdk.get_gameserver().await?;
        let named = found.object_meta.map(|meta| (meta.name, meta.uid));
        let address = found.status.and_then(|status| {
            let port = status.ports.first()?.port;
            (!status.address.is_empty()).then(|| format!("{}:{port}", status.address))
        });
        if let Some(((name, uid), address)) = named.zip(address) {
            return Ok((sdk, Posted { name, uid, address }));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Sends health pings until nobody sends commands any more, then tells Agones to shut the server down.
async fn live(mut sdk: Sdk, mut commands: mpsc::UnboundedReceiver<Command>) {
    let healthy = tokio::spawn(stay_healthy(sdk.clone()));
    let mut getting_ready = None;
    while let Some(Command::Ready) = commands.recv().await {
        getting_ready = Some(tokio::spawn(get_ready(sdk.clone())));
    }
    if let Some(task) = getting_ready {
        task.abort();
    }
    let goodbye = tokio::time::timeout(GOODBYE_MAX, sdk.shutdown()).await;
    if !matches!(goodbye, Ok(Ok(()))) {
        tracing::warn!("Agones was not told that this server ends");
    }
    healthy.abort();
}

/// Sends a health ping every two seconds, even if the sidecar restarts meanwhile.
async fn stay_healthy(sdk: Sdk) {
    let mut beat = tokio::time::interval(HEALTH_EVERY);
    let mut signs = sdk.health_check();
    loop {
        beat.tick().await;
        // The channel of a task that has ended is closed; that of one that is stuck is full.
        if signs.try_send(()).is_err() {
            tracing::warn!("Agones does not receive health pings; reconnecting");
            signs = sdk.health_check();
            let _ = signs.try_send(());
        }
    }
}

/// Asks to be ready until the server is.
async fn get_ready(mut sdk: Sdk) {
    loop {
        match tokio::time::timeout(READY_MAX, ask_ready(&mut sdk)).await {
            Ok(Ok(())) => return tracing::info!("ready for a match"),
            Ok(Err(error)) => tracing::warn!("not ready yet: {error}"),
            Err(_) => tracing::warn!("not ready yet"),
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Asks once, and waits until the watch confirms it.
async fn ask_ready(sdk: &mut Sdk) -> anyhow::Result<()> {
    // The watch first: a change in between would be missed.
    let mut watch = sdk.watch_gameserver().await?;
    sdk.ready().await?;
    while let Some(found) = watch.message().await? {
        let state = found.status.map(|status| status.state).unwrap_or_default();
        if matches!(state.as_str(), "Ready" | "Allocated" | "Reserved") {
            return Ok(());
        }
    }
    Err(anyhow!("the watch ended"))
}

/// The prefix that Agones puts before labels and annotations that servers set themselves.
const SDK_PREFIX: &str = "agones.dev/sdk-";
/// Agones counts a server as lost after three times five seconds without a sign, by default.
const HEALTH_EVERY: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Time for the cluster to make a server ready before it is asked again.
const READY_MAX: Duration = Duration::from_secs(10);
/// The process ends even if Agones does not answer.
const GOODBYE_MAX: Duration = Duration::from_secs(5);
