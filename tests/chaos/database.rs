//! PostgreSQL with a synchronous standby that takes over, and a witness inside it that writes down every change in the transaction that makes it.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use crate::cluster::signal;
use crate::history::{Change, Event, Kept, Recorder};
use crate::postgres::Postgres;
use crate::proxy::Proxy;

/// The primary and its standby.
pub(crate) struct Pair {
    primary: Postgres,
    standby: Option<Postgres>,
    /// Leads from the standby to the primary.
    pub(crate) replication: Proxy,
}

impl Pair {
    /// Starts both. Nothing is acknowledged from here on before the standby has it.
    pub(crate) fn start(runtime: &tokio::runtime::Runtime) -> Self {
        let primary = Postgres::start_on(Some(DISK_MB));
        primary.database(DATABASE);
        let replication = Proxy::start(runtime, primary.port());
        let mut pair = Self {
            primary,
            standby: None,
            replication,
        };
        pair.make_standby();
        pair
    }

    pub(crate) fn primary(&self) -> &Postgres {
        &self.primary
    }

    fn make_standby(&mut self) {
        let standby = Postgres::start_standby(self.replication.port(), Some(DISK_MB));
        self.standby = Some(standby);
        self.synchronous("*");
        let in_step = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        let begun = Instant::now();
        while self.primary.ask("postgres", in_step) != "1" {
            let waited = begun.elapsed();
            assert!(waited < Duration::from_secs(30), "no standby in step");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn synchronous(&self, names: &str) {
        let set = format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'");
        self.primary.ask("postgres", &set);
        self.primary.ask("postgres", "SELECT pg_reload_conf()");
    }

    /// Sends a signal to every process of the primary.
    pub(crate) fn signal(&self, name: &str) {
        for pid in self.primary.pids() {
            signal(pid, name);
        }
    }

    /// Kills the primary.
    pub(crate) fn kill(&self) {
        self.primary.kill();
    }

    /// Starts the primary again if it is down.
    pub(crate) fn start_again(&self) {
        if self.primary.pids().is_empty() {
            self.primary.kill();
            self.primary.start_again();
        }
    }

    /// Kills the primary for good and makes the standby the primary. Returns the port of the new one.
    pub(crate) fn fail_over(&mut self) -> Option<u16> {
        let standby = self.standby.take()?;
        self.kill();
        standby.promote();
        self.primary = standby;
        self.synchronous("");
        let port = self.primary.port();
        self.replication.lead_to(port);
        Some(port)
    }

    /// Makes a new standby, unless there is one.
    pub(crate) fn rebuild(&mut self) {
        if self.standby.is_none() {
            self.make_standby();
        }
    }

    /// Leaves no room on the primary's disk.
    pub(crate) fn fill(&self) {
        let Some(disk) = self.primary.disk() else {
            return;
        };
        let file = File::create(disk.join(BALLAST));
        if let Ok(mut file) = file {
            while file.write_all(&[1; 65_536]).is_ok() {}
        }
    }

    /// Makes room again.
    pub(crate) fn make_room(&self) {
        if let Some(disk) = self.primary.disk() {
            let _ = std::fs::remove_file(disk.join(BALLAST));
        }
        self.start_again();
    }

    /// Lets the database write down every change from now on. The tables must be there.
    pub(crate) fn watch(&self) {
        self.primary.ask(DATABASE, WITNESS);
    }

    /// Notes what the witness saw, and what is kept.
    pub(crate) fn tell(&self, recorder: &Recorder) {
        let lines = self.primary.ask(DATABASE, EVERYTHING);
        let now_ms = recorder.now_ms();
        for line in lines.lines() {
            let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
            match value["at_us"].as_u64() {
                Some(at_us) => {
                    let change: Change = serde_json::from_value(value).expect("a change");
                    recorder.note_at(recorder.at_ms(at_us), Event::Stored { change });
                }
                None => {
                    let row: Kept = serde_json::from_value(value).expect("a row");
                    recorder.note_at(now_ms, Event::Kept { row });
                }
            }
        }
    }
}

/// The database of the masters.
pub(crate) const DATABASE: &str = "muse";
const BALLAST: &str = "ballast";
/// Room for the tables, the logs and their copies.
const DISK_MB: u32 = 400;

/// Writers hold a lock of the whole database, so the numbers are in the order of the transactions.
const WITNESS: &str = "
CREATE TABLE chaos_witness (number BIGSERIAL PRIMARY KEY, change JSONB NOT NULL);
CREATE FUNCTION chaos_note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    seen JSONB;
BEGIN
    IF TG_TABLE_NAME = 'ticket_members' THEN
        IF TG_OP = 'INSERT' THEN
            seen := jsonb_build_object('change', 'ticket_in', 'account', NEW.account, 'ticket', NEW.ticket);
        ELSE
            seen := jsonb_build_object('change', 'ticket_out', 'account', OLD.account, 'ticket', OLD.ticket);
        END IF;
    ELSIF TG_TABLE_NAME = 'seats' THEN
        IF TG_OP = 'INSERT' THEN
            seen := jsonb_build_object('change', 'seat_in', 'account', NEW.account, 'match_id', NEW.match_id);
        ELSE
            seen := jsonb_build_object('change', 'seat_out', 'account', OLD.account, 'match_id', OLD.match_id);
        END IF;
    ELSIF TG_TABLE_NAME = 'matches' THEN
        IF TG_OP = 'INSERT' THEN
            seen := jsonb_build_object('change', 'match_made', 'match_id', NEW.match_id);
        ELSIF TG_OP = 'DELETE' OR OLD.ended_us IS NOT NULL THEN
            seen := jsonb_build_object('change', 'rewritten', 'match_id', OLD.match_id);
        ELSIF NEW.ended_us IS NOT NULL THEN
            seen := jsonb_build_object('change', 'match_ended', 'match_id', NEW.match_id, 'outcome', NEW.outcome);
        ELSIF NEW.server IS DISTINCT FROM OLD.server THEN
            seen := jsonb_build_object('change', 'match_placed', 'match_id', NEW.match_id,
                'address', (SELECT address FROM servers WHERE server = NEW.server));
        END IF;
    ELSIF TG_OP = 'INSERT' THEN
        seen := jsonb_build_object('change', 'result', 'match_id', NEW.match_id, 'account', NEW.account,
            'points', NEW.points, 'rating', NEW.rating);
    ELSE
        seen := jsonb_build_object('change', 'rewritten', 'match_id', OLD.match_id);
    END IF;
    IF seen IS NOT NULL THEN
        seen := seen || jsonb_build_object('at_us', CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT));
        INSERT INTO chaos_witness (change) VALUES (seen);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER chaos AFTER INSERT OR DELETE ON ticket_members FOR EACH ROW EXECUTE FUNCTION chaos_note();
CREATE TRIGGER chaos AFTER INSERT OR DELETE ON seats FOR EACH ROW EXECUTE FUNCTION chaos_note();
CREATE TRIGGER chaos AFTER INSERT OR UPDATE OR DELETE ON matches FOR EACH ROW EXECUTE FUNCTION chaos_note();
CREATE TRIGGER chaos AFTER INSERT OR DELETE ON results FOR EACH ROW EXECUTE FUNCTION chaos_note();";

/// One statement, so that all of it is of one moment: a line for each change, then for each row.
const EVERYTHING: &str = "
SELECT line FROM (
    SELECT 0 AS part, number, CAST(change AS TEXT) AS line FROM chaos_witness
    UNION ALL SELECT 1, account, CAST(jsonb_build_object('row', 'account', 'account', account, 'points', points, 'rating', rating) AS TEXT)
    FROM accounts
    UNION ALL SELECT 2, account, CAST(jsonb_build_object('row', 'progress', 'account', account, 'version', version,
        'document', CAST(document AS BIGINT)) AS TEXT)
    FROM progress
    UNION ALL SELECT 3, line, CAST(jsonb_build_object('row', 'line', 'sender', sender, 'text', text) AS TEXT) FROM chat
) everything ORDER BY part, number";
