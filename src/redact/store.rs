//! The private map: a file that gives several runs the same pseudonyms. Whoever has it can undo the redaction.

use super::Redactor;
use super::book::Book;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Format of the map.
const SCHEMA: &str = "ncclog.redact/1";

/// Largest map that is read.
const MAX_BYTES: u64 = 256 << 20;

/// A map file.
#[derive(Debug, Clone)]
pub struct MapFile {
    path: PathBuf,
}

impl MapFile {
    /// The map at `path`, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds; an empty map if it does not exist.
    pub fn read(&self) -> io::Result<Redactor> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Redactor::default()),
            Err(error) => return Err(error),
        };
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text)?;
        let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        let book: Book = serde_json::from_str(&text).map_err(|e| wrong(format!("it is no map of ncclog: {e}")))?;
        if book.schema != SCHEMA {
            return Err(wrong(format!("its format is {:?}, not {SCHEMA}", book.schema)));
        }
        let mut redactor = Redactor { book: book.reopen(), ..Redactor::default() };
        redactor.join([]);
        Ok(redactor)
    }

    /// Writes it, readable by its owner alone.
    pub fn write(&self, redactor: &Redactor) -> io::Result<()> {
        let mut book = redactor.book.clone();
        book.schema = SCHEMA.to_owned();
        let folder = self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Temporary files are private from their first byte on, and stay so.
        let mut file = tempfile::Builder::new().prefix(".ncclog-").suffix(".tmp").tempfile_in(folder)?;
        let mut text = serde_json::to_string_pretty(&book)?;
        text.push('\n');
        file.write_all(text.as_bytes())?;
        file.persist(&self.path).map_err(|e| e.error)?;
        Ok(())
    }
}
