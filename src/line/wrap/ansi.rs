//! Terminal control sequences, also those whose ESC byte was lost on the way.

use bumpalo::Bump;
use bumpalo::collections::Vec;

const ESC: u8 = 0x1b;

/// `text` without control sequences; a copy in `arena` if there are any.
pub fn clean<'a>(text: &'a [u8], arena: &'a Bump) -> &'a [u8] {
    let Some(first) = memchr::memchr(ESC, text) else { return text };
    let mut out = Vec::with_capacity_in(text.len(), arena);
    out.extend_from_slice(&text[..first]);
    let mut rest = &text[first..];
    while let Some((_, tail)) = rest.split_first() {
        rest = skip(tail);
        let next = memchr::memchr(ESC, rest).unwrap_or(rest.len());
        out.extend_from_slice(&rest[..next]);
        rest = &rest[next..];
    }
    out.into_bump_slice()
}

/// What follows the control sequence whose ESC was just taken.
fn skip(text: &[u8]) -> &[u8] {
    match text {
        [b'[', rest @ ..] => {
            let body = rest.iter().take_while(|b| (0x20..0x40).contains(*b)).count();
            rest.get(body + 1..).unwrap_or_default()
        }
        // A title or a link: up to BEL or ESC \.
        [b']', rest @ ..] => match memchr::memchr2(0x07, ESC, rest) {
            Some(end) => rest[end + 1..].strip_prefix(b"\\").unwrap_or(&rest[end + 1..]),
            None => b"",
        },
        [b'(' | b')', _, rest @ ..] | [0x30..=0x7e, rest @ ..] => rest,
        _ => text,
    }
}

/// `text` without `[0m`, `[1;36m` and their like; a copy in `arena` if there are any.
pub fn clean_lost<'a>(text: &'a [u8], arena: &'a Bump) -> &'a [u8] {
    let mut out: Option<Vec<'a, u8>> = None;
    let mut kept = 0;
    for at in memchr::memchr_iter(b'[', text) {
        if at < kept {
            continue;
        }
        if let Some(len) = colour(&text[at + 1..]) {
            let out = out.get_or_insert_with(|| Vec::with_capacity_in(text.len(), arena));
            out.extend_from_slice(&text[kept..at]);
            kept = at + 1 + len;
        }
    }
    match out {
        Some(mut out) => {
            out.extend_from_slice(&text[kept..]);
            out.into_bump_slice()
        }
        None => text,
    }
}

/// Length of the rest of a colour sequence: `0m`, `1;36m`, `38;5;208m`. Real codes only, so that `[30m]` and
/// `[5m30s]` stay.
fn colour(text: &[u8]) -> Option<usize> {
    let len = text.iter().take(14).take_while(|b| b.is_ascii_digit() || **b == b';').count();
    let (codes, rest) = text.split_at(len);
    let rest = rest.strip_prefix(b"m")?;
    let indexed = codes.starts_with(b"38;") || codes.starts_with(b"48;");
    let real = |code: &[u8]| match code {
        [d] | [b'0' | b'2' | b'3' | b'4' | b'9', d] => d.is_ascii_digit(),
        [b'1', b'0', b'0'..=b'7'] => true,
        _ => false,
    };
    let fine = !codes.is_empty()
        && (indexed || codes.split(|b| *b == b';').all(real))
        && !rest.first().is_some_and(|b| *b == b']' || *b == b'/' || b.is_ascii_digit() && !codes.contains(&b';'));
    fine.then_some(len + 1)
}
