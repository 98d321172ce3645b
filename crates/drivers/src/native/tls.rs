//! The certificate of a server that speaks TLS, from two files that may be replaced while it runs.
//!
//! A certificate lives for weeks, a server with matches for longer. So the files are looked at every two seconds, and connections that begin from then
//! on get what is in them; those that are open keep what they have. Their bytes are compared, not their times: whoever renews certificates may keep
//! times, swap links or mount another volume. Files that are half-written, or whose key does not fit, change nothing.

use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

/// The certificate of a server, from PEM files. A clone is the same certificate.
///
/// ```no_run
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// use muse_drivers::TlsCertificate;
///
/// let certificate = TlsCertificate::from_files("chain.pem", "key.pem")?;
/// let acceptor = certificate.acceptor(&[b"http/1.1"]);
/// // Connections that `acceptor` takes have the certificate that the files hold by then.
/// tokio::spawn(certificate.watch());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TlsCertificate(Arc<Shared>);

/// The reason why a file holds no certificate, or no key for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateError {
    /// The file.
    pub file: PathBuf,
    /// The cause.
    pub why: String,
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.why)
    }
}

impl std::error::Error for CertificateError {}

impl TlsCertificate {
    /// Reads a certificate chain, the server's own first, and its private key.
    ///
    /// # Errors
    /// A file cannot be read, is longer than a megabyte or has nothing of this kind in it, or the key is another certificate's.
    pub fn from_files(
        chain: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Result<Self, CertificateError> {
        let provider = Arc::new(ring::default_provider());
        let files = Files {
            chain: chain.into(),
            key: key.into(),
        };
        let content = files.read()?;
        let current = content.parse(&files, &provider)?;
        let hasher = RandomState::new();
        let looks = Looks {
            used: hasher.hash_one(&content),
            complaint: None,
        };
        Ok(Self(Arc::new(Shared {
            provider,
            files,
            hasher,
            current: RwLock::new(Arc::new(current)),
            looks: Mutex::new(looks),
        })))
    }

    /// Returns what accepts connections of TLS 1.2 and 1.3 with it, each with the certificate of that moment, and agrees to one of these protocols
    /// (ALPN) with clients that name some.
    pub fn acceptor(&self, protocols: &[&[u8]]) -> TlsAcceptor {
        let provider = Arc::clone(&self.0.provider);
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has both versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.0) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }

    /// Looks at the files every two seconds, for ever. Needs a tokio runtime with time.
    pub async fn watch(self) {
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            look.tick().await;
            let this = self.clone();
            if tokio::task::spawn_blocking(move || this.look())
                .await
                .is_err()
            {
                return;
            }
        }
    }

    /// Reads the files once more. True if they hold another certificate than before, which is used from now on. Anything wrong with them is logged, once.
    pub fn look(&self) -> bool {
        let shared = &self.0;
        let mut looks = shared.looks.lock().unwrap_or_else(PoisonError::into_inner);
        match shared.read_changed(looks.used) {
            Ok(None) => {
                looks.complaint = None;
                false
            }
            Ok(Some((used, certified))) => {
                *shared
                    .current
                    .write()
                    .unwrap_or_else(PoisonError::into_inner) = Arc::new(certified);
                *looks = Looks {
                    used,
                    complaint: None,
                };
                tracing::info!(file = %shared.files.chain.display(), "the certificate was replaced");
                true
            }
            Err(error) => {
                if looks.complains(&error) {
                    tracing::error!("the certificate stays as it was: {error}");
                }
                false
            }
        }
    }
}

#[derive(Debug)]
struct Shared {
    provider: Arc<CryptoProvider>,
    files: Files,
    /// Tells contents apart without keeping another copy of the key.
    hasher: RandomState,
    current: RwLock<Arc<CertifiedKey>>,
    looks: Mutex<Looks>,
}

impl Shared {
    /// Reads the files. None if they are those that are used.
    fn read_changed(&self, used: u64) -> Result<Option<(u64, CertifiedKey)>, CertificateError> {
        let content = self.files.read()?;
        let found = self.hasher.hash_one(&content);
        if found == used {
            return Ok(None);
        }
        let certified = content.parse(&self.files, &self.provider)?;
        Ok(Some((found, certified)))
    }
}

impl ResolvesServerCert for Shared {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&current))
    }
}

/// The two files.
#[derive(Debug)]
struct Files {
    chain: PathBuf,
    key: PathBuf,
}

