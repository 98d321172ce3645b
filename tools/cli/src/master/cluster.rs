//! The arguments of `muse master` about a cluster of game servers.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use muse_master::MasterConfig;
use muse_master::fleet::agones::AgonesConfig;

/// The cluster whose game servers Agones manages.
#[derive(Args)]
#[command(next_help_heading = "Game servers of a cluster, through Agones")]
#[group(id = "cluster")]
pub(crate) struct Arguments {
    /// Address of Agones' allocator, such as https://agones-allocator.agones-system: its servers are used instead of child processes. They register with
    /// the key in MUSE_FLEET_KEY.
    #[arg(long, value_name = "URL")]
    agones_allocator: Option<String>,
    /// The game whose fleets are used: those with the label muse.dev/game of this value.
    #[arg(long, value_name = "NAME", default_value = "muse")]
    agones_game: String,
    /// The namespace of the fleets.
    #[arg(long, value_name = "NAME", default_value = "default")]
    agones_namespace: String,
    /// Client certificate for the allocator, as a PEM file.
    #[arg(long, value_name = "FILE", requires = "agones_key")]
    agones_cert: Option<PathBuf>,
    /// Key of the client certificate, as a PEM file.
    #[arg(long, value_name = "FILE", requires = "agones_cert")]
    agones_key: Option<PathBuf>,
    /// Certificate authority of the allocator's own certificate, as a PEM file.
    #[arg(long, value_name = "FILE")]
    agones_ca: Option<PathBuf>,
    /// Address of the Kubernetes API, if it is neither this pod's nor in KUBECONFIG.
    #[arg(long, value_name = "URL")]
    agones_kubernetes: Option<String>,
    /// Most matches at once on one machine of the cluster.
    #[arg(long, value_name = "N", default_value_t = 20)]
    agones_matches_per_host: usize,
}

impl Arguments {
    /// Adds the cluster to the master's configuration, if one is named.
    pub(crate) fn apply(&self, config: MasterConfig) -> anyhow::Result<MasterConfig> {
        let Some(allocator) = &self.agones_allocator else {
            return Ok(config);
        };
        let key = std::env::var("MUSE_FLEET_KEY")
            .context("set MUSE_FLEET_KEY to the key with which game servers register")?;
        let mut agones = AgonesConfig::new(allocator, &self.agones_game, &key)
            .namespace(&self.agones_namespace)
            .matches_per_host(self.agones_matches_per_host);
        if let Some((certificate, key)) = self.agones_cert.as_ref().zip(self.agones_key.as_ref()) {
            agones = agones.identity(certificate, key);
        }
        if let Some(authority) = &self.agones_ca {
            agones = agones.authority(authority);
        }
        if let Some(address) = &self.agones_kubernetes {
            agones = agones.kubernetes(address);
        }
        Ok(config.agones(agones))
    }
}
