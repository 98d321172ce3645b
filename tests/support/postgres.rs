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
    /// True if the folder is a disk of its own.
    has_disk: bool,
}

impl Postgres {
    /// Makes an empty cluster and starts it.
    pub(crate) fn start() -> Self {
        Self::start_on(None)
    }

    /// The same on a disk of so many megabytes; on the system's if there may be none.
    pub(crate) fn start_on(megabytes: Option<u32>) -> Self {
        let server = Self::place(megabytes);
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

    /// A folder, a port and nothing else.
    fn place(megabytes: Option<u32>) -> Self {
        let versions = std::fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed");
        let newest = versions.flatten().map(|entry| entry.path()).max();
        let programs = newest.expect("a version of PostgreSQL").join("bin");
        let folder = tempfile::tempdir().expect("a folder");
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let has_disk = megabytes.is_some_and(|size| mount(folder.path(), size));
        if is_root() {
            let mut owner = Command::new("chown");
            let given = owner.arg("postgres").arg(folder.path()).status();
            assert!(given.expect("chown runs").success());
        }
        Self {
            folder,
            programs,
            port: port.expect("a free port").port(),
            has_disk,
        }
    }

    /// A standby of the primary that is reached at this port, which follows it from now on.
    pub(crate) fn start_standby(primary: u16, megabytes: Option<u32>) -> Self {
        let server = Self::place(megabytes);
        server.copy_from(primary, true);
        server.start_again();
        server
    }

    /// Another server with everything that the one at this port has, taken by `pg_basebackup` while that one goes on.
    pub(crate) fn start_from_backup(primary: u16) -> Self {
        let server = Self::place(None);
        server.copy_from(primary, false);
        server.start_again();
        server
    }

    fn copy_from(&self, port: u16, follows: bool) {
        let (port, data) = (port.to_string(), self.data());
        let mut arguments = vec!["-h", "127.0.0.1", "-p", &port, "-U", "muse", "-D", &data];
        arguments.extend(["-X", "stream", "-c", "fast", "--no-sync"]);
        if follows {
            arguments.push("-R");
        }
        self.run("pg_basebackup", &arguments);
    }

    /// Makes a standby the primary.
    pub(crate) fn promote(&self) {
        self.run("pg_ctl", &["promote", "-w", "-D", &self.data()]);
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The disk of its own, if it has one.
    pub(crate) fn disk(&self) -> Option<&Path> {
        self.has_disk.then(|| self.folder.path())
    }

    /// Its log.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// All of its processes.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let file = std::fs::read_to_string(self.pid_file());
        let first = file.ok().and_then(|text| text.lines().next()?.parse().ok());
        let Some(parent): Option<u32> = first else {
            return Vec::new();
        };
        let processes = std::fs::read_dir("/proc").expect("Linux").flatten();
        let mark = format!("PPid:\t{parent}");
        let own = processes
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid: &u32| {
                let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
                let status = status.unwrap_or_default();
                let has = |line: &str| status.lines().any(|found| found.starts_with(line));
                // One that has ended and that nobody has waited for yet is gone; a file that was left behind may name anybody.
                let is_alive = has("Name:\tpostgres") && !has("State:\tZ");
                is_alive && (*pid == parent || status.lines().any(|line| line == mark))
            });
        own.collect()
    }

    /// Kills all of its processes, and forgets that they were.
    pub(crate) fn kill(&self) {
        while let pids = self.pids()
            && !pids.is_empty()
        {
            for pid in pids {
                let mut kill = Command::new("kill");
                let _ = kill.args(["-KILL", &pid.to_string()]).status();
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        // While nobody has waited for the process that these name, another one would take it for alive.
        let lock = format!(".s.PGSQL.{}.lock", self.port);
        for file in [self.pid_file(), self.folder.path().join(lock)] {
            let _ = std::fs::remove_file(file);
        }
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.path().join("data/postmaster.pid")
    }

    /// Stops it at once, as a crash would; what was committed is on the disk.
    pub(crate) fn stop(&self) {
        self.run("pg_ctl", &["stop", "-m", "immediate", "-D", &self.data()]);
    }

    /// Starts it again.
    pub(crate) fn start_again(&self) {
        // Without waiting for the disk: these tests end processes and not machines.
        let options = format!(
            "-p {} -c fsync=off -c listen_addresses=127.0.0.1 -c unix_socket_directories={}{}",
            self.port,
            self.folder.path().display(),
            match self.has_disk {
                true => " -c max_wal_size=64MB -c min_wal_size=32MB",
                false => "",
            }
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
        let answer = self.try_ask(name, sql);
        answer.unwrap_or_else(|error| unreachable!("{error}"))
    }

    /// The same, or why there is none.
    pub(crate) fn try_ask(&self, name: &str, sql: &str) -> Result<String, String> {
        let port = self.port.to_string();
        let output = Command::new(self.programs.join("psql"))
            .env("PGCONNECT_TIMEOUT", "5")
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
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Writes a database as text, with `pg_dump`.
    pub(crate) fn dump(&self, name: &str, file: &Path) {
        let (port, file) = (self.port.to_string(), file.display().to_string());
        let dump = Command::new(self.programs.join("pg_dump"))
            .args([
                "-h",
                "127.0.0.1",
                "-p",
                &port,
                "-U",
                "muse",
                "-f",
                &file,
                name,
            ])
            .status();
        assert!(dump.expect("pg_dump runs").success());
    }

    /// Reads what [`dump`](Self::dump) wrote into a fresh database.
    pub(crate) fn restore(&self, name: &str, file: &Path) -> String {
        let url = self.database(name);
        let file = file.display().to_string();
        let restored = Command::new(self.programs.join("psql"))
            .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", &url, "-f", &file])
            .stdout(Stdio::null())
            .status();
        assert!(restored.expect("psql runs").success());
        url
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
        if self.has_disk {
            let folder = self.folder.path();
            let _ = Command::new("umount").arg("-l").arg(folder).status();
        }
    }
}

/// Makes a folder a disk of its own. False if this user or this machine may not.
fn mount(folder: &Path, megabytes: u32) -> bool {
    let size = format!("size={megabytes}m,mode=700");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
        .arg(folder)
        .stderr(Stdio::null())
        .status();
    mounted.is_ok_and(|status| status.success())
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
