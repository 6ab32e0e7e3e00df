//! Compiles a format and matches it with nom combinators.

use super::shape::{FieldName, Fields, MAX_FIELDS, Shape};
use nom::bytes::complete::{tag, take_while, take_while1};
use nom::character::complete::{digit1, hex_digit1};
use nom::combinator::{opt, recognize};
use nom::{IResult, Parser};
use std::fmt;

/// Most places that one format is tried at in one message: hostile text that nearly matches stays cheap.
const MAX_TRIES: u32 = 256;

type Res<'a> = IResult<&'a [u8], &'a [u8], ()>;

/// One piece of a compiled format.
#[derive(Debug)]
enum Piece {
    /// Text without blanks.
    Text(&'static [u8]),
    /// One or more blanks.
    Blank,
    /// Any number of blanks.
    Maybe,
    /// A field; the number is its slot, `None` forgets it.
    Field(Take, Option<usize>),
    /// The message ends here.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Take {
    Until,
    Decimal,
    Hex,
    Word,
    Fraction,
    Name,
}

/// A compiled shape.
#[derive(Debug)]
pub struct Compiled {
    /// The row.
    pub shape: &'static Shape,
    pieces: Vec<Piece>,
    names: &'static [FieldName],
    /// The text may stand anywhere.
    pub floating: bool,
    /// Length of all literal text: the more, the more specific.
    pub weight: usize,
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'.'
}

fn is_blank(b: u8) -> bool {
    b == b' ' || b == b'\t'
}

/// What is wrong with a format, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatError {
    /// Byte offset in the format.
    pub at: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Compiled {
    /// Compiles a row. Panics on a malformed format: rows are code, and a test compiles all of them.
    pub fn new(shape: &'static Shape) -> Self {
        Self::try_new(shape).unwrap_or_else(|error| panic!("{error} at {} in {}", error.at, shape.format))
    }

    /// A row whose format is plain text, without any sign of the format language, that may stand anywhere.
    pub fn literal(shape: &'static Shape) -> Self {
        Self { shape, pieces: vec![Piece::Text(shape.format.as_bytes())], names: &[], floating: true, weight: shape.format.len() }
    }

    /// Compiles a row that may be malformed.
    pub fn try_new(shape: &'static Shape) -> Result<Self, FormatError> {
        let floating = shape.format.starts_with('*');
        let text = shape.format.strip_prefix('*').unwrap_or(shape.format);
        let mut pieces = Vec::new();
        let mut names = Vec::new();
        let mut weight = 0;
        let bytes = text.as_bytes();
        let start = shape.format.len() - text.len();
        let error = |at: usize, what: String| FormatError { at: start + at, what };
        let mut i = 0;
        while i < bytes.len() {
            match bytes[i] {
                b'{' => {
                    let end = i + text[i..].find('}').ok_or_else(|| error(i, "a field without its `}`".to_owned()))?;
                    pieces.push(field(&text[i + 1..end], &mut names).map_err(|what| error(i, what))?);
                    i = end + 1;
                }
                b'~' => {
                    pieces.push(Piece::Maybe);
                    i += 1;
                }
                b' ' => {
                    pieces.push(Piece::Blank);
                    weight += 1;
                    i += 1;
                }
                b'$' if i + 1 == bytes.len() => {
                    pieces.push(Piece::End);
                    i += 1;
                }
                _ => {
                    let end = i + bytes[i..].iter().position(|b| matches!(b, b'{' | b'~' | b' ')).unwrap_or(bytes.len() - i);
                    let end = if end == bytes.len() && text.ends_with('$') && end > i + 1 { end - 1 } else { end };
                    pieces.push(Piece::Text(&bytes[i..end]));
                    weight += end - i;
                    i = end;
                }
            }
        }
        if names.len() > MAX_FIELDS {
            return Err(error(0, format!("more than {MAX_FIELDS} fields")));
        }
        Ok(Self { shape, pieces, names: Vec::leak(names), floating, weight })
    }

    /// The literal by which a dispatcher finds this shape: the leading text if the format is anchored and starts
    /// with at least three bytes of text, else the longest stretch of text with single blanks.
    pub fn anchor(&self) -> (bool, Vec<u8>) {
        if !self.floating
            && let Some(Piece::Text(t)) = self.pieces.first()
            && t.len() >= 3
        {
            return (true, t.to_vec());
        }
        let mut best: Vec<u8> = Vec::new();
        let mut run: Vec<u8> = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(t) => run.extend_from_slice(t),
                Piece::Blank if !run.is_empty() => run.push(b' '),
                _ => run.clear(),
            }
            let trimmed = run.trim_ascii_end();
            if trimmed.len() > best.len() {
                best = trimmed.to_vec();
            }
        }
        (false, best)
    }

    /// Matches `msg`.
    pub fn matches<'a>(&self, msg: &'a [u8]) -> Option<Fields<'a>> {
        let mut values: [&'a [u8]; MAX_FIELDS] = [b""; MAX_FIELDS];
        let mut tries = MAX_TRIES;
        let mut from = |at: usize| self.walk(0, &msg[at..], &mut values, &mut tries);
        let found = match self.pieces.first() {
            _ if !self.floating => from(0),
            Some(Piece::Text(first)) => memchr::memmem::find_iter(msg, first).take(MAX_TRIES as usize).any(from),
            _ => (0..=msg.len()).take(MAX_TRIES as usize).any(from),
        };
        found.then(|| Fields::new(self.names, msg, &values))
    }

    fn walk<'a>(&self, at: usize, rest: &'a [u8], values: &mut [&'a [u8]; MAX_FIELDS], tries: &mut u32) -> bool {
        let mut rest = rest;
        for (i, piece) in self.pieces.iter().enumerate().skip(at) {
            let step: Res<'a> = match piece {
                Piece::Text(t) => tag(*t).parse(rest),
                Piece::Blank => take_while1(is_blank).parse(rest),
                Piece::Maybe => take_while(is_blank).parse(rest),
                Piece::End => {
                    if rest.trim_ascii().is_empty() {
                        Ok((rest, rest))
                    } else {
                        return false;
                    }
                }
                Piece::Field(Take::Name, slot) => {
                    let Some((value, next)) = self.take_name(i, rest) else { return false };
                    if let Some(slot) = slot {
                        values[*slot] = value;
                    }
                    Ok((next, value))
                }
                Piece::Field(Take::Until, slot) => return self.take_until(i, rest, *slot, values, tries),
                Piece::Field(take, slot) => match take.run(rest) {
                    Ok((next, value)) => {
                        if let Some(slot) = slot {
                            values[*slot] = value;
                        }
                        Ok((next, value))
                    }
                    Err(e) => Err(e),
                },
            };
            match step {
                Ok((next, _)) => rest = next,
                Err(_) => return false,
            }
        }
        true
    }

    /// A name field is a whole identifier of which the next text is the end: `{type:i}Error: ` takes `KeyError`.
    fn take_name<'a>(&self, i: usize, rest: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let len = rest.iter().position(|b| !is_name(*b)).unwrap_or(rest.len());
        let tail = match self.pieces.get(i + 1) {
            Some(Piece::Text(t)) => t.iter().take_while(|b| is_name(**b)).count(),
            _ => 0,
        };
        (len > tail).then(|| (&rest[..len], &rest[len - tail..]))
    }

    /// An open field takes the shortest text after which the rest of the format matches.
    fn take_until<'a>(&self, i: usize, rest: &'a [u8], slot: Option<usize>, values: &mut [&'a [u8]; MAX_FIELDS], tries: &mut u32) -> bool {
        let put = |len: usize, values: &mut [&'a [u8]; MAX_FIELDS]| {
            if let Some(slot) = slot {
                values[slot] = rest[..len].trim_ascii();
            }
        };
        match self.pieces.get(i + 1) {
            None | Some(Piece::End) => {
                put(rest.len(), values);
                true
            }
            Some(Piece::Text(t)) => {
                for at in memchr::memmem::find_iter(rest, t).take(64) {
                    if *tries == 0 {
                        return false;
                    }
                    *tries -= 1;
                    if self.walk(i + 1, &rest[at..], values, tries) {
                        put(at, values);
                        return true;
                    }
                }
                false
            }
            Some(_) => {
                for at in (0..=rest.len()).filter(|at| *at == rest.len() || is_blank(rest[*at])).take(64) {
                    if *tries == 0 {
                        return false;
                    }
                    *tries -= 1;
                    if self.walk(i + 1, &rest[at..], values, tries) {
                        put(at, values);
                        return true;
                    }
                }
                false
            }
        }
    }
}

