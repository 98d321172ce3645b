//! Signing in, and the tokens that come of it.

use std::fmt;
use std::time::{Duration, Instant};

use muse_master_client::api::{
    EnrolRequest, Enrolled, GuestRequest, PasswordRequest, RefreshRequest, SignedIn,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::address::MasterAddress;
use super::stream::{Dialer, Failure};

/// Proof of who connects to a master. `Debug` shows nothing secret.
#[derive(Clone)]
#[non_exhaustive]
pub enum MasterCredentials {
    /// A player without a password, known by a key of 16 to 256 characters that their device keeps.
    Guest {
        /// The key.
        device_key: String,
    },
    /// A player with a name and a password.
    Password {
        /// The name.
        name: String,
        /// The password.
        password: String,
    },
    /// A game server that the master has started.
    Server {
        /// The credential that the master gave it.
        credential: String,
    },
    /// A game server of a cluster, which gets its credential for the fleet's key.
    Fleet {
        /// The fleet's key.
        key: String,
        /// The server's name in the cluster.
        name: String,
        /// The unique id that the cluster gave to the server.
        uid: String,
    },
}

impl MasterCredentials {
    /// The path of the WebSocket.
    pub(super) fn path(&self) -> &'static str {
        match self {
            Self::Guest { .. } | Self::Password { .. } => "/v1/push",
            Self::Server { .. } | Self::Fleet { .. } => "/v1/server",
        }
    }
}

impl fmt::Debug for MasterCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Guest { .. } => "Guest",
            Self::Password { .. } => "Password",
            Self::Server { .. } => "Server",
            Self::Fleet { .. } => "Fleet",
        })
    }
}

/// Credentials and the tokens that they gave.
pub(super) struct Session {
    credentials: MasterCredentials,
    held: Option<Held>,
}

struct Held {
    address: MasterAddress,
    tokens: SignedIn,
    until: Instant,
}

impl Session {
    pub(super) fn new(credentials: MasterCredentials) -> Self {
        Self {
            credentials,
            held: None,
        }
    }

    pub(super) fn path(&self) -> &'static str {
        self.credentials.path()
    }

    /// Signs in for a new connection, and returns the text for its `Authorization: Bearer` header.
    pub(super) async fn sign_in(
        &mut self,
        dialer: &Dialer,
        address: &MasterAddress,
    ) -> Result<String, Failure> {
        let tokens: SignedIn = match &self.credentials {
            MasterCredentials::Server { credential } => return Ok(credential.clone()),
            MasterCredentials::Fleet { key, name, uid } => {
                let (name, uid) = (name.clone(), uid.clone());
                let body = EnrolRequest { name, uid };
                let path = "/v1/server/enrol";
                let enrolled: Enrolled = post(dialer, address, path, Some(key), &body).await?;
                return Ok(enrolled.credential);
            }
            MasterCredentials::Guest { device_key } => {
                let device_key = device_key.clone();
                let body = GuestRequest { device_key };
                post(dialer, address, "/v1/guest", None, &body).await?
            }
            // A password costs the master a tenth of a second; the tokens of the last connection may still do.
            MasterCredentials::Password { name, password } => {
                let held = self.held.take();
                if let Some(held) = held.filter(|held| held.address == *address)
                    && let Ok(tokens) = refresh(dialer, address, held.tokens).await
                {
                    tokens
                } else {
                    let (name, password) = (name.clone(), password.clone());
                    let body = PasswordRequest { name, password };
                    post(dialer, address, "/v1/sign-in", None, &body).await?
                }
            }
        };
        Ok(self.hold(address, tokens))
    }

    /// Returns a token for a call over HTTP: the one that is held, or a fresh one if that is about to expire.
    pub(super) async fn bearer(
        &mut self,
        dialer: &Dialer,
        address: &MasterAddress,
    ) -> Result<String, Failure> {
        let is_valid = |held: &&Held| held.address == *address && held.until > Instant::now();
        if let Some(held) = self.held.as_ref().filter(is_valid) {
            return Ok(held.tokens.access_token.clone());
        }
        if let Some(held) = self.held.take()
            && let Ok(tokens) = refresh(dialer, address, held.tokens).await
        {
            return Ok(self.hold(address, tokens));
        }
        self.sign_in(dialer, address).await
    }

    fn hold(&mut self, address: &MasterAddress, tokens: SignedIn) -> String {
        let access = tokens.access_token.clone();
        let life = Duration::from_secs(tokens.expires_s).saturating_sub(MARGIN);
        self.held = Some(Held {
            address: address.clone(),
            until: Instant::now() + life,
            tokens,
        });
        access
    }
}

async fn refresh(
    dialer: &Dialer,
    address: &MasterAddress,
    tokens: SignedIn,
) -> Result<SignedIn, Failure> {
    let refresh_token = tokens.refresh_token;
    let body = RefreshRequest { refresh_token };
    post(dialer, address, "/v1/refresh", None, &body).await
}

async fn post<T: DeserializeOwned>(
    dialer: &Dialer,
    address: &MasterAddress,
    path: &str,
    bearer: Option<&str>,
    body: &impl Serialize,
) -> Result<T, Failure> {
    let body = serde_json::to_string(body)?;
    let answer = dialer
        .call(address, "POST", path, bearer, Some(body))
        .await?;
    Ok(serde_json::from_str(&answer?)?)
}

/// A token that expires within this time is replaced.
const MARGIN: Duration = Duration::from_secs(30);
