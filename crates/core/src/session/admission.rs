//! Whether there is room for one more session.
//!
//! Sessions being created and sessions still closing hold their place: the count of children never passes the limit
//! under any interleaving (invariants B1, S3). A session with a call in flight is never evicted.

/// How full the pool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Sessions live, being created or closing.
    pub held: usize,
    /// Of these, how many are closing and will make room without anybody's help.
    pub closing: usize,
    /// The limit.
    pub limit: usize,
    /// Keys waiting for room already.
    pub waiting: usize,
    /// How many may wait.
    pub max_waiting: usize,
    /// Whether some live session has no call in flight.
    pub has_idle: bool,
}

/// What to do with one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Open it now.
    Open,
    /// Close the session idle for longest; open when it is gone.
    EvictAndWait,
    /// Wait until some session closes or falls idle.
    Wait,
    /// Too many wait already.
    Refuse,
}

/// Decides about one more session.
pub fn admit(now: Occupancy) -> Admission {
    if now.held < now.limit {
        Admission::Open
    } else if now.waiting >= now.max_waiting {
        Admission::Refuse
    } else if now.has_idle && now.closing <= now.waiting {
        // Each one that closes already serves one that waits: evict only for those without.
        Admission::EvictAndWait
    } else {
        Admission::Wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Occupancy = Occupancy { held: 4, closing: 0, limit: 4, waiting: 0, max_waiting: 10, has_idle: true };

    #[test]
    fn below_the_limit_a_session_opens() {
        // Contract 4.1, capacity.
        assert_eq!(admit(Occupancy { held: 3, ..FULL }), Admission::Open);
    }

    #[test]
    fn at_the_limit_an_idle_session_makes_room_but_only_one_for_each_that_waits() {
        // Contract 4.4, LRU.
        assert_eq!(admit(FULL), Admission::EvictAndWait);
        assert_eq!(admit(Occupancy { closing: 1, ..FULL }), Admission::Wait);
        assert_eq!(admit(Occupancy { closing: 1, waiting: 1, ..FULL }), Admission::EvictAndWait);
    }

    #[test]
    fn with_every_session_in_use_one_waits_and_too_many_are_refused() {
        assert_eq!(admit(Occupancy { has_idle: false, ..FULL }), Admission::Wait);
        assert_eq!(admit(Occupancy { waiting: 10, ..FULL }), Admission::Refuse);
    }
}
