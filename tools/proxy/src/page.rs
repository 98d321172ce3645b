//! The page: one file without anything from elsewhere, over the smallest HTTP server that a browser is content with.
//!
//! Whoever reaches the page rules the network, so it listens on loopback unless told otherwise; other sites' pages cannot use it, because
//! commands need a header that they may not send and names that are not ours are refused.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context;
use serde_json::json;

use super::control::Asker;

/// Serves the page at `address`, in threads of its own. Returns where.
pub(super) fn serve(address: SocketAddr, asker: Asker) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(address)
        .with_context(|| format!("cannot serve the page at {address}; choose another --page"))?;
    let address = listener.local_addr()?;
    let busy = Arc::new(AtomicUsize::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if busy.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MAX {
                busy.fetch_sub(1, Ordering::AcqRel);
                continue;
            }
            let (asker, busy) = (asker.clone(), Arc::clone(&busy));
            std::thread::spawn(move || {
                if let Err(error) = answer(&stream, &asker) {
                    tracing::debug!("page: {error}");
                }
                busy.fetch_sub(1, Ordering::AcqRel);
            });
        }
    });
    Ok(address)
}

/// A request, as far as it matters.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    method: String,
    path: String,
    host: String,
    from_page: bool,
    body: String,
}

fn answer(mut stream: &TcpStream, asker: &Asker) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = read(stream)?;
    let (status, kind, body) = respond(&request, asker);
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn respond(request: &Request, asker: &Asker) -> (&'static str, &'static str, String) {
    const PLAIN: &str = "text/plain";
    const JSON: &str = "application/json";
    const UNAVAILABLE: &str = "503 Service Unavailable";
    if !is_local_name(&request.host) {
        let hint = "open the page by its IP address or as localhost\n";
        return ("403 Forbidden", PLAIN, hint.to_owned());
    }
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/") => ("200 OK", "text/html", PAGE.to_owned()),
        ("GET", "/state") => match asker.state() {
            Some(state) => ("200 OK", JSON, state.to_string()),
            None => (UNAVAILABLE, PLAIN, "the proxy has ended\n".to_owned()),
        },
        ("POST", "/command") if request.from_page => match asker.command(request.body.clone()) {
            Some(Ok(text)) => ("200 OK", JSON, json!({ "text": text }).to_string()),
            Some(Err(error)) => (
                "400 Bad Request",
                JSON,
                json!({ "error": error }).to_string(),
            ),
            None => (UNAVAILABLE, PLAIN, "the proxy has ended\n".to_owned()),
        },
        ("POST", "/command") => (
            "403 Forbidden",
            PLAIN,
            "commands need the header X-Muse: 1\n".to_owned(),
        ),
        _ => ("404 Not Found", PLAIN, "see /\n".to_owned()),
    }
}

fn read(stream: impl Read) -> std::io::Result<Request> {
    let mut input = BufReader::new(stream.take(REQUEST_BYTES_MAX));
    let mut line = String::new();
    input.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let mut request = Request {
        method: words.next().unwrap_or_default(),
        path: words.next().unwrap_or_default(),
        ..Request::default()
    };
    let mut len = 0;
    loop {
        line.clear();
        input.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "host" => value.trim().clone_into(&mut request.host),
            "content-length" => len = value.trim().parse().unwrap_or(0),
            "x-muse" => request.from_page = true,
            _ => (),
        }
    }
    input.take(len).read_to_string(&mut request.body)?;
    Ok(request)
}

/// Not a name that somebody else's domain might be given: an IP address or `localhost`.
fn is_local_name(host: &str) -> bool {
    if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
        return true;
    }
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    name == "localhost" || name.starts_with('[') && name.ends_with(']')
}

const PAGE: &str = include_str!("page.html");
const CONNECTIONS_MAX: usize = 16;
const PATIENCE: Duration = Duration::from_secs(2);
const REQUEST_BYTES_MAX: u64 = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_far_as_they_matter() {
        let text = "POST /command HTTP/1.1\r\nHost: 127.0.0.1:8\r\nx-muse: 1\r\nContent-Length: 6\r\n\r\nloss 5 and more";
        let request = read(text.as_bytes()).expect("whole");
        assert_eq!(
            request,
            Request {
                method: "POST".to_owned(),
                path: "/command".to_owned(),
                host: "127.0.0.1:8".to_owned(),
                from_page: true,
                body: "loss 5".to_owned(),
            }
        );
        assert_eq!(read(&b""[..]).expect("empty"), Request::default());
    }

    #[test]
    fn names_of_others_are_refused() {
        for host in [
            "127.0.0.1:80",
            "localhost:9",
            "localhost",
            "[::1]:9",
            "192.0.2.1",
        ] {
            assert!(is_local_name(host), "{host}");
        }
        for host in [
            "evil.example:80",
            "evil.example",
            "",
            "localhost.evil.example:1",
        ] {
            assert!(!is_local_name(host), "{host}");
        }
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        for part in ["src=", "href=", "http://", "https://", "@import", "url("] {
            let body = PAGE.replace("http://www.w3.org/2000/svg", "");
            assert!(!body.contains(part), "{part}");
        }
    }
}
