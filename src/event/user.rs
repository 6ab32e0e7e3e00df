//! Patterns that a user adds to the built-in rows. They are looked for in every record beside those, so that they add
//! to what is known and never hide it.

use super::Note;
use super::matcher::{Compiled, FormatError};
use super::shape::{Shape, shape};
use aho_corasick::AhoCorasick;

/// Most patterns of a user.
pub const MAX_PATTERNS: usize = 256;

/// Fewest bytes of text that a pattern must hold: it is found by its longest stretch of text.
const MIN_ANCHOR: usize = 3;

/// One pattern.
///
/// Rows are borrowed for the whole run, so a pattern stays in memory until the process ends; a configuration is read
/// once.
#[derive(Debug)]
pub struct Pattern {
    compiled: Compiled,
}

impl Pattern {
    /// Compiles a format of the language that [`Shape`] describes. Other than there the text may stand anywhere in
    /// the message; a leading `^` ties it to the message's start.
    pub fn parse(kind: &str, format: &str) -> Result<Self, FormatError> {
        let bare = format.strip_prefix(['^', '*']).unwrap_or(format);
        let anchored = format.starts_with('^');
        let row = if anchored { bare.to_owned() } else { format!("*{bare}") };
        // The error's place counts in what the user wrote.
        let shift = |mut error: FormatError| {
            error.at = if anchored || format.starts_with('*') { error.at + usize::from(anchored) } else { error.at.saturating_sub(1) };
            error
        };
        let compiled = Compiled::try_new(leak(kind, &row)).map_err(shift)?;
        Self::checked(compiled)
    }

    /// Plain text without any sign of the format language, anywhere in the message.
    pub fn literal(kind: &str, text: &str) -> Result<Self, FormatError> {
        Self::checked(Compiled::literal(leak(kind, text)))
    }

    fn checked(compiled: Compiled) -> Result<Self, FormatError> {
        if compiled.anchor().1.len() < MIN_ANCHOR {
            return Err(FormatError { at: 0, what: format!("at least {MIN_ANCHOR} characters of text must stand together in it, or it would be looked for everywhere") });
        }
        Ok(Self { compiled })
    }

    /// The row's kind.
    pub fn kind(&self) -> &'static str {
        self.compiled.shape.kind
    }

    /// The row's format as it is matched.
    pub fn format(&self) -> &'static str {
        self.compiled.shape.format
    }

    /// Whether the message holds it.
    pub fn is_match(&self, msg: &[u8]) -> bool {
        self.compiled.matches(msg).is_some()
    }
}

fn leak(kind: &str, format: &str) -> &'static Shape {
    let own = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    Box::leak(Box::new(shape(own(kind), own(format), "", "", "", "A pattern of your own.").any()))
}

/// A user's patterns with the automaton that finds their texts in one pass over a message.
#[derive(Debug)]
pub struct UserPatterns {
    patterns: Vec<Pattern>,
    anchors: AhoCorasick,
}

impl UserPatterns {
    /// Joins up to [`MAX_PATTERNS`] patterns; `None` if there is none.
    pub fn new(mut patterns: Vec<Pattern>) -> Option<Self> {
        patterns.truncate(MAX_PATTERNS);
        if patterns.is_empty() {
            return None;
        }
        let anchors = AhoCorasick::new(patterns.iter().map(|p| p.compiled.anchor().1)).ok()?;
        Some(Self { patterns, anchors })
    }

    /// Calls `found` for every pattern that `msg` holds.
    pub fn each<'a>(&self, msg: &'a [u8], mut found: impl FnMut(Note<'a>)) {
        // A pattern is tried once a message, however often its text occurs.
        let mut seen = [0u64; MAX_PATTERNS / 64];
        for hit in self.anchors.find_overlapping_iter(msg) {
            let index = hit.pattern().as_usize();
            let (word, bit) = (index / 64, 1 << (index % 64));
            if seen[word] & bit != 0 {
                continue;
            }
            seen[word] |= bit;
            let compiled = &self.patterns[index].compiled;
            if let Some(fields) = compiled.matches(msg) {
                found(Note { shape: compiled.shape, fields });
            }
        }
    }

    /// Kinds and formats, for the record in a digest.
    pub fn set(&self) -> Vec<(String, String)> {
        self.patterns.iter().map(|p| (p.kind().to_owned(), p.format().to_owned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(format: &str, msg: &str) -> bool {
        Pattern::parse("user.x", format).unwrap().is_match(msg.as_bytes())
    }

    #[test]
    fn text_stands_anywhere_unless_tied() {
        assert!(finds("lost carrier", "eth0 has lost  carrier"));
        assert!(finds("*lost carrier", "eth0 has lost carrier"));
        assert!(!finds("^lost carrier", "eth0 has lost carrier"));
        assert!(finds("^lost carrier$", "lost carrier "));
        assert!(finds("retry {n:d} of {max:d}", "a retry 3 of 7") && !finds("retry {n:d} of {max:d}", "a retry x of 7"));
    }

    #[test]
    fn a_literal_has_no_signs() {
        let pattern = Pattern::literal("user.x", "ring~{0}$ done").unwrap();
        assert!(pattern.is_match(b"the ring~{0}$ done") && !pattern.is_match(b"the ring 0 done"));
    }

    #[test]
    fn mistakes_name_their_place() {
        let error = |format: &str| Pattern::parse("user.x", format).map(|_| ()).unwrap_err();
        assert_eq!(error("lost {n:d").at, 5);
        assert_eq!(error("^lost {n:q}").at, 6);
        assert_eq!(error("*lost {n:q}").at, 6);
        assert!(error("lost {n:q}").what.contains("unknown kind `q`"));
        assert!(error("{a} {b}").what.contains("at least 3 characters"));
        assert!(error(&"{a}x".repeat(13)).what.contains("more than 12 fields"));
    }

    #[test]
    fn every_pattern_of_a_set_is_found_once() {
        let list = ["lost carrier", "carrier on {!dev:w}", "^never here"].iter().enumerate();
        let patterns = list.map(|(i, f)| Pattern::parse(&format!("user.{i}"), f).unwrap()).collect();
        let set = UserPatterns::new(patterns).unwrap();
        let mut found = Vec::new();
        set.each(b"lost carrier on eth0, lost carrier on eth1", |note| found.push((note.shape.kind, note.fields.get("dev").map(<[u8]>::to_vec))));
        assert_eq!(found, [("user.0", None), ("user.1", Some(b"eth0,".to_vec()))]);
        assert!(UserPatterns::new(Vec::new()).is_none());
    }
}
