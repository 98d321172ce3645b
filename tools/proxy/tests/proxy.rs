//! `muse proxy` between plain sockets: delay, loss, clients apart, changes at run time, capture, TCP, the page.

#[path = "proxy/support.rs"]
mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use support::{Echo, PATIENCE, Proxy, socket};

#[test]
fn the_configured_delay_is_kept_in_both_directions() {
    let echo = Echo::start();
    let proxy = Proxy::start(echo.address, &["--rtt", "40"]);
    let client = socket();
    let mut trips: Vec<Duration> = (0..100u64)
        .map(|number| {
            let sent = Instant::now();
            client
                .send_to(&number.to_be_bytes(), proxy.address)
                .expect("sent");
            let mut buffer = [0; 16];
            let (len, from) = client.recv_from(&mut buffer).expect("an echo");
            assert_eq!(buffer[..len], number.to_be_bytes());
            assert_eq!(from, proxy.address);
            sent.elapsed()
        })
        .collect();
    trips.sort();
    // Never sooner than asked; how much later depends on the machine, which scripts/proxy-check.sh measures.
    assert!(trips[0] >= Duration::from_millis(40), "{:?}", trips[0]);
}

#[test]
fn the_asked_share_is_lost_and_the_rest_arrives_once() {
    let server = socket();
    let mut proxy = Proxy::start(
        server.local_addr().expect("an address"),
        &["--up", "loss=10", "--seed", "7"],
    );
    let client = socket();
    let (mut seen, mut buffer) = (vec![0u8; 10_000], [0; 16]);
    server.set_nonblocking(true).expect("non-blocking");
    // In portions that fit any socket buffer; the proxy has passed one on before it answers.
    for first in (0..10_000u32).step_by(100) {
        for number in first..first + 100 {
            client
                .send_to(&number.to_be_bytes(), proxy.address)
                .expect("sent");
        }
        proxy.await_packets(u64::from(first) + 100);
        while let Ok((len, _)) = server.recv_from(&mut buffer) {
            let number = u32::from_be_bytes(buffer[..len].try_into().expect("a number"));
            seen[number as usize] += 1;
        }
    }
    assert!(seen.iter().all(|&times| times <= 1));
    let arrived = seen.iter().filter(|&&times| times == 1).count();
    // Four standard deviations of a binomial distribution, 30 each.
    assert!((8_880..=9_120).contains(&arrived), "{arrived} of 10000");
    let summary = proxy.end();
    assert!(
        summary.contains(&format!("{}", 10_000 - arrived)),
        "{summary}"
    );
}

#[test]
fn the_server_tells_clients_apart_and_idle_ones_are_forgotten() {
    let server = socket();
    let mut proxy = Proxy::start(
        server.local_addr().expect("an address"),
        &["--clients-max", "2", "--idle-seconds", "1"],
    );
    let clients = [socket(), socket(), socket()];
    let mut seen = Vec::new();
    let mut buffer = [0; 16];
    for (number, client) in clients[..2].iter().enumerate() {
        client
            .send_to(&[number as u8], proxy.address)
            .expect("sent");
        let (_, from) = server.recv_from(&mut buffer).expect("it arrives");
        seen.push(from);
    }
    assert_ne!(seen[0], seen[1]);
    // Each answer reaches its client and nobody else.
    for (number, &address) in seen.iter().enumerate() {
        server.send_to(&[number as u8 + 10], address).expect("sent");
        let (_, from) = clients[number].recv_from(&mut buffer).expect("an answer");
        assert_eq!((buffer[0], from), (number as u8 + 10, proxy.address));
    }
    // A stranger who finds the socket of a client does not reach it.
    clients[2].send_to(b"stranger", seen[0]).expect("sent");
    // There is no room for a third until one has been silent for long enough.
    let deadline = Instant::now() + PATIENCE;
    server
        .set_read_timeout(Some(Duration::from_millis(50)))
        .expect("a time-out");
    loop {
        clients[2].send_to(b"third", proxy.address).expect("sent");
        if server.recv_from(&mut buffer).is_ok() {
            break;
        }
        assert!(Instant::now() < deadline, "the third is never served");
    }
    assert_eq!(&buffer[..5], b"third");
    assert!(
        proxy
            .ask("stats")
            .iter()
            .any(|line| line.contains("no place"))
    );
}

