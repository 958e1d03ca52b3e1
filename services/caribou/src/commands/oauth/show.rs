//! `caribou oauth show`

use std::process::ExitCode;

use anyhow::bail;
use serde_json::Value;

use super::chains::{Answer, OneServer, listed};
use crate::commands::output;

pub(in crate::commands) async fn run(one: OneServer) -> anyhow::Result<ExitCode> {
    let answer = listed(&one.target).await?;
    if one.target.json {
        let whole: Value = serde_json::from_str(&answer)?;
        let found = whole["chains"].as_array().into_iter().flatten().find(|chain| chain["server"] == *one.name);
        let Some(found) = found else { bail!("there is no token chain of `{}`", one.name) };
        output::line(found)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Answer { chains } = serde_json::from_str(&answer)?;
    let Some(chain) = chains.into_iter().find(|chain| chain.server == one.name) else {
        bail!("there is no token chain of `{}`", one.name)
    };
    for (name, value) in [
        ("server", chain.server.clone()),
        ("state", chain.state.clone()),
        ("generation", chain.generation.to_string()),
        ("access token ends", chain.expires()),
        ("provider rotates", if chain.rotates { "yes" } else { "not seen yet" }.to_owned()),
        ("failures in a row", chain.failures.to_string()),
        ("next try", chain.next_try()),
        ("refreshed by", chain.holder.clone().unwrap_or_else(|| "-".to_owned())),
        ("changed", chain.changed()),
        ("last error", chain.last_error.clone().unwrap_or_else(|| "-".to_owned())),
    ] {
        output::line(format_args!("{name}: {value}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
