//! A catalogue of texts with places for what differs from log to log. The rules write English; their sentences are
//! found again by the literals of their sources, and put into another language with the same names and numbers.

use super::pattern::{Pattern, Piece};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use unicode_width::UnicodeWidthChar;

/// A text as the source of a rule has it (`"{hca} cannot be opened"`), and its translation. There `{hca}` puts in what
/// stood in that place as it is, `{hca*}` what the catalogue makes of it; places without a name are numbered from 0.
/// Places with nothing or only a blank between them are one, by the first one's name.
pub type Entry = (&'static str, &'static str);

/// The texts of some rules.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Whole sentences and titles.
    pub texts: &'static [Entry],
    /// Parts that stand in a place of others. Those that begin with a blank or a comma may follow other parts.
    pub phrases: &'static [Entry],
}

/// How deep places may nest.
const DEPTH: usize = 4;

/// Beyond so many places to cut at, a part is taken sentence by sentence, and beyond that as a whole: a log may bring long
/// names into it.
const MOST_CUTS: usize = 40;

/// A text with fewer literal letters, or half of them before its first place, is recognised only if its places, too, hold
/// much that is known.
const FEW: usize = 8;

/// Finds texts of a catalogue.
pub struct Catalogue {
    patterns: Vec<Pattern>,
    /// Patterns by the first byte of their literal, in lower case; 0 for those that begin with a place.
    by_start: BTreeMap<u8, Vec<usize>>,
    /// Parts that were looked up: the same ones come again and again, with others around them.
    parts: RefCell<HashMap<String, Found>>,
}

/// A text with fewer literal letters says too little to tell where its places end: each is one word, a list, or known.
const SHORT: usize = 4;

/// A translated text, and how many letters of it the catalogue knew.
#[derive(Clone)]
struct Found {
    known: usize,
    /// Bytes that stand in texts of the catalogue, places counted.
    covered: usize,
    text: String,
}

impl Found {
    /// Nothing known.
    const fn nothing() -> Self {
        Self { known: 0, covered: 0, text: String::new() }
    }
}

impl Catalogue {
    /// Joins tables.
    pub fn new(tables: &[Table]) -> Self {
        let mut patterns = Vec::new();
        for table in tables {
            patterns.extend(table.texts.iter().map(|e| Pattern::new(*e, false)));
            patterns.extend(table.phrases.iter().map(|e| Pattern::new(*e, true)));
        }
        let mut by_start: BTreeMap<u8, Vec<usize>> = BTreeMap::new();
        for (index, pattern) in patterns.iter().enumerate() {
            by_start.entry(start(&pattern.literals[0])).or_default().push(index);
        }
        Self { patterns, by_start, parts: RefCell::default() }
    }

    /// The translation, sentence by sentence; what is not known stays. `None` if nothing is known.
    pub fn text(&self, text: &str) -> Option<String> {
        self.parts.borrow_mut().clear();
        let found = self.best(text, &sentences(text), false, 0);
        (found.known > 0).then_some(found.text)
    }

    /// A title, which may be a text with parts behind it. It is known as a whole or not at all.
    pub fn title(&self, title: &str) -> Option<String> {
        let whole = || {
            let found = self.best(title, &parts(title), true, 0);
            (found.known >= FEW && found.covered == title.len()).then_some(found.text)
        };
        self.text(title).or_else(whole)
    }

    /// A command stays as it is; the remark behind or instead of it is translated.
    pub fn line(&self, line: &str) -> Option<String> {
        let (command, remark) = match line.split_once(REMARK) {
            Some((command, remark)) => (format!("{command}{REMARK}"), remark),
            None => ("# ".to_owned(), line.strip_prefix('#')?.trim_start()),
        };
        let found = self.best(remark, &parts(remark), true, 0);
        (found.known > 0).then(|| command + &found.text)
    }

    /// The best way to read `text` as a row of segments that end at cuts: the one of which the catalogue knows most.
    fn best(&self, text: &str, cuts: &[usize], inner: bool, depth: usize) -> Found {
        let mut best = vec![Found::nothing()];
        for (j, end) in cuts.iter().enumerate().skip(1) {
            let last = &best[j - 1];
            let mut top = Found { known: last.known, covered: last.covered, text: last.text.clone() };
            push(&mut top.text, &text[cuts[j - 1]..*end]);
            // Of two readings that know the same, the one with fewer segments is right.
            for i in 0..j {
                let Some((found, apart)) = self.segment(&text[cuts[i]..*end], inner, depth) else { continue };
                let (known, covered) = (best[i].known + found.known, best[i].covered + found.covered);
                if (known, covered) > (top.known, top.covered) {
                    let mut joined = best[i].text.clone();
                    let blank = if apart && !joined.is_empty() { " " } else { "" };
                    push(&mut joined, &format!("{blank}{}", found.text));
                    top = Found { known, covered, text: joined };
                }
            }
            best.push(top);
        }
        best.pop().unwrap_or_else(Found::nothing)
    }

