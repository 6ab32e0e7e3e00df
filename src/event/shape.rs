//! Shapes: message formats as rows of data.

use serde::{Deserialize, Serialize};

/// Most fields a format may have.
pub const MAX_FIELDS: usize = 12;

/// Where a shape is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Only behind an NCCL header.
    Nccl,
    /// In any record (framework, kernel and runtime lines; NCCL texts that others quote).
    Any,
}

/// How far a rank's initialisation has come; the order is the ladder. A log shows a lower bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The library spoke at all.
    Loaded,
    /// `Bootstrap : Using`: the out-of-band interface is chosen.
    BootstrapInterface,
    /// The net plugin is chosen.
    NetPlugin,
    /// Net devices are listed.
    NetDevices,
    /// `Using network X`.
    Network,
    /// `Init START`.
    InitStart,
    /// All ranks met in the bootstrap ring.
    Bootstrapped,
    /// Peers and topology are known.
    Topology,
    /// Graphs are searched.
    Graph,
    /// Channels and trees are agreed.
    Layout,
    /// Proxy threads are up.
    Proxy,
    /// Channels are connecting.
    Connecting,
    /// `Connected all rings` or trees.
    Connected,
    /// Thresholds and channel counts are set.
    Tuned,
    /// `Init COMPLETE`.
    InitComplete,
    /// A collective was enqueued.
    Collective,
}

impl Stage {
    /// All stages, in the order of the ladder: `ALL[s as usize]` is `s`.
    pub const ALL: [Self; 16] = [
        Self::Loaded,
        Self::BootstrapInterface,
        Self::NetPlugin,
        Self::NetDevices,
        Self::Network,
        Self::InitStart,
        Self::Bootstrapped,
        Self::Topology,
        Self::Graph,
        Self::Layout,
        Self::Proxy,
        Self::Connecting,
        Self::Connected,
        Self::Tuned,
        Self::InitComplete,
        Self::Collective,
    ];
}

/// One message format.
///
/// The format language: text stands for itself; one blank matches one or more; `~` matches any number of blanks;
/// `{name}` takes everything up to the next text (or the end); `{name:d}` a decimal number with sign, `{name:x}` a hex
/// number with or without `0x`, `{name:w}` a word without blanks, `{name:f}` a decimal fraction, `{name:i}` a whole
/// identifier (letters, digits, `_`, `.`) of which the text behind the field is the end; `{!name…}` marks a field that
/// tells entries apart in a process's ledger; `{}` takes and forgets. A leading `*` lets the text stand anywhere in
/// the message; without it the format is anchored at the message's start. Its end is open unless `$` ends it.
///
/// A shape is found by its longest stretch of text, in which blanks are single ones: where a line may hold several, write `~`.
#[derive(Debug)]
pub struct Shape {
    /// What it is, `subsystem.word`; rules ask for kinds. Several shapes may share one.
    pub kind: &'static str,
    /// The format.
    pub format: &'static str,
    /// First library version that prints it; empty if unknown or not a library line.
    pub since: &'static str,
    /// Last version that prints it; empty if it still does.
    pub until: &'static str,
    /// Source file in the library or framework.
    pub source: &'static str,
    /// What it means, for people: one or two plain sentences.
    pub meaning: &'static str,
    /// Where it is looked for.
    pub scope: Scope,
    /// The stage that it proves.
    pub stage: Option<Stage>,
}

/// A row: kind, format, since, until, source, meaning.
pub const fn shape(kind: &'static str, format: &'static str, since: &'static str, until: &'static str, source: &'static str, meaning: &'static str) -> Shape {
    Shape { kind, format, since, until, source, meaning, scope: Scope::Nccl, stage: None }
}

impl Shape {
    /// The shape is also looked for in records without an NCCL header.
    pub const fn any(mut self) -> Self {
        self.scope = Scope::Any;
        self
    }

    /// The message proves that its rank reached `stage`.
    pub const fn at(mut self, stage: Stage) -> Self {
        self.stage = Some(stage);
        self
    }
}

/// Field values of one match, in the order of the format.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    names: &'static [FieldName],
    msg: &'a [u8],
    spans: Spans,
}

/// Where the fields of a match stand in its message, one (start, end) a name: an equal message has them in the same
/// places.
pub type Spans = [(u16, u16); MAX_FIELDS];

/// Name of a field and whether it tells ledger entries apart.
#[derive(Debug, Clone, Copy)]
pub struct FieldName {
    /// Name in the format.
    pub name: &'static str,
    /// Marked with `!`.
    pub key: bool,
}

impl<'a> Fields<'a> {
    /// The fields of `msg` whose values are these pieces of it. What lies behind its first 65,535 bytes is empty.
    pub(super) fn new(names: &'static [FieldName], msg: &'a [u8], values: &[&'a [u8]; MAX_FIELDS]) -> Self {
        let mut spans = [(0, 0); MAX_FIELDS];
        for (span, value) in spans.iter_mut().zip(values).filter(|(_, value)| !value.is_empty()) {
            let start = (value.as_ptr() as usize).saturating_sub(msg.as_ptr() as usize);
            if let (Ok(start), Ok(end)) = (u16::try_from(start), u16::try_from(start + value.len())) {
                *span = (start, end);
            }
        }
        Self { names, msg, spans }
    }

    /// The fields of a message that is equal to this one's.
    pub fn of(names: &'static [FieldName], spans: Spans, msg: &'a [u8]) -> Self {
        Self { names, msg, spans }
    }

    /// Their names, and where they stand.
    pub fn places(&self) -> (&'static [FieldName], Spans) {
        (self.names, self.spans)
    }

    fn value(&self, (start, end): (u16, u16)) -> &'a [u8] {
        self.msg.get(usize::from(start)..usize::from(end)).unwrap_or_default()
    }

    /// The raw value of a field.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.names.iter().position(|f| f.name == name).map(|i| self.value(self.spans[i]))
    }

    /// All fields in order: name, value, key mark.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'a [u8], bool)> + '_ {
        self.names.iter().zip(self.spans).map(|(f, span)| (f.name, self.value(span), f.key))
    }
}

#[cfg(test)]
mod tests {
    use super::Stage;

    #[test]
    fn the_list_of_stages_is_in_the_order_of_the_ladder() {
        assert!(Stage::ALL.iter().enumerate().all(|(i, stage)| *stage as usize == i));
        assert!(Stage::ALL.is_sorted());
    }
}
