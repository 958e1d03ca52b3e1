//! What the database itself notes about claims, so that no word of the product is taken for them (durability.md §7).
//!
//! In PostgreSQL each process says its number when it connects. A claim is noted with the process that made it, and
//! every write that ends a claim must come from that process and before the claim has expired. SQLite has one process
//! at a time; there only takeovers are counted.

use crate::records::Records;

/// A claim that was taken over although nothing came of it: its owner is gone, or stood still.
pub(crate) const TAKEOVER: &str = "takeover";

/// The same of a delivery.
pub(crate) const DELIVERY_TAKEOVER: &str = "delivery takeover";

/// Found, each of these is a fault: the result of a claim was written by somebody who does not hold it (invariant C1),
/// or after it had expired; a claim was given out while another held (durability.md I2); a task changed after its end
/// (invariant T2).
pub(crate) const FAULTS: [&str; 4] = ["stale settle", "late settle", "claimed while held", "changed after its end"];

/// The triggers of PostgreSQL. A settle is checked by the statement; this looks a moment later, so a second is granted.
/// A claim may be given back late, as long as nothing is written with it.
pub(crate) const POSTGRES: &str = "
CREATE SCHEMA run;
CREATE TABLE run.claim (task_id uuid PRIMARY KEY, seq bigint NOT NULL, life text);
CREATE TABLE run.note (kind text NOT NULL, task_id uuid NOT NULL, what text NOT NULL);

CREATE FUNCTION run.work() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    me text := coalesce(current_setting('run.life', true), 'nobody');
    held run.claim;
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO run.claim VALUES (NEW.task_id, NEW.claim_seq, me);
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.claim_owner IS NOT NULL AND NEW.claim_seq > OLD.claim_seq THEN
        IF OLD.claim_owner IS NOT NULL THEN
            INSERT INTO run.note VALUES ('takeover', NEW.task_id, NEW.claim_seq);
            IF OLD.due_at > clock_timestamp() THEN
                INSERT INTO run.note VALUES ('claimed while held', NEW.task_id, OLD.due_at - clock_timestamp());
            END IF;
        END IF;
        UPDATE run.claim SET seq = NEW.claim_seq, life = me WHERE task_id = NEW.task_id;
        RETURN NULL;
    END IF;
    IF OLD.claim_owner IS NULL OR (TG_OP = 'UPDATE' AND (NEW.claim_owner IS NOT NULL OR NEW.claim_seq <> OLD.claim_seq))
    THEN
        RETURN NULL;
    END IF;
    SELECT * INTO held FROM run.claim WHERE task_id = OLD.task_id;
    IF held.seq IS DISTINCT FROM OLD.claim_seq OR held.life IS DISTINCT FROM me THEN
        INSERT INTO run.note VALUES
            ('stale settle', OLD.task_id, format('%s by %s, held %s by %s', OLD.claim_seq, me, held.seq, held.life));
    END IF;
    IF OLD.due_at >= clock_timestamp() - interval '1 second' THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        IF (NEW.last_polled_at, NEW.poll_errors) IS NOT DISTINCT FROM (OLD.last_polled_at, OLD.poll_errors) THEN
            RETURN NULL;
        END IF;
    END IF;
    INSERT INTO run.note VALUES ('late settle', OLD.task_id, clock_timestamp() - OLD.due_at);
    RETURN NULL;
END $$;
CREATE TRIGGER run_work AFTER INSERT OR UPDATE OR DELETE ON mcp_work FOR EACH ROW EXECUTE FUNCTION run.work();

CREATE FUNCTION run.delivery() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO run.note VALUES ('delivery takeover', NEW.task_id, NEW.claim_seq);
    RETURN NULL;
END $$;
CREATE TRIGGER run_delivery AFTER UPDATE ON mcp_delivery FOR EACH ROW
    WHEN (OLD.claim_owner IS NOT NULL AND NEW.claim_owner IS NOT NULL AND NEW.claim_seq > OLD.claim_seq)
    EXECUTE FUNCTION run.delivery();

CREATE FUNCTION run.ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO run.note VALUES ('changed after its end', NEW.task_id, format('%s to %s', OLD.status, NEW.status));
    RETURN NULL;
END $$;
CREATE TRIGGER run_ended AFTER UPDATE ON mcp_task FOR EACH ROW
    WHEN (OLD.ended_at IS NOT NULL
          AND (OLD.status, OLD.ver, OLD.ended_at, OLD.result) IS DISTINCT FROM (NEW.status, NEW.ver, NEW.ended_at, NEW.result))
    EXECUTE FUNCTION run.ended();
";

/// The triggers of SQLite.
pub(crate) const SQLITE: &str = "
CREATE TABLE run_note (kind text NOT NULL, task_id blob NOT NULL, what text NOT NULL);
CREATE TRIGGER run_work AFTER UPDATE ON mcp_work
WHEN old.claim_owner IS NOT NULL AND new.claim_owner IS NOT NULL AND new.claim_seq > old.claim_seq
BEGIN INSERT INTO run_note VALUES ('takeover', new.task_id, new.claim_seq); END;
CREATE TRIGGER run_delivery AFTER UPDATE ON mcp_delivery
WHEN old.claim_owner IS NOT NULL AND new.claim_owner IS NOT NULL AND new.claim_seq > old.claim_seq
BEGIN INSERT INTO run_note VALUES ('delivery takeover', new.task_id, new.claim_seq); END;
CREATE TRIGGER run_ended AFTER UPDATE ON mcp_task
WHEN old.ended_at IS NOT NULL AND (old.status <> new.status OR old.ver <> new.ver OR old.ended_at <> new.ended_at)
BEGIN INSERT INTO run_note VALUES ('changed after its end', new.task_id, old.status || ' to ' || new.status); END;
";

fn table(records: &Records) -> &'static str {
    match records {
        Records::Postgres(_) => "run.note",
        Records::Sqlite(_) => "run_note",
    }
}

/// How often something was noted.
pub(crate) async fn noted(records: &Records, kind: &str) -> u64 {
    records.count(&format!("SELECT count(*) FROM {} WHERE kind = '{kind}'", table(records))).await
}

/// Every fault that was noted, in words.
pub(crate) async fn faults(records: &Records) -> Vec<String> {
    let kinds = FAULTS.map(|kind| format!("'{kind}'")).join(", ");
    let task = records.task_name();
    records
        .ask(&format!("SELECT kind || ': ' || {task} || ': ' || what FROM {} WHERE kind IN ({kinds})", table(records)))
        .await
}
