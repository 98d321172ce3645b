//! The address of a server as one line of text: where it is and the key that proves it is the right one.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use muse_transport::ServerPublicKey;
use thiserror::Error;

/// A server's host, port and public key: all that a client needs, as one line that a player can paste.
///
/// The text is `muse://HOST:PORT/KEY`. The host is a name, an IPv4 address, or an IPv6 address in brackets; the key is the 64
/// hexadecimal digits of [`ServerPublicKey`]. A client that connects by it talks to the holder of that key or to nobody.
///
/// ```
/// use muse::{ServerAddress, ServerPublicKey};
///
/// let key = ServerPublicKey::from_bytes([7; 32]);
/// let address = ServerAddress::new("play.example.com", 7000, key)?;
/// let text = address.to_string();
/// assert_eq!(text, format!("muse://play.example.com:7000/{key}"));
/// assert_eq!(text.parse(), Ok(address));
/// # Ok::<(), muse::InvalidServerAddress>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerAddress {
    host: Host,
    port: u16,
    key: ServerPublicKey,
}

impl ServerAddress {
    /// Puts an address together; the host is a name or an IP address, with or without brackets.
    pub fn new(host: &str, port: u16, key: ServerPublicKey) -> Result<Self, InvalidServerAddress> {
        if port == 0 {
            return Err(InvalidServerAddress::Port("0".into()));
        }
        let host = Host::parse(host)?;
        Ok(Self { host, port, key })
    }

    /// Returns the host as the operating system's resolver takes it: an IPv6 address without brackets.
    pub fn host(&self) -> String {
        match &self.host {
            Host::Name(name) => name.clone(),
            Host::V4(ip) => ip.to_string(),
            Host::V6(ip) => ip.to_string(),
        }
    }

    /// Returns the UDP port, which is never 0.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the key that the server must prove to hold.
    pub fn key(&self) -> ServerPublicKey {
        self.key
    }

    /// Returns the socket's address if the host is an IP address, and `None` if it is a name that must be looked up.
    pub fn socket_addr(&self) -> Option<SocketAddr> {
        match &self.host {
            Host::Name(_) => None,
            Host::V4(ip) => Some(SocketAddr::from((*ip, self.port))),
            Host::V6(ip) => Some(SocketAddr::from((*ip, self.port))),
        }
    }

    /// Looks the host up, which may wait for the network, and returns its addresses in the resolver's order: at least one.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn resolve(&self) -> std::io::Result<Vec<SocketAddr>> {
        use std::net::ToSocketAddrs;
        let host = self.host();
        let addresses: Vec<SocketAddr> = (host.as_str(), self.port).to_socket_addrs()?.collect();
        if addresses.is_empty() {
            let text = format!("{host} has no address");
            return Err(std::io::Error::new(std::io::ErrorKind::NotFound, text));
        }
        Ok(addresses)
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => write!(f, "{SCHEME}{name}")?,
            Host::V4(ip) => write!(f, "{SCHEME}{ip}")?,
            Host::V6(ip) => write!(f, "{SCHEME}[{ip}]")?,
        }
        write!(f, ":{}/{}", self.port, self.key)
    }
}

impl FromStr for ServerAddress {
    type Err = InvalidServerAddress;

    /// Reads the text form. White space around it is ignored, because pasted lines have some.
    fn from_str(text: &str) -> Result<Self, InvalidServerAddress> {
        let text = text.trim();
        if text.len() > TEXT_BYTES_MAX {
            return Err(InvalidServerAddress::TooLong);
        }
        let rest = text
            .strip_prefix(SCHEME)
            .ok_or(InvalidServerAddress::Scheme)?;
        let (place, key) = rest.split_once('/').ok_or(InvalidServerAddress::NoKey)?;
        // In an IPv6 address only what follows the bracket is the port.
        let bracket = place.rfind(']').map_or(0, |at| at + 1);
        let (host, port) = match place[bracket..].rfind(':') {
            Some(colon) => (&place[..bracket + colon], &place[bracket + colon + 1..]),
            None => return Err(InvalidServerAddress::NoPort),
        };
        if host.contains(':') && !host.starts_with('[') {
            return Err(InvalidServerAddress::Brackets(host.into()));
        }
        // `u16::from_str` would take a sign.
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = match port.parse::<u16>() {
            Ok(number) if digits => number,
            _ => return Err(InvalidServerAddress::Port(port.into())),
        };
        // A browser or a chat adds a slash at the end.
        let key = key.strip_suffix('/').unwrap_or(key);
        if key.is_empty() {
            return Err(InvalidServerAddress::NoKey);
        }
        let key = key
            .parse()
            .map_err(|_| InvalidServerAddress::Key { digits: key.len() })?;
        Self::new(host, port, key)
    }
}

/// The reason why a text is not a [`ServerAddress`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidServerAddress {
    /// The text does not begin with `muse://`.
    #[error("a server's address begins with {SCHEME}, as in {EXAMPLE}")]
    Scheme,
    /// The host is missing.
    #[error("the host is missing: {EXAMPLE}")]
    NoHost,
    /// The host is neither a name nor an IP address.
    #[error("`{0}` is neither a host name nor an IP address")]
    Host(String),
    /// An IPv6 address stands without brackets, so that its end and the port cannot be told apart.
    #[error("`{0}` looks like an IPv6 address, which stands in brackets: muse://[::1]:7000/KEY")]
    Brackets(String),
    /// The port is missing.
    #[error("the port is missing after the host: {EXAMPLE}")]
    NoPort,
    /// The port is no number from 1 to 65535.
    #[error("`{0}` is not a port: a number from 1 to 65535")]
    Port(String),
    /// The key is missing.
    #[error("the server's key is missing at the end: {EXAMPLE}")]
    NoKey,
    /// The key is not 64 hexadecimal digits.
    #[error(
        "the key after the port must be 64 hexadecimal digits; this one has {digits} characters"
    )]
    Key {
        /// The number of bytes that stand in the key's place.
        digits: usize,
    },
    /// The text is longer than any address.
    #[error("this is longer than any server's address")]
    TooLong,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Host {
    Name(String),
    V4(Ipv4Addr),
    V6(Ipv6Addr),
}

