//! The file that the secrets of connections are written to for an analyser: only its owner may read it.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use muse_wire::log;

use super::private::{open_private, refuse_if_others_can_read};

/// Takes the lines of a key log.
pub type KeyLog = Arc<dyn Fn(&str) + Send + Sync>;

/// Opens a file to which [`Endpoint::danger_key_log`](muse_transport::Endpoint::danger_key_log) appends the secrets of connections.
///
/// Anyone who has the file can read and forge everything. It is made readable by its owner alone; one that others can read is
/// refused.
///
/// ```
/// use muse_drivers::danger_key_log_file;
/// # use muse_transport::{ChannelConfig, Config, Delivery, Endpoint, SeededEntropy};
/// # let config = Config::new(7).channel(ChannelConfig::new(Delivery::Unreliable)).build().expect("a valid config");
/// # let mut endpoint = Endpoint::new(config, SeededEntropy::danger_seeded(1));
/// let path = std::env::temp_dir().join(format!("muse-doc-{}.keys", std::process::id()));
/// endpoint.danger_key_log(danger_key_log_file(&path)?);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn danger_key_log_file(path: impl AsRef<Path>) -> io::Result<KeyLog> {
    let path = path.as_ref();
    let file = open(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    let file = Mutex::new(file);
    Ok(Arc::new(move |line| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be written must not end the connection.
        if let Err(_error) = writeln!(file, "{line}") {
            log!(warn, error = %_error, "the key log cannot be written");
        }
    }))
}

fn open(path: &Path) -> io::Result<File> {
    let file = open_private().append(true).create(true).open(path)?;
    refuse_if_others_can_read(&file, path)?;
    Ok(file)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> io::Result<u32> {
        Ok(std::fs::metadata(path)?.permissions().mode() & 0o777)
    }

    #[test]
    fn secrets_are_written_where_only_their_owner_reads_them() -> io::Result<()> {
        let path = std::env::temp_dir().join(format!("muse-log-{}.keys", std::process::id()));
        for line in ["first", "second"] {
            danger_key_log_file(&path)?(line);
            assert_eq!(mode(&path)?, 0o600);
        }
        assert_eq!(std::fs::read_to_string(&path)?, "first\nsecond\n");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644))?;
        let error = danger_key_log_file(&path).err();
        let error = error.expect("everybody can read it");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(error.to_string().contains("chmod 600"), "{error}");
        std::fs::remove_file(&path)
    }
}
