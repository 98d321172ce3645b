//! The page: one file that loads nothing from elsewhere.
//!
//! Anyone who can reach the page controls the network, so it listens on loopback by default. Pages of other sites cannot use it, because
//! commands need a header that they may not send, and because host names other than `localhost` are refused.

use std::net::{IpAddr, SocketAddr};

use anyhow::Context;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{CACHE_CONTROL, HOST, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;

use super::control::Asker;

/// Serves the page at `address`, in a thread of its own. Returns the bound address.
pub(super) fn serve(address: SocketAddr, asker: Asker) -> anyhow::Result<SocketAddr> {
    let pages = Router::new()
        .route("/", get(async || Html(PAGE)))
        .route("/state", get(state))
        .route("/command", post(command))
        .fallback((StatusCode::NOT_FOUND, "see /\n"))
        .layer(DefaultBodyLimit::max(COMMAND_BYTES_MAX))
        .layer(axum::middleware::from_fn(only_local_names))
        .with_state(asker);
    muse_program::http::serve(address, pages)
        .with_context(|| format!("cannot serve the page at {address}; choose another --page"))
}

async fn state(State(asker): State<Asker>) -> Response {
    match ask(move || asker.state()).await {
        Some(state) => Json(state).into_response(),
        None => ended(),
    }
}

async fn command(State(asker): State<Asker>, headers: HeaderMap, line: String) -> Response {
    if !headers.contains_key("x-muse") {
        let hint = "commands need the header X-Muse: 1\n";
        return (StatusCode::FORBIDDEN, hint).into_response();
    }
    match ask(move || asker.command(line)).await {
        Some(Ok(text)) => Json(json!({ "text": text })).into_response(),
        Some(Err(error)) => {
            (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response()
        }
        None => ended(),
    }
}

/// Waits for the proxy's answer, which comes between two turns of its own thread.
async fn ask<T: Send + 'static>(
    question: impl FnOnce() -> Option<T> + Send + 'static,
) -> Option<T> {
    tokio::task::spawn_blocking(question).await.ok().flatten()
}

fn ended() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the proxy has ended\n").into_response()
}

/// Refuses requests for another host name, and forbids caching and guessing the type of answers.
async fn only_local_names(request: Request, next: Next) -> Response {
    let host = request.headers().get(HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
    let mut response = match is_local_name(host) {
        true => next.run(request).await,
        false => {
            let hint = "open the page by its IP address or as localhost\n";
            (StatusCode::FORBIDDEN, hint).into_response()
        }
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// True for an IP address or `localhost`: other names could be resolved to this machine by somebody else's DNS.
fn is_local_name(host: &str) -> bool {
    if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
        return true;
    }
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    name == "localhost" || name.starts_with('[') && name.ends_with(']')
}

const PAGE: &str = include_str!("page.html");
const COMMAND_BYTES_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_refused() {
        for host in [
            "127.0.0.1:80",
            "localhost:9",
            "localhost",
            "[::1]:9",
            "192.0.2.1",
        ] {
            assert!(is_local_name(host), "{host}");
        }
        for host in [
            "evil.example:80",
            "evil.example",
            "",
            "localhost.evil.example:1",
        ] {
            assert!(!is_local_name(host), "{host}");
        }
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        for part in ["src=", "href=", "http://", "https://", "@import", "url("] {
            let body = PAGE.replace("http://www.w3.org/2000/svg", "");
            assert!(!body.contains(part), "{part}");
        }
    }
}
