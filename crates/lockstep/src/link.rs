//! Packet numbers, acknowledgements and round trips between two machines.
//!
//! Every packet carries all that the other side has not acknowledged, so the newest one is all that matters: older ones are
//! dropped when they come late, and one number acknowledges everything.

use muse_wire::bits::{BitError, BitReader, BitWriter, Width};
use muse_wire::{Duration, Instant};

/// One side of a link; `C` says what a packet held, to be given back when it is acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Link<C> {
    next: u16,
    sent: Vec<Option<Sent<C>>>,
    /// Newest number received, and when.
    received: Option<(u16, Instant)>,
    rtt: Option<Duration>,
    variation: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Sent<C> {
    number: u16,
    at: Instant,
    content: C,
}

impl<C: Copy> Link<C> {
    pub(crate) fn new() -> Self {
        Self {
            next: 0,
            sent: vec![None; SENT_MAX],
            received: None,
            rtt: None,
            variation: Duration::ZERO,
        }
    }

    /// The smoothed round trip, once known.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// The round trip with a margin for its variation.
    pub(crate) fn rtt_high(&self) -> Duration {
        self.rtt.unwrap_or(RTT_START) + self.variation * 3
    }

    pub(crate) fn write(&self, now: Instant, writer: &mut BitWriter<'_>) -> Result<(), BitError> {
        writer.bits(u64::from(self.next), 16)?;
        writer.bool(self.received.is_some())?;
        if let Some((number, at)) = self.received {
            writer.bits(u64::from(number), 16)?;
            let held = (now - at).as_micros() / HOLD_UNIT_MICROS;
            writer.varint(held.min(HOLD_MAX), Width::Bits16)?;
        }
        Ok(())
    }

    /// The packet whose header was [written](Self::write) leaves with this content.
    pub(crate) fn sent(&mut self, now: Instant, content: C) {
        let number = self.next;
        self.next = number.wrapping_add(1);
        let slot = usize::from(number) % SENT_MAX;
        self.sent[slot] = Some(Sent {
            number,
            at: now,
            content,
        });
    }

    /// Reads a header. `None` if a newer packet has arrived before; else what is acknowledged, if anything new is.
    pub(crate) fn read(
        &mut self,
        now: Instant,
        reader: &mut BitReader<'_>,
    ) -> Result<Option<Option<C>>, BitError> {
        let number = reader.bits(16)? as u16;
        let ack = match reader.bool()? {
            true => Some((reader.bits(16)? as u16, reader.varint(Width::Bits16)?)),
            false => None,
        };
        let newest = self.received.is_none_or(|(newest, _)| {
            let ahead = number.wrapping_sub(newest) as i16;
            ahead > 0
        });
        if !newest {
            return Ok(None);
        }
        self.received = Some((number, now));
        Ok(Some(ack.and_then(|(number, held)| {
            self.acknowledge(now, number, held)
        })))
    }

    fn acknowledge(&mut self, now: Instant, number: u16, held: u64) -> Option<C> {
        let slot = self.sent.get_mut(usize::from(number) % SENT_MAX)?;
        let sent = slot.take_if(|sent| sent.number == number)?;
        let away = now - sent.at;
        let sample = away - Duration::from_micros(held * HOLD_UNIT_MICROS);
        self.observe(sample);
        Some(sent.content)
    }

    /// As in RFC 6298, but slower: a game wants the usual round trip, not the last.
    fn observe(&mut self, sample: Duration) {
        let Some(rtt) = self.rtt else {
            self.rtt = Some(sample);
            self.variation = sample / 4;
            return;
        };
        let error = rtt.max(sample) - rtt.min(sample);
        self.variation = (self.variation * 15 + error) / 16;
        self.rtt = Some((rtt * 15 + sample) / 16);
    }
}

/// Packets remembered; at 60 a second those of two seconds.
const SENT_MAX: usize = 128;
/// Before anything is known.
const RTT_START: Duration = Duration::from_millis(100);
const HOLD_UNIT_MICROS: u64 = 250;
const HOLD_MAX: u64 = u16::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(link: &mut Link<u8>, now: u64, content: u8) -> Vec<u8> {
        let mut buffer = vec![0; 16];
        let mut writer = BitWriter::new(&mut buffer);
        let now = Instant::from_millis(now);
        link.write(now, &mut writer).expect("room");
        let len = writer.finish();
        link.sent(now, content);
        buffer.truncate(len);
        buffer
    }

    fn take(link: &mut Link<u8>, now: u64, bytes: &[u8]) -> Option<Option<u8>> {
        let mut reader = BitReader::new(bytes);
        link.read(Instant::from_millis(now), &mut reader)
            .expect("well formed")
    }

    #[test]
    fn the_newest_packet_acknowledges_and_measures() {
        let (mut here, mut there) = (Link::new(), Link::new());
        let first = packet(&mut here, 0, 1);
        let second = packet(&mut here, 10, 2);
        assert_eq!(take(&mut there, 60, &second), Some(None));
        assert_eq!(
            take(&mut there, 61, &first),
            None,
            "an older one comes late"
        );
        let answer = packet(&mut there, 80, 9);
        assert_eq!(take(&mut here, 130, &answer), Some(Some(2)));
        assert_eq!(
            here.rtt(),
            Some(Duration::from_millis(100)),
            "120 ms less 20 held"
        );
        assert_eq!(take(&mut here, 131, &answer), None);
    }
}
