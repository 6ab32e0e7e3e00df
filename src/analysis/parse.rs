//! The parallel half: workers read, parse and fold blocks, each stream in its order.

use super::Progress;
use crate::digest::{Folder, Memory, map_with};
use crate::event::UserPatterns;
use crate::input::{self, Block, Span};
use bumpalo::Bump;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A stream that several workers fold in turns.
pub(super) struct Stream {
    fold: Mutex<Fold>,
    moved: Condvar,
}

struct Fold {
    folder: Folder,
    /// The block whose turn it is.
    turn: u64,
}

impl Stream {
    pub fn new(folder: Folder) -> Self {
        Self { fold: Mutex::new(Fold { folder, turn: 0 }), moved: Condvar::new() }
    }

    /// Looks at what was folded so far.
    pub fn with<T>(&self, look: impl FnOnce(&mut Folder) -> T) -> T {
        look(&mut self.fold.lock().unwrap_or_else(PoisonError::into_inner).folder)
    }

    pub fn into_folder(self) -> Folder {
        self.fold.into_inner().unwrap_or_else(PoisonError::into_inner).folder
    }

    /// Waits until a block's turn. Earlier blocks are with other workers, which wait for no later one.
    fn wait(&self, turn: u64) -> MutexGuard<'_, Fold> {
        let fold = self.fold.lock().unwrap_or_else(PoisonError::into_inner);
        self.moved.wait_while(fold, |fold| fold.turn != turn).unwrap_or_else(PoisonError::into_inner)
    }
}

/// A block that is to be folded.
pub(super) struct Task {
    pub stream: Arc<Stream>,
    pub turn: u64,
    pub text: Text,
}

/// Where a block's text is.
pub(super) enum Text {
    /// To be read by the worker.
    Read(Block),
    /// Already in the buffer.
    Ready(Span),
}

/// Passes the turn on, also where the block's worker panics: the others would wait for it for ever.
struct Turn<'a>(&'a Stream, u64);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.wait(self.1).turn += 1;
        self.0.moved.notify_all();
    }
}

/// What the workers share.
pub(super) struct Parser<'p> {
    pub progress: &'p dyn Progress,
    pub patterns: Option<&'p UserPatterns>,
}

impl Parser<'_> {
    /// Folds blocks until there is none left. `next` gives the next one; it may put its text into the buffer.
    pub fn work(&self, next: impl Fn(&mut Vec<u8>) -> Option<Task>) {
        let (mut buffer, mut arena, mut memory) = (Vec::new(), Bump::new(), Memory::default());
        while let Some(task) = next(&mut buffer) {
            arena.reset();
            let turn = Turn(&task.stream, task.turn);
            let (range, span, error) = match task.text {
                Text::Read(block) => match input::read_block(&block, &mut buffer) {
                    Ok((range, span)) => (range, span, None),
                    Err(error) => (0..0, Span { offset: block.start(), bytes: 0, open_end: false, closes_open_line: false }, Some(error)),
                },
                Text::Ready(span) => (0..buffer.len(), span, None),
            };
            self.progress.advance(span.bytes);
            let parsed = map_with(&buffer[range], &arena, self.patterns, Some(&mut memory));
            let mut fold = task.stream.wait(task.turn);
            fold.folder.fold(&parsed, span);
            if let Some(error) = error {
                fold.folder.info.problem = Some(format!("could not be read around byte {} ({error}); the rest was analysed", span.offset));
            }
            drop(fold);
            drop(turn);
        }
    }
}
