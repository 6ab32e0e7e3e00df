//! From arguments to files: plain paths, quoted globs, directories, `-`.

use super::Problem;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// One input.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Standard input.
    Stdin,
    /// A file, as the user named it.
    File(PathBuf),
}

impl Source {
    /// The name that reports use.
    pub fn name(&self) -> String {
        match self {
            Self::Stdin => "-".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }
}

/// The inputs in a fixed order, and what could not be found.
#[derive(Debug, Default)]
pub struct Resolved {
    /// Inputs; each file once, in natural order of their names.
    pub sources: Vec<Source>,
    /// Arguments that named nothing.
    pub problems: Vec<Problem>,
}

/// Endings that are no logs when a directory is searched.
const NOT_LOGS: [&str; 24] =
    ["py", "pyc", "so", "json", "toml", "yaml", "yml", "sh", "c", "cc", "cpp", "h", "rs", "md", "html", "png", "jpg", "pdf", "pt", "bin", "safetensors", "onnx", "npy", "whl"];

/// How deep directories are searched.
pub const MAX_DEPTH: usize = 8;

/// Resolves the arguments. The result does not depend on their order.
pub fn resolve(inputs: &[String]) -> Resolved {
    let mut out = Resolved::default();
    let mut files: Vec<PathBuf> = Vec::new();
    for input in inputs {
        if input == "-" {
            if !out.sources.contains(&Source::Stdin) {
                out.sources.push(Source::Stdin);
            }
            continue;
        }
        match expand(Path::new(input)) {
            Ok((found, closed)) => {
                files.extend(found);
                out.problems.extend(closed.into_iter().map(|(path, error)| closed_folder(&path, &error)));
            }
            Err(text) => out.problems.push(Problem { path: input.clone(), text }),
        }
    }
    let mut seen = BTreeSet::new();
    files.retain(|f| seen.insert(fs::canonicalize(f).unwrap_or_else(|_| f.clone())));
    files.sort_by_cached_key(|f| natural_key(&f.display().to_string()));
    out.sources.extend(files.into_iter().map(Source::File));
    out
}

/// A directory that could not be searched.
pub fn closed_folder(path: &Path, error: &io::Error) -> Problem {
    Problem { path: path.display().to_string(), text: format!("cannot be searched ({error}); what is in it was left out, check that you may read it") }
}

/// Files, and directories that could not be searched.
type Searched = (Vec<PathBuf>, Vec<(PathBuf, std::io::Error)>);

fn expand(path: &Path) -> Result<Searched, String> {
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => {
            let mut searched = Searched::default();
            walk(path, &mut searched, 0);
            if searched.0.is_empty() && searched.1.is_empty() {
                return Err("the directory holds no log files; name the files, or a directory that holds them".to_owned());
            }
            Ok(searched)
        }
        Ok(_) => Ok((vec![path.to_owned()], Vec::new())),
        Err(error) => match glob(path) {
            Some(found) if !found.is_empty() => Ok((found, Vec::new())),
            Some(_) => Err("the pattern matches no file; check the folder and the quotes".to_owned()),
            None if error.kind() == std::io::ErrorKind::NotFound => Err("no such file; check the path".to_owned()),
            None => Err(format!("cannot be opened ({error}); check its permissions")),
        },
    }
}

fn glob(path: &Path) -> Option<Vec<PathBuf>> {
    let pattern = path.to_str().filter(|p| p.contains(['*', '?', '[']))?;
    Some(glob::glob(pattern).ok()?.filter_map(Result::ok).filter(|p| p.is_file()).collect())
}

fn walk(dir: &Path, out: &mut Searched, depth: usize) {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => return out.1.push((dir.to_owned(), error)),
    };
    for path in entries.filter_map(Result::ok).map(|e| e.path()) {
        if !may_be_log(&path) {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            if depth < MAX_DEPTH {
                walk(&path, out, depth + 1);
            }
        } else if path.is_file() && !is_program(&path) {
            out.0.push(path);
        }
    }
}

/// Whether a directory's entry may be a log, or hold some, by its name.
pub fn may_be_log(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
    !hidden && path.extension().and_then(|e| e.to_str()).is_none_or(|e| !NOT_LOGS.contains(&e) || path.is_dir())
}

/// First bytes of programs, libraries and core dumps. They hold the texts of all messages, and lie beside the logs of runs.
pub const PROGRAM: &[u8] = b"\x7fELF";

/// Whether a file that nobody named is a program or a core dump. What is called a log is not opened for it.
pub fn is_program(path: &Path) -> bool {
    if path.extension().is_some_and(|e| ["log", "txt", "out", "err"].iter().any(|name| e == *name)) {
        return false;
    }
    let mut head = [0; PROGRAM.len()];
    // A file that cannot be read is told of where it is opened as a log.
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok_and(|()| head == PROGRAM)
}

/// Pieces of a name, text and the number behind it in turn, so that rank2 comes before rank10.
pub fn natural_key(name: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let text_len = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, tail) = rest.split_at(text_len);
        let digits_len = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (digits, tail) = tail.split_at(digits_len);
        key.push((text.to_owned(), digits.parse().unwrap_or(u64::MAX)));
        rest = tail;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_natural_and_every_file_comes_once() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["rank10.log", "rank2.log", "rank1.log", ".hidden", "train.py"] {
            fs::write(dir.path().join(name), "x\n").unwrap();
        }
        fs::write(dir.path().join("core.4711"), [PROGRAM, b"\nNCCL WARN\n"].concat()).unwrap();
        let base = dir.path().display().to_string();
        let names = |inputs: &[String]| resolve(inputs).sources.iter().map(|s| s.name().rsplit('/').next().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&[format!("{base}/rank10.log"), base.clone(), format!("{base}/rank*.log")]), ["rank1.log", "rank2.log", "rank10.log"]);
        let missing = resolve(&[format!("{base}/nothing.log"), format!("{base}/no*.log")]);
        assert_eq!(missing.problems.len(), 2);
        assert!(missing.sources.is_empty());
    }
}