impl Host {
    fn parse(text: &str) -> Result<Self, InvalidServerAddress> {
        let invalid = || InvalidServerAddress::Host(text.chars().take(NAME_BYTES_MAX).collect());
        if text.is_empty() {
            return Err(InvalidServerAddress::NoHost);
        }
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or_else(invalid)?;
            return inner.parse().map(Self::V6).map_err(|_| invalid());
        }
        if let Ok(ip) = text.parse() {
            return Ok(Self::V4(ip));
        }
        if let Ok(ip) = text.parse() {
            return Ok(Self::V6(ip));
        }
        // Underscores are no part of host names, but local networks use them.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_name = text.len() <= NAME_BYTES_MAX
            && text.bytes().all(plain)
            && !text.starts_with(['.', '-'])
            && !text.contains("..")
            // A resolver would read it as an old-style IPv4 address such as 127.1.
            && !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        if !is_name {
            return Err(invalid());
        }
        Ok(Self::Name(text.to_ascii_lowercase()))
    }
}

const SCHEME: &str = "muse://";
const EXAMPLE: &str = "muse://HOST:PORT/KEY";
/// Longest host name (RFC 1035).
const NAME_BYTES_MAX: usize = 253;
/// Longest text that is looked at: a name, a port, a key and what stands between.
const TEXT_BYTES_MAX: usize = NAME_BYTES_MAX + 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ServerPublicKey {
        ServerPublicKey::from_bytes(core::array::from_fn(|index| index as u8))
    }

    fn parse(text: &str) -> Result<ServerAddress, InvalidServerAddress> {
        text.replace("KEY", &key().to_string()).parse()
    }

    #[test]
    fn every_kind_of_host_comes_back_as_it_was() {
        for (text, host, is_ip) in [
            (
                "muse://play.example.com:7000/KEY",
                "play.example.com",
                false,
            ),
            ("muse://localhost:1/KEY", "localhost", false),
            ("muse://203.0.113.7:65535/KEY", "203.0.113.7", true),
            ("muse://[2001:db8::7]:7000/KEY", "2001:db8::7", true),
            ("muse://[::]:7000/KEY", "::", true),
        ] {
            let address = parse(text).expect(text);
            assert_eq!(address.host(), host);
            assert_eq!(address.key(), key());
            assert_eq!(address.socket_addr().is_some(), is_ip, "{text}");
            assert_eq!(address.to_string(), text.replace("KEY", &key().to_string()));
        }
    }

    #[test]
    fn an_address_is_read_as_people_paste_it() {
        let plain = parse("muse://play.example.com:7000/KEY");
        assert_eq!(parse("  muse://play.example.com:7000/KEY\n"), plain);
        assert_eq!(parse("muse://PLAY.example.com:7000/KEY/"), plain);
        let bare = ServerAddress::new("::1", 7000, key()).expect("an address");
        assert_eq!(parse("muse://[::1]:7000/KEY"), Ok(bare));
    }

    #[test]
    fn an_error_says_which_part_is_wrong() {
        use InvalidServerAddress::*;
        for (text, error) in [
            ("", Scheme),
            ("play.example.com:7000", Scheme),
            ("https://play.example.com:7000/KEY", Scheme),
            ("muse://play.example.com:7000", NoKey),
            ("muse://play.example.com:7000/", NoKey),
            ("muse://play.example.com:7000/12ab", Key { digits: 4 }),
            ("muse://play.example.com:7000/KEY0", Key { digits: 65 }),
            ("muse://play.example.com/KEY", NoPort),
            ("muse://[::1]/KEY", NoPort),
            ("muse://play.example.com:/KEY", Port(String::new())),
            ("muse://play.example.com:0/KEY", Port("0".into())),
            ("muse://play.example.com:+7/KEY", Port("+7".into())),
            ("muse://play.example.com:65536/KEY", Port("65536".into())),
            ("muse://:7000/KEY", NoHost),
            ("muse://::1:7000/KEY", Brackets("::1".into())),
            ("muse://[::1:7000/KEY", Host("[::1".into())),
            ("muse://[play]:7000/KEY", Host("[play]".into())),
            ("muse://player@home:7000/KEY", Host("player@home".into())),
            ("muse://127.1:7000/KEY", Host("127.1".into())),
            ("muse://a..b:7000/KEY", Host("a..b".into())),
        ] {
            assert_eq!(parse(text), Err(error), "{text}");
        }
        let long = format!("muse://{}:7000/KEY", "a".repeat(500));
        assert_eq!(parse(&long), Err(TooLong));
    }

    #[test]
    fn no_bytes_make_the_parser_panic() {
        for text in [
            "muse://[]:1/KEY",
            "muse://]:1/KEY",
            "muse://é:1/é",
            "muse:///KEY",
            "muse://[é",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    #[test]
    fn an_ip_address_needs_no_lookup() {
        let address = parse("muse://[::1]:7000/KEY").expect("an address");
        let expected: SocketAddr = "[::1]:7000".parse().expect("an address");
        assert_eq!(address.resolve().expect("no lookup"), [expected]);
        assert_eq!(address.socket_addr(), Some(expected));
    }
}
