//! A player's identity at a master.

use std::io;
use std::path::Path;

use muse_drivers::MasterCredentials;
use muse_transport::ServerPublicKey;

/// A player's account at a master.
#[derive(Clone, Debug)]
pub struct Account {
    credentials: MasterCredentials,
}

impl Account {
    /// Signs in as a guest whose secret is kept in this file, created on the first run and readable by its owner alone. Anyone who has the file is
    /// the player.
    pub fn guest(path: impl AsRef<Path>) -> io::Result<Self> {
        let key = muse_drivers::load_or_create_key(path)?;
        // The secret is 32 random bytes, written as keys are.
        let text = ServerPublicKey::from_bytes(*key.to_bytes()).to_string();
        Ok(Self::guest_key(&text))
    }

    /// Signs in as a guest with a secret of 16 to 256 characters that the program keeps itself.
    pub fn guest_key(key: &str) -> Self {
        let device_key = key.to_owned();
        Self {
            credentials: MasterCredentials::Guest { device_key },
        }
    }

    /// Signs in with a name and a password.
    pub fn password(name: &str, password: &str) -> Self {
        let (name, password) = (name.to_owned(), password.to_owned());
        Self {
            credentials: MasterCredentials::Password { name, password },
        }
    }

    pub(super) fn into_credentials(self) -> MasterCredentials {
        self.credentials
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_the_same_player_as_long_as_the_file_is_there() -> io::Result<()> {
        let name = format!("muse-guest-{}.key", std::process::id());
        let path = std::env::temp_dir().join(name);
        let key = || match Account::guest(&path)?.into_credentials() {
            MasterCredentials::Guest { device_key } => Ok(device_key),
            other => Err(io::Error::other(format!("{other:?}"))),
        };
        let first = key()?;
        assert_eq!(first.len(), 64);
        assert_eq!(key()?, first);
        std::fs::remove_file(&path)?;
        assert_ne!(key()?, first, "a new file is another player");
        std::fs::remove_file(&path)
    }
}