impl Files {
    fn read(&self) -> Result<Content, CertificateError> {
        Ok(Content {
            chain: read(&self.chain)?,
            key: read(&self.key)?,
        })
    }
}

/// The bytes of both files.
#[derive(Hash)]
struct Content {
    chain: Vec<u8>,
    key: Vec<u8>,
}

impl Content {
    /// The certificate, if both belong together.
    fn parse(
        &self,
        files: &Files,
        provider: &CryptoProvider,
    ) -> Result<CertifiedKey, CertificateError> {
        let chain = CertificateDer::pem_slice_iter(&self.chain)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| failed(&files.chain, &error))?;
        if chain.is_empty() {
            return Err(failed(&files.chain, &"there is no certificate in it"));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key);
        let key = key.map_err(|error| failed(&files.key, &error))?;
        CertifiedKey::from_der(chain, key, provider).map_err(|error| failed(&files.chain, &error))
    }
}

/// The history of looks at the files.
#[derive(Debug)]
struct Looks {
    /// A hash of the content that is used.
    used: u64,
    /// The last thing that was wrong, and true if it was logged.
    complaint: Option<(CertificateError, bool)>,
}

impl Looks {
    /// True if this is to be logged: the second time in a row, because between the writing of one file and of the other they never fit, and once.
    fn complains(&mut self, error: &CertificateError) -> bool {
        match &mut self.complaint {
            Some((known, logged)) if known == error => !std::mem::replace(logged, true),
            other => {
                *other = Some((error.clone(), false));
                false
            }
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>, CertificateError> {
    let told = |error: std::io::Error| failed(file, &error);
    let mut bytes = Vec::new();
    let open = File::open(file).map_err(told)?;
    open.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(told)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(failed(file, &"longer than a megabyte"));
    }
    Ok(bytes)
}

fn failed(file: &Path, why: &dyn fmt::Display) -> CertificateError {
    CertificateError {
        file: file.to_owned(),
        why: why.to_string(),
    }
}

const LOOK_EVERY: Duration = Duration::from_secs(2);
const FILE_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str) -> Vec<u8> {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("made");
        std::fs::write(folder.join("chain"), made.cert.pem()).expect("written");
        std::fs::write(folder.join("key"), made.signing_key.serialize_pem()).expect("written");
        made.cert.der().to_vec()
    }

    fn used(certificate: &TlsCertificate) -> Vec<u8> {
        let current = certificate.0.current.read().expect("nobody panicked");
        current.cert[0].to_vec()
    }

    #[test]
    fn files_that_change_are_used_and_wrong_ones_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let (chain, key) = (folder.path().join("chain"), folder.path().join("key"));
        let first = write(folder.path(), "one.example");
        let certificate = TlsCertificate::from_files(&chain, &key).expect("a certificate");
        assert!(!certificate.look(), "nothing has changed");
        let second = write(folder.path(), "two.example");
        let (whole, fitting) = (read(&chain).expect("there"), read(&key).expect("there"));
        let _ = write(folder.path(), "three.example");
        let foreign = read(&key).expect("there");
        std::fs::write(&chain, &whole).expect("written");
        for (wrong_chain, wrong_key) in [
            (&whole, &foreign),
            (&whole[..whole.len() / 2].to_vec(), &fitting),
            (&Vec::new(), &fitting),
            (&whole, &fitting[..20].to_vec()),
            (&whole, &vec![b'a'; 2 << 20]),
        ] {
            std::fs::write(&chain, wrong_chain).expect("written");
            std::fs::write(&key, wrong_key).expect("written");
            for _ in 0..3 {
                assert!(!certificate.look());
            }
            assert_eq!(used(&certificate), first);
        }
        std::fs::remove_file(&key).expect("removed");
        assert!(!certificate.look());
        std::fs::write(&chain, &whole).expect("written");
        std::fs::write(&key, &fitting).expect("written");
        assert!(certificate.look(), "both are there again, and fit");
        assert_eq!(used(&certificate), second);
    }

    #[test]
    fn what_is_wrong_is_said_once_and_not_while_files_are_written() {
        let error = |why: &str| failed(Path::new("chain.pem"), &why);
        let mut looks = Looks {
            used: 0,
            complaint: None,
        };
        let said = ["half", "other", "other", "other", "half", "half", "half"];
        let said = said.map(|why| looks.complains(&error(why)));
        assert_eq!(said, [false, false, true, false, false, true, false]);
    }
}
