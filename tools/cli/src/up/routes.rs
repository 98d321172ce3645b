//! The files that the master serves besides its own routes: those of the page, and recorded matches for the page's *Watch*.
//!
//! A content security policy goes with them: scripts and styles come from this server's files alone, nothing is inline, and the page speaks with
//! this machine only.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tower_http::services::{ServeDir, ServeFile};

use super::page::Page;

/// Serves the page, and the recordings in another: `/replays` lists them, `/replays/NAME` is one. Game servers are
/// at `host`.
pub(super) fn routes(page: Option<Page>, replays: PathBuf, host: &str) -> Router {
    let mut routes = Router::new()
        .route("/replays", get(list))
        .route("/replays/{name}", get(replay))
        .with_state(Arc::new(replays));
    routes = match page {
        Some(Page::Inside(files)) => routes.merge(files.routes()),
        Some(Page::Directory(directory)) => {
            let files = ServeDir::new(directory)
                .precompressed_br()
                .precompressed_gzip();
            routes
                .route_service("/", files.clone())
                .route_service("/{*path}", files)
        }
        None => routes,
    };
    let policy = HeaderValue::try_from(policy(host));
    // A name that cannot stand in a header is no name of a machine.
    let policy = policy.unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"));
    routes.layer(from_fn(move |request, next| {
        finish(policy.clone(), request, next)
    }))
}

/// Returns what the page may load and whom it may speak with: this server, and game servers at `host` whatever their ports, over
/// WebTransport (`https:`) and WebSocket after a question over HTTP.
fn policy(host: &str) -> String {
    let ip = host.parse::<IpAddr>();
    let servers = match ip {
        // A policy names no IP address but this one.
        Ok(ip) if ip != IpAddr::V4(Ipv4Addr::LOCALHOST) => "http: https: ws: wss:".to_owned(),
        _ => ["http", "https", "ws", "wss"]
            .map(|scheme| format!("{scheme}://{host}:*"))
            .join(" "),
    };
    format!(
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; \
         img-src 'self' data: blob:; font-src 'self'; media-src 'self' blob:; connect-src 'self' {servers}; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// Hides files whose names begin with a dot, and says what a browser may do with the others and for how long it may keep them.
async fn finish(policy: HeaderValue, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    // The names of assets change with their content.
    let lasting = path.starts_with("/assets/");
    let mut response = match path.contains("/.") {
        true => StatusCode::NOT_FOUND.into_response(),
        false => next.run(request).await,
    };
    let cache = match lasting && response.status().is_success() {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

async fn replay(
    State(directory): State<Arc<PathBuf>>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    if !is_name(&name) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let file = ServeFile::new(directory.join(name)).try_call(request).await;
    file.map_or_else(
        |_| StatusCode::NOT_FOUND.into_response(),
        IntoResponse::into_response,
    )
}

async fn list(State(directory): State<Arc<PathBuf>>) -> Json<Vec<String>> {
    let names = tokio::task::spawn_blocking(move || names(&directory)).await;
    Json(names.unwrap_or_default())
}

/// The names of recordings, the newest first.
fn names(directory: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let changed = entry.metadata().ok()?.modified().ok()?;
            is_name(&name).then_some((changed, name))
        })
        .collect();
    found.sort();
    let newest = found.into_iter().rev().take(NAMES_MAX);
    newest.map(|(_, name)| name).collect()
}

/// True if this can be a recording's name: no path leads out of the directory.
fn is_name(name: &str) -> bool {
    let stem = name.strip_suffix(ENDING);
    let letter = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'-';
    stem.is_some_and(|stem| !stem.is_empty() && stem.bytes().all(letter))
}

/// The ending of recordings' names.
const ENDING: &str = ".muserply";
const NAMES_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_runs_nothing_inline_and_speaks_with_its_host_alone() {
        for (host, allowed) in [
            ("127.0.0.1", "ws://127.0.0.1:* wss://127.0.0.1:*;"),
            ("game.example", "https://game.example:* ws://game.example:*"),
            ("192.0.2.7", "connect-src 'self' http: https: ws: wss:;"),
            ("::1", "connect-src 'self' http: https: ws: wss:;"),
        ] {
            let policy = policy(host);
            assert!(policy.contains(allowed), "{policy}");
            assert!(policy.contains("script-src 'self' 'wasm-unsafe-eval';"));
            assert!(!policy.contains("unsafe-inline"), "{policy}");
            assert!(!policy.contains("'unsafe-eval'"), "{policy}");
        }
    }
}
