//! The little HTTP that is spoken before a WebSocket: one request per connection, read whole before anything is answered.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// `GET /link`: where the links are.
    Link,
    /// A browser asks whether its page may ask.
    Preflight,
    /// A WebSocket at `/muse`.
    WebSocket {
        /// The client's `Sec-WebSocket-Key`.
        key: String,
        origin: Option<String>,
    },
    /// A path or method that is not here.
    NotFound,
}

/// Reads a request's head. None if it is no HTTP, too long, or followed by what may only come after our answer.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Asked>> {
    let mut head = Vec::with_capacity(1_024);
    while head.len() < HEAD_MAX {
        let mut chunk = [0; 1_024];
        let len = stream.read(&mut chunk).await?;
        if len == 0 {
            return Ok(None);
        }
        // Only where the end can be new: who sends a byte at a time is not to have all of it searched for each.
        let searched = head.len().saturating_sub(3);
        head.extend_from_slice(&chunk[..len]);
        let fresh = &head[searched..];
        if let Some(end) = fresh.windows(4).position(|four| four == b"\r\n\r\n") {
            let whole = end + 4 == fresh.len();
            return Ok(if whole { parse(&head) } else { None });
        }
    }
    Ok(None)
}

/// Says where the links are.
pub(super) async fn answer(
    stream: &mut (impl AsyncWrite + Unpin),
    status: &str,
    body: &str,
) -> io::Result<()> {
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Private-Network: true\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

/// Agrees to a WebSocket.
pub(super) async fn upgrade(
    stream: &mut (impl AsyncWrite + Unpin),
    accept: &str,
) -> io::Result<()> {
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.flush().await
}

fn parse(head: &[u8]) -> Option<Asked> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    if !request.parse(head).ok()?.is_complete() {
        return None;
    }
    let path = request.path?.split('?').next()?;
    let text = |name: &str| {
        let mut named = request
            .headers
            .iter()
            .filter(|header| header.name.eq_ignore_ascii_case(name));
        named
            .next()
            .and_then(|header| std::str::from_utf8(header.value).ok())
    };
    let is = |name: &str, value: &str| {
        text(name).is_some_and(|found| {
            found
                .split(',')
                .any(|it| it.trim().eq_ignore_ascii_case(value))
        })
    };
    Some(match (request.method?, path) {
        ("GET", "/link") => Asked::Link,
        ("OPTIONS", "/link") => Asked::Preflight,
        ("GET", PATH)
            if is("upgrade", "websocket")
                && is("connection", "upgrade")
                && is("sec-websocket-version", "13") =>
        {
            Asked::WebSocket {
                key: text("sec-websocket-key")
                    .filter(|key| key.len() == KEY_LEN)?
                    .to_owned(),
                origin: text("origin").map(str::to_owned),
            }
        }
        _ => Asked::NotFound,
    })
}

/// The path of sessions, of either kind.
pub(super) const PATH: &str = "/muse";
/// Longest head of a request: browsers send less than 1 kB.
const HEAD_MAX: usize = 8_192;
const HEADERS_MAX: usize = 64;
/// 16 bytes in base64.
const KEY_LEN: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    const UPGRADE: &str = "GET /muse HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: http://a\r\n\r\n";

    #[test]
    fn requests_are_told_apart() {
        assert_eq!(
            parse(b"GET /link?x HTTP/1.1\r\nHost: x\r\n\r\n"),
            Some(Asked::Link)
        );
        assert_eq!(
            parse(b"OPTIONS /link HTTP/1.1\r\n\r\n"),
            Some(Asked::Preflight)
        );
        assert_eq!(
            parse(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
            Some(Asked::NotFound)
        );
        assert_eq!(
            parse(UPGRADE.as_bytes()),
            Some(Asked::WebSocket {
                key: "dGhlIHNhbXBsZSBub25jZQ==".to_owned(),
                origin: Some("http://a".to_owned())
            })
        );
    }

    #[test]
    fn what_is_no_request_is_none() {
        assert_eq!(parse(b"\x16\x03\x01\x02\x00\r\n\r\n"), None);
        assert_eq!(parse(b"\r\n\r\n"), None);
        let short_key = UPGRADE.replace("dGhlIHNhbXBsZSBub25jZQ==", "short");
        assert_eq!(parse(short_key.as_bytes()), None);
        let many = format!("GET /link HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(100));
        assert_eq!(parse(many.as_bytes()), None);
        // Every beginning of a request: no panic, and never a WebSocket.
        for len in 0..UPGRADE.len() {
            let asked = parse(&UPGRADE.as_bytes()[..len]);
            assert!(!matches!(asked, Some(Asked::WebSocket { .. })), "{len}");
        }
    }

    #[tokio::test]
    async fn a_request_that_never_ends_is_given_up() -> io::Result<()> {
        let mut endless = tokio::io::repeat(b'a');
        assert_eq!(read(&mut endless).await?, None);
        let early = format!("{UPGRADE}already a frame");
        assert_eq!(read(&mut early.as_bytes()).await?, None);
        assert!(read(&mut UPGRADE.as_bytes()).await?.is_some());
        Ok(())
    }
}
