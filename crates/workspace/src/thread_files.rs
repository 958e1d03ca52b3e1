//! The files of one thread: what its workspace holds, and what an agent calls them (contract 4.7).
//!
//! Everything here blocks. It only ever looks: nothing is created, copied or opened. Whatever the system refuses to
//! show is treated as not there. Work is bounded (invariant B1).

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use caribou_core::bounds::MAX_SNAPSHOT_ENTRIES;
use caribou_core::result::{AgentResult, ChangedFile, References, Snapshot, Stamp, is_reserved_folder};
use caribou_ports::workspace::Told;

/// The files of one thread.
pub(crate) struct ThreadFiles {
    /// Everything the thread's agent may see lies below it. Need not exist.
    tree: PathBuf,
    virtual_prefix: String,
}

impl ThreadFiles {
    pub(crate) fn new(tree: PathBuf, virtual_prefix: String) -> Self {
        Self { tree, virtual_prefix }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.tree.join("workspace")
    }

    /// What the workspace holds now. Links are not followed.
    pub(crate) fn snapshot(&self) -> Snapshot {
        match walk(&self.workspace(), MAX_SNAPSHOT_ENTRIES) {
            Ok(files) => Snapshot { files },
            Err(_) => Snapshot::default(),
        }
    }

    pub(crate) fn translate(&self, told: Told) -> AgentResult {
        let Told { mut result, cwd, before } = told;
        let Ok(tree) = self.tree.canonicalize() else { return result };
        let base = cwd.unwrap_or_else(|| self.workspace());
        // A second walk is for names in texts only.
        let now = if result.has_text() { self.snapshot() } else { Snapshot::default() };
        let changed = now.changed_since(&before);
        let changed: Vec<ChangedFile> =
            changed.into_iter().filter_map(|path| self.changed_file(&tree, &base, path)).collect();
        let resolve = |path: &Path| visible(&tree, &self.virtual_prefix, path);
        result.translate(&mut References::new(Some(&base), &changed, &resolve));
        result
    }

    /// How a changed file of the workspace may be spelled by a server that runs in `base`.
    fn changed_file(&self, tree: &Path, base: &Path, in_workspace: &Path) -> Option<ChangedFile> {
        let host = self.workspace().join(in_workspace);
        let visible = visible(tree, &self.virtual_prefix, &host)?;
        let real = host.canonicalize().ok()?;
        let real_base = base.canonicalize().ok();
        let relative = real_base.and_then(|base| real.strip_prefix(base).ok().map(Path::to_owned));
        let mut spellings = vec![host, real];
        spellings.dedup();
        Some(ChangedFile { host: spellings, relative, visible })
    }
}

/// The agent's path of an existing regular file that really lies below `tree`, which is canonical.
fn visible(tree: &Path, virtual_prefix: &str, path: &Path) -> Option<String> {
    let real = path.canonicalize().ok()?;
    let inside = real.strip_prefix(tree).ok()?.to_str()?;
    fs::metadata(&real).ok()?.is_file().then(|| format!("{virtual_prefix}/{inside}"))
}

/// The regular files below `root` by their path in it, or `None` when there are more entries than `at_most`.
fn walk(root: &Path, at_most: usize) -> io::Result<Option<HashMap<PathBuf, Stamp>>> {
    let mut files = HashMap::new();
    let mut folders = vec![PathBuf::new()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(root.join(&folder)) {
            // Never made, or deleted while we walk.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            seen += 1;
            if seen > at_most {
                return Ok(None);
            }
            let name = entry.file_name();
            let kind = entry.file_type()?;
            if kind.is_dir() && !name.to_str().is_some_and(is_reserved_folder) {
                folders.push(folder.join(name));
            } else if kind.is_file()
                // One that was deleted meanwhile is as good as never there.
                && let Ok(metadata) = entry.metadata()
            {
                files.insert(folder.join(name), stamp(&metadata));
            }
        }
    }
    Ok(Some(files))
}

