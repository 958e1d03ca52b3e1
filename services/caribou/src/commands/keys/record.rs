//! Puts on record that a key was made or revoked. A command has no request, so the row names the key instead.

use caribou_core::identity::Principal;
use caribou_ports::store::{Audit as _, AuditRow};
use caribou_runtime::wall_clock_ms;
use caribou_store::SqlStore;

use crate::commands::output;
use crate::settings::Settings;

/// Appends the row. The change is made whatever becomes of it, so a failure is only told.
pub(super) async fn record(settings: &Settings, store: &SqlStore, action: &str, user: &str, key: &str) {
    if !settings.audit.enabled {
        return;
    }
    let row = AuditRow {
        at_ms: wall_clock_ms(),
        principal: Principal::local().id.to_string(),
        user: user.to_owned(),
        thread: String::new(),
        action: action.to_owned(),
        server: String::new(),
        tool: String::new(),
        outcome: "ok".to_owned(),
        duration_ms: 0,
        request_id: key.to_owned(),
        door: "cli".to_owned(),
    };
    if let Err(error) = store.append(vec![row]).await {
        output::note(format_args!("this is not in the audit log: {error}"));
    }
}
