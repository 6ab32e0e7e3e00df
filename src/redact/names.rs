//! Names that were met, to be found again wherever they stand.

use super::Class;
use ahash::AHashMap;

/// Known names.
#[derive(Debug, Clone, Default)]
pub struct Names {
    map: AHashMap<Vec<u8>, Class>,
    /// By first byte: which lengths exist. Most words are told apart by this alone.
    lengths: Vec<u64>,
    sorted: Vec<Vec<u8>>,
}

/// Shortest piece at a cut that is taken for one of a name.
const MIN_PIECE: usize = 3;

fn length_bit(len: usize) -> u64 {
    1 << len.min(63)
}

impl Names {
    /// Adds a name. The first class wins.
    pub fn add(&mut self, name: &[u8], class: Class) {
        let Some(first) = name.first() else { return };
        self.lengths.resize(256, 0);
        self.lengths[usize::from(*first)] |= length_bit(name.len());
        if !self.map.contains_key(name) {
            self.map.insert(name.to_vec(), class);
            self.sorted.push(name.to_vec());
        }
    }

    /// To be called after the last name.
    pub fn settle(&mut self) {
        self.sorted.sort();
    }

    /// The class of a name.
    pub fn get(&self, word: &[u8]) -> Option<Class> {
        let lengths = self.lengths.get(usize::from(*word.first()?))?;
        if lengths & length_bit(word.len()) == 0 {
            return None;
        }
        self.map.get(word).copied()
    }

    /// Is it a name?
    pub fn has(&self, word: &[u8]) -> bool {
        self.get(word).is_some()
    }

    /// Is it the beginning of a name?
    pub fn begins(&self, piece: &[u8]) -> bool {
        let at = self.sorted.partition_point(|n| n.as_slice() < piece);
        piece.len() >= MIN_PIECE && self.sorted.get(at).is_some_and(|n| n.starts_with(piece))
    }
}
