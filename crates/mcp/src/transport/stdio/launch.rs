//! How a child is started: its pipes, its environment, its markers.
//!
//! Owns the environment rule: the safe list of the MCP SDKs from our own environment, the names the setting
//! `stdio.inherit_env` adds, what leads into the thread's folder, what the server's entry sets (it wins), and the two
//! markers by which leftovers are found.
//! Nothing else of our environment reaches a child (O3). Who really starts it is the [`ChildHost`]'s affair.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::Stdio;
use caribou_core::ids::BootId;
use caribou_ports::guard::{ChildHost, HostedChild, Launch, SpawnError};
use caribou_ports::workspace::ThreadFolder;
use tokio::net::unix::pipe::{self, Receiver, Sender};

/// What every child may see of our own environment, as the SDKs of MCP have it; beside the locale, `LC_*`.
const SAFE_NAMES: [&str; 7] = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

/// Each is set by itself where the operator has not set it.
const TEMPORARY: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

/// Starts children.
#[derive(Clone)]
pub(crate) struct Launcher {
    /// Who really starts them.
    pub(crate) host: Arc<dyn ChildHost>,
    /// Names of our environment that children see beside the safe ones.
    pub(crate) inherit_env: Arc<[String]>,
    /// How long a child may take to leave after its stdin was closed, and again after SIGTERM.
    pub(crate) grace: Duration,
    /// This life of this replica.
    pub(crate) boot: BootId,
}

/// A started child and our ends of its pipes.
pub(crate) struct Launched {
    pub(crate) child: HostedChild,
    pub(crate) stdin: Sender,
    pub(crate) stdout: Receiver,
    pub(crate) stderr: Receiver,
}

impl Launcher {
    /// Starts one child for the session `label`, in the folder of its thread if it has one.
    pub(crate) async fn launch(
        &self,
        stdio: &Stdio,
        label: &str,
        folder: Option<&ThreadFolder>,
    ) -> Result<Launched, SpawnError> {
        let no_pipes = |error: std::io::Error| SpawnError::HostUnavailable(format!("no pipes for it: {error}"));
        let (stdin, childs_stdin) = pipe::pipe().map_err(no_pipes)?;
        let (childs_stdout, stdout) = pipe::pipe().map_err(no_pipes)?;
        let (childs_stderr, stderr) = pipe::pipe().map_err(no_pipes)?;
        let launch = Launch {
            session: label.to_owned(),
            argv: std::iter::once(&stdio.command).chain(&stdio.args).cloned().collect(),
            env: self.environment(stdio, label, folder),
            cwd: stdio.cwd.clone().or_else(|| folder.map(|folder| folder.workspace.clone())),
            stdin: childs_stdin.into_blocking_fd().map_err(no_pipes)?,
            stdout: childs_stdout.into_blocking_fd().map_err(no_pipes)?,
            stderr: childs_stderr.into_blocking_fd().map_err(no_pipes)?,
        };
        let child = self.host.spawn(launch).await?;
        Ok(Launched { child, stdin, stdout, stderr })
    }

    fn environment(&self, stdio: &Stdio, label: &str, folder: Option<&ThreadFolder>) -> Vec<(String, String)> {
        let in_folder = folder.map(|folder| folder_variables(stdio, folder)).unwrap_or_default();
        let set =
            |name: &str| stdio.env.iter().any(|(own, _)| own == name) || in_folder.iter().any(|(own, _)| own == name);
        let ours = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let mut env: Vec<(String, String)> = ours
            .filter(|(name, _)| self.inherits(name) && !set(name))
            .filter_map(|(name, value)| Some((name, value.into_string().ok()?)))
            // Functions that a shell exported would be run by the next shell.
            .filter(|(_, value)| !value.starts_with("()"))
            .collect();
        env.extend(stdio.env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())));
        env.extend(in_folder);
        env.retain(|(name, _)| !matches!(name.as_str(), "CARIBOU_SESSION" | "CARIBOU_BOOT"));
        env.push(("CARIBOU_SESSION".to_owned(), label.to_owned()));
        env.push(("CARIBOU_BOOT".to_owned(), self.boot.to_string()));
        env
    }

    fn inherits(&self, name: &str) -> bool {
        SAFE_NAMES.contains(&name) || name.starts_with("LC_") || self.inherit_env.iter().any(|own| own == name)
    }
}

