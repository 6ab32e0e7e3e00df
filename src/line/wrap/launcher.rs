//! Launchers of ranks: torchrun and torch, mpirun and horovod, srun, SGLang.

use super::{RankHint, Wrap};
use crate::line::scan::{decimal, number, split_at_mark};
use crate::line::time::{glog, time};

/// What launchers put in square brackets.
pub fn bracket<'a>(text: &'a [u8], wrap: &mut Wrap<'a>) -> Option<&'a [u8]> {
    rank(text, wrap).or_else(|| torch_level(text, wrap)).or_else(|| stamped_rank(text, wrap))
}

/// A rank alone, whose text repeats from line to line.
pub fn rank<'a>(text: &'a [u8], wrap: &mut Wrap<'a>) -> Option<&'a [u8]> {
    match text.first()? {
        b'[' => tagged(text, wrap).or_else(|| role(text, wrap)),
        b'0'..=b'9' => task(text, wrap),
        _ => None,
    }
}

/// `[1,12]<stdout>:` of mpirun, `[0]<stderr>:` of horovod, `[prterun-host-1@1,0]<stdout>:` of Open MPI 5.
fn tagged<'a>(text: &'a [u8], wrap: &mut Wrap<'a>) -> Option<&'a [u8]> {
    let (inner, rest) = split_at_mark(text.strip_prefix(b"[")?, b"]<std", 120)?;
    let rest = rest.strip_prefix(b"out>:").or_else(|| rest.strip_prefix(b"err>:")).or_else(|| rest.strip_prefix(b"diag>:"))?;
    if inner.contains(&b']') {
        return None;
    }
    let rank = inner.rsplit(|b| *b == b',').next()?;
    wrap.rank = Some(RankHint::Global(u32::try_from(decimal(rank)?).ok()?));
    Some(rest)
}

/// `[rank3]:` of torch, `[default3]:` and `[trainer3]:` of torchrun (its number counts on one node); `[trainer3|11]:`
/// where its prefix template adds the rank.
fn role<'a>(text: &'a [u8], wrap: &mut Wrap<'a>) -> Option<&'a [u8]> {
    let inner = text.strip_prefix(b"[")?;
    let len = inner.iter().take(40).take_while(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'-')).count();
    let (rest, n) = number(&inner[len..]).ok()?;
    if let Some(global) = rest.strip_prefix(b"|") {
        let (rest, n) = number(global).ok()?;
        let rest = rest.strip_prefix(b"]:").filter(|_| len > 0)?;
        wrap.rank = Some(RankHint::Global(n));
        return Some(rest);
    }
    let rest = rest.strip_prefix(b"]:").filter(|_| len > 0)?;
    wrap.rank = Some(if &inner[..len] == b"rank" { RankHint::Global(n) } else { RankHint::Local(n) });
    Some(rest)
}

/// `[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] `, and `[E ProcessGroupNCCL.cpp:475] ` up to torch 2.2.
fn torch_level<'a>(text: &'a [u8], wrap: &mut Wrap<'a>) -> Option<&'a [u8]> {
    let inner = text.strip_prefix(b"[")?;
    let (place, at) = match glog(inner) {
        Ok((rest, at)) => (rest.strip_prefix(b" ")?, Some(at)),
        Err(_) => match inner {
            [b'E' | b'W' | b'I' | b'F', b' ', rest @ ..] => (rest, None),
            _ => return None,
        },
    };
    let (place, rest) = split_at_mark(place, b"] ", 160)?;
    let colon = memchr::memrchr(b':', place)?;
    decimal(&place[colon + 1..])?;
    if place[..colon].contains(&b']') {
        return None;
    }
    if at.is_some() {
        wrap.time = at;
    }
    Some(rest)
}

/// `[2025-06-04 07:49:51 TP0] ` and `[2025-06-04 07:49:51 DP1 TP0 EP0] ` of SGLang.
fn stamped_rank<'a>(text: &'a [u8], wrap: &mut Wrap<'a>) -> Option<&'a [u8]> {
    let (rest, at) = time(text.strip_prefix(b"[")?).ok()?;
    let (groups, rest) = split_at_mark(rest.strip_prefix(b" ")?, b"] ", 40)?;
    let mut tensor = None;
    for word in groups.split(|b| *b == b' ') {
        let len = word.iter().take_while(|b| b.is_ascii_uppercase()).count();
        let n = u32::try_from(decimal(&word[len..])?).ok()?;
        if &word[..len] == b"TP" {
            tensor = Some(n);
        } else if len == 0 {
            return None;
        }
    }
    wrap.time = Some(at);
    if let Some(n) = tensor {
        wrap.rank = Some(RankHint::Local(n));
    }
    Some(rest)
}

/// `7: ` of `srun -l`.
pub fn task<'a>(text: &'a [u8], wrap: &mut Wrap<'a>) -> Option<&'a [u8]> {
    let len = text.iter().take_while(|b| b.is_ascii_digit()).count();
    if len > 6 {
        return None;
    }
    let (rest, n) = number(text).ok()?;
    let rest = rest.strip_prefix(b":")?;
    if !matches!(rest.first(), None | Some(b' ')) {
        return None;
    }
    wrap.rank = Some(RankHint::Global(n));
    Some(rest)
}
