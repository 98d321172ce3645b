//! The address of a master.

use std::fmt;
use std::io;
use std::str::FromStr;

/// The address of a master, read from `https://play.example.com`, `http://`, `wss://`, `ws://`, or host and port alone, which stand for
/// `http://`. A missing port is 443 with TLS and 80 without.
///
/// ```
/// use muse_drivers::MasterAddress;
/// let address: MasterAddress = "https://play.example.com".parse()?;
/// assert_eq!(address.to_string(), "https://play.example.com:443");
/// assert!("https://play.example.com/lobby".parse::<MasterAddress>().is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterAddress {
    is_secure: bool,
    /// Without brackets.
    host: String,
    port: u16,
}

impl MasterAddress {
    /// Reads several addresses with commas between.
    pub fn parse_list(text: &str) -> io::Result<Vec<Self>> {
        text.split(',').map(|part| part.trim().parse()).collect()
    }

    /// Returns true if the connection uses TLS.
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Returns the host's name or IP address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns host and port as a URL has them.
    pub(super) fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl FromStr for MasterAddress {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Self> {
        let invalid = || {
            let message =
                format!("{text:?} is not a master's address such as https://play.example.com");
            io::Error::new(io::ErrorKind::InvalidInput, message)
        };
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let is_secure = match scheme {
            "http" | "ws" => false,
            "https" | "wss" => true,
            _ => return Err(invalid()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or_else(invalid)?;
                (host, rest.strip_prefix(':'))
            }
            None => match rest.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            },
        };
        let port = match port {
            Some(port) => port.parse().map_err(|_| invalid())?,
            None if is_secure => 443,
            None => 80,
        };
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
        if host.is_empty() || !host.chars().all(is_host) {
            return Err(invalid());
        }
        Ok(Self {
            is_secure,
            host: host.to_owned(),
            port,
        })
    }
}

impl fmt::Display for MasterAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() -> io::Result<()> {
        for (text, same) in [
            ("https://play.example.com", "https://play.example.com:443"),
            (
                "wss://play.example.com:8443/",
                "https://play.example.com:8443",
            ),
            ("ws://127.0.0.1:7777", "http://127.0.0.1:7777"),
            ("http://localhost", "http://localhost:80"),
            ("127.0.0.1:7777", "http://127.0.0.1:7777"),
            ("http://[::1]:7777", "http://[::1]:7777"),
        ] {
            assert_eq!(text.parse::<MasterAddress>()?.to_string(), same);
        }
        let both = MasterAddress::parse_list("ws://10.0.0.1:7777,ws://10.0.0.2:7777")?;
        assert_eq!(both.len(), 2);
        assert_eq!(both[1].host(), "10.0.0.2");
        Ok(())
    }

    #[test]
    fn what_is_no_address_is_an_error_that_names_it() {
        for text in [
            "",
            "ftp://host",
            "https://",
            "host:99999",
            "http://a/b",
            "http://a b",
            "[::1",
        ] {
            let error = text.parse::<MasterAddress>().expect_err("no address");
            assert!(
                error.to_string().contains("is not a master's address"),
                "{text}"
            );
        }
    }
}
