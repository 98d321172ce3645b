//! Checks that a connection kept the promises of its channels.

use std::collections::BTreeMap;

use muse_transport::{Delivery, Outcome};

use crate::pair::{OwnedEvent, Side};
use crate::scenario::{Sent, Story, content};

/// Panics when a promise was broken.
pub(crate) fn story(story: &Story) {
    for side in Side::BOTH {
        let closed = story.pair.closed(side);
        assert_eq!(closed, None, "{side:?} was closed");
        let node = story.pair.node(side);
        assert!(
            !node.is_interrupted(story.pair.connection(side)),
            "{side:?} still interrupted"
        );
        interruptions_alternate(&story.pair.news(side));
    }
    for side in Side::BOTH {
        for channel in 0..story.deliveries.len() as u8 {
            one_channel(story, side, channel);
        }
    }
    assert!(
        story.quiet,
        "not quiet in time: {:?}",
        Side::BOTH.map(|side| story.pair.queued(side))
    );
}

fn interruptions_alternate(news: &[OwnedEvent]) {
    let mut interrupted = false;
    for what in news {
        match what {
            OwnedEvent::Interrupted => assert!(!std::mem::replace(&mut interrupted, true)),
            OwnedEvent::Resumed => assert!(std::mem::replace(&mut interrupted, false)),
            _ => {}
        }
    }
    assert!(!interrupted);
}

/// Checks what `side` sent on `channel`.
fn one_channel(story: &Story, side: Side, channel: u8) {
    let delivery = story.deliveries[usize::from(channel)];
    let sent = &story.sent[side.index()][usize::from(channel)];
    let received = story.pair.received(side.peer(), channel);
    let context = || format!("{side:?} {delivery:?}");
    let outcomes = outcomes(story, side, channel, sent);
    let expired: Vec<bool> = sent
        .iter()
        .map(|message| {
            message.deadline && outcomes.get(&message.id.number) == Some(&Outcome::Expired)
        })
        .collect();
    if delivery == Delivery::ReliableOrdered {
        let order = match_in_order(story, side, channel, sent, &received, &expired);
        delivered_receipts_hold(sent, &outcomes, &order, delivery, &context());
        return;
    }
    let order: Vec<usize> = received
        .iter()
        .map(|payload| identify(story, side, channel, sent, payload))
        .collect();
    let mut seen = vec![false; sent.len()];
    for &index in &order {
        assert!(
            !std::mem::replace(&mut seen[index], true),
            "{}: {index} came twice",
            context()
        );
    }
    let increasing = order.windows(2).all(|pair| pair[0] < pair[1]);
    match delivery {
        Delivery::Unreliable | Delivery::ReliableUnordered => {}
        _ => assert!(increasing, "{}: not in order", context()),
    }
    match delivery {
        Delivery::ReliableUnordered => {
            let missing: Vec<usize> = (0..sent.len())
                .filter(|&index| !seen[index] && !expired[index])
                .collect();
            assert!(
                missing.is_empty(),
                "{}: missing {missing:?} of {}",
                context(),
                sent.len()
            );
        }
        Delivery::ReliableSequenced => {
            assert_eq!(
                order.last(),
                Some(&(sent.len() - 1)),
                "{}: the last one",
                context()
            );
        }
        Delivery::PartiallyReliable(promise) => {
            let window = promise.window() as usize;
            let allowed = promise.losses_allowed() as usize;
            for (start, seen) in seen.chunks(window).enumerate() {
                let missing = seen.iter().filter(|seen| !**seen).count();
                assert!(
                    missing <= allowed,
                    "{}: window {start} misses {missing}",
                    context()
                );
            }
        }
        _ => {}
    }
    delivered_receipts_hold(sent, &outcomes, &order, delivery, &context());
}

/// Returns the index of this message; it must be exactly as it was sent.
fn identify(story: &Story, side: Side, channel: u8, sent: &[Sent], payload: &[u8]) -> usize {
    let first = payload
        .first_chunk()
        .expect("every message here carries its number");
    let index = u32::from_le_bytes(*first) as usize;
    assert!(
        index < sent.len(),
        "{side:?} {channel}: message {index} was never sent"
    );
    let expected = content(story.seed, side, channel, index, sent[index].len);
    assert!(
        payload == expected,
        "{side:?} {channel}: message {index} is damaged"
    );
    index
}

/// Everything in the order sent; only what expired may be missing.
fn match_in_order(
    story: &Story,
    side: Side,
    channel: u8,
    sent: &[Sent],
    received: &[&[u8]],
    expired: &[bool],
) -> Vec<usize> {
    let mut order = Vec::new();
    let mut next = 0;
    for (position, payload) in received.iter().enumerate() {
        loop {
            assert!(
                next < sent.len(),
                "{side:?}: message at {position} was not sent, or not in this order"
            );
            let index = next;
            next += 1;
            if content(story.seed, side, channel, index, sent[index].len) == *payload {
                order.push(index);
                break;
            }
            assert!(
                expired[index],
                "{side:?}: ordered message {index} is missing or out of order"
            );
        }
    }
    for (index, expired) in expired.iter().enumerate().skip(next) {
        assert!(
            *expired,
            "{side:?}: ordered message {index} of {} is missing",
            sent.len()
        );
    }
    order
}

/// Returns the outcome of the messages for which a receipt was asked: exactly one each, and none for others.
fn outcomes(story: &Story, side: Side, channel: u8, sent: &[Sent]) -> BTreeMap<u64, Outcome> {
    let delivery = story.deliveries[usize::from(channel)];
    let mut outcomes = BTreeMap::new();
    for receipt in story.receipts(side, channel) {
        let before = outcomes.insert(receipt.id.number, receipt.outcome);
        assert_eq!(
            before, None,
            "{side:?} {delivery:?}: second receipt {receipt:?}"
        );
    }
    for (index, message) in sent.iter().enumerate() {
        let outcome = outcomes.get(&message.id.number);
        assert_eq!(
            outcome.is_some(),
            message.receipt,
            "{side:?} {delivery:?}: receipt of message {index}, {message:?}: {outcome:?}"
        );
    }
    outcomes
}

fn delivered_receipts_hold(
    sent: &[Sent],
    outcomes: &BTreeMap<u64, Outcome>,
    order: &[usize],
    delivery: Delivery,
    context: &str,
) {
    let mut seen = vec![false; sent.len()];
    for &index in order {
        seen[index] = true;
    }
    let newest = order.last().copied().unwrap_or(0);
    for (index, message) in sent.iter().enumerate() {
        let Some(outcome) = outcomes.get(&message.id.number) else {
            continue;
        };
        // Messages that arrive after a newer one, and are not shown any more.
        let overtaken = match delivery {
            // Of many large ones that it puts together at once a receiver drops the oldest.
            Delivery::Unreliable => message.len > 1_024,
            Delivery::ReliableUnordered | Delivery::ReliableOrdered => false,
            _ => index < newest,
        };
        if *outcome == Outcome::Delivered {
            assert!(
                seen[index] || overtaken,
                "{context}: receipt for {index}, but it never came"
            );
        }
        let must_arrive = matches!(
            delivery,
            Delivery::ReliableUnordered | Delivery::ReliableOrdered
        );
        if must_arrive && !message.deadline {
            assert_eq!(
                *outcome,
                Outcome::Delivered,
                "{context}: receipt for {index}"
            );
        }
    }
}
