//! Where the database is. Prints nothing of it, because an address may hold a password (invariant O3).

use std::fmt;
use std::path::PathBuf;

use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;
use url::Url;

/// What an address of PostgreSQL may say after its question mark. The driver would print any other with its value.
const PARAMETERS: [&str; 17] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    "ssl-root-cert",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "user",
];

/// One database.
#[derive(Clone)]
pub enum Location {
    /// A server.
    Postgres(Box<PgConnectOptions>),
    /// A file of this machine.
    Sqlite(PathBuf),
}

/// The text is no address of a database that Caribou can use. Quotes nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an address such as postgres://user@host/database or sqlite:/path/caribou.db")]
pub struct NotALocation;

impl Location {
    /// Reads `postgres://…`, `postgresql://…` or `sqlite:PATH`. What a PostgreSQL address leaves out comes from the
    /// usual `PG…` variables.
    ///
    /// # Errors
    /// [`NotALocation`], also when the address holds a parameter that has no meaning.
    pub fn parse(address: &str) -> Result<Self, NotALocation> {
        if let Some(path) = address.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() { Err(NotALocation) } else { Ok(Self::Sqlite(path.into())) };
        }
        let url = Url::parse(address).map_err(|_| NotALocation)?;
        let known = url.query_pairs().all(|(key, _)| PARAMETERS.contains(&&*key));
        if !(known && matches!(url.scheme(), "postgres" | "postgresql")) {
            return Err(NotALocation);
        }
        PgConnectOptions::from_url(&url).map(|options| Self::Postgres(Box::new(options))).map_err(|_| NotALocation)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Postgres(_) => "Postgres(***)",
            Self::Sqlite(_) => "Sqlite(***)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_databases_are_understood() {
        for address in [
            "postgres://ann:pass@db.example:5433/caribou?sslmode=require&options=-c%20search_path%3Da",
            "postgresql:///caribou?host=/run/postgresql",
        ] {
            assert!(matches!(Location::parse(address), Ok(Location::Postgres(_))), "{address}");
        }
        for (address, path) in [("sqlite:a/b.db", "a/b.db"), ("sqlite:///a/b.db", "/a/b.db"), ("sqlite://b.db", "b.db")]
        {
            assert!(matches!(Location::parse(address), Ok(Location::Sqlite(found)) if found.as_os_str() == path));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let more = ["", "sqlite:", "caribou.db", "mysql://h/d", "postgres://h/d?sslmode=maybe", "postgres://h:x/d"];
        for address in more.into_iter().chain(["postgres://h/d?secret=hunter2"]) {
            assert_eq!(Location::parse(address).err(), Some(NotALocation), "{address}");
        }
    }

    #[test]
    fn nothing_of_an_address_is_printable() {
        // Invariant O3.
        let location = Location::parse("postgres://ann:hunter2@db.example/caribou").unwrap();
        assert_eq!(format!("{location:?} {NotALocation}").find("hunter2"), None);
        assert_eq!(format!("{location:?}").find("db.example"), None);
    }
}