#[test]
fn lines_on_standard_input_change_the_network() {
    let echo = Echo::start();
    let mut proxy = Proxy::start(echo.address, &[]);
    let client = socket();
    let address = proxy.address;
    let trip = || {
        let sent = Instant::now();
        client.send_to(b"ping", address).expect("sent");
        client.recv_from(&mut [0; 16]).map(|_| sent.elapsed())
    };
    trip().expect("an echo");
    proxy.say("rtt 100");
    assert_eq!(proxy.lines(3)[1], "up    50 ms");
    assert!(trip().expect("an echo") >= Duration::from_millis(100));
    proxy.say("down loss 100");
    assert!(proxy.lines(3)[2].contains("100 % lost"));
    client
        .set_read_timeout(Some(Duration::from_millis(200)))
        .expect("a time-out");
    client.send_to(b"lost", proxy.address).expect("sent");
    assert!(client.recv_from(&mut [0; 16]).is_err());
    proxy.say("lose 5");
    assert_eq!(proxy.lines(1), ["error: `lose 5` is no command; try help"]);
    proxy.say("quit");
    assert!(proxy.wait().success());
}

#[test]
fn a_capture_holds_both_sides_and_what_was_lost() {
    let echo = Echo::start();
    let path = std::env::temp_dir().join(format!("muse-proxy-{}.pcapng", std::process::id()));
    let name = path.to_str().expect("a name");
    let mut proxy = Proxy::start(echo.address, &["--capture", name]);
    let client = socket();
    client.send_to(b"through", proxy.address).expect("sent");
    client.recv_from(&mut [0; 16]).expect("an echo");
    proxy.say("loss 100");
    proxy.lines(3);
    client.send_to(b"never", proxy.address).expect("sent");
    proxy.await_packets(2);
    proxy.end();
    let bytes = std::fs::read(&path).expect("a capture");
    std::fs::remove_file(&path).expect("it is there");
    let packets = support::packets(&bytes);
    let seen: Vec<(u32, u32, bool)> = packets
        .iter()
        .map(|packet| (packet.interface, packet.flags, packet.comment.is_some()))
        .collect();
    // In from the client, out to the server, in from the server, out to the client; then one that was lost.
    assert_eq!(
        seen,
        [
            (0, 1, false),
            (1, 2, false),
            (1, 1, false),
            (0, 2, false),
            (0, 1, true)
        ]
    );
    assert_eq!(packets[4].comment.as_deref(), Some("lost: random"));
    assert!(packets[0].bytes.ends_with(b"through") && packets[4].bytes.ends_with(b"never"));
}

#[test]
fn streams_are_delayed_in_order_and_end_as_they_should() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = listener.local_addr().expect("an address");
    let proxy = Proxy::start(
        server,
        &["--tcp", "--rtt", "60", "--jitter", "20", "--loss", "50"],
    );
    let mut client = TcpStream::connect(proxy.address).expect("the proxy listens");
    client.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    let (mut accepted, _) = listener.accept().expect("forwarded");
    accepted
        .set_read_timeout(Some(PATIENCE))
        .expect("a time-out");
    let sent = Instant::now();
    client.write_all(b"hello").expect("written");
    let mut buffer = [0; 5];
    accepted.read_exact(&mut buffer).expect("it arrives");
    assert!(sent.elapsed() >= Duration::from_millis(10));
    assert_eq!(&buffer, b"hello");
    // More than fits into any buffer on the way, so that all parts must wait for each other.
    let numbers: Vec<u8> = (0..2_000_000u32).flat_map(u32::to_be_bytes).collect();
    let expected = numbers.clone();
    let writer = std::thread::spawn(move || {
        accepted.write_all(&numbers).expect("written");
        accepted.shutdown(std::net::Shutdown::Write).expect("open");
        let mut rest = Vec::new();
        accepted
            .read_to_end(&mut rest)
            .expect("the other direction");
        rest
    });
    let mut received = Vec::new();
    client.read_to_end(&mut received).expect("all of it");
    assert!(
        received == expected,
        "{} of {}",
        received.len(),
        expected.len()
    );
    // The other direction is still open.
    client.write_all(b"goodbye").expect("written");
    drop(client);
    assert_eq!(writer.join().expect("it ends"), b"goodbye");
}

