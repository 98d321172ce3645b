//! A match that a master gave to a game server: its seats, its reports and its result.

use std::collections::BTreeSet;
use std::io;

use muse_master_client::messages::{
    MessageError, Phase, PlayerProfile, Report, ServerMessage, ServerRefusal,
};
use muse_master_client::{
    AccountId, MasterMachine, MasterStep, ServerAction, ServerEvent, ServerLink,
};
use muse_transport::Endpoint;
use muse_wire::Instant;

use super::{MatchOutcome, MatchPlan};
use crate::Result;

/// The match of a game server, without IO: a [`MasterMachine`] that also knows who has a seat.
///
/// A driver carries its texts; [`MatchHost`](super::MatchHost) is the one with a socket. After each turn of the driver call
/// [`poll_event`](Self::poll_event) until there is none.
#[derive(Debug)]
pub struct HostedMatch {
    link: ServerLink,
    plan: Option<MatchPlan>,
    /// Everybody who was given a seat, whatever became of it.
    invited: Vec<AccountId>,
    left: BTreeSet<AccountId>,
    refills: bool,
    has_finished: bool,
    has_ended: bool,
}

/// Something that the master wants of a game server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostEvent {
    /// Host this match. The endpoint admits holders of its tokens from now on.
    Assigned(MatchPlan),
    /// One more player has a seat.
    SeatOpened(AccountId),
    /// A player lost their seat, by leaving for good or by an operator's hand: disconnect them.
    SeatClosed(AccountId),
    /// A player's name and saved progress, as [`HostedMatch::ask_profile`] asked.
    Profile(PlayerProfile),
    /// The master refused something for good and does not want to hear it again. After a [final](ServerMessage::is_final) message
    /// [`Ended`](Self::Ended) follows.
    Refused {
        /// The message.
        message: ServerMessage,
        /// The reason.
        refusal: ServerRefusal,
    },
    /// End the process: the result is stored, the match is called off, or the master has been away too long with nothing to play.
    Ended,
}

impl HostedMatch {
    /// Creates the side of a server that players reach at `address`, with its public key in hexadecimal.
    pub fn new(address: &str, public_key: &str) -> Self {
        Self {
            link: ServerLink::new(address, public_key),
            plan: None,
            invited: Vec::new(),
            left: BTreeSet::new(),
            refills: false,
            has_finished: false,
            has_ended: false,
        }
    }

    /// Returns the next thing that the master wants, and lets `endpoint` admit the holders of seats.
    ///
    /// # Errors
    /// The endpoint takes no tokens or speaks another protocol than the master's tokens name, so that nobody could ever join.
    pub fn poll_event(&mut self, endpoint: &mut Endpoint) -> Result<Option<HostEvent>> {
        loop {
            let Some(event) = self.link.poll_event() else {
                return Ok(None);
            };
            return Ok(Some(match event {
                ServerEvent::Assigned(plan) => {
                    trust(&plan, endpoint)?;
                    self.invited.clone_from(&plan.players);
                    self.plan = Some(plan.clone());
                    HostEvent::Assigned(plan)
                }
                ServerEvent::Admit(account) => {
                    self.left.remove(&account);
                    if !self.invited.contains(&account) {
                        self.invited.push(account);
                    }
                    HostEvent::SeatOpened(account)
                }
                ServerEvent::Remove(account) => {
                    self.left.insert(account);
                    HostEvent::SeatClosed(account)
                }
                ServerEvent::Profile(profile) => HostEvent::Profile(profile),
                ServerEvent::Refused { message, refusal } => {
                    HostEvent::Refused { message, refusal }
                }
                ServerEvent::End => {
                    self.has_ended = true;
                    HostEvent::Ended
                }
                _ => continue,
            }));
        }
    }

    /// Returns the match; none before the master has given one.
    pub fn plan(&self) -> Option<&MatchPlan> {
        self.plan.as_ref()
    }

    /// Returns true if this account has a seat in the match.
    pub fn has_seat(&self, account: AccountId) -> bool {
        self.invited.contains(&account) && !self.left.contains(&account)
    }

