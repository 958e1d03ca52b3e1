//! The steps from an empty database to the schema this version needs. Released ones never change.

/// One step, in the words of both databases.
#[derive(Debug, PartialEq, Eq)]
pub struct Migration {
    /// Counted from 1 without gaps.
    pub version: i32,
    /// The name of its files: the version and what it does, such as `0001_create_replica`.
    pub name: &'static str,
    pub(crate) postgres: &'static str,
    pub(crate) sqlite: &'static str,
}

macro_rules! migrations {
    ($($version:literal $name:literal)*) => {
        [$(Migration {
            version: $version,
            name: $name,
            postgres: include_str!(concat!("../../../migrations/postgres/", $name, ".sql")),
            sqlite: include_str!(concat!("../../../migrations/sqlite/", $name, ".sql")),
        }),*]
    };
}

/// All steps in their order.
pub(crate) static MIGRATIONS: [Migration; 18] = migrations! {
    1 "0001_create_replica"
    2 "0002_create_promotion"
    3 "0003_create_api_key"
    4 "0004_create_audit"
    5 "0005_create_connection"
    6 "0006_add_replica_lease"
    7 "0007_create_task"
    8 "0008_create_delivery"
    9 "0009_add_pin"
    10 "0010_create_oauth_chain"
    11 "0011_create_session"
    12 "0012_add_membership"
    13 "0013_create_generation"
    14 "0014_create_client_session"
    15 "0015_create_thread_volume"
    16 "0016_add_resumption"
    17 "0017_add_client_subscriptions"
    18 "0018_add_rpc_error"
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_count_from_one_and_begin_the_names() {
        for (version, migration) in (1..).zip(&MIGRATIONS) {
            assert_eq!(migration.version, version);
            assert!(migration.name.starts_with(&format!("{version:04}_")), "{}", migration.name);
        }
    }
}
