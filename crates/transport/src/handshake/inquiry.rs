//! Finds out what differs: a client that was refused for its description asks for the server's, page by page.
//!
//! The server remembers nothing: each page is asked for with the cookie, by a packet that is longer than the answer. The client
//! holds at most [`DESCRIPTION_LEN_MAX`] bytes, asks for a few seconds at most, and believes nothing that does not have the hash of the
//! refusal. It is told in any case that it was refused; what comes here only says more about it.

use std::collections::VecDeque;

use muse_schema::{Difference, diff, fnv1a};
use muse_wire::{Duration, Instant};

/// Bytes of a page.
pub(super) const PAGE_LEN: usize = 960;
/// Most pages of a description.
pub(super) const PAGES_MAX: usize = 64;
/// Longest description of what both sides must share, see [`Config::shared`](crate::Config::shared).
pub const DESCRIPTION_LEN_MAX: usize = PAGES_MAX * PAGE_LEN;
/// Most differences that a refusal holds.
pub const DIFFERENCES_MAX: usize = 64;
/// Pages on their way at once.
const PAGES_ASKED: usize = 8;
/// Without news for so long, what is missing is asked for again.
const REPEAT_AFTER: Duration = Duration::from_millis(250);
/// Then the client is told without the differences.
const TIME_MAX: Duration = Duration::from_secs(3);

/// The pages of a server's description, as far as they have come.
#[derive(Debug)]
pub(crate) struct Inquiry {
    /// The hash in the refusal.
    hash: u64,
    /// As many as the first answer said; none before.
    pages: Vec<Option<Vec<u8>>>,
    /// To be asked for now.
    due: VecDeque<u16>,
    /// The first page that was never asked for.
    next: usize,
    repeat_at: Instant,
    deadline: Instant,
}

impl Inquiry {
    pub(crate) fn new(now: Instant, hash: u64) -> Self {
        Self {
            hash,
            pages: Vec::new(),
            due: VecDeque::from([0]),
            next: 1,
            repeat_at: now + REPEAT_AFTER,
            deadline: now + TIME_MAX,
        }
    }

    /// The hash of the description that is asked for.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// The page to ask for now.
    pub(crate) fn poll_page(&mut self) -> Option<u16> {
        self.due.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub(crate) fn poll_timeout(&self) -> Instant {
        self.repeat_at.min(self.deadline)
    }

    /// Asks again for what is missing; `false` when the time is up.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> bool {
        if now >= self.deadline {
            return false;
        }
        if now >= self.repeat_at {
            self.repeat_at = now + REPEAT_AFTER;
            self.due.clear();
            let known = self.pages.iter().take(self.next).enumerate();
            let missing = known.filter(|(_, page)| page.is_none());
            self.due
                .extend(missing.map(|(page, _)| page as u16).take(PAGES_ASKED));
            if self.pages.is_empty() {
                self.due.push_back(0);
            }
        }
        true
    }

    /// A page came. Returns the whole description once it is complete, or an empty one if it cannot be what the refusal spoke of.
    pub(crate) fn handle_page(
        &mut self,
        now: Instant,
        page: u16,
        count: u16,
        text: &[u8],
    ) -> Option<String> {
        let (page, count) = (usize::from(page), usize::from(count));
        if self.pages.is_empty() && (1..=PAGES_MAX).contains(&count) {
            self.pages.resize(count, None);
            self.due
                .extend((1..count.min(PAGES_ASKED)).map(|page| page as u16));
            self.next = count.min(PAGES_ASKED);
        }
        // Every page but the last is full.
        let last = page + 1 == self.pages.len();
        if count != self.pages.len() || (!last && text.len() != PAGE_LEN) || text.len() > PAGE_LEN {
            return None;
        }
        let slot = self.pages.get_mut(page)?;
        if slot.is_some() {
            return None;
        }
        *slot = Some(text.to_vec());
        self.repeat_at = now + REPEAT_AFTER;
        if self.next < self.pages.len() {
            self.due.push_back(self.next as u16);
            self.next += 1;
        }
        let complete = self.pages.iter().all(Option::is_some);
        complete.then(|| self.checked().unwrap_or_default())
    }

    /// The description, if it is text that can be shown and has the hash of the refusal.
    fn checked(&self) -> Option<String> {
        let whole: Vec<u8> = self.pages.iter().flatten().flatten().copied().collect();
        let text = (fnv1a(&whole) == self.hash).then(|| String::from_utf8(whole).ok())??;
        let shown = |character: char| character == '\n' || !character.is_control();
        text.chars().all(shown).then_some(text)
    }
}

