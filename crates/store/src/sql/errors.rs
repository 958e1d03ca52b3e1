//! What the databases and their drivers report, as the port says it.
//!
//! Texts hold conditions and names of our own tables, never a value or a part of the address: where a database may
//! quote one, its words are left out and its code is kept (invariant O3).

use std::io;

use caribou_ports::store::StoreError;
use sqlx::postgres::PgDatabaseError;
use sqlx::sqlite::SqliteError;

use super::SchemaError;

/// A lock was not free within `lock_timeout`.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// The error of a request whose connection is not there yet.
pub(super) fn unreached(error: sqlx::Error) -> StoreError {
    translate(error, StoreError::Unavailable)
}

/// The error of a request; `broken` says what a lost connection means for it.
pub(super) fn translate(error: sqlx::Error, broken: fn(String) -> StoreError) -> StoreError {
    match error {
        sqlx::Error::Database(error) => match error.try_downcast::<PgDatabaseError>() {
            Ok(error) => from_postgres(&error, broken),
            Err(error) => match error.try_downcast::<SqliteError>() {
                Ok(error) => from_sqlite(&error, broken),
                Err(_) => StoreError::Mismatch("an error of an unknown database".to_owned()),
            },
        },
        sqlx::Error::Io(error) => broken(format!("the connection failed: {error}")),
        sqlx::Error::Tls(_) => StoreError::Unavailable(
            "no TLS with the database; look at sslmode and sslrootcert of `database_url`".to_owned(),
        ),
        sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => broken("the connection broke off".to_owned()),
        sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::BeginFailed => {
            StoreError::Unavailable("no connection is free".to_owned())
        }
        sqlx::Error::ColumnDecode { index, .. } => StoreError::Mismatch(format!("what stands in column {index}")),
        sqlx::Error::Configuration(_) => StoreError::Mismatch("the driver does not understand its settings".to_owned()),
        _ => StoreError::Mismatch("the shape of an answer".to_owned()),
    }
}

/// Whether a table does not exist.
pub(super) fn is_no_such_table(error: &sqlx::Error) -> bool {
    has_code(error, "42P01")
}

/// Whether a unique index has what was to be written. SQLite tells the kind of a breach by its extended code: 2067 for an
/// index, 1555 for a primary key.
pub(super) fn is_duplicate(error: &sqlx::Error) -> bool {
    ["23505", "2067", "1555"].into_iter().any(|code| has_code(error, code))
}

/// The error of waiting for the lock of migrations.
pub(super) fn at_the_lock(error: sqlx::Error) -> SchemaError {
    if has_code(&error, LOCK_NOT_AVAILABLE) { SchemaError::Busy } else { error.into() }
}

fn has_code(error: &sqlx::Error, code: &str) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|found| found == code)
}

/// A migration may always be run again, so what broke off is no question.
impl From<sqlx::Error> for SchemaError {
    fn from(error: sqlx::Error) -> Self {
        unreached(error).into()
    }
}

/// The database's file or its folder cannot be made or opened.
pub(super) fn no_file(error: io::Error) -> StoreError {
    StoreError::Denied(format!("the database's file cannot be made or opened: {error}; look at `data_dir`"))
}

/// By SQLSTATE (PostgreSQL's manual, appendix A). An error that the server answers with has undone its statement,
/// except where the connection ends.
fn from_postgres(error: &PgDatabaseError, broken: fn(String) -> StoreError) -> StoreError {
    let code = error.code();
    match (code.get(..2).unwrap_or_default(), code) {
        (_, "40003" | "57P01" | "57P02") | ("08", _) => broken(format!("PostgreSQL ended the connection ({code})")),
        (_, "57P03") => StoreError::Unavailable("PostgreSQL is starting or stopping".to_owned()),
        (_, "57014") => StoreError::Unavailable("a statement took too long".to_owned()),
        (_, LOCK_NOT_AVAILABLE) => StoreError::Unavailable("a lock was not free in time".to_owned()),
        (_, "25006") => StoreError::Unavailable("PostgreSQL takes no writes here; is it a standby?".to_owned()),
        ("53" | "58", _) => StoreError::Unavailable(format!("PostgreSQL lacks resources ({code})")),
        ("40", _) => StoreError::Conflict(code.to_owned()),
        (_, "42501") => StoreError::Denied("the user of `database_url` lacks a right".to_owned()),
        ("28", _) => StoreError::Denied("the user or password of `database_url` is wrong".to_owned()),
        ("3D", _) => StoreError::Denied("the database of `database_url` does not exist".to_owned()),
        // Names of what we asked for.
        ("3F" | "42", _) => StoreError::Mismatch(format!("{} ({code})", error.message())),
        _ => StoreError::Mismatch(format!("PostgreSQL answers {code} {}", error.constraint().unwrap_or_default())),
    }
}

/// By result code (sqlite.org/rescode.html), of which the lowest byte is the kind.
fn from_sqlite(error: &SqliteError, broken: fn(String) -> StoreError) -> StoreError {
    use sqlx::error::DatabaseError as _;
    let code = error.code().and_then(|code| code.parse::<i32>().ok()).unwrap_or_default();
    match code & 0xff {
        // BUSY, LOCKED
        5 | 6 => StoreError::Unavailable("another process holds the file".to_owned()),
        // INTERRUPT, NOMEM
        7 | 9 => StoreError::Unavailable(format!("SQLite gave up ({code})")),
        // FULL
        13 => StoreError::Unavailable("the disk is full".to_owned()),
        // IOERR: what was written of a commit is decided when the file is next opened.
        10 => broken(format!("the disk failed ({code})")),
        // PERM, READONLY, CANTOPEN
        3 | 8 | 14 => StoreError::Denied("the database's file may not be written; look at `data_dir`".to_owned()),
        // CORRUPT, NOTADB
        11 | 26 => StoreError::Mismatch("the file is damaged or no database; restore a copy".to_owned()),
        // SQLite's texts name tables and columns, never values.
        _ => StoreError::Mismatch(format!("{} ({code})", error.message())),
    }
}

#[cfg(test)]
mod tests {
    use caribou_core::failure::Class;

    use super::*;

    fn reset() -> sqlx::Error {
        io::Error::from(io::ErrorKind::ConnectionReset).into()
    }

    #[test]
    fn a_connection_that_breaks_leaves_a_change_unknown_and_nothing_else() {
        assert_eq!(translate(reset(), StoreError::OutcomeUnknown).class(), Class::Unknown);
        assert_eq!(translate(reset(), StoreError::Unavailable).class(), Class::Retry);
        assert_eq!(unreached(sqlx::Error::PoolTimedOut).class(), Class::Retry);
        assert_eq!(translate(sqlx::Error::PoolTimedOut, StoreError::OutcomeUnknown).class(), Class::Retry);
    }

    #[test]
    fn what_the_driver_quotes_is_left_out() {
        // Invariant O3.
        for error in [
            sqlx::Error::Configuration("hunter2".into()),
            sqlx::Error::Tls("hunter2".into()),
            sqlx::Error::Protocol("hunter2".into()),
            sqlx::Error::Decode("hunter2".into()),
            sqlx::Error::ColumnDecode { index: "3".to_owned(), source: "hunter2".into() },
        ] {
            assert!(!unreached(error).to_string().contains("hunter2"));
        }
    }
}
