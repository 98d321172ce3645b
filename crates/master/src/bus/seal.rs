//! Proof that a note comes from a master of this deployment, and is new.
//!
//! Whoever reaches the server between masters can publish there. So each note carries the number of its sender, a number that grows, the time and a MAC
//! over all of it, whose key follows from a secret that masters share in their database, sealed. A receiver drops what has no right MAC, what is too old, what
//! it has had already, and what it said itself. Without clocks and sockets: time is an argument.

use muse_wire::{Duration, Instant};
use ring::hmac;
use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::secrets::NoteKey;

/// Seals the notes of one master.
#[derive(Debug)]
pub(super) struct Sealer {
    key: NoteKey,
    sender: u64,
    sequence: u64,
}

impl Sealer {
    /// A sender with a number that no other one has.
    pub(super) fn new(key: NoteKey, sender: u64) -> Self {
        let sequence = 0;
        Self {
            key,
            sender,
            sequence,
        }
    }

    /// Returns the message that carries a note.
    pub(super) fn seal(&mut self, now: Instant, note: &[u8]) -> Vec<u8> {
        self.sequence += 1;
        let mut message = vec![0; NOTE];
        message[SENDER..SEQUENCE].copy_from_slice(&self.sender.to_le_bytes());
        message[SEQUENCE..TIME].copy_from_slice(&self.sequence.to_le_bytes());
        message[TIME..NOTE].copy_from_slice(&now.as_micros().to_le_bytes());
        message.extend_from_slice(note);
        let tag = hmac::sign(self.key.as_ref(), &message[SENDER..]);
        message[..SENDER].copy_from_slice(tag.as_ref());
        message
    }
}

/// Opens the notes of all other masters.
#[derive(Debug)]
pub(super) struct Opener {
    key: NoteKey,
    /// The number of this master, whose own notes come back only if somebody repeats them.
    own: u64,
    /// The time when it began to listen: what was sealed before is only heard if somebody repeats it.
    since: Instant,
    senders: FxHashMap<u64, Heard>,
}

/// The newest note of a sender.
#[derive(Debug)]
struct Heard {
    sequence: u64,
    at: Instant,
}

/// The reason why a message is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum Dropped {
    /// It is too short, or its MAC is not right.
    #[error("it is not from a master of this deployment")]
    Forged,
    /// It was sealed too long ago, or by a clock that is wrong.
    #[error("it is too old, or the clocks of the masters differ")]
    Stale,
    /// It, or a later one of its sender, has arrived already.
    #[error("it has been here before")]
    Repeated,
    /// Too many masters have been heard within the window.
    #[error("there are too many masters")]
    Crowded,
}

impl Opener {
    /// Listens from `since` on, for the master whose own number is `own`.
    pub(super) fn new(key: NoteKey, own: u64, since: Instant) -> Self {
        Self {
            key,
            own,
            since,
            senders: FxHashMap::default(),
        }
    }

    /// Returns the note of a message, if it is genuine and new.
    pub(super) fn open<'a>(
        &mut self,
        now: Instant,
        message: &'a [u8],
    ) -> Result<&'a [u8], Dropped> {
        let (tag, sealed) = message.split_at_checked(SENDER).ok_or(Dropped::Forged)?;
        hmac::verify(self.key.as_ref(), sealed, tag).map_err(|_| Dropped::Forged)?;
        let number = |from: usize| {
            let bytes = message.get(from..)?.first_chunk()?;
            Some(u64::from_le_bytes(*bytes))
        };
        let (sender, sequence) = number(SENDER)
            .zip(number(SEQUENCE))
            .ok_or(Dropped::Forged)?;
        let at = Instant::from_micros(number(TIME).ok_or(Dropped::Forged)?);
        let note = message.get(NOTE..).ok_or(Dropped::Forged)?;
        if at < self.since || (now - at).max(at - now) > WINDOW {
            return Err(Dropped::Stale);
        }
        if sender == self.own {
            return Err(Dropped::Repeated);
        }
        // What is forgotten is too old to be repeated.
        if self.senders.len() >= SENDERS_MAX && !self.senders.contains_key(&sender) {
            self.senders.retain(|_, heard| heard.at + WINDOW >= now);
            if self.senders.len() >= SENDERS_MAX {
                return Err(Dropped::Crowded);
            }
        }
        let fresh = Heard { sequence: 0, at };
        let heard = self.senders.entry(sender).or_insert(fresh);
        if sequence <= heard.sequence {
            return Err(Dropped::Repeated);
        }
        *heard = Heard {
            sequence,
            at: heard.at.max(at),
        };
        Ok(note)
    }
}

