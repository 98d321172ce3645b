//! Logarithm, exponential and random draws that give the same bits on every platform.
//!
//! The standard library takes `ln` and `exp` from the platform, so their last bits differ between native code and WASM,
//! and with them every delivery after. These use only `+ - * /` and `sqrt`, which IEEE 754 defines exactly.

use fastrand::Rng;

/// Natural logarithm of a positive, normal number; relative error below 1e-14.
pub(crate) fn ln(x: f64) -> f64 {
    debug_assert!(x.is_normal() && x > 0.0);
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7FF) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & 0x000F_FFFF_FFFF_FFFF) | (1023 << 52));
    if mantissa > core::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)); the argument is below 0.172, so twelve terms reach the last bits.
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let square = z * z;
    let series = (0..12)
        .rev()
        .fold(0.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    2.0 * z * series + exponent as f64 * core::f64::consts::LN_2
}

/// `e` to the power of `x`, for `x` between -700 and 700 (clamped).
pub(crate) fn exp(x: f64) -> f64 {
    let x = x.clamp(-700.0, 700.0);
    let halvings = (x / core::f64::consts::LN_2 + 0.5).floor();
    let rest = x - halvings * core::f64::consts::LN_2;
    let series = (1..=18)
        .rev()
        .fold(1.0, |sum, k| 1.0 + sum * rest / f64::from(k));
    series * f64::from_bits(((halvings as i64 + 1023) as u64) << 52)
}

/// A draw from the standard normal distribution (Marsaglia's polar method).
pub(crate) fn standard_normal(rng: &mut Rng) -> f64 {
    loop {
        let x = 2.0 * rng.f64() - 1.0;
        let y = 2.0 * rng.f64() - 1.0;
        let square = x * x + y * y;
        if square < 1.0 && square.is_normal() {
            return x * (-2.0 * ln(square) / square).sqrt();
        }
    }
}

/// A draw from the Lomax distribution (a Pareto distribution that starts at zero): `scale * (U^(-1/shape) - 1)`.
pub(crate) fn lomax(rng: &mut Rng, scale: f64, shape: f64) -> f64 {
    let uniform = 1.0 - rng.f64();
    scale * (exp(-ln(uniform) / shape) - 1.0)
}

/// Draws whether something of this probability happens. Draws nothing when it is impossible, so that conditions without an
/// impairment cost nothing for it.
pub(crate) fn happens(rng: &mut Rng, probability: f64) -> bool {
    probability > 0.0 && rng.f64() < probability
}

/// Two numbers mixed into one seed, so that neighbouring inputs give unrelated seeds (the finaliser of SplitMix64).
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let mut z = a ^ b.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "the platform's are what ours are compared with"
    )]
    fn logarithm_and_exponential_agree_with_the_platform() {
        for step in 1..20_000 {
            let x = f64::from(step) * 0.013_7;
            assert!(
                (ln(x) - x.ln()).abs() <= 1e-14 * x.ln().abs().max(1.0),
                "ln {x}"
            );
            let y = x - 137.0;
            assert!((exp(y) / y.exp() - 1.0).abs() < 1e-12, "exp {y}");
        }
        assert!((ln(1e-300) - 1e-300f64.ln()).abs() < 1e-11);
    }

    #[test]
    fn normal_draws_have_mean_zero_and_variance_one() {
        let mut rng = Rng::with_seed(1);
        let draws: Vec<f64> = (0..200_000).map(|_| standard_normal(&mut rng)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        let within_one = draws.iter().filter(|x| x.abs() < 1.0).count() as f64 / draws.len() as f64;
        assert!(
            mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02,
            "{mean} {variance}"
        );
        assert!((within_one - 0.6827).abs() < 0.005, "{within_one}");
    }
}
