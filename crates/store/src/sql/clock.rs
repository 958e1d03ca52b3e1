//! What time the database says it is: to warn of clocks that differ, never to decide anything.

use caribou_ports::store::StoreError;

use super::SqlStore;
use super::pools::read;
use super::statement::Statement;

const TIME: Statement = Statement {
    postgres: "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)",
    sqlite: "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS integer)",
};

impl SqlStore {
    /// Milliseconds since 1970, by the database's clock.
    ///
    /// # Errors
    /// It cannot be asked.
    pub async fn time_ms(&self) -> Result<i64, StoreError> {
        read!(self, |connection, word| sqlx::query_scalar(word(TIME)).fetch_one(connection).await)
    }
}
