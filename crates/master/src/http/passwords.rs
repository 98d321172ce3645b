//! Passwords: checked and hashed on threads of their own, by those whose turn it is.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use argon2::password_hash::{
    self, Decimal, Ident, Output, ParamsString, PasswordHash, PasswordHasher, PasswordVerifier,
    Salt, SaltString,
};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use muse_wire::Duration;
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use super::failure::Failure;
use super::limits::network;
use crate::clock::SteadyClock;
use crate::hashing::{Asker, HashQueue, HashRefusal, TurnId};
use crate::hub::lock;

/// Hashes passwords, a few at once.
#[derive(Clone)]
pub(crate) struct Passwords {
    clock: SteadyClock,
    state: Arc<Mutex<State>>,
    memory: HashMemory,
}

/// Argon2 with memory that is kept from one hash to the next, as many pieces as there are lanes. A piece of its own for each hash would stay with
/// whichever thread did it: hundreds of megabytes after a while, for two hashes at a time.
#[derive(Clone, Default)]
struct HashMemory(Arc<Mutex<Vec<Vec<Block>>>>);

impl PasswordHasher for HashMemory {
    type Params = Params;

    fn hash_password_customized<'a>(
        &self,
        password: &[u8],
        algorithm: Option<Ident<'a>>,
        version: Option<Decimal>,
        params: Params,
        salt: impl Into<Salt<'a>>,
    ) -> password_hash::Result<PasswordHash<'a>> {
        let algorithm = algorithm.map(Algorithm::try_from).transpose()?;
        let version = version.map(Version::try_from).transpose()?;
        let (algorithm, version) = (algorithm.unwrap_or_default(), version.unwrap_or_default());
        let argon2 = Argon2::new(algorithm, version, params);
        let params = argon2.params();
        let (salt, mut bytes) = (salt.into(), [0; Salt::MAX_LENGTH]);
        let bytes = salt.decode_b64(&mut bytes)?;
        let mut blocks = lock(&self.0).pop().unwrap_or_default();
        blocks.resize(params.block_count(), Block::default());
        let len = params.output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN);
        let output = Output::init_with(len, |output| {
            Ok(argon2.hash_password_into_with_memory(password, bytes, output, &mut blocks)?)
        });
        lock(&self.0).push(blocks);
        Ok(PasswordHash {
            algorithm: algorithm.ident(),
            version: Some(version.into()),
            params: ParamsString::try_from(params)?,
            salt: Some(salt),
            hash: Some(output?),
        })
    }
}

struct State {
    queue: HashQueue,
    /// Those who wait for their turn. One whose place another has taken finds the sender gone.
    waiting: FxHashMap<TurnId, oneshot::Sender<()>>,
}

impl State {
    /// Begins every turn that can begin.
    fn start(&mut self) {
        while let Some(id) = self.queue.poll_turn() {
            if let Some(waiting) = self.waiting.remove(&id) {
                // Who went away gives the turn back when its `Place` is dropped.
                let _ = waiting.send(());
            }
        }
    }
}

/// A place in the queue, then a lane; given back when it is dropped.
struct Place {
    state: Arc<Mutex<State>>,
    id: TurnId,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.waiting.remove(&self.id);
        state.queue.leave(self.id);
        state.start();
    }
}

impl Passwords {
    /// So many of one address in a minute in the long run; 0 for no limit.
    pub(crate) fn new(per_minute: u32) -> Self {
        let state = State {
            queue: HashQueue::new(per_minute),
            waiting: FxHashMap::default(),
        };
        Self {
            clock: SteadyClock::new(),
            state: Arc::new(Mutex::new(state)),
            memory: HashMemory::default(),
        }
    }

    /// Refuses who would not get a place, before anything is looked up for them.
    pub(super) fn check(&self, asker: &Asker) -> Result<(), Failure> {
        let checked = lock(&self.state).queue.check(self.clock.now(), asker);
        checked.map_err(refused)
    }

    /// True if a password is the one with this hash. Without a hash it takes as long, so that nobody learns which names there are.
    pub(super) async fn is_right(
        &self,
        asker: &Asker,
        password: String,
        hash: Option<String>,
    ) -> Result<bool, Failure> {
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| NOBODYS_HASH.to_owned());
        let memory = self.memory.clone();
        let verified = self.run(asker, move || {
            let hash = PasswordHash::new(&hash).ok()?;
            let verified = memory.verify_password(password.as_bytes(), &hash);
            Some(verified.is_ok())
        });
        let right = verified.await? == Some(true) && known;
        let (mut state, now) = (lock(&self.state), self.clock.now());
        match right {
            true => state.queue.handle_right(now, asker),
            false => state.queue.handle_wrong(now, asker),
        }
        Ok(right)
    }

    /// The hash of a new password.
    pub(super) async fn hash(&self, asker: &Asker, password: String) -> Result<String, Failure> {
        let memory = self.memory.clone();
        let hash = self.run(asker, move || hash_with(&memory, &password));
        hash.await?.ok_or(Failure::BUSY)
    }

    /// Forgets those who have not been here for long.
    pub(crate) fn forget(&self) {
        lock(&self.state).queue.forget(self.clock.now());
    }

    /// Does slow work on a thread of its own when it has a lane, and keeps the lane until the work is done, even if nobody waits for it any more.
    async fn run<T: Send + 'static>(
        &self,
        asker: &Asker,
        work: impl FnOnce() -> Option<T> + Send + 'static,
    ) -> Result<Option<T>, Failure> {
        let (place, turn) = self.ask(asker)?;
        turn.await.map_err(|_| refused(HashRefusal::Full))?;
        let checked = lock(&self.state).queue.check_name(self.clock.now(), asker);
        checked.map_err(refused)?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(place);
            done
        });
        done.await.map_err(|_| Failure::BUSY)
    }

    fn ask(&self, asker: &Asker) -> Result<(Place, oneshot::Receiver<()>), Failure> {
        let mut state = lock(&self.state);
        let asked = state.queue.ask(self.clock.now(), asker);
        let (id, evicted) = asked.map_err(refused)?;
        if let Some(evicted) = evicted {
            state.waiting.remove(&evicted);
        }
        let (begins, turn) = oneshot::channel();
        state.waiting.insert(id, begins);
        state.start();
        drop(state);
        let state = Arc::clone(&self.state);
        Ok((Place { state, id }, turn))
    }
}

