//! The rules of queues as operators write them, and change them while players wait.

use std::process::Command;
use std::time::Duration;

use super::program::{Master, Player, Request};

#[test]
fn rules_that_change_hold_for_players_who_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("my queues.toml");
    let write = |text: &str| std::fs::write(&file, text).expect("a file");
    write("[ranked]\nplayers = 3");
    let path = file.to_str().expect("text");
    let master = Master::start(&["--queues", path], 1.0);
    let players = [1, 2].map(|device| Player::start(&master, device, false));
    for (player, device) in players.iter().zip(1..) {
        player.expect("online", Duration::from_secs(30));
        let wanted = r#"{"preferences":{"choices":{"queue":"ranked"}}}"#;
        let play = Request::post("/v1/ticket", wanted).bearer(&master.token(device));
        master.request(play).expect(200);
        player.expect("queue", Duration::from_secs(30));
    }
    // A mistake changes nothing; two are enough after it.
    write("[ranked]\nplayers = many");
    write("[ranked]\nplayers = 2");
    for player in &players {
        player.expect("playing", Duration::from_secs(30));
    }
    assert_eq!(master.rows("SELECT count(*) FROM matches"), 1);
}

#[test]
fn a_master_with_a_mistake_in_its_rules_does_not_start_and_says_where_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("queues.toml");
    std::fs::write(&file, "[ranked]\nplayer = 3").expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_muse"))
        .args(["master", "--listen", "127.0.0.1:0", "--queues"])
        .arg(&file)
        .current_dir(folder.path())
        .output()
        .expect("the binary starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        text.contains("line 2") && text.contains("queues.toml"),
        "{text}"
    );
}

#[test]
fn a_simulation_shows_what_rules_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("queues.toml");
    let rules =
        "[plain]\nanything_after_seconds = 0\n[ranked]\nrating_start = 20\nlatency_start_ms = 30\n";
    std::fs::write(&file, rules).expect("a file");
    let simulate = |more: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_muse"))
            .args(["master", "simulate", "--json", "--queues"])
            .arg(&file)
            .args(more)
            .output()
            .expect("the binary starts");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON")
    };
    let both = simulate(&["--queue", "plain", "--queue", "ranked", "--count", "2000"]);
    let mean = |queue: &str, of: &str| both[queue][of]["mean"].as_f64().expect("a number");
    for queue in ["plain", "ranked"] {
        assert_eq!(both[queue]["players"], 2_000);
    }
    assert!(mean("ranked", "wait_s") > mean("plain", "wait_s"));
    for (better, share) in [("ratings_apart", 0.2), ("round_trip_ms", 0.6)] {
        assert!(
            mean("ranked", better) < mean("plain", better) * share,
            "{both}"
        );
    }
    let trace = folder.path().join("players.csv");
    let text = "at_s,rating,eu,us\n1,1500,20,90\n1.5,1510,30,80\n9,1500,,40\n";
    std::fs::write(&trace, text).expect("a file");
    let trace = trace.to_str().expect("text");
    let few = simulate(&["--queue", "ranked", "--players", trace]);
    assert_eq!(
        (&few["ranked"]["players"], &few["ranked"]["matches"]),
        (&2.into(), &1.into())
    );
    assert_eq!(few["ranked"]["round_trip_ms"]["worst"], 30.0);
}
