//! Calls over HTTP that may fail in every way.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Sends a request to a port of this machine. Returns status and body, or why there is none.
pub(crate) fn call(
    port: u16,
    method: &str,
    path: &str,
    bearer: Option<&str>,
    body: &str,
) -> Result<(u16, String), String> {
    let text = |error: std::io::Error| error.to_string();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut stream = TcpStream::connect_timeout(&address, WAIT_MAX).map_err(text)?;
    stream.set_read_timeout(Some(WAIT_MAX)).map_err(text)?;
    stream.set_write_timeout(Some(WAIT_MAX)).map_err(text)?;
    let bearer = bearer.map_or_else(String::new, |token| {
        format!("Authorization: Bearer {token}\r\n")
    });
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: chaos\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n{bearer}\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).map_err(text)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(text)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("cut off")?;
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Ok((status.ok_or("no status")?, body.to_owned()))
}

/// Longer than a master takes to give up on its database.
const WAIT_MAX: Duration = Duration::from_secs(8);
