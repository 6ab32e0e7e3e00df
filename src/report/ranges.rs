//! Numbers as people write them: `0-6,8-15`.

use crate::rules::query::stretches;
use std::fmt::Write;

/// Ascending numbers as ranges. With `most` columns given, the rest is left out and the count said:
/// `0,2,4,… (64)`.
pub fn ranges(numbers: &[u32], most: Option<usize>) -> String {
    let parts = stretches(numbers.iter().copied());
    let whole = parts.join(",");
    match most {
        Some(most) if whole.len() > most => shorten(&parts, numbers.len(), most),
        _ => whole,
    }
}

fn shorten(parts: &[String], count: usize, most: usize) -> String {
    let tail = format!("… ({count})");
    let room = most.saturating_sub(tail.chars().count());
    let mut out = String::new();
    for part in parts {
        if out.len() + part.len() + 1 > room {
            break;
        }
        let _ = write!(out, "{part},");
    }
    out + &tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_become_ranges() {
        assert_eq!(ranges(&[], None), "");
        assert_eq!(ranges(&[3], None), "3");
        assert_eq!(ranges(&[0, 1, 2, 3, 4, 5, 6, 8, 9, 10], None), "0-6,8-10");
        assert_eq!(ranges(&[0, 1, 5, 5, u32::MAX], None), "0,1,5,4294967295");
    }

    #[test]
    fn too_many_are_counted() {
        let even: Vec<u32> = (0..64).map(|n| n * 2).collect();
        assert_eq!(ranges(&even, Some(16)), "0,2,4,6,8,… (64)");
        assert_eq!(ranges(&even, Some(1)), "… (64)");
        assert_eq!(ranges(&[0, 1, 2], Some(16)), "0-2");
    }
}
