//! A PostgreSQL server of a test's own, from the system's package, in a temporary folder, as an unprivileged user.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// The server; it ends with the value.
pub(crate) struct Postgres {
    folder: tempfile::TempDir,
    programs: PathBuf,
    port: u16,
}

impl Postgres {
    /// Makes an empty cluster and starts it.
    pub(crate) fn start() -> Self {
        let versions = std::fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed");
        let newest = versions.flatten().map(|entry| entry.path()).max();
        let programs = newest.expect("a version of PostgreSQL").join("bin");
        let folder = tempfile::tempdir().expect("a folder");
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let server = Self {
            folder,
            programs,
            port: port.expect("a free port").port(),
        };
        if is_root() {
            let mut owner = Command::new("chown");
            let given = owner.arg("postgres").arg(server.folder.path()).status();
            assert!(given.expect("chown runs").success());
        }
        let data = server.data();
        server.run(
            "initdb",
            &[
                "--auth=trust",
                "--username=muse",
                // Not the order of bytes: texts must compare in every database as they do in SQLite.
                "--locale-provider=icu",
                "--icu-locale=en-US",
                "--locale=C.UTF-8",
                "--encoding=UTF8",
                "--no-sync",
                "-D",
                &data,
            ],
        );
        server.start_again();
        server
    }

    /// Stops it at once, as a crash would; what was committed is on the disk.
    pub(crate) fn stop(&self) {
        self.run("pg_ctl", &["stop", "-m", "immediate", "-D", &self.data()]);
    }

    /// Starts it again.
    pub(crate) fn start_again(&self) {
        // Without waiting for the disk: these tests end processes and not machines.
        let options = format!(
            "-p {} -c fsync=off -c listen_addresses=127.0.0.1 -c unix_socket_directories={}",
            self.port,
            self.folder.path().display()
        );
        let log = self.folder.path().join("log").display().to_string();
        self.run(
            "pg_ctl",
            &[
                "start",
                "-w",
                "-D",
                &self.data(),
                "-l",
                &log,
                "-o",
                &options,
            ],
        );
    }

    /// A fresh database.
    pub(crate) fn database(&self, name: &str) -> String {
        let port = self.port.to_string();
        self.run(
            "createdb",
            &["-h", "127.0.0.1", "-p", &port, "-U", "muse", name],
        );
        format!("postgres://muse@127.0.0.1:{port}/{name}")
    }

    /// Starts it again with a certificate.
    pub(crate) fn encrypt(&self, certificate: &str, key: &str) {
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            let path = self.folder.path().join("data").join(name);
            std::fs::write(&path, text).expect("written");
            let owned = Command::new("chown")
                .args(["--reference", &self.data()])
                .arg(&path)
                .status();
            assert!(owned.expect("chown runs").success());
            let private = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(&path, private).expect("set");
        }
        self.ask("postgres", "ALTER SYSTEM SET ssl = on");
        // In order, because a crash of many databases takes long to recover from.
        self.run("pg_ctl", &["stop", "-m", "fast", "-D", &self.data()]);
        self.start_again();
    }

    /// Runs a query and returns its result as text.
    pub(crate) fn ask(&self, name: &str, sql: &str) -> String {
        let port = self.port.to_string();
        let output = Command::new(self.programs.join("psql"))
            .args([
                "-h",
                "127.0.0.1",
                "-p",
                &port,
                "-U",
                "muse",
                "-d",
                name,
                "-Atc",
                sql,
            ])
            .output()
            .expect("psql runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Takes an advisory lock as soon as a query counts so many, and holds it until it is dropped.
    pub(crate) fn hold(&self, name: &str, count: &str, reached: u32, lock: i64) -> Held {
        let port = self.port.to_string();
        let script = format!(
            "DO $$ BEGIN WHILE ({count}) < {reached} LOOP PERFORM pg_sleep(0.002); END LOOP;
             PERFORM pg_advisory_lock({lock}); END $$;
             \\echo held\n"
        );
        let mut child = Command::new(self.programs.join("psql"))
            .args(["-h", "127.0.0.1", "-p", &port, "-U", "muse", "-d", name])
            .args(["-AtqX", "-v", "ON_ERROR_STOP=1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("psql runs");
        let mut input = child.stdin.take().expect("piped");
        input.write_all(script.as_bytes()).expect("written");
        let mut output = BufReader::new(child.stdout.take().expect("piped")).lines();
        let line = output.next().expect("the lock is had").expect("text");
        assert_eq!(line, "held");
        Held {
            child,
            _input: input,
        }
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let program = self.programs.join(program);
        let mut command = unprivileged(&program);
        let status = command
            .args(arguments)
            .current_dir(self.folder.path())
            .stdout(Stdio::null())
            .status();
        assert!(status.expect("it runs").success(), "{}", program.display());
    }
}

/// A session that holds a lock.
pub(crate) struct Held {
    child: Child,
    /// Its end would be the session's.
    _input: ChildStdin,
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let mut command = unprivileged(&self.programs.join("pg_ctl"));
        let _ = command
            .args(["stop", "-m", "immediate", "-D", &self.data()])
            .current_dir(self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

/// PostgreSQL refuses to run as root.
fn unprivileged(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid=postgres",
            "--regid=postgres",
            "--clear-groups",
            "--",
        ])
        .arg(program);
    command
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|this| this.uid() == 0)
}
