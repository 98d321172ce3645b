//! Friends, rooms, chat and tokens, over the interface that clients use.

use std::time::Duration;

use serde_json::Value;

use crate::program::{Master, Player, Request};

/// A signed-in player.
struct Friend<'a> {
    master: &'a Master,
    account: u64,
    token: String,
}

impl<'a> Friend<'a> {
    fn new(master: &'a Master, device: u32) -> Self {
        let signed_in = master.sign_in(device);
        Self {
            master,
            account: signed_in["account"].as_u64().expect("a number"),
            token: signed_in["access_token"]
                .as_str()
                .expect("a token")
                .to_owned(),
        }
    }

    fn done(&self, request: Request) {
        self.master.request(request.bearer(&self.token)).expect(204);
    }

    fn asks(&self, request: Request) -> Value {
        let answer = self.master.request(request.bearer(&self.token));
        answer.expect_json(200)
    }

    fn refused(&self, request: Request, status: u16, code: &str) {
        let answer = self.master.request(request.bearer(&self.token));
        assert_eq!(answer.expect_json(status)["code"], code);
    }

    fn about(&self, other: &Self, what: &str) -> String {
        format!("/v1/friends/{}{what}", other.account)
    }

    fn state_of(&self, other: &Self) -> Option<String> {
        let friends = self.asks(Request::get("/v1/friends"));
        let friends = friends.as_array().expect("a list");
        let found = friends
            .iter()
            .find(|friend| friend["account"] == other.account)?;
        Some(found["state"].as_str().expect("text").to_owned())
    }
}

#[test]
fn friends_ask_accept_invite_block_and_part() {
    let master = Master::start(&[], 1.0);
    let [ada, bob, eve] = [1, 2, 3].map(|device| Friend::new(&master, device));
    let watching = Player::start(&master, 2, false);
    watching.expect("online", Duration::from_secs(30));
    ada.done(Request::put(&ada.about(&bob, ""), ""));
    watching.expect("friend", Duration::from_secs(10));
    assert_eq!(ada.state_of(&bob).as_deref(), Some("asked"));
    assert_eq!(bob.state_of(&ada).as_deref(), Some("asks"));
    // Somebody who is not a friend yet cannot be invited, and nobody can be without a room.
    let invite = |of: &Friend, to: &Friend| Request::post(&of.about(to, "/invite"), "");
    ada.refused(invite(&ada, &bob), 404, "not_found");
    bob.done(Request::put(&bob.about(&ada, ""), ""));
    assert_eq!(ada.state_of(&bob).as_deref(), Some("friend"));
    ada.refused(invite(&ada, &bob), 404, "not_found");
    let room = ada.asks(Request::post("/v1/room", ""));
    ada.done(invite(&ada, &bob));
    let invited = watching.expect("invited", Duration::from_secs(10));
    assert!(invited.ends_with(room["code"].as_str().expect("a code")));
    assert_eq!(ada.asks(Request::get("/v1/friends"))[0]["online"], true);
    // Requests of a blocked player have no effect, and they are not told why.
    bob.done(Request::post(&bob.about(&eve, "/block"), ""));
    eve.done(Request::put(&eve.about(&bob, ""), ""));
    assert_eq!(bob.state_of(&eve).as_deref(), Some("blocked"));
    assert_eq!(eve.state_of(&bob).as_deref(), Some("asked"));
    bob.done(Request::delete(&bob.about(&ada, "")));
    assert_eq!((ada.state_of(&bob), bob.state_of(&ada)), (None, None));
    let nobody = Request::put("/v1/friends/1", "");
    ada.refused(nobody, 404, "not_found");
    let own = Request::put(&ada.about(&ada, ""), "");
    ada.refused(own, 409, "conflict");
}

