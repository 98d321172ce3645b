//! TLS by rustls, for a master without a proxy in front of it.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::server::StartError;

/// Reads a certificate chain and its key.
pub(crate) fn acceptor(chain: &Path, key: &Path) -> Result<TlsAcceptor, StartError> {
    let certificates = certificates(chain)?;
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| failed(key, error.to_string()))?;
    let provider = Arc::new(ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(certificates, private)
        })
        .map_err(|error| failed(chain, error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Checks that a file holds the certificate of an authority.
#[cfg(feature = "nats")]
pub(crate) fn check_authorities(file: &Path) -> Result<(), StartError> {
    let mut roots = tokio_rustls::rustls::RootCertStore::empty();
    for certificate in certificates(file)? {
        let added = roots.add(certificate);
        added.map_err(|error| failed(file, error.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(failed(file, "there is no certificate in it".to_owned())),
        false => Ok(()),
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, StartError> {
    CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| failed(file, error.to_string()))
}

fn failed(file: &Path, why: String) -> StartError {
    StartError::Tls {
        file: file.display().to_string(),
        why,
    }
}
