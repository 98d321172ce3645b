//! The cheats that a modified client could try, counted for each player and told at the end.
//!
//! Commands say what a player presses, and the server's rules say what comes of it, so no cheat has an effect on others; where players move
//! themselves ([`Movement::Validated`](crate::Movement)) what cannot be is refused. What is left of a cheat is the attempt: an honest
//! client does not send what its own prediction says will lead to nothing. Prediction errs when inputs come late, so of what that explains a
//! few are forgiven: [`CheatConfig`] says how many.

use muse::netcode::inputs::InputCounters;

muse::wire::named! {
    /// A kind of cheat.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Offence {
        /// A packet of the netcode that is damaged or makes no sense.
        BadPacket = "bad packet",
        /// A message that is damaged, or not of this version.
        BadMessage = "bad message",
        /// More packets than anybody needs.
        PacketFlood = "flood of packets",
        /// More messages than anybody writes.
        MessageFlood = "flood of messages",
        /// Inputs for ticks that are too far ahead.
        InputReach = "inputs out of reach",
        /// A shot that claims to have seen an instant which it cannot have seen.
        ClaimForged = "forged claim",
        /// A shot without having what it takes: no such weapon.
        WeaponNotOwned = "weapon not owned",
        /// A message that is not due: a vote without anything to vote on, a second greeting.
        OutOfTurn = "message out of turn",
        /// Text that is not text.
        BadText = "bad text",
        /// A lever or a button used from far away, or one that is another robot's.
        UseFromAfar = "use from afar",
        /// The trigger of a weapon that cools down or is being reloaded.
        FireTooFast = "fire too fast",
        /// A jump in the air.
        JumpInAir = "jump in the air",
        /// A shot from where the player's robot is not.
        ShotFromElsewhere = "shot from elsewhere",
        /// Something done by the dead.
        ActsWhileDead = "acts while dead",
        /// A clock that runs faster than time, to move or fire more often.
        FastClock = "fast clock",
        /// Faster than robots run, where players move themselves.
        TooFast = "moves too fast",
        /// Through a wall or a door, where players move themselves.
        ThroughWalls = "moves through walls",
        /// Higher than a jump leads, or standing on nothing, where players move themselves.
        Flight = "flies",
    }
}

/// From where on a player is a suspect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CheatConfig {
    packets_per_second: u32,
    messages_per_second: u32,
    suspect_above: u32,
    forgiven: u32,
    place_tolerance: f32,
    clock_tolerance: f32,
}

impl CheatConfig {
    pub(crate) const fn place_tolerance_metres(&self) -> f32 {
        self.place_tolerance
    }

    pub(crate) const fn clock_rate_max(&self) -> f64 {
        1.0 + self.clock_tolerance as f64
    }
}

muse::wire::setters! { CheatConfig:
    /// Packets of the netcode that are taken in a second; 150 by default, three for each tick.
    packets_per_second: u32,
    /// Messages that are taken in a second; 8 by default.
    messages_per_second: u32,
    /// Offences from which on the report calls a player a suspect; 20 by default: networks damage a packet at times.
    suspect_above: u32,
    /// Sets how many offences of a kind that prediction explains (a jump in the air, a trigger while the weapon cools, a use out of reach, a claim)
    /// go uncounted in 10 s; 2 by default. More forgives worse links, and hides who cheats seldom.
    forgiven: u32,
    /// Sets how far, in metres, a shot may come from where the server has the robot, and how far beyond its reach a device may be used in
    /// vain; 2 by default: what a robot runs in the time for which missing inputs are repeated.
    place_tolerance: f32,
    /// By which share a client's clock may be fast over two seconds; 0.2 by default, as for speeds: a path that becomes
    /// shorter by 400 ms looks like that.
    clock_tolerance: f32,
}

impl Default for CheatConfig {
    fn default() -> Self {
        Self {
            packets_per_second: 150,
            messages_per_second: 8,
            suspect_above: 20,
            forgiven: 2,
            place_tolerance: 2.0,
            clock_tolerance: 0.2,
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
    forgiving: [Allowance; Offence::ALL.len()],
    drifts: u64,
    hurried: bool,
}

/// The number of packets or messages in this second.
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
    /// Returns how often something was tried.
    pub fn count(&self, offence: Offence) -> u32 {
        self.counts[offence as usize]
    }

    /// Returns the number of all offences.
    pub fn total(&self) -> u32 {
        self.counts
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    pub(crate) fn note(&mut self, offence: Offence) {
        let count = &mut self.counts[offence as usize];
        *count = count.saturating_add(1);
    }

    /// Notes what a wrong prediction may explain, unless it is one of the few that are forgiven.
    pub(crate) fn note_unless_forgiven(
        &mut self,
        config: &CheatConfig,
        second: u32,
        offence: Offence,
    ) {
        let forgiving = &mut self.forgiving[offence as usize];
        if !forgiving.take(second / FORGIVING_SECONDS, config.forgiven) {
            self.note(offence);
        }
    }

    /// Takes over how fast the client's clock was, once for each measurement.
    pub(crate) fn note_clock(
        &mut self,
        config: &CheatConfig,
        (rate, measured): (f64, u64),
        excused: bool,
    ) {
        if measured == self.drifts {
            return;
        }
        self.drifts = measured;
        let hurries = rate > config.clock_rate_max();
        // Once may be a path that has become shorter; a clock that hurries goes on.
        if hurries && self.hurried && !excused {
            self.note(Offence::FastClock);
        }
        self.hurried = hurries && !excused;
    }

    /// True if a packet is taken in this second.
    pub(crate) fn admits_packet(&mut self, config: &CheatConfig, second: u32) -> bool {
        let admitted = self.packets.take(second, config.packets_per_second);
        if !admitted {
            self.note(Offence::PacketFlood);
        }
        admitted
    }

    /// True if a message is taken in this second.
    pub(crate) fn admits_message(&mut self, config: &CheatConfig, second: u32) -> bool {
        let admitted = self.messages.take(second, config.messages_per_second);
        if !admitted {
            self.note(Offence::MessageFlood);
        }
        admitted
    }

    /// Takes over what the netcode counted of a client's inputs.
    pub(crate) fn note_inputs(&mut self, counters: &InputCounters, excused: bool) {
        let bad = counters.too_early;
        if !excused {
            for _ in self.inputs_bad..bad.min(self.inputs_bad + 16) {
                self.note(Offence::InputReach);
            }
        }
        self.inputs_bad = bad;
    }

    /// True if there was more than networks explain.
    pub fn is_suspect(&self, config: &CheatConfig) -> bool {
        self.total() > config.suspect_above
    }
}

/// Seconds over which offences are forgiven.
const FORGIVING_SECONDS: u32 = 10;

/// The report at the end of a match: one line for each player.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The players, in the order of slots.
    pub players: Vec<PlayerReport>,
}

/// The report on one player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerReport {
    /// Its slot.
    pub slot: u8,
    /// Its id at the master.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its offences.
    pub conduct: Conduct,
    /// True if that is more than networks explain.
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
