//! One followed name: its fold, and where in it the next line stands.

use crate::digest::{Folder, Parsed, Process, StreamInfo, map_with};
use crate::event::UserPatterns;
use crate::input::Span;
use crate::rules::User;
use bumpalo::Bump;
use std::sync::Arc;

/// Sees every block before it is folded: name of the stream, text, its events, and where it stands.
pub type Observer = Arc<dyn Fn(&Observed<'_>) + Send + Sync>;

/// What goes along with the fold.
#[derive(Clone, Default)]
pub struct Extra {
    /// Sees every block.
    pub observer: Option<Observer>,
    /// Holds the user's own patterns.
    pub user: Option<Arc<User>>,
}

impl Extra {
    fn patterns(&self) -> Option<&UserPatterns> {
        self.user.as_ref()?.patterns.as_ref()
    }

    /// The names of the user's patterns, for the digest.
    pub fn set(&self) -> Vec<(String, String)> {
        self.patterns().map(UserPatterns::set).unwrap_or_default()
    }
}

/// A block on its way into the fold.
pub struct Observed<'a> {
    /// Number of the stream.
    pub stream: u32,
    /// Its name.
    pub name: &'a str,
    /// The block.
    pub text: &'a [u8],
    /// Its events.
    pub parsed: &'a Parsed<'a>,
    /// Where it stands.
    pub span: Span,
}

/// The fold of everything that was written under one name.
pub struct Stream {
    id: u32,
    extra: Extra,
    folder: Folder,
    offset: u64,
    /// The next line begins behind a line end that no block holds.
    closes: bool,
    /// What the report says of the way the stream was read; replaces nothing that was found.
    pub remark: Option<String>,
}

impl Stream {
    /// An empty stream with number `id`.
    pub fn new(id: u32, name: String) -> Self {
        Self { id, extra: Extra::default(), folder: Folder::new(id, name), offset: 0, closes: false, remark: None }
    }

    /// Takes what goes along.
    pub fn with(mut self, extra: Extra) -> Self {
        self.extra = extra;
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.folder.info.path
    }

    /// Bytes folded or skipped so far.
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    /// Lines that were recognised as events.
    pub fn events(&self) -> u64 {
        self.folder.info.events
    }

    /// Folds whole lines; the last one may lack its end.
    pub fn fold(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        let span = self.span(text);
        let arena = Bump::new();
        let parsed = map_with(text, &arena, self.extra.patterns(), None);
        if let Some(observer) = &self.extra.observer {
            observer(&Observed { stream: self.id, name: &self.folder.info.path, text, parsed: &parsed, span });
        }
        self.folder.fold(&parsed, span);
        self.offset += span.bytes;
        self.closes = false;
    }

    /// Counts bytes that nobody looks at.
    pub fn skip(&mut self, bytes: usize) {
        self.offset += bytes as u64;
    }

    /// The line that was folded without its end has ended.
    pub fn close_line(&mut self) {
        self.closes = true;
    }

    /// Marks what went wrong while reading.
    pub fn fail(&mut self, problem: Option<String>) {
        self.folder.info.problem = problem;
    }

    /// What went wrong while reading, if it has not been mended since.
    pub fn problem(&self) -> Option<&str> {
        self.folder.info.problem.as_deref()
    }

    /// What a digest says of the stream now, with unfinished lines taken as they stand.
    pub fn snapshot(&self, unfinished: &[&[u8]]) -> (StreamInfo, Vec<Process>) {
        let mut folder = self.folder.clone();
        let mut offset = self.offset;
        let mut closes = self.closes;
        for text in unfinished.iter().filter(|t| !t.is_empty()) {
            let arena = Bump::new();
            let span = Span { offset, closes_open_line: closes, ..self.span(text) };
            folder.fold(&map_with(text, &arena, self.extra.patterns(), None), span);
            offset += span.bytes;
            closes = true;
        }
        folder.finish(offset)
    }

    fn span(&self, text: &[u8]) -> Span {
        Span { offset: self.offset, bytes: text.len() as u64, open_end: text.last().is_some_and(|b| *b != b'\n'), closes_open_line: self.closes }
    }
}
