//! The operators' interface under `/admin`: a page that is part of the program, and the calls it makes.
//!
//! Every call but the sign-in needs an operator's token, and everything that changes something is written down with their name before it is
//! answered. The page holds its token in memory and in the tab's storage and sends it in a header; without cookies no foreign page can act for it.

mod page;

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::{delete, get, post, put};
use axum::{Json, Router};
use muse_master_client::api::ErrorBody;
use muse_master_client::messages::{FromMaster, encode};
use muse_master_client::{AccountId, MatchId};
use muse_wire::Duration;
use serde::Deserialize;

use super::bearer;
use super::failure::{Body, Failure, Path, Query};
use super::passwords::CallerNetwork;
use crate::bus::Note;
use crate::clock;
use crate::hashing::{Asker, Role};
use crate::journal::SAMPLE_EVERY_S;
use crate::operators::{
    AnnounceRequest, AuditLine, ChatLines, DrainRequest, MatchLine, MatchLog, OperatorPassword,
    OperatorSignIn, OperatorToken, Overview, PlayerLine, Reason, Sample, Sanction, SanctionRequest,
    Sentence, ServerLine, TicketLine,
};
use crate::secrets::OPERATOR_LIFE;
use crate::shared::Shared;
use crate::store::StoreError;

/// The page and its calls.
pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/admin", get(page::html))
        .route("/admin/page.js", get(page::script))
        .route("/admin/page.css", get(page::style))
        .route("/admin/api/sign-in", post(sign_in))
        .route("/admin/api/overview", get(overview))
        .route("/admin/api/players", get(players))
        .route("/admin/api/players/{account}/kick", post(kick))
        .route(
            "/admin/api/players/{account}/{sanction}",
            put(impose).delete(lift),
        )
        .route("/admin/api/queue", get(queue))
        .route("/admin/api/matches", get(matches))
        .route(
            "/admin/api/matches/{match_id}",
            get(match_log).delete(end_match),
        )
        .route("/admin/api/servers", get(servers))
        .route("/admin/api/chat", get(chat))
        .route("/admin/api/chat/{line}", delete(delete_line))
        .route("/admin/api/drain", put(drain))
        .route("/admin/api/announcements", post(announce))
        .route("/admin/api/audit", get(audit))
        .route("/admin/api/operators", get(operators))
        .route(
            "/admin/api/operators/{name}",
            put(set_operator).delete(remove_operator),
        )
}

/// The operator who asks.
#[derive(Clone, Debug)]
pub(crate) struct Operator(String);

impl FromRequestParts<Arc<Shared>> for Operator {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Failure> {
        let token = bearer(parts).ok_or(Failure::SIGN_IN)?;
        let checked = shared.keys.check_operator(token, clock::now());
        let (name, generation) = checked.map_err(|_| Failure::SIGN_IN)?;
        let known = shared.store.operator(name.clone()).await?;
        match known.filter(|known| known.generation == generation) {
            Some(_) => Ok(Self(name)),
            None => Err(Failure::SIGN_IN),
        }
    }
}

/// Signs an operator in.
#[utoipa::path(post, path = "/admin/api/sign-in", request_body = OperatorSignIn, responses(
    (status = 200, body = OperatorToken), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn sign_in(
    State(shared): State<Arc<Shared>>,
    CallerNetwork(network): CallerNetwork,
    Body(request): Body<OperatorSignIn>,
) -> Result<Json<OperatorToken>, Failure> {
    if check_operator(&request.name, &request.password).is_err() {
        return Err(Failure::WRONG_PASSWORD);
    }
    let asker = Asker {
        role: Role::Operator,
        network,
        name: Some(request.name.clone()),
    };
    shared.passwords.check(&asker)?;
    let known = shared.store.operator(request.name.clone()).await?;
    let hash = known.as_ref().map(|known| known.password.clone());
    let right = shared.passwords.is_right(&asker, request.password, hash);
    if !right.await? {
        tracing::warn!(operator = %request.name, "an operator's sign-in failed");
        return Err(Failure::WRONG_PASSWORD);
    }
    let generation = known.map_or(0, |known| known.generation);
    written(&shared, &request.name, "sign_in", "", "").await?;
    Ok(Json(OperatorToken {
        token: shared
            .keys
            .operator(&request.name, generation, clock::now()),
        expires_s: OPERATOR_LIFE.as_micros() / 1_000_000,
    }))
}

/// The figures of now and of the last hour.
#[utoipa::path(get, path = "/admin/api/overview", security(("bearer" = [])), responses(
    (status = 200, body = Overview), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn overview(
    State(shared): State<Arc<Shared>>,
    Operator(_): Operator,
) -> Result<Json<Overview>, Failure> {
    let up = clock::now() - shared.started;
    let draining = *shared.draining.borrow();
    Ok(Json(Overview {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        up_s: up.as_micros() / 1_000_000,
        leading: shared.status.is_leading(),
        draining,
        players_max: shared.hub.players_max() as u64,
        now: sample(&shared).await?,
        history: shared.journal.samples(),
        sample_every_s: SAMPLE_EVERY_S,
    }))
}

