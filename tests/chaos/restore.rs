//! The restore drill: a backup is taken as `docs/operations.md` says while players write, another master is started on it elsewhere, and everything that
//! was acknowledged before the backup began is there.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::postgres::Postgres;
use crate::program::{Master, Player, Request, ask, wait_for};

/// A write that was acknowledged.
#[derive(Clone, Debug)]
struct Acknowledged {
    device: u32,
    account: u64,
    token: String,
    /// The version of the progress, which is also what it says.
    version: u64,
    line: String,
}

/// Players who write without a pause, and what was acknowledged to them.
#[derive(Default)]
struct Load {
    acknowledged: Mutex<Vec<Acknowledged>>,
    stop: AtomicBool,
}

impl Load {
    fn count(&self) -> usize {
        self.acknowledged.lock().expect("nobody panicked").len()
    }

    /// Writes as one device after the other, until it is told to stop.
    fn write(&self, authority: &str, first: u32) {
        for device in (first..).step_by(WRITERS) {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let signed_in = sign_in(authority, device);
            let token = signed_in["access_token"].as_str().expect("a token");
            let account = signed_in["account"].as_u64().expect("a number");
            let mut one = Acknowledged {
                device,
                account,
                token: token.to_owned(),
                version: 0,
                line: String::new(),
            };
            for _ in 0..ROUNDS {
                let next = one.version + 1;
                let body = format!(r#"{{"version":{},"document":{next}}}"#, one.version);
                let save = Request::put(PROGRESS, &body).bearer(token);
                let saved = ask(authority, save).expect_json(200);
                one.version = saved["version"].as_u64().expect("a number");
                let line = format!("line {next} of device {device}");
                let path = format!("/v1/chat/direct/{account}");
                let say = Request::post(&path, &format!(r#"{{"text":"{line}"}}"#)).bearer(token);
                ask(authority, say).expect(200);
                one.line = line;
                let mut acknowledged = self.acknowledged.lock().expect("nobody panicked");
                acknowledged.push(one.clone());
            }
        }
    }
}

/// Writes to a master while `back_up` runs, in the middle of it. Returns what was acknowledged before the backup began.
fn back_up_under_load(master: &Master, back_up: impl FnOnce()) -> Vec<Acknowledged> {
    let players = [900_001, 900_002].map(|device| Player::start(master, device, true));
    let load = Load::default();
    let authority = master.authority();
    let before = std::thread::scope(|scope| {
        for first in (0..).take(WRITERS) {
            let load = &load;
            scope.spawn(move || load.write(authority, first));
        }
        let many = Duration::from_secs(60);
        players[0].expect("back", many);
        wait_for("there is something to lose", many, || load.count() >= 200);
        let before = load.acknowledged.lock().expect("nobody panicked").clone();
        back_up();
        let during = load.count();
        assert!(during > before.len(), "nobody wrote during the backup");
        wait_for("writing goes on", many, || load.count() > during);
        load.stop.store(true, Ordering::Relaxed);
        before
    });
    println!(
        "{} writes acknowledged before the backup, {} in all",
        before.len(),
        load.count()
    );
    before
}

/// Checks that a master on the restored database has everything.
fn expect_everything(master: &Master, before: &[Acknowledged]) {
    assert!(!before.is_empty());
    for one in before {
        let path = format!("/v1/chat/direct/{}", one.account);
        let history = Request::get(&path).bearer(&one.token);
        // The token of the lost master is good, too.
        let history = master.request(history).expect_json(200);
        let lines = history["lines"].as_array().expect("lines").iter();
        let found = lines.filter(|line| line["text"] == one.line.as_str());
        assert_eq!(found.count(), 1, "{one:?}: {history}");
        let progress = Request::get(PROGRESS).bearer(&one.token);
        let progress = master.request(progress).expect_json(200);
        let version = progress["version"].as_u64().expect("a number");
        assert!(version >= one.version, "{one:?}: {progress}");
        assert_eq!(progress["document"].as_u64(), Some(version));
    }
    for one in before.chunk_by(|one, next| one.device == next.device) {
        let signed_in = sign_in(master.authority(), one[0].device);
        assert_eq!(signed_in["account"].as_u64(), Some(one[0].account));
    }
    // Matches were played: points and ratings came with them, and the next match is played here.
    let ranking = master.request(Request::get("/v1/ranking")).expect_json(200);
    assert!(
        ranking["lines"][0]["points"].as_i64() > Some(0),
        "{ranking}"
    );
    let players = [900_001, 900_002].map(|device| Player::start(master, device, true));
    for player in &players {
        player.expect("playing", Duration::from_secs(60));
    }
}

fn sign_in(authority: &str, device: u32) -> Value {
    let body = format!(r#"{{"device_key":"restored device number {device}"}}"#);
    ask(authority, Request::post("/v1/guest", &body)).expect_json(200)
}

fn start(database: &str) -> Master {
    let arguments = [
        "--database",
        database,
        "--requests-per-second",
        "0",
        "--account-requests-per-second",
        "0",
        "--connections-per-ip",
        "0",
    ];
    Master::start(&arguments, 1.0)
}

/// `sqlite3 muse.db ".backup copy.db"`.
#[test]
fn a_backup_of_sqlite_under_load_has_everything_acknowledged_before() {
    let (here, elsewhere) = (folder(), folder());
    let file = |folder: &Path, name: &str| folder.join(name).display().to_string();
    let copy = file(elsewhere.path(), "copy.db");
    let database = file(here.path(), "muse.db");
    let master = start(&database);
    let before = back_up_under_load(&master, || {
        let done = Command::new("sqlite3")
            .args([&database, &format!(".backup {copy}")])
            .status();
        assert!(done.expect("sqlite3 runs").success());
    });
    drop((master, here));
    expect_everything(&start(&copy), &before);
}

/// `pg_dump`, into an empty database of another server.
#[test]
fn a_dump_of_postgres_under_load_has_everything_acknowledged_before() {
    let database = Postgres::start();
    let elsewhere = folder();
    let dump = elsewhere.path().join("dump.sql");
    let master = start(&database.database("muse"));
    let before = back_up_under_load(&master, || database.dump("muse", &dump));
    drop((master, database));
    let other = Postgres::start();
    expect_everything(&start(&other.restore("muse", &dump)), &before);
}

/// `pg_basebackup`, which is what archived logs begin with.
#[test]
fn a_base_backup_of_postgres_under_load_has_everything_acknowledged_before() {
    let database = Postgres::start();
    let master = start(&database.database("muse"));
    let mut other = None;
    let before = back_up_under_load(&master, || {
        other = Some(Postgres::start_from_backup(database.port()));
    });
    drop((master, database));
    let other = other.expect("it was taken");
    let url = format!("postgres://muse@127.0.0.1:{}/muse", other.port());
    expect_everything(&start(&url), &before);
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

const WRITERS: usize = 4;
/// Writes of one device; ten lines are allowed in ten seconds.
const ROUNDS: u32 = 5;
const PROGRESS: &str = "/v1/progress/restored";
