//! Makes text harmless in GitHub's Markdown: no markup, no mention of people or issues, no link.

use crate::report::clean;
use crate::report::view::shorten;
use std::fmt::Write;

/// Longest piece of prose, in characters.
const MAX_PROSE: usize = 3000;

/// Characters that GitHub's Markdown could take for markup.
const ACTIVE: &[char] = &['\\', '*', '_', '{', '}', '[', ']', '<', '>', '|', '~', '&', '$'];

/// Prose in which `` `words` `` stay code.
pub fn prose(text: &str) -> String {
    let text = shorten(&clean(text), MAX_PROSE);
    let pieces: Vec<&str> = text.split('`').collect();
    if pieces.len().is_multiple_of(2) {
        return plain(&text);
    }
    let piece = |(index, piece): (usize, &&str)| if index % 2 == 1 { code(piece) } else { plain(piece) };
    pieces.iter().enumerate().map(piece).collect()
}

/// Text without any markup.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for (index, c) in text.char_indices() {
        match c {
            '`' => out.push_str("\\`"),
            // Inside a word an underscore is no markup, and names of variables stay readable.
            '_' if in_word(text, index) => out.push('_'),
            c if ACTIVE.contains(&c) => {
                let _ = write!(out, "\\{c}");
            }
            // An empty comment between keeps GitHub from seeing a mention, an issue or a link.
            '@' => out.push_str("@<!-- -->"),
            '#' if index == 0 => out.push_str("\\#<!-- -->"),
            '#' => out.push_str("#<!-- -->"),
            ':' if text[index..].starts_with("://") => out.push_str("<!-- -->:"),
            '-' | '+' | '=' if index == 0 => {
                let _ = write!(out, "\\{c}");
            }
            '.' | ')' if starts_an_item(text, index) => {
                let _ = write!(out, "\\{c}");
            }
            '.' if text[..index].ends_with("www") => out.push_str("<!-- -->."),
            c => out.push(c),
        }
    }
    out
}

/// `1. ` would begin a list; a version does not.
fn starts_an_item(text: &str, index: usize) -> bool {
    let number = (1..10).contains(&index) && text[..index].bytes().all(|b| b.is_ascii_digit());
    number && text[index + 1..].chars().next().is_none_or(char::is_whitespace)
}

fn in_word(text: &str, index: usize) -> bool {
    let alphanumeric = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    alphanumeric(text[..index].chars().next_back()) && alphanumeric(text[index + 1..].chars().next())
}

/// Inline code. Ticks inside take a longer fence.
pub fn code(text: &str) -> String {
    let text = clean(text);
    let text = text.trim();
    if text.is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_ticks(text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Inline code in a table's cell.
pub fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// Lines as a block of code.
pub fn fenced(language: &str, lines: &[String]) -> String {
    let longest = lines.iter().map(|l| longest_ticks(l)).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let mut out = format!("{fence}{language}\n");
    for line in lines {
        out.push_str(&clean(line));
        out.push('\n');
    }
    out + &fence + "\n"
}

fn longest_ticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_log_becomes_markup() {
        assert_eq!(plain("<b>*x*_y_ [a](b) | ~z~"), "\\<b\\>\\*x\\*\\_y\\_ \\[a\\](b) \\| \\~z\\~");
        assert_eq!(plain("@team #12 http://x www.y"), "@<!-- -->team #<!-- -->12 http<!-- -->://x www<!-- -->.y");
        assert_eq!(plain("# a"), "\\#<!-- --> a");
        assert_eq!(plain("1. a"), "1\\. a");
        assert_eq!(plain("2.27.3"), "2.27.3");
        assert_eq!(prose("set `A_B=1` in a_b"), "set `A_B=1` in a_b");
        assert_eq!(prose("a lonely ` tick"), "a lonely \\` tick");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`a`"), "`` `a` ``");
        assert_eq!(cell("a|b"), "`a\\|b`");
        assert_eq!(fenced("text", &["```".into(), "x\x1b[0m".into()]), "````text\n```\nx\\x1b[0m\n````\n");
    }
}
