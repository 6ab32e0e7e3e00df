//! The dispatcher over all rows: leading text by its first bytes, floating text by one automaton.

use super::Note;
use super::matcher::Compiled;
use super::shape::{Scope, Shape};
use super::tables::TABLES;
use ahash::AHashMap;
use aho_corasick::AhoCorasick;
use std::sync::{LazyLock, OnceLock};

/// Room for shapes in the dispatcher's mark of what it has tried.
const MAX_SHAPES: usize = 4096;

/// All shapes, compiled.
pub struct Catalog {
    shapes: Vec<Compiled>,
    /// First three bytes of a message → shapes that start so.
    by_prefix: AHashMap<[u8; 3], Vec<u16>>,
    /// Anchors of the other shapes, for messages behind a header.
    nccl: Anchors,
    /// Anchors (leading text included) of the shapes that may stand in any record.
    any: Anchors,
}

/// Literals with their shapes. The automaton is made when the first message asks: it takes milliseconds, and many logs
/// need but one.
struct Anchors {
    list: Vec<(Vec<u8>, u16)>,
    automaton: OnceLock<AhoCorasick>,
}

impl Anchors {
    fn new(list: Vec<(Vec<u8>, u16)>) -> Self {
        Self { list, automaton: OnceLock::new() }
    }

    fn automaton(&self) -> &AhoCorasick {
        self.automaton.get_or_init(|| AhoCorasick::new(self.list.iter().map(|(anchor, _)| anchor)).expect("anchors are short literals"))
    }
}

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog::new(TABLES.iter().copied().flatten()));

/// The catalog of all built-in shapes.
pub fn catalog() -> &'static Catalog {
    &CATALOG
}

impl Catalog {
    /// Compiles `rows`.
    pub fn new(rows: impl Iterator<Item = &'static Shape>) -> Self {
        let shapes: Vec<Compiled> = rows.map(Compiled::new).collect();
        assert!(shapes.len() <= MAX_SHAPES, "raise MAX_SHAPES");
        let mut by_prefix: AHashMap<[u8; 3], Vec<u16>> = AHashMap::new();
        let (mut nccl, mut any) = (Vec::new(), Vec::new());
        for (i, compiled) in shapes.iter().enumerate() {
            let (leading, anchor) = compiled.anchor();
            assert!(!anchor.is_empty(), "no literal in {}", compiled.shape.format);
            if leading {
                by_prefix.entry([anchor[0], anchor[1], anchor[2]]).or_default().push(i as u16);
            } else {
                nccl.push((anchor.clone(), i as u16));
            }
            if compiled.shape.scope == Scope::Any {
                any.push((anchor, i as u16));
            }
        }
        Self { shapes, by_prefix, nccl: Anchors::new(nccl), any: Anchors::new(any) }
    }

    /// The most specific shape that matches `msg`.
    pub fn find<'a>(&self, msg: &'a [u8], scope: Scope) -> Option<Note<'a>> {
        let mut best: Option<(usize, Note<'a>)> = None;
        let mut consider = |index: u16| {
            let compiled = &self.shapes[index as usize];
            if best.as_ref().is_none_or(|(w, _)| compiled.weight > *w)
                && let Some(fields) = compiled.matches(msg)
            {
                best = Some((compiled.weight, Note { shape: compiled.shape, fields }));
            }
        };
        if scope == Scope::Nccl {
            if let Some(list) = msg.first_chunk::<3>().and_then(|k| self.by_prefix.get(k)) {
                list.iter().copied().for_each(&mut consider);
            }
            candidates(&self.nccl, msg, &mut consider);
        } else {
            candidates(&self.any, msg, &mut consider);
        }
        best.map(|(_, note)| note)
    }

    /// All rows in table order.
    pub fn shapes(&self) -> impl Iterator<Item = &'static Shape> + '_ {
        self.shapes.iter().map(|c| c.shape)
    }

    /// Whether a kind exists.
    pub fn knows(&self, kind: &str) -> bool {
        self.shapes.iter().any(|c| c.shape.kind == kind)
    }
}

/// Offers each shape whose anchor stands in `msg` once.
fn candidates(anchors: &Anchors, msg: &[u8], consider: &mut impl FnMut(u16)) {
    // A shape is tried once a message, however often its anchor occurs.
    let mut seen = [0u64; MAX_SHAPES / 64];
    for found in anchors.automaton().find_overlapping_iter(msg) {
        let index = anchors.list[found.pattern().as_usize()].1;
        let (word, bit) = (usize::from(index) / 64, 1 << (index % 64));
        if seen[word] & bit == 0 {
            seen[word] |= bit;
            consider(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn all_rows_compile_and_no_two_are_the_same() {
        let mut formats = BTreeSet::new();
        for shape in catalog().shapes() {
            assert!(shape.kind.contains('.'), "{}", shape.kind);
            assert!(formats.insert((shape.kind, shape.format, shape.since)), "twice: {}", shape.format);
            assert!(!shape.meaning.is_empty(), "no meaning: {}", shape.format);
        }
    }

    #[test]
    fn the_most_specific_row_wins() {
        let kind = |msg: &str| catalog().find(msg.as_bytes(), Scope::Nccl).map(|n| n.shape.kind);
        assert_eq!(kind("Call to ibv_modify_qp failed with error Connection timed out errno 110"), Some("ib.modify_qp"));
        assert_eq!(kind("Call to ibv_create_cq failed with error Cannot allocate memory errno 12"), Some("ib.create_cq"));
        assert_eq!(kind("Using network AWS Libfabric"), Some("net.using"));
        assert_eq!(kind("NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>"), Some("ib.using"));
        assert_eq!(kind("NET/IB : No device found."), Some("ib.no_device"));
        assert_eq!(kind("Channel 00/02 :    0   1"), Some("init.ring_order"));
        assert_eq!(kind("something else"), None);
    }
}
