//! `caribou keys list`: whose API keys there are. Nothing that could be presented is known or shown.

use std::process::ExitCode;

use caribou_core::identity::{Role, ToolRules};
use caribou_ports::store::{ApiKeys as _, StoredApiKey};
use clap::Args;
use serde_json::{Value, json};

use crate::assemble;
use crate::commands::arguments::SettingsArguments;
use crate::commands::output;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    settings: SettingsArguments,
    /// Print the keys as JSON
    #[arg(long)]
    json: bool,
}

pub(in crate::commands) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let settings = assemble::accept(arguments.settings.load(None)?)?;
    let store = assemble::open_store(&settings).await?;
    let all = store.all().await;
    store.close().await;
    let all = all?;
    if arguments.json {
        output::line(json!({ "keys": all.iter().map(shown).collect::<Vec<_>>() }))?;
    } else {
        let headings = ["Id", "User", "Roles", "Tools", "Label", "Created", "State"];
        output::table(headings, &all.iter().map(row).collect::<Vec<_>>())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(stored: &StoredApiKey) -> Value {
    let StoredApiKey { key, age, .. } = stored;
    json!({
        "id": key.id,
        "user_id": key.user,
        "roles": key.roles,
        "allowed_tools": key.tools.allowed,
        "denied_tools": key.tools.denied,
        "label": key.label,
        "age_seconds": age.as_secs(),
        "expires_in_seconds": key.expires_in.map(|left| left.as_secs()),
        "state": state(stored),
    })
}

fn row(stored: &StoredApiKey) -> [String; 7] {
    let StoredApiKey { key, age, .. } = stored;
    let left = key.expires_in.filter(|_| state(stored) == "valid");
    [
        key.id.clone(),
        key.user.to_string(),
        key.roles.iter().copied().map(Role::as_str).collect::<Vec<_>>().join(" "),
        tools(&key.tools),
        key.label.clone(),
        format!("{} ago", output::age(*age)),
        left.map_or_else(|| state(stored).to_owned(), |left| format!("valid for {}", output::age(left))),
    ]
}

fn state(stored: &StoredApiKey) -> &'static str {
    match (stored.revoked, stored.key.expires_in) {
        (true, _) => "revoked",
        (false, Some(left)) if left.is_zero() => "expired",
        (false, _) => "valid",
    }
}

fn tools(rules: &ToolRules) -> String {
    let allowed = rules.allowed.as_ref().map_or_else(|| "all".to_owned(), |allowed| allowed.join(" "));
    if rules.denied.is_empty() { allowed } else { format!("{allowed}, not {}", rules.denied.join(" ")) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use caribou_ports::store::ApiKey;

    use super::*;

    fn stored(revoked: bool, expires_in: Option<Duration>) -> StoredApiKey {
        let key = ApiKey {
            id: "0a".to_owned(),
            hash: [7; 32],
            label: "laptop".to_owned(),
            user: "ann".into(),
            roles: vec![],
            tools: ToolRules { allowed: Some(vec!["a_*".to_owned()]), denied: vec!["a_x".to_owned()] },
            expires_in,
        };
        StoredApiKey { key, age: Duration::from_secs(120), revoked }
    }

    #[test]
    fn a_key_is_shown_with_its_state_and_without_its_hash() {
        let day = Some(Duration::from_secs(86_400));
        for (stored, shown) in [
            (stored(false, None), "valid"),
            (stored(false, day), "valid for 1 d"),
            (stored(false, Some(Duration::ZERO)), "expired"),
            (stored(true, day), "revoked"),
        ] {
            assert_eq!(row(&stored)[6], shown);
        }
        let shown = shown(&stored(false, day)).to_string();
        assert!(shown.contains(r#""expires_in_seconds":86400,"state":"valid""#) && !shown.contains("hash"), "{shown}");
        assert_eq!(row(&stored(false, None))[3], "a_*, not a_x");
    }
}
