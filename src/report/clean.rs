//! Makes text of the input harmless. A log may hold anything, and a terminal obeys escape sequences, so every text
//! writer sends what it quotes through [`clean`].

use std::borrow::Cow;
use std::fmt::Write;
use unicode_width::UnicodeWidthChar;

/// `text` with every character that a terminal would obey, hide or use to reorder others shown as an escape: `\x1b`,
/// `\u{202e}`. A tab becomes a blank. What is left takes at least one column a character and stays on its line.
pub fn clean(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(|c: char| !is_plain(c)) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if is_plain(c) {
            out.push(c);
        } else if c == '\t' {
            out.push(' ');
        } else {
            let code = u32::from(c);
            let _ = if code < 0x100 { write!(out, "\\x{code:02x}") } else { write!(out, "\\u{{{code:x}}}") };
        }
    }
    Cow::Owned(out)
}

/// `text` without the sequences that only set colours and weight (`\x1b[1;36m`). Ray puts them on each line; in a quoted
/// line they say nothing. Names keep them, visibly, by [`clean`].
pub fn uncoloured(text: &str) -> Cow<'_, str> {
    if !text.contains("\x1b[") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        out.push_str(&rest[..at]);
        let numbers = &rest[at + 2..];
        if let Some(behind) = numbers.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';' || c == ':').strip_prefix('m') {
            rest = behind;
        } else {
            out.push_str("\x1b[");
            rest = numbers;
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Whether a character shows as itself and does nothing else. Control characters have no width, and invisible ones
/// (bidi overrides, joiners, fillers, tags, marks that stack) have width 0.
pub(super) fn is_plain(c: char) -> bool {
    // These format characters have a width by the tables, but terminals break the line at them or hide them.
    let odd = matches!(c, '\u{ad}' | '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}');
    !odd && c.width().is_some_and(|w| w > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shows_what_a_terminal_would_obey() {
        assert_eq!(clean("\x1b[31mred\x07\ta\u{9b}0m"), "\\x1b[31mred\\x07 a\\x9b0m");
        assert_eq!(clean("abc\u{202e}gol\u{200b}"), "abc\\u{202e}gol\\u{200b}");
        assert_eq!(clean("a\r\nb\u{2028}c\u{feff}\u{e0041}"), "a\\x0d\\x0ab\\u{2028}c\\u{feff}\\u{e0041}");
    }

    #[test]
    fn colours_of_a_quoted_line_go_and_nothing_else() {
        assert_eq!(uncoloured("\x1b[36m(pid=1)\x1b[0m \x1b[1;31mred\x1b[m \x1b[38:5:9mx"), "(pid=1) red x");
        assert_eq!(uncoloured("\x1b[2J \x1b[3 1m [0m \x1b[31"), "\x1b[2J \x1b[3 1m [0m \x1b[31");
    }

    #[test]
    fn leaves_plain_text_alone() {
        for text in ["NCCL WARN NET/IB : Got completion", "größe 節点 ✓ �", ""] {
            assert!(matches!(clean(text), Cow::Borrowed(_)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_active_is_left(text in "\\PC*|.*", raw in proptest::collection::vec(any::<char>(), 0..64)) {
            for input in [text, raw.into_iter().collect()] {
                let shown = clean(&input).into_owned();
                prop_assert!(shown.chars().all(|c| !c.is_control() && c.width().unwrap_or(0) > 0), "{shown:?}");
                let reorders = |c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{ad}');
                prop_assert_eq!(shown.chars().find(|c| reorders(*c)), None);
                prop_assert_eq!(clean(&shown), shown.as_str());
            }
        }
    }
}
