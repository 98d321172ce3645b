//! The files that the master serves besides its own routes: those of the page, and recorded matches for the page's *Watch*.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tower_http::services::{ServeDir, ServeFile};

/// Serves the page below one directory, and the recordings in another: `/replays` lists them, `/replays/NAME` is one.
pub(super) fn routes(page: Option<PathBuf>, replays: PathBuf) -> Router {
    let mut routes = Router::new()
        .route("/replays", get(list))
        .route("/replays/{name}", get(replay))
        .with_state(Arc::new(replays));
    if let Some(directory) = page {
        let files = ServeDir::new(directory);
        routes = routes
            .route_service("/", files.clone())
            .route_service("/{*path}", files);
    }
    routes.layer(from_fn(finish))
}

/// Hides files whose names begin with a dot, and says for how long a browser may keep the others.
async fn finish(request: Request, next: Next) -> Response {
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
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
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