    /// Returns everybody who has a seat, connected or not.
    pub fn seated(&self) -> impl Iterator<Item = AccountId> + '_ {
        let invited = self.invited.iter().copied();
        invited.filter(|account| !self.left.contains(account))
    }

    /// Returns everybody who was ever given a seat, for the result.
    pub fn invited(&self) -> &[AccountId] {
        &self.invited
    }

    /// Gives up the seat of a player who does not come back.
    pub fn give_up_seat(&mut self, account: AccountId) {
        self.left.insert(account);
    }

    /// From now on the master gives seats that were given up to players from the queue, or no longer; it does not at first. Whoever gave up a
    /// seat of this match does not get another one in it.
    pub fn refill_seats(&mut self, refills: bool) {
        self.refills = refills;
    }

    /// Tells the master how far the match is and who is there: at once if that has changed, and each second by itself.
    pub fn report(&mut self, phase: Phase, present: Vec<AccountId>) {
        let Some(plan) = self.plan.as_ref().filter(|_| !self.has_finished) else {
            return;
        };
        let open_seats = match self.refills && phase == Phase::Running {
            true => plan.players.len().saturating_sub(self.seated().count()),
            false => 0,
        };
        let report = Report {
            match_id: None,
            phase,
            seated: self.seated().collect(),
            present,
            left: self.left.iter().copied().collect(),
            open_seats: u8::try_from(open_seats).unwrap_or(u8::MAX),
        };
        self.link.set_state(report);
    }

    /// Hands in the result once, and repeats it until the master has stored or [refused](HostEvent::Refused) it; then [`HostEvent::Ended`] follows.
    /// A server without a match ends at once.
    pub fn finish(&mut self, outcome: &MatchOutcome) {
        let Some(plan) = &self.plan else {
            return self.drain();
        };
        if !std::mem::replace(&mut self.has_finished, true) {
            self.link.finish(outcome.result(plan, &self.invited));
        }
    }

    /// Returns true once a result was handed in.
    pub fn has_finished(&self) -> bool {
        self.has_finished
    }

    /// Returns true when the process may end.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Takes no match any more. A server without one ends at once; one with a match plays it to its end.
    pub fn drain(&mut self) {
        self.link.drain();
    }

    /// Returns true once the master has answered: it knows where this server is.
    pub fn is_registered(&self) -> bool {
        self.link.is_registered()
    }

    /// Asks for a player's name and for their progress in `game`; [`HostEvent::Profile`] is the answer.
    pub fn ask_profile(&mut self, account: AccountId, game: &str) {
        self.link.ask_profile(account, game);
    }

    /// Has the master keep a player's progress in `game`, as JSON; repeated until it has.
    pub fn save_progress(&mut self, account: AccountId, game: &str, document: serde_json::Value) {
        self.link.save_progress(account, game, document);
    }
}

impl MasterMachine for HostedMatch {
    type Command = ServerAction;

    fn start(&mut self, now: Instant) {
        self.link.start(now);
    }

    fn handle_connected(&mut self, now: Instant) {
        self.link.handle_connected(now);
    }

    fn handle_lost(&mut self, now: Instant) {
        self.link.handle_lost(now);
    }

    fn handle_text(&mut self, now: Instant, text: &str) -> std::result::Result<(), MessageError> {
        self.link.handle_text(now, text)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.link.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.link.poll_timeout()
    }

    fn poll_step(&mut self) -> Option<MasterStep<ServerAction>> {
        self.link.poll_step()
    }
}