/// The hash of a password; slow on purpose.
pub(crate) fn hash_password(password: &str) -> Option<String> {
    hash_with(&HashMemory::default(), password)
}

fn hash_with(memory: &HashMemory, password: &str) -> Option<String> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).ok()?;
    let salt = SaltString::encode_b64(&salt).ok()?;
    let hash = memory.hash_password(password.as_bytes(), &salt);
    Some(hash.ok()?.to_string())
}

fn refused(refusal: HashRefusal) -> Failure {
    metrics::counter!("muse_passwords_refused").increment(1);
    let seconds = |wait: Duration| wait.as_micros().div_ceil(1_000_000).max(1);
    match refusal {
        HashRefusal::Address { retry_after } => {
            let wait_s = seconds(retry_after);
            let message = format!(
                "too many passwords are tried from this address: wait {wait_s} s, then sign in once"
            );
            Failure::wait(wait_s, message)
        }
        HashRefusal::Name { retry_after } => {
            let wait_s = seconds(retry_after);
            let message = format!(
                "too many wrong passwords for this name: wait {wait_s} s, check the password, then try again"
            );
            Failure::wait(wait_s, message)
        }
        HashRefusal::Full => Failure::BUSY,
    }
}

/// The address that a request came from, or with IPv6 its network of 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallerNetwork(pub(crate) IpAddr);

impl<S: Send + Sync> FromRequestParts<S> for CallerNetwork {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let ConnectInfo(address) = parts
            .extensions
            .get::<ConnectInfo<SocketAddr>>()
            .ok_or_else(|| Failure::invalid("the address of the client is not known"))?;
        Ok(Self(network(address.ip())))
    }
}

/// The hash of a password that nobody has, with the parameters of all others.
const NOBODYS_HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$Y4KzzIgUErd7/K7tAmABwA2eMCXmbCD25+kvB5hRRio";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Role;

    fn asker(network: u8) -> Asker {
        Asker {
            role: Role::Player,
            network: IpAddr::from([192, 0, 2, network]),
            name: None,
        }
    }

    #[tokio::test]
    async fn as_much_memory_is_kept_as_there_are_lanes_and_the_hashes_are_argon2() {
        let passwords = Passwords::new(0);
        let hashes = (0..12).map(|number| {
            let passwords = passwords.clone();
            tokio::spawn(async move {
                let asker = asker(number);
                let hash = passwords.hash(&asker, "their password".to_owned());
                hash.await.map_err(|_| ()).expect("there is room")
            })
        });
        let hashes: Vec<_> = hashes.collect();
        for hash in hashes {
            let hash = hash.await.expect("done");
            let parsed = PasswordHash::new(&hash).expect("a hash");
            assert_eq!(parsed.salt.map(|salt| salt.len()), Some(22));
            let other = Argon2::default();
            assert!(other.verify_password(b"their password", &parsed).is_ok());
            assert!(other.verify_password(b"another", &parsed).is_err());
        }
        let (_, theirs) = other_hash();
        let asker = asker(9);
        let right = passwords.is_right(&asker, "theirs".to_owned(), Some(theirs));
        assert!(right.await.is_ok_and(|right| right));
        let kept = lock(&passwords.memory.0)
            .iter()
            .map(Vec::len)
            .collect::<Vec<_>>();
        assert!((1..=2).contains(&kept.len()), "{kept:?}");
        let size = size_of::<Block>() * kept[0];
        assert!(size < 20 << 20, "{size}");
    }

    /// A hash that argon2 itself has made, as all were that are stored.
    fn other_hash() -> (SaltString, String) {
        let salt = SaltString::encode_b64(&[3; 16]).expect("short enough");
        let hash = Argon2::default().hash_password(b"theirs", &salt);
        let hash = hash.expect("hashed").to_string();
        (salt, hash)
    }

    /// A thousand who go away before their turn, and one who goes away in it: its lane is taken until the hash is done, then everything is free.
    #[tokio::test]
    async fn a_hash_keeps_its_lane_although_nobody_waits_for_it() {
        let passwords = Passwords::new(0);
        let (finish, finished) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = oneshot::channel();
        let slow = passwords.clone();
        let slow = tokio::spawn(async move {
            let work = move || {
                begin.send(()).ok()?;
                finished.recv().ok()
            };
            slow.run(&asker(1), work).await
        });
        begun.await.expect("it runs");
        slow.abort();
        assert!(slow.await.is_err());
        let running = |passwords: &Passwords| lock(&passwords.state).queue.hashing();
        assert_eq!(running(&passwords), 1);
        for _ in 0..1_000 {
            drop(passwords.ask(&asker(2)));
        }
        assert_eq!(running(&passwords), 1);
        finish.send(()).expect("it waits");
        let (place, turn) = passwords.ask(&asker(3)).map_err(|_| ()).expect("a place");
        turn.await.expect("a lane");
        drop(place);
        while running(&passwords) > 0 {
            tokio::task::yield_now().await;
        }
        assert!(lock(&passwords.state).waiting.is_empty());
    }
}
