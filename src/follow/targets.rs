//! What the user named: files, patterns and directories, some of which may not be there yet.

use crate::input::{MAX_DEPTH, Problem, closed_folder, is_program, may_be_log, natural_key};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};

/// A folder that changed so recently may change again without a newer time stamp.
const RACY: Duration = Duration::from_secs(2);

/// The names to follow.
#[derive(Debug, Default)]
pub struct Targets {
    /// Files by name; they need not exist yet.
    pub files: Vec<PathBuf>,
    /// Patterns.
    globs: Vec<String>,
    /// Directories, searched with all below them.
    folders: BTreeSet<PathBuf>,
    /// Standard input is followed, too.
    pub stdin: bool,
    /// Directories that the last scan could not search.
    pub closed: Vec<Problem>,
    /// The folders of the last scan and when each had changed.
    stamps: Vec<(PathBuf, Option<SystemTime>)>,
}

/// What a scan found.
#[derive(Debug, Default)]
pub struct Scan {
    /// Files in natural order of their names.
    pub files: Vec<PathBuf>,
    /// Folders in which files may appear or change.
    pub folders: BTreeSet<PathBuf>,
}

impl Targets {
    /// Reads the arguments.
    pub fn new(inputs: &[String]) -> Self {
        let mut targets = Self::default();
        for input in inputs {
            let path = PathBuf::from(input);
            if input == "-" {
                targets.stdin = true;
            } else if path.is_dir() || input.ends_with('/') {
                targets.folders.insert(path);
            } else if !path.exists() && input.contains(['*', '?', '[']) {
                targets.globs.push(input.clone());
            } else {
                targets.files.push(path);
            }
        }
        targets
    }

    /// A name that was taken for a file turned out to be a directory.
    pub fn is_folder(&mut self, path: &Path) {
        self.files.retain(|f| f != path);
        self.folders.insert(path.to_owned());
    }

    /// A name that was taken for a file is a pipe, which its reader follows.
    pub fn is_pipe(&mut self, path: &Path) {
        self.files.retain(|f| f != path);
    }

    /// Whether there is nothing in which files could appear or grow.
    pub fn is_only_pipes(&self) -> bool {
        self.files.is_empty() && self.globs.is_empty() && self.folders.is_empty()
    }

    /// Whether the user named this file itself.
    pub fn names(&self, path: &Path) -> bool {
        self.files.iter().any(|f| f == path)
    }

    /// Whether a folder changed since the last scan.
    pub fn changed(&self) -> bool {
        self.stamps.iter().any(|(folder, before)| {
            let now = stamp(folder);
            now != *before || now.and_then(|n| n.elapsed().ok()).is_some_and(|age| age < RACY)
        })
    }

    /// Looks for the files that are there now.
    pub fn scan(&mut self) -> Scan {
        let mut folders = BTreeSet::new();
        let mut closed = Vec::new();
        let mut files: BTreeSet<PathBuf> = self.files.iter().cloned().collect();
        for file in &self.files {
            folders.insert(parent(file));
        }
        for folder in &self.folders {
            folders.insert(parent(folder));
            walk(folder, &mut files, &mut folders, &mut closed, 0);
        }
        for pattern in &self.globs {
            files.extend(glob::glob(pattern).into_iter().flatten().flatten().filter(|p| !p.is_dir()));
            folders.extend(folders_of(pattern));
        }
        self.closed = closed;
        self.stamps = folders.iter().map(|f| (f.clone(), stamp(f))).collect();
        let mut files: Vec<PathBuf> = files.into_iter().collect();
        files.sort_by_cached_key(|f| natural_key(&f.display().to_string()));
        Scan { files, folders }
    }
}

fn stamp(folder: &Path) -> Option<SystemTime> {
    fs::metadata(folder).and_then(|m| m.modified()).ok()
}

/// The folder that holds `path`.
pub fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Directories that could not be searched are added to `closed`.
fn walk(folder: &Path, files: &mut BTreeSet<PathBuf>, folders: &mut BTreeSet<PathBuf>, closed: &mut Vec<Problem>, depth: usize) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            // One that is not there yet may still come.
            if error.kind() != io::ErrorKind::NotFound {
                closed.push(closed_folder(folder, &error));
            }
            return;
        }
    };
    folders.insert(folder.to_owned());
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if !may_be_log(&path) {
            continue;
        }
        if kind.is_dir() {
            if depth < MAX_DEPTH {
                walk(&path, files, folders, closed, depth + 1);
            }
        } else if (kind.is_file() || (kind.is_symlink() && path.is_file())) && !is_program(&path) {
            files.insert(path);
        }
    }
}

/// The existing folders in which a match of `pattern` may appear.
fn folders_of(pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![if pattern.starts_with('/') { PathBuf::from("/") } else { PathBuf::from(".") }];
    let parts: Vec<&str> = pattern.split('/').filter(|p| !p.is_empty()).collect();
    for (i, part) in parts.iter().enumerate().take(parts.len().saturating_sub(1)) {
        let _ = part;
        let prefix = format!("{}{}", if pattern.starts_with('/') { "/" } else { "" }, parts[..=i].join("/"));
        let wild = prefix.contains(['*', '?', '[']);
        let here: Vec<PathBuf> = if wild { glob::glob(&prefix).into_iter().flatten().flatten().collect() } else { vec![PathBuf::from(prefix)] };
        if !wild {
            // Nothing of interest appears beside a fixed part, as long as it is there.
            found.clear();
        }
        found.extend(here.into_iter().filter(|p| p.is_dir()));
        if found.is_empty() {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_patterns_and_folders_that_come_later() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path();
        fs::create_dir_all(base.join("logs/node1")).unwrap();
        for name in ["rank10.log", "rank2.log", "logs/a.log", "logs/train.py", "logs/node1/out"] {
            fs::write(base.join(name), "x\n").unwrap();
        }
        let input = |name: &str| base.join(name).display().to_string();
        let mut targets = Targets::new(&[input("rank*.log"), input("logs"), input("later.log"), "-".to_owned()]);
        let scan = targets.scan();
        let names: Vec<String> = scan.files.iter().map(|f| f.strip_prefix(base).unwrap().display().to_string()).collect();
        assert_eq!(names, ["later.log", "logs/a.log", "logs/node1/out", "rank2.log", "rank10.log"]);
        assert!(targets.stdin && scan.folders.contains(&base.join("logs/node1")) && scan.folders.contains(base));
        fs::write(base.join("rank3.log"), "x\n").unwrap();
        assert!(targets.changed());
        assert!(targets.scan().files.contains(&base.join("rank3.log")));
        let mut targets = Targets::new(&[input("*/node*/out")]);
        let scan = targets.scan();
        assert_eq!(scan.files, [base.join("logs/node1/out")]);
        assert!(scan.folders.contains(&base.join("logs")) && scan.folders.contains(&base.join("logs/node1")) && scan.folders.contains(base));
    }
}
