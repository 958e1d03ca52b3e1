//! Histories of replicas that stand still, crash and lose answers, and of a store that is away, unclear or forgetful
//! (invariants O1, O2; durability.md 7, I16 to I20).
//!
//! 200 seeds always; `CARIBOU_SIMULATION_SEEDS` says how many instead. A failure names its seed. Each fence that is taken
//! down must turn the suite red.

use std::sync::Arc;
use std::time::Duration;

use caribou_ports::access_token::AccessTokens;
use tokio::time::{Instant, sleep, timeout};

use super::cluster::{Cluster, Fate, Member, Mutant};
use super::dice::Dice;

const SECOND: Duration = Duration::from_secs(1);

/// Of the access tokens: short, so that much of the time a refresh is under way.
const LIFE: Duration = Duration::from_secs(10);

/// Longer than anybody waits for a token.
const PATIENCE: Duration = Duration::from_secs(400);

/// What one history came to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    violations: Vec<String>,
    given: u64,
    crashes: usize,
    pauses: usize,
    /// Tokens that came back where nobody could know.
    excused: usize,
    /// Replicas that asked for a person at the end.
    ended: usize,
}

impl std::ops::AddAssign for Outcome {
    fn add_assign(&mut self, other: Self) {
        self.violations.extend(other.violations);
        self.given += other.given;
        self.crashes += other.crashes;
        self.pauses += other.pauses;
        self.excused += other.excused;
        self.ended += other.ended;
    }
}

/// Runs something under virtual time of its own.
pub(super) fn under_virtual_time<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(work)
}

/// Needs tokens for ever, as sessions do.
async fn need(tokens: Arc<dyn AccessTokens>, mut dice: Dice) {
    loop {
        let _ = timeout(20 * SECOND, tokens.current()).await;
        sleep(Duration::from_millis(dice.roll(200, 4_000))).await;
    }
}

async fn join(cluster: &Cluster, dice: &mut Dice) -> (Member, tokio::task::JoinHandle<()>) {
    let member = cluster.member().await;
    let needing = tokio::spawn(need(member.tokens().await, Dice(dice.roll(0, u64::MAX - 1))));
    (member, needing)
}

/// One thing that befalls the cluster.
async fn befall(
    cluster: &Cluster,
    members: &mut [(Member, tokio::task::JoinHandle<()>)],
    dice: &mut Dice,
    outcome: &mut Outcome,
) {
    let at = usize::try_from(dice.roll(0, 2)).unwrap();
    let crossing = usize::try_from(dice.roll(1, 12)).unwrap();
    match dice.roll(0, 9) {
        0..=2 => {
            let length = if dice.roll(0, 2) == 0 { dice.roll(121, 220) } else { dice.roll(5, 100) };
            members[at].0.borders.plan(None, Some((crossing, length as u32 * SECOND)));
            outcome.pauses += 1;
        }
        3 | 4 => {
            members[at].0.borders.plan(Some(crossing), None);
            sleep(dice.roll(1, 30) as u32 * SECOND).await;
            members[at].0.borders.crash();
            members[at].1.abort();
            if dice.roll(0, 1) == 0 {
                cluster.declare_dead(members[at].0.boot()).await;
            }
            members[at] = join(cluster, dice).await;
            outcome.crashes += 1;
        }
        5 => cluster.provider.then(Fate::Lost),
        6 => cluster.provider.then(if dice.roll(0, 1) == 0 { Fate::Refused } else { Fate::Unreachable }),
        7 => cluster.provider.then(Fate::Answered(dice.roll(2, 40) as u32 * SECOND)),
        8 => cluster.store_away(dice.roll(1, 40) as u32 * SECOND),
        _ => cluster.unclear_commit(),
    }
}

