//! The place of rooms in a build without the feature `relay`: there are none, and no text is an invitation.

#[cfg(not(target_arch = "wasm32"))]
use muse_drivers::{ClientDriver, EndpointDriver};
use muse_transport::ServerPublicKey;
#[cfg(not(target_arch = "wasm32"))]
use muse_transport::{Config, Connect};

#[cfg(not(target_arch = "wasm32"))]
use crate::Result;

/// An invitation that cannot exist.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Invitation {}

/// No room.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Default)]
pub(super) struct Room;

#[cfg(not(target_arch = "wasm32"))]
impl Room {
    pub(super) fn open(
        self,
        _: &mut EndpointDriver,
        _: ServerPublicKey,
    ) -> Result<Option<OpenRoom>> {
        Ok(None)
    }
}

/// An open room that cannot exist.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OpenRoom {}

impl OpenRoom {
    pub(crate) fn line(&self) -> String {
        match *self {}
    }
}

pub(super) fn invitation(_: &str) -> Option<Invitation> {
    None
}

pub(super) fn host_key(invitation: &Invitation) -> ServerPublicKey {
    match *invitation {}
}

#[cfg(not(target_arch = "wasm32"))]
pub(super) fn join(
    invitation: &Invitation,
    _: bool,
    _: Config,
    _: Connect,
) -> Result<ClientDriver> {
    match *invitation {}
}
