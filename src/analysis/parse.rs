//! The parallel half: workers read and parse blocks.

use super::Progress;
use crate::digest::{Memory, Parsed, map_with};
use crate::event::UserPatterns;
use crate::input::{self, Block, Span};
use bumpalo::Bump;
use rayon::prelude::*;
use std::io;
use std::sync::{Mutex, PoisonError};

/// A buffer with the arena of its records.
#[derive(Default)]
pub(super) struct Slot {
    pub buffer: Vec<u8>,
    pub arena: Bump,
    pub task: Option<Task>,
}

/// What is to be done with a slot.
pub(super) enum Task {
    /// To be read by the worker.
    Read { stream: usize, block: Block },
    /// Already in the buffer.
    Ready { stream: usize, span: Span },
}

/// A parsed block and its place.
pub(super) struct Done<'a> {
    pub stream: usize,
    pub span: Span,
    pub parsed: Parsed<'a>,
    pub error: Option<io::Error>,
}

/// What the workers share.
pub(super) struct Parser<'p> {
    progress: &'p dyn Progress,
    patterns: Option<&'p UserPatterns>,
    /// One for each worker that has been busy.
    memories: Mutex<Vec<Memory>>,
}

impl<'p> Parser<'p> {
    pub fn new(progress: &'p dyn Progress, patterns: Option<&'p UserPatterns>) -> Self {
        Self { progress, patterns, memories: Mutex::new(Vec::new()) }
    }

    /// Where progress is told.
    pub fn progress(&self) -> &'p dyn Progress {
        self.progress
    }

    /// The user's patterns that are looked for.
    pub fn patterns(&self) -> Option<&'p UserPatterns> {
        self.patterns
    }

    /// Reads and parses the slots that have a task, in parallel; the result is in their order.
    pub fn parse<'a>(&self, slots: &'a mut [Slot]) -> Vec<Done<'a>> {
        slots.par_iter_mut().filter_map(|slot| self.slot(slot)).collect()
    }

    fn slot<'a>(&self, slot: &'a mut Slot) -> Option<Done<'a>> {
        let (stream, range, span, error) = match slot.task.take()? {
            Task::Read { stream, block } => match input::read_block(&block, &mut slot.buffer) {
                Ok((range, span)) => (stream, range, span, None),
                Err(error) => (stream, 0..0, Span { offset: block.start(), bytes: 0, open_end: false, closes_open_line: false }, Some(error)),
            },
            Task::Ready { stream, span } => (stream, 0..slot.buffer.len(), span, None),
        };
        self.progress.advance(span.bytes);
        let mut memory = self.memories.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let parsed = map_with(&slot.buffer[range], &slot.arena, self.patterns, Some(&mut memory));
        self.memories.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
        Some(Done { stream, span, parsed, error })
    }
}
