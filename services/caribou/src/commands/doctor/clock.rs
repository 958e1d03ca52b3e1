//! Whether the clocks of this machine and of the database agree. Leases do not depend on it; expiry of tokens and
//! certificates does.

use caribou_store::{Location, SqlStore};

use super::finding::Finding;
use super::ground::Ground;
use crate::start_gate;

pub(super) async fn check(ground: &Ground, store: Option<&SqlStore>) -> Vec<Finding> {
    let Some(store) = store else {
        return vec![Finding::skipped("there is no database to compare with", None)];
    };
    if matches!(ground.settings.database_location(), Location::Sqlite(_)) {
        return vec![Finding::ok("the database uses the clock of this machine")];
    }
    let compared = match store.time_ms().await {
        Ok(database_ms) => start_gate::skew(database_ms),
        Err(error) => return vec![Finding::failed(error.to_string(), "see that the database answers")],
    };
    vec![match compared {
        Ok(skew) => Finding::ok(format!("the database's differs by {} ms", skew.as_millis())),
        Err(skew) => {
            let what = format!("those of this machine and of the database differ by {} s", skew.as_secs());
            let mend = "set both by NTP";
            // Several replicas refuse to start with it.
            match ground.settings.deployment.multi_instance {
                true => Finding::failed(what, mend),
                false => Finding::warning(what, mend),
            }
        }
    }]
}
