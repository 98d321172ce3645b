//! Keys of servers, and connect tokens.

use std::ffi::c_char;
use std::time::{SystemTime, UNIX_EPOCH};

use muse::drivers::{SystemEntropy, load_or_create_key, new_key};
use muse::transport::token::{ConnectToken, TokenGrant, TokenIssuer};
use muse::transport::{ServerKey, ServerPublicKey};

use crate::config::given;
use crate::context::{Muse, run};
use crate::endpoint::address;
use crate::memory;
use crate::status::{Failure, MuseStatus};

/// The rights that a connect token gives.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MuseGrant {
    /// The account that is let in.
    pub account: u64,
    /// Time for which the token may be used for a new session, in seconds; 0 for 60, at most 86,400.
    pub lifetime_s: u64,
    /// The public key of the server that it is for.
    pub server_key: [u8; 32],
    /// The address of that server: "203.0.113.5:7000".
    pub server_address: *const c_char,
    /// Bytes for the server, which the player can neither read nor change, at most 256; null for none.
    pub user_data: *const u8,
    /// Number of bytes at `user_data`.
    pub user_data_len: usize,
}

/// The part of a connect token that its holder can read.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MuseTokenInfo {
    /// The time after which it cannot be used for a new session, seconds since 1970.
    pub expires_s: u64,
    /// The public key of the server that it is for.
    pub server_key: [u8; 32],
    /// The first of the server's addresses, as text with a zero at the end.
    pub server_address: [u8; 64],
}

/// Makes a server's key and puts its 32 bytes at `key`: keep them in a safe place.
///
/// # Safety
/// `muse` is null or a living Muse; 32 bytes can be written at `key` unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_key_new(muse: *mut Muse, key: *mut u8) -> MuseStatus {
    run!(muse, |_| {
        let place = memory::place(key.cast::<[u8; 32]>())?;
        place.put(*new_key()?.to_bytes());
        Ok(())
    })
}

/// Reads a server's key from the file at `path`, or makes one and writes it there, readable by its owner alone.
///
/// # Safety
/// `muse` is null or a living Muse; `path` is null or a text; 32 bytes can be written at `key` unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_key_load_or_create(
    muse: *mut Muse,
    path: *const c_char,
    key: *mut u8,
) -> MuseStatus {
    run!(muse, |_| {
        let place = memory::place(key.cast::<[u8; 32]>())?;
        place.put(*load_or_create_key(memory::text(path)?)?.to_bytes());
        Ok(())
    })
}

/// Gives the public key, 32 bytes, that belongs to a server's key: what clients are told.
///
/// # Safety
/// `muse` is null or a living Muse; 32 bytes can be read at `key` and written at `public_key` unless they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_key_public(
    muse: *mut Muse,
    key: *const u8,
    public_key: *mut u8,
) -> MuseStatus {
    run!(muse, |_| {
        let place = memory::place(public_key.cast::<[u8; 32]>())?;
        let key = memory::read(key.cast::<[u8; 32]>())?;
        place.put(*ServerKey::from_bytes(*key).public().as_bytes());
        Ok(())
    })
}

/// Reads a public key from 64 hexadecimal digits.
///
/// # Safety
/// `muse` is null or a living Muse; `text` is null or a text; 32 bytes can be written at `public_key` unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_key_parse(
    muse: *mut Muse,
    text: *const c_char,
    public_key: *mut u8,
) -> MuseStatus {
    run!(muse, |_| {
        let place = memory::place(public_key.cast::<[u8; 32]>())?;
        let key: ServerPublicKey = memory::text(text)?
            .parse()
            .map_err(|_| Failure::argument("a public key is 64 hexadecimal digits"))?;
        place.put(*key.as_bytes());
        Ok(())
    })
}

/// Makes an issuer of connect tokens for the game with this protocol number, whose key verifiers know by `key_id`. `seed` is 32 secret bytes, or
/// null for a new key that is kept nowhere.
///
/// # Safety
/// `muse` is null or a living Muse; 32 bytes can be read at `seed` unless it is null; `issuer` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_issuer_new(
    muse: *mut Muse,
    protocol: u64,
    key_id: u32,
    seed: *const u8,
    issuer: *mut u64,
) -> MuseStatus {
    run!(muse, |inner| {
        let place = memory::place(issuer)?;
        let issuer = match seed.cast::<[u8; 32]>().as_ref() {
            Some(seed) => TokenIssuer::from_bytes(protocol, key_id, seed),
            None => TokenIssuer::generate(protocol, key_id, &mut SystemEntropy::new()?),
        };
        place.put(inner.insert(issuer)?);
        Ok(())
    })
}

/// Gives the issuer's public key, 32 bytes: what servers are told, with its `key_id`.
///
/// # Safety
/// `muse` is null or a living Muse; 32 bytes can be written at `public_key` unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_issuer_public_key(
    muse: *mut Muse,
    issuer: u64,
    public_key: *mut u8,
) -> MuseStatus {
    run!(muse, |inner| {
        let place = memory::place(public_key.cast::<[u8; 32]>())?;
        place.put(inner.issuer(issuer)?.public_key());
        Ok(())
    })
}

/// Issues a token as text, with a zero at the end; `len` gets its length without it. 1,024 bytes are always enough. Treat it like a password.
///
/// # Safety
/// `muse` is null or a living Muse; `grant` is null or points to a grant; `capacity` bytes can be written at `buffer`; `len` is null or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_issue(
    muse: *mut Muse,
    issuer: u64,
    grant: *const MuseGrant,
    buffer: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> MuseStatus {
    run!(muse, |inner| {
        let len = memory::place(len)?;
        let wanted = memory::read(grant)?;
        let server = address(memory::text(wanted.server_address)?)?;
        let user_data = memory::bytes(wanted.user_data, wanted.user_data_len)?;
        let issuer = inner.issuer(issuer)?;
        let key = ServerPublicKey::from_bytes(wanted.server_key);
        let grant = TokenGrant::new(wanted.account, key, server).user_data(user_data);
        let grant = given(grant, wanted.lifetime_s, TokenGrant::lifetime_s);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_s = now.map_or(0, |since| since.as_secs());
        let token = issuer
            .issue(&grant, now_s, &mut SystemEntropy::new()?)
            .map_err(Failure::of(MuseStatus::ErrorToken))?;
        memory::copy_text(&token.to_text(), buffer, capacity, &len)
    })
}

/// Reads the part of a token that its holder can read.
///
/// # Safety
/// `muse` is null or a living Muse; `text` is null or a text; `info` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_token_read(
    muse: *mut Muse,
    text: *const c_char,
    info: *mut MuseTokenInfo,
) -> MuseStatus {
    run!(muse, |_| {
        let place = memory::place(info)?;
        let token = ConnectToken::from_text(memory::text(text)?)
            .map_err(Failure::of(MuseStatus::ErrorToken))?;
        let mut server_address = [0; 64];
        if let Some(address) = token.servers().first() {
            let text = address.to_string();
            // The longest address has 58 letters.
            let len = text.len().min(server_address.len() - 1);
            server_address[..len].copy_from_slice(&text.as_bytes()[..len]);
        }
        place.put(MuseTokenInfo {
            expires_s: token.expires_s(),
            server_key: *token.server_key().as_bytes(),
            server_address,
        });
        Ok(())
    })
}
