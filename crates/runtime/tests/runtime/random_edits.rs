//! Random histories of edits of a large document close the sessions they must, and no others (contract 5.3, 5.5;
//! invariant G1).

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::followed::{Setting, document};

/// One random edit of the document.
#[derive(Clone, Debug)]
enum RandomEdit {
    Command(usize, u8),
    Description(usize, u8),
    Remove(usize),
    Restore(usize),
    Enable(usize, bool),
    Reorder,
}

fn random_edit(servers: usize) -> impl Strategy<Value = RandomEdit> {
    prop_oneof![
        (0..servers, any::<u8>()).prop_map(|(at, to)| RandomEdit::Command(at, to % 3)),
        (0..servers, any::<u8>()).prop_map(|(at, to)| RandomEdit::Description(at, to)),
        (0..servers).prop_map(RandomEdit::Remove),
        (0..servers).prop_map(RandomEdit::Restore),
        (0..servers, any::<bool>()).prop_map(|(at, on)| RandomEdit::Enable(at, on)),
        Just(RandomEdit::Reorder),
    ]
}

const SERVERS: usize = 50;

fn name(at: usize) -> String {
    format!("s{at:02}")
}

fn apply(servers: &mut serde_json::Map<String, Value>, edit: &RandomEdit) {
    match edit {
        RandomEdit::Command(at, to) => {
            if let Some(server) = servers.get_mut(&name(*at)) {
                server["command"] = json!(format!("c{to}"));
            }
        }
        RandomEdit::Description(at, to) => {
            if let Some(server) = servers.get_mut(&name(*at)) {
                server["description"] = json!(format!("d{to}"));
            }
        }
        RandomEdit::Remove(at) => drop(servers.shift_remove(&name(*at))),
        RandomEdit::Restore(at) => drop(servers.entry(name(*at)).or_insert_with(|| json!({"command": "c0"}))),
        RandomEdit::Enable(at, on) => {
            if let Some(server) = servers.get_mut(&name(*at)) {
                server["enabled"] = json!(on);
            }
        }
        RandomEdit::Reorder => servers.reverse_order(),
    }
}

trait ReverseOrder {
    fn reverse_order(&mut self);
}

impl ReverseOrder for serde_json::Map<String, Value> {
    fn reverse_order(&mut self) {
        let reversed: Vec<(String, Value)> = std::mem::take(self).into_iter().rev().collect();
        self.extend(reversed);
    }
}

/// What makes up the connection of a server that takes part; `None` = it does not.
fn connection(servers: &serde_json::Map<String, Value>, server: &str) -> Option<Value> {
    let server = servers.get(server)?;
    (server["enabled"] != json!(false)).then(|| server["command"].clone())
}

/// One history: each edit closes the sessions it must, and no others.
fn follow(edits: &[RandomEdit]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let all: serde_json::Map<String, Value> = (0..SERVERS).map(|at| (name(at), json!({"command": "c0"}))).collect();
        let setting = Setting::new(Value::Object(all.clone())).await;
        let (mut servers, mut pids) = (all, BTreeMap::new());
        let mut shown_before = setting.servers_shown().await;
        for edit in edits {
            let before = servers.clone();
            apply(&mut servers, edit);
            setting.memory.edit(document(&Value::Object(servers.clone())));
            let on: Vec<String> =
                servers.keys().filter(|server| connection(&servers, server).is_some()).cloned().collect();
            // Whoever lists while the edit comes into force sees one whole document: the new one if it is the
            // first to look, else the new one or the one before.
            let (first, second, third) =
                tokio::join!(setting.servers_shown(), setting.servers_shown(), setting.servers_shown());
            assert_eq!(first, on.iter().cloned().collect());
            assert!([&second, &third].iter().all(|shown| **shown == first || **shown == shown_before));
            shown_before = first;
            let on: Vec<&str> = on.iter().map(String::as_str).collect();
            let now = setting.pids(&on).await;
            for (server, pid) in &now {
                let same = connection(&before, server) == connection(&servers, server);
                if let Some(old) = pids.get(server) {
                    assert_eq!(old == pid, same, "{server} after {edit:?}");
                }
            }
            pids = now;
        }
        setting.runtime.stop().await;
        assert_eq!(setting.fake.alive.load(Ordering::SeqCst), 0);
    });
}

/// 25 histories of 100 edits each: parted, so that cores share them.
macro_rules! histories {
    ($($part:ident)*) => {$(
        mod $part {
            use super::*;

            proptest! {
                #![proptest_config(ProptestConfig { cases: 25, failure_persistence: None, ..ProptestConfig::default() })]

                #[test]
                fn random_edits_close_the_sessions_they_must_and_no_others(
                    edits in proptest::collection::vec(random_edit(SERVERS), 100)
                ) {
                    follow(&edits);
                }
            }
        }
    )*};
}

histories! { first second third fourth }
