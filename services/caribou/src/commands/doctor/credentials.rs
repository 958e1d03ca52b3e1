//! Whether the keys that encrypt what is stored are there and open it (contract 7.7). No key is made.

use caribou_core::bounds::RESEAL_PAGE;
use caribou_core::config::Document;
use caribou_oauth::{CREDENTIALS_KEY, Cipher, KeyRing, present_key_file};
use caribou_ports::store::{Connections as _, OAuthChains as _, StoreError, TokenColumn};
use caribou_ports::vault::Vault;
use caribou_store::SqlStore;

use super::finding::Finding;
use super::ground::Ground;
use crate::start_gate;

/// How many pages of personal connections are opened: a wrong key shows in the first.
const MOST_PAGES: usize = 10;

pub(super) async fn check(ground: &Ground, document: Option<&Document>, store: Option<&SqlStore>) -> Vec<Finding> {
    if let Some(spoiled) = ground.spoiled(&["data_dir", "deployment"]) {
        return vec![spoiled];
    }
    let (ring, from) = match keys(ground, document) {
        Ok(found) => found,
        Err(finding) => return vec![finding],
    };
    let Some(store) = store else {
        return vec![Finding::ok(format!("{from}; there is no database to try it on"))];
    };
    let vault = Cipher::new(ring);
    vec![match rows(store, &vault).await {
        Err(error) => Finding::failed(error.to_string(), "see that the database answers"),
        Ok((0, 0)) => Finding::ok(format!("{from}; nothing is stored with it yet")),
        Ok((opened, 0)) => Finding::ok(format!("{from}; it opens all {opened} secrets that were tried")),
        Ok((opened, closed)) => Finding::failed(
            format!("{from}; it opens {opened} of {} stored secrets", opened + closed),
            format!("put the key they were encrypted with behind the first one of {CREDENTIALS_KEY}, after a comma"),
        ),
    }]
}

/// The keys, and where they are from.
fn keys(ground: &Ground, document: Option<&Document>) -> Result<(KeyRing, String), Finding> {
    let settings = &ground.settings;
    match KeyRing::from_variables(&|name| std::env::var(name).ok()) {
        Err(error) => {
            let mend = format!("set {CREDENTIALS_KEY} to what `caribou keys generate` prints, or to the keys you had");
            return Err(Finding::failed(error.to_string(), mend));
        }
        Ok(Some(ring)) => return Ok((ring, format!("{CREDENTIALS_KEY} holds keys"))),
        Ok(None) => {}
    }
    let nothing = Document::default();
    if let Some(why) = start_gate::of_credentials(settings, document.unwrap_or(&nothing)) {
        return Err(Finding::failed(why, format!("set {CREDENTIALS_KEY} to the same value for every replica")));
    }
    match present_key_file(&settings.data_dir) {
        Ok(Some(ring)) => Ok((ring, format!("{} holds a key", settings.data_dir.join(".credentials_key").display()))),
        Ok(None) => Err(Finding::ok("none yet: the first start makes one below `data_dir`")),
        Err(error) => Err(Finding::failed(
            error.to_string(),
            format!("make the file readable for this user, or set {CREDENTIALS_KEY}"),
        )),
    }
}

/// How many stored secrets the keys open, and how many they do not.
async fn rows(store: &SqlStore, vault: &dyn Vault) -> Result<(u64, u64), StoreError> {
    let (mut opened, mut closed) = (0, 0);
    let mut count = |is_open: bool| if is_open { opened += 1 } else { closed += 1 };
    for row in store.list_chains().await? {
        let tokens = [(TokenColumn::Refresh, &row.tokens.refresh), (TokenColumn::Access, &row.tokens.access)];
        for (column, sealed) in tokens {
            if let Some(sealed) = sealed {
                count(vault.open(&row.place(column, row.generation), sealed).is_ok());
            }
        }
    }
    let mut after = (String::new(), String::new());
    for _ in 0..MOST_PAGES {
        let page = store.page(after, RESEAL_PAGE).await?;
        let Some(last) = page.last() else { break };
        after = (last.user.as_str().to_owned(), last.name.clone());
        for row in page {
            count(vault.open(&row.place(), &row.sealed).is_ok());
        }
    }
    Ok((opened, closed))
}
