//! `muse up` as a program: bots sign in, are matched by the master, play on a server of its fleet, keep what they unlock, and everything ends together.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use muse_biobot::replay::{Recording, verify};

/// A program that ends with the test.
struct Program {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(words: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_muse"))
            .args(words)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Ends it by a signal, and says what it still said.
    fn end(&mut self) -> String {
        let id = self.child.id().to_string();
        let status = Command::new("kill").arg(id).status();
        assert!(status.expect("kill runs").success());
        let mut text = String::new();
        self.output.read_to_string(&mut text).expect("text");
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}: {text}");
        text
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory whose paths are text.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn at(&self, name: &str) -> String {
        let path = self.0.path().join(name);
        path.to_str().expect("text").to_owned()
    }
}

#[test]
fn bots_are_matched_play_and_everything_ends_together() {
    const FIRST_PORT: u16 = 26_200;
    let place = Place::new();
    for (name, content) in [
        ("page/index.html", "<p>the page"),
        ("page/.secret", "secret"),
        ("page/assets/a-1.wasm", "module"),
        ("page/assets/a-1.wasm.gz", "smaller"),
        ("data/matches/match-7.muserply", "recording"),
        ("data/matches/match-7.txt", "notes"),
    ] {
        let file = place.at(name);
        let folder = std::path::Path::new(&file).parent().expect("a folder");
        std::fs::create_dir_all(folder).expect("made");
        std::fs::write(&file, content).expect("written");
    }
    let (data, page) = (place.at("data"), place.at("page"));
    let port = FIRST_PORT.to_string();
    let mut words = vec!["up", "--port", "0", "--relay-port", "0"];
    words.extend(["--first-port", &port, "--data", &data, "--page", &page]);
    words.extend(["--bots-after-seconds", "1"]);
    let mut up = Program::start(&words);
    let line = up.line();
    let url = line.strip_prefix("Biobot is at ").expect("where it is");
    let authority = authority(url);
    assert!(get(authority, "/").ends_with("<p>the page"));
    assert!(get(authority, "/health").starts_with("HTTP/1.1 204"));
    assert!(get(authority, "/nothing").starts_with("HTTP/1.1 404"));
    assert!(get(authority, "/v1/account").starts_with("HTTP/1.1 401"));
    let module = get(authority, "/assets/a-1.wasm");
    assert!(
        module.contains("application/wasm") && module.contains("immutable"),
        "{module}"
    );
    let accepts = "Accept-Encoding: gzip, deflate\r\n";
    let smaller = send(authority, "GET", "/assets/a-1.wasm", accepts, "");
    assert!(
        smaller.contains("content-encoding: gzip") && smaller.ends_with("smaller"),
        "{smaller}"
    );
    assert!(get(authority, "/").contains("no-cache"));
    for path in ["/", "/assets/a-1.wasm", "/nothing", "/admin"] {
        let answer = get(authority, path);
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "x-frame-options: DENY",
            "referrer-policy: no-referrer",
        ] {
            assert!(answer.contains(header), "{path}: {answer}");
        }
        assert!(!answer.contains("unsafe-inline"), "{path}: {answer}");
    }
    let page = get(authority, "/");
    assert!(
        page.contains("connect-src 'self' http://127.0.0.1:* https://127.0.0.1:* ws:"),
        "{page}"
    );
    assert!(get(authority, "/replays").ends_with(r#"["match-7.muserply"]"#));
    assert!(get(authority, "/replays/match-7.muserply").ends_with("recording"));
    for path in [
        "/.secret",
        "/assets/../.secret",
        "/%2e%2e/data/matches/match-7.txt",
        "/assets/nothing",
        "/replays/match-7.txt",
        "/replays/..%2fmatch-7.muserply",
        "/replays/.muserply",
        "/replaysmatch-7.muserply",
    ] {
        let answer = get(authority, path);
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
        assert!(!answer.contains("immutable"), "{path}: {answer}");
    }

    let mut words = vec!["bots", "--count", "2", "--master", url];
    words.extend(["--mode", "versus", "--players", "4", "--with-bots"]);
    let mut bots = Program::start(&words);
    assert_eq!(bots.line(), "all 2 play");
    assert!(is_taken(FIRST_PORT), "a game server listens");
    up.end();
    await_servers(FIRST_PORT);
    bots.end();
    // Bots filled it up, and it was recorded though it was never finished.
    let recording = recording(&place, 0);
    assert_eq!(recording.names().len(), 4, "{:?}", recording.names());
}

#[test]
fn health_checks_pass_while_it_serves() {
    let place = Place::new();
    let data = place.at("data");
    let mut words = vec!["up", "--port", "0", "--relay-port", "0", "--no-page"];
    words.extend(["--first-port", "26230", "--data", &data]);
    let mut up = Program::start(&words);
    let line = up.line();
    let url = line.strip_prefix("master   ").expect("where it is");
    let check = |page: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_muse"))
            .args(["health", "--url", &format!("{url}{page}")])
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    assert_eq!(check("ready").0, Some(0));
    let (code, said) = check("nothing");
    assert!(code == Some(1) && said.contains("404"), "{said}");
    up.end();
    let (code, said) = check("ready");
    assert!(code == Some(1) && said.contains("cannot connect"), "{said}");
}

#[test]
fn what_players_unlock_is_there_in_their_next_match() {
    const FIRST_PORT: u16 = 26_210;
    let place = Place::new();
    let level = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/game/corridor.json");
    let (data, port) = (place.at("data"), FIRST_PORT.to_string());
    let mut words = vec!["up", "--port", "0", "--relay-port", "0", "--no-page"];
    words.extend(["--first-port", &port, "--data", &data, "--level", level]);
    let mut up = Program::start(&words);
    let line = up.line();
    let url = line.strip_prefix("master   ").expect("where it is");
    let mut words = vec!["bots", "--count", "2", "--master", url, "--level", level];
    words.extend(["--mode", "coop", "--matches", "2", "--seed", "77"]);
    let mut bots = Program::start(&words);
    let mut said = String::new();
    bots.output.read_to_string(&mut said).expect("text");
    assert!(bots.child.wait().expect("it ends").success(), "{said}");

    // The player sees what is kept, and cannot write it.
    let authority = authority(url);
    let guest = r#"{"device_key":"muse-bots-00000000000000077001"}"#;
    let answer = send(authority, "POST", "/v1/guest", "", guest);
    let token = answer.split(r#""access_token":""#).nth(1);
    let token = token.and_then(|rest| rest.split('"').next());
    let token = token.unwrap_or_else(|| unreachable!("no token in {answer}"));
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let kept = send(authority, "GET", "/v1/progress/server:biobot", &bearer, "");
    assert!(kept.contains(r#""owned":15"#), "{kept}");
    let more = r#"{"version":9,"document":{"checkpoint":7}}"#;
    let refused = send(
        authority,
        "PUT",
        "/v1/progress/server:biobot",
        &bearer,
        more,
    );
    assert!(refused.starts_with("HTTP/1.1 422"), "{refused}");
    up.end();
    await_servers(FIRST_PORT);

    // In the first match nobody had it at the beginning, in the second both have.
    let begin_with = |index: usize| {
        let mut recording = recording(&place, index);
        let (first, last) = recording.ticks();
        [0, 1].map(|slot| {
            (first..=last).find_map(|tick| {
                let frame = recording.frame(f64::from(tick), slot);
                frame.own.as_ref().map(|own| own.robot.owned & RAIL)
            })
        })
    };
    assert_eq!(begin_with(0), [Some(0); 2]);
    assert_eq!(begin_with(1), [Some(RAIL); 2]);

    // Anybody can read a recording.
    let file = recordings(&place).pop().expect("two matches");
    let output = Command::new(env!("CARGO_BIN_EXE_muse"))
        .args(["replay", &file, "--verify"])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("Won") && said.contains("checks agree"),
        "{said}"
    );
}

/// Game servers end with the program that started them: they do not wait for a master that is gone. What they record is complete
/// once their ports are free.
fn await_servers(first_port: u16) {
    let limit = Instant::now() + Duration::from_secs(20);
    while (first_port..first_port + 4).any(is_taken) {
        assert!(Instant::now() < limit, "a game server was left behind");
        std::thread::yield_now();
    }
}

/// Returns the recordings of the matches, in their order.
fn recordings(place: &Place) -> Vec<String> {
    let files = std::fs::read_dir(place.at("data/matches")).expect("matches were recorded");
    let paths = files.filter_map(|file| file.ok()?.path().to_str().map(str::to_owned));
    let mut paths: Vec<String> = paths.filter(|path| path.ends_with(".muserply")).collect();
    paths.sort();
    paths
}

fn recording(place: &Place, index: usize) -> Recording {
    let file = std::fs::read(&recordings(place)[index]).expect("it was recorded");
    verify(&file).expect("it goes the same way again");
    Recording::parse(file).expect("it can be watched")
}

fn is_taken(port: u16) -> bool {
    UdpSocket::bind(("0.0.0.0", port)).is_err()
}

fn authority(url: &str) -> &str {
    url.trim_start_matches("http://").trim_end_matches('/')
}

fn get(authority: &str, path: &str) -> String {
    send(authority, "GET", path, "", "")
}

fn send(authority: &str, method: &str, path: &str, more: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(authority).expect("it listens");
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n");
    let kind = format!(
        "Content-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    write!(stream, "{head}{more}{kind}\r\n{body}").expect("it takes requests");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

/// The bit of the hidden weapon.
const RAIL: u8 = 0b1000;
