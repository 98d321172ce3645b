//! The page inside of the program, if there is one: `tools/cli/build.rs` says how it gets there.
//!
//! A file may have compressed forms beside it, with `.br` and `.gz` at the end of its name; a browser gets the smallest that it takes. The plain form of
//! large ones is left out of the program. Each form has an `ETag` of its own, made of its content.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use include_dir::{Dir, include_dir};

/// The files of a page, by the paths under which they are served.
pub(super) struct Files(HashMap<String, Vec<Form>>);

/// A file as it is, or compressed.
struct Form {
    coding: Option<&'static str>,
    content: &'static [u8],
    kind: HeaderValue,
    tag: HeaderValue,
}

impl Files {
    /// Returns the page inside of this program; nothing if it was built without one.
    pub(super) fn find() -> Option<Self> {
        let files = Self::of(&INSIDE);
        files.0.contains_key("/index.html").then_some(files)
    }

    fn of(directory: &Dir<'static>) -> Self {
        let mut files = Self(HashMap::new());
        files.add(directory);
        for forms in files.0.values_mut() {
            forms.sort_by_key(|form| form.content.len());
        }
        files
    }

    fn add(&mut self, directory: &Dir<'static>) {
        for file in directory.files() {
            // Paths of Windows have other separators.
            let path = file.path().to_string_lossy().replace('\\', "/");
            let known = CODINGS
                .iter()
                .find_map(|(ending, coding)| Some((path.strip_suffix(ending)?, *coding)));
            let (path, coding) =
                known.map_or((path.as_str(), None), |(path, coding)| (path, Some(coding)));
            let kind = mime_guess::from_path(path).first_or_octet_stream();
            let form = Form {
                coding,
                content: file.contents(),
                kind: HeaderValue::try_from(kind.essence_str())
                    .unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream")),
                tag: tag(file.contents()),
            };
            self.0.entry(format!("/{path}")).or_default().push(form);
        }
        for inner in directory.dirs() {
            self.add(inner);
        }
    }

    /// Serves all of them; `/` is the index.
    pub(super) fn routes(self) -> Router {
        Router::new()
            .route("/", get(file))
            .route("/{*path}", get(file))
            .with_state(Arc::new(self))
    }

    fn response(&self, path: &str, headers: &HeaderMap) -> Response {
        let path = match path {
            "/" => "/index.html",
            other => other,
        };
        let Some(forms) = self.0.get(path) else {
            return StatusCode::NOT_FOUND.into_response();
        };
        // They are in the order of their sizes. What has no plain form is sent compressed to those that do not ask for it, too.
        let taken = forms
            .iter()
            .find(|form| form.coding.is_none_or(|coding| takes(headers, coding)));
        let Some(form) = taken.or(forms.last()) else {
            return StatusCode::NOT_FOUND.into_response();
        };
        let mut about = vec![
            (ETAG, form.tag.clone()),
            (VARY, HeaderValue::from_static("accept-encoding")),
        ];
        if has(headers, IF_NONE_MATCH, |tag| form.tag == tag) {
            return (StatusCode::NOT_MODIFIED, HeaderMap::from_iter(about)).into_response();
        }
        about.push((CONTENT_TYPE, form.kind.clone()));
        if let Some(coding) = form.coding {
            about.push((CONTENT_ENCODING, HeaderValue::from_static(coding)));
        }
        (HeaderMap::from_iter(about), form.content).into_response()
    }
}

async fn file(State(files): State<Arc<Files>>, request: Request) -> Response {
    files.response(request.uri().path(), request.headers())
}

