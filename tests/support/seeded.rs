//! Chance that can be had again: the same seed draws the same numbers in the same order.

/// A source of numbers (SplitMix64). Not for secrets.
#[derive(Clone, Debug)]
pub struct Seeded(u64);

impl Seeded {
    /// Begins with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another source, whose draws do not depend on how many are drawn here later.
    pub fn part(&mut self) -> Self {
        Self(self.number())
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `least` up to, but not, `most`; `least` when there is none between.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.number() % most.saturating_sub(least).max(1)
    }

    /// True as often as `share` says, from 0 to 1.
    pub fn happens(&mut self, share: f64) -> bool {
        let drawn = u32::try_from(self.number() >> 32).unwrap_or(u32::MAX);
        f64::from(drawn) < share * f64::from(u32::MAX)
    }

    /// One of them.
    ///
    /// # Panics
    /// There is none.
    pub fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        let at = self.between(0, from.len() as u64);
        &from[usize::try_from(at).expect("a place in a slice")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_draws_the_same_again_and_shares_are_kept() {
        let draw = |seed| {
            let mut source = Seeded::new(seed);
            (0..5).map(|_| source.number()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let mut source = Seeded::new(1);
        let happened = (0..100_000).filter(|_| source.happens(0.004)).count();
        assert!((300..500).contains(&happened), "{happened}");
        assert!((0..1_000).all(|_| (3..5).contains(&source.between(3, 5))));
        assert_eq!((source.between(9, 9), *source.pick(&["only"])), (9, "only"));
    }
}
