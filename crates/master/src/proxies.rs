//! Proxies in front of a master: who they are, and for whom they speak.
//!
//! Limits by address need the client's, and behind a proxy every connection comes from the proxy's. There are two ways in which it names the client:
//! a header of PROXY protocol before anything else on a connection, or `X-Forwarded-For` with each request. What anybody else says of this kind is not
//! believed, or every client could have any address it liked.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use axum::http::HeaderMap;
use ipnet::IpNet;
use ppp::v2::{Addresses, Command, Header};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The network of proxies that name their clients, such as `10.0.0.0/8`, `2001:db8::/32` or one address.
///
/// ```
/// use muse_master::TrustedProxy;
///
/// let proxies: TrustedProxy = "10.0.0.0/8".parse()?;
/// assert_eq!(proxies.to_string(), "10.0.0.0/8");
/// assert!("10.0.0.0/33".parse::<TrustedProxy>().is_err());
/// # Ok::<(), muse_master::NoNetwork>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrustedProxy(IpNet);

/// A text is no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("neither an address nor a network such as 10.0.0.0/8")]
pub struct NoNetwork;

impl FromStr for TrustedProxy {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let network = text.parse::<IpNet>().ok();
        let network = network.or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        network.map(Self).ok_or(NoNetwork)
    }
}

impl fmt::Display for TrustedProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The proxies of a master, and how they name their clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies {
    pub(crate) trusted: Vec<TrustedProxy>,
    /// By PROXY protocol, and not by a header of HTTP.
    pub(crate) by_connection: bool,
}

impl Proxies {
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.trusted.iter().any(|proxy| proxy.0.contains(&address))
    }

    /// True if a connection from there begins with a header of PROXY protocol.
    pub(crate) fn expects_header(&self, peer: SocketAddr) -> bool {
        self.by_connection && self.trusts(peer.ip())
    }

    /// Returns the client of a request: the last address in `X-Forwarded-For` that is no proxy's, if the connection is a proxy's. What stands before it the
    /// client may have written itself.
    pub(crate) fn client(&self, peer: SocketAddr, headers: &HeaderMap) -> SocketAddr {
        let mut client = peer;
        if self.by_connection || !self.trusts(peer.ip()) {
            return client;
        }
        for line in headers.get_all(FORWARDED_FOR).iter().rev() {
            for name in line.to_str().unwrap_or_default().rsplit(',') {
                // A name that is no address ends what can be believed.
                let Some(named) = address(name.trim()) else {
                    return client;
                };
                client = named;
                if !self.trusts(named.ip()) {
                    return client;
                }
            }
        }
        client
    }
}