/// The most by which the time of a note may differ from the receiver's.
const WINDOW: Duration = Duration::from_secs(30);
/// Masters that are remembered. Only those whose MAC is right count, a new one with every start.
const SENDERS_MAX: usize = 256;
/// Offsets in a message: the MAC over all that follows it, the sender, its sequence number, the time in microseconds since 1970, the note.
const SENDER: usize = 32;
const SEQUENCE: usize = 40;
const TIME: usize = 48;
const NOTE: usize = 56;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(secret: &str) -> NoteKey {
        NoteKey::new(secret, "muse.test")
    }

    /// Another master, which has listened for a while.
    fn opener(secret: &str) -> Opener {
        Opener::new(key(secret), 1_000, at(0))
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(1_800_000_000 + seconds)
    }

    #[test]
    fn a_note_is_opened_once_and_by_its_own_deployment_alone() {
        let mut sealer = Sealer::new(key("one"), 7);
        let mut listener = opener("one");
        let first = sealer.seal(at(0), b"first");
        let second = sealer.seal(at(0), b"second");
        assert_eq!(listener.open(at(1), &first), Ok(&b"first"[..]));
        assert_eq!(listener.open(at(1), &first), Err(Dropped::Repeated));
        assert_eq!(listener.open(at(1), &second), Ok(&b"second"[..]));
        assert_eq!(listener.open(at(1), &first), Err(Dropped::Repeated));
        let mut other = opener("two");
        assert_eq!(other.open(at(1), &second), Err(Dropped::Forged));
        let subject = NoteKey::new("one", "another.deployment");
        let mut other = Opener::new(subject, 1_000, at(0));
        assert_eq!(other.open(at(1), &second), Err(Dropped::Forged));
    }

    #[test]
    fn no_changed_byte_and_no_shorter_message_is_opened() {
        let message = Sealer::new(key("one"), 7).seal(at(0), b"note");
        for index in 0..message.len() {
            let mut changed = message.clone();
            changed[index] ^= 1;
            let opened = opener("one").open(at(0), &changed).err();
            assert_eq!(opened, Some(Dropped::Forged), "byte {index}");
            let opened = opener("one").open(at(0), &message[..index]).err();
            assert_eq!(opened, Some(Dropped::Forged), "{index} bytes");
        }
        let plain = br#"{"Kick":[1,"forged"]}"#;
        let opened = opener("one").open(at(0), plain);
        assert_eq!(opened, Err(Dropped::Forged));
    }

    #[test]
    fn a_note_is_stale_after_half_a_minute_also_for_a_master_that_has_just_come() {
        let message = Sealer::new(key("one"), 7).seal(at(100), b"note");
        for (seconds, expected) in [
            (69, Err(Dropped::Stale)),
            (70, Ok(&b"note"[..])),
            (130, Ok(&b"note"[..])),
            (131, Err(Dropped::Stale)),
        ] {
            let mut listener = opener("one");
            assert_eq!(listener.open(at(seconds), &message), expected, "{seconds}");
        }
    }

    #[test]
    fn a_masters_own_notes_and_those_from_before_it_came_are_never_news() {
        let mut sealer = Sealer::new(key("one"), 7);
        let message = sealer.seal(at(10), b"note");
        let mut own = Opener::new(key("one"), 7, at(0));
        assert_eq!(own.open(at(10), &message), Err(Dropped::Repeated));
        let mut late = Opener::new(key("one"), 8, at(11));
        assert_eq!(late.open(at(11), &message), Err(Dropped::Stale));
        let message = sealer.seal(at(11), b"note");
        assert_eq!(late.open(at(11), &message), Ok(&b"note"[..]));
    }

    #[test]
    fn masters_are_forgotten_when_their_notes_are_stale_and_not_before() {
        let mut listener = opener("one");
        let seal = |sender: u64, now| Sealer::new(key("one"), sender).seal(now, b"note");
        for sender in 0..SENDERS_MAX as u64 {
            assert!(listener.open(at(0), &seal(sender, at(0))).is_ok());
        }
        let one_more = seal(SENDERS_MAX as u64, at(30));
        assert_eq!(listener.open(at(30), &one_more), Err(Dropped::Crowded));
        assert!(listener.open(at(31), &one_more).is_ok());
        assert_eq!(listener.senders.len(), 1);
        assert_eq!(
            listener.open(at(31), &seal(0, at(0))),
            Err(Dropped::Stale),
            "forgotten, and still not repeated"
        );
    }
}
