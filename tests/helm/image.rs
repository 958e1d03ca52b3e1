//! The images: what goes into them, read from the Dockerfile, and the root of one of them, laid out and started.
//!
//! No engine builds them here. What is proved: every file that is copied is there, the workspace is whole with these
//! files alone, and the program starts with nothing but what the image holds.

use std::fs;
use std::path::Path;
use std::process::Command;

use caribou_tests::Home;

use crate::chart::{text_of, tree};

const DOCKERFILE: &str = "services/caribou/Dockerfile";

/// One instruction: its word, and the rest with continued lines joined.
type Instruction = (String, String);

/// The instructions of a Dockerfile, in stages; what stands before the first one is a stage of its own.
fn stages(text: &str) -> Vec<Vec<Instruction>> {
    let joined = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n");
    let mut stages = vec![Vec::new()];
    for line in joined.replace("\\\n", " ").lines().filter(|line| !line.trim().is_empty()) {
        let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        if word == "FROM" {
            stages.push(Vec::new());
        }
        stages.last_mut().unwrap().push((word.to_owned(), rest.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    stages
}

fn name(stage: &[Instruction]) -> &str {
    stage[0].1.split(" AS ").nth(1).unwrap_or_default()
}

fn rest<'s>(stage: &'s [Instruction], word: &str) -> Vec<&'s str> {
    stage.iter().filter(|(found, _)| found == word).map(|(_, rest)| rest.as_str()).collect()
}

/// What the build stage copies from the tree.
fn copied(stages: &[Vec<Instruction>]) -> Vec<String> {
    let build = stages.iter().skip(1).find(|stage| name(stage) == "build").expect("there is a stage that builds");
    let mut sources = Vec::new();
    for copy in rest(build, "COPY") {
        let mut words: Vec<_> = copy.split(' ').collect();
        words.pop();
        sources.extend(words.into_iter().map(str::to_owned));
    }
    sources
}

#[test]
fn there_are_two_images_and_neither_runs_as_root() {
    let stages = stages(&text_of(DOCKERFILE));
    let names: Vec<_> = stages.iter().skip(1).map(|stage| name(stage)).collect();
    assert_eq!(names, ["build", "remote", "stdio"]);
    let arguments: Vec<_> = stages.iter().flatten().filter(|(word, _)| word == "ARG").map(|(_, rest)| rest).collect();
    for argument in &arguments {
        assert!(argument.split_once('=').is_some_and(|(_, version)| !version.is_empty()), "{argument}: no version");
    }
    for stage in &stages[2..] {
        assert_eq!(rest(stage, "USER"), ["65532:65532"], "{}", name(stage));
        assert_eq!(rest(stage, "ENTRYPOINT"), [r#"["/usr/local/bin/caribou"]"#], "{}", name(stage));
        assert_eq!(rest(stage, "CMD"), [r#"["serve"]"#], "{}", name(stage));
        let last = stage.iter().position(|(word, _)| word == "USER").unwrap();
        assert!(stage[last..].iter().all(|(word, _)| word != "RUN" && word != "COPY"), "{}: root's work", name(stage));
    }
    for (word, rest) in stages.iter().flatten() {
        let known = ["ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "RUN", "USER", "WORKDIR"];
        assert!(known.contains(&word.as_str()), "{word} {rest}");
        assert!(!rest.contains(":latest"), "{word} {rest}");
        let from_elsewhere = rest.strip_prefix("--from=").map(|rest| rest.split(' ').next().unwrap_or_default());
        assert!(word != "COPY" || from_elsewhere.is_none_or(|stage| names.contains(&stage)), "{word} {rest}");
    }
    assert_eq!(stages[2][0].1, "scratch AS remote", "nothing but what is laid out");
}

#[test]
fn the_versions_of_image_and_workspace_are_the_same() {
    let workspace = text_of("Cargo.toml");
    let dockerfile = text_of(DOCKERFILE);
    let rust = workspace.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(dockerfile.contains(&format!("ARG RUST_VERSION={rust}\n")), "{rust}");
    let ours = workspace.lines().find_map(|line| line.strip_prefix("version = ")).unwrap().trim_matches('"');
    let chart = text_of("helm/caribou/Chart.yaml");
    assert!(chart.contains(&format!("appVersion: \"{ours}\"\n")), "{ours}");
    assert!(dockerfile.contains(&format!("-t caribou:{ours} .\n")), "{ours}");
}

#[test]
fn the_workspace_is_whole_with_what_the_build_copies() {
    let sources = copied(&stages(&text_of(DOCKERFILE)));
    assert_eq!(sources, ["Cargo.toml", "Cargo.lock", "crates", "migrations", "proto", "services", "tests"]);
    let ignored = text_of("services/caribou/Dockerfile.dockerignore");
    let home = Home::new();
    for source in &sources {
        assert!(ignored.lines().any(|line| line == format!("!{source}")), "{source} does not reach the build");
        let copy = Command::new("cp").arg("-r").arg(tree().join(source)).arg(home.path()).status().unwrap();
        assert!(copy.success(), "{source}");
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let read = Command::new(cargo)
        .args(["metadata", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(home.path())
        .output()
        .unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    assert!(String::from_utf8_lossy(&read.stdout).contains("services/caribou/src/main.rs"));
    for file in ["migrations/postgres", "proto/caribou", "services/caribou/config.schema.json"] {
        assert!(home.join(file).exists(), "{file} is compiled in");
    }
    assert!(home.join("services/caribou/image/assemble").exists());
}

/// All files below a folder, by their paths from it.
fn files(folder: &Path, prefix: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = format!("{prefix}/{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            files(&entry.path(), &path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn the_image_holds_the_program_its_libraries_and_nothing_else() {
    let home = Home::new();
    let root = home.join("root");
    let script = tree().join("services/caribou/image/assemble");
    let laid =
        Command::new("sh").arg(script).arg(env!("CARGO_BIN_EXE_caribou-under-test")).arg(&root).output().unwrap();
    assert!(laid.status.success(), "{}", String::from_utf8_lossy(&laid.stderr));
    let mut found = Vec::new();
    files(&root, "", &mut found);
    let is_library = |path: &&String| path.contains(".so.") && path.starts_with("/lib");
    let names: Vec<_> = found.iter().filter(is_library).map(|path| path.rsplit('/').next().unwrap()).collect();
    for library in &names {
        let known = ["ld-linux", "libc.so", "libgcc_s.so", "libm.so"];
        assert!(known.iter().any(|known| library.starts_with(known)), "{library}: has a package to install");
    }
    let loader = found.iter().find(|path| path.contains("/ld-linux")).expect("a program needs its loader");
    let mut others: Vec<_> = found.iter().filter(|path| !is_library(path)).map(String::as_str).collect();
    others.sort_unstable();
    let expected = [
        "/etc/group",
        "/etc/nsswitch.conf",
        "/etc/passwd",
        "/etc/ssl/certs/ca-certificates.crt",
        "/usr/local/bin/caribou",
    ];
    assert_eq!(others, expected);

    let mut start = match rustix::process::geteuid().is_root() {
        true => {
            let mut start = Command::new("chroot");
            start.arg("--userspec=65532:65532").arg(&root).arg("/usr/local/bin/caribou");
            start
        }
        // Without a root of its own, but with no library of this machine.
        false => {
            let mut start = Command::new(root.join(&loader[1..]));
            let libraries = found.iter().find(|path| path.contains("/libc.so")).unwrap();
            let folder = root.join(&libraries[1..]).parent().unwrap().to_owned();
            start.arg("--inhibit-cache").arg("--library-path").arg(folder).arg(root.join("usr/local/bin/caribou"));
            start
        }
    };
    let said = start.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").arg("--version").output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert!(said.stdout.starts_with(b"caribou "), "{}", String::from_utf8_lossy(&said.stdout));
    assert!(fs::read_to_string(root.join("etc/passwd")).unwrap().contains("caribou:x:65532:65532:"));
}

#[test]
fn stages_and_continued_lines_are_read() {
    let found = stages("ARG A=1\n# a word\nFROM x AS one\nRUN a \\\n    && b\nFROM scratch\nCOPY --from=one /a /\n");
    assert_eq!(found.len(), 3);
    assert_eq!((name(&found[1]), rest(&found[1], "RUN")), ("one", vec!["a && b"]));
    assert_eq!(rest(&found[2], "COPY"), ["--from=one /a /"]);
}
