//! Where a game server is posted: which master it serves, where players reach it, and who it is.
//!
//! A master that starts servers as child processes says it by the environment. In a cluster the environment names the master and the fleet's key,
//! and Agones says the rest.

use std::ops::{Deref, DerefMut};

use anyhow::Context;
use muse_master_client::ServerLink;
use muse_wire::Instant;

use super::link::Link;
#[cfg(feature = "agones")]
use super::sidecar::Sidecar;
use super::socket::Who;

/// What a game server is told before it begins.
pub(crate) struct Posting {
    /// The port to listen at.
    pub(crate) port: u16,
    address: String,
    who: Who,
    master: String,
    #[cfg(feature = "agones")]
    sidecar: Option<Sidecar>,
}

impl Posting {
    /// None if no master has started this program. In a cluster it waits for Agones.
    #[cfg_attr(not(feature = "agones"), expect(unused_variables))]
    pub(crate) fn from_environment(protocol_id: u64) -> anyhow::Result<Option<Self>> {
        let Ok(master) = std::env::var("MUSE_MASTER") else {
            return Ok(None);
        };
        let variable = |name: &str| {
            std::env::var(name).with_context(|| format!("a master sets {name} as well"))
        };
        let port = variable("MUSE_SERVER_PORT")?;
        let port = port.parse().context("MUSE_SERVER_PORT is no port")?;
        let master = master.trim_start_matches("ws://").to_owned();
        if std::env::var_os("AGONES_SDK_GRPC_PORT").is_some() {
            #[cfg(not(feature = "agones"))]
            anyhow::bail!("this program was built without the feature `agones`");
            #[cfg(feature = "agones")]
            return Self::in_cluster(port, master, protocol_id).map(Some);
        }
        Ok(Some(Self {
            port,
            address: variable("MUSE_SERVER_ADDRESS")?,
            who: Who::Server(variable("MUSE_SERVER_CREDENTIAL")?),
            master,
            #[cfg(feature = "agones")]
            sidecar: None,
        }))
    }

    #[cfg(feature = "agones")]
    fn in_cluster(port: u16, master: String, protocol_id: u64) -> anyhow::Result<Self> {
        let key = std::env::var("MUSE_FLEET_KEY")
            .context("set MUSE_FLEET_KEY to the fleet's key, from a secret")?;
        let sidecar = Sidecar::connect(protocol_id)?;
        let name = sidecar.name().to_owned();
        Ok(Self {
            port,
            address: sidecar.address().to_owned(),
            who: Who::Enrolling { key, name },
            master,
            sidecar: Some(sidecar),
        })
    }

    /// Begins to connect to the master.
    pub(crate) fn take_up(self, public_key: &str) -> anyhow::Result<Post> {
        let life = ServerLink::new(&self.address, public_key);
        Ok(Post {
            link: Link::new(&self.master, self.who, life)?,
            #[cfg(feature = "agones")]
            sidecar: self.sidecar,
        })
    }
}

/// A game server's life with the master, which is reached through it, and with the cluster.
pub(crate) struct Post {
    link: Link<ServerLink>,
    #[cfg(feature = "agones")]
    sidecar: Option<Sidecar>,
}

impl Post {
    /// One turn: what has arrived and what is due.
    pub(crate) fn listen(&mut self, now: Instant) {
        let heard = self.link.listen(now);
        // The cluster may give this server away from here on: the master has answered, so it knows where it is.
        #[cfg(feature = "agones")]
        if let Some(sidecar) = self.sidecar.as_mut().filter(|_| heard) {
            sidecar.ready();
        }
        #[cfg(not(feature = "agones"))]
        let _ = heard;
    }

    /// Does what the life wants of its connection.
    pub(crate) fn act(&mut self) {
        while let Some(other) = self.link.act() {
            tracing::warn!(?other, "not known");
        }
    }
}

impl Deref for Post {
    type Target = ServerLink;

    fn deref(&self) -> &ServerLink {
        &self.link
    }
}

impl DerefMut for Post {
    fn deref_mut(&mut self) -> &mut ServerLink {
        &mut self.link
    }
}