/// The same for the same content, whatever program it is in.
fn tag(content: &[u8]) -> HeaderValue {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    HeaderValue::try_from(tag).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

/// True if a header that is a list has an element of which this holds.
fn has(headers: &HeaderMap, name: HeaderName, holds: impl Fn(&str) -> bool) -> bool {
    let values = headers.get_all(name);
    let mut elements = values
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    elements.any(|element| holds(element.trim()))
}

/// True if a request takes what is compressed in this way: its coding is named, and not with a quality of zero.
fn takes(headers: &HeaderMap, coding: &str) -> bool {
    has(headers, ACCEPT_ENCODING, |element| {
        let mut parts = element.split(';').map(str::trim);
        let named = parts.next() == Some(coding);
        let quality = parts.find_map(|part| part.strip_prefix("q="));
        named && quality.and_then(|it| it.parse::<f32>().ok()) != Some(0.0)
    })
}

static INSIDE: Dir<'static> = include_dir!("$MUSE_PAGE_INSIDE");

/// Endings of the names of compressed forms, and what HTTP calls them.
const CODINGS: [(&str, &str); 2] = [(".br", "br"), (".gz", "gzip")];

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use include_dir::{DirEntry, File};

    use super::*;

    fn page() -> Files {
        const ASSETS: [DirEntry<'static>; 4] = [
            DirEntry::File(File::new("assets/large.js.gz", b"large")),
            DirEntry::File(File::new("assets/game.wasm", b"a long program")),
            DirEntry::File(File::new("assets/game.wasm.br", b"short")),
            DirEntry::File(File::new("assets/game.wasm.gz", b"shorter")),
        ];
        const ALL: [DirEntry<'static>; 2] = [
            DirEntry::File(File::new("index.html", b"<p>")),
            DirEntry::Dir(Dir::new("assets", &ASSETS)),
        ];
        Files::of(&Dir::new("", &ALL))
    }

    fn get(path: &str, headers: &[(HeaderName, &str)]) -> Response {
        let headers = headers.iter().map(|(name, value)| {
            let value = HeaderValue::try_from(*value).expect("a value");
            (name.clone(), value)
        });
        page().response(path, &headers.collect())
    }

    fn header(response: &Response, name: HeaderName) -> &str {
        let value = response.headers().get(name).map(HeaderValue::to_str);
        value.and_then(Result::ok).unwrap_or_default()
    }

    #[tokio::test]
    async fn a_browser_gets_the_smallest_form_that_it_takes() {
        for (takes, coding, content) in [
            ("gzip, deflate, br", "br", "short"),
            ("gzip, deflate", "gzip", "shorter"),
            ("br;q=0, gzip;q=0.5", "gzip", "shorter"),
            ("identity", "", "a long program"),
        ] {
            let response = get("/assets/game.wasm", &[(ACCEPT_ENCODING, takes)]);
            assert_eq!(header(&response, CONTENT_ENCODING), coding, "{takes}");
            assert_eq!(header(&response, CONTENT_TYPE), "application/wasm");
            let body = to_bytes(response.into_body(), 100).await.expect("a body");
            assert_eq!(body, content.as_bytes(), "{takes}");
        }
    }

    #[tokio::test]
    async fn what_has_no_plain_form_is_sent_compressed() {
        let response = get("/assets/large.js", &[]);
        assert_eq!(header(&response, CONTENT_ENCODING), "gzip");
        assert_eq!(header(&response, CONTENT_TYPE), "text/javascript");
        let body = to_bytes(response.into_body(), 100).await.expect("a body");
        assert_eq!(&*body, b"large");
    }

    #[test]
    fn what_a_browser_has_is_not_sent_again() {
        let first = get("/assets/game.wasm", &[(ACCEPT_ENCODING, "br")]);
        let tag = header(&first, ETAG);
        let known = format!("\"other\", {tag}");
        let headers = [(ACCEPT_ENCODING, "br"), (IF_NONE_MATCH, &*known)];
        let second = get("/assets/game.wasm", &headers);
        assert_eq!(second.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(header(&second, ETAG), tag);
        // Another form is another content.
        let plain = get("/assets/game.wasm", &[(IF_NONE_MATCH, tag)]);
        assert_eq!(plain.status(), StatusCode::OK);
    }

    #[test]
    fn the_index_is_at_the_root_and_nothing_else_is_there() {
        let root = get("/", &[]);
        assert_eq!(header(&root, CONTENT_TYPE), "text/html");
        assert_eq!(header(&root, ETAG), header(&get("/index.html", &[]), ETAG));
        for path in ["/assets", "/assets/", "/../index.html", "/missing.js"] {
            assert_eq!(get(path, &[]).status(), StatusCode::NOT_FOUND, "{path}");
        }
    }
}
