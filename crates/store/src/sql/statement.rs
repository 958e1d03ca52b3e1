//! One statement in the words of both databases. They differ in how they tell the time; a replica never sends one.

/// A statement.
#[derive(Clone, Copy)]
pub(super) struct Statement {
    pub(super) postgres: &'static str,
    pub(super) sqlite: &'static str,
}

/// Puts a [`Statement`] together from literals and two words: `NOW`, the database's time in the form in which it is
/// stored, and `(MS_SINCE column)`, the milliseconds that passed since a stored time.
macro_rules! statement {
    (@postgres NOW) => { "clock_timestamp()" };
    (@sqlite NOW) => { "CAST((julianday('now') - 2440587.5) * 86400000 AS integer)" };
    (@postgres (MS_SINCE $column:ident)) => {
        concat!("CAST(extract(epoch FROM clock_timestamp() - ", stringify!($column), ") * 1000 AS bigint)")
    };
    (@sqlite (MS_SINCE $column:ident)) => {
        concat!("CAST((julianday('now') - 2440587.5) * 86400000 AS integer) - ", stringify!($column))
    };
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