    /// A segment as one text of the catalogue; whether a blank stood before it that is none of its own.
    fn segment(&self, text: &str, inner: bool, depth: usize) -> Option<(Found, bool)> {
        let bare = text.trim_start_matches(' ');
        let own = self.whole(text, inner, depth).map(|f| (f, false));
        let apart = if bare.len() == text.len() { None } else { self.whole(bare, inner, depth).map(|f| (f, true)) };
        own.into_iter().chain(apart).reduce(|a, b| if b.0.known > a.0.known { b } else { a })
    }

    fn whole(&self, text: &str, inner: bool, depth: usize) -> Option<Found> {
        let of = |key: u8| self.by_start.get(&key).into_iter().flatten();
        let candidates = of(start(text)).chain(of(0)).map(|i| &self.patterns[*i]).filter(|p| inner || !p.phrase);
        let found = candidates.filter_map(|p| Some((self.fill(p, &p.captures(text)?, depth)?, p.letters)));
        // Of those that know most the one that says most of it itself.
        let best = found.reduce(|a, b| if (b.0.known, b.1) > (a.0.known, a.1) { b } else { a });
        best.map(|(found, _)| Found { covered: text.len(), ..found })
    }

    /// What stands in a place.
    fn part(&self, text: &str, depth: usize) -> Found {
        if let Some(found) = self.parts.borrow().get(text) {
            return found.clone();
        }
        let found = self.list(text, depth).unwrap_or_else(|| self.best(text, &parts(text), true, depth));
        self.parts.borrow_mut().insert(text.to_owned(), found.clone());
        found
    }

    /// A list, if each of its items is known as a whole: `1024 on node1, 4096 on node2`.
    fn list(&self, text: &str, depth: usize) -> Option<Found> {
        let (mark, other) = [("; ", "；"), (" and ", " 和 "), (", ", "，")].into_iter().find(|(mark, _)| text.contains(mark))?;
        let mut list = Found { known: 0, covered: text.len(), text: String::new() };
        for (index, item) in text.split(mark).enumerate() {
            let found = self.whole(item, true, depth)?;
            list.known += found.known;
            push(&mut list.text, if index == 0 { "" } else { other });
            push(&mut list.text, &found.text);
        }
        Some(list)
    }

    fn fill(&self, pattern: &Pattern, captures: &[&str], depth: usize) -> Option<Found> {
        let mut found = Found { known: pattern.letters, ..Found::nothing() };
        for piece in &pattern.pieces {
            match piece {
                Piece::Text(text) => push(&mut found.text, text),
                Piece::Place { index, deep } => {
                    let capture = captures[*index];
                    let inner = (*deep && depth < DEPTH && !capture.is_empty()).then(|| self.part(capture, depth + 1));
                    // What may be left out is looked up; a name is there.
                    if pattern.phrase && !*deep && capture.is_empty() {
                        return None;
                    }
                    // `{} on {}` says too little to tell where its places end.
                    let whole = inner.as_ref().is_some_and(|f| f.known > 0 && f.covered == capture.len());
                    if *deep && pattern.letters < SHORT && !whole && several_words(capture) {
                        return None;
                    }
                    match inner.filter(|f| f.known > 0) {
                        Some(inner) => {
                            found.known += inner.known;
                            push(&mut found.text, &inner.text);
                        }
                        None => push(&mut found.text, capture),
                    }
                }
            }
        }
        let letters = || captures.iter().flat_map(|c| c.chars()).filter(|c| c.is_alphanumeric()).count();
        let speaks = || pattern.literals[0].chars().filter(|c| c.is_alphanumeric()).count() * 2 >= FEW;
        let enough = pattern.letters >= FEW || speaks() || found.known * 6 >= pattern.letters + letters();
        (found.known > 0 && (pattern.phrase || enough)).then_some(found)
    }
}

/// What stands between a command and the remark behind it.
pub const REMARK: &str = "   # ";

/// Words that no comma stands between.
fn several_words(text: &str) -> bool {
    text.match_indices(' ').any(|(at, _)| !text[..at].ends_with(','))
}

fn start(text: &str) -> u8 {
    text.bytes().next().map_or(0, |b| b.to_ascii_lowercase())
}

