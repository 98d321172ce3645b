//! Types instead of bytes, from socket to handler.

#[path = "support/world.rs"]
mod world;

use muse_schema::Message;
use muse_transport::{ChannelConfig, Config, ConnectionId, DispatchError, Dispatcher, Refusal};
use world::{ORDERED, World};

#[derive(Message, Debug, PartialEq)]
#[message(id = 1)]
struct Ask {
    question: String,
}

#[derive(Message, Debug, PartialEq)]
#[message(id = 2)]
struct Answer {
    #[field(range = 0..=100)]
    number: u8,
}

#[derive(Message)]
#[message(id = 3)]
struct Unheard;

/// The state that the server's handlers work on: questions received, and answers to send.
#[derive(Default)]
struct Desk {
    asked: Vec<String>,
    answers: Vec<(ConnectionId, Answer)>,
}

fn desk() -> Dispatcher<Desk> {
    let mut dispatcher = Dispatcher::new();
    let handler = |desk: &mut Desk, from, ask: Ask| {
        desk.answers.push((
            from,
            Answer {
                number: ask.question.len() as u8,
            },
        ));
        desk.asked.push(ask.question);
    };
    dispatcher
        .on(handler)
        .expect("a free id")
        .knows::<Answer>()
        .expect("a free id");
    dispatcher
}

fn config(dispatcher: &Dispatcher<Desk>) -> Config {
    Config::new(9)
        .channel(ChannelConfig::new(ORDERED))
        .shared(&dispatcher.registry().describe())
}

#[test]
fn handlers_get_what_was_sent_and_unknown_ids_hurt_nobody() {
    let (mut dispatcher, mut desk) = (desk(), Desk::default());
    let mut world = World::new(config(&dispatcher));
    let (client, _) = world.join();
    let asking = &mut world.clients[client].0;
    asking.send_message(0, &Unheard).expect("room");
    asking
        .send_message(
            0,
            &Ask {
                question: "how long?".into(),
            },
        )
        .expect("room");
    asking.send(0, &[1]).expect("room");
    world.until("three messages", |world| {
        world.at_server.messages.len() == 3
    });
    let outcomes: Vec<_> = world
        .at_server
        .messages
        .iter()
        .map(|(from, _, payload)| dispatcher.dispatch(&mut desk, *from, payload))
        .collect();
    let expected = [
        Err(DispatchError::UnknownId { id: 3 }),
        Ok(()),
        Err(DispatchError::TooShort { len: 1 }),
    ];
    assert_eq!(outcomes, expected);
    assert_eq!(desk.asked, ["how long?"]);
    for (to, answer) in desk.answers.drain(..) {
        world.server().send_message(to, 0, &answer).expect("room");
    }
    assert_eq!(
        world
            .server()
            .broadcast_message(0, &Answer { number: 100 })
            .expect("in range")
            .sent,
        1
    );
    assert!(
        world
            .server()
            .broadcast_message(0, &Answer { number: 101 })
            .is_err()
    );
    world.until("two answers", |world| {
        world.clients[client].1.messages.len() == 2
    });

    let mut answers: Dispatcher<Vec<u8>> = Dispatcher::new();
    answers
        .on(|numbers: &mut Vec<u8>, _, answer: Answer| numbers.push(answer.number))
        .expect("a free id");
    let mut numbers = Vec::new();
    for (from, _, payload) in &world.clients[client].1.messages {
        answers
            .dispatch(&mut numbers, *from, payload)
            .expect("an answer");
    }
    assert_eq!(numbers, [9, 100]);
}

#[test]
fn sides_with_other_messages_do_not_meet() {
    let mut dispatcher = desk();
    let mut world = World::new(config(&dispatcher));
    dispatcher.knows::<Unheard>().expect("a free id");
    world.config = config(&dispatcher);
    let client = world.add();
    world.until("a refusal", |world| {
        !world.clients[client].1.refused.is_empty()
    });
    let refusal = &world.clients[client].1.refused[0];
    assert!(matches!(refusal, Refusal::Schema { .. }), "{refusal:?}");
    let named = refusal.to_string();
    assert!(named.contains("Unheard` only here"), "{named}");
}
