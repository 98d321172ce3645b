//! The way in to a master: TLS, proxies in front, and an address for operators.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use muse_master::{MasterConfig, TrustedProxy};

/// TLS, proxies, and the address of operators.
#[derive(Args)]
#[command(next_help_heading = "TLS, proxies, operators")]
pub(crate) struct FrontArguments {
    /// Certificate chain as a PEM file: everything is then served over TLS, and game servers let browsers in with the same certificate. It is read again
    /// when it changes. Game servers on this machine talk to the master at the next port, without TLS.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key as a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Proxy whose word counts for where a client comes from, by X-Forwarded-For: an address, or a network such as 10.0.0.0/8; can be repeated.
    #[arg(long = "trusted-proxy", value_name = "CIDR")]
    trusted_proxies: Vec<TrustedProxy>,
    /// Connections of trusted proxies begin with a header of PROXY protocol, version 2, and X-Forwarded-For is ignored.
    #[arg(long, requires = "trusted_proxies")]
    proxy_protocol: bool,
    /// Address and port of /metrics and /admin, which are then not where players come; without TLS on a loopback address.
    #[arg(long, value_name = "ADDRESS")]
    operator_listen: Option<SocketAddr>,
}

impl FrontArguments {
    /// Returns how addresses of the master begin.
    pub(crate) fn scheme(&self) -> &'static str {
        match self.tls_cert {
            Some(_) => "https",
            None => "http",
        }
    }

    /// Adds all this to a master's options.
    pub(crate) fn apply(&self, mut config: MasterConfig) -> MasterConfig {
        if let Some((certificates, key)) = self.tls_cert.as_ref().zip(self.tls_key.as_ref()) {
            config = config.tls(certificates, key);
        }
        if let Some(address) = self.operator_listen {
            config = config.operator_listen(address);
        }
        config
            .trusted_proxies(&self.trusted_proxies)
            .proxy_protocol(self.proxy_protocol)
    }
}
