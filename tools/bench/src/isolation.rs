//! Starts a run's programs in a network namespace of their own, with raised priority.
//!
//! With nobody else's traffic on it, the interface's counters hold this run's bytes alone. Nothing here needs a
//! privileged library: `unshare`, `nsenter`, `ip`, `setsid` and `nice` do it, and each replaces itself by the next program, so
//! that the process started is the program measured.

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Stdio};

/// The isolation that this machine offers to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// A network namespace, made with a superuser's rights.
    Namespace,
    /// A network namespace inside a user namespace, where anybody may make one.
    UserNamespace,
    /// None: the machine's own loopback interface.
    Shared,
}

/// The conditions that a run can count on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings {
    isolation: Isolation,
    priority: bool,
}

impl Surroundings {
    /// Neither a namespace nor priority.
    #[cfg(test)]
    pub(crate) const NONE: Self = Self {
        isolation: Isolation::Shared,
        priority: false,
    };

    /// Finds out by trying, and warns of everything that may disturb the figures.
    pub(crate) fn detect() -> Self {
        let isolation = if succeeds(&["unshare", "-n", "ip", "link", "set", "lo", "up"]) {
            Isolation::Namespace
        } else if succeeds(&["unshare", "-r", "-n", "ip", "link", "set", "lo", "up"]) {
            Isolation::UserNamespace
        } else {
            Isolation::Shared
        };
        let priority = succeeds(&[RAISED, &["true"]].concat());
        if isolation == Isolation::Shared {
            eprintln!(
                "warning: no network namespace can be made here: datagrams and bytes include other programs' traffic"
            );
        }
        if !priority {
            eprintln!(
                "warning: the priority cannot be raised here: a busy machine makes tick loops lag (run as root)"
            );
        }
        Self {
            isolation,
            priority,
        }
    }

    /// The command that starts the first program of a run, in a namespace of its own.
    pub(crate) fn first(&self, program: &[impl AsRef<OsStr>]) -> Command {
        const LOOPBACK_UP: &str = "ip link set lo up && exec \"$@\"";
        let prefix = match self.isolation {
            Isolation::Namespace => vec!["unshare", "-n", "sh", "-c", LOOPBACK_UP, "sh"],
            Isolation::UserNamespace => {
                vec!["unshare", "-r", "-n", "sh", "-c", LOOPBACK_UP, "sh"]
            }
            Isolation::Shared => vec![],
        };
        self.command(&prefix, program)
    }

    /// The command that starts a further program in the namespace of the process `first`.
    pub(crate) fn further(&self, first: u32, program: &[impl AsRef<OsStr>]) -> Command {
        let first = first.to_string();
        let prefix = match self.isolation {
            Isolation::Namespace => vec!["nsenter", "-t", &first, "-n"],
            Isolation::UserNamespace => {
                let flags = ["-U", "-n", "--preserve-credentials"];
                [&["nsenter", "-t", &first], &flags[..]].concat()
            }
            Isolation::Shared => vec![],
        };
        self.command(&prefix, program)
    }

    /// Raises a running program above those of other sessions too, where the kernel groups programs by session.
    pub(crate) fn raise(&self, pid: u32) {
        if self.priority {
            // Absent where the kernel does not group them.
            let _ = fs::write(format!("/proc/{pid}/autogroup"), "-20");
        }
    }

    fn command(&self, prefix: &[&str], program: &[impl AsRef<OsStr>]) -> Command {
        let raised: &[&str] = if self.priority { RAISED } else { &[] };
        let mut words = raised
            .iter()
            .chain(prefix)
            .map(OsStr::new)
            .chain(program.iter().map(AsRef::as_ref));
        let mut command = Command::new(words.next().expect("a program has a name"));
        command.args(words);
        command
    }
}

/// Starts a program with the highest priority of ordinary ones. A kernel that groups programs by session weighs
/// priorities within a group only, so it gets a session of its own, whose group [`Surroundings::raise`] raises.
const RAISED: &[&str] = &["setsid", "nice", "-n", "-20"];

/// True if a command can be run and exits with 0 and without complaint: `nice` only complains.
fn succeeds(words: &[&str]) -> bool {
    Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success() && output.stderr.is_empty())
}
