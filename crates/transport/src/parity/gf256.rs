//! Arithmetic of the field with 256 elements: the polynomials over bits modulo x^8 + x^4 + x^3 + x^2 + 1 (0x11d).
//!
//! Single products go through logarithms to the base 2; whole slices go through [`mul_add`], which is where parity
//! spends its time. It looks nothing up: eight tests and exclusive-ors on bytes side by side, which the compiler
//! turns into vector instructions on every target and which, unlike a table of products, do not push the
//! game's data out of the cache (docs/decisions/0003).

/// `left` times `right`.
pub(crate) const fn mul(left: u8, right: u8) -> u8 {
    if left == 0 || right == 0 {
        return 0;
    }
    TABLES.powers
        [TABLES.logarithms[left as usize] as usize + TABLES.logarithms[right as usize] as usize]
}

/// The number whose product with `value` is one; `value` must not be zero (for which it answers 1).
pub(crate) const fn inverse(value: u8) -> u8 {
    TABLES.powers[ORDER - TABLES.logarithms[value as usize] as usize]
}

/// Adds `factor` times `source` to the front of `target`, as far as both reach.
pub(crate) fn mul_add(target: &mut [u8], source: &[u8], factor: u8) {
    let len = target.len().min(source.len());
    let (target, target_rest) = target[..len].split_at_mut(len - len % LANES);
    let (source, source_rest) = source[..len].split_at(len - len % LANES);
    // The contribution of each bit of a source byte to the product.
    let mut contributions = [factor; 8];
    for bit in 1..8 {
        contributions[bit] = double(contributions[bit - 1]);
    }
    mul_add_lanes(target, source, contributions);
    if !source_rest.is_empty() {
        // Padded to full width: byte by byte the rest would cost as much as the whole.
        let (mut padded_target, mut padded_source) = ([0; LANES], [0; LANES]);
        padded_source[..source_rest.len()].copy_from_slice(source_rest);
        padded_target[..source_rest.len()].copy_from_slice(target_rest);
        mul_add_lanes(&mut padded_target, &padded_source, contributions);
        target_rest.copy_from_slice(&padded_target[..source_rest.len()]);
    }
}

/// Multiplies `values` by `factor` in place.
pub(crate) fn scale(values: &mut [u8], factor: u8) {
    for value in values {
        *value = mul(*value, factor);
    }
}

const fn double(value: u8) -> u8 {
    (value << 1) ^ ((value >> 7) * (POLYNOMIAL & 0xff) as u8)
}

/// Written out bit by bit: as a loop over the bits it is not vectorised and costs ten times as much.
#[inline(always)]
fn mul_add_lanes(target: &mut [u8], source: &[u8], contributions: [u8; 8]) {
    let [c0, c1, c2, c3, c4, c5, c6, c7] = contributions;
    for (target, &source) in target.iter_mut().zip(source) {
        let part = |bit: u8, contribution: u8| if source & bit != 0 { contribution } else { 0 };
        *target ^= part(1, c0)
            ^ part(2, c1)
            ^ part(4, c2)
            ^ part(8, c3)
            ^ part(16, c4)
            ^ part(32, c5)
            ^ part(64, c6)
            ^ part(128, c7);
    }
}

struct Tables {
    /// Powers of 2, twice over, so that a sum of two logarithms needs no reduction.
    powers: [u8; 2 * ORDER],
    logarithms: [u8; 256],
}

const fn build_tables() -> Tables {
    let mut tables = Tables {
        powers: [0; 2 * ORDER],
        logarithms: [0; 256],
    };
    let mut value = 1_u16;
    let mut exponent = 0;
    while exponent < ORDER {
        tables.powers[exponent] = value as u8;
        tables.powers[exponent + ORDER] = value as u8;
        tables.logarithms[value as usize] = exponent as u8;
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= POLYNOMIAL;
        }
        exponent += 1;
    }
    tables
}

const POLYNOMIAL: u16 = 0x11d;
/// Elements other than zero, all of them powers of 2.
const ORDER: usize = 255;
/// Bytes handled side by side.
const LANES: usize = 16;
static TABLES: Tables = build_tables();

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: multiply as polynomials, then reduce.
    fn mul_by_definition(left: u8, right: u8) -> u8 {
        let mut product = 0_u16;
        for bit in 0..8 {
            if right & (1 << bit) != 0 {
                product ^= u16::from(left) << bit;
            }
        }
        for bit in (8..16).rev() {
            if product & (1 << bit) != 0 {
                product ^= POLYNOMIAL << (bit - 8);
            }
        }
        product as u8
    }

    #[test]
    fn products_and_inverses_agree_with_the_definition() {
        for left in 0..=255 {
            for right in 0..=255 {
                assert_eq!(
                    mul(left, right),
                    mul_by_definition(left, right),
                    "{left} * {right}"
                );
            }
            assert!(
                left == 0 || mul(left, inverse(left)) == 1,
                "inverse of {left}"
            );
        }
    }

    #[test]
    fn slices_of_every_length_and_factor_agree_with_single_products() {
        let source: Vec<u8> = (0..100_u32).map(|index| (index * 73 + 5) as u8).collect();
        for factor in 0..=255 {
            for len in (0..70).chain([99, 100]) {
                let mut target: Vec<u8> = (0..100_u32).map(|index| (index * 29) as u8).collect();
                let mut expected = target.clone();
                for (expected, source) in expected.iter_mut().zip(&source[..len]) {
                    *expected ^= mul_by_definition(factor, *source);
                }
                mul_add(&mut target, &source[..len], factor);
                assert_eq!(target, expected, "factor {factor}, length {len}");
            }
        }
    }
}
