//! Routes that the master serves besides its own: files of the page, and recordings.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::page::{File, Page};
use super::replays::Replays;

/// Serves both; what neither has is not found.
pub(super) fn routes(page: Page, replays: Replays) -> Router {
    let shelf = Arc::new(Shelf { page, replays });
    Router::new()
        .route("/", get(serve))
        .route("/{*path}", get(serve))
        .with_state(shelf)
}

struct Shelf {
    page: Page,
    replays: Replays,
}

async fn serve(State(shelf): State<Arc<Shelf>>, uri: Uri) -> Response {
    if let Some(file) = shelf.page.file(uri.path()) {
        return answer(file);
    }
    // Recordings are read from the disk.
    let found = tokio::task::spawn_blocking(move || shelf.replays.file(uri.path())).await;
    match found {
        Ok(Some(file)) => answer(&file),
        _ => (StatusCode::NOT_FOUND, "there is nothing here\n").into_response(),
    }
}

fn answer(file: &File) -> Response {
    let cache = match file.lasting {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let head = [
        (CONTENT_TYPE, file.kind),
        (CACHE_CONTROL, cache),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (head, file.bytes.clone()).into_response()
}
