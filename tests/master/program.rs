//! The programs under test, and how they are started, asked, watched and killed.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;

/// A master with a folder of its own.
pub(crate) struct Master {
    child: Child,
    authority: String,
    folder: Rc<tempfile::TempDir>,
    /// The folder's path from here, if the master knows it by another name.
    seen: Option<PathBuf>,
    arguments: Vec<String>,
    game_seconds: f64,
}

impl Master {
    /// Starts a master whose matches last so many seconds.
    pub(crate) fn start(arguments: &[&str], game_seconds: f64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let command = Command::new(env!("CARGO_BIN_EXE_muse"));
        Self::start_by(command, folder, arguments, game_seconds)
    }

    /// A master that logs everything it can, and the file with it.
    pub(crate) fn start_with_full_log(arguments: &[&str], game_seconds: f64) -> (Self, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_muse"));
        let file = std::fs::File::create(&log).expect("a file");
        command.env("RUST_LOG", "trace").stderr(file);
        let master = Self::start_by(command, folder, arguments, game_seconds);
        (master, log)
    }

    /// A master as the command starts it, on ports that are free if the arguments name none.
    fn start_by(
        command: Command,
        folder: tempfile::TempDir,
        arguments: &[&str],
        game_seconds: f64,
    ) -> Self {
        let mut arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        if !arguments.iter().any(|argument| argument == "--first-port") {
            arguments.extend(["--first-port".to_owned(), free_ports().to_string()]);
        }
        let (child, authority) = spawn_by(command, &folder, &arguments, game_seconds);
        Self {
            child,
            authority,
            folder: Rc::new(folder),
            seen: None,
            arguments,
            game_seconds,
        }
    }

    /// Another master with the same file.
    pub(crate) fn start_beside(other: &Self) -> Self {
        let folder = Rc::clone(&other.folder);
        let arguments = vec!["--first-port".to_owned(), free_ports().to_string()];
        let (child, authority) = spawn(&folder, &arguments, other.game_seconds);
        Self {
            child,
            authority,
            folder,
            seen: None,
            arguments,
            game_seconds: other.game_seconds,
        }
    }

    /// A master whose folder is a disk of so many megabytes.
    pub(crate) fn start_on_small_disk(megabytes: u32) -> Self {
        let folder = Rc::new(tempfile::tempdir().expect("a folder"));
        let arguments = vec!["--first-port".to_owned(), free_ports().to_string()];
        // A file system in a name space of its own, as any user may make one.
        let script = format!(
            "mount -t tmpfs -o size={megabytes}m tmpfs {} && exec \"$@\"",
            folder.path().display()
        );
        let mut command = Command::new("unshare");
        command.args([
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            &script,
            "sh",
        ]);
        command.arg(env!("CARGO_BIN_EXE_muse"));
        let (child, authority) = spawn_by(command, &folder, &arguments, 1.0);
        let inside = folder.path().strip_prefix("/").expect("absolute");
        let seen = Some(PathBuf::from(format!("/proc/{}/root", child.id())).join(inside));
        Self {
            child,
            authority,
            folder,
            seen,
            arguments,
            game_seconds: 1.0,
        }
    }

