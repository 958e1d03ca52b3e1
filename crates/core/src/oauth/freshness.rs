//! When a token is too old to be handed out (contract 7.3).

use std::time::Duration;

/// Whether a token with `left` to live counts as expiring: it must outlive the skew.
pub fn is_expiring(left: Duration, skew: Duration) -> bool {
    left <= skew
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_ends_with_the_skew_is_expiring() {
        // Contract 7.3: expires_at <= now + max(skew, 0).
        let seconds = Duration::from_secs;
        for (left, skew, expiring) in [
            (seconds(61), seconds(60), false),
            (seconds(60), seconds(60), true),
            (Duration::ZERO, Duration::ZERO, true),
            (Duration::from_millis(1), Duration::ZERO, false),
            (seconds(2), seconds(60), true),
        ] {
            assert_eq!(is_expiring(left, skew), expiring, "{left:?} {skew:?}");
        }
    }
}
