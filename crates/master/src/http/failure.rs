//! Answers that are no success: a status, a short name and a sentence.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::RETRY_AFTER;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use muse_master_client::PreferencesError;
use muse_master_client::api::ErrorBody;
use serde::de::DeserializeOwned;
use tower_governor::GovernorError;

use crate::serving::Caller;
use crate::store::StoreError;

/// The reason why a request is not done.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    code: &'static str,
    message: std::borrow::Cow<'static, str>,
    /// Seconds after which to try again; none leaves it to the status.
    retry_after_s: Option<u64>,
}

impl Failure {
    pub(crate) const SIGN_IN: Self =
        Self::new(StatusCode::UNAUTHORIZED, "sign_in", "sign in first");
    pub(crate) const WRONG_PASSWORD: Self = Self::new(
        StatusCode::UNAUTHORIZED,
        "wrong_password",
        "there is no account with this name and password",
    );
    pub(crate) const OLD_PASSWORD: Self = Self::new(
        StatusCode::FORBIDDEN,
        "old_password",
        "this account has a password: name it as `old_password` to set a new one",
    );
    pub(crate) const WRONG_OLD_PASSWORD: Self = Self::new(
        StatusCode::FORBIDDEN,
        "wrong_password",
        "the old password is wrong",
    );
    pub(crate) const BANNED: Self = Self::new(
        StatusCode::FORBIDDEN,
        "banned",
        "an operator has banned this account",
    );
    pub(crate) const BUSY: Self = Self {
        status: StatusCode::SERVICE_UNAVAILABLE,
        code: "busy",
        message: std::borrow::Cow::Borrowed("too many sign in at once: try again in a second"),
        retry_after_s: Some(1),
    };

    const TOO_SLOW: Self = Self::new(
        StatusCode::REQUEST_TIMEOUT,
        "too_slow",
        "the body of the request took too long",
    );

    pub(crate) const fn new(status: StatusCode, code: &'static str, message: &'static str) -> Self {
        Self {
            status,
            code,
            message: std::borrow::Cow::Borrowed(message),
            retry_after_s: None,
        }
    }

    /// Too many requests: the next one has to wait so long, and the text says for what.
    pub(crate) fn wait(retry_after_s: u64, message: String) -> Self {
        Self {
            message: message.into(),
            retry_after_s: Some(retry_after_s),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", "")
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self {
            message: message.into().into(),
            ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", "")
        }
    }

    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let (status, code) = match &error {
            StoreError::NotFound(_) => (StatusCode::NOT_FOUND, "not_found"),
            StoreError::Conflict(_) => (StatusCode::CONFLICT, "conflict"),
            StoreError::Forbidden(_) => (StatusCode::FORBIDDEN, "forbidden"),
            // The database's message is for the log, not for players.
            StoreError::Unavailable(why) => {
                tracing::error!(%why, "the store is not available");
                return Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "unavailable",
                    "the store is not available, try again in a few seconds",
                );
            }
            StoreError::OldEpoch => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
        };
        Self {
            message: error.to_string().into(),
            ..Self::new(status, code, "")
        }
    }
}

impl From<PreferencesError> for Failure {
    fn from(error: PreferencesError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let wait = self.retry_after_s.or(match self.status {
            StatusCode::SERVICE_UNAVAILABLE => Some(10),
            StatusCode::TOO_MANY_REQUESTS => Some(1),
            _ => None,
        });
        let body = Json(ErrorBody {
            code: self.code.to_owned(),
            message: self.message.into_owned(),
        });
        match wait {
            Some(seconds) => {
                let wait = HeaderValue::from(seconds);
                (self.status, [(RETRY_AFTER, wait)], body).into_response()
            }
            None => (self.status, body).into_response(),
        }
    }
}

/// A JSON body, whose mistakes are answered as [`Failure`]s.
#[derive(Debug)]
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let caller = request.extensions().get::<Caller>().cloned();
        let received = Json::<T>::from_request(request, state);
        let Json(body) = match caller {
            Some(caller) => caller.receive(received).await.ok_or(Failure::TOO_SLOW)??,
            None => received.await?,
        };
        Ok(Self(body))
    }
}

/// Parts of the path.
#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let found = axum::extract::Path::<T>::from_request_parts(parts, state).await?;
        Ok(Self(found.0))
    }
}

/// Parts after the question mark.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let found = axum::extract::Query::<T>::from_request_parts(parts, state).await?;
        Ok(Self(found.0))
    }
}

impl From<JsonRejection> for Failure {
    fn from(rejection: JsonRejection) -> Self {
        Self {
            status: rejection.status(),
            ..Self::invalid(rejection.body_text())
        }
    }
}

impl From<PathRejection> for Failure {
    fn from(rejection: PathRejection) -> Self {
        Self::invalid(rejection.body_text())
    }
}

impl From<QueryRejection> for Failure {
    fn from(rejection: QueryRejection) -> Self {
        Self::invalid(rejection.body_text())
    }
}

/// One address asks too often.
pub(crate) fn limited(error: GovernorError) -> Response {
    if let GovernorError::TooManyRequests { wait_time, .. } = error {
        metrics::counter!("muse_requests_limited").increment(1);
        let failure = Failure::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_requests",
            "too many requests from this address",
        );
        let mut response = failure.into_response();
        response
            .headers_mut()
            .insert(RETRY_AFTER, wait_time.max(1).into());
        return response;
    }
    Failure::invalid("the address of the client is not known").into_response()
}

pub(crate) async fn nothing_here() -> Failure {
    Failure::new(StatusCode::NOT_FOUND, "not_found", "there is nothing here")
}

pub(crate) async fn wrong_method() -> Failure {
    Failure::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "this address takes other methods",
    )
}
