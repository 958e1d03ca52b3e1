//! One installed release of npm, kept away from the network and from the caches and settings of this machine.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use caribou_tests::{Home, third_party};
use tokio::process::Command;
use tokio::time::timeout;

/// How long one command may take on a loaded machine, with a package to install.
pub(crate) const RUN: Duration = Duration::from_secs(60);

/// One release of npm and the folder it may write to.
pub(crate) struct Npm {
    /// The package `npm`, unpacked.
    pub(crate) package: PathBuf,
    home: Home,
}

impl Npm {
    /// The release that `tests/run` installed under this name.
    pub(crate) fn installed(name: &str) -> Self {
        let home = Home::new();
        std::fs::create_dir(home.join("work")).unwrap();
        Self { package: third_party::npm(name), home }
    }

    /// Its own folder.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// The number before the first dot of its version.
    pub(crate) fn major(&self) -> u32 {
        let text = std::fs::read(self.package.join("package.json")).unwrap();
        let package: serde_json::Value = serde_json::from_slice(&text).unwrap();
        package["version"].as_str().unwrap().split('.').next().unwrap().parse().unwrap()
    }

    /// One of its programs, with nothing of our environment but `PATH`. Unless told otherwise, no registry answers.
    pub(crate) fn command(&self, program: &str, folder: &Path) -> Command {
        let mut command = Command::new("node");
        command
            .arg(self.package.join("bin").join(program))
            .current_dir(folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.home.path())
            .env("npm_config_cache", self.home.join("cache"))
            .env("npm_config_globalconfig", self.home.join("npmrc"))
            .env("npm_config_prefix", self.home.join("global"))
            .env("npm_config_registry", "http://127.0.0.1:9")
            .env("npm_config_update_notifier", "false")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// What npx does with these arguments and variables, and whether a canary appeared. Each `DIR` is the folder that
    /// it runs in, which holds two files that make the canary: `evil.sh` and `evil.js`.
    pub(crate) async fn npx(&self, registry: &str, words: &[String], variables: &[(&str, &str)]) -> (Output, bool) {
        let folder = self.home.join("work");
        let canary = folder.join("CANARY");
        let _ = std::fs::remove_file(&canary);
        script(&folder.join("evil.sh"), "#!/bin/sh\ntouch CANARY\n");
        script(&folder.join("evil.js"), "require('fs').writeFileSync('CANARY', '')\n");
        let placed = |text: &str| text.replace("DIR", folder.to_str().unwrap());
        let mut command = self.command("npx-cli.js", &folder);
        command.env("npm_config_registry", registry).args(words.iter().map(|word| placed(word)));
        command.envs(variables.iter().map(|(name, value)| (name, placed(value))));
        let output = timeout(RUN, command.output()).await.expect("npx ends in time").unwrap();
        (output, canary.exists())
    }
}

fn script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    if !path.exists() {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}
