//! Rows with more columns than a tuple has places, read by position, the same for both databases.

/// A struct whose fields are the columns of a query, in their order.
macro_rules! row {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        pub(super) struct $name {
            $(pub(super) $field: $type,)*
        }

        crate::sql::row::row!(@from $name, sqlx::postgres::PgRow, $($field)*);
        crate::sql::row::row!(@from $name, sqlx::sqlite::SqliteRow, $($field)*);
    };
    (@from $name:ident, $row:ty, $($field:ident)*) => {
        impl sqlx::FromRow<'_, $row> for $name {
            fn from_row(row: &$row) -> sqlx::Result<Self> {
                use sqlx::Row as _;
                let mut column = 0..;
                Ok(Self { $($field: row.try_get(column.next().unwrap_or_default())?,)* })
            }
        }
    };
}

pub(super) use row;
