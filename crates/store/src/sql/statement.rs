//! One statement in the words of both databases. They differ in how they tell the time; a replica never sends one.

/// A statement.
#[derive(Clone, Copy)]
pub(super) struct Statement {
    pub(super) postgres: &'static str,
    pub(super) sqlite: &'static str,
}

/// Puts a [`Statement`] together from literals and two words: `NOW`, the database's time in the form in which it is
/// stored, and `(MS_SINCE column)`, the milliseconds that passed since a stored time. `(MS_AGO n)` is the time as many
/// milliseconds ago as parameter `n` says, in a form that an index can be searched for; `(MS_LATER n)` the time as many
/// later, and `(MS_UNTIL "column")` the milliseconds until a stored time. `(US "column")` is a stored time in microseconds
/// of the Unix epoch, and `(FROM_US n)` such a time as it is stored. `STABLE_NOW` and `(MS_AHEAD n)` are for conditions that an
/// index is searched for, outside transactions only: there they stand still. `LOCKED` at the end of a query keeps its rows
/// from everybody else until the transaction ends.
macro_rules! statement {
    (@postgres NOW) => { "clock_timestamp()" };
    (@sqlite NOW) => { "CAST((julianday('now') - 2440587.5) * 86400000 AS integer)" };
    (@postgres (MS_SINCE $column:ident)) => {
        concat!("CAST(extract(epoch FROM clock_timestamp() - ", stringify!($column), ") * 1000 AS bigint)")
    };
    (@sqlite (MS_SINCE $column:ident)) => {
        concat!("CAST((julianday('now') - 2440587.5) * 86400000 AS integer) - ", stringify!($column))
    };
    (@postgres (MS_AGO $parameter:literal)) => {
        concat!("now() - CAST($", $parameter, " AS bigint) * interval '1 millisecond'")
    };
    (@sqlite (MS_AGO $parameter:literal)) => {
        concat!("CAST((julianday('now') - 2440587.5) * 86400000 AS integer) - $", $parameter)
    };
    (@postgres (MS_LATER $parameter:literal)) => {
        concat!("clock_timestamp() + CAST($", $parameter, " AS bigint) * interval '1 millisecond'")
    };
    (@sqlite (MS_LATER $parameter:literal)) => {
        concat!("CAST((julianday('now') - 2440587.5) * 86400000 AS integer) + $", $parameter)
    };
    (@postgres (MS_UNTIL $column:literal)) => {
        concat!("CAST(extract(epoch FROM ", $column, " - clock_timestamp()) * 1000 AS bigint)")
    };
    (@sqlite (MS_UNTIL $column:literal)) => {
        concat!($column, " - CAST((julianday('now') - 2440587.5) * 86400000 AS integer)")
    };
    (@postgres (US $column:literal)) => { concat!("CAST(extract(epoch FROM ", $column, ") * 1000000 AS bigint)") };
    (@sqlite (US $column:literal)) => { concat!("(", $column, ") * 1000") };
    (@postgres (FROM_US $parameter:literal)) => {
        concat!("timestamptz 'epoch' + CAST($", $parameter, " AS bigint) * interval '1 microsecond'")
    };
    (@sqlite (FROM_US $parameter:literal)) => { concat!("CAST($", $parameter, " AS integer) / 1000") };
    (@postgres STABLE_NOW) => { "now()" };
    (@sqlite STABLE_NOW) => { "CAST((julianday('now') - 2440587.5) * 86400000 AS integer)" };
    (@postgres (MS_AHEAD $parameter:literal)) => {
        concat!("now() + CAST($", $parameter, " AS bigint) * interval '1 millisecond'")
    };
    (@sqlite (MS_AHEAD $parameter:literal)) => {
        concat!("CAST((julianday('now') - 2440587.5) * 86400000 AS integer) + $", $parameter)
    };
    (@postgres LOCKED) => { " FOR UPDATE" };
    (@sqlite LOCKED) => { "" };
    (@$database:ident $text:literal) => { $text };
    ($($part:tt)*) => {
        crate::sql::statement::Statement {
            postgres: concat!($(statement!(@postgres $part)),*),
            sqlite: concat!($(statement!(@sqlite $part)),*),
        }
    };
}

pub(super) use statement;

#[cfg(test)]
mod tests {
    #[test]
    fn each_database_is_asked_for_its_own_time() {
        let statement = statement!("SELECT " NOW ", " (MS_SINCE started_at));
        let expected = "SELECT clock_timestamp(), \
                        CAST(extract(epoch FROM clock_timestamp() - started_at) * 1000 AS bigint)";
        assert_eq!(statement.postgres, expected);
        assert!(statement.sqlite.ends_with("86400000 AS integer) - started_at"), "{}", statement.sqlite);
    }
}
