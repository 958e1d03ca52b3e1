//! Which replica looks first after which part of the tasks (durability.md 1.2, soft shards).
//!
//! Every replica works it out for itself from those it believes to be alive. Where they disagree, two look at the same
//! rows or nobody does for a moment; claims decide, and what is overdue is everybody's.

use sha2::{Digest as _, Sha256};

use super::lane::Shard;
use crate::ids::BootId;

/// The shards that are `ours` among the `live` replicas. A replica that does not find itself among them has all.
pub fn shards_of(ours: &BootId, live: &[BootId]) -> Vec<Shard> {
    if !live.contains(ours) {
        return Shard::all().collect();
    }
    let is_ours = |shard: &Shard| live.iter().max_by_key(|boot| weight(boot, *shard)) == Some(ours);
    Shard::all().filter(is_ours).collect()
}

/// The greatest weight wins, so one replica more or less moves only its own shards.
fn weight(boot: &BootId, shard: Shard) -> [u8; 32] {
    Sha256::new().chain_update(boot.as_str()).chain_update([shard.number()]).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shard_has_one_replica_and_only_those_of_the_lost_one_move() {
        // Invariant T4; durability.md 1.2.
        let all: Vec<BootId> = (0..5).map(|number| BootId::new(format!("boot-{number}"))).collect();
        let parts: Vec<Vec<Shard>> = all.iter().map(|boot| shards_of(boot, &all)).collect();
        let mut together = parts.concat();
        together.sort_unstable();
        assert_eq!(together, Shard::all().collect::<Vec<_>>());
        let left = &all[1..];
        for (boot, before) in all.iter().zip(&parts).skip(1) {
            let after = shards_of(boot, left);
            assert!(before.iter().all(|shard| after.contains(shard)), "{boot} keeps what it had");
        }
        assert_eq!(shards_of(&all[0], &all[..1]).len(), usize::from(Shard::COUNT));
        assert_eq!(shards_of(&all[0], left).len(), usize::from(Shard::COUNT), "nobody else may know of it yet");
    }
}
