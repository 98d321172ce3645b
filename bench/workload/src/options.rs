//! The command line of every program under test, the same for all.

use std::net::SocketAddr;

/// The role and the workload to run, and how much of it.
///
/// ```
/// use muse_bench_workload::{Options, Role, Workload};
/// let arguments = ["client", "--workload", "w1", "--server", "127.0.0.1:9000", "--clients", "5"];
/// let options = Options::parse(arguments.into_iter().map(String::from)).expect("a valid command line");
/// assert_eq!(options.workload, Workload::ManyClients);
/// assert_eq!(options.clients, 5);
/// assert!(matches!(options.role, Role::Client { .. }));
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// Server or client.
    pub role: Role,
    /// The workload.
    pub workload: Workload,
    /// The server's port; 0 takes any that is free.
    pub port: u16,
    /// Number of clients in the client's process. 500 in W1, otherwise 1.
    pub clients: usize,
    /// Time that W1 and W3 send. 20 s in W1, 60 s in W3.
    pub seconds: u64,
    /// Number of messages that W2 sends. 1,000,000.
    pub messages: u64,
    /// Latency class of reliable channels, for libraries that offer a choice. Empty: the library's default.
    pub mode: String,
}

/// Server or client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Waits for clients.
    Server,
    /// Connects to a server.
    Client {
        /// Address of the server, or of a proxy before it.
        server: SocketAddr,
    },
}

/// The workload to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// W1: many clients, echo.
    ManyClients,
    /// W2: one connection, as fast as back-pressure allows.
    FatPipe,
    /// W3 and W4: 60 reliable messages a second through a bad network; the two differ in the proxy alone.
    BadNetwork,
}

/// An error in a command line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The first argument names no role.
    #[error("the first argument is `server` or `client`, not {0:?}")]
    Role(String),
    /// An argument that does not exist.
    #[error("there is no argument {0:?}")]
    Unknown(String),
    /// An argument without its value, or with one that cannot be read.
    #[error("{name} needs a value such as {example}")]
    Value {
        /// The argument.
        name: &'static str,
        /// A value that would be right.
        example: &'static str,
    },
    /// A required argument is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
}

impl Options {
    /// Reads a command line, without the program's name.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, OptionsError> {
        let role = arguments.next().unwrap_or_default();
        let (mut workload, mut server, mut port) = (None, None, 0);
        let (mut clients, mut seconds, mut messages) = (None, None, 1_000_000);
        let mut mode = String::new();
        while let Some(name) = arguments.next() {
            let value = arguments.next().unwrap_or_default();
            match name.as_str() {
                "--workload" => workload = Some(Workload::parse(&value)?),
                "--server" => server = Some(parsed(&value, "--server", "127.0.0.1:9000")?),
                "--port" => port = parsed(&value, "--port", "9000")?,
                "--clients" => clients = Some(parsed(&value, "--clients", "500")?),
                "--seconds" => seconds = Some(parsed(&value, "--seconds", "20")?),
                "--messages" => messages = parsed(&value, "--messages", "1000000")?,
                "--mode" => mode = value,
                _ => return Err(OptionsError::Unknown(name)),
            }
        }
        let workload = workload.ok_or(OptionsError::Missing("--workload"))?;
        let many = workload == Workload::ManyClients;
        Ok(Self {
            role: match role.as_str() {
                "server" => Role::Server,
                "client" => Role::Client {
                    server: server.ok_or(OptionsError::Missing("--server"))?,
                },
                _ => return Err(OptionsError::Role(role)),
            },
            workload,
            port,
            clients: clients.unwrap_or(if many { 500 } else { 1 }),
            seconds: seconds.unwrap_or(if many { 20 } else { 60 }),
            messages,
            mode,
        })
    }
}

impl Workload {
    fn parse(value: &str) -> Result<Self, OptionsError> {
        match value {
            "w1" => Ok(Self::ManyClients),
            "w2" => Ok(Self::FatPipe),
            "w3" | "w4" => Ok(Self::BadNetwork),
            _ => Err(OptionsError::Value {
                name: "--workload",
                example: "w1, w2, w3 or w4",
            }),
        }
    }
}

fn parsed<T: std::str::FromStr>(
    value: &str,
    name: &'static str,
    example: &'static str,
) -> Result<T, OptionsError> {
    value
        .parse()
        .map_err(|_| OptionsError::Value { name, example })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, OptionsError> {
        Options::parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn each_workload_has_its_own_size() {
        let many = parse("server --workload w1").expect("valid");
        assert_eq!((many.clients, many.seconds), (500, 20));
        let bad = parse("server --workload w4").expect("valid");
        assert_eq!((bad.clients, bad.seconds), (1, 60));
        let pipe = parse("server --workload w2").expect("valid");
        assert_eq!(pipe.messages, 1_000_000);
    }

    #[test]
    fn mistakes_are_named() {
        let message = |line| parse(line).expect_err("invalid").to_string();
        assert!(message("serve --workload w1").contains("serve"));
        assert!(message("server").contains("--workload"));
        assert!(message("client --workload w1").contains("--server"));
        assert!(message("server --workload w1 --port x").contains("--port"));
        assert!(message("server --workload w1 --ports 1").contains("--ports"));
    }
}
