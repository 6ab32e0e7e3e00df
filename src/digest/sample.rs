//! Evidence: records as they are kept.

use super::ledger::Evidence;
use super::parsed::{Item, Place};
use super::{MAX_TEXT, Mark, Sample};
use crate::event::Event;
use std::cell::OnceCell;
use std::sync::Arc;

/// Where a block stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Base {
    pub stream: u32,
    pub line: u64,
    pub offset: u64,
}

impl Base {
    pub fn mark(self, place: &Place<'_>) -> Mark {
        Mark { stream: self.stream, line: self.line + u64::from(place.line) + 1, offset: self.offset + u64::from(place.offset), time: place.time }
    }

    pub fn sample(self, place: &Place<'_>) -> Arc<Sample> {
        Arc::new(self.bare(place))
    }

    pub fn bare(self, place: &Place<'_>) -> Sample {
        Sample { at: self.mark(place), text: lossy(place.text, MAX_TEXT), fields: Vec::new(), tid: 0, level: None, file: String::new(), repeated: 0 }
    }
}

/// Text of at most `most` bytes, cut at a character.
pub(super) fn lossy(text: &[u8], most: usize) -> String {
    let mut out = String::new();
    push_lossy(&mut out, text, most);
    out
}

/// Appends [`lossy`] text.
pub(super) fn push_lossy(out: &mut String, text: &[u8], most: usize) {
    let cut = &text[..text.len().min(most)];
    match std::str::from_utf8(cut) {
        Ok(whole) => out.push_str(whole),
        Err(_) => out.push_str(&String::from_utf8_lossy(cut)),
    }
    if cut.len() < text.len() {
        // A character that the cut went through shows as one replacement; it was whole in the log.
        if out.ends_with('\u{fffd}') {
            out.pop();
        }
        out.push('…');
    }
}

/// An item's record on its way to become evidence. Its sample is made once, and only if something keeps it.
pub(super) struct Told<'p, 'a> {
    item: &'p Item<'a>,
    place: Place<'a>,
    tid: u32,
    base: Base,
    made: OnceCell<Arc<Sample>>,
}

impl<'p, 'a> Told<'p, 'a> {
    /// The item as it stands at `place`, told by thread `tid`.
    pub fn new(item: &'p Item<'a>, place: Place<'a>, tid: u32, base: Base) -> Self {
        Self { item, place, tid, base, made: OnceCell::new() }
    }

    /// The same at another place.
    pub fn at(&self, place: Place<'a>) -> Self {
        Self::new(self.item, place, self.tid, self.base)
    }
}

impl Evidence for Told<'_, '_> {
    fn mark(&self) -> Mark {
        self.base.mark(&self.place)
    }

    fn text(&self) -> &[u8] {
        self.place.text
    }

    fn sample(&self) -> Arc<Sample> {
        Arc::clone(self.made.get_or_init(|| Arc::new(sample(self.item, &self.place, self.tid, self.base))))
    }
}

/// An item as evidence, as it stands at `place`.
fn sample(item: &Item<'_>, place: &Place<'_>, tid: u32, base: Base) -> Sample {
    let mut sample = base.bare(place);
    sample.tid = tid;
    sample.level = item.level.map(Into::into);
    sample.file = lossy(item.file, 120);
    sample.repeated = item.wrap.repeated;
    if let Event::Note(note) = &item.event {
        sample.fields = note.fields.iter().map(|(name, value, _)| (name.into(), lossy(value, 160))).collect();
    }
    sample
}

/// A message with its numbers, addresses and pointers replaced, so that equal warnings group.
pub fn template(msg: &[u8]) -> String {
    let text = lossy(msg, 160);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        if word == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let (head, tail) = rest.split_at(word);
        rest = tail;
        let hex = head.strip_prefix("0x").unwrap_or(head);
        if head.bytes().any(|b| b.is_ascii_digit()) && hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            out.push('#');
            continue;
        }
        let mut in_number = false;
        for c in head.chars() {
            let digit = c.is_ascii_digit();
            if !digit {
                out.push(c);
            } else if !in_number {
                out.push('#');
            }
            in_number = digit;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::template;

    #[test]
    fn what_differs_between_ranks_is_replaced() {
        let of = |text: &str| template(text.as_bytes());
        assert_eq!(of("comm 0x55d0a0 busId 3b000 dev mlx5_1:1 rank 17"), "comm # busId # dev mlx#_#:# rank #");
        assert_eq!(of("comm 0x7fe1c8 busId 5e000 dev mlx5_0:1 rank 3"), "comm # busId # dev mlx#_#:# rank #");
        assert_eq!(of("größe 節點 3, dead beef"), "größe 節點 #, dead beef");
        assert_eq!(of(""), "");
    }
}
