//! Which volume the files of threads are on in this replica, where replicas do not share one. A volume is named by a file
//! of its own, so that it keeps its name when a replica is started again with it.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, bail};
use caribou_core::ids::VolumeId;
use tokio::fs;
use uuid::Uuid;

/// The file that names it, in the root of all threads.
const NAME: &str = "volume-id";

/// The name of the volume that `root` is on, made if it has none.
///
/// # Errors
/// The file cannot be read or written, or holds something else.
pub(crate) async fn at(root: &Path) -> anyhow::Result<VolumeId> {
    fs::create_dir_all(root).await.with_context(|| format!("threads.root: cannot make {}", root.display()))?;
    let file = root.join(NAME);
    if let Some(id) = read(&file).await? {
        return Ok(id);
    }
    // Whole at once, and only if nobody else was faster: two processes may begin on one volume.
    let ours = root.join(format!("{NAME}.{}", Uuid::new_v4()));
    fs::write(&ours, Uuid::new_v4().to_string()).await.with_context(|| format!("cannot write {}", ours.display()))?;
    let linked = fs::hard_link(&ours, &file).await;
    let _ = fs::remove_file(&ours).await;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(error).with_context(|| format!("cannot write {}", file.display()))
        }
        _ => read(&file).await?.with_context(|| format!("{} is gone", file.display())),
    }
}

async fn read(file: &Path) -> anyhow::Result<Option<VolumeId>> {
    match fs::read_to_string(file).await {
        Ok(text) => match text.trim().parse::<Uuid>() {
            Ok(id) => Ok(Some(VolumeId::new(id.to_string()))),
            Err(_) => {
                bail!("{} names the volume of threads and holds no UUID; put it right or delete it", file.display())
            }
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_volume_keeps_its_name_whoever_begins_on_it() {
        let root = tempfile::tempdir().unwrap();
        let below = root.path().join("threads");
        let (one, other) = tokio::join!(at(&below), at(&below));
        let one = one.unwrap();
        assert_eq!(one, other.unwrap());
        assert_eq!(at(&below).await.unwrap(), one);
        assert_eq!(std::fs::read_dir(&below).unwrap().count(), 1, "nothing else is left");
        assert_ne!(at(&root.path().join("other")).await.unwrap(), one);
    }

    #[tokio::test]
    async fn a_file_that_names_nothing_is_told() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join(NAME), "x").unwrap();
        let error = at(root.path()).await.unwrap_err();
        assert!(error.to_string().contains(NAME), "{error}");
    }
}
