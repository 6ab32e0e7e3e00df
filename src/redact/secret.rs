//! Secrets: tokens that show by their form, and values of fields that hold one.

use super::scan::{Class, Line, Sink};

/// Starts of tokens, and how many bytes a token has at least.
const TOKENS: [(&[u8], usize); 24] = [
    (b"hf_", 12),
    (b"api_org_", 16),
    (b"nvapi-", 12),
    (b"sk-", 16),
    (b"sk_live_", 12),
    (b"AKIA", 16),
    (b"ASIA", 16),
    (b"ghp_", 12),
    (b"gho_", 12),
    (b"ghs_", 12),
    (b"ghu_", 12),
    (b"ghr_", 12),
    (b"github_pat_", 16),
    (b"glpat-", 12),
    (b"xoxb-", 12),
    (b"xoxp-", 12),
    (b"xoxa-", 12),
    (b"xoxs-", 12),
    (b"xapp-", 12),
    (b"AIza", 30),
    (b"dckr_pat_", 12),
    (b"pypi-", 20),
    (b"r8_", 20),
    (b"eyJ", 20),
];

/// The start of the token that `text` is.
pub fn prefix(text: &[u8]) -> Option<&'static [u8]> {
    let known = TOKENS.iter().find(|(start, least)| text.starts_with(start) && text.len() >= *least)?;
    // `sk-learn-contrib-xyz` is a word; a token has digits.
    text.iter().any(u8::is_ascii_digit).then_some(known.0)
}

/// A mark that an earlier redaction left.
pub fn is_redacted(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"redacted").is_some() || memchr::memmem::find(text, b"REDACTED").is_some()
}

/// A token at `s..e`, or behind `Bearer`; returns its end.
pub fn token<S: Sink>(line: &mut Line<'_, S>, s: usize, e: usize) -> Option<usize> {
    let chunk = &line.b[s..e];
    if matches!(chunk.len(), 5 | 6) && (chunk.eq_ignore_ascii_case(b"bearer") || chunk.eq_ignore_ascii_case(b"basic")) && line.at(e) == b' ' {
        let len = line.from(e + 1).iter().take_while(|b| is_token(**b)).count();
        let text = &line.b[e + 1..e + 1 + len];
        if len >= 8 && !is_redacted(text) && (text.iter().any(u8::is_ascii_digit) || text.ends_with(b"=")) {
            line.take(e + 1..e + 1 + len, Class::Secret);
            return Some(e + 1 + len);
        }
        return None;
    }
    let at_cut = line.cut && e == line.b.len() || line.from(e) == "…".as_bytes();
    let start = TOKENS.iter().any(|(start, _)| chunk.starts_with(start));
    if (start && at_cut || prefix(chunk).is_some()) && !is_redacted(chunk) {
        // Dashes and dots at the end belong to it, as do base64's last marks.
        let len = line.from(e).iter().take_while(|b| is_token(**b)).count();
        line.take(s..e + len, Class::Secret);
        return Some(e + len);
    }
    blob(line, s, e)
}

/// How much of a run is looked at before it is known to be base64.
const LOOK: usize = 96;

/// A long run of base64 in which all kinds of characters occur: part of a key.
fn blob<S: Sink>(line: &mut Line<'_, S>, s: usize, e: usize) -> Option<usize> {
    let base64 = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    if e - s < 12 && !matches!(line.at(e), b'+' | b'/') {
        return None;
    }
    let len = line.from(s).iter().take(LOOK).take_while(|b| base64(**b)).count();
    let text = &line.b[s..s + len];
    let mixed = text.iter().any(u8::is_ascii_lowercase) && text.iter().any(u8::is_ascii_uppercase) && text.iter().filter(|b| b.is_ascii_digit()).count() >= 3;
    if len < 60 || !mixed || memchr::memchr_iter(b'/', text).count() * 8 > len {
        return None;
    }
    let len = line.from(s).iter().take_while(|b| base64(**b)).count();
    let end = s + len + line.from(s + len).iter().take_while(|b| **b == b'=').count();
    line.take(s..end, Class::Secret);
    Some(end)
}

fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'+' | b'/' | b'=' | b'~')
}

/// May it be the value of a field that holds a secret? `sure`: the field holds nothing else.
pub fn value(text: &[u8], sure: bool) -> bool {
    let word = text.to_ascii_lowercase();
    let nothing = matches!(&word[..], b"" | b"true" | b"false" | b"none" | b"null" | b"set" | b"unset" | b"yes" | b"no" | b"is" | b"was" | b"not");
    let number = text.iter().all(u8::is_ascii_digit);
    if nothing || is_redacted(text) || matches!(text.first(), Some(b'*' | b'$' | b'<' | b'{' | b'[')) {
        return false;
    }
    let pointer = text.starts_with(b"0x") && text.len() <= 18;
    if sure { text.len() >= 3 && !pointer && !(number && text.len() < 6) } else { text.len() >= 12 && !pointer && !number && text.iter().any(u8::is_ascii_digit) }
}

/// `Authorization: Bearer X` as a field: the secret is what stands behind the scheme.
pub fn behind_scheme(text: &[u8], from: usize, end: usize) -> usize {
    let scheme = text[from..end].eq_ignore_ascii_case(b"bearer") || text[from..end].eq_ignore_ascii_case(b"basic");
    if !scheme {
        return end;
    }
    let rest = text[end..].iter().skip(1).take_while(|b| is_token(**b)).count();
    (end + 1 + rest).min(text.len())
}
