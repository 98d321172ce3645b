//! Access to the recorded vectors.

use serde_json::Value;

/// The vectors of one kind, in their order.
pub(crate) fn of_kind(kind: &str) -> Vec<Value> {
    let all: Vec<Value> =
        serde_json::from_str(include_str!("../data/muse-rp.json")).expect("the file is JSON");
    all.into_iter()
        .filter(|vector| vector["kind"] == kind)
        .collect()
}

/// The datagram with this name.
pub(crate) fn datagram(name: &str) -> Vec<u8> {
    let found = of_kind("message")
        .into_iter()
        .find(|vector| vector["name"] == name);
    bytes(&found.expect("a vector of that name")["hex"])
}

/// A string.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

/// A number.
pub(crate) fn u32_of(value: &Value) -> u32 {
    let number = value.as_u64().expect("a number");
    u32::try_from(number).expect("32 bits")
}

/// Hexadecimal digits.
pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    let digits = text(value);
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits"))
        .collect()
}