#[test]
fn rooms_are_entered_shown_and_left_and_chat_is_kept() {
    let master = Master::start(&[], 1.0);
    let [ada, bob, eve] = [1, 2, 3].map(|device| Friend::new(&master, device));
    ada.refused(Request::get("/v1/room"), 404, "not_found");
    let room = ada.asks(Request::post("/v1/room", ""));
    let code = room["code"].as_str().expect("a code").to_lowercase();
    bob.asks(Request::post(&format!("/v1/room/{code}"), ""));
    let both = serde_json::json!([ada.account, bob.account]);
    assert_eq!(bob.asks(Request::get("/v1/room"))["members"], both);
    for wrong in ["abc", "ABCDEFG", "AAAAA1", "%00%00%00%00%00%00"] {
        let enter = Request::post(&format!("/v1/room/{wrong}"), "");
        eve.refused(enter, 404, "not_found");
    }
    let say = |to: &str, text: &str| {
        let body = serde_json::json!({ "text": text }).to_string();
        Request::post(&format!("/v1/chat/{to}"), &body)
    };
    let line = ada.asks(say("room", "hello, room"));
    assert_eq!(bob.asks(Request::get("/v1/chat/room"))["lines"][0], line);
    eve.refused(Request::get("/v1/chat/room"), 404, "not_found");
    let direct = format!("direct/{}", bob.account);
    let line = ada.asks(say(&direct, "hello, bob"));
    let history = Request::get(&format!("/v1/chat/direct/{}", ada.account));
    assert_eq!(bob.asks(history)["lines"][0], line);
    eve.refused(say("match", "hello"), 404, "not_found");
    eve.refused(Request::get("/v1/chat/match"), 404, "not_found");
    let long = "x".repeat(501);
    for wrong in ["", "a\u{1b}[31mb", long.as_str()] {
        ada.refused(say("room", wrong), 422, "invalid");
    }
    bob.done(Request::delete("/v1/room"));
    bob.refused(Request::get("/v1/room"), 404, "not_found");
    let alone = serde_json::json!([ada.account]);
    assert_eq!(ada.asks(Request::get("/v1/room"))["members"], alone);
}

#[test]
fn players_of_a_match_talk_and_see_where_it_is() {
    let master = Master::start(&[], 600.0);
    let players = [1, 2].map(|device| Player::start(&master, device, true));
    for player in &players {
        player.expect("playing", Duration::from_secs(30));
    }
    let [ada, bob] = [1, 2].map(|device| Friend::new(&master, device));
    let line = ada.asks(Request::post("/v1/chat/match", r#"{"text":"good luck"}"#));
    assert_eq!(bob.asks(Request::get("/v1/chat/match"))["lines"][0], line);
    let state = bob.asks(Request::get("/v1/state"));
    assert!(state["seat"]["match_id"].is_u64() && state["ticket"].is_null());
    // A player in a match can neither play elsewhere nor be deleted meanwhile.
    let play = Request::post("/v1/ticket", r#"{"preferences":{}}"#);
    bob.refused(play, 409, "conflict");
    bob.refused(Request::delete("/v1/account"), 409, "conflict");
}

#[test]
fn refresh_tokens_are_repeated_once_and_signing_out_voids_everything() {
    let master = Master::start(&[], 1.0);
    let first = master.sign_in(1);
    let refresh = |signed_in: &Value| {
        let token = &signed_in["refresh_token"];
        Request::post("/v1/refresh", &format!(r#"{{"refresh_token":{token}}}"#))
    };
    let account = |signed_in: &Value| {
        let token = signed_in["access_token"].as_str().expect("a token");
        Request::get("/v1/account").bearer(token)
    };
    let second = master.request(refresh(&first)).expect_json(200);
    assert_eq!(second["account"], first["account"]);
    master.request(account(&second)).expect(200);
    // The first one again, because the answer was lost: it is the same.
    let again = master.request(refresh(&first)).expect_json(200);
    assert_eq!(again["refresh_token"], second["refresh_token"]);
    // And again: somebody has stolen it, and nobody is signed in any more.
    master.request(refresh(&first)).expect(401);
    master.request(refresh(&second)).expect(401);
    master.request(account(&second)).expect(401);
    let third = master.sign_in(1);
    let token = third["access_token"].as_str().expect("a token");
    let out = Request::post("/v1/sign-out-everywhere", "").bearer(token);
    master.request(out).expect(204);
    master.request(account(&third)).expect(401);
    master.request(refresh(&third)).expect(401);
    for nonsense in ["", "x", "Bearer", "a.b.c"] {
        let asked = Request::get("/v1/account").bearer(nonsense);
        master.request(asked).expect(401);
    }
}
