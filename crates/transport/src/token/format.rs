//! The bytes of a token that travel in the open; `docs/handshake.md` has the table.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use muse_wire::bytes::Reader;

use super::{
    SEALED_FIXED_LEN, SEALED_OVERHEAD, SERVERS_MAX, ServerPublicKey, TOKEN_ID_LEN, TokenGrant,
    TokenId, TokenIssuer, USER_DATA_LEN_MAX,
};

/// A view of the public bytes, whose structure has been checked and nothing else.
#[derive(Clone, Copy)]
pub(super) struct PublicToken<'a> {
    pub(super) protocol_id: u64,
    pub(super) key_id: u32,
    pub(super) id: TokenId,
    pub(super) issued_s: u64,
    pub(super) expires_s: u64,
    pub(super) server_key: ServerPublicKey,
    addresses: &'a [u8],
    /// Everything before the sealed part, which the sealed part is bound to.
    pub(super) header: &'a [u8],
    pub(super) sealed: &'a [u8],
    /// Everything before the signature.
    pub(super) unsigned: &'a [u8],
    pub(super) signature: [u8; SIGNATURE_LEN],
}

impl<'a> PublicToken<'a> {
    /// None when the structure is not a token's; nothing may follow it.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.u8().ok()? != FORMAT_VERSION {
            return None;
        }
        let protocol_id = reader.u64().ok()?;
        let key_id = reader.u32().ok()?;
        let id = TokenId(reader.array().ok()?);
        let issued_s = reader.u64().ok()?;
        let expires_s = reader.u64().ok()?;
        let server_key = ServerPublicKey::from_bytes(reader.array().ok()?);
        let count = usize::from(reader.u8().ok()?);
        if !(1..=SERVERS_MAX).contains(&count) {
            return None;
        }
        let rest = reader.rest();
        for _ in 0..count {
            read_address(&mut reader)?;
        }
        let addresses = &rest[..rest.len() - reader.remaining()];
        let header = &bytes[..bytes.len() - reader.remaining()];
        let sealed_len = usize::from(reader.u16().ok()?);
        let sealed = reader.slice(sealed_len).ok()?;
        if !(SEALED_LEN_MIN..=SEALED_LEN_MIN + USER_DATA_LEN_MAX).contains(&sealed_len) {
            return None;
        }
        let unsigned = &bytes[..bytes.len() - reader.remaining()];
        let signature = reader.array().ok()?;
        let token = Self {
            protocol_id,
            key_id,
            id,
            issued_s,
            expires_s,
            server_key,
            addresses,
            header,
            sealed,
            unsigned,
            signature,
        };
        reader.is_empty().then_some(token)
    }

    /// The addresses, in order.
    pub(super) fn servers(&self) -> impl Iterator<Item = SocketAddr> + use<'a> {
        let mut reader = Reader::new(self.addresses);
        std::iter::from_fn(move || read_address(&mut reader))
    }
}

/// Writes everything before the sealed part.
pub(super) fn write_header(
    public: &mut Vec<u8>,
    issuer: &TokenIssuer,
    grant: &TokenGrant,
    id: TokenId,
    unix_now_s: u64,
) {
    public.push(FORMAT_VERSION);
    public.extend_from_slice(&issuer.protocol_id.to_le_bytes());
    public.extend_from_slice(&issuer.key_id.to_le_bytes());
    public.extend_from_slice(&id.0);
    public.extend_from_slice(&unix_now_s.to_le_bytes());
    public.extend_from_slice(&unix_now_s.saturating_add(grant.lifetime_s).to_le_bytes());
    public.extend_from_slice(grant.server_key.as_bytes());
    public.push(grant.servers.len() as u8);
    for server in &grant.servers {
        match server.ip().to_canonical() {
            IpAddr::V4(ip) => {
                public.push(FAMILY_V4);
                public.extend_from_slice(&ip.octets());
            }
            IpAddr::V6(ip) => {
                public.push(FAMILY_V6);
                public.extend_from_slice(&ip.octets());
            }
        }
        public.extend_from_slice(&server.port().to_le_bytes());
    }
}

/// Returns what is signed: a label, so that the key's signatures mean nothing elsewhere, and the token so far.
pub(super) fn signed(unsigned: &[u8]) -> Vec<u8> {
    [SIGNATURE_LABEL, unsigned].concat()
}

fn read_address(reader: &mut Reader<'_>) -> Option<SocketAddr> {
    let ip = match reader.u8().ok()? {
        FAMILY_V4 => IpAddr::V4(Ipv4Addr::from(reader.array::<4>().ok()?)),
        FAMILY_V6 => IpAddr::V6(Ipv6Addr::from(reader.array::<16>().ok()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip, reader.u16().ok()?))
}

/// Longest public part: header, eight IPv6 addresses, the longest user data, signature.
pub(crate) const PUBLIC_LEN_MAX: usize =
    HEADER_FIXED_LEN + SERVERS_MAX * 19 + 2 + SEALED_LEN_MIN + USER_DATA_LEN_MAX + SIGNATURE_LEN;
/// Offset of the token's name: version, protocol id and the key's number precede it.
pub(crate) const TOKEN_ID_OFFSET: usize = 1 + 8 + 4;
const HEADER_FIXED_LEN: usize = TOKEN_ID_OFFSET + TOKEN_ID_LEN + 8 + 8 + 32 + 1;
const SEALED_LEN_MIN: usize = SEALED_OVERHEAD + SEALED_FIXED_LEN;
const SIGNATURE_LEN: usize = 64;
const FORMAT_VERSION: u8 = 1;
const FAMILY_V4: u8 = 4;
const FAMILY_V6: u8 = 6;
const SIGNATURE_LABEL: &[u8] = b"muse connect token 1";
