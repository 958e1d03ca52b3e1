//! The table of invariants. Docs, asserts, simulations and metrics name them by these ids.

/// One promise: its id and the sentence.
#[derive(Clone, Copy, Debug)]
pub struct Invariant {
    /// Short name, such as `S2`.
    pub id: &'static str,
    /// What always holds.
    pub sentence: &'static str,
}

const fn invariant(id: &'static str, sentence: &'static str) -> Invariant {
    Invariant { id, sentence }
}

/// What holds in this tree today. A promise enters with the code that keeps it.
pub const INVARIANTS: [Invariant; 20] = [
    invariant("L1", "a standing owner acts only inside its replica's trust window"),
    invariant("L2", "an epoch only grows"),
    invariant(
        "C1",
        "the result of a claim is written only under its token and before its expiry; the one exception is the commit of a \
         received OAuth successor, fenced by generation alone",
    ),
    invariant("C2", "a cancel request fences the poll in flight"),
    invariant("S2", "a call that may have reached its server is never repeated by us; ambiguity is reported"),
    invariant("S3", "live intervals of children of one session key are disjoint"),
    invariant("S4", "only the very session that failed can be evicted for the failure"),
    invariant("P1", "what one principal made cannot be used, seen or answered by another"),
    invariant(
        "T1",
        "the intent is stored before the remote is asked; no caller hears of a task before its handle is stored",
    ),
    invariant("T2", "a terminal status never changes"),
    invariant("T3", "a status change and its event commit together"),
    invariant("T4", "every unfinished task has a due work row; none is lost"),
    invariant(
        "N1",
        "an event is delivered at least once, in order per task, one key until a run is *known* to have failed; delivered = \
         its run succeeded",
    ),
    invariant("O1", "presentations of one refresh token never overlap"),
    invariant(
        "O2",
        "whoever begins a refresh knows whether an earlier one may have spent the token; a received successor is never lost",
    ),
    invariant("O3", "no secret is printable; a ciphertext moved to another row or column is refused"),
    invariant("G1", "what was opened under another generation serves no new call"),
    invariant("G2", "losing Redis causes an extra reset, never a missed one"),
    invariant("B1", "every queue, map and wait is bounded; refusal comes within 50 ms"),
    invariant("W1", "what we do not understand passes unchanged"),
];
