//! Long things that must arrive whole: states for those who join, traces of a desynchronisation.
//!
//! Chunks of a kilobyte, a window of them under way, each acknowledged; what is not is sent again after a round trip and a half.

use muse_wire::bytes::{EndOfBytes, Reader, Writer};
use muse_wire::{Duration, Instant};

use crate::packet::Kind;

/// A blob on its way out.
#[derive(Clone, Debug)]
pub(crate) struct BlobSender {
    id: u8,
    bytes: Vec<u8>,
    /// When each chunk was sent last; `None` not yet, and `done` when it has arrived.
    sent_at: Vec<Option<Instant>>,
    done: Vec<bool>,
    missing: usize,
    retry: Duration,
}

impl BlobSender {
    pub(crate) fn new(id: u8, bytes: Vec<u8>, rtt: Duration) -> Self {
        let chunks = bytes.len().div_ceil(CHUNK_BYTES).max(1);
        Self {
            id,
            bytes,
            sent_at: vec![None; chunks],
            done: vec![false; chunks],
            missing: chunks,
            retry: (rtt * 3 / 2).max(RETRY_MIN),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.missing == 0
    }

    /// Writes the chunk whose turn it is.
    pub(crate) fn poll(&mut self, now: Instant, buffer: &mut [u8]) -> Option<usize> {
        let index = self.next_chunk(now)?;
        let start = index * CHUNK_BYTES;
        let chunk = &self.bytes[start..self.bytes.len().min(start + CHUNK_BYTES)];
        let mut writer = Writer::new(buffer);
        let written = write_data(&mut writer, self.id, self.bytes.len(), index, chunk);
        written.ok()?;
        self.sent_at[index] = Some(now);
        Some(writer.len())
    }

    /// When to poll again, if nothing is acknowledged before.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        let waiting = self.window().filter_map(|index| self.sent_at[index]);
        waiting.min().map(|at| at + self.retry)
    }

    pub(crate) fn handle_ack(&mut self, reader: &mut Reader<'_>) -> Result<(), EndOfBytes> {
        let (id, before, mask) = (reader.u8()?, reader.u16()?, reader.u64()?);
        if id != self.id {
            return Ok(());
        }
        let before = usize::from(before).min(self.done.len());
        let beyond = (0..64).filter(|bit| mask >> bit & 1 != 0);
        let arrived = (0..before).chain(beyond.map(|bit| before + bit));
        for index in arrived {
            if let Some(done) = self.done.get_mut(index)
                && !std::mem::replace(done, true)
            {
                self.missing -= 1;
            }
        }
        Ok(())
    }

    fn next_chunk(&self, now: Instant) -> Option<usize> {
        let due = |index: &usize| self.sent_at[*index].is_none_or(|at| at + self.retry <= now);
        self.window().find(due)
    }

    fn window(&self) -> impl Iterator<Item = usize> + '_ {
        let open = self.done.iter().enumerate().filter(|(_, done)| !**done);
        open.map(|(index, _)| index).take(WINDOW_CHUNKS)
    }
}

/// A blob on its way in.
#[derive(Clone, Debug)]
pub(crate) struct BlobReceiver {
    id: u8,
    bytes: Vec<u8>,
    have: Vec<bool>,
    missing: usize,
    ack_due: bool,
}

