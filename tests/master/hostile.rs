//! A hostile game server: it has the credential of one that a master started, and claims what is not its own.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use muse_master_client::messages::{
    Claim, FromServer, MatchResult, Outcome, Phase, PlayerResult, Report, ServerMessage,
    ServerRefusal, ToServer, decode, encode,
};
use muse_master_client::{AccountId, MatchId};
use serde_json::json;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::program::{self, Master, ORPHANED_MATCH, Player, wait_for};

/// A match as the master's file has it.
struct Stored {
    match_id: MatchId,
    server: u64,
    players: [AccountId; 2],
}

/// The identity of a game server, stolen from its process, which does nothing any more.
struct Stolen {
    credential: String,
    address: String,
    public_key: String,
}

/// Plays a match with these devices, and waits until it runs.
fn play(master: &Master, devices: [u32; 2]) -> ([Player; 2], Stored) {
    let players = devices.map(|device| Player::start(master, device, true));
    for player in &players {
        player.expect("playing", LIMIT);
    }
    let number = |sql: &str| u64::try_from(master.rows(sql)).expect("not negative");
    let newest = "FROM matches WHERE ended_us IS NULL ORDER BY match_id DESC LIMIT 1";
    let match_id = number(&format!("SELECT match_id {newest}"));
    let seat = |which: &str| {
        let seat = format!("SELECT {which}(account) FROM seats WHERE match_id = {match_id}");
        AccountId(number(&seat))
    };
    let stored = Stored {
        match_id: MatchId(match_id),
        server: number(&format!("SELECT server {newest}")),
        players: ["min", "max"].map(seat),
    };
    (players, stored)
}

/// Stops the process of a match's server and takes its place.
fn steal(master: &Master, stored: &Stored) -> Stolen {
    let credential = |pid: &u32| program::variable(*pid, "MUSE_SERVER_CREDENTIAL");
    let is_its_own = |pid: &u32| credential(pid).starts_with(&format!("{}.", stored.server));
    let pid = master.game_servers().into_iter().find(is_its_own);
    let pid = pid.expect("it runs");
    program::signal(pid, "STOP");
    let key = format!(
        "SELECT public_key FROM servers WHERE server = {}",
        stored.server
    );
    Stolen {
        credential: credential(&pid),
        address: program::variable(pid, "MUSE_SERVER_ADDRESS"),
        public_key: master.texts(&key).remove(0),
    }
}

impl Stolen {
    fn register(&self, claim: Option<Claim>) -> FromServer {
        FromServer::Register {
            address: self.address.clone(),
            public_key: self.public_key.clone(),
            claim,
        }
    }

    /// Connects and registers as the server whose credential this is.
    async fn connect(&self, master: &Master) -> Rogue {
        let mut rogue = Rogue::open(master, &self.credential).await.expect("let in");
        rogue.say(&self.register(None)).await;
        assert_eq!(rogue.hear().await, Some(ToServer::KeepAlive));
        rogue
    }
}

/// A connection by which somebody speaks as a game server.
struct Rogue {
    socket: WebSocketStream<tokio::net::TcpStream>,
}

impl Rogue {
    /// Opens it, or returns the status with which the master refuses.
    async fn open(master: &Master, credential: &str) -> Result<Self, u16> {
        let mut request = format!("ws://{}/v1/server", master.authority())
            .into_client_request()
            .expect("a request");
        let bearer = format!("Bearer {credential}").parse().expect("a header");
        request.headers_mut().insert("authorization", bearer);
        let stream = tokio::net::TcpStream::connect(master.authority()).await;
        let stream = stream.expect("it listens");
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((socket, _)) => Ok(Self { socket }),
            Err(Error::Http(answer)) => Err(answer.status().as_u16()),
            Err(error) => unreachable!("{error}"),
        }
    }

    async fn say(&mut self, message: &FromServer) {
        let text = Message::text(encode(message));
        self.socket.send(text).await.expect("sent");
    }

    /// The next message; none if the master closed the connection.
    async fn hear(&mut self) -> Option<ToServer> {
        let next = tokio::time::timeout(LIMIT, self.socket.next()).await;
        match next.expect("an answer") {
            Some(Ok(Message::Text(text))) => Some(decode(&text).expect("a message")),
            _ => None,
        }
    }

    /// The next message that is no keep-alive.
    async fn answer(&mut self) -> Option<ToServer> {
        loop {
            let heard = self.hear().await;
            if heard != Some(ToServer::KeepAlive) {
                return heard;
            }
        }
    }

    /// Says something that is refused for this reason, and is not heard any further if it is final.
    async fn expect_refusal(&mut self, said: FromServer, refusal: ServerRefusal) {
        let message = match &said {
            FromServer::Register { .. } => ServerMessage::Register,
            FromServer::Report(_) => ServerMessage::Report,
            FromServer::Result(_) => ServerMessage::Result,
            FromServer::Profile { .. } => ServerMessage::Profile,
            FromServer::Progress { .. } => ServerMessage::Progress,
        };
        self.say(&said).await;
        let refused = ToServer::Refused { message, refusal };
        assert_eq!(self.answer().await, Some(refused), "{said:?}");
        if message.is_final() {
            assert_eq!(self.answer().await, None);
        }
    }
}

