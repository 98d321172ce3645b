//! `muse health`: asks a server whether it is well, for containers, whose health checks have no other program than this.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use axum::body::Body;
use axum::http::header::HOST;
use axum::http::{Request, StatusCode, Uri};
use clap::Args;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// The page to ask for, and the patience.
#[derive(Args)]
#[command(
    after_help = "Example: muse health --url http://127.0.0.1:8080/ready\n\n\
/health of a master says that it runs, /ready that it takes players; a relay has /metrics if it was told to.\nExit code 1: no answer, or one that is not a success."
)]
pub(crate) struct Arguments {
    /// The page to ask for, with http://. Containers can have it in MUSE_HEALTH_URL.
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:7777/ready"
    )]
    url: Uri,
    /// Longest wait for the answer.
    #[arg(long, value_name = "MS", default_value_t = 2_000)]
    timeout_ms: u64,
}

/// Asks, and succeeds if the server does.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let patience = Duration::from_millis(arguments.timeout_ms);
    let answer = async { tokio::time::timeout(patience, ask(&arguments.url)).await };
    let status = runtime
        .block_on(answer)
        .with_context(|| format!("no answer in {} ms", arguments.timeout_ms))??;
    if !status.is_success() {
        bail!("{}: {status}", arguments.url);
    }
    Ok(ExitCode::SUCCESS)
}

async fn ask(url: &Uri) -> anyhow::Result<StatusCode> {
    if url.scheme_str() != Some("http") {
        bail!("{url} does not begin with http://");
    }
    let authority = url.authority().context("the URL names no server")?;
    // An IPv6 address stands in brackets in a URL alone.
    let host = authority.host().trim_matches(['[', ']']);
    let stream = TcpStream::connect((host, authority.port_u16().unwrap_or(80)))
        .await
        .with_context(|| format!("cannot connect to {authority}"))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::get(path).header(HOST, authority.as_str());
    let answer = sender.send_request(request.body(Body::empty())?).await;
    connection.abort();
    Ok(answer.context("the connection was closed")?.status())
}
