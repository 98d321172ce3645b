//! Secrets at rest: what the store keeps of them is sealed with a key that is not in the store, so that a copy of the database alone signs nothing.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use thiserror::Error;

use crate::clock;
use crate::key_ring::{KeyRing, KeyTerms};
use crate::secrets::{Keys, hex, random_text, unhex};
use crate::store::{Store, StoreError};

/// The place of the key that seals a master's secrets.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum SealingKeySource {
    /// Beside the file of the database.
    Beside,
    /// This file, made if there is none.
    File(PathBuf),
    /// These 64 hexadecimal digits.
    Text(String),
}

impl std::fmt::Debug for SealingKeySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Beside => "Beside",
            Self::File(_) => "File",
            Self::Text(_) => "Text",
        })
    }
}

/// The reason why secrets cannot be sealed or opened.
#[derive(Debug, Error)]
pub(crate) enum SealingError {
    /// With PostgreSQL there is no place for it.
    #[error(
        "masters with PostgreSQL need the key that seals their secrets: name a file with --secret-key-file, the same at each master, or set MUSE_SECRET_KEY to 64 hexadecimal digits"
    )]
    NoKey,
    /// The file cannot be read or made.
    #[error("the key that seals secrets, {file}: {why}")]
    File {
        /// The file.
        file: String,
        /// The cause.
        why: String,
    },
    /// The key is not one.
    #[error("the key that seals secrets has 64 hexadecimal digits")]
    NotAKey,
    /// The database's secrets were sealed with another key.
    #[error(
        "the secrets of the database are sealed with another key: use the file or MUSE_SECRET_KEY of the master that made them"
    )]
    AnotherKey,
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The secrets of a store.
pub(crate) struct SealedSecrets {
    store: Arc<dyn Store>,
    key: LessSafeKey,
}

impl SealedSecrets {
    /// Secrets in `store`, whose file is `database` if it has one.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        source: &SealingKeySource,
        database: Option<&Path>,
    ) -> Result<Self, SealingError> {
        let text = match (source, database) {
            (SealingKeySource::Text(text), _) => text.clone(),
            (SealingKeySource::File(file), _) => read_or_make(file)?,
            (SealingKeySource::Beside, Some(database)) => {
                let mut file = database.as_os_str().to_owned();
                file.push(".key");
                read_or_make(Path::new(&file))?
            }
            (SealingKeySource::Beside, None) => return Err(SealingError::NoKey),
        };
        let bytes = unhex(text.trim()).filter(|bytes| bytes.len() == 32);
        let bytes = bytes.ok_or(SealingError::NotAKey)?;
        let key = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| SealingError::NotAKey)?;
        Ok(Self {
            store,
            key: LessSafeKey::new(key),
        })
    }

    /// The keys of this name, kept up to now. The first one of a new ring is the secret `first`, which versions without a ring signed with.
    pub(crate) async fn ring(
        &self,
        name: &'static str,
        first: &'static str,
        terms: KeyTerms,
        now_s: u64,
    ) -> Result<KeyRing, SealingError> {
        let (first, _) = self.secret(first, random_text()).await?;
        let (text, stored) = self.secret(name, KeyRing::new(first).to_text()).await?;
        let ring = KeyRing::parse(&text).ok_or_else(damaged)?;
        let wanted = ring.kept_up(terms, now_s, random_text);
        if wanted == ring {
            return Ok(ring);
        }
        // Another master may have been quicker; then its ring holds.
        let fresh = self.seal(name, &wanted.to_text());
        let stored = self.store.exchange_secret(name, stored, fresh).await?;
        let text = self.open(name, &stored)?.ok_or_else(damaged)?;
        KeyRing::parse(&text).ok_or_else(|| damaged().into())
    }

    /// A secret of 32 bytes in hexadecimal that all masters share and that does not change.
    pub(crate) async fn lasting(&self, name: &'static str) -> Result<String, SealingError> {
        Ok(self.secret(name, random_text()).await?.0)
    }

    /// Keeps up what masters sign for themselves.
    pub(crate) async fn keep_masters(
        &self,
        keys: &Keys,
        terms: KeyTerms,
    ) -> Result<(), SealingError> {
        let now_s = clock::now().as_micros() / 1_000_000;
        let ring = self.ring(MASTER_KEYS, "masters", terms, now_s).await?;
        keys.replace(&ring.seeds(now_s));
        Ok(())
    }

    /// A secret, made by the first one that asks, and the text that is stored of it. One from before secrets were sealed is sealed now.
    async fn secret(
        &self,
        name: &'static str,
        fresh: String,
    ) -> Result<(String, String), SealingError> {
        let stored = self.store.secret(name, self.seal(name, &fresh)).await?;
        if let Some(text) = self.open(name, &stored)? {
            return Ok((text, stored));
        }
        let sealed = self.seal(name, &stored);
        let stored = self.store.exchange_secret(name, stored, sealed).await?;
        let text = self.open(name, &stored)?.ok_or_else(damaged)?;
        Ok((text, stored))
    }

    fn seal(&self, name: &str, text: &str) -> String {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).expect("the system has randomness");
        let mut sealed = text.as_bytes().to_vec();
        let with = Nonce::assume_unique_for_key(nonce);
        let done = self
            .key
            .seal_in_place_append_tag(with, Aad::from(name), &mut sealed);
        done.expect("a secret is short");
        format!("{SEALED}{}{}", hex(&nonce), hex(&sealed))
    }

    /// Opens what is stored; none if it was never sealed.
    fn open(&self, name: &str, stored: &str) -> Result<Option<String>, SealingError> {
        let Some(sealed) = stored.strip_prefix(SEALED) else {
            return Ok(None);
        };
        let mut bytes = unhex(sealed).ok_or(SealingError::AnotherKey)?;
        let (nonce, sealed) = bytes
            .split_first_chunk_mut::<NONCE_LEN>()
            .ok_or(SealingError::AnotherKey)?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.key.open_in_place(nonce, Aad::from(name), sealed);
        let opened = opened.map_err(|_| SealingError::AnotherKey)?;
        let text = String::from_utf8(opened.to_vec()).map_err(|_| damaged())?;
        Ok(Some(text))
    }
}