fn report(match_id: MatchId) -> FromServer {
    FromServer::Report(Report {
        match_id: Some(match_id),
        phase: Phase::Running,
        ..Report::default()
    })
}

fn result(match_id: MatchId, accounts: &[AccountId]) -> FromServer {
    let player = |account: &AccountId| PlayerResult {
        account: *account,
        points: 1_000,
        team: None,
    };
    FromServer::Result(MatchResult {
        match_id,
        outcome: Outcome::Finished,
        players: accounts.iter().map(player).collect(),
    })
}

fn ask_profile(account: AccountId) -> FromServer {
    FromServer::Profile {
        account,
        game: "tag".to_owned(),
    }
}

fn save_progress(account: AccountId) -> FromServer {
    FromServer::Progress {
        account,
        game: "tag".to_owned(),
        number: 1,
        document: json!({"level": 99}),
    }
}

fn refusals(master: &Master, message: &str) -> Option<f64> {
    master.figure(&format!("muse_servers_refused{{message=\"{message}\"}}"))
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(work)
}

/// Reports the end of a match with these players in place of its server, which is refused.
fn forge(master: &Master, stored: &Stored, players: &[AccountId], refusal: ServerRefusal) {
    let stolen = steal(master, stored);
    block_on(async {
        let mut rogue = stolen.connect(master).await;
        let forged = result(stored.match_id, players);
        rogue.expect_refusal(forged, refusal).await;
    });
}

/// One result names somebody without a seat, the other one somebody twice: refused once and for all, and nothing of the matches counts.
#[test]
fn a_result_that_names_a_stranger_or_somebody_twice_is_refused() {
    let master = Master::start(&[], 600.0);
    let stranger = master.sign_in(9)["account"].as_u64().map(AccountId);
    let account = stranger.expect("an account");
    // Both run before the first one ends: its players queue again at once, and would be in the newest match.
    let (first, stranger_named) = play(&master, [1, 2]);
    let (second, named_twice) = play(&master, [3, 4]);
    let [one, other] = stranger_named.players;
    let players = [one, other, account];
    forge(
        &master,
        &stranger_named,
        &players,
        ServerRefusal::NoSeat { account },
    );
    let [one, other] = named_twice.players;
    let players = [one, other, one];
    let refusal = ServerRefusal::NamedTwice { account: one };
    forge(&master, &named_twice, &players, refusal);
    for player in first.iter().chain(&second) {
        let back = player.expect("back", LIMIT);
        assert!(back.ends_with("Aborted"), "{back}");
    }
    assert_eq!(refusals(&master, "result"), Some(2.0));
    assert_eq!(master.rows("SELECT count(*) FROM results"), 0);
    assert_eq!(master.rows("SELECT sum(points) FROM accounts"), 0);
}

/// The server of one match reports, ends, reads and writes what belongs to another one: none of it happens, and both matches go on.
#[test]
fn a_server_speaks_for_no_other_match_and_for_no_other_player() {
    let master = Master::start(&[], 600.0);
    let (_own_players, own) = play(&master, [1, 2]);
    let (_others, other) = play(&master, [3, 4]);
    let stolen = steal(&master, &own);
    let match_id = other.match_id;
    let account = other.players[0];
    let other_match = ServerRefusal::OtherMatch { match_id };
    block_on(async {
        for said in [report(match_id), result(match_id, &other.players)] {
            let mut rogue = stolen.connect(&master).await;
            rogue.expect_refusal(said, other_match).await;
        }
        let proof = "00".repeat(32);
        let mut rogue = Rogue::open(&master, &stolen.credential)
            .await
            .expect("let in");
        let claim = stolen.register(Some(Claim { match_id, proof }));
        rogue.expect_refusal(claim, other_match).await;

        let mut rogue = stolen.connect(&master).await;
        let no_match = ServerRefusal::NoMatch;
        rogue
            .expect_refusal(ask_profile(own.players[0]), no_match)
            .await;
        rogue.say(&report(own.match_id)).await;
        let no_seat = ServerRefusal::NoSeat { account };
        rogue.expect_refusal(ask_profile(account), no_seat).await;
        rogue.expect_refusal(save_progress(account), no_seat).await;
        // Its own players it may read and write.
        rogue.say(&save_progress(own.players[0])).await;
        let answer = rogue.answer().await;
        assert!(matches!(answer, Some(ToServer::ProgressStored { .. })));
        rogue.say(&ask_profile(own.players[0])).await;
        let answer = rogue.answer().await;
        assert!(
            matches!(&answer, Some(ToServer::Profile(profile)) if profile.document["level"] == 99),
            "{answer:?}"
        );
    });
    for (message, count) in [
        ("report", 1.0),
        ("result", 1.0),
        ("register", 1.0),
        ("profile", 2.0),
        ("progress", 1.0),
    ] {
        assert_eq!(refusals(&master, message), Some(count), "{message}");
    }
    let strange = format!("SELECT count(*) FROM progress WHERE account = {account}");
    assert_eq!(master.rows(&strange), 0);
    let open = "SELECT count(*) FROM matches WHERE ended_us IS NULL";
    assert_eq!(master.rows(open), 2);
}

