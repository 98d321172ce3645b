//! Secrets that must not get out, and clients that ask too often.

use std::time::Duration;

use serde_json::Value;

use crate::program::{self, Master, OPERATOR_PASSWORD, Player, Request, SECRET_KEY};

/// Neither the log, with everything in it, nor the process list tells a password, a token, a device's key, a server's credential or a key.
#[test]
fn nothing_secret_is_logged_or_in_the_process_list() {
    let (master, log) = Master::start_with_full_log(&["--operator", "ada"], 600.0);
    let mut secrets = [OPERATOR_PASSWORD, SECRET_KEY].map(str::to_owned).to_vec();
    let mut keep = |answer: &Value| {
        for name in ["access_token", "refresh_token", "token"] {
            let found = answer[name].as_str().filter(|text| !text.is_empty());
            secrets.extend(found.map(str::to_owned));
        }
    };
    let first = master.sign_in(1);
    keep(&first);
    let token = first["access_token"].as_str().expect("a token");
    let named = r#"{"name":"ada","password":"correct horse battery"}"#;
    let set = Request::put("/v1/account/password", named).bearer(token);
    master.request(set).expect(204);
    keep(
        &master
            .request(Request::post("/v1/sign-in", named))
            .expect_json(200),
    );
    let refresh = format!(r#"{{"refresh_token":{}}}"#, first["refresh_token"]);
    keep(
        &master
            .request(Request::post("/v1/refresh", &refresh))
            .expect_json(200),
    );
    // A refused secret is not repeated in the log either.
    let wrong = r#"{"name":"ada","password":"incorrect horse battery"}"#;
    master
        .request(Request::post("/v1/sign-in", wrong))
        .expect(401);
    master
        .request(Request::post("/v1/guest", r#"{"device_key":"too short"}"#))
        .expect(422);
    let operator = format!(r#"{{"name":"ada","password":"{OPERATOR_PASSWORD}"}}"#);
    keep(
        &master
            .request(Request::post("/admin/api/sign-in", &operator))
            .expect_json(200),
    );
    let players = [1, 2].map(|device| Player::start(&master, device, true));
    for player in &players {
        player.expect("playing", Duration::from_secs(30));
    }
    let state = Request::get("/v1/state").bearer(token);
    keep(&master.request(state).expect_json(200)["seat"]);
    let games = master.game_servers();
    assert!(!games.is_empty());
    for pid in &games {
        for own in ["MUSE_SECRET_KEY", "MUSE_OPERATOR_PASSWORD"] {
            assert_eq!(program::variable(*pid, own), "", "{own}");
        }
    }
    let credential = |pid: &u32| program::variable(*pid, "MUSE_SERVER_CREDENTIAL");
    secrets.extend(games.iter().map(credential));
    for stored in master.texts("SELECT value FROM secrets") {
        let parts = stored.split(|letter: char| !letter.is_ascii_alphanumeric());
        secrets.extend(parts.filter(|part| part.len() >= 32).map(str::to_owned));
    }
    secrets.extend(master.texts("SELECT password FROM accounts WHERE password IS NOT NULL"));
    let words = ["correct horse battery", "too short", "device key of player"];
    secrets.extend(words.map(str::to_owned));
    assert!(secrets.len() > 12, "{}", secrets.len());

    let logged = std::fs::read_to_string(&log).expect("a log");
    assert!(
        logged.contains("TRACE") && logged.contains("match_id"),
        "{logged}"
    );
    let listed = games.iter().copied().chain([master.pid()]).map(|pid| {
        let listed = std::fs::read(format!("/proc/{pid}/cmdline")).expect("it runs");
        String::from_utf8_lossy(&listed).into_owned()
    });
    let listed: String = listed.collect();
    for secret in &secrets {
        for (where_to, text) in [("the log", &logged), ("the process list", &listed)] {
            let found = text.lines().find(|line| line.contains(secret.as_str()));
            assert_eq!(found, None, "in {where_to}");
        }
    }
}

/// An address and an account that ask too often are told to wait, and others are not.
#[test]
fn who_asks_too_often_is_told_to_wait() {
    let master = Master::start(&["--account-requests-per-second", "1"], 1.0);
    let [one, other] = [1, 2].map(|device| master.token(device));
    let ask = |token: &str| master.request(Request::get("/v1/account").bearer(token));
    let refused = (0..100)
        .map(|_| ask(&one))
        .find(|answer| answer.status() != 200);
    let refused = refused.expect("there is a limit").expect_json(429);
    assert_eq!(refused["code"], "too_many_requests");
    ask(&other).expect(200);

    let master = Master::start(&["--requests-per-second", "1"], 1.0);
    let answers = (0..100).map(|_| master.request(Request::get("/v1/ranking")));
    let refused = answers.into_iter().find(|answer| answer.status() != 200);
    let refused = refused.expect("there is a limit").expect_json(429);
    assert_eq!(refused["code"], "too_many_requests");
    // Requests of monitoring are not counted.
    master.request(Request::get("/health")).expect(204);
    assert!(master.figure("muse_requests_limited") > Some(0.0));
}