fn damaged() -> StoreError {
    StoreError::Unavailable("a secret is damaged".to_owned())
}

/// Reads a key from a file, or makes one there that nobody else may read.
fn read_or_make(file: &Path) -> Result<String, SealingError> {
    let failed = |error: std::io::Error| SealingError::File {
        file: file.display().to_string(),
        why: error.to_string(),
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(file) {
        Ok(mut made) => {
            let key = random_text();
            made.write_all(key.as_bytes()).map_err(failed)?;
            // A key that is lost with the machine's power would leave secrets that nobody can open.
            made.sync_all().map_err(failed)?;
            Ok(key)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let mut text = String::new();
            let opened = File::open(file).map_err(failed)?;
            let read = opened.take(KEY_FILE_MAX).read_to_string(&mut text);
            read.map_err(failed)?;
            Ok(text)
        }
        Err(error) => Err(failed(error)),
    }
}

/// The name under which the keys of what masters sign for themselves are kept.
const MASTER_KEYS: &str = "master_keys";
/// The beginning of what is sealed, as the store keeps it.
const SEALED: &str = "sealed:1:";
/// Bytes of a file that are read for a key.
const KEY_FILE_MAX: u64 = 1_024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::SqlStore;

    fn store(folder: &Path) -> Arc<dyn Store> {
        Arc::new(SqlStore::sqlite(&folder.join("muse.db")).expect("opened"))
    }

    fn secrets(folder: &Path, key: &str) -> SealedSecrets {
        let source = SealingKeySource::File(folder.join(key));
        SealedSecrets::new(store(folder), &source, None).expect("a key")
    }

    const TERMS: KeyTerms = KeyTerms::CONNECT_TOKENS;

    #[tokio::test]
    async fn nothing_in_the_database_tells_a_secret_and_another_key_opens_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let secrets = secrets(folder.path(), "key");
        let ring = secrets
            .ring("ring", "first", TERMS, 1_000)
            .await
            .expect("made");
        let again = secrets.ring("ring", "first", TERMS, 2_000).await;
        assert_eq!(again.expect("known").to_text(), ring.to_text());
        let beside = rusqlite::Connection::open(folder.path().join("muse.db")).expect("opened");
        let mut statement = beside
            .prepare("SELECT value FROM secrets")
            .expect("a table");
        let stored = statement.query_map([], |row| row.get::<_, String>(0));
        let stored: Vec<String> = stored
            .expect("read")
            .collect::<Result<_, _>>()
            .expect("read");
        assert_eq!(stored.len(), 2);
        for seed in ring.seeds(1_000) {
            assert!(
                stored.iter().all(|stored| !stored.contains(seed)),
                "{stored:?}"
            );
        }
        let other = super::tests::secrets(folder.path(), "another key");
        let refused = other.ring("ring", "first", TERMS, 1_000).await;
        assert!(matches!(refused, Err(SealingError::AnotherKey)));
        // Nor is one secret taken for another.
        let moved = secrets.open("first", &secrets.seal("ring", "text"));
        assert!(matches!(moved, Err(SealingError::AnotherKey)));
    }

    #[tokio::test]
    async fn secrets_from_before_are_sealed_and_go_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let plain = hex(&[7; 32]);
        store(folder.path())
            .secret("first", plain.clone())
            .await
            .expect("stored");
        let secrets = secrets(folder.path(), "key");
        let ring = secrets
            .ring("ring", "first", TERMS, 1_000)
            .await
            .expect("made");
        assert_eq!(ring.seeds(1_000)[0], plain);
        let stored = store(folder.path()).secret("first", String::new()).await;
        assert!(stored.expect("read").starts_with(SEALED));
    }

    #[test]
    fn a_key_is_made_once_beside_the_database_for_its_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, database) = (store(folder.path()), folder.path().join("muse.db"));
        let make =
            |database| SealedSecrets::new(Arc::clone(&store), &SealingKeySource::Beside, database);
        let first = make(Some(&database)).expect("made");
        let file = folder.path().join("muse.db.key");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = file.metadata().expect("made").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let second = make(Some(&database)).expect("read");
        let sealed = first.seal("a", "text");
        assert_eq!(
            second.open("a", &sealed).expect("opened").as_deref(),
            Some("text")
        );
        assert!(matches!(make(None), Err(SealingError::NoKey)));
        std::fs::write(&file, "no key").expect("written");
        assert!(matches!(make(Some(&database)), Err(SealingError::NotAKey)));
    }
}
