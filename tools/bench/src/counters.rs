//! The kernel's counters of a run: CPU time and memory of a process, traffic of its network namespace.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

/// CPU time of all threads of a process so far.
pub(crate) fn cpu_time(pid: u32) -> anyhow::Result<Duration> {
    let mut nanos = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end between the two reads.
        if let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) {
            nanos += first_number(&text).context("schedstat has no first field")?;
        }
    }
    Ok(Duration::from_nanos(nanos))
}

/// Time of all cores, in ticks of the kernel's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineTime {
    all: u64,
    stolen: u64,
}

impl MachineTime {
    /// So far.
    pub(crate) fn now() -> anyhow::Result<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        Self::read(&text).context("/proc/stat has no line of all cores")
    }

    /// The first eight numbers of the first line add up to all time; the eighth is what others on the same hardware took.
    fn read(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let fields = line.split_whitespace().take(8);
        let ticks: Vec<u64> = fields.map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self {
            all: ticks.iter().sum(),
            stolen: *ticks.get(7)?,
        })
    }

    /// Percent of the time since `earlier` that a virtual machine wanted to run and was not let.
    pub(crate) fn stolen_percent(&self, earlier: &Self) -> f64 {
        // The kernel's steal-time counter may go backwards when the virtual machine migrates.
        let stolen = self.stolen.saturating_sub(earlier.stolen);
        let all = self.all.saturating_sub(earlier.all).max(1);
        stolen as f64 * 100.0 / all as f64
    }
}

/// Memory of a process in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Resident now.
    pub(crate) resident: u64,
    /// The most that was ever resident.
    pub(crate) resident_max: u64,
}

/// Lets a process forget the most memory that it ever had, where that is allowed.
pub(crate) fn forget_memory_peak(pid: u32) {
    // Without it a peak from before counts, too: a bar may then fall short, and never hold by mistake.
    let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
}

/// Memory of a process.
pub(crate) fn memory(pid: u32) -> anyhow::Result<Memory> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(first_number)
            .map(|kilobytes| kilobytes * 1_024)
            .with_context(|| format!("/proc/{pid}/status has no {name}"))
    };
    Ok(Memory {
        resident: field("VmRSS:")?,
        resident_max: field("VmHWM:")?,
    })
}

/// Traffic of a network namespace.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Traffic {
    /// UDP datagrams that were sent.
    pub(crate) datagrams: u64,
    /// Bytes that crossed the loopback interface, IP headers included.
    pub(crate) ip_bytes: u64,
    /// Datagrams that were lost because a socket's buffer was full.
    pub(crate) receive_buffer_errors: u64,
}

impl Traffic {
    /// Traffic so far of the namespace that a process is in.
    pub(crate) fn of(pid: u32) -> anyhow::Result<Self> {
        let network = format!("/proc/{pid}/net");
        let snmp = fs::read_to_string(Path::new(&network).join("snmp"))?;
        let devices = fs::read_to_string(Path::new(&network).join("dev"))?;
        Ok(Self {
            datagrams: snmp_field(&snmp, "OutDatagrams")?,
            ip_bytes: loopback_bytes(&devices)?,
            receive_buffer_errors: snmp_field(&snmp, "RcvbufErrors")?,
        })
    }

    /// Returns what was added since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            datagrams: self.datagrams - earlier.datagrams,
            ip_bytes: self.ip_bytes - earlier.ip_bytes,
            receive_buffer_errors: self.receive_buffer_errors - earlier.receive_buffer_errors,
        }
    }
}

/// Datagrams that a process's IPv4 UDP socket on `port` has dropped, most of them because its buffer was full.
pub(crate) fn socket_drops(pid: u32, port: u16) -> anyhow::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/net/udp"))?;
    drops_of(&text, port).with_context(|| format!("/proc/{pid}/net/udp has no port {port}"))
}

/// The last field of the line whose second field ends in the port, in hexadecimal.
fn drops_of(text: &str, port: u16) -> Option<u64> {
    let port = format!(":{port:04X}");
    let mut lines = text.lines().map(str::split_whitespace);
    let line = lines.find(|line| {
        line.clone()
            .nth(1)
            .is_some_and(|local| local.ends_with(&port))
    });
    line?.last()?.parse().ok()
}

/// A field of the UDP lines of `/proc/net/snmp`: one line of names, one of values.
fn snmp_field(text: &str, name: &str) -> anyhow::Result<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let (names, values) = (lines.next(), lines.next());
    names
        .zip(values)
        .and_then(|(names, values)| {
            let index = names.split_whitespace().position(|field| field == name)?;
            values.split_whitespace().nth(index)?.parse().ok()
        })
        .with_context(|| format!("/proc/net/snmp has no UDP field {name}"))
}

/// Bytes sent over the loopback interface, from `/proc/net/dev`: the ninth number after its name.
fn loopback_bytes(text: &str) -> anyhow::Result<u64> {
    text.lines()
        .find_map(|line| line.trim_start().strip_prefix("lo:"))
        .and_then(|line| line.split_whitespace().nth(8)?.parse().ok())
        .context("/proc/net/dev has no loopback interface")
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_time_and_memory() {
        let pid = std::process::id();
        let before = cpu_time(pid).expect("our own counters");
        let mut sum = 0_u64;
        while cpu_time(pid).expect("our own counters") < before + Duration::from_millis(5) {
            sum = std::hint::black_box(sum.wrapping_mul(31) + 1);
        }
        let memory = memory(pid).expect("our own memory");
        assert!(memory.resident > 100_000 && memory.resident <= memory.resident_max);
    }

    #[test]
    fn kernel_tables_are_read_by_name() {
        let snmp = "Udp: InDatagrams OutDatagrams RcvbufErrors\nUdp: 5 7 9\nUdpLite: OutDatagrams\nUdpLite: 1\n";
        assert_eq!(snmp_field(snmp, "OutDatagrams").expect("a field"), 7);
        assert_eq!(snmp_field(snmp, "RcvbufErrors").expect("a field"), 9);
        assert!(snmp_field(snmp, "Other").is_err());
        let sockets =
            "  sl  local_address rem_address\n 7: 0100007F:1F90 00000000:0000 07 1 2 3 4 42\n";
        assert_eq!(drops_of(sockets, 8_080), Some(42));
        assert_eq!(drops_of(sockets, 8_081), None);
        let earlier = MachineTime::read("cpu  10 0 10 70 0 5 5 0 3 0\ncpu0 1\n").expect("a line");
        let later = MachineTime::read("cpu  10 0 10 145 0 5 5 25 9 0\n").expect("a line");
        assert_eq!(later.stolen_percent(&earlier), 25.0);
        assert_eq!(earlier.stolen_percent(&later), 0.0);
        assert!(MachineTime::read("intr 1 2\n").is_none());
        let devices = "Inter-|\n  lo: 1 2 3 4 5 6 7 8 90 10 11\n";
        assert_eq!(loopback_bytes(devices).expect("a field"), 90);
    }
}
