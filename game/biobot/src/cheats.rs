//! What a modified client could try, counted for each player and told at the end (OA-17).
//!
//! Commands say what a player presses and not where it is, so most cheats cannot even be said: what a client can do is send what no
//! honest client sends. Nothing of that reaches another player; it is dropped here, and counted.

use muse_netcode::inputs::InputCounters;

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Offence {
    /// A packet of the netcode that is damaged or makes no sense.
    BadPacket,
    /// A message that is damaged, or not of this version.
    BadMessage,
    /// More packets than anybody needs.
    PacketFlood,
    /// More messages than anybody writes.
    MessageFlood,
    /// Inputs for ticks that are too far ahead, or for long ago.
    InputReach,
    /// A shot that claims to have seen an instant which it cannot have seen.
    ClaimForged,
    /// A shot without having what it takes: no such weapon.
    WeaponNotOwned,
    /// A message that is not due: a vote without anything to vote on, a second greeting.
    OutOfTurn,
    /// Text that is not text.
    BadText,
}

impl Offence {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::BadPacket,
        Self::BadMessage,
        Self::PacketFlood,
        Self::MessageFlood,
        Self::InputReach,
        Self::ClaimForged,
        Self::WeaponNotOwned,
        Self::OutOfTurn,
        Self::BadText,
    ];

    /// Its name, for logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BadPacket => "bad packet",
            Self::BadMessage => "bad message",
            Self::PacketFlood => "flood of packets",
            Self::MessageFlood => "flood of messages",
            Self::InputReach => "inputs out of reach",
            Self::ClaimForged => "forged claim",
            Self::WeaponNotOwned => "weapon not owned",
            Self::OutOfTurn => "message out of turn",
            Self::BadText => "bad text",
        }
    }
}

/// From where on a player is a suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheatConfig {
    packets_per_second: u32,
    messages_per_second: u32,
    suspect_above: u32,
}

impl CheatConfig {
    /// Packets of the netcode that are taken in a second; 150 unless told otherwise, three for each tick.
    #[must_use]
    pub const fn packets_per_second(mut self, packets: u32) -> Self {
        self.packets_per_second = packets;
        self
    }

    /// Messages that are taken in a second; 8 unless told otherwise.
    #[must_use]
    pub const fn messages_per_second(mut self, messages: u32) -> Self {
        self.messages_per_second = messages;
        self
    }

    /// Offences from which on the report calls a player a suspect; 20 unless told otherwise: networks damage a packet at times.
    #[must_use]
    pub const fn suspect_above(mut self, offences: u32) -> Self {
        self.suspect_above = offences;
        self
    }
}

impl Default for CheatConfig {
    fn default() -> Self {
        Self {
            packets_per_second: 150,
            messages_per_second: 8,
            suspect_above: 20,
        }
    }
}

/// The counters of one player.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conduct {
    counts: [u32; Offence::ALL.len()],
    packets: Allowance,
    messages: Allowance,
    inputs_bad: u64,
}

/// How many of something came in this second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Allowance {
    second: u32,
    taken: u32,
}

impl Allowance {
    fn take(&mut self, second: u32, most: u32) -> bool {
        if self.second != second {
            *self = Self { second, taken: 0 };
        }
        self.taken = self.taken.saturating_add(1);
        self.taken <= most
    }
}

impl Conduct {
    /// How often something was tried.
    pub fn count(&self, offence: Offence) -> u32 {
        self.counts[offence as usize]
    }

    /// How much was tried in all.
    pub fn total(&self) -> u32 {
        self.counts
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    pub(crate) fn note(&mut self, offence: Offence) {
        let count = &mut self.counts[offence as usize];
        *count = count.saturating_add(1);
    }

    /// Whether a packet is taken in this second.
    pub(crate) fn admits_packet(&mut self, config: &CheatConfig, second: u32) -> bool {
        let admitted = self.packets.take(second, config.packets_per_second);
        if !admitted {
            self.note(Offence::PacketFlood);
        }
        admitted
    }

    /// Whether a message is taken in this second.
    pub(crate) fn admits_message(&mut self, config: &CheatConfig, second: u32) -> bool {
        let admitted = self.messages.take(second, config.messages_per_second);
        if !admitted {
            self.note(Offence::MessageFlood);
        }
        admitted
    }

    /// Takes over what the netcode counted of a client's inputs.
    pub(crate) fn note_inputs(&mut self, counters: &InputCounters) {
        let bad = counters.too_early + counters.refused;
        for _ in self.inputs_bad..bad.min(self.inputs_bad + 16) {
            self.note(Offence::InputReach);
        }
        self.inputs_bad = bad;
    }

    /// Whether there was more than networks explain.
    pub fn is_suspect(&self, config: &CheatConfig) -> bool {
        self.total() > config.suspect_above
    }
}

/// What is told at the end of a match: one line for each player.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The players, in the order of slots.
    pub players: Vec<PlayerReport>,
}

/// What is told of one player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerReport {
    /// Its slot.
    pub slot: u8,
    /// Its id at the master.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// What it tried.
    pub conduct: Conduct,
    /// Whether that is more than networks explain.
    pub suspect: bool,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for player in &self.players {
            let verdict = if player.suspect { "suspect" } else { "clean" };
            write!(
                f,
                "player {} ({}, id {}): {verdict}",
                player.slot, player.name, player.id
            )?;
            for offence in Offence::ALL {
                let count = player.conduct.count(offence);
                if count > 0 {
                    write!(f, ", {} {count}", offence.name())?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
