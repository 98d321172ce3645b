//! Certificates from files.

use muse_drivers::CertificateError;

use crate::server::StartError;

impl From<CertificateError> for StartError {
    fn from(error: CertificateError) -> Self {
        Self::Tls {
            file: error.file.display().to_string(),
            why: error.why,
        }
    }
}

/// Checks that a file holds the certificate of an authority.
#[cfg(feature = "nats")]
pub(crate) fn check_authorities(file: &std::path::Path) -> Result<(), StartError> {
    use tokio_rustls::rustls::RootCertStore;
    use tokio_rustls::rustls::pki_types::CertificateDer;
    use tokio_rustls::rustls::pki_types::pem::PemObject;

    let failed = |why: String| StartError::Tls {
        file: file.display().to_string(),
        why,
    };
    let mut roots = RootCertStore::empty();
    let found = CertificateDer::pem_file_iter(file).map_err(|error| failed(error.to_string()))?;
    for certificate in found {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        let added = roots.add(certificate);
        added.map_err(|error| failed(error.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(failed("there is no certificate in it".to_owned())),
        false => Ok(()),
    }
}
