//! Base64url without padding (RFC 4648, section 5): thirty lines instead of a dependency.

/// `bytes` as text.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0; 4];
        group[1..=chunk.len()].copy_from_slice(chunk);
        let group = u32::from_be_bytes(group);
        for index in 0..=chunk.len() {
            let digit = (group >> (18 - 6 * index)) & 0x3f;
            text.push(char::from(ALPHABET[digit as usize]));
        }
    }
    text
}

/// The bytes of `text`; none when it is not exactly what [`encode`] writes or holds more than `len_max` bytes.
pub(super) fn decode(text: &str, len_max: usize) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if text.len() > len_max.div_ceil(3) * 4 || text.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for chunk in text.chunks(4) {
        let mut group: u32 = 0;
        for (index, letter) in chunk.iter().enumerate() {
            let digit = ALPHABET.iter().position(|known| known == letter)? as u32;
            group |= digit << (18 - 6 * index);
        }
        let whole = chunk.len() - 1;
        // Bits beyond the last whole byte must be zero, or two texts would mean one token.
        if group & (0x00ff_ffff >> (8 * whole)) != 0 {
            return None;
        }
        bytes.extend_from_slice(&group.to_be_bytes()[1..=whole]);
    }
    Some(bytes)
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_texts_and_round_trips() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg"),
            (b"fo", "Zm8"),
            (b"foo", "Zm9v"),
            (b"\xff\xfe\xfd\xfc", "__79_A"),
        ] {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text, 16).as_deref(), Some(bytes));
        }
        for len in 0..70 {
            let bytes: Vec<u8> = (0..len).map(|byte: u8| byte.wrapping_mul(37)).collect();
            assert_eq!(decode(&encode(&bytes), 70), Some(bytes));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "Z",
            "Zg==",
            "Zh",
            "Zm9",
            "Z g",
            "+/+/",
            "AAAAAAAAAAAAAAAAAAAAAAAAA",
        ] {
            assert_eq!(decode(text, 16), None, "{text}");
        }
    }
}