impl BlobReceiver {
    /// Takes a chunk; `slot` is where the blob under way is kept. The whole blob, when this was its last chunk.
    pub(crate) fn handle(
        slot: &mut Option<Self>,
        reader: &mut Reader<'_>,
        bytes_max: usize,
    ) -> Result<Option<Vec<u8>>, EndOfBytes> {
        let (id, total, index) = (
            reader.u8()?,
            reader.u32()? as usize,
            usize::from(reader.u16()?),
        );
        let chunk = reader.rest();
        let chunks = total.div_ceil(CHUNK_BYTES).max(1);
        let start = index * CHUNK_BYTES;
        let right_size = total.saturating_sub(start).min(CHUNK_BYTES) == chunk.len();
        if total > bytes_max || index >= chunks || !right_size {
            return Err(EndOfBytes);
        }
        if slot
            .as_ref()
            .is_none_or(|blob| blob.id != id || blob.bytes.len() != total)
        {
            *slot = Some(Self {
                id,
                bytes: vec![0; total],
                have: vec![false; chunks],
                missing: chunks,
                ack_due: true,
            });
        }
        let Some(blob) = slot else {
            return Ok(None);
        };
        blob.ack_due = true;
        if std::mem::replace(&mut blob.have[index], true) {
            return Ok(None);
        }
        blob.bytes[start..start + chunk.len()].copy_from_slice(chunk);
        blob.missing -= 1;
        Ok((blob.missing == 0).then(|| blob.bytes.clone()))
    }

    /// Writes an acknowledgement when one is due.
    pub(crate) fn poll(&mut self, buffer: &mut [u8]) -> Option<usize> {
        if !std::mem::take(&mut self.ack_due) {
            return None;
        }
        let before = self.have.iter().position(|have| !have);
        let before = before.unwrap_or(self.have.len());
        let beyond = self.have.iter().skip(before).take(64).enumerate();
        let mask = beyond.fold(0u64, |mask, (bit, have)| mask | u64::from(*have) << bit);
        let mut writer = Writer::new(buffer);
        let written = write_ack(&mut writer, self.id, before as u16, mask);
        written.ok()?;
        Some(writer.len())
    }

    pub(crate) fn ack_is_due(&self) -> bool {
        self.ack_due
    }
}

fn write_data(
    writer: &mut Writer<'_>,
    id: u8,
    total: usize,
    index: usize,
    chunk: &[u8],
) -> Result<(), EndOfBytes> {
    writer.u8(Kind::BlobData.byte())?;
    writer.u8(id)?;
    writer.u32(total as u32)?;
    writer.u16(index as u16)?;
    writer.slice(chunk)
}

fn write_ack(writer: &mut Writer<'_>, id: u8, before: u16, mask: u64) -> Result<(), EndOfBytes> {
    writer.u8(Kind::BlobAck.byte())?;
    writer.u8(id)?;
    writer.u16(before)?;
    writer.u64(mask)
}

const CHUNK_BYTES: usize = 1_000;
/// Chunks under way: 32 kB a round trip.
const WINDOW_CHUNKS: usize = 32;
const RETRY_MIN: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_arrives_over_a_link_that_loses_half() {
        let blob: Vec<u8> = (0..50_321u32)
            .map(|index| (index * 7 % 251) as u8)
            .collect();
        let mut sender = BlobSender::new(3, blob.clone(), Duration::from_millis(10));
        let (mut slot, mut arrived) = (None, None);
        let mut buffer = [0; 1_200];
        let mut rng = crate::Rng::new(5);
        for millis in 0..2_000 {
            let now = Instant::from_millis(millis);
            while let Some(len) = sender.poll(now, &mut buffer) {
                if rng.below(2) == 0 {
                    let mut reader = Reader::new(&buffer[1..len]);
                    let whole = BlobReceiver::handle(&mut slot, &mut reader, 100_000);
                    arrived = arrived.or(whole.expect("well formed"));
                }
            }
            if let Some(len) = slot.as_mut().and_then(|slot| slot.poll(&mut buffer))
                && rng.below(2) == 0
            {
                sender
                    .handle_ack(&mut Reader::new(&buffer[1..len]))
                    .expect("well formed");
            }
        }
        assert!(sender.is_done());
        assert_eq!(arrived, Some(blob));
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let mut sender = BlobSender::new(0, vec![1; 5_000], Duration::ZERO);
        let mut buffer = [0; 1_200];
        let len = sender.poll(Instant::ZERO, &mut buffer).expect("a chunk");
        let mut slot = None;
        let refused = BlobReceiver::handle(&mut slot, &mut Reader::new(&buffer[1..len]), 4_999);
        assert_eq!(refused, Err(EndOfBytes));
        assert!(slot.is_none());
    }
}