/// Figures of this moment.
pub(crate) async fn sample(shared: &Shared) -> Result<Sample, StoreError> {
    let now = clock::now();
    let (queued, oldest) = shared.store.waiting().await?;
    let counts = shared.fleet.counts();
    Ok(Sample {
        at_ms: now.as_millis(),
        sessions: shared.hub.players() as u64,
        queued,
        waited_ms_max: oldest.map_or(0, |since| (now - since).as_millis()),
        matches: shared.status.matches() as u64,
        servers_starting: counts.starting as u64,
        servers_ready: counts.ready as u64,
        servers_busy: counts.busy as u64,
    })
}

/// The text to look for.
#[derive(Debug, Deserialize)]
pub(crate) struct Search {
    #[serde(default)]
    search: String,
}

/// Players by the beginning of their name or by number; without a search those who are connected to this master, at most 100.
#[utoipa::path(get, path = "/admin/api/players", params(("search" = Option<String>, Query, description = "beginning of a name, or a number")),
    security(("bearer" = [])), responses(
    (status = 200, body = Vec<PlayerLine>), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn players(
    State(shared): State<Arc<Shared>>,
    Operator(_): Operator,
    Query(Search { search }): Query<Search>,
) -> Result<Json<Vec<PlayerLine>>, Failure> {
    if search.len() > 32 || !search.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failure::invalid(
            "a search has at most 32 letters, digits, - or _",
        ));
    }
    let online = shared.hub.online(100);
    let lines = shared.store.player_lines(search, online, clock::now());
    let mut lines = lines.await?;
    for line in &mut lines {
        line.online = shared.hub.is_online(line.account);
    }
    Ok(Json(lines))
}

