//! `caribou keys create`: makes an API key and prints it, this once.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use caribou_core::identity::{Role, ToolRules};
use caribou_core::ids::{Scope, UserId};
use caribou_identity::NewKey;
use caribou_ports::store::{ApiKey, ApiKeys as _};
use clap::Args;
use serde_json::json;

use super::record::record;
use crate::assemble;
use crate::commands::arguments::SettingsArguments;
use crate::commands::output;
use crate::commands::usage::Usage;

/// Ten years: a key that lives longer lives for ever.
const LONGEST_DAYS: u64 = 3_650;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// Whose key it is
    #[arg(long)]
    user: String,
    /// What else its holder may be: an admin may change the configuration, an agent may act for any user
    #[arg(long, value_name = "ROLE", value_parser = ["admin", "agent"])]
    role: Vec<String>,
    /// Only tools of this form may be used; `*` stands for any characters; may be repeated
    #[arg(long, value_name = "PATTERN")]
    allow: Vec<String>,
    /// Tools of this form may not be used, even when they are allowed; may be repeated
    #[arg(long, value_name = "PATTERN")]
    deny: Vec<String>,
    /// What a person calls it
    #[arg(long, default_value = "")]
    label: String,
    /// How long it lives, such as 12h, 30d or 8w; without it until it is revoked
    #[arg(long, value_name = "TIME", value_parser = life)]
    expires: Option<Duration>,
    #[command(flatten)]
    settings: SettingsArguments,
    /// Print the key as JSON
    #[arg(long)]
    json: bool,
}

pub(in crate::commands) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.user.is_empty() || Scope::parse(Some(&arguments.user), None).is_err() {
        bail!(Usage("--user must have 1 to 256 bytes and no control characters"));
    }
    let settings = assemble::accept(arguments.settings.load(None)?)?;
    let new = NewKey::random()?;
    let key = ApiKey {
        id: new.id.clone(),
        hash: new.hash,
        label: output::printable(&arguments.label),
        user: UserId::new(arguments.user),
        roles: arguments.role.iter().filter_map(|word| Role::parse(word)).collect(),
        tools: ToolRules { allowed: (!arguments.allow.is_empty()).then_some(arguments.allow), denied: arguments.deny },
        expires_in: arguments.expires,
    };
    let roles = key.roles.clone();
    let user = key.user.clone();
    let store = assemble::open_store(&settings).await?;
    let created = store.create(key).await;
    if created.is_ok() {
        record(&settings, &store, "create_key", user.as_str(), &new.id).await;
    }
    store.close().await;
    created?;
    if arguments.json {
        output::line(json!({ "id": new.id, "key": new.text.expose(), "user_id": user, "roles": roles }))?;
    } else {
        output::line(new.text.expose())?;
        output::note(format_args!("This is the key {} of {user}. It is shown this once.", new.id));
    }
    Ok(ExitCode::SUCCESS)
}

/// A number and one of `m`, `h`, `d`, `w`.
fn life(text: &str) -> Result<Duration, String> {
    let wrong = || format!("write a number and m, h, d or w, such as 30d; at most {LONGEST_DAYS} days");
    let unit = text.chars().last().and_then(|unit| match unit {
        'm' => Some(60),
        'h' => Some(3_600),
        'd' => Some(86_400),
        'w' => Some(7 * 86_400),
        _ => None,
    });
    let seconds = unit.and_then(|unit| text[..text.len() - 1].parse::<u64>().ok()?.checked_mul(unit));
    let bounded = seconds.filter(|seconds| (1..=LONGEST_DAYS * 86_400).contains(seconds));
    bounded.map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_a_number_and_a_unit() {
        for (text, seconds) in [("90m", 5_400), ("12h", 43_200), ("30d", 2_592_000), ("8w", 4_838_400)] {
            assert_eq!(life(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for wrong in ["", "d", "30", "0d", "-1d", "1.5d", "30 d", "30ü", "3651d", "99999999999999999999d", "1y"] {
            assert!(life(wrong).is_err(), "{wrong}");
        }
    }
}
