//! W2: reliable messages of 1,000 bytes on one connection, as fast as back-pressure allows.
//!
//! The receiver tells the sender now and then how many have arrived, which bounds what lies between the two
//! applications even where a library's own queue has no bound.

use std::time::{Duration, Instant};

use crate::control::Control;
use crate::message::Header;
use crate::options::Options;
use crate::peer::{Kind, Peer, Sent};
use crate::report::Report;

/// Counts what arrives and checks its order.
pub(crate) fn serve<P: Peer>(server: &mut P, options: &Options, control: &Control) -> Report {
    let mut report = Report::default();
    let (mut first, mut last) = (None, Instant::now());
    let (mut credited, mut done) = (0, false);
    while !control.has_stopped() {
        let before = report.reliable_received;
        server.poll(&mut |_, _, message| {
            let Some(header) = Header::read(message).filter(|_| message.len() == MESSAGE_LEN)
            else {
                return;
            };
            report.disordered += u64::from(header.number != report.reliable_received);
            report.reliable_received += 1;
        });
        let received = report.reliable_received;
        if received > before {
            last = Instant::now();
            first.get_or_insert(last);
        }
        if P::RELIABLE && received - credited >= P::IN_FLIGHT_MAX / CREDITS_PER_WINDOW {
            credited = send_credit(server, received, credited);
        }
        server.flush();
        let over = received >= options.messages || (received > 0 && last.elapsed() > SILENCE_MAX);
        if over && !done {
            control.done();
            done = true;
        }
        if received == before {
            server.wait(WAIT);
        }
    }
    report.seconds = first.map_or(0.0, |first| (last - first).as_secs_f64());
    report
}

/// Sends all messages.
pub(crate) fn run_client<P: Peer>(client: &mut P, options: &Options, control: &Control) -> Report {
    let mut report = Report::default();
    let mut credit = 0;
    let mut message = [0x5a; MESSAGE_LEN];
    while !control.has_stopped() {
        client.poll(&mut |_, _, message| {
            if let Some(header) = Header::read(message) {
                credit = credit.max(header.number);
            }
        });
        let before = report.reliable_sent;
        while control.has_started() && before + BURST_MAX > report.reliable_sent {
            let number = report.reliable_sent;
            let allowed = !P::RELIABLE || number < credit + P::IN_FLIGHT_MAX;
            if number == options.messages || !allowed {
                break;
            }
            let header = Header {
                reliable: true,
                sent_nanos: 0,
                number,
            };
            header.write(&mut message);
            if client.send(0, Kind::Reliable, &message) == Sent::Full {
                break;
            }
            report.reliable_sent += 1;
        }
        client.flush();
        if report.reliable_sent == before {
            client.wait(WAIT);
        }
    }
    report
}

fn send_credit<P: Peer>(server: &mut P, received: u64, credited: u64) -> u64 {
    let header = Header {
        reliable: true,
        sent_nanos: 0,
        number: received,
    };
    let mut message = [0; Header::LEN];
    header.write(&mut message);
    match server.send(0, Kind::Reliable, &message) {
        Sent::Accepted => received,
        Sent::Full => credited,
    }
}

const MESSAGE_LEN: usize = 1_000;
const CREDITS_PER_WINDOW: u64 = 4;
/// Messages handed over between two looks at what has arrived.
const BURST_MAX: u64 = 64;
/// Libraries without a clock of their own are polled at least this often.
const WAIT: Duration = Duration::from_millis(1);
/// Bare datagrams get lost: the run is over when nothing has come for this long.
const SILENCE_MAX: Duration = Duration::from_secs(2);