/// Closes a player's connection and takes them out of queue and match. They may come back.
#[utoipa::path(post, path = "/admin/api/players/{account}/kick", params(("account" = u64, Path)), request_body = Reason,
    security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn kick(
    State(shared): State<Arc<Shared>>,
    Operator(operator): Operator,
    Path(account): Path<AccountId>,
    Body(request): Body<Reason>,
) -> Result<StatusCode, Failure> {
    check_reason(&request.reason)?;
    shared.store.account(account).await?;
    let subject = account.to_string();
    written(&shared, &operator, "kick", &subject, &request.reason).await?;
    shared.kick(account, &request.reason).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Keeps a player out (`ban`), or from writing chat (`mute`).
#[utoipa::path(put, path = "/admin/api/players/{account}/{sanction}", params(("account" = u64, Path), ("sanction" = Sanction, Path)),
    request_body = SanctionRequest, security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn impose(
    State(shared): State<Arc<Shared>>,
    Operator(operator): Operator,
    Path((account, sanction)): Path<(AccountId, Sanction)>,
    Body(SanctionRequest { hours, reason }): Body<SanctionRequest>,
) -> Result<StatusCode, Failure> {
    check_reason(&reason)?;
    if !(1..=HOURS_MAX).contains(&hours) {
        return Err(Failure::invalid("from an hour to a hundred years"));
    }
    let now = clock::now();
    let sentence = Sentence {
        account,
        sanction,
        until: Some(now + Duration::from_secs(u64::from(hours) * 3_600)),
        reason: reason.clone(),
    };
    shared.store.sanction(operator, sentence, now).await?;
    if sanction == Sanction::Ban {
        // At once; freeing a seat may take a moment.
        shared.bus.publish(Note::Kick(account, reason.clone()));
        shared.kick(account, &reason).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Lets a player in again, or write again.
#[utoipa::path(delete, path = "/admin/api/players/{account}/{sanction}", params(("account" = u64, Path), ("sanction" = Sanction, Path)),
    security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn lift(
    State(shared): State<Arc<Shared>>,
    Operator(operator): Operator,
    Path((account, sanction)): Path<(AccountId, Sanction)>,
) -> Result<StatusCode, Failure> {
    let sentence = Sentence {
        account,
        sanction,
        until: None,
        reason: String::new(),
    };
    let lifted = shared.store.sanction(operator, sentence, clock::now());
    lifted.await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Tickets that wait, oldest first, at most 500 players of them.
#[utoipa::path(get, path = "/admin/api/queue", security(("bearer" = [])), responses(
    (status = 200, body = Vec<TicketLine>), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn queue(
    State(shared): State<Arc<Shared>>,
    Operator(_): Operator,
) -> Result<Json<Vec<TicketLine>>, Failure> {
    Ok(Json(shared.store.ticket_lines(clock::now()).await?))
}

/// Matches that are not over, at most 200, and the last fifty that are.
#[utoipa::path(get, path = "/admin/api/matches", security(("bearer" = [])), responses(
    (status = 200, body = Vec<MatchLine>), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn matches(
    State(shared): State<Arc<Shared>>,
    Operator(_): Operator,
) -> Result<Json<Vec<MatchLine>>, Failure> {
    Ok(Json(shared.store.match_lines().await?))
}

/// A match, what the master did about it, and the end of what its game server wrote.
#[utoipa::path(get, path = "/admin/api/matches/{match_id}", params(("match_id" = u64, Path)), security(("bearer" = [])), responses(
    (status = 200, body = MatchLog), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn match_log(
    State(shared): State<Arc<Shared>>,
    Operator(_): Operator,
    Path(match_id): Path<MatchId>,
) -> Result<Json<MatchLog>, Failure> {
    let line = shared.store.match_line(match_id).await?;
    let path = line.server.and_then(|server| shared.fleet.log(server));
    let server = match path {
        Some(path) => tokio::task::spawn_blocking(move || end_of(&path).ok())
            .await
            .ok()
            .flatten(),
        None => None,
    };
    Ok(Json(MatchLog {
        master: shared.journal.lines(match_id),
        line,
        server,
    }))
}

/// Ends a match that is not over: nothing of it counts.
#[utoipa::path(delete, path = "/admin/api/matches/{match_id}", params(("match_id" = u64, Path)), security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn end_match(
    State(shared): State<Arc<Shared>>,
    Operator(operator): Operator,
    Path(match_id): Path<MatchId>,
) -> Result<StatusCode, Failure> {
    let line = shared.store.match_line(match_id).await?;
    if line.ended_ms.is_some() {
        return Err(StoreError::Conflict("the match is over").into());
    }
    let server = line
        .server
        .ok_or(StoreError::Conflict("the match has no server yet"))?;
    written(&shared, &operator, "end_match", &match_id.to_string(), "").await?;
    shared.bus.publish(Note::ServerGone(server));
    Ok(StatusCode::NO_CONTENT)
}

/// Game servers of this master.
#[utoipa::path(get, path = "/admin/api/servers", security(("bearer" = [])), responses(
    (status = 200, body = Vec<ServerLine>), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn servers(
    State(shared): State<Arc<Shared>>,
    Operator(_): Operator,
) -> Json<Vec<ServerLine>> {
    Json(shared.fleet.servers())
}

/// The player whose lines are asked for.
#[derive(Debug, Deserialize)]
pub(crate) struct Writer {
    account: Option<u64>,
}

/// The last hundred lines of chat, of everybody or of one, newest first.
#[utoipa::path(get, path = "/admin/api/chat", params(("account" = Option<u64>, Query, description = "who wrote")),
    security(("bearer" = [])), responses(
    (status = 200, body = ChatLines), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn chat(
    State(shared): State<Arc<Shared>>,
    Operator(_): Operator,
    Query(Writer { account }): Query<Writer>,
) -> Result<Json<ChatLines>, Failure> {
    let lines = shared.store.chat_lines(account.map(AccountId)).await?;
    Ok(Json(ChatLines { lines }))
}

/// Deletes a line of chat.
#[utoipa::path(delete, path = "/admin/api/chat/{line}", params(("line" = u64, Path)), security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn delete_line(
    State(shared): State<Arc<Shared>>,
    Operator(operator): Operator,
    Path(line): Path<u64>,
) -> Result<StatusCode, Failure> {
    shared
        .store
        .delete_line(operator, line, clock::now())
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Makes no new matches, or makes them again. Running ones finish either way; SIGTERM ends the process.
#[utoipa::path(put, path = "/admin/api/drain", request_body = DrainRequest, security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn drain(
    State(shared): State<Arc<Shared>>,
    Operator(operator): Operator,
    Body(request): Body<DrainRequest>,
) -> Result<StatusCode, Failure> {
    let detail = if request.draining { "on" } else { "off" };
    written(&shared, &operator, "drain", "", detail).await?;
    shared.draining.send_replace(request.draining);
    Ok(StatusCode::NO_CONTENT)
}

/// Tells every player who is connected.
#[utoipa::path(post, path = "/admin/api/announcements", request_body = AnnounceRequest, security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn announce(
    State(shared): State<Arc<Shared>>,
    Operator(operator): Operator,
    Body(AnnounceRequest { text }): Body<AnnounceRequest>,
) -> Result<StatusCode, Failure> {
    let length = text.chars().count();
    if !(1..=500).contains(&length) || text.contains('\0') {
        return Err(Failure::invalid("an announcement has 1 to 500 characters"));
    }
    written(&shared, &operator, "announce", "", &text).await?;
    let message = encode(&FromMaster::Announcement { text });
    shared.bus.publish(Note::TellAll(message));
    Ok(StatusCode::NO_CONTENT)
}

/// The last 200 things that operators did, newest first.
#[utoipa::path(get, path = "/admin/api/audit", security(("bearer" = [])), responses(
    (status = 200, body = Vec<AuditLine>), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn audit(
    State(shared): State<Arc<Shared>>,
    Operator(_): Operator,
) -> Result<Json<Vec<AuditLine>>, Failure> {
    Ok(Json(shared.store.audits().await?))
}

/// Names of all operators.
#[utoipa::path(get, path = "/admin/api/operators", security(("bearer" = [])), responses(
    (status = 200, body = Vec<String>), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn operators(
    State(shared): State<Arc<Shared>>,
    Operator(_): Operator,
) -> Result<Json<Vec<String>>, Failure> {
    Ok(Json(shared.store.operators().await?))
}

/// One more operator, or a new password for one, which ends their sign-ins.
#[utoipa::path(put, path = "/admin/api/operators/{name}", params(("name" = String, Path)), request_body = OperatorPassword,
    security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn set_operator(
    State(shared): State<Arc<Shared>>,
    Operator(operator): Operator,
    CallerNetwork(network): CallerNetwork,
    Path(name): Path<String>,
    Body(OperatorPassword { password }): Body<OperatorPassword>,
) -> Result<StatusCode, Failure> {
    check_operator(&name, &password).map_err(Failure::invalid)?;
    let asker = Asker {
        role: Role::Operator,
        network,
        name: None,
    };
    let hash = shared.passwords.hash(&asker, password).await?;
    written(&shared, &operator, "set_operator", &name, "").await?;
    shared.store.set_operator(name, hash, clock::now()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes an operator's rights; the last one stays.
#[utoipa::path(delete, path = "/admin/api/operators/{name}", params(("name" = String, Path)), security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn remove_operator(
    State(shared): State<Arc<Shared>>,
    Operator(operator): Operator,
    Path(name): Path<String>,
) -> Result<StatusCode, Failure> {
    if !is_name(&name) {
        return Err(StoreError::NotFound("operator").into());
    }
    shared.store.remove_operator(name.clone()).await?;
    written(&shared, &operator, "remove_operator", &name, "").await?;
    Ok(StatusCode::NO_CONTENT)
}

/// True if these can be an operator's.
pub(crate) fn check_operator(name: &str, password: &str) -> Result<(), &'static str> {
    if !is_name(name) {
        return Err("an operator's name has 1 to 24 letters, digits, - or _");
    }
    if !(12..=128).contains(&password.chars().count()) {
        return Err("an operator's password has 12 to 128 characters");
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=24).contains(&name.len()) && name.bytes().all(letter)
}

fn check_reason(reason: &str) -> Result<(), Failure> {
    if reason.chars().count() > 200 || reason.chars().any(char::is_control) {
        return Err(Failure::invalid("a reason has at most 200 characters"));
    }
    Ok(())
}

/// Writes down what an operator is about to do.
async fn written(
    shared: &Shared,
    operator: &str,
    action: &str,
    subject: &str,
    detail: &str,
) -> Result<(), StoreError> {
    tracing::info!(operator, action, subject, "an operator acts");
    let line = AuditLine {
        at_ms: clock::now().as_millis(),
        operator: operator.to_owned(),
        action: action.to_owned(),
        subject: subject.to_owned(),
        detail: detail.to_owned(),
    };
    shared.store.audit(line).await
}

/// The end of a file, from the beginning of a line.
fn end_of(path: &std::path::Path) -> std::io::Result<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    let skipped = length.saturating_sub(LOG_SHOWN);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(LOG_SHOWN).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match text.split_once('\n') {
        Some((_, rest)) if skipped > 0 => Ok(rest.to_owned()),
        _ => Ok(text),
    }
}

/// Bytes of a game server's output that are shown.
const LOG_SHOWN: u64 = 64 * 1024;
/// A hundred years.
const HOURS_MAX: u32 = 876_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_begins_with_a_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let line = "0123456789\n";
        std::fs::write(&path, line.repeat(10_000)).expect("written");
        let end = end_of(&path).expect("read");
        assert!(end.len() as u64 <= LOG_SHOWN && end.len() as u64 > LOG_SHOWN - 12);
        assert!(end.lines().all(|found| found == "0123456789"));
        std::fs::write(&path, "short").expect("written");
        assert_eq!(end_of(&path).expect("read"), "short");
    }

    #[test]
    fn operators_have_plain_names_and_long_passwords() {
        assert!(check_operator("ada", "correct horse").is_ok());
        assert!(check_operator("a.da", "correct horse").is_err());
        assert!(check_operator("ada", "short").is_err());
        assert!(check_operator("", "correct horse").is_err());
    }
}
