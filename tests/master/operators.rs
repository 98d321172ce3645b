//! Operators' work, over the interface that their page uses.

use std::time::Duration;

use serde_json::Value;

use crate::program::{Master, OPERATOR_PASSWORD, Player, Request, wait_for};

pub(crate) fn signed_in(master: &Master) -> String {
    let body = format!(r#"{{"name":"ada","password":"{OPERATOR_PASSWORD}"}}"#);
    let answer = master.request(Request::post("/admin/api/sign-in", &body));
    let answer = answer.expect_json(200);
    answer["token"].as_str().expect("a token").to_owned()
}

fn listed(master: &Master, token: &str, what: &str) -> Value {
    let path = format!("/admin/api/{what}");
    master
        .request(Request::get(&path).bearer(token))
        .expect_json(200)
}

/// A kicked player is out of their match and stays away; a banned one cannot sign in; all of it is logged.
#[test]
fn players_are_kicked_banned_and_muted() {
    let master = Master::start(&["--operator", "ada"], 600.0);
    let operator = signed_in(&master);
    let players = [
        Player::start(&master, 1, true),
        Player::start(&master, 2, true),
    ];
    for player in &players {
        player.expect("playing", Duration::from_secs(30));
    }
    let online = listed(&master, &operator, "players");
    assert_eq!(online.as_array().map(Vec::len), Some(2));
    assert!(online[0]["match_id"].is_u64() && online[0]["online"] == true);
    let signed_in = master.sign_in(1);
    let (account, token) = (
        &signed_in["account"],
        signed_in["access_token"].as_str().expect("a token"),
    );
    let kick = Request::post(
        &format!("/admin/api/players/{account}/kick"),
        r#"{"reason":"rude"}"#,
    );
    master.request(kick.bearer(&operator)).expect(204);
    players[0].expect("stopped", Duration::from_secs(10));
    wait_for("the seat is free", Duration::from_secs(10), || {
        master.rows("SELECT count(*) FROM seats") == 1
    });
    let ban = Request::put(
        &format!("/admin/api/players/{account}/ban"),
        r#"{"hours":1,"reason":"rude"}"#,
    );
    master.request(ban.bearer(&operator)).expect(204);
    let refused = master
        .request(Request::get("/v1/account").bearer(token))
        .expect_json(403);
    assert_eq!(refused["code"], "banned");
    let lift = Request::delete(&format!("/admin/api/players/{account}/ban"));
    master.request(lift.bearer(&operator)).expect(204);
    master
        .request(Request::get("/v1/account").bearer(token))
        .expect(200);
    let audit = listed(&master, &operator, "audit");
    let actions = audit
        .as_array()
        .expect("a list")
        .iter()
        .map(|line| line["action"].as_str());
    let actions: Vec<&str> = actions.flatten().collect();
    assert_eq!(actions, ["unban", "ban", "kick", "sign_in"]);
}

/// Nobody is an operator without a token of one, and a new password ends the old tokens.
#[test]
fn operators_sign_in_and_can_be_removed() {
    let master = Master::start(&["--operator", "ada"], 1.0);
    let player = master.token(1);
    for token in ["", "nonsense", &player] {
        master
            .request(Request::get("/admin/api/overview").bearer(token))
            .expect(401);
    }
    let wrong = r#"{"name":"ada","password":"not the password"}"#;
    master
        .request(Request::post("/admin/api/sign-in", wrong))
        .expect(401);
    let first = signed_in(&master);
    let bob = Request::put(
        "/admin/api/operators/bob",
        r#"{"password":"another password"}"#,
    );
    master.request(bob.bearer(&first)).expect(204);
    let ada = Request::put(
        "/admin/api/operators/ada",
        r#"{"password":"yet another password"}"#,
    );
    master.request(ada.bearer(&first)).expect(204);
    master
        .request(Request::get("/admin/api/overview").bearer(&first))
        .expect(401);
    let body = r#"{"name":"bob","password":"another password"}"#;
    let bob = master
        .request(Request::post("/admin/api/sign-in", body))
        .expect_json(200);
    let bob = bob["token"].as_str().expect("a token");
    let overview = listed(&master, bob, "overview");
    assert_eq!(overview["players_max"], 100);
    master
        .request(Request::delete("/admin/api/operators/ada").bearer(bob))
        .expect(204);
    master
        .request(Request::delete("/admin/api/operators/bob").bearer(bob))
        .expect(409);
    let page = master.request(Request::get("/admin")).expect(200);
    assert!(page.contains("Muse master"));
}

/// Drained, no match is made; undrained, the queue goes on.
#[test]
fn a_drained_master_makes_no_match_until_it_is_told_to() {
    let master = Master::start(&["--operator", "ada"], 1.0);
    let operator = signed_in(&master);
    let players = [
        Player::start(&master, 1, false),
        Player::start(&master, 2, false),
    ];
    for player in &players {
        player.expect("online", Duration::from_secs(30));
    }
    master.play(1);
    let drain = |on: bool| {
        let body = format!(r#"{{"draining":{on}}}"#);
        master
            .request(Request::put("/admin/api/drain", &body).bearer(&operator))
            .expect(204);
    };
    drain(true);
    master.request(Request::get("/ready")).expect(503);
    let token = master.token(2);
    let play = || Request::post("/v1/ticket", r#"{"preferences":{}}"#).bearer(&token);
    master.request(play()).expect(503);
    drain(false);
    master.request(play()).expect(200);
    for player in &players {
        player.expect("playing", Duration::from_secs(30));
    }
}
