//! Fits blocks of a report into a number of characters.

/// A part of the report.
#[derive(Debug, Clone)]
pub struct Block {
    /// What it is, for the list of what was cut.
    pub name: String,
    /// 0 is kept always; the higher, the earlier it is cut.
    pub weight: u32,
    /// Markdown, whole lines.
    pub text: String,
}

impl Block {
    /// A block.
    pub fn new(name: impl Into<String>, weight: u32, text: String) -> Self {
        Self { name: name.into(), weight, text }
    }
}

/// Names in the list of what was cut.
const MAX_NAMES: usize = 12;

/// Joins the blocks in at most `most` characters, as GitHub counts them (UTF-16 units, the strictest count).
pub fn fit(mut blocks: Vec<Block>, most: usize) -> String {
    let mut sizes: Vec<usize> = blocks.iter().map(|b| size(&b.text)).collect();
    let mut cut: Vec<String> = Vec::new();
    let room = most.saturating_sub(NOTICE);
    while sizes.iter().sum::<usize>() > room {
        // Of equal weight, the last one goes first.
        let Some(index) = (0..blocks.len()).filter(|i| blocks[*i].weight > 0).max_by_key(|i| (blocks[*i].weight, *i)) else { break };
        cut.push(blocks.remove(index).name);
        sizes.remove(index);
    }
    let mut out: String = blocks.into_iter().map(|b| b.text).collect();
    while size(&out) > room {
        let keep = out.len() - out.len() / 8 - 1;
        out.truncate((0..=keep).rev().find(|i| out.is_char_boundary(*i)).unwrap_or(0));
    }
    if !cut.is_empty() {
        out.push_str(&notice(&cut));
    }
    out
}

/// Room that the notice may take.
const NOTICE: usize = 1600;

fn notice(cut: &[String]) -> String {
    let names: Vec<String> = cut.iter().rev().take(MAX_NAMES).map(|n| super::super::view::shorten(n, 90)).collect();
    let more = cut.len().saturating_sub(MAX_NAMES);
    let tail = if more > 0 { format!(" and {more} more parts") } else { String::new() };
    format!("\n> **Cut to fit:** {}{tail}. The whole report: `--format html` or `--format json`.\n", names.join(", "))
}

fn size(text: &str) -> usize {
    text.encode_utf16().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_important_goes_first_and_is_named() {
        let block = |name: &str, weight, length| Block::new(name, weight, name.repeat(length));
        let blocks = || vec![block("a", 0, 1000), block("b", 9, 3000), block("c", 5, 3000), block("d", 5, 3000)];
        assert_eq!(fit(blocks(), 20_000).len(), 10_000);
        let some = fit(blocks(), 10_000);
        assert!(some.contains("accc") && some.contains("ddd") && !some.contains("bbb") && some.contains("**Cut to fit:** b."), "{some}");
        let few = fit(blocks(), 6_000);
        assert!(few.contains("accc") && !few.contains("ddd") && few.contains("**Cut to fit:** d, b."), "{few}");
        assert!(fit(vec![block("😀", 0, 9000)], 4000).encode_utf16().count() <= 4000);
    }
}
