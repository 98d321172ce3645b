//! Two players and the library's own calls through the shipped master: friends, a room, an invitation, chat, and a match that one leaves.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use muse::master::{MasterAnswer, MasterOptions};
use muse::prelude::{Account, AccountId, Master, MasterEvent, Preferences};
use serde_json::Value;

use crate::program;

/// A player whom the master knows.
struct Player {
    master: Master,
    account: AccountId,
    /// Events that nobody has asked about yet.
    heard: Vec<MasterEvent>,
}

impl Player {
    fn new(url: &str, name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("together-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the key");
        let account = Account::guest(folder.join("profile.key")).expect("a file");
        let master = Master::connect_with(url, account, MasterOptions::default());
        let mut player = Self {
            master: master.expect("a URL"),
            account: AccountId(0),
            heard: Vec::new(),
        };
        player.account = player.expect("it connects", |event| match event {
            MasterEvent::Connected(account) => Some(*account),
            _ => None,
        });
        player
    }

    /// Waits for an event, and returns what it says; others are kept.
    fn expect<T>(&mut self, what: &str, says: impl Fn(&MasterEvent) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            let found = self.heard.iter().enumerate();
            let mut found = found.filter_map(|(index, event)| Some((index, says(event)?)));
            if let Some((index, said)) = found.next() {
                self.heard.remove(index);
                return said;
            }
            assert!(begun.elapsed() < LIMIT, "{what}: only {:?}", self.heard);
            match self.master.poll() {
                Some(event) => self.heard.push(event),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// The answer to a call, which succeeds.
    fn answer(&mut self, call: impl FnOnce(&mut Master) -> muse::Result<u64>) -> String {
        let number = call(&mut self.master).expect("there is room for a call");
        let answer = self.expect("an answer", |event| match event {
            MasterEvent::Answered(MasterAnswer { number: of, result }) if *of == number => {
                Some(result.clone())
            }
            _ => None,
        });
        answer.expect("the master does it")
    }

    /// The account that asks to be a friend, or has accepted.
    fn expect_friend(&mut self, is_accepted: bool) -> AccountId {
        self.expect("news of a friend", |event| match event {
            MasterEvent::Friend {
                account,
                is_accepted: accepted,
            } if *accepted == is_accepted => Some(*account),
            _ => None,
        })
    }

    /// The author of a line with this text.
    fn expect_line(&mut self, text: &str) -> AccountId {
        self.expect(text, |event| match event {
            MasterEvent::Chat(line) if line.text == text => Some(line.from),
            _ => None,
        })
    }
}

#[test]
fn two_players_become_friends_meet_in_a_room_talk_and_part() {
    let master = program::Master::start(&[], 600.0);
    let url = format!("http://{}", master.authority());
    let (mut ada, mut bob) = (Player::new(&url, "ada"), Player::new(&url, "bob"));

    ada.answer(|master| master.befriend(bob.account));
    assert_eq!(bob.expect_friend(false), ada.account);
    bob.answer(|master| master.befriend(ada.account));
    assert_eq!(ada.expect_friend(true), bob.account);
    ada.answer(|master| master.say_to(bob.account, "shall we?"));
    assert_eq!(bob.expect_line("shall we?"), ada.account);

    let room: Value = serde_json::from_str(&ada.answer(Master::create_room)).expect("JSON");
    ada.answer(|master| master.invite(bob.account));
    let (from, code) = bob.expect("an invitation", |event| match event {
        MasterEvent::Invitation { from, room } => Some((*from, room.clone())),
        _ => None,
    });
    assert_eq!(
        (from, Some(code.as_str())),
        (ada.account, room["code"].as_str())
    );
    bob.answer(|master| master.join_room(&code));
    bob.answer(|master| master.say_in_room("here I am"));
    assert_eq!(ada.expect_line("here I am"), bob.account);
    bob.answer(Master::leave_room);
    bob.answer(|master| master.join_room(&code));

    // They go into one match together.
    let wanted = Preferences::queue("race").players(2);
    ada.master.queue(wanted).expect("within the limits");
    for player in [&mut ada, &mut bob] {
        player.expect("a seat", |event| match event {
            MasterEvent::Seated(_) => Some(()),
            _ => None,
        });
        player.master.handle_game_connected();
    }
    bob.answer(|master| master.say_in_match("good luck"));
    assert_eq!(ada.expect_line("good luck"), bob.account);
    bob.master.leave_match();
    bob.expect("bob is out of the match", |event| match event {
        MasterEvent::Unseated => Some(()),
        _ => None,
    });

    ada.answer(|master| master.unfriend(bob.account));
    let friends: Value = serde_json::from_str(&bob.answer(Master::friends)).expect("JSON");
    assert_eq!(friends.as_array().map(Vec::len), Some(0), "{friends}");
}

const LIMIT: Duration = Duration::from_secs(60);
