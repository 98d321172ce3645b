//! A server decides who comes in, and a client that does not fit is told why.

use std::time::{Duration as Patience, Instant};

use muse::prelude::*;

/// Time that a test waits for what must come; nothing depends on it when all is well.
const PATIENCE: Patience = Patience::from_secs(30);

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Player {
    #[field(range = -10.0..=10.0, step = 0.01)]
    x: f32,
}

struct Rules;

impl Game for Rules {
    type Player = Player;
    type Input = bool;
    type Event = ();

    fn step(&mut self, player: &mut Player, run: &bool, _: &mut StepContext<'_, ()>) {
        player.x += if *run { 0.01 } else { 0.0 };
    }
}

/// The same game a version later: the field is larger.
mod later {
    use super::*;

    #[derive(State, Clone, Debug, Default, PartialEq)]
    pub(super) struct Player {
        #[field(range = -20.0..=20.0, step = 0.01)]
        x: f32,
    }

    pub(super) struct Rules;

    impl Game for Rules {
        type Player = Player;
        type Input = bool;
        type Event = ();

        fn step(&mut self, _: &mut Player, _: &bool, _: &mut StepContext<'_, ()>) {}
    }
}

fn loopback() -> Listen {
    Listen::at("127.0.0.1:0").key(muse::new_key().expect("randomness"))
}

/// Runs both until the client's connection ends, and returns why.
fn end<G: Game<Player: State>>(
    server: &mut GameServer<Rules>,
    client: &mut GameClient<G>,
    mut decide: impl FnMut(&mut GameServer<Rules>, ServerEvent<'_>),
) -> muse::Error {
    let began = Instant::now();
    loop {
        let turn = server.tick_within(Duration::from_millis(2), |server, event| {
            decide(server, event);
            Ok(())
        });
        turn.expect("the server runs");
        if let Err(error) = client.tick(|_| G::Input::default()) {
            return error;
        }
        assert!(began.elapsed() < PATIENCE, "nothing ended");
    }
}

#[test]
fn a_client_with_another_player_is_told_which_field_differs() {
    let mut server = GameServer::listen(loopback(), Rules).expect("a free port");
    let mut client = GameClient::connect(&server.address(), later::Rules).expect("a socket");
    let error = end(&mut server, &mut client, |_, event| {
        assert!(
            matches!(event, TickFinished(_)),
            "somebody is in: {event:?}"
        );
    });
    let text = error.to_string();
    let named = text.contains("Player") && text.contains("-20") && text.contains("-10");
    assert!(named, "{text}");
}

#[test]
fn a_client_is_denied_with_a_reason_and_another_is_admitted_later() {
    let mut server = GameServer::listen(loopback().ask(), Rules).expect("a free port");
    let join = |name: &[u8], server: &GameServer<Rules>| {
        let join = Join::to(&server.line()).hello(name);
        GameClient::connect(join, Rules).expect("a socket")
    };
    let mut eve = join(b"Eve", &server);
    let error = end(&mut server, &mut eve, |server, event| {
        if let Asking(applicant) = event {
            assert_eq!(applicant.info.hello, b"Eve");
            server.deny(&applicant, "banned until Monday");
        }
    });
    assert!(error.to_string().contains("banned until Monday"), "{error}");

    let mut ada = join(b"Ada", &server);
    let (mut asked, mut joined, began) = (None, false, Instant::now());
    while !(joined && ada.is_connected()) {
        let turn = server.tick_within(Duration::from_millis(2), |server, event| {
            match event {
                Asking(applicant) => asked = Some((applicant, Instant::now())),
                Joined(client) => {
                    let info = server.info(client).expect("it is connected");
                    assert_eq!(info.hello, b"Ada");
                    joined = true;
                }
                _ => {}
            }
            Ok(())
        });
        turn.expect("the server runs");
        // The decision takes a while, and nobody is in meanwhile.
        if let Some((applicant, _)) = asked.take_if(|(_, at)| at.elapsed().as_millis() > 300) {
            assert!(!joined);
            server.admit(&applicant);
        }
        ada.tick(|_| false).expect("it waits");
        assert!(began.elapsed() < PATIENCE, "never decided");
    }
}