#[test]
fn a_stream_keeps_to_the_rate() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = listener.local_addr().expect("an address");
    let proxy = Proxy::start(server, &["--tcp", "--rate", "4mbit", "--queue", "20ms"]);
    let mut client = TcpStream::connect(proxy.address).expect("the proxy listens");
    let (mut accepted, _) = listener.accept().expect("forwarded");
    accepted
        .set_read_timeout(Some(PATIENCE))
        .expect("a time-out");
    let sent = Instant::now();
    client.write_all(&[7; 150_000]).expect("written");
    drop(client);
    let mut received = Vec::new();
    accepted.read_to_end(&mut received).expect("all of it");
    assert_eq!(received.len(), 150_000);
    // 1.2 million bits and their headers at 4 Mbit/s.
    assert!(
        sent.elapsed() >= Duration::from_millis(300),
        "{:?}",
        sent.elapsed()
    );
}

#[test]
fn the_page_shows_and_changes_the_network() {
    let echo = Echo::start();
    let proxy = Proxy::start(echo.address, &["--page", "0", "--profile", "wifi"]);
    let page = proxy.page.expect("a page");
    let html = http(page, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(html.starts_with("HTTP/1.1 200") && html.contains("<!doctype html>"));
    let command = |header: &str, line: &str| {
        let len = line.len();
        http(
            page,
            &format!(
                "POST /command HTTP/1.1\r\nHost: {page}\r\n{header}Content-Length: {len}\r\n\r\n{line}"
            ),
        )
    };
    assert!(command("X-Muse: 1\r\n", "up loss 9").starts_with("HTTP/1.1 200"));
    assert!(command("X-Muse: 1\r\n", "up los 9").contains("try help"));
    assert!(command("", "up loss 10").starts_with("HTTP/1.1 403"));
    let state = http(page, "GET /state HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    let body = state.split_once("\r\n\r\n").expect("a body").1;
    let state: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(state["name"], "wifi (changed)");
    assert_eq!(state["up"]["knobs"]["loss"], 9.0);
    assert_eq!(state["down"]["knobs"]["loss"], 1.0);
    let foreign = http(page, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert!(foreign.starts_with("HTTP/1.1 403"));
}

#[test]
fn mistakes_are_one_line_that_says_what_to_do() {
    let free = socket();
    let taken = free.local_addr().expect("an address").to_string();
    for (arguments, hint) in [
        (
            &["--listen", ":0", "--to", "127.0.0.1:9", "--loss", "200"][..],
            "a percentage",
        ),
        (
            &["--listen", ":0", "--to", "127.0.0.1:9", "--profile", "x"],
            "the profiles are perfect",
        ),
        (
            &["--listen", ":0", "--to", "127.0.0.1:9", "--up", "loss"],
            "as in loss=2",
        ),
        (&["--listen", ":0", "--to", "nowhere"], "HOST:PORT"),
        (
            &["--listen", &taken, "--to", "127.0.0.1:9"],
            "another program",
        ),
        (&["--listen", "9000", "--to", "127.0.0.1:9"], "HOST:PORT"),
        (
            &[
                "--listen",
                ":0",
                "--to",
                "127.0.0.1:9",
                "--capture",
                "/no/such/place",
            ],
            "another file",
        ),
    ] {
        let (code, error) = support::fails(arguments);
        assert_eq!(code, Some(1), "{arguments:?}: {error}");
        assert!(
            error.starts_with("error: ") && error.contains(hint),
            "{error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

fn http(page: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(page).expect("the page listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream.write_all(request.as_bytes()).expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn large_and_empty_datagrams_pass() {
    let echo = Echo::start();
    let proxy = Proxy::start(echo.address, &[]);
    let client: UdpSocket = socket();
    for len in [0, 1, 1_472, 9_000, 65_507] {
        let payload: Vec<u8> = (0..len).map(|index| (index * 31) as u8).collect();
        client.send_to(&payload, proxy.address).expect("sent");
        let mut buffer = vec![0; 65_536];
        let (received, _) = client.recv_from(&mut buffer).expect("an echo");
        assert!(buffer[..received] == payload, "{len}: {received}");
    }
}
