//! The file of the key that clients know a server by: small, and only its owner may read it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use muse_transport::{ServerKey, ServerPublicKey};

use super::private::{open_private, refuse_if_others_can_read};
use crate::SystemEntropy;

/// Reads a server's key from `path`, or makes one and writes it there if there is no such file.
///
/// The file holds 64 hexadecimal digits and is made readable by its owner alone; one that others can read is refused. What
/// clients need is the public key: `key.public()` prints as text and parses from it.
///
/// ```
/// use muse_drivers::load_or_create_key;
/// let path = std::env::temp_dir().join(format!("muse-doc-{}.key", std::process::id()));
/// let key = load_or_create_key(&path)?;
/// println!("connect with key {}", key.public());
/// assert_eq!(load_or_create_key(&path)?.public(), key.public());
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn load_or_create_key(path: impl AsRef<Path>) -> io::Result<ServerKey> {
    let path = path.as_ref();
    match File::open(path) {
        Ok(file) => load(file, path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(path),
        Err(error) => Err(explain(path, &error)),
    }
}

/// A new key that is kept nowhere: clients must be told the public key of every run.
pub fn new_key() -> io::Result<ServerKey> {
    Ok(ServerKey::generate(&mut SystemEntropy::new()?))
}

fn load(file: File, path: &Path) -> io::Result<ServerKey> {
    refuse_if_others_can_read(&file, path).map_err(|error| explain(path, &error))?;
    let mut text = String::new();
    // One byte more than a key and a line end, so that a longer file is recognised.
    file.take(TEXT_LEN + 3)
        .read_to_string(&mut text)
        .map_err(|error| explain(path, &error))?;
    // A private key is written as a public one is: 32 bytes in hexadecimal.
    let bytes: ServerPublicKey = text.trim_ascii_end().parse().map_err(|_| {
        let message = format!(
            "{}: not a server key; it should be {TEXT_LEN} hexadecimal digits",
            path.display()
        );
        io::Error::new(io::ErrorKind::InvalidData, message)
    })?;
    Ok(ServerKey::from_bytes(*bytes.as_bytes()))
}

fn create(path: &Path) -> io::Result<ServerKey> {
    let key = new_key()?;
    let mut options = open_private();
    // Never over a file that somebody else made meanwhile.
    options.write(true).create_new(true);
    let text = format!("{}\n", ServerPublicKey::from_bytes(*key.to_bytes()));
    let written = options.open(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| explain(path, &error))?;
    Ok(key)
}

fn explain(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Digits of a key.
const TEXT_LEN: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    struct Scratch(std::path::PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("muse-{name}-{}.key", std::process::id())))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_key_is_made_once_and_found_again() -> io::Result<()> {
        let file = Scratch::new("made-once");
        let key = load_or_create_key(&file.0)?;
        assert_eq!(load_or_create_key(&file.0)?.public(), key.public());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(
                std::fs::metadata(&file.0)?.permissions().mode() & 0o777,
                0o600
            );
            std::fs::set_permissions(&file.0, std::fs::Permissions::from_mode(0o644))?;
            let error = load_or_create_key(&file.0).expect_err("everybody can read it");
            assert!(error.to_string().contains("chmod 600"), "{error}");
        }
        Ok(())
    }

    #[test]
    fn what_is_no_key_is_left_alone() -> io::Result<()> {
        for (name, text) in [("short", "abc"), ("long", &"a".repeat(67)), ("empty", "")] {
            let file = Scratch::new(name);
            load_or_create_key(&file.0)?;
            std::fs::write(&file.0, text)?;
            let error = load_or_create_key(&file.0).expect_err("no key");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert_eq!(std::fs::read_to_string(&file.0)?, text);
        }
        Ok(())
    }
}