/// Where sentences end.
fn sentences(text: &str) -> Vec<usize> {
    let ends = |at: usize| text[..at].ends_with(['.', '!', '?', '。']);
    cuts(text, text.match_indices(' ').map(|(at, _)| at).filter(|at| ends(*at)))
}

/// Where parts may end: around blanks and before marks.
fn parts(text: &str) -> Vec<usize> {
    let marks = text.match_indices([' ', ',', ';', ':']).flat_map(|(at, mark)| if mark == " " { vec![at, at + 1] } else { vec![at] });
    let all = cuts(text, marks);
    if all.len() > MOST_CUTS { sentences(text) } else { all }
}

fn cuts(text: &str, inside: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut all: Vec<usize> = std::iter::once(0).chain(inside).chain([text.len()]).collect();
    all.dedup();
    if all.len() > MOST_CUTS { vec![0, text.len()] } else { all }
}

/// Joins two pieces. Between wide characters, and beside a wide mark, stands no blank; between a wide letter and a narrow
/// one stands one.
fn push(out: &mut String, piece: &str) {
    let wide = |c: char| c.width() == Some(2);
    let mark = |c: char| wide(c) && !c.is_alphanumeric();
    let narrow = |c: char| c.is_ascii_alphanumeric();
    let bare = piece.trim_start_matches(' ');
    let (Some(before), Some(behind)) = (out.trim_end_matches(' ').chars().last(), bare.chars().next()) else {
        out.push_str(piece);
        return;
    };
    if mark(before) || mark(behind) || (wide(before) && wide(behind)) {
        out.truncate(out.trim_end_matches(' ').len());
        out.push_str(bare);
    } else if (wide(before) && narrow(behind)) || (narrow(before) && wide(behind)) {
        out.truncate(out.trim_end_matches(' ').len());
        out.push(' ');
        out.push_str(bare);
    } else {
        out.push_str(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Table = Table {
        texts: &[
            ("{hca} cannot be opened", "{hca} 打不开"),
            ("Data goes over TCP{}: {}", "数据走 TCP{0*}：{1*}"),
            ("{}: {}", "{0*}：{1*}"),
            ("the test has ended.", "测试结束了。"),
        ],
        phrases: &[("ranks {}", "rank {0}"), (" on {}", "（{0}）"), (" and ", " 和 "), ("no answer", "没有应答"), ("every rank", "每个 rank"), ("here", "在本端")],
    };

    fn text(english: &str) -> Option<String> {
        Catalogue::new(&[TABLE]).text(english)
    }

    #[test]
    fn places_keep_what_stands_in_them() {
        assert_eq!(text("mlx5_0 cannot be opened").as_deref(), Some("mlx5_0 打不开"));
        assert_eq!(text("Data goes over TCP on eth0: no answer").as_deref(), Some("数据走 TCP（eth0）：没有应答"));
        assert_eq!(text("Data goes over TCP: it is so").as_deref(), Some("数据走 TCP：it is so"));
        assert_eq!(text("Ranks 0,1 and every rank: no answer").as_deref(), Some("rank 0,1 和每个 rank：没有应答"));
    }

    #[test]
    fn sentences_are_known_one_by_one() {
        assert_eq!(text("Nobody knows this. The test has ended.").as_deref(), Some("Nobody knows this. 测试结束了。"));
        assert_eq!(text("The test has ended. The test has ended.").as_deref(), Some("测试结束了。测试结束了。"));
    }

    #[test]
    fn what_is_not_known_stays() {
        assert_eq!(text("something else"), None);
        assert_eq!(text("every rank"), None, "a part is no text");
        assert_eq!(text("error: a long line of a log that nobody wrote a text for, with a word like here"), None);
    }

    #[test]
    fn a_command_stays_and_its_remark_is_translated() {
        let line = |l: &str| Catalogue::new(&[TABLE]).line(l);
        assert_eq!(line("ls -l   # every rank").as_deref(), Some("ls -l   # 每个 rank"));
        assert_eq!(line("# every rank").as_deref(), Some("# 每个 rank"));
        assert_eq!(line("ls every rank"), None);
        assert_eq!(line("ls   # ?"), None);
    }

    #[test]
    fn a_hostile_text_costs_little() {
        let catalogue = Catalogue::new(&[TABLE]);
        let long = "on and : , ".repeat(20_000);
        assert!(catalogue.text(&long).is_none() || long.len() > 1);
        let _ = catalogue.line(&format!("x   # {long}"));
        let many = "ranks and on : here, ".repeat(60);
        let _ = catalogue.text(&format!("Data goes over TCP{many}: {many}"));
    }
}
