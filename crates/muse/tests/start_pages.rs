//! The programs of the start pages, run as a new user runs them: as processes, with the lines that they print.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use muse::drivers::relay::{Limits, Relay};
use muse::drivers::{Clock, Driver, UdpDriver, UdpOptions};

/// Time that a test waits for what must come; nothing depends on it when all is well.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program of a start page, ended with the test.
struct Program {
    child: Child,
    lines: Receiver<String>,
    input: Option<ChildStdin>,
}

impl Program {
    /// Starts an example in an empty folder of its own, where it keeps its key.
    fn start(example: &str, words: &[&str]) -> Self {
        let here = std::env::current_exe().expect("a test has a file");
        let built = here
            .ancestors()
            .nth(2)
            .expect("below target")
            .join("examples");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("start-{example}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the key");
        let mut child = Command::new(built.join(example))
            .args(words)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("cargo has built the examples");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let input = child.stdin.take();
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            let mut read = output.lines().map_while(Result::ok);
            read.try_for_each(|line| tell.send(line))
        });
        Self {
            child,
            lines,
            input,
        }
    }

    /// Waits for a line with this in it.
    fn expect(&self, part: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).ok();
            let line = line.unwrap_or_else(|| unreachable!("never printed {part:?}"));
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Waits for a line that ends with what another program is given.
    fn expect_line_to_paste(&self, before: &str) -> String {
        let line = self.expect(before);
        line.rsplit(' ').next().unwrap_or_default().to_owned()
    }

    fn type_line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it has not ended");
        writeln!(input, "{line}").expect("it reads what is typed");
    }

    /// Ends what is typed, after which a chat says goodbye.
    fn end_input(&mut self) {
        self.input = None;
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn two_people_chat() {
    let server = Program::start("chat", &["serve", "127.0.0.1:0"]);
    let address = server.expect_line_to_paste("join with");
    let mut ada = Program::start("chat", &["talk", "Ada", &address]);
    ada.expect("Ada: joins");
    let mut bob = Program::start("chat", &["talk", "Bob", &address]);
    ada.expect("Bob: joins");
    bob.expect("Bob: joins");
    bob.type_line("hello");
    ada.expect("Bob: hello");
    ada.type_line("");
    bob.expect("Ada is typing");
    bob.end_input();
    ada.expect("Bob: leaves");
    drop(server);
}

#[test]
fn two_people_play_tag_and_see_each_other() {
    let server = Program::start("tag", &["serve", "127.0.0.1:0"]);
    let address = server.expect_line_to_paste("join with");
    let ada = Program::start("tag", &["play", &address]);
    ada.expect("0 others");
    let bob = Program::start("tag", &["play", &address]);
    ada.expect("1 others");
    bob.expect("1 others");
    ada.expect("it: true");
    drop(bob);
}

#[cfg(feature = "lockstep")]
#[test]
fn two_people_wrestle_with_rollback() {
    let alone = Program::start("sumo", &[]);
    alone.expect("out of the ring: Seat(1)");
    let host = Program::start("sumo", &["host", "127.0.0.1:0"]);
    let address = host.expect_line_to_paste("join with");
    let guest = Program::start("sumo", &["join", &address]);
    guest.expect("out of the ring: Seat(1)");
    host.expect("out of the ring: Seat(1)");
}

#[test]
fn friends_meet_through_a_relay() {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let clock = Clock::start();
        let at = "127.0.0.1:0".parse().expect("an address");
        let mut driver = UdpDriver::bind(at, &UdpOptions::default()).expect("a free port");
        let mut relay = Relay::danger_open(clock.now(), Limits::default(), [7; 32]);
        tell.send(driver.local_addr()).expect("the test waits");
        loop {
            driver
                .poll(clock.now(), &mut relay)
                .expect("the relay runs");
            driver
                .wait(muse::Duration::from_millis(5))
                .expect("the relay runs");
        }
    });
    let relay = told.recv_timeout(PATIENCE).expect("a relay");
    let relay = relay.expect("it is bound").to_string();
    let host = Program::start("friend", &["host", &relay]);
    let code = host.expect_line_to_paste("tell your friend");
    let friend = Program::start("friend", &["join", &relay, &code]);
    friend.expect("1 others");
    host.expect("1 others");
}