/// From now on the endpoint admits the tokens of this match.
fn trust(plan: &MatchPlan, endpoint: &mut Endpoint) -> Result<()> {
    let own = endpoint.config().protocol_id();
    if plan.protocol_id != own {
        let theirs = plan.protocol_id;
        let message = format!(
            "the master's tokens are for protocol {theirs}, and this game speaks {own}: start the master with `--protocol-id {own}`"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, message).into());
    }
    let verifier = endpoint.token_verifier();
    let verifier = verifier.ok_or_else(|| io::Error::other("this server takes no tokens"))?;
    for (id, key) in &plan.token_keys {
        let invalid = || {
            let message = format!("the master's key {id} is not a key");
            io::Error::new(io::ErrorKind::InvalidData, message)
        };
        // A public key of any kind is written as 64 hexadecimal digits.
        let key: muse_transport::ServerPublicKey = key.parse().map_err(|_| invalid())?;
        verifier
            .add_key(*id, key.as_bytes())
            .map_err(|_| invalid())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use muse_master_client::MatchId;
    use muse_master_client::messages::{FromServer, Outcome, ToServer, decode, encode};
    use muse_transport::token::{TokenIssuer, TokenVerifier};
    use muse_transport::{Config, SeededEntropy, ServerKey, ServerOptions};

    use super::*;

    const PROTOCOL: u64 = 7;

    fn endpoint() -> Endpoint {
        let mut entropy = SeededEntropy::danger_seeded(1);
        let key = ServerKey::generate(&mut entropy);
        let mut endpoint = Endpoint::new(Config::new(PROTOCOL), entropy);
        endpoint.listen(ServerOptions::new(key).tokens(TokenVerifier::new()));
        endpoint
    }

    fn assigned(protocol_id: u64) -> HostedMatch {
        let mut entropy = SeededEntropy::danger_seeded(2);
        let key = TokenIssuer::generate(protocol_id, 1, &mut entropy).public_key();
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        let plan = MatchPlan {
            match_id: MatchId(9),
            players: vec![AccountId(1), AccountId(2)],
            token_keys: vec![(1, digits)],
            protocol_id,
            ..MatchPlan::default()
        };
        let mut hosted = HostedMatch::new("203.0.113.5:8888", "00");
        hosted.start(Instant::ZERO);
        hosted.handle_timeout(Instant::ZERO);
        hosted.handle_connected(Instant::ZERO);
        let text = encode(&ToServer::Assign(plan));
        hosted.handle_text(Instant::ZERO, &text).expect("a message");
        hosted
    }

    fn tell(hosted: &mut HostedMatch, message: &ToServer) {
        let heard = hosted.handle_text(Instant::ZERO, &encode(message));
        heard.expect("a message");
    }

    #[test]
    fn seats_open_and_close_and_the_result_names_everybody_who_had_one() {
        let (mut hosted, mut endpoint) = (assigned(PROTOCOL), endpoint());
        let event = hosted.poll_event(&mut endpoint).expect("its protocol");
        assert!(matches!(event, Some(HostEvent::Assigned(plan)) if plan.match_id == MatchId(9)));
        let (late, gone) = (AccountId(3), AccountId(2));
        assert!(!hosted.has_seat(late));
        tell(&mut hosted, &ToServer::Admit { account: late });
        tell(&mut hosted, &ToServer::Remove { account: gone });
        let mut next = || hosted.poll_event(&mut endpoint).expect("its protocol");
        assert_eq!(next(), Some(HostEvent::SeatOpened(late)));
        assert_eq!(next(), Some(HostEvent::SeatClosed(gone)));
        let seated: Vec<AccountId> = hosted.seated().collect();
        assert_eq!(seated, [AccountId(1), late]);

        hosted.finish(&MatchOutcome::points([(AccountId(1), 5)]).together());
        let steps = std::iter::from_fn(|| hosted.poll_step());
        let sent = steps.filter_map(|step| match step {
            MasterStep::Send(text) => decode(&text).ok(),
            _ => None,
        });
        let Some(FromServer::Result(result)) = sent.last() else {
            unreachable!("the result was handed in");
        };
        assert_eq!(result.outcome, Outcome::Finished);
        let points: Vec<(u64, i64, Option<u8>)> = result
            .players
            .iter()
            .map(|player| (player.account.0, player.points, player.team))
            .collect();
        assert_eq!(points, [(1, 5, Some(0)), (2, 0, Some(0)), (3, 0, Some(0))]);
        let match_id = MatchId(9);
        tell(&mut hosted, &ToServer::ResultStored { match_id });
        let event = hosted.poll_event(&mut endpoint).expect("its protocol");
        assert_eq!(event, Some(HostEvent::Ended));
        assert!(hosted.has_ended());
    }

    /// The seats that the last report offers to others.
    fn open_seats(hosted: &mut HostedMatch, phase: Phase) -> u8 {
        hosted.report(phase, Vec::new());
        let steps = std::iter::from_fn(|| hosted.poll_step());
        let sent = steps.filter_map(|step| match step {
            MasterStep::Send(text) => decode(&text).ok(),
            _ => None,
        });
        let Some(FromServer::Report(report)) = sent.last() else {
            unreachable!("something has changed");
        };
        report.open_seats
    }

    #[test]
    fn a_free_seat_is_offered_while_the_match_runs_and_wants_it_filled() {
        let (mut hosted, mut endpoint) = (assigned(PROTOCOL), endpoint());
        let mut drain = |hosted: &mut HostedMatch| {
            while hosted.poll_event(&mut endpoint).expect("ours").is_some() {}
        };
        drain(&mut hosted);
        assert_eq!(open_seats(&mut hosted, Phase::Running), 0);
        hosted.give_up_seat(AccountId(1));
        assert_eq!(open_seats(&mut hosted, Phase::Running), 0, "nobody asked");
        hosted.refill_seats(true);
        assert_eq!(open_seats(&mut hosted, Phase::Running), 1);
        let account = AccountId(2);
        tell(&mut hosted, &ToServer::Remove { account });
        drain(&mut hosted);
        assert_eq!(open_seats(&mut hosted, Phase::Running), 2);
        let account = AccountId(3);
        tell(&mut hosted, &ToServer::Admit { account });
        drain(&mut hosted);
        assert_eq!(open_seats(&mut hosted, Phase::Running), 1);
        hosted.refill_seats(false);
        assert_eq!(open_seats(&mut hosted, Phase::Running), 0, "it ends soon");
    }

    #[test]
    fn a_refused_result_is_told_with_its_reason_and_ends_the_match() {
        let (mut hosted, mut endpoint) = (assigned(PROTOCOL), endpoint());
        hosted.poll_event(&mut endpoint).expect("its protocol");
        hosted.finish(&MatchOutcome::points([(AccountId(1), 5)]));
        let message = ServerMessage::Result;
        let refusal = ServerRefusal::NoSeat {
            account: AccountId(2),
        };
        tell(&mut hosted, &ToServer::Refused { message, refusal });
        let mut next = || hosted.poll_event(&mut endpoint).expect("its protocol");
        assert_eq!(next(), Some(HostEvent::Refused { message, refusal }));
        assert_eq!(next(), Some(HostEvent::Ended));
        assert!(hosted.has_ended());
    }

    #[test]
    fn tokens_of_another_protocol_are_an_error_that_says_what_to_do() {
        let mut hosted = assigned(PROTOCOL + 1);
        let error = hosted.poll_event(&mut endpoint()).expect_err("of another");
        let text = error.to_string();
        assert!(text.contains("--protocol-id 7"), "{text}");
    }
}