/// Returns how the client's description differs from the server's.
pub(crate) fn differences(client: &str, server: &str) -> Vec<Difference> {
    if server.is_empty() {
        return Vec::new();
    }
    let mut differences = diff(client, server);
    differences.truncate(DIFFERENCES_MAX);
    differences
}

/// The page of a description with this number, and how many there are.
pub(crate) fn page_of(description: &str, page: u16) -> Option<(u16, &[u8])> {
    let mut pages = description.as_bytes().chunks(PAGE_LEN);
    let count = pages.len().min(PAGES_MAX) as u16;
    (page < count)
        .then(|| pages.nth(usize::from(page)))?
        .map(|text| (count, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(lines: usize) -> String {
        (0..lines)
            .map(|line| format!("{line} Message {{ field: u{line} }}\n"))
            .collect()
    }

    /// Answers every question until the description is there; returns it and how many questions it took.
    fn ask(
        inquiry: &mut Inquiry,
        server: &str,
        mut lost: impl FnMut() -> bool,
    ) -> (Option<String>, usize) {
        let (mut now, mut asked) = (Instant::ZERO, 0);
        loop {
            while let Some(page) = inquiry.poll_page() {
                asked += 1;
                let Some((count, text)) = page_of(server, page).filter(|_| !lost()) else {
                    continue;
                };
                if let Some(whole) = inquiry.handle_page(now, page, count, text) {
                    return (Some(whole), asked);
                }
            }
            now = inquiry.poll_timeout();
            if !inquiry.handle_timeout(now) {
                return (None, asked);
            }
        }
    }

    #[test]
    fn a_description_of_any_length_arrives_whole() {
        for lines in [1, 20, 50, 500, 2_000] {
            let server = description(lines);
            assert!(server.len() <= DESCRIPTION_LEN_MAX);
            let mut inquiry = Inquiry::new(Instant::ZERO, fnv1a(server.as_bytes()));
            let (whole, asked) = ask(&mut inquiry, &server, || false);
            assert_eq!(whole.as_ref(), Some(&server));
            assert_eq!(asked, server.len().div_ceil(PAGE_LEN), "each page once");
        }
    }

    #[test]
    fn loss_costs_questions_and_silence_ends_them() {
        let server = description(500);
        let mut random = fastrand::Rng::with_seed(1);
        let mut inquiry = Inquiry::new(Instant::ZERO, fnv1a(server.as_bytes()));
        let (whole, _) = ask(&mut inquiry, &server, || random.f32() < 0.3);
        assert_eq!(whole, Some(server.clone()));
        let mut inquiry = Inquiry::new(Instant::ZERO, fnv1a(server.as_bytes()));
        let (whole, asked) = ask(&mut inquiry, &server, || true);
        assert_eq!((whole, asked), (None, 12), "one in each 250 ms of 3 s");
    }

    #[test]
    fn answers_that_cannot_be_right_say_nothing() {
        let now = Instant::ZERO;
        let full = [b'a'; PAGE_LEN];
        let mut inquiry = Inquiry::new(now, 1);
        for (page, count, text) in [(0, 0, &full[..]), (0, 65, &full), (0, u16::MAX, &full)] {
            assert_eq!(inquiry.handle_page(now, page, count, text), None);
            assert!(inquiry.pages.is_empty(), "nothing is held for it");
        }
        for (page, count, text) in [
            (0, 2, &full[1..]),
            (2, 2, &full),
            (0, 3, &full),
            (u16::MAX, 2, &full),
        ] {
            assert_eq!(inquiry.handle_page(now, page, count, text), None);
            assert_eq!(inquiry.pages, [None, None]);
        }
        // Whole, but with another hash than the refusal's.
        assert_eq!(inquiry.handle_page(now, 0, 2, &full), None);
        assert_eq!(inquiry.handle_page(now, 1, 2, b"b"), Some(String::new()));
        // With the right hash, but nothing to be put on a terminal.
        for text in [&b"\x1b[2J"[..], &[0xFF, 0xFE]] {
            let mut inquiry = Inquiry::new(now, fnv1a(text));
            assert_eq!(inquiry.handle_page(now, 0, 1, text), Some(String::new()));
        }
        assert!(differences("1 A\n", "").is_empty());
        assert_eq!(differences(&description(500), "x").len(), DIFFERENCES_MAX);
    }
}