fn stamp(metadata: &Metadata) -> Stamp {
    let mtime_ns = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
    Stamp { mtime_ns, size: metadata.len() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use caribou_core::result::{Block, Payload, Source};
    use tempfile::TempDir;

    use super::*;

    /// A thread's tree with `workspace/page.yml` and `outputs/o.csv`, and `secret.txt` beside the tree.
    fn thread() -> (TempDir, ThreadFiles) {
        let home = tempfile::tempdir().unwrap();
        let tree = home.path().join("user-data");
        for folder in ["workspace/.mcp/tmp", "outputs"] {
            fs::create_dir_all(tree.join(folder)).unwrap();
        }
        for file in ["user-data/workspace/page.yml", "user-data/outputs/o.csv", "secret.txt"] {
            fs::write(home.path().join(file), "x").unwrap();
        }
        (home, ThreadFiles::new(tree, "/mnt/user-data".to_owned()))
    }

    fn text(text: impl Into<String>) -> Block {
        Block::Text { text: text.into() }
    }

    fn translated(files: &ThreadFiles, before: Snapshot, block: Block) -> Block {
        let result = AgentResult { content: vec![block], ..AgentResult::default() };
        let told = Told { result, cwd: None, before };
        files.translate(told).content.remove(0)
    }

    #[test]
    fn files_of_the_thread_have_a_path_in_the_agents_tree() {
        // Contract 4.7.
        let (home, files) = thread();
        fs::write(files.workspace().join(".mcp/tmp/log.txt"), "").unwrap();
        symlink(files.tree.join("outputs/o.csv"), files.workspace().join("link.csv")).unwrap();
        let tree = files.tree.display();
        for (told, expected) in [
            (format!("{tree}/workspace/page.yml"), "/mnt/user-data/workspace/page.yml"),
            (format!("file://{tree}/outputs/o.csv"), "/mnt/user-data/outputs/o.csv"),
            ("./page.yml".to_owned(), "/mnt/user-data/workspace/page.yml"),
            ("../outputs/o.csv".to_owned(), "/mnt/user-data/outputs/o.csv"),
            (".mcp/tmp/log.txt".to_owned(), "/mnt/user-data/workspace/.mcp/tmp/log.txt"),
            ("./link.csv".to_owned(), "/mnt/user-data/outputs/o.csv"),
        ] {
            assert_eq!(translated(&files, Snapshot::default(), text(told)), text(expected));
        }
        drop(home);
    }

    #[test]
    fn what_is_no_file_of_the_thread_has_none() {
        // Contract 4.7.
        let (home, files) = thread();
        let secret = home.path().join("secret.txt");
        symlink(&secret, files.workspace().join("escape.txt")).unwrap();
        symlink(home.path(), files.workspace().join("out")).unwrap();
        for told in [
            secret.display().to_string(),
            "./escape.txt".to_owned(),
            "out/secret.txt".to_owned(),
            "../../secret.txt".to_owned(),
            format!("{}", files.workspace().display()),
            "./missing.txt".to_owned(),
            "./page.yml/inner".to_owned(),
            format!("./{}", "x".repeat(300)),
            format!("/{}", "x/".repeat(3_000)),
        ] {
            assert_eq!(translated(&files, Snapshot::default(), text(&told)), text(told));
        }
    }

    #[test]
    fn links_to_files_of_the_thread_are_translated_and_others_stay() {
        // Contract 4.7.
        let (_home, files) = thread();
        let file = |url: &str| Block::File(Payload { source: Source::Url(url.to_owned()), mime_type: None });
        let uri = format!("file://{}", files.workspace().join("page.yml").display());
        let expected = file("/mnt/user-data/workspace/page.yml");
        assert_eq!(translated(&files, Snapshot::default(), file(&uri)), expected);
        assert_eq!(translated(&files, Snapshot::default(), file("https://h/page.yml")), file("https://h/page.yml"));
    }

    #[test]
    fn names_of_files_this_call_changed_are_translated() {
        // Contract 4.7.
        let (_home, files) = thread();
        let before = files.snapshot();
        let unchanged = translated(&files, before.clone(), text("page.yml"));
        assert_eq!(unchanged, text("page.yml"));
        fs::create_dir(files.workspace().join("my notes")).unwrap();
        fs::write(files.workspace().join("my notes/a b.md"), "").unwrap();
        fs::write(files.workspace().join("page.yml"), "longer").unwrap();
        let told = format!("page.yml, my notes/a b.md, {}", files.workspace().join("my notes/a b.md").display());
        let expected = "/mnt/user-data/workspace/page.yml, /mnt/user-data/workspace/my notes/a b.md, \
                        /mnt/user-data/workspace/my notes/a b.md";
        assert_eq!(translated(&files, before, text(told)), text(expected));
    }

    #[test]
    fn relative_paths_start_where_the_server_was_told_to_run() {
        // Contract 4.6, 4.7.
        let (_home, files) = thread();
        let result = AgentResult { content: vec![text("./o.csv ./page.yml")], ..AgentResult::default() };
        let told = Told { result, cwd: Some(files.tree.join("outputs")), before: Snapshot::default() };
        assert_eq!(files.translate(told).content, [text("/mnt/user-data/outputs/o.csv ./page.yml")]);
    }

    #[test]
    fn a_snapshot_leaves_reserved_folders_and_links_out() {
        // Contract 4.6.
        let (_home, files) = thread();
        let workspace = files.workspace();
        for folder in ["deep/.mcp", "deep/node_modules", ".git"] {
            fs::create_dir_all(workspace.join(folder)).unwrap();
            fs::write(workspace.join(folder).join("f"), "").unwrap();
        }
        fs::write(workspace.join(".mcp/tmp/f"), "").unwrap();
        fs::write(workspace.join("deep/f"), "").unwrap();
        symlink(workspace.join("page.yml"), workspace.join("link")).unwrap();
        symlink(&workspace, workspace.join("circle")).unwrap();
        let seen = files.snapshot().files.unwrap();
        let mut seen: Vec<_> = seen.keys().map(|path| path.to_str().unwrap()).collect();
        seen.sort_unstable();
        assert_eq!(seen, ["deep/f", "page.yml"]);
    }

    #[test]
    fn a_workspace_with_too_many_files_is_not_seen_whole() {
        // Invariant B1.
        let (_home, files) = thread();
        fs::write(files.workspace().join("other"), "").unwrap();
        // The two files and `.mcp`.
        assert_eq!(walk(&files.workspace(), 3).unwrap().map(|files| files.len()), Some(2));
        assert_eq!(walk(&files.workspace(), 2).unwrap(), None);
    }
}
