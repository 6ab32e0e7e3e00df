//! Line breaking and shortening by columns.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Marks that may not begin a line.
const CLOSES: [char; 12] = ['，', '。', '、', '；', '：', '？', '！', '）', '」', '”', '》', '…'];

/// Marks that may not end one.
const OPENS: [char; 4] = ['（', '「', '“', '《'];

/// Columns that `text` takes.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Breaks prose into lines of at most `width` columns. A span in backticks stays on one line, however long, so that
/// it can be copied; any other word that is too long is cut.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    wrap_after(0, text, width)
}

/// Like [`wrap`], for a first line of which `taken` columns are taken already.
pub fn wrap_after(taken: usize, text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut lines = vec![String::new()];
    let mut used = taken;
    for (word, apart) in words(text).iter().flat_map(|w| pieces(w)) {
        let size = columns(word);
        let gap = usize::from(apart && lines.last().is_some_and(|l| !l.is_empty()));
        if used + gap + size <= width {
            push(&mut lines, if gap == 1 { " " } else { "" });
            push(&mut lines, word);
            used += gap + size;
            continue;
        }
        if used > 0 {
            lines.push(String::new());
        }
        used = if size <= width || word.contains('`') {
            push(&mut lines, word);
            size
        } else {
            cut(&mut lines, word, width)
        };
    }
    lines
}

/// Where a line may be broken inside a word, and whether a blank stands before the piece. Scripts with wide characters
/// set no blanks: they break anywhere but before a mark that closes and behind one that opens.
fn pieces(word: &str) -> Vec<(&str, bool)> {
    let wide = |c: char| c.width() == Some(2);
    // A backtick without partner keeps its word whole.
    let whole = word.matches('`').count() % 2 == 1;
    let mut inside = false;
    let mut list = Vec::new();
    let mut start = 0;
    let mut before: Option<char> = None;
    for (at, c) in word.char_indices() {
        let breaks = before.is_some_and(|b| (wide(b) || wide(c)) && !OPENS.contains(&b)) && !CLOSES.contains(&c);
        if breaks && !whole && !inside {
            list.push((&word[start..at], start == 0));
            start = at;
        }
        inside ^= c == '`';
        before = Some(c);
    }
    list.push((&word[start..], start == 0));
    list
}

fn push(lines: &mut [String], text: &str) {
    if let Some(line) = lines.last_mut() {
        line.push_str(text);
    }
}

/// Spreads a word over lines; returns the columns used on the last one.
fn cut(lines: &mut Vec<String>, word: &str, width: usize) -> usize {
    let mut used = 0;
    for c in word.chars() {
        let size = c.width().unwrap_or(0);
        if used + size > width {
            lines.push(String::new());
            used = 0;
        }
        push(lines, c.encode_utf8(&mut [0; 4]));
        used += size;
    }
    used
}

/// Words, with the words of a span in backticks joined.
fn words(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    // A backtick without partner must not join the rest of the text.
    let mut ticks_left = text.matches('`').count();
    let mut open = false;
    for word in text.split_whitespace() {
        match out.last_mut() {
            Some(last) if open => {
                last.push(' ');
                last.push_str(word);
            }
            _ => out.push(word.to_owned()),
        }
        for _ in word.matches('`') {
            ticks_left -= 1;
            open = !open && ticks_left > 0;
        }
    }
    out
}

/// At most `width` columns of `text`, with an ellipsis if something is missing.
pub fn shorten(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used + 1 > width {
            break;
        }
        out.push(c);
    }
    out.truncate(out.trim_end().len());
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn breaks_at_blanks_and_by_columns() {
        assert_eq!(wrap("the quick brown fox", 10), ["the quick", "brown fox"]);
        assert_eq!(wrap("節点 節点 節点", 9), ["節点 節点", "節点"]);
        assert_eq!(wrap("", 10), [""]);
        assert_eq!(wrap("a 0123456789abc b", 10), ["a", "0123456789", "abc b"]);
    }

    #[test]
    fn wide_characters_break_anywhere_but_at_marks() {
        assert_eq!(wrap("节点之间走 TCP，而不是（RDMA）。", 10), ["节点之间走", "TCP，而不", "是", "（RDMA）。"]);
        assert_eq!(wrap("一二三四五六七。", 14), ["一二三四五六", "七。"]);
    }

    #[test]
    fn a_command_in_backticks_breaks_from_the_wide_characters_around_it() {
        assert_eq!(wrap("请在每个节点上执行 `ls /sys/class`，为空即可定论。", 20), ["请在每个节点上执行", "`ls /sys/class`，为", "空即可定论。"]);
    }

    #[test]
    fn a_command_in_backticks_stays_whole() {
        assert_eq!(wrap("run `ibv_devinfo -v -d mlx5_0` now", 12), ["run", "`ibv_devinfo -v -d mlx5_0`", "now"]);
        assert_eq!(wrap("it`s a lonely tick here", 10), ["it`s a", "lonely", "tick here"]);
    }

    #[test]
    fn shortens_by_columns() {
        assert_eq!(shorten("abcdef", 6), "abcdef");
        assert_eq!(shorten("abcdefg", 6), "abcde…");
        assert_eq!(shorten("節点節点", 6), "節点…");
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide(text in "[^`\\p{C}\\p{M}]{0,200}", width in 8usize..60) {
            for line in wrap(&text, width) {
                prop_assert!(columns(&line) <= width, "{line:?}");
            }
            prop_assert!(columns(&shorten(&text, width)) <= width);
        }
    }
}
