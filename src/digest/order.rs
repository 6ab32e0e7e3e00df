//! The order in which a block's events are folded, and what a stretch of calls has in common.

use super::parsed::{Again, Call, Item, Parsed, Place};

/// An item, or one that is said again, in its turn.
pub(super) struct Said<'p, 'a> {
    pub item: &'p Item<'a>,
    pub place: Place<'a>,
    /// How often in a row.
    pub count: u32,
    /// The last time.
    pub last: (Place<'a>, &'p Item<'a>),
    /// The item itself was there before.
    pub again: bool,
}

/// Items and what is said again, in the order of their places.
pub(super) fn in_order<'p, 'a>(parsed: &'p Parsed<'a>) -> impl Iterator<Item = Said<'p, 'a>> {
    let (mut items, mut again) = (parsed.items.iter().peekable(), parsed.again.iter().peekable());
    let first = |item: &'p Item<'a>| Said { item, place: item.place, count: 1, last: (item.place, item), again: false };
    std::iter::from_fn(move || {
        let before = |a: &Again, i: &Item<'_>| (a.first.line, a.first.offset) < (i.place.line, i.place.offset);
        match (items.peek(), again.peek()) {
            (Some(item), Some(next)) if !before(next, item) => items.next().map(first),
            (_, Some(_)) => again.next().map(|next| {
                let (item, last) = (&parsed.items[next.item as usize], &parsed.items[next.last.1 as usize]);
                Said { item, place: parsed.place(next.first), count: next.count, last: (parsed.place(next.last.0), last), again: true }
            }),
            _ => items.next().map(first),
        }
    })
}

/// Notes the last record of a communicator. One that comes in turns with many others may be noted twice, in order.
pub(super) fn touch<'p, 'a>(late: &mut Vec<((usize, usize), Said<'p, 'a>)>, which: (usize, usize), said: Said<'p, 'a>) {
    match late.iter_mut().rev().take(4).find(|(known, _)| *known == which) {
        Some((_, last)) => *last = said,
        None => late.push((which, said)),
    }
}

/// ((source, address of the communicator), process, communicator)
pub(super) type Caller = ((u32, u64), usize, usize);

/// Callers that are told apart without a search: some ranks in one stream, a few communicators each.
const CALLERS: usize = 32;

/// Where the calls of a stretch went; other events may open or end communicators.
#[derive(Default)]
pub(super) struct Lately {
    places: [Option<Caller>; CALLERS],
    used: bool,
}

impl Lately {
    #[inline(always)]
    pub fn place(&mut self, call: &Call) -> &mut Option<Caller> {
        self.used = true;
        let mixed = (call.call.comm ^ u64::from(call.source) << 48).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &mut self.places[(mixed >> (u64::BITS - CALLERS.ilog2())) as usize]
    }

    pub fn forget(&mut self) {
        if std::mem::take(&mut self.used) {
            self.places = [None; CALLERS];
        }
    }
}
