//! Reports for people and for the page.

use std::fmt::Write as _;

use muse_netem::{Conditions, Counters, Jitter, Profile, Queue};
use serde_json::{Value, json};

use super::engine::{Engine, Statistics};
use super::way::Way;

/// All counters, for `stats` and for the end.
pub(super) fn table(statistics: &Statistics) -> String {
    let [up, down] = &statistics.ways;
    let mut text = format!("{:<18}{:>14}{:>14}\n", "", "up", "down");
    let mut row = |name: &str, value: fn(&Counters) -> u64, always: bool| {
        if always || value(up) + value(down) > 0 {
            let _ = writeln!(text, "{name:<18}{:>14}{:>14}", value(up), value(down));
        }
    };
    row("packets in", |way| way.offered, true);
    row("packets out", |way| way.delivered, true);
    row("lost", Counters::lost, true);
    row("  at random", |way| way.lost_random, false);
    row("  in bursts", |way| way.lost_burst, false);
    row("  queue full", |way| way.lost_queue, false);
    row("  over the MTU", |way| way.lost_mtu, false);
    row("  while cut", |way| way.lost_outage, false);
    row("duplicated", |way| way.duplicated, false);
    row("held back", |way| way.held_back, false);
    row("corrupted", |way| way.corrupted, false);
    row("cut short", |way| way.truncated, false);
    row("marked", |way| way.marked, false);
    row("bytes in", |way| way.offered_ip_bytes, true);
    row("bytes out", |way| way.delivered_ip_bytes, true);
    row(
        "longest queue, ms",
        |way| way.queue_delay_max.as_millis(),
        false,
    );
    let share = |way: &Counters| 100.0 * way.lost() as f64 / way.offered.max(1) as f64;
    let _ = writeln!(
        text,
        "{:<18}{:>14.2}{:>14.2}",
        "lost, %",
        share(up),
        share(down)
    );
    let [open, streams, refused] = statistics.streams;
    if streams > 0 || refused > 0 {
        let [up, down] = statistics.stream_bytes;
        let _ = writeln!(text, "{:<18}{up:>14}{down:>14}", "TCP bytes");
        let _ = writeln!(
            text,
            "TCP connections: {open} open, {streams} in all, {refused} refused"
        );
    }
    let _ = write!(
        text,
        "clients: {} now, {} in all; on their way: {} packets; sent late by at most {} us (half), {} us (99 %)",
        statistics.clients,
        statistics.clients_seen,
        statistics.in_flight,
        statistics.lag.quantile_us(0.5),
        statistics.lag.quantile_us(0.99),
    );
    for (count, what) in troubles(statistics) {
        let _ = write!(text, "\nnot by request: {count} {what}");
    }
    text
}

