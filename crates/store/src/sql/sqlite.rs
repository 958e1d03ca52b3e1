//! How the SQLite file is made and opened.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use caribou_core::bounds;
use caribou_ports::store::StoreError;
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use super::errors;
use super::pools::{Pools, REQUEST};

/// Opens the file, which is made when it is missing.
pub(super) async fn open(path: &Path) -> Result<Pools, StoreError> {
    let file: PathBuf = path.to_owned();
    let made = tokio::task::spawn_blocking(move || make(&file)).await;
    made.map_err(|_| StoreError::Unavailable("the process is stopping".to_owned()))?.map_err(errors::no_file)?;
    // Write-ahead logging lets readers read beside the writer; its normal mode may lose the last commits when the
    // machine loses power, and only then.
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .foreign_keys(true)
        .busy_timeout(bounds::STORE_STATEMENT);
    let pool = |most| SqlitePoolOptions::new().max_connections(most).acquire_timeout(REQUEST);
    let writer: SqlitePool = pool(1).connect_with(options.clone()).await.map_err(errors::unreached)?;
    let readers = pool(bounds::STORE_READERS).connect_lazy_with(options.read_only(true));
    Ok(Pools::Sqlite { writer, readers })
}

/// Makes the file and its folder for their owner only. SQLite gives the files beside it the same mode.
fn make(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(path).map(drop)
}
