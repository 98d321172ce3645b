//! The operators' page: three files that are part of the program, without a build step.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};

/// An answer that a browser may show but nothing else.
type Page = ([(HeaderName, &'static str); 6], &'static str);

pub(super) async fn html() -> Page {
    page("text/html; charset=utf-8", include_str!("page.html"))
}

pub(super) async fn script() -> Page {
    page("text/javascript; charset=utf-8", include_str!("page.js"))
}

pub(super) async fn style() -> Page {
    page("text/css; charset=utf-8", include_str!("page.css"))
}

fn page(kind: &'static str, text: &'static str) -> Page {
    let headers = [
        (CONTENT_TYPE, kind),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        // The page of the version that runs, after an update too.
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, text)
}
