//! When a token that still serves is refreshed in the background (durability.md 3.3, R6).

use std::time::Duration;

/// A token with a long life is refreshed this long before its end at the latest.
const AT_LEAST: Duration = Duration::from_secs(60);

/// How long after it was asked for a token of this life is refreshed, while it still serves: four fifths of it, at
/// least a minute before its end where it lives longer than that, moved by up to a tenth. `spread` from 0 to 255 says
/// where in that range, so that the chains of a deployment do not all come due at once.
pub fn refresh_ahead(life: Duration, spread: u8) -> Duration {
    let four_fifths = life.mul_f64(0.8);
    let at_most = life.checked_sub(AT_LEAST).filter(|at_most| *at_most >= life / 2).unwrap_or(life);
    let moved = four_fifths.mul_f64(0.9 + 0.2 * f64::from(spread) / 255.0);
    moved.min(at_most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_refreshed_after_four_fifths_of_its_life_more_or_less() {
        // R6.
        let ahead = |life, spread| refresh_ahead(Duration::from_secs(life), spread).as_secs_f64();
        for life in [1, 60, 600, 3_600, 86_400] {
            let life_s = f64::from(u32::try_from(life).unwrap());
            assert!((ahead(life, 0) / life_s - 0.72).abs() < 0.001, "{life}");
            assert!(ahead(life, 255) <= life_s * 0.881 && ahead(life, 255) > ahead(life, 0), "{life}");
        }
        assert!(ahead(400, 255) <= 340.0, "a minute before the end");
    }
}
