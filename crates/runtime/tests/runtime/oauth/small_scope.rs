//! All histories of two replicas over two generations with one crash and one pause: at every border, of either replica
//! (invariants O1, O2).

use std::time::Duration;

use futures::future::join_all;
use tokio::time::{Instant, sleep, timeout};

use super::cluster::{Cluster, Fate, Member};
use super::simulation::{settled, under_virtual_time};

const SECOND: Duration = Duration::from_secs(1);
const LIFE: Duration = Duration::from_secs(10);

/// The borders that a replica crosses over two generations: of the store there and back, and of the provider.
const BORDERS: usize = 20;

/// Those after which one that waits only looks again.
const WAITING: usize = 8;

/// Beyond the lease, and beyond all patience.
const LENGTHS: [Duration; 2] = [Duration::from_secs(31), Duration::from_secs(200)];

/// One pause: whose, where and how long.
type Pause = Option<(usize, usize, Duration)>;

async fn both(members: &[Member; 2]) {
    let tokens = [members[0].tokens().await, members[1].tokens().await];
    join_all(tokens.iter().map(|tokens| timeout(5 * SECOND, tokens.current()))).await;
}

async fn history(crash: Option<usize>, pause: Pause) -> Vec<String> {
    let cluster = Cluster::new(LIFE, None);
    let members = [cluster.member().await, cluster.member().await];
    for (at, member) in members.iter().enumerate() {
        let pause = pause.filter(|(whose, ..)| *whose == at).map(|(_, border, length)| (border, length));
        member.borders.plan(crash.filter(|_| at == 0), pause);
    }
    for fate in [Fate::Answered(SECOND), Fate::Answered(2 * SECOND)] {
        cluster.provider.then(fate);
        both(&members).await;
        sleep(LIFE).await;
    }
    if members[0].borders.has_crashed() && crash.is_some_and(|border| border % 2 == 0) {
        cluster.declare_dead(members[0].boot()).await;
    }
    let healed = Instant::now();
    let mut violations = Vec::new();
    for member in members.iter().filter(|member| !member.borders.has_crashed()) {
        violations.extend(settled(&cluster, member, healed).await.err());
    }
    violations.extend(cluster.provider.violations());
    violations.iter_mut().for_each(|violation| violation.insert_str(0, &format!("crash {crash:?}, pause {pause:?}: ")));
    violations
}

fn all_with(crashes: impl Iterator<Item = Option<usize>>) {
    for crash in crashes {
        // Whoever has crashed stands still nowhere.
        let of_first = (1..crash.unwrap_or(BORDERS)).map(|border| (0, border));
        let of_second = (1..=WAITING).map(|border| (1, border));
        let pauses = of_first.chain(of_second);
        let pauses =
            pauses.flat_map(|(whose, border)| LENGTHS.iter().map(move |length| Some((whose, border, *length))));
        for pause in pauses.chain([None]) {
            assert_eq!(under_virtual_time(history(crash, pause)), Vec::<String>::new());
        }
    }
}

#[test]
fn no_token_is_spent_twice_whoever_stands_still() {
    all_with([None].into_iter());
}

#[test]
fn no_token_is_spent_twice_wherever_one_crashes_before_it_asks() {
    all_with((1..=9).map(Some));
}

#[test]
fn no_token_is_spent_twice_wherever_one_crashes_in_its_first_generation() {
    all_with((10..=13).map(Some));
}

#[test]
fn no_token_is_spent_twice_wherever_one_crashes_when_it_asks_again() {
    all_with((14..=17).map(Some));
}

#[test]
fn no_token_is_spent_twice_wherever_one_crashes_in_its_second_generation() {
    all_with((18..=BORDERS).map(Some));
}
