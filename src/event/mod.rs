//! Events: what a record's message means.
//!
//! Most messages are rows of data: a [`Shape`] is a format with named fields, the versions that print it, its source
//! and its meaning, and becomes a [`Note`]. The few messages that carry identity or come by the million (versions,
//! settings, communicator life cycle, channels, collectives) have typed parsers. All values are borrowed slices.

mod catalog;
mod channel;
mod collective;
mod init;
mod matcher;
mod setting;
mod shape;
mod user;
mod version;

pub mod tables;

pub use catalog::{Catalog, catalog};
pub use channel::{Channel, Direction, Via};
pub use collective::{Collective, Function, Tails, op_count, parse_collective, quick_collective};
pub use init::{Init, Phase};
pub use matcher::FormatError;
pub use setting::Setting;
pub use shape::{FieldName, Fields, Scope, Shape, Spans, Stage, shape};
pub use user::{MAX_PATTERNS, Pattern, UserPatterns};
pub use version::{Library, Version};

use crate::line::{Level, Record};

/// What one record says.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The library's own version line.
    Version(Version<'a>),
    /// A variable or parameter with the value in force.
    Setting(Setting<'a>),
    /// Life cycle of a communicator: Init START, Init COMPLETE, layout, destroy, abort.
    Init(Init<'a>),
    /// A channel line: the transport of one connection between two ranks.
    Channel(Channel<'a>),
    /// A collective or point-to-point call as enqueued.
    Collective(Collective),
    /// Any message described by a row of data.
    Note(Note<'a>),
    /// A warning that no row describes.
    UnknownWarn,
}

impl Event<'_> {
    /// The name of what it says, such as `ib.completion`. A name never changes its meaning; `docs/formats.md` lists them.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Version(_) => "version",
            Self::Setting(_) => "setting",
            Self::Init(init) => match init.phase {
                Phase::Start => "init.start",
                Phase::Named => "init.named",
                Phase::Complete => "init.complete",
                Phase::Layout => "init.layout",
                Phase::Destroy => "init.destroy",
                Phase::Abort => "init.abort",
            },
            Self::Channel(_) => "channel",
            Self::Collective(_) => "collective",
            Self::Note(note) => note.shape.kind,
            Self::UnknownWarn => "warn.unknown",
        }
    }
}

/// A message that matched a [`Shape`].
#[derive(Debug, Clone, Copy)]
pub struct Note<'a> {
    /// The row.
    pub shape: &'static Shape,
    /// Its fields.
    pub fields: Fields<'a>,
}

impl Note<'_> {
    /// Whether both are counted as one fact: the same row with the same key fields.
    pub fn same_fact(&self, other: &Self) -> bool {
        std::ptr::eq(self.shape, other.shape) && self.fields.iter().zip(other.fields.iter()).all(|(a, b)| !a.2 || a.1 == b.1)
    }
}

/// Reads the event of a record; `None` if nothing recognises it.
pub fn parse<'a>(record: &Record<'a>) -> Option<Event<'a>> {
    let msg = record.msg;
    if let Some(header) = &record.header {
        if let Some(call) = parse_collective(msg) {
            return Some(Event::Collective(call));
        }
        if let Some(channel) = channel::parse(msg) {
            return Some(Event::Channel(channel));
        }
        if let Some(init) = init::parse(msg) {
            return Some(Event::Init(init));
        }
        if let Some(version) = version::parse(msg) {
            return Some(Event::Version(version));
        }
        if let Some(setting) = setting::parse(msg) {
            return Some(Event::Setting(setting));
        }
        return catalog().find(msg, Scope::Nccl).map(Event::Note).or_else(|| (matches!(header.level, Level::Warn | Level::Error)).then_some(Event::UnknownWarn));
    }
    if let Some(version) = version::parse(msg) {
        return Some(Event::Version(version));
    }
    // Pastes lose their headers; a channel line cannot be mistaken for anything else.
    if let Some(channel) = channel::parse(msg) {
        return Some(Event::Channel(channel));
    }
    setting::parse_export(msg).map(Event::Setting).or_else(|| catalog().find(msg, Scope::Any).map(Event::Note))
}