/// One history: faults, then quiet, in which all of it works again or has ended for a reason.
async fn history(seed: u64, mutant: Option<Mutant>) -> Outcome {
    let (mut dice, mut outcome) = (Dice(seed), Outcome::default());
    let cluster = Cluster::new(LIFE, mutant);
    let mut members = Vec::new();
    for _ in 0..3 {
        members.push(join(&cluster, &mut dice).await);
    }
    for _ in 0..12 {
        sleep(Duration::from_millis(dice.roll(1_000, 40_000))).await;
        // A failover to a standby that lacks the last commit: everybody may be wrong from then on, and nobody hangs.
        if seed % 10 == 9 && dice.roll(0, 3) == 0 {
            cluster.lost_commit();
        }
        befall(&cluster, &mut members, &mut dice, &mut outcome).await;
    }
    let healed = Instant::now();
    for (member, needing) in members {
        needing.abort();
        if member.borders.has_crashed() {
            continue;
        }
        member.borders.plan(None, None);
        member.borders.pause(Duration::ZERO);
        match settled(&cluster, &member, healed).await {
            Ok(is_ended) => outcome.ended += usize::from(is_ended),
            Err(violation) => outcome.violations.push(violation),
        }
    }
    outcome.given = cluster.provider.given();
    outcome.excused = cluster.provider.excused();
    outcome.violations.extend(cluster.provider.violations());
    outcome.violations.iter_mut().for_each(|violation| violation.insert_str(0, &format!("seed {seed}: ")));
    outcome
}

/// Waits until a replica has a token again, or the chain has ended for a reason; whether it has.
pub(super) async fn settled(cluster: &Cluster, member: &Member, since: Instant) -> Result<bool, String> {
    let tokens = member.tokens().await;
    loop {
        let Ok(answer) = timeout(PATIENCE, tokens.current()).await else {
            // One that crashed at last answers nobody.
            return if member.borders.has_crashed() { Ok(false) } else { Err("it waits for ever".to_owned()) };
        };
        match answer {
            Ok(_) => return Ok(false),
            Err(error) if error.needs_person => {
                // Refused by the provider after a loss, or of unknown outcome twice.
                let is_lost = cluster.provider.is_revoked() && cluster.provider.excused() > 0;
                let is_excused = is_lost || cluster.row().await.presented >= 2;
                return if is_excused {
                    Ok(true)
                } else {
                    Err(format!("it ended, and nobody lost an answer: {error}"))
                };
            }
            Err(error) if since.elapsed() > 900 * SECOND => return Err(format!("it never recovers: {error}")),
            Err(_) => sleep(5 * SECOND).await,
        }
    }
}

fn seeds() -> u64 {
    std::env::var("CARIBOU_SIMULATION_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(200)
}

/// A quarter of the seeds, so that cores share them.
fn quarter(at: u64) {
    let mut sum = Outcome::default();
    for seed in (0..seeds()).filter(|seed| seed % 4 == at) {
        sum += under_virtual_time(history(seed, None));
    }
    assert_eq!(sum.violations, Vec::<String>::new());
    // It bit.
    let histories = seeds() / 4;
    assert!(sum.given > histories * 10 && sum.crashes as u64 > histories && sum.pauses as u64 > histories, "{sum:?}");
    assert!(sum.excused as u64 > histories / 10 && sum.ended > 0, "answers were lost for good: {sum:?}");
}

#[test]
fn no_token_is_spent_twice_and_no_successor_lost_first_quarter() {
    quarter(0);
}

#[test]
fn no_token_is_spent_twice_and_no_successor_lost_second_quarter() {
    quarter(1);
}

#[test]
fn no_token_is_spent_twice_and_no_successor_lost_third_quarter() {
    quarter(2);
}

#[test]
fn no_token_is_spent_twice_and_no_successor_lost_fourth_quarter() {
    quarter(3);
}

/// The first seed that this mutant is found with.
fn found(mutant: Mutant, word: &str) {
    let is_it = |violation: &String| violation.contains(word);
    let found = (0..200).find(|seed| under_virtual_time(history(*seed, Some(mutant))).violations.iter().any(is_it));
    assert!(found.is_some(), "{mutant:?} is not noticed");
}

#[test]
fn a_commit_fenced_by_its_lease_loses_a_successor() {
    found(Mutant::CommitFencedByLease, "whose successor was received");
}

#[test]
fn without_an_intent_a_token_is_shown_out_of_turn() {
    found(Mutant::NoIntent, "without a standing intent");
    found(Mutant::NoIntent, "while another replica does");
}

#[test]
fn a_loser_that_clears_the_chain_shows_a_spent_token() {
    found(Mutant::LoserClears, "whose successor was received");
}

#[test]
fn without_a_look_at_the_lease_before_the_first_byte_a_token_is_shown_out_of_turn() {
    found(Mutant::NoTrustCheck, "without a standing intent");
}
