//! Points in time as log lines carry them, and the parsers of their forms.

use super::scan::{Scan, blanks, digits, no, trim_start};
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while_m_n, take_while1};
use nom::combinator::opt;
use nom::sequence::{preceded, terminated};
use nom::{IResult, Parser};
use serde::{Deserialize, Serialize};

/// Which clock a time was read from. Only times of the same kind (and, for monotonic ones, host) compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Date and time; microseconds since 1970-01-01 as if the text were UTC (a zone in the text is applied).
    Date,
    /// Month, day and time, no year; microseconds since January 1st (of a leap year, so that all days exist).
    YearDay,
    /// Time of day only; microseconds since midnight.
    Day,
    /// Seconds since boot (kernel lines, ROCm runtime); microseconds.
    Boot,
}

/// A point in time with its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time {
    /// Kind of clock.
    pub clock: Clock,
    /// Microseconds on that clock.
    pub micros: i64,
}

impl Time {
    /// Time of an epoch number whose unit is told by its size (seconds to nanoseconds).
    pub fn from_epoch(number: u64) -> Option<Self> {
        let micros = match number {
            100_000_000..10_000_000_000 => number * 1_000_000,
            10_000_000_000..10_000_000_000_000 => number * 1_000,
            10_000_000_000_000..10_000_000_000_000_000 => number,
            10_000_000_000_000_000.. => number / 1_000,
            _ => return None,
        };
        i64::try_from(micros).ok().map(|micros| Self { clock: Clock::Date, micros })
    }
}

const DAY: i64 = 86_400_000_000;
const MONTHS: [&[u8]; 12] = [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
const WEEKDAYS: [&[u8]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];

/// Days since 1970-01-01 of a civil date (Hinnant's algorithm).
fn civil(year: u32, month: u32, day: u32) -> i64 {
    let (year, month, day) = (i64::from(year) - i64::from(month <= 2), i64::from(month), i64::from(day));
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of a number of days since 1970-01-01 (Hinnant's algorithm).
pub fn civil_date(days: i64) -> (i64, i64, i64) {
    // Counted from 0000-03-01, so that the leap day ends a year.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

fn date(year: u32, month: u32, day: u32, micros: i64) -> Option<Time> {
    ((1970..=2200).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day)).then(|| Time { clock: Clock::Date, micros: civil(year, month, day) * DAY + micros })
}

fn year_day(month: u32, day: u32, micros: i64) -> Option<Time> {
    let days = civil(2000, month, day) - civil(2000, 1, 1);
    ((1..=12).contains(&month) && (1..=31).contains(&day)).then_some(Time { clock: Clock::YearDay, micros: days * DAY + micros })
}

fn some<T>(text: &[u8], value: Option<T>) -> IResult<&[u8], T> {
    match value {
        Some(v) => Ok((text, v)),
        None => no(text),
    }
}

/// Fraction of a second behind `.` or `,`, as microseconds.
fn fraction(text: &[u8]) -> Scan<'_, i64> {
    let (rest, digits) = preceded(alt((tag(&b"."[..]), tag(&b","[..]))), take_while1(|b: u8| b.is_ascii_digit())).parse(text)?;
    let micros = digits.iter().copied().chain(std::iter::repeat(b'0')).take(6).fold(0i64, |n, d| n * 10 + i64::from(d - b'0'));
    Ok((rest, micros))
}

/// `HH:MM:SS` with an optional fraction, as microseconds since midnight.
fn clock(text: &[u8]) -> Scan<'_, i64> {
    let (rest, (h, _, m, _, s, f)) = (digits(2), tag(&b":"[..]), digits(2), tag(&b":"[..]), digits(2), opt(fraction)).parse(text)?;
    if h > 23 || m > 59 || s > 60 || rest.first().is_some_and(|b| b.is_ascii_digit() || *b == b':') {
        return no(text);
    }
    Ok((rest, (i64::from(h) * 3600 + i64::from(m) * 60 + i64::from(s)) * 1_000_000 + f.unwrap_or(0)))
}

/// `Z`, `+02:00`, `+0200`; the offset in microseconds.
fn zone(text: &[u8]) -> Scan<'_, i64> {
    if let Ok((rest, _)) = alt((tag::<_, _, nom::error::Error<&[u8]>>(&b"Z"[..]), tag(&b" UTC"[..]))).parse(text) {
        return Ok((rest, 0));
    }
    let (rest, sign) = take_while_m_n(1, 1, |b| b == b'+' || b == b'-').parse(text)?;
    let (rest, (h, _, m)) = (digits(2), opt(tag(&b":"[..])), digits(2)).parse(rest)?;
    let offset = (i64::from(h) * 60 + i64::from(m)) * 60_000_000;
    Ok((rest, if sign == b"-" { -offset } else { offset }))
}

/// `2026-05-05T06:00:00.000Z`, `2026/05/05 06:00:00,123`, `2026-05-05-06:00:00`.
fn iso(text: &[u8]) -> Scan<'_, Time> {
    let separator = |t| take_while_m_n(1, 1, |b| b == b'-' || b == b'/').parse(t);
    let (rest, (year, _, month, _, day)) = (digits(4), separator, digits(2), separator, digits(2)).parse(text)?;
    let (rest, _) = take_while_m_n(1, 1, |b| matches!(b, b'T' | b' ' | b'-' | b'_')).parse(rest)?;
    let (rest, (micros, zone)) = (clock, opt(zone)).parse(rest)?;
    some(rest, date(year, month, day, micros - zone.unwrap_or(0)))
}

