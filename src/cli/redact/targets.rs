//! Names of the copies.

use crate::redact::Redactor;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Endings that a plain copy does not have.
const PACKED: [&str; 5] = ["gz", "zst", "xz", "bz2", "lz4"];

/// Where the copies of `sources` go: below `dir`, under the same names but for the identities in them. Files of one name
/// keep the directories that tell them apart.
pub fn name(sources: &[PathBuf], dir: &Path, redactor: &Redactor) -> Vec<PathBuf> {
    let flat: Vec<PathBuf> = sources.iter().map(|p| copy_name(p.file_name().map_or(p.as_path(), Path::new), redactor)).collect();
    if is_unique(&flat) {
        return flat.iter().map(|name| dir.join(name)).collect();
    }
    let parts: Vec<PathBuf> = sources.iter().map(|p| p.components().filter(|c| matches!(c, Component::Normal(_))).collect()).collect();
    let common = common(&parts);
    let mut used = BTreeSet::new();
    let mut out = Vec::new();
    for path in &parts {
        let own: PathBuf = path.components().skip(common).collect();
        let target = copy_name(&own, redactor);
        let mut unique = target.clone();
        let mut number = 2;
        while !used.insert(unique.clone()) {
            let name = target.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            unique = target.with_file_name(format!("{number}-{name}"));
            number += 1;
        }
        out.push(dir.join(unique));
    }
    out
}

fn is_unique(paths: &[PathBuf]) -> bool {
    paths.iter().collect::<BTreeSet<_>>().len() == paths.len()
}

/// How many directories all share.
fn common(paths: &[PathBuf]) -> usize {
    let Some(first) = paths.first() else { return 0 };
    (0..first.components().count().saturating_sub(1)).take_while(|n| paths.iter().all(|p| p.components().nth(*n) == first.components().nth(*n))).count()
}

fn copy_name(path: &Path, redactor: &Redactor) -> PathBuf {
    let packed = path.extension().is_some_and(|e| PACKED.iter().any(|p| e.eq_ignore_ascii_case(p)));
    let plain = if packed { path.with_extension("") } else { path.to_owned() };
    PathBuf::from(redactor.path(&plain.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        let mut redactor = Redactor::default();
        redactor.learn(b"gpu-07:1:1 [0] NCCL INFO x\n");
        let mut found = crate::redact::Found::default();
        for path in list {
            redactor.learn_path(path, &mut found);
        }
        redactor.join([found]);
        let list: Vec<PathBuf> = list.iter().map(PathBuf::from).collect();
        name(&list, Path::new("out"), &redactor).iter().map(|p| p.display().to_string()).collect()
    }

    #[test]
    fn names_stay_but_for_identities() {
        assert_eq!(names(&["/data/acme/rank0.log.gz", "x/nccl.gpu-07.12.log"]), ["out/rank0.log", "out/nccl.host-01.12.log"]);
        let same = names(&["run/secret-a/rank0.log", "run/secret-b/rank0.log"]);
        assert_eq!(same.len(), 2);
        assert_ne!(same[0], same[1]);
        assert!(same.iter().all(|n| n.starts_with("out/path-") && n.ends_with("/rank0.log")), "{same:?}");
    }
}