impl Take {
    fn run(self, rest: &[u8]) -> Res<'_> {
        match self {
            Self::Decimal => recognize((opt(tag(&b"-"[..])), digit1)).parse(rest),
            Self::Hex => {
                let (rest, _) = opt(tag(&b"0x"[..])).parse(rest)?;
                hex_digit1.parse(rest)
            }
            Self::Word => take_while1(|b: u8| !b.is_ascii_whitespace()).parse(rest),
            Self::Fraction => take_while1(|b: u8| b.is_ascii_digit() || b == b'.' || b == b'-').parse(rest),
            Self::Name | Self::Until => Ok((b"", rest)),
        }
    }
}

fn field(spec: &'static str, names: &mut Vec<FieldName>) -> Result<Piece, String> {
    let (key, spec) = spec.strip_prefix('!').map_or((false, spec), |s| (true, s));
    let (name, kind) = spec.split_once(':').unwrap_or((spec, ""));
    let take = match kind {
        "" => Take::Until,
        "d" => Take::Decimal,
        "x" => Take::Hex,
        "w" => Take::Word,
        "f" => Take::Fraction,
        "i" => Take::Name,
        other => return Err(format!("a field of the unknown kind `{other}`; there are d, x, w, f and i")),
    };
    let slot = (!name.is_empty()).then(|| {
        names.push(FieldName { name, key });
        names.len() - 1
    });
    Ok(Piece::Field(take, slot))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::shape::shape;

    fn run(format: &'static str, msg: &str) -> Option<Vec<(String, String)>> {
        let row = Box::leak(Box::new(shape("test.test", format, "", "", "", "")));
        let compiled = Compiled::new(row);
        let fields = compiled.matches(msg.as_bytes())?;
        Some(fields.iter().map(|(n, v, _)| (n.to_owned(), String::from_utf8_lossy(v).into_owned())).collect())
    }

    #[expect(clippy::unnecessary_wraps, reason = "compares with an optional result")]
    fn pairs(list: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        Some(list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect())
    }

    #[test]
    fn fields_take_what_the_format_says() {
        assert_eq!(
            run(
                "NET/IB~: Got completion from peer {!peer} with error {!status:d}, opcode {op:d}",
                "NET/IB : Got completion from peer 10.0.0.2<4791> with error 12, opcode 1, len 0"
            ),
            pairs(&[("peer", "10.0.0.2<4791>"), ("status", "12"), ("op", "1")])
        );
        assert_eq!(run("*GID {gid:x} end$", "x GID 0xfe80 end"), pairs(&[("gid", "fe80")]));
        assert_eq!(run("*GID {gid:x} end$", "x GID 0xfe80 end."), None);
        assert_eq!(run("Cuda failure '{text}'", "Cuda failure 'out of memory'"), pairs(&[("text", "out of memory")]));
    }

    #[test]
    fn blanks_are_flexible_where_the_format_has_one() {
        assert_eq!(run("Bootstrap~: Using {if}:{ip}<", "Bootstrap: Using  eth0:10.0.0.1<0>"), pairs(&[("if", "eth0"), ("ip", "10.0.0.1")]));
        assert_eq!(run("Bootstrap~: Using {if}:{ip}<", "Bootstrap : Using eth0:10.0.0.1<0>"), pairs(&[("if", "eth0"), ("ip", "10.0.0.1")]));
    }

    #[test]
    fn nearly_matching_text_is_given_up() {
        let text = "[a]".repeat(20_000);
        assert_eq!(run("*[{a}] {b}] {c}] end", &text), None);
        assert_eq!(run("*[{a}][{b}][{c}][{d}] end", &text), None);
    }

    #[test]
    fn a_name_field_is_a_whole_identifier() {
        assert_eq!(run("{t:i}Error: {x}", "KeyError: 'a'"), pairs(&[("t", "KeyError"), ("x", "'a'")]));
        assert_eq!(run("{t:i}Error: {x}", "torch.cuda.OutOfMemoryError: b"), pairs(&[("t", "torch.cuda.OutOfMemoryError"), ("x", "b")]));
        assert_eq!(run("{t:i}Error: {x}", "Error: a"), None);
        assert_eq!(run("{t:i}Error: {x}", "a KeyError: b"), None);
    }

    #[test]
    fn an_open_field_tries_later_occurrences() {
        assert_eq!(run("{name} set by environment to {value:d}.$", "NCCL_A set by environment to 3."), pairs(&[("name", "NCCL_A"), ("value", "3")]));
        assert_eq!(run("a {x}, b {y:d}", "a 1, b x, b 2"), pairs(&[("x", "1, b x"), ("y", "2")]));
    }
}
