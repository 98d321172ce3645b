//! The master that a game server belongs to, and where players reach it.
//!
//! A master that starts servers as child processes sets environment variables. In a cluster they name the master and the fleet's key,
//! and Agones provides the rest.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};

use muse::master::{HostEvent, MatchHost, MatchHostConfig};
use muse_drivers::WebOptions;
use muse_transport::{Endpoint, ServerPublicKey};
use muse_wire::Instant;

#[cfg(feature = "agones")]
use super::sidecar::Sidecar;

/// The settings that a game server is given before it starts.
pub(crate) struct Enrolment {
    config: MatchHostConfig,
    #[cfg(feature = "agones")]
    sidecar: Option<Sidecar>,
}

impl Enrolment {
    /// Reads the environment; none if no master has started this program. In a cluster it waits for Agones.
    #[cfg_attr(not(feature = "agones"), expect(unused_variables))]
    pub(crate) fn from_environment(protocol_id: u64) -> anyhow::Result<Option<Self>> {
        if std::env::var_os("MUSE_MASTER").is_some()
            && std::env::var_os("AGONES_SDK_GRPC_PORT").is_some()
        {
            #[cfg(not(feature = "agones"))]
            anyhow::bail!("this program was built without the feature `agones`");
            #[cfg(feature = "agones")]
            return Self::in_cluster(protocol_id).map(Some);
        }
        let config = MatchHostConfig::from_environment()?;
        Ok(config.map(|config| Self {
            config,
            #[cfg(feature = "agones")]
            sidecar: None,
        }))
    }

    #[cfg(feature = "agones")]
    fn in_cluster(protocol_id: u64) -> anyhow::Result<Self> {
        use anyhow::Context;
        use muse::master::MasterCredentials;

        let master = std::env::var("MUSE_MASTER")?;
        let port = std::env::var("MUSE_SERVER_PORT").context("set MUSE_SERVER_PORT as well")?;
        let port = port.parse().context("MUSE_SERVER_PORT is not a port")?;
        let key = std::env::var("MUSE_FLEET_KEY")
            .context("set MUSE_FLEET_KEY to the fleet's key, from a secret")?;
        let sidecar = Sidecar::connect(protocol_id)?;
        let (name, uid) = (sidecar.name().to_owned(), sidecar.uid().to_owned());
        let credentials = MasterCredentials::Fleet { key, name, uid };
        let mut config = MatchHostConfig::new(&master, credentials, port, sidecar.address())?;
        if let Some(file) = std::env::var_os("MUSE_MASTER_CA") {
            config = config.ca_file(file);
        }
        Ok(Self {
            config,
            sidecar: Some(sidecar),
        })
    }

    /// Returns how to let browsers in.
    pub(crate) fn web(&self) -> WebOptions {
        self.config.web()
    }

    /// The address to bind.
    pub(crate) fn listen_address(&self) -> SocketAddr {
        self.config.listen_address()
    }

    /// Starts to connect to the master.
    pub(crate) fn start(
        self,
        now: Instant,
        public_key: &ServerPublicKey,
    ) -> anyhow::Result<EnrolledHost> {
        Ok(EnrolledHost {
            host: self.config.start(now, public_key)?,
            #[cfg(feature = "agones")]
            sidecar: self.sidecar,
        })
    }
}

/// A game server's connection to its master, which is reached through it, and to the cluster.
pub(crate) struct EnrolledHost {
    host: MatchHost,
    #[cfg(feature = "agones")]
    sidecar: Option<Sidecar>,
}

impl EnrolledHost {
    /// Does what is due and returns the next thing that the master wants.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
    ) -> anyhow::Result<Option<HostEvent>> {
        let event = self.host.turn(now, endpoint)?;
        // The cluster may give this server away from here on: the master has answered, so it knows where it is.
        #[cfg(feature = "agones")]
        if let Some(sidecar) = self.sidecar.as_mut().filter(|_| self.host.is_registered()) {
            sidecar.ready();
        }
        Ok(event)
    }
}

impl Deref for EnrolledHost {
    type Target = MatchHost;

    fn deref(&self) -> &MatchHost {
        &self.host
    }
}

impl DerefMut for EnrolledHost {
    fn deref_mut(&mut self) -> &mut MatchHost {
        &mut self.host
    }
}