/// A match waits for a server, after its leader was lost: one that nobody gave it to may not have it.
#[test]
fn a_match_that_waits_for_a_server_is_not_for_the_taking() {
    let master = Master::start(&["--matches-max", "1"], 600.0);
    let (_players, own) = play(&master, [1, 2]);
    let stolen = steal(&master, &own);
    let _waiting = [3, 4].map(|device| {
        let player = Player::start(&master, device, true);
        player.expect("queue", LIMIT);
        player
    });
    let lock = master.lock_file();
    lock.execute_batch(&format!("{ORPHANED_MATCH} COMMIT"))
        .expect("written");
    drop(lock);
    let match_id = MatchId(7);
    block_on(async {
        // Its own match goes on meanwhile, until the next leader knows of both.
        let mut rogue = stolen.connect(&master).await;
        for _ in 0..200 {
            rogue.say(&report(own.match_id)).await;
            assert_eq!(rogue.hear().await, Some(ToServer::KeepAlive));
            if master.figure("muse_matches") == Some(2.0) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let refusal = ServerRefusal::OtherMatch { match_id };
        rogue.expect_refusal(report(match_id), refusal).await;
        let mut rogue = stolen.connect(&master).await;
        rogue
            .expect_refusal(result(match_id, &own.players), refusal)
            .await;
    });
    assert_eq!(master.figure("muse_matches"), Some(2.0));
    let taken = "SELECT count(*) FROM matches WHERE match_id = 7 AND server IS NOT NULL";
    assert_eq!(master.rows(taken), 0);
}

/// After its match a server speaks for nobody, and when its process has ended its credential is worth nothing.
#[test]
fn a_server_whose_match_is_over_has_nothing_to_say() {
    let master = Master::start(&[], 600.0);
    let (players, own) = play(&master, [1, 2]);
    let stolen = steal(&master, &own);
    block_on(async {
        let mut rogue = stolen.connect(&master).await;
        rogue.say(&report(own.match_id)).await;
        rogue.say(&result(own.match_id, &own.players)).await;
        let match_id = own.match_id;
        let stored = ToServer::ResultStored { match_id };
        assert_eq!(rogue.answer().await, Some(stored));
        for player in &players {
            player.expect("back", LIMIT);
        }
        loop {
            rogue.say(&save_progress(own.players[0])).await;
            match rogue.answer().await {
                Some(ToServer::End) => {}
                answer => {
                    let message = ServerMessage::Progress;
                    let refusal = ServerRefusal::NoMatch;
                    let refused = ToServer::Refused { message, refusal };
                    assert_eq!(answer, Some(refused));
                    break;
                }
            }
        }
        let gone = format!(
            "SELECT count(*) FROM servers WHERE server = {} AND gone_us IS NOT NULL",
            own.server
        );
        wait_for("its process has ended", LIMIT, || master.rows(&gone) == 1);
        let refused = Rogue::open(&master, &stolen.credential).await;
        assert_eq!(refused.err(), Some(401));
    });
    assert_eq!(refusals(&master, "connect"), Some(1.0));
    assert_eq!(master.rows("SELECT count(*) FROM progress"), 0);
}

/// Somebody has a credential but is not the server that registered with it.
#[test]
fn a_credential_belongs_to_one_server() {
    let master = Master::start(&[], 5.0);
    let (players, own) = play(&master, [1, 2]);
    let credential = master.game_servers().into_iter().find_map(|pid| {
        let credential = program::variable(pid, "MUSE_SERVER_CREDENTIAL");
        let is_its_own = credential.starts_with(&format!("{}.", own.server));
        is_its_own.then_some(credential)
    });
    let credential = credential.expect("it runs");
    block_on(async {
        let mut rogue = Rogue::open(&master, &credential).await.expect("let in");
        let register = FromServer::Register {
            address: "203.0.113.66:6666".to_owned(),
            public_key: "66".repeat(32),
            claim: None,
        };
        let refusal = ServerRefusal::OtherKey;
        rogue.expect_refusal(register, refusal).await;
    });
    // The server itself was not disturbed.
    for player in &players {
        let back = player.expect("back", LIMIT);
        assert!(back.ends_with("Finished"), "{back}");
    }
    let moved = "SELECT count(*) FROM servers WHERE address LIKE '203.0.113.66%'";
    assert_eq!(master.rows(moved), 0);
}

const LIMIT: Duration = Duration::from_secs(30);