/// Returns losses that were not configured, with advice.
fn troubles(statistics: &Statistics) -> impl Iterator<Item = (u64, &'static str)> {
    let trouble = statistics.trouble;
    [
        (
            trouble.kernel_drops,
            "dropped by the system before they could be read (raise net.core.rmem_max)",
        ),
        (
            trouble.server_refused,
            "times nothing listened at the server's address (is the server running?)",
        ),
        (
            trouble.refused,
            "of clients for which there was no place (raise --clients-max)",
        ),
        (
            trouble.unsendable,
            "that the system did not send (too large for the interface, or no route)",
        ),
        (
            trouble.no_room,
            "too many on their way (lower the delay or the traffic)",
        ),
        (
            trouble.forgotten,
            "of clients that were forgotten meanwhile (raise --idle-seconds)",
        ),
        (trouble.strangers, "from others than the server"),
        (trouble.socket_errors, "errors of sockets"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
}

/// One line of what passes at present, for a terminal.
pub(super) fn live_line(name: &str, now: &Statistics, before: &Statistics) -> String {
    let seconds = (now.uptime.as_secs_f64() - before.uptime.as_secs_f64()).max(1e-3);
    let way = |way: Way| {
        let (now, before) = (&now.ways[way.index()], &before.ways[way.index()]);
        let rate = |value: fn(&Counters) -> u64| (value(now) - value(before)) as f64 / seconds;
        let offered = rate(|way| way.offered);
        format!(
            "{} {:.0}/s {:.0} kbit/s {:.1} % lost",
            way.name(),
            offered,
            rate(|way| way.offered_ip_bytes) * 8.0 / 1e3,
            100.0 * rate(Counters::lost) / offered.max(1e-9),
        )
    };
    format!(
        "{name} | {} | {} | {} clients, {} on their way",
        way(Way::Up),
        way(Way::Down),
        now.clients,
        now.in_flight
    )
}

/// The list of profiles.
pub(super) fn profiles() -> String {
    let mut text = String::new();
    for profile in Profile::all() {
        let (up, down) = (profile.up(), profile.down());
        let _ = writeln!(text, "{:<17} {}", profile.name(), profile.summary());
        if up == down {
            let _ = writeln!(text, "{:<17}   each way  {up}", "");
        } else {
            let _ = writeln!(text, "{:<17}   up        {up}", "");
            let _ = writeln!(text, "{:<17}   down      {down}", "");
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Everything that the page shows.
pub(super) fn state(name: &str, engine: &Engine) -> Value {
    let statistics = engine.statistics();
    let now = engine.now();
    let way = |way: Way| {
        let conditions = &engine.conditions()[way.index()];
        json!({
            "text": conditions.to_string(),
            "cut": conditions.is_out(now),
            "knobs": knobs(conditions),
            "counters": counters(&statistics.ways[way.index()]),
            "stream_bytes": statistics.stream_bytes[way.index()],
        })
    };
    let profile = |profile: &Profile| json!({"name": profile.name(), "summary": profile.summary()});
    json!({
        "name": name,
        "listen": engine.local_addr().to_string(),
        "server": engine.server().to_string(),
        "seconds": statistics.uptime.as_secs_f64(),
        "clients": statistics.clients,
        "clients_seen": statistics.clients_seen,
        "streams": statistics.streams,
        "in_flight": statistics.in_flight,
        "late_us": [statistics.lag.quantile_us(0.5), statistics.lag.quantile_us(0.99)],
        "captured": statistics.captured,
        "troubles": troubles(&statistics).map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>(),
        "up": way(Way::Up),
        "down": way(Way::Down),
        "profiles": Profile::all().iter().map(profile).collect::<Vec<_>>(),
    })
}

/// The knobs with sliders, in the units of the commands.
fn knobs(conditions: &Conditions) -> Value {
    // To the nearest thousandth: what was said as 2 % is shown as 2 %.
    let rounded = |value: f64| (value * 1e3).round() / 1e3;
    let percent = |share: f64| rounded(share * 100.0);
    let millis = |time: muse_wire::Duration| time.as_millis_f64();
    let jitter = match conditions.jitter_kind() {
        Jitter::None => json!(0),
        Jitter::Around(spread) => json!(millis(spread)),
        // Not to be said by a slider.
        _ => Value::Null,
    };
    json!({
        "delay": millis(conditions.one_way_delay()),
        "jitter": jitter,
        "loss": percent(conditions.loss_share()),
        "burst": rounded(conditions.burst_length()),
        "duplicate": percent(conditions.duplicate_share()),
        "reorder": percent(conditions.reorder_share()),
        "corrupt": percent(conditions.corrupt_share()),
        "rate": conditions.rate_bits_per_second().map(|rate| rate as f64 / 1e3),
        "queue": match conditions.queue_limit() {
            Queue::Time(time) => json!(millis(time)),
            Queue::Bytes(_) => Value::Null,
        },
    })
}

fn counters(way: &Counters) -> Value {
    json!({
        "packets": way.offered,
        "delivered": way.delivered,
        "lost": way.lost(),
        "lost_random": way.lost_random,
        "lost_burst": way.lost_burst,
        "lost_queue": way.lost_queue,
        "lost_mtu": way.lost_mtu,
        "lost_outage": way.lost_outage,
        "duplicated": way.duplicated,
        "held_back": way.held_back,
        "corrupted": way.corrupted,
        "bytes": way.offered_ip_bytes,
        "delivered_bytes": way.delivered_ip_bytes,
    })
}
