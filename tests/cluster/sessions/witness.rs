//! What the database itself notes about who takes which session, so that no word of the product is taken for it.

use super::balancer::{SERVER, USER};
use crate::records::Records;

/// A session was taken from a replica whose life had ended, and the gap with it.
pub(crate) const TAKEN_OVER: &str = "taken over";

/// Found, each of these is a fault: an epoch went back or was given out twice (invariant L2), or a session was taken
/// while its owner could still act (invariants L1, S3).
const FAULTS: [&str; 4] = ["went back", "taken without an epoch", "taken from the living", "taken within the gap"];

/// The triggers. A life ends for good, so whether an owner is dead may be asked a moment after the session was taken.
const TRIGGERS: &str = "
CREATE TABLE run.session_note (
    kind text NOT NULL, session text NOT NULL, what text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE FUNCTION run.session() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    named text := NEW.server || '/' || NEW.user_id || ':' || NEW.thread_id;
    told text := format('%s of %s, then %s of %s', OLD.epoch, OLD.owner, NEW.epoch, NEW.owner);
    life record;
BEGIN
    IF NEW.epoch < OLD.epoch THEN
        INSERT INTO run.session_note VALUES ('went back', named, told);
    END IF;
    IF NEW.owner IS NULL OR NEW.owner IS NOT DISTINCT FROM OLD.owner THEN
        RETURN NULL;
    END IF;
    IF NEW.epoch <= OLD.epoch THEN
        INSERT INTO run.session_note VALUES ('taken without an epoch', named, told);
    END IF;
    IF OLD.owner IS NULL THEN
        INSERT INTO run.session_note VALUES ('taken free', named, told);
        RETURN NULL;
    END IF;
    SELECT state, dead_at INTO life FROM replica WHERE boot_id = OLD.owner;
    IF life.state IS DISTINCT FROM 3 THEN
        INSERT INTO run.session_note VALUES ('taken from the living', named, told);
    ELSIF life.dead_at > clock_timestamp() - interval '1 second' THEN
        INSERT INTO run.session_note VALUES ('taken within the gap', named, told);
    ELSE
        INSERT INTO run.session_note VALUES ('taken over', named, told);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER run_session AFTER UPDATE ON mcp_session FOR EACH ROW EXECUTE FUNCTION run.session();
CREATE FUNCTION run.session_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO run.session_note VALUES ('went back', OLD.server || '/' || OLD.user_id || ':' || OLD.thread_id, 'gone');
    RETURN NULL;
END $$;
CREATE TRIGGER run_session_gone AFTER DELETE ON mcp_session FOR EACH ROW EXECUTE FUNCTION run.session_gone();
";

/// Begins to take notes.
pub(crate) async fn watch(records: &Records) {
    let Records::Postgres(postgres) = records else { panic!("sessions are shared over PostgreSQL only") };
    postgres.ask(TRIGGERS).await.unwrap();
}

/// How often something was noted.
pub(crate) async fn noted(records: &Records, kind: &str) -> u64 {
    records.count(&format!("SELECT count(*) FROM run.session_note WHERE kind = '{kind}'")).await
}

/// The clock of the database, as it writes a moment.
pub(crate) async fn clock(records: &Records) -> String {
    records.ask("SELECT CAST(clock_timestamp() AS text)").await.remove(0)
}

/// How long after `since` each of these sessions was first taken from a replica that had ended, in milliseconds.
pub(crate) async fn taken_after(records: &Records, threads: &[&str], since: &str) -> Vec<u64> {
    let named = threads.iter().map(|thread| format!("'{SERVER}/{USER}:{thread}'")).collect::<Vec<_>>().join(", ");
    let sql = format!(
        "SELECT CAST(CAST(extract(epoch FROM min(at) - '{since}') * 1000 AS bigint) AS text) FROM run.session_note
         WHERE kind = '{TAKEN_OVER}' AND at > '{since}' AND session IN ({named}) GROUP BY session"
    );
    records.ask(&sql).await.iter().map(|ms| ms.parse().unwrap()).collect()
}

/// Every fault that was noted, in words.
pub(crate) async fn faults(records: &Records) -> Vec<String> {
    let kinds = FAULTS.map(|kind| format!("'{kind}'")).join(", ");
    let sql = format!("SELECT kind || ': ' || session || ': ' || what FROM run.session_note WHERE kind IN ({kinds})");
    records.ask(&sql).await
}

/// The sessions that belong to a life that has ended or was never there.
pub(crate) async fn orphaned(records: &Records) -> Vec<String> {
    let sql = "SELECT s.server || '/' || s.user_id || ':' || s.thread_id || ' of ' || s.owner
               FROM mcp_session s LEFT JOIN replica r ON r.boot_id = s.owner
               WHERE s.owner IS NOT NULL AND coalesce(r.state, 3) = 3";
    records.ask(sql).await
}