/// The variables that lead into the thread's folder: what `thread_files` names, and the temporary folder unless the
/// operator set it (contract 4.6).
fn folder_variables(stdio: &Stdio, folder: &ThreadFolder) -> Vec<(String, String)> {
    let free = |name: &&str| !stdio.env.iter().any(|(own, _)| own == name);
    let temporary = TEMPORARY.iter().copied().filter(free);
    let temporary = temporary.filter_map(|name| Some((name.to_owned(), folder.temp.as_ref().ok()?.clone())));
    let files = stdio.thread_files.iter().filter(|(name, _)| free(&name.as_str()));
    files
        .map(|(name, path)| (name.clone(), folder.workspace.join(path)))
        .chain(temporary)
        .filter_map(|(name, path)| Some((name, path.into_os_string().into_string().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use caribou_core::config::Secret;

    use super::*;
    use crate::transport::process::DirectHost;

    #[test]
    fn a_child_sees_the_safe_names_the_allowed_ones_and_its_own() {
        // Cargo sets this one for every test.
        let inherit_env = ["CARGO_MANIFEST_DIR".to_owned()].into();
        let boot = BootId::new("boot-1");
        let launcher = Launcher { host: Arc::new(DirectHost), inherit_env, grace: Duration::ZERO, boot };
        let own = [("HOME", "/elsewhere"), ("KEY", "k"), ("CARIBOU_BOOT", "forged")];
        let env = own.map(|(name, value)| (name.to_owned(), Secret::new(value))).to_vec();
        let stdio = Stdio { command: "x".to_owned(), env, ..Stdio::default() };
        let env = launcher.environment(&stdio, "s/ann:t1", None);

        let values = |wanted: &str| -> Vec<&str> {
            env.iter().filter(|(name, _)| name == wanted).map(|(_, value)| value.as_str()).collect()
        };
        assert_eq!(values("HOME"), ["/elsewhere"]);
        assert_eq!(values("KEY"), ["k"]);
        assert_eq!(values("CARGO_MANIFEST_DIR"), [env!("CARGO_MANIFEST_DIR")]);
        assert_eq!(values("CARIBOU_BOOT"), ["boot-1"]);
        assert_eq!(values("CARIBOU_SESSION"), ["s/ann:t1"]);
        assert_eq!(values("PATH").len(), 1);
        assert!(values("CARGO_PKG_NAME").is_empty(), "nothing else of our environment is seen");
    }

    #[test]
    fn a_thread_has_its_own_files_and_temporary_folder_unless_the_operator_set_them() {
        // Contract 4.6, `TMPDIR`, `TMP`, `TEMP`.
        let boot = BootId::new("boot-1");
        let launcher = Launcher { host: Arc::new(DirectHost), inherit_env: [].into(), grace: Duration::ZERO, boot };
        let stdio = Stdio {
            env: vec![("TMP".to_owned(), Secret::new("/own"))],
            thread_files: vec![("DB".to_owned(), "a/b.db".into())],
            ..Stdio::default()
        };
        let folder = ThreadFolder { workspace: "/w".into(), temp: Ok("/w/.mcp/tmp".into()) };
        let env = launcher.environment(&stdio, "s/ann:t1", Some(&folder));
        let value = |wanted: &str| {
            let mut values = env.iter().filter(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
            (values.next(), values.next())
        };
        assert_eq!(value("DB"), (Some("/w/a/b.db"), None));
        assert_eq!(value("TMP"), (Some("/own"), None));
        assert_eq!(value("TMPDIR"), (Some("/w/.mcp/tmp"), None));
    }
}