/// `11-30 12:00:00` (vLLM).
fn month_day(text: &[u8]) -> Scan<'_, Time> {
    let (rest, (month, _, day, _, micros)) = (digits(2), tag(&b"-"[..]), digits(2), tag(&b" "[..]), clock).parse(text)?;
    some(rest, year_day(month, day, micros))
}

/// `Nov 30 12:00:00`, `Mon Nov 30 12:00:00 2026`, `Mon Nov 30 12:00:00 UTC 2026`.
fn named_month(text: &[u8]) -> Scan<'_, Time> {
    let named = text.get(..3).is_some_and(|w| WEEKDAYS.contains(&w)) && text.get(3) == Some(&b' ');
    let rest = if named { &text[4..] } else { text };
    let Some(month) = rest.get(..3).and_then(|w| MONTHS.iter().position(|m| *m == w)) else { return no(text) };
    let month = month as u32 + 1;
    let (rest, _) = take_while_m_n(1, 2, |b| b == b' ').parse(&rest[3..])?;
    let (rest, day) = alt((digits(2), digits(1))).parse(rest)?;
    let (rest, micros) = preceded(tag(&b" "[..]), clock).parse(rest)?;
    if let Ok((rest, (_, year))) = (opt(tag::<_, _, nom::error::Error<&[u8]>>(&b" UTC"[..])), preceded(tag(&b" "[..]), digits(4))).parse(rest)
        && rest.first().is_none_or(|b| !b.is_ascii_alphanumeric())
        && let Some(time) = date(year, month, day, micros)
    {
        return Ok((rest, time));
    }
    some(rest, year_day(month, day, micros))
}

/// glog's `E1130 12:00:00.123456`, also with one digit of month (`E321`), month zero-based in no version.
pub fn glog(text: &[u8]) -> Scan<'_, Time> {
    let (rest, _) = take_while_m_n(1, 1, |b| matches!(b, b'E' | b'W' | b'I' | b'F' | b'V')).parse(text)?;
    let (rest, (month, day)) = alt(((digits(2), terminated(digits(2), tag(&b" "[..]))), (digits(1), terminated(digits(2), tag(&b" "[..]))))).parse(rest)?;
    let (rest, micros) = clock(rest)?;
    some(rest, year_day(month, day, micros))
}

/// Any time of day or date at the start of `text`.
pub fn time(text: &[u8]) -> Scan<'_, Time> {
    let day = |t| clock(t).map(|(rest, micros)| (rest, Time { clock: Clock::Day, micros }));
    match text.first() {
        Some(b'0'..=b'9') => alt((iso, month_day, day)).parse(text),
        Some(b'A'..=b'Z') => named_month(text),
        _ => no(text),
    }
}

/// Seconds since boot: `[  123.456789]`.
pub fn boot(text: &[u8]) -> Scan<'_, Time> {
    let (rest, _) = (tag(&b"["[..]), blanks).parse(text)?;
    let (rest, seconds) = take_while_m_n(1, 9, |b: u8| b.is_ascii_digit()).parse(rest)?;
    let (rest, micros) = terminated(fraction, tag(&b"]"[..])).parse(rest)?;
    let seconds = super::scan::decimal(seconds).unwrap_or(0) as i64;
    Ok((rest, Time { clock: Clock::Boot, micros: seconds * 1_000_000 + micros }))
}

/// A time in square brackets, alone: NCCL's own stamp, a logger's, `dmesg -T`.
pub fn bracketed(text: &[u8]) -> Scan<'_, Time> {
    let (rest, _) = tag(&b"["[..]).parse(text)?;
    let (rest, time) = time(trim_start(rest))?;
    let (rest, _) = (blanks, tag(&b"]"[..])).parse(rest)?;
    Ok((rest, time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let day = |text: &str| time(text.as_bytes()).map(|(_, t)| (t.clock, t.micros)).map_err(|_| ());
        let second = 1_000_000i64;
        let noon = 12 * 3600 * second;
        let date = 20_787 * DAY + noon;
        for text in ["2026-11-30 12:00:00", "2026-11-30T12:00:00Z", "2026/11/30 12:00:00,000", "2026-11-30T14:00:00+02:00", "2026-11-30T04:00:00-0800", "Mon Nov 30 12:00:00 2026"]
        {
            assert_eq!(day(text), Ok((Clock::Date, date)), "{text}");
        }
        for text in ["11-30 12:00:00", "Nov 30 12:00:00"] {
            assert_eq!(day(text), Ok((Clock::YearDay, 334 * DAY + noon)), "{text}");
        }
        assert_eq!(glog(b"E1130 12:00:00.5 x").map(|(_, t)| t.micros), Ok(334 * DAY + noon + 500_000));
        assert_eq!(glog(b"E321 00:00:00.000001 x").map(|(_, t)| t.micros), Ok(80 * DAY + 1));
        assert_eq!(day("12:00:00.123"), Ok((Clock::Day, noon + 123_000)));
        assert_eq!(boot(b"[   12.000345] x").map(|(_, t)| t.micros), Ok(12_000_345));
        for text in ["25:00:00", "12:00", "2026-13-01 00:00:00", "00/02", "12:00:00:00"] {
            assert!(day(text).is_err(), "{text}");
        }
        assert_eq!(Time::from_epoch(1_784_876_198_520), Time::from_epoch(1_784_876_198_520_000));
        assert_eq!(Time::from_epoch(7), None);
    }
}
