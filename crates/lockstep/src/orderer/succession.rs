//! An orderer that goes on where another one was lost.

use muse_wire::bits::BitReader;
use muse_wire::{Duration, Instant};

use crate::frame::{SEATS_MAX, Seat};
use crate::game::DeterministicGame;
use crate::orderer::member::{Held, Member, Stage};
use crate::orderer::{LINKS_MAX, LinkId, Orderer};
use crate::packet::{Control, OverReason};
use crate::session::Session;
use crate::succession::{Known, Resume};

/// The inheritance of an orderer: a match under way, and players who are not here yet.
#[derive(Debug)]
pub(crate) struct Inherited {
    /// The extent to which the match was known then. Whoever knows more has heard what nobody else will.
    known: Known,
    /// Seats whose players have not come yet.
    absent: [bool; SEATS_MAX],
    absent_until: Instant,
    /// By link: the player who was vouched for; `Some(None)` is one who watches.
    vouched: Vec<Option<Option<Seat>>>,
}

impl Inherited {
    pub(crate) fn awaits(&self) -> bool {
        self.absent.contains(&true)
    }

    pub(crate) fn until(&self) -> Option<Instant> {
        self.awaits().then_some(self.absent_until)
    }
}

impl Orderer {
    /// Goes on from what a session knows, without the players of `gone`.
    pub(crate) fn inherit<G: DeterministicGame>(
        now: Instant,
        session: &Session<G>,
        gone: &[Seat],
    ) -> Self {
        let mut orderer = Self::with_contract(session.contract(), session.config().clone());
        let mut absent = [false; SEATS_MAX];
        let kept_from = session.confirmed() - KEPT_FRAMES;
        for (index, absent) in absent.iter_mut().enumerate().take(orderer.config.seats()) {
            let seat = Seat(index as u8);
            orderer.streams[index] = session.final_inputs(seat, kept_from);
            orderer.playing[index] = session.playing_since(seat);
            *absent = orderer.playing[index].is_some();
        }
        orderer.controls = session.controls().to_vec();
        for control in &orderer.controls {
            if let Control::Plan { steps, step, .. } = control {
                orderer.speed.go_on(now, (*steps, *step));
            }
        }
        orderer.sealed = session.confirmed();
        (orderer.begun, orderer.lags_at) = (true, now);
        orderer.inherited = Some(Inherited {
            known: session.known(),
            absent,
            absent_until: now + ABSENT_FOR.min(orderer.config.drop_after),
            vouched: Vec::new(),
        });
        for seat in gone {
            orderer.give_up(*seat);
        }
        orderer.seal(now);
        orderer
    }

    /// Says whose player is behind a link, on an orderer that has taken over; `None` for one who watches. Their session may
    /// [resume](Session::resume) over it.
    pub fn vouch(&mut self, link: LinkId, seat: Option<Seat>) {
        let Some(inherited) = self.inherited.as_mut().filter(|_| link.0 < LINKS_MAX) else {
            return;
        };
        if inherited.vouched.len() <= link.0 {
            inherited.vouched.resize(link.0 + 1, None);
        }
        inherited.vouched[link.0] = Some(seat);
    }

    /// A session that was in the match under the orderer before wants to go on.
    pub(crate) fn handle_resume(
        &mut self,
        now: Instant,
        link: LinkId,
        resume: &Resume,
        inputs: &[u8],
    ) {
        if let Some(member) = self.members.get_mut(link.0).and_then(Option::as_mut) {
            if member.nonce == resume.nonce {
                member.welcome_due = true;
                member.heard = now;
            }
            return;
        }
        let Some(inherited) = &mut self.inherited else {
            return self.refuse(link, OverReason::Dropped);
        };
        let Some(Some(seat)) = inherited.vouched.get(link.0).copied() else {
            // Not yet known; it will ask again.
            return;
        };
        if resume.contract != self.contract {
            return self.refuse(link, OverReason::Contract);
        }
        let awaited = seat.is_none_or(|seat| inherited.absent[seat.index()]);
        let mut ends = self.streams.iter().zip(&resume.known.ends);
        let kept = ends.all(|(stream, end)| stream.first().min(stream.end()) <= *end);
        if !awaited || !kept || !inherited.known.covers(&resume.known) || self.over.is_some() {
            // It comes back as one who joins late does.
            if let Some(seat) = seat.filter(|_| awaited) {
                self.give_up(seat);
            }
            return self.refuse(link, self.over.unwrap_or(OverReason::Dropped));
        }
        let stage = match seat {
            Some(seat) => {
                inherited.absent[seat.index()] = false;
                Stage::Plays
            }
            None => Stage::Watches,
        };
        if self.members.len() <= link.0 {
            self.members.resize_with(link.0 + 1, || None);
        }
        let mut member = Member::new(resume.nonce, seat, stage, now);
        member.acked = Held {
            ends: resume.known.ends,
            controls: resume.known.controls,
        };
        member.dirty = true;
        self.members[link.0] = Some(member);
        // Of inputs that end too soon, what could be read counts.
        let _ = self.take_inputs(now, link, &mut BitReader::new(inputs));
    }

    /// Players who have not come in time are gone.
    pub(super) fn give_up_absent(&mut self, now: Instant) {
        let Some(inherited) = self.inherited.as_ref() else {
            return;
        };
        if inherited.until().is_some_and(|until| until <= now) {
            for index in 0..self.config.seats() {
                if self.inherited.as_ref().is_some_and(|it| it.absent[index]) {
                    self.give_up(Seat(index as u8));
                }
            }
        }
    }

    fn give_up(&mut self, seat: Seat) {
        if let Some(inherited) = &mut self.inherited
            && std::mem::take(&mut inherited.absent[seat.index()])
        {
            self.vacate(seat, OverReason::Dropped);
        }
    }

    /// Remembers which account sat where, as [`set_account`](Self::set_account) would have.
    pub fn set_owner(&mut self, seat: Seat, account: u64) {
        if let Some(owner) = self.owners.get_mut(seat.index()) {
            *owner = account;
        }
    }

    /// Returns the account that sat in a seat last; 0 if it is not known.
    pub fn owner(&self, seat: Seat) -> u64 {
        self.owners.get(seat.index()).copied().unwrap_or(0)
    }

    /// Returns the seat of the player behind a link.
    pub fn seat_of(&self, link: LinkId) -> Option<Seat> {
        self.members.get(link.0)?.as_ref()?.seat
    }

    /// Counts the silence until now for nobody: this machine did not listen.
    pub fn excuse_silence(&mut self, now: Instant) {
        for member in self.members.iter_mut().flatten() {
            member.heard = now;
        }
    }
}

/// Inputs that are kept for those who come back, in frames before the first that is not confirmed here: far more than a lost packet or two.
const KEPT_FRAMES: u32 = 600;
/// Time in which the other players come to the new orderer.
const ABSENT_FOR: Duration = Duration::from_secs(5);