    /// The master's folder.
    pub(crate) fn folder(&self) -> &Path {
        self.seen.as_deref().unwrap_or(self.folder.path())
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// Starts it again after [`kill`](Self::kill), at the same address.
    pub(crate) fn start_again(&mut self) {
        let mut arguments = self.arguments.clone();
        arguments.extend(["--listen".to_owned(), self.authority.clone()]);
        (self.child, _) = spawn(&self.folder, &arguments, self.game_seconds);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ended");
    }

    pub(crate) fn ends_within(&mut self, limit: Duration) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < limit {
            if self.child.try_wait().expect("asked").is_some() {
                return true;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        false
    }

    /// Stops the process at a moment when it does not hold the file's lock, which would be everybody's.
    pub(crate) fn stop_between_transactions(&self) {
        wait_for("a quiet moment", Duration::from_secs(20), || {
            signal(self.pid(), "STOP");
            let connection = rusqlite::Connection::open(self.folder().join("muse.db"));
            let free = connection
                .expect("the file")
                .execute_batch("BEGIN IMMEDIATE; ROLLBACK");
            if free.is_err() {
                signal(self.pid(), "CONT");
            }
            free.is_ok()
        });
    }

    /// A number from the file, read beside the running master.
    pub(crate) fn rows(&self, sql: &str) -> i64 {
        let copies = self.seen.as_ref().map(|seen| {
            // SQLite would resolve the way into the other name space to a path in this one.
            let copies = tempfile::tempdir().expect("a folder");
            for name in ["muse.db", "muse.db-wal"] {
                std::fs::copy(seen.join(name), copies.path().join(name)).expect("copied");
            }
            copies
        });
        let folder = copies.as_ref().unwrap_or(&self.folder).path();
        let connection = rusqlite::Connection::open(folder.join("muse.db")).expect("the file");
        connection
            .busy_timeout(Duration::from_secs(5))
            .expect("set");
        connection
            .query_row(sql, [], |row| row.get(0))
            .expect("a number")
    }

    /// Texts from the file.
    pub(crate) fn texts(&self, sql: &str) -> Vec<String> {
        let connection =
            rusqlite::Connection::open(self.folder().join("muse.db")).expect("the file");
        let mut statement = connection.prepare(sql).expect("a query");
        let rows = statement.query_map([], |row| row.get(0)).expect("rows");
        rows.collect::<Result<_, _>>().expect("texts")
    }

    /// Waits until a query counts so many, looking as often as it can.
    pub(crate) fn wait_in_file(&self, what: &str, sql: &str, count: i64) {
        let connection =
            rusqlite::Connection::open(self.folder().join("muse.db")).expect("the file");
        let begun = Instant::now();
        while connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .ok()
            != Some(count)
        {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "not within a minute: {what}"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Keeps everybody from writing to the file until it is dropped.
    pub(crate) fn lock_file(&self) -> rusqlite::Connection {
        let connection =
            rusqlite::Connection::open(self.folder().join("muse.db")).expect("the file");
        connection
            .busy_timeout(Duration::from_secs(5))
            .expect("set");
        connection.execute_batch("BEGIN IMMEDIATE").expect("locked");
        connection
    }

    /// Pids of all game servers of this folder's masters.
    pub(crate) fn game_servers(&self) -> Vec<u32> {
        let mark = format!("MUSE_TEST_FOLDER={}", self.folder.path().display());
        let processes = std::fs::read_dir("/proc").expect("Linux").flatten();
        let mut found: Vec<u32> = processes
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| {
                let read =
                    |what: &str| std::fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
                let has = |bytes: &[u8], word: &str| {
                    bytes
                        .split(|byte| *byte == 0)
                        .any(|part| part == word.as_bytes())
                };
                has(&read("environ"), &mark) && has(&read("cmdline"), "master-game")
            })
            .collect();
        found.sort_unstable();
        found
    }

    /// Those that players are connected to: the oldest ones; warm ones are started after.
    pub(crate) fn busy_game_servers(&self) -> Vec<u32> {
        let count =
            self.rows("SELECT count(*) FROM matches WHERE ended_us IS NULL AND server IS NOT NULL");
        let mut found = self.game_servers();
        found.truncate(usize::try_from(count).expect("not negative"));
        found
    }

    pub(crate) fn sign_in(&self, device: u32) -> Value {
        let body = format!(r#"{{"device_key":"{}"}}"#, device_key(device));
        self.request(Request::post("/v1/guest", &body))
            .expect_json(200)
    }

    pub(crate) fn token(&self, device: u32) -> String {
        let signed_in = self.sign_in(device);
        signed_in["access_token"]
            .as_str()
            .expect("a token")
            .to_owned()
    }

    /// Presses *play* for a player.
    pub(crate) fn play(&self, device: u32) {
        let token = self.token(device);
        let play = Request::post("/v1/ticket", r#"{"preferences":{}}"#).bearer(&token);
        self.request(play).expect(200);
    }

    /// One of the figures at `/metrics`.
    pub(crate) fn figure(&self, name: &str) -> Option<f64> {
        let figures = self.request(Request::get("/metrics")).expect(200);
        let line = figures
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    pub(crate) fn request(&self, request: Request) -> Answer {
        ask(&self.authority, request)
    }
}

/// Sends a request to the master at this address.
pub(crate) fn ask(authority: &str, request: Request) -> Answer {
    let mut stream = TcpStream::connect(authority).expect("the master listens");
    let bearer = request.bearer.map_or_else(String::new, |token| {
        format!("Authorization: Bearer {token}\r\n")
    });
    let text = format!(
        "{} {} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{bearer}\r\n{}",
        request.method,
        request.path,
        request.body.len(),
        request.body
    );
    stream.write_all(text.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Answer {
        status: status.expect("a status"),
        body: body.to_owned(),
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in self.game_servers() {
            kill(pid);
        }
    }
}

fn spawn(folder: &tempfile::TempDir, arguments: &[String], game_seconds: f64) -> (Child, String) {
    let command = Command::new(env!("CARGO_BIN_EXE_muse"));
    spawn_by(command, folder, arguments, game_seconds)
}

fn spawn_by(
    mut command: Command,
    folder: &tempfile::TempDir,
    arguments: &[String],
    game_seconds: f64,
) -> (Child, String) {
    command.arg("master");
    if !arguments.iter().any(|argument| argument == "--database") {
        command.arg("--database").arg(folder.path().join("muse.db"));
    }
    command
        .args(arguments)
        .env("MUSE_TEST_FOLDER", folder.path())
        .env("MUSE_OPERATOR_PASSWORD", OPERATOR_PASSWORD)
        .env("MUSE_SECRET_KEY", SECRET_KEY)
        .env("MUSE_GAME_SECONDS", game_seconds.to_string())
        .stdout(Stdio::piped());
    if !arguments.iter().any(|argument| argument == "--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    let mut child = command.spawn().expect("the binary");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let line = lines.next().expect("the master starts").expect("text");
    let (_, authority) = line.split_once("://").expect("an address");
    let authority = authority.to_owned();
    (child, authority)
}

/// A request to a master.
pub(crate) struct Request {
    method: &'static str,
    path: String,
    body: String,
    bearer: Option<String>,
}

impl Request {
    fn new(method: &'static str, path: &str, body: &str) -> Self {
        Self {
            method,
            path: path.to_owned(),
            body: body.to_owned(),
            bearer: None,
        }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path, "")
    }

    pub(crate) fn delete(path: &str) -> Self {
        Self::new("DELETE", path, "")
    }

    pub(crate) fn post(path: &str, body: &str) -> Self {
        Self::new("POST", path, body)
    }

    pub(crate) fn put(path: &str, body: &str) -> Self {
        Self::new("PUT", path, body)
    }

    pub(crate) fn bearer(mut self, token: &str) -> Self {
        self.bearer = Some(token.to_owned());
        self
    }
}

/// An HTTP answer.
pub(crate) struct Answer {
    status: u16,
    body: String,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    pub(crate) fn expect(self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }

    pub(crate) fn expect_json(self, status: u16) -> Value {
        let body = self.expect(status);
        serde_json::from_str(&body).unwrap_or_else(|error| unreachable!("{error}: {body}"))
    }
}

/// A player, with their output.
pub(crate) struct Player {
    child: Child,
    lines: mpsc::Receiver<String>,
    seen: RefCell<Vec<String>>,
}

impl Player {
    pub(crate) fn start(master: &Master, device: u32, plays: bool) -> Self {
        Self::start_at(&master.authority, device, plays)
    }

    /// A player who knows several masters, with commas between.
    pub(crate) fn start_at(masters: &str, device: u32, plays: bool) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_muse"));
        command.args([
            "master-player",
            masters,
            "--device-key",
            &device_key(device),
        ]);
        if plays {
            command.arg("--play");
        }
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self {
            child,
            lines,
            seen: RefCell::default(),
        }
    }

    /// The next line that begins with this word; earlier ones are passed over.
    pub(crate) fn expect(&self, word: &str, limit: Duration) -> String {
        let begun = Instant::now();
        loop {
            let left = limit.saturating_sub(begun.elapsed());
            let Ok(line) = self.lines.recv_timeout(left) else {
                unreachable!("no {word:?} within {limit:?}, but {:?}", self.seen.borrow());
            };
            let found = line.split(' ').next() == Some(word);
            self.seen.borrow_mut().push(line.clone());
            if found {
                return line;
            }
        }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something holds.
pub(crate) fn wait_for(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}

pub(crate) fn kill(pid: u32) {
    signal(pid, "KILL");
}

pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status();
    assert!(status.expect("kill runs").success());
}

/// A variable of a process's environment; empty if it is not set.
pub(crate) fn variable(pid: u32, name: &str) -> String {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).expect("it runs");
    let environment = String::from_utf8(environment).expect("text");
    let mut variables = environment
        .split('\0')
        .filter_map(|line| line.split_once('='));
    let found = variables.find(|(found, _)| *found == name);
    found.map(|(_, value)| value.to_owned()).unwrap_or_default()
}

/// The first of a hundred ports that no other test uses.
pub(crate) fn free_ports() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Programs of tests that run at the same time begin apart, and a range whose first port is taken is passed over.
    let apart = u16::try_from(std::process::id() % 200).expect("below 200") * 100;
    loop {
        let first = 20_000 + (apart + NEXT.fetch_add(100, Ordering::Relaxed)) % 20_000;
        if UdpSocket::bind(("0.0.0.0", first)).is_ok() {
            return first;
        }
    }
}

/// A port that nobody listens at.
#[cfg(feature = "nats")]
pub(crate) fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("bound").port()
}

fn device_key(device: u32) -> String {
    format!("device key of player number {device}")
}

/// The key that seals the secrets of databases under test: masters that share one have it in common.
pub(crate) const SECRET_KEY: &str =
    "8f0cb8dd3c7d6e5b9a4f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566a";
/// The password with which operators of the masters under test sign in.
pub(crate) const OPERATOR_PASSWORD: &str = "password of an operator";
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Makes those who have a ticket a match for which an earlier leader found no server, and takes the lease away, so that the next leader finds it.
pub(crate) const ORPHANED_MATCH: &str = "
    INSERT INTO matches (match_id, preferences, bots, created_us) SELECT 7, preferences, 0, 0 FROM tickets LIMIT 1;
    INSERT INTO seats (account, match_id) SELECT account, 7 FROM ticket_members;
    DELETE FROM ticket_members;
    DELETE FROM tickets;
    UPDATE leases SET epoch = epoch + 1, holder = 0, until_us = 0;";
