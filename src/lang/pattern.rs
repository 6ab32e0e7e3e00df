//! A text of the catalogue, taken apart: what stands between its places, and what a translation puts there.

use super::catalogue::Entry;

/// A piece of a translation.
pub enum Piece {
    /// Words.
    Text(String),
    /// What stood in a place, as it is or translated itself.
    Place { index: usize, deep: bool },
}

/// A text.
pub struct Pattern {
    /// What stands before, between and behind the places.
    pub literals: Vec<String>,
    /// Letters and digits in them.
    pub letters: usize,
    /// The translation.
    pub pieces: Vec<Piece>,
    /// Only parts of others.
    pub phrase: bool,
    /// Names with the place that they stand for.
    #[cfg(test)]
    places: Vec<(String, usize)>,
}

impl Pattern {
    /// Takes an entry apart.
    pub fn new((english, other): Entry, phrase: bool) -> Self {
        let mut literals = vec![String::new()];
        let mut places: Vec<(String, usize)> = Vec::new();
        let mut positional = 0;
        for part in split(english) {
            match part {
                Part::Text(text) => literals.last_mut().into_iter().for_each(|l| l.push_str(&text)),
                Part::Place(name) => {
                    let name = if name.is_empty() {
                        positional += 1;
                        (positional - 1).to_string()
                    } else {
                        name
                    };
                    match literals.last_mut().filter(|l| !places.is_empty() && matches!(l.as_str(), "" | " ")) {
                        Some(between) => between.clear(),
                        None => literals.push(String::new()),
                    }
                    places.push((name, literals.len() - 2));
                }
            }
        }
        let pieces: Vec<Piece> = split(other)
            .into_iter()
            .map(|part| match part {
                Part::Text(text) => Piece::Text(text),
                Part::Place(name) => {
                    let bare = name.trim_end_matches('*');
                    match places.iter().find(|(n, _)| n == bare) {
                        Some((_, index)) => Piece::Place { index: *index, deep: name.ends_with('*') },
                        None => Piece::Text(name),
                    }
                }
            })
            .collect();
        let letters = literals.iter().flat_map(|l| l.chars()).filter(|c| c.is_alphanumeric()).count();
        Self {
            pieces,
            // A mark between parts is known, too.
            letters: letters.max(usize::from(phrase)),
            literals,
            phrase,
            #[cfg(test)]
            places,
        }
    }

    /// What stands in the places, if `text` is this one. A sentence may begin with a capital that its source has not.
    pub fn captures<'t>(&self, text: &'t str) -> Option<Vec<&'t str>> {
        let (head, rest) = self.literals.split_first()?;
        let begin = text.get(..head.len())?;
        let same = begin == head || (head.starts_with(|c: char| c.is_ascii_lowercase()) && begin.get(..1)?.eq_ignore_ascii_case(&head[..1]) && begin.get(1..) == head.get(1..));
        let (Some((tail, middle)), true) = (rest.split_last(), same) else { return (same && text.len() == head.len()).then(Vec::new) };
        let mut left = text[head.len()..].strip_suffix(tail.as_str())?;
        let mut captures = Vec::with_capacity(rest.len());
        for literal in middle {
            let (capture, behind) = left.split_once(literal.as_str())?;
            captures.push(capture);
            left = behind;
        }
        captures.push(left);
        Some(captures)
    }
}

enum Part {
    Text(String),
    Place(String),
}

/// Cuts a format string at its places; what a place says of its format is left out.
fn split(format: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if (c == '{' || c == '}') && chars.peek() == Some(&c) {
            text.push(c);
            chars.next();
        } else if c == '{' {
            let inside: String = chars.by_ref().take_while(|c| *c != '}').collect();
            parts.push(Part::Text(std::mem::take(&mut text)));
            parts.push(Part::Place(inside.split(':').next().unwrap_or_default().to_owned()));
        } else {
            text.push(c);
        }
    }
    parts.push(Part::Text(text));
    parts.retain(|p| !matches!(p, Part::Text(t) if t.is_empty()));
    parts
}

/// Places of a text that stand apart, and those that its translation fills: for tests.
#[cfg(test)]
pub fn places(english: &'static str, other: &'static str) -> (std::collections::BTreeSet<usize>, std::collections::BTreeSet<usize>) {
    let pattern = Pattern::new((english, other), false);
    let again = |place: &usize| {
        let names = || pattern.places.iter().filter(|(_, at)| at == place).map(|(name, _)| name);
        names().any(|n| pattern.places.iter().any(|(other, at)| other == n && at < place))
    };
    let given = pattern.pieces.iter().filter_map(|p| if let Piece::Place { index, .. } = p { Some(*index) } else { None });
    ((0..pattern.literals.len() - 1).filter(|p| !again(p)).collect(), given.collect())
}
