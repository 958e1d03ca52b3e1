//! The states of a chain and their words.

/// Where a chain stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChainState {
    /// Nobody presents its refresh token, and it is not known to be spent.
    Idle,
    /// Somebody said that they present it; how that came out is not stored yet.
    InFlight,
    /// It was presented, and nobody knows whether the provider spent it.
    Unknown,
    /// It is of no use any more: a person must configure another one.
    ReauthNeeded,
}

impl ChainState {
    /// All of them, in the order of their stored numbers.
    pub const ALL: [Self; 4] = [Self::Idle, Self::InFlight, Self::Unknown, Self::ReauthNeeded];

    /// Its word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::InFlight => "refreshing",
            Self::Unknown => "unknown",
            Self::ReauthNeeded => "reauth_needed",
        }
    }
}
