//! Whether the database can be reached and has the schema that this version needs. An embedded one that is not there
//! yet is not made.

use std::time::Instant;

use caribou_core::failure::Class;
use caribou_ports::store::StoreError;
use caribou_store::{Inspected, Location, SchemaError, SqlStore};

use super::finding::Finding;
use super::ground::Ground;
use crate::start_gate;

/// What is said of the database, and the store for whoever asks it further; `None` = there is none that could be asked.
pub(super) type Looked = (Vec<Finding>, Option<SqlStore>);

/// The settings that say where it is.
pub(super) const SETTINGS: [&str; 3] = ["database_url", "database", "data_dir"];

pub(super) async fn check(ground: &Ground) -> Looked {
    let settings = &ground.settings;
    let only = |finding| (vec![finding], None);
    if let Some(spoiled) = ground.spoiled(&SETTINGS) {
        return only(spoiled);
    }
    if let Some(why) = start_gate::of_location(settings) {
        return only(Finding::failed(why, "or set `deployment.multi_instance` to false for the only replica"));
    }
    if !settings.has_database() {
        return only(Finding::ok("none is wanted (`database.backend: memory`): nothing outlives a replica"));
    }
    if let Err(error) = settings.demand_backend() {
        return only(Finding::failed(
            error.to_string(),
            "set `database.backend` and `database_url` to one kind, or only one",
        ));
    }
    let location = settings.database_location();
    if let Location::Sqlite(file) = &location
        && !file.exists()
    {
        return only(Finding::ok(format!("SQLite: the first start makes {}", file.display())));
    }
    let begun = Instant::now();
    let looked = async {
        let store = SqlStore::open(&location).await?;
        store.inspect().await.map(|inspected| (store, inspected))
    };
    match tokio::time::timeout(ground.deadline, looked).await {
        Err(_) => only(ground.late()),
        Ok(Err(error)) => only(unreachable(&error, &location)),
        Ok(Ok((store, inspected))) => {
            let is_usable = inspected.unfit.is_none();
            let ms = begun.elapsed().as_millis();
            (vec![told(&inspected, &location, ms)], Some(store).filter(|_| is_usable))
        }
    }
}

fn unreachable(error: &StoreError, location: &Location) -> Finding {
    let mend = match (location, error.class()) {
        (Location::Sqlite(file), _) => {
            format!("see that {} is a database of Caribou and yours to write, or move it away", file.display())
        }
        (_, Class::Denied) => "see that user, password and rights in `database_url` are right".to_owned(),
        _ => "see that PostgreSQL runs, and that `database_url` names its host, port and database".to_owned(),
    };
    Finding::failed(error.to_string(), mend)
}

fn told(inspected: &Inspected, location: &Location, ms: u128) -> Finding {
    let Inspected { product, version, schema, unfit } = inspected;
    let known = SqlStore::schema_version();
    let what = format!("{product} {version}, schema version {schema}");
    match unfit {
        None => Finding::ok(format!("{what}, answered in {ms} ms")),
        Some(SchemaError::Older { .. }) if matches!(location, Location::Sqlite(_)) => {
            Finding::ok(format!("{what}: the next start brings it to {known}"))
        }
        Some(SchemaError::Older { .. }) => Finding::failed(
            format!("{what}, and this Caribou needs {known}: migrations are missing"),
            "run `caribou migrate` with the same settings",
        ),
        Some(SchemaError::Newer { .. }) => Finding::failed(
            format!("{what}, made by a newer Caribou; this one knows {known}"),
            "start the newer one, or restore a copy of the database from before its migration",
        ),
        Some(SchemaError::Foreign { version }) => Finding::failed(
            format!("{what}: migration {version} is not the one this Caribou knows"),
            "point `database_url` at Caribou's own database or schema",
        ),
        Some(error) => Finding::failed(error.to_string(), "try again"),
    }
}
