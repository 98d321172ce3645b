//! The allocator's REST interface: one call, as `allocation.proto` maps it to JSON.
//!
//! The allocator collects requests for half a second before it answers (its `batchWaitTime`), so every request has a connection to itself while
//! it waits: ten matches at once wait half a second together, not one after the other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::AgonesError;

/// Asks for servers.
pub(super) struct Allocator {
    address: String,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// The outcome of asking.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The server of this name is ours.
    Allocated(String),
    /// No server is free.
    Full,
    /// Others were in the way, or it is not ready.
    Again(String),
}

/// The reason why there is no answer.
#[derive(Debug, Error)]
pub(super) enum CallError {
    #[error("{0}")]
    Http(String),
    #[error("{0}: {1}")]
    Refused(StatusCode, String),
    #[error("no answer in {} s", TIME_MAX.as_secs())]
    Time,
}

/// `AllocationRequest`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    namespace: String,
    game_server_selectors: Vec<Selector>,
    metadata: Metadata,
}

impl Request {
    pub(super) fn new(
        namespace: &str,
        selectors: Vec<Selector>,
        annotations: BTreeMap<String, String>,
    ) -> Self {
        Self {
            namespace: namespace.to_owned(),
            game_server_selectors: selectors,
            metadata: Metadata { annotations },
        }
    }
}

/// `GameServerSelector`: one of the fleet's free servers.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Selector {
    pub(super) match_labels: BTreeMap<String, String>,
    pub(super) game_server_state: State,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) match_expressions: Vec<Expression>,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum State {
    #[default]
    Ready,
}

/// `LabelMatchExpressions`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Expression {
    key: String,
    operator: &'static str,
    values: Vec<String>,
}

impl Expression {
    /// The label has none of these values; nothing if there are none.
    pub(super) fn not_in(key: &str, values: &[String]) -> Option<Self> {
        (!values.is_empty()).then(|| Self {
            key: key.to_owned(),
            operator: "NotIn",
            values: values.to_vec(),
        })
    }
}

/// `MetaPatch`.
#[derive(Clone, Debug, Serialize)]
struct Metadata {
    annotations: BTreeMap<String, String>,
}

/// Of `AllocationResponse`, what is needed: the server says the rest itself.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    game_server_name: String,
}

/// The gateway's answer in case of an error.
#[derive(Debug, Default, Deserialize)]
struct Status {
    #[serde(default)]
    message: String,
}

impl Allocator {
    pub(super) fn new(
        address: &str,
        identity: Option<&(PathBuf, PathBuf)>,
        authority: Option<&Path>,
    ) -> Result<Self, AgonesError> {
        let url = format!("{address}/gameserverallocation");
        if url.parse::<hyper::Uri>().is_err() {
            return Err(AgonesError::Address(address.to_owned()));
        }
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(identity, authority)?)
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self {
            address: url,
            client,
        })
    }

    /// Asks once.
    pub(super) async fn allocate(&self, request: &Request) -> Result<Verdict, CallError> {
        let asked = tokio::time::timeout(TIME_MAX, self.ask(request));
        asked.await.map_err(|_| CallError::Time)?
    }

    async fn ask(&self, request: &Request) -> Result<Verdict, CallError> {
        let failed = |error: &dyn std::error::Error| {
            let cause = error.source().map(ToString::to_string);
            CallError::Http(cause.unwrap_or_else(|| error.to_string()))
        };
        let body = serde_json::to_vec(request).map_err(|error| failed(&error))?;
        let request = hyper::Request::post(&self.address)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| failed(&error))?;
        let response = self
            .client
            .request(request)
            .await
            .map_err(|error| failed(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), BODY_MAX).collect().await;
        let body = body.map_err(|error| CallError::Http(error.to_string()))?;
        verdict(status, &body.to_bytes())
    }
}

/// Tells what an answer means. The gateway gives gRPC's codes as those of HTTP: `RESOURCE_EXHAUSTED` (no free server) as 429, `ABORTED` (others
/// were quicker) as 409, `UNAVAILABLE` as 503.
fn verdict(status: StatusCode, body: &[u8]) -> Result<Verdict, CallError> {
    let message = || serde_json::from_slice::<Status>(body).unwrap_or_default();
    match status {
        StatusCode::OK => {
            let response: Response = serde_json::from_slice(body)
                .map_err(|error| CallError::Http(format!("not an answer: {error}")))?;
            Ok(Verdict::Allocated(response.game_server_name))
        }
        StatusCode::TOO_MANY_REQUESTS => Ok(Verdict::Full),
        StatusCode::CONFLICT | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            Ok(Verdict::Again(message().message))
        }
        other => Err(CallError::Refused(other, message().message)),
    }
}

fn tls(
    identity: Option<&(PathBuf, PathBuf)>,
    authority: Option<&Path>,
) -> Result<ClientConfig, AgonesError> {
    let failed = |file: &Path, why: String| AgonesError::Tls {
        file: file.display().to_string(),
        why,
    };
    let certificates = |file: &Path| {
        CertificateDer::pem_file_iter(file)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| failed(file, error.to_string()))
    };
    let mut roots = RootCertStore::empty();
    if let Some(file) = authority {
        for certificate in certificates(file)? {
            let added = roots.add(certificate);
            added.map_err(|error| failed(file, error.to_string()))?;
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider knows the versions")
        .with_root_certificates(roots);
    let Some((chain, key)) = identity else {
        return Ok(builder.with_no_client_auth());
    };
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| failed(key, error.to_string()))?;
    builder
        .with_client_auth_cert(certificates(chain)?, private)
        .map_err(|error| failed(chain, error.to_string()))
}

/// Time for one answer. A batch takes half a second.
const TIME_MAX: Duration = Duration::from_secs(4);
/// Longest answer.
const BODY_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateways_codes_mean_what_they_mean() {
        let error = |code: u16| {
            let body = br#"{"code":8,"message":"no","details":[]}"#;
            verdict(StatusCode::from_u16(code).expect("a code"), body)
        };
        assert_eq!(error(429).expect("an answer"), Verdict::Full);
        let again = Verdict::Again("no".to_owned());
        assert_eq!(error(409).expect("an answer"), again);
        assert_eq!(error(503).expect("an answer"), again);
        assert!(
            matches!(error(403), Err(CallError::Refused(StatusCode::FORBIDDEN, why)) if why == "no")
        );
        let allocated = verdict(StatusCode::OK, br#"{"gameServerName":"a","ports":[]}"#);
        assert_eq!(
            allocated.expect("an answer"),
            Verdict::Allocated("a".to_owned())
        );
        assert!(verdict(StatusCode::OK, b"{}").is_err());
    }

    #[test]
    fn files_that_are_no_use_are_named() {
        let missing = Path::new("no-such-file.pem");
        let failed = Allocator::new("https://allocator.example", None, Some(missing));
        let failed = failed.err().expect("there is no such file").to_string();
        assert!(failed.starts_with("no-such-file.pem: "), "{failed}");
        assert!(Allocator::new("no address", None, None).is_err());
    }
}
