//! Small nom parsers that header, times and wrappers share. All work on bytes and never look behind their input.

use nom::bytes::complete::{take_while, take_while_m_n, take_while1};
use nom::{IResult, Parser};

/// Result of a parser on bytes.
pub type Scan<'a, T> = IResult<&'a [u8], T>;

/// The failure of any parser here; which one failed is of no use to anybody.
pub fn no<T>(text: &[u8]) -> Scan<'_, T> {
    Err(nom::Err::Error(nom::error::Error::new(text, nom::error::ErrorKind::Verify)))
}

/// Zero or more blanks and tabs.
pub fn blanks(text: &[u8]) -> Scan<'_, &[u8]> {
    take_while(|b| b == b' ' || b == b'\t').parse(text)
}

/// A decimal number that fits.
pub fn number(text: &[u8]) -> Scan<'_, u32> {
    let (rest, digits) = take_while_m_n(1, 10, |b: u8| b.is_ascii_digit()).parse(text)?;
    match decimal(digits).and_then(|n| u32::try_from(n).ok()) {
        Some(n) => Ok((rest, n)),
        None => no(text),
    }
}

/// Exactly `n` decimal digits.
pub fn digits(n: usize) -> impl Fn(&[u8]) -> Scan<'_, u32> {
    move |text| {
        let (rest, digits) = take_while_m_n(n, n, |b: u8| b.is_ascii_digit()).parse(text)?;
        decimal(digits).and_then(|n| u32::try_from(n).ok()).map_or_else(|| no(text), |n| Ok((rest, n)))
    }
}

/// A word without blanks, tabs and the given bytes.
pub fn word(stop: &'static [u8]) -> impl Fn(&[u8]) -> Scan<'_, &[u8]> {
    move |text| take_while1(|b: u8| b != b' ' && b != b'\t' && !stop.contains(&b)).parse(text)
}

/// The value of up to 19 digits.
pub fn decimal(digits: &[u8]) -> Option<u64> {
    (!digits.is_empty() && digits.len() <= 19).then(|| digits.iter().try_fold(0u64, |n, d| d.is_ascii_digit().then(|| n * 10 + u64::from(d - b'0'))))?
}

/// `text` without leading blanks, tabs, form feeds and byte order marks.
pub fn trim_start(mut text: &[u8]) -> &[u8] {
    loop {
        match text {
            [b' ' | b'\t' | b'\x0b' | b'\x0c' | b'\r', rest @ ..] | [0xef, 0xbb, 0xbf, rest @ ..] => text = rest,
            _ => return text,
        }
    }
}

/// `text` without blanks, tabs and form feeds on either side.
pub fn trim(text: &[u8]) -> &[u8] {
    let mut text = trim_start(text);
    while let [rest @ .., b' ' | b'\t' | b'\x0b' | b'\x0c' | b'\r'] = text {
        text = rest;
    }
    text
}

/// Splits at the first occurrence of `mark`, which must come within `window` bytes.
pub fn split_at_mark<'a>(text: &'a [u8], mark: &[u8], window: usize) -> Option<(&'a [u8], &'a [u8])> {
    // Marks are short and the window is small: preparing a searcher costs more than it finds.
    let at = memchr::memchr_iter(*mark.first()?, text.get(..window).unwrap_or(text)).find(|p| text[*p..].starts_with(mark))?;
    Some((&text[..at], &text[at + mark.len()..]))
}