/// Reads a header of PROXY protocol, version 2. Returns the client's address; none if the proxy speaks for itself, as in its own health checks.
pub(crate) async fn read_header(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<SocketAddr>> {
    let mut bytes = vec![0; FIXED_LEN];
    stream.read_exact(&mut bytes).await?;
    let invalid = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    if !bytes.starts_with(ppp::v2::PROTOCOL_PREFIX) {
        return Err(invalid("no header of PROXY protocol, version 2"));
    }
    let len = usize::from(u16::from_be_bytes([
        bytes[FIXED_LEN - 2],
        bytes[FIXED_LEN - 1],
    ]));
    if len > MORE_MAX {
        return Err(invalid("a header of PROXY protocol that is too long"));
    }
    bytes.resize(FIXED_LEN + len, 0);
    stream.read_exact(&mut bytes[FIXED_LEN..]).await?;
    let header = Header::try_from(&bytes[..]);
    let header = header.map_err(|_| invalid("a damaged header of PROXY protocol"))?;
    Ok(match (header.command, header.addresses) {
        (Command::Local, _) => None,
        (Command::Proxy, Addresses::IPv4(it)) => Some((it.source_address, it.source_port).into()),
        (Command::Proxy, Addresses::IPv6(it)) => Some((it.source_address, it.source_port).into()),
        (Command::Proxy, _) => None,
    })
}

/// An address with or without a port, which some proxies add.
fn address(text: &str) -> Option<SocketAddr> {
    let with_port = text.parse::<SocketAddr>().ok();
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    with_port.or_else(|| bare.parse::<IpAddr>().ok().map(|ip| (ip, 0).into()))
}

const FORWARDED_FOR: &str = "x-forwarded-for";
/// The signature, the command, the family and the length of what follows.
const FIXED_LEN: usize = 16;
/// Longest rest of a header: two addresses, and what a proxy tells besides, which is less than 300 bytes.
const MORE_MAX: usize = 2_048;

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(by_connection: bool) -> Proxies {
        let trusted = ["10.0.0.0/8", "2001:db8::1"];
        Proxies {
            trusted: trusted
                .map(|text| text.parse().expect("a network"))
                .to_vec(),
            by_connection,
        }
    }

    fn client(proxies: &Proxies, peer: &str, lines: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, line.parse().expect("a value"));
        }
        let peer = peer.parse().expect("an address");
        proxies.client(peer, &headers).ip().to_string()
    }

    #[test]
    fn the_client_is_the_last_that_no_proxy_is() {
        let proxies = proxies(false);
        for (peer, lines, expected) in [
            // Nobody but a proxy is believed.
            ("192.0.2.9:1", &["198.51.100.1"][..], "192.0.2.9"),
            ("[2001:db8::2]:1", &["198.51.100.1"], "2001:db8::2"),
            ("10.1.1.1:1", &[], "10.1.1.1"),
            ("10.1.1.1:1", &["198.51.100.1"], "198.51.100.1"),
            ("[::ffff:10.1.1.1]:1", &["198.51.100.1"], "198.51.100.1"),
            ("[2001:db8::1]:1", &["2001:db8::7"], "2001:db8::7"),
            // What the client wrote stands before what its proxy found.
            ("10.1.1.1:1", &["127.0.0.1, 198.51.100.1"], "198.51.100.1"),
            ("10.1.1.1:1", &["127.0.0.1", "198.51.100.1"], "198.51.100.1"),
            ("10.1.1.1:1", &["198.51.100.1, 10.2.2.2"], "198.51.100.1"),
            ("10.1.1.1:1", &["198.51.100.1", "10.2.2.2"], "198.51.100.1"),
            ("10.1.1.1:1", &["10.3.3.3, 10.2.2.2"], "10.3.3.3"),
            ("10.1.1.1:1", &["198.51.100.1:4711"], "198.51.100.1"),
            ("10.1.1.1:1", &["[2001:db8::7]:4711"], "2001:db8::7"),
            ("10.1.1.1:1", &["[2001:db8::7]"], "2001:db8::7"),
            ("10.1.1.1:1", &["198.51.100.1, unknown"], "10.1.1.1"),
            (
                "10.1.1.1:1",
                &["198.51.100.1, unknown, 10.2.2.2"],
                "10.2.2.2",
            ),
            ("10.1.1.1:1", &[","], "10.1.1.1"),
        ] {
            assert_eq!(client(&proxies, peer, lines), expected, "{peer} {lines:?}");
        }
    }

    #[test]
    fn with_proxy_protocol_headers_of_http_count_for_nothing() {
        let proxies = proxies(true);
        assert_eq!(
            client(&proxies, "10.1.1.1:1", &["198.51.100.1"]),
            "10.1.1.1"
        );
        assert!(proxies.expects_header("10.1.1.1:1".parse().expect("an address")));
        assert!(!proxies.expects_header("192.0.2.9:1".parse().expect("an address")));
    }

    const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

    async fn read(rest: &[u8]) -> Result<Option<String>, io::ErrorKind> {
        let bytes = [SIGNATURE, rest].concat();
        let read = read_header(&mut &bytes[..]).await;
        read.map(|found| found.map(|it| it.to_string()))
            .map_err(|error| error.kind())
    }

    #[tokio::test]
    async fn a_header_of_proxy_protocol_names_the_client() {
        let v4 = [198, 51, 100, 1, 192, 0, 2, 1, 0x12, 0x67, 0x01, 0xbb];
        let named = "198.51.100.1:4711".to_owned();
        let proxied = [&[0x21, 0x11, 0, 12][..], &v4].concat();
        assert_eq!(read(&proxied).await, Ok(Some(named.clone())));
        let more = [&[0x21, 0x11, 0, 17][..], &v4, &[4, 0, 2, 0, 0]].concat();
        assert_eq!(read(&more).await, Ok(Some(named)));
        let mut v6 = [0; 36];
        v6[15] = 1;
        v6[33] = 9;
        let proxied = [&[0x21, 0x21, 0, 36][..], &v6].concat();
        assert_eq!(read(&proxied).await, Ok(Some("[::1]:9".to_owned())));
        // The proxy itself asks whether the master is there.
        assert_eq!(read(&[0x20, 0, 0, 0]).await, Ok(None));
    }

    #[tokio::test]
    async fn what_is_no_header_is_an_error() {
        use io::ErrorKind::{InvalidData, UnexpectedEof};
        for (rest, expected) in [
            (&[0x21, 0x11, 0, 12, 1, 2][..], UnexpectedEof),
            (&[0x21, 0x11, 0xff, 0xff], InvalidData),
            (&[0x31, 0x11, 0, 0], InvalidData),
            (&[0x21, 0x11, 0, 4, 1, 2, 3, 4], InvalidData),
        ] {
            assert_eq!(read(rest).await, Err(expected), "{rest:?}");
        }
        let mut request = &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..];
        let error = read_header(&mut request).await.expect_err("no header");
        assert_eq!(error.kind(), InvalidData);
    }
}
