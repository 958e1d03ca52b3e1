//! A registry of npm packages on loopback: two tiny packages, each a program that prints the words it was given.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use axum::extract::Path as Name;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::npm::{Npm, RUN};

/// The packages: name and program.
const PACKAGES: [(&str, &str); 2] = [("reindeer", "reindeer"), ("@moss/server", "moss-server")];

const PROGRAM: &str = "#!/usr/bin/env node\nconsole.log(JSON.stringify(process.argv.slice(2)))\n";

/// A registry that serves while its runtime lives.
pub(crate) struct Registry {
    /// Where npm finds it.
    pub(crate) url: String,
}

impl Registry {
    /// Packs the packages inside `folder` and starts to serve them.
    pub(crate) async fn start(npm: &Npm, folder: &Path) -> Self {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut router = Router::new();
        for (name, program) in PACKAGES {
            let tarball = std::fs::read(pack(npm, folder, name, program).await).unwrap();
            router = router.route(&format!("/-/{program}.tgz"), get(async move || tarball.clone()));
        }
        let base = url.clone();
        router = router.route("/{name}", get(async move |Name(name): Name<String>| document(&base, &name)));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url }
    }
}

/// What a registry tells about one package.
fn document(url: &str, name: &str) -> Result<Json<Value>, StatusCode> {
    let (_, program) = PACKAGES.into_iter().find(|(known, _)| *known == name).ok_or(StatusCode::NOT_FOUND)?;
    let mut version = manifest(name, program);
    version["dist"] = json!({ "tarball": format!("{url}/-/{program}.tgz") });
    Ok(Json(json!({ "name": name, "dist-tags": { "latest": "1.0.0" }, "versions": { "1.0.0": version } })))
}

fn manifest(name: &str, program: &str) -> Value {
    json!({ "name": name, "version": "1.0.0", "bin": { program: "program.js" } })
}

async fn pack(npm: &Npm, folder: &Path, name: &str, program: &str) -> PathBuf {
    let package = folder.join(program);
    std::fs::create_dir(&package).unwrap();
    std::fs::write(package.join("package.json"), manifest(name, program).to_string()).unwrap();
    std::fs::write(package.join("program.js"), PROGRAM).unwrap();
    let mut command = npm.command("npm-cli.js", &package);
    let done = timeout(RUN, command.args(["pack", "--silent"]).output()).await.expect("npm packs in time").unwrap();
    assert!(done.status.success(), "{done:?}");
    package.join(String::from_utf8(done.stdout).unwrap().trim())
}
