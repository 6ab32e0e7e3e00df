//! The language of explanations: English, or Simplified Chinese for what has been translated. Names, numbers and
//! commands are the same in both; tests hold them to it.

mod catalogue;
#[cfg(test)]
mod coverage;
mod findings;
mod pattern;
mod tree;
mod zh;

pub use catalogue::REMARK;
pub use findings::translate;
pub use tree::{Words, tree, words};

use catalogue::Catalogue;
use clap::ValueEnum;
use std::borrow::Cow;

/// A language.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Simplified Chinese.
    Zh,
}

impl Lang {
    /// The language of messages by the environment: the first of these variables that is set and not empty.
    pub fn of_environment() -> Self {
        Self::of(["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().filter_map(std::env::var_os).filter_map(|v| v.into_string().ok()))
    }

    fn of(values: impl IntoIterator<Item = String>) -> Self {
        let first = values.into_iter().find(|v| !v.is_empty());
        if first.is_some_and(|v| v.get(..2).is_some_and(|l| l.eq_ignore_ascii_case("zh"))) { Self::Zh } else { Self::En }
    }
}

/// A word or a line of a report in `lang`; English where it is not translated.
pub fn word(lang: Lang, english: &str) -> Cow<'_, str> {
    thread_local! { static WORDS: Catalogue = Catalogue::new(&[zh::WORDS]); }
    if lang == Lang::En {
        return Cow::Borrowed(english);
    }
    // A label is its word with a colon.
    let label = || Some(WORDS.with(|w| w.text(english.strip_suffix(':')?))? + "：");
    label().or_else(|| WORDS.with(|w| w.text(english))).map_or(Cow::Borrowed(english), Cow::Owned)
}

/// The value of a fact about the job; names are the same in every language.
pub fn fact<'a>(lang: Lang, name: &str, value: &'a str) -> Cow<'a, str> {
    if matches!(name, "Job" | "Inputs") { word(lang, value) } else { Cow::Borrowed(value) }
}

/// A word as the label of what follows it in the line.
pub fn label(lang: Lang, english: &str) -> String {
    match lang {
        Lang::En => format!("{english}: "),
        Lang::Zh => format!("{}：", word(lang, english)),
    }
}

/// One line on what a cause is, if the language is not English.
pub fn summary(lang: Lang, id: &str) -> Option<&'static str> {
    match lang {
        Lang::En => None,
        Lang::Zh => zh::SUMMARIES.iter().find(|(name, _)| *name == id).map(|(_, text)| *text),
    }
}

/// The explanation of a cause, if it has been translated.
pub fn explanation(lang: Lang, id: &str) -> Option<&'static str> {
    match lang {
        Lang::En => None,
        Lang::Zh => zh::EXPLANATIONS.iter().find(|(name, _)| *name == id).map(|(_, text)| *text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{cause, causes, tree::LEAVES};

    #[test]
    fn the_first_variable_that_is_set_decides() {
        let of = |values: &[&str]| Lang::of(values.iter().map(|v| (*v).to_owned()));
        assert_eq!(of(&["zh_CN.UTF-8"]), Lang::Zh);
        assert_eq!(of(&["", "zh_TW"]), Lang::Zh);
        assert_eq!(of(&["C", "zh_CN"]), Lang::En);
        assert_eq!(of(&["z"]), Lang::En);
        assert_eq!(of(&[]), Lang::En);
    }

    /// Runs of digits, names of variables, and what stands in backticks.
    fn facts(text: &str) -> (Vec<String>, Vec<String>, Vec<String>) {
        let runs = |keep: fn(char) -> bool| text.split(|c| !keep(c)).filter(|r| !r.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        let mut numbers = runs(|c| c.is_ascii_digit());
        let mut names: Vec<String> = runs(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_').into_iter().filter(|r| r.contains('_')).collect();
        let mut spans: Vec<String> = text.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        numbers.sort();
        names.sort();
        spans.sort();
        (numbers, names, spans)
    }

    fn shape(text: &str) -> (Vec<&str>, usize, usize) {
        let code = text.lines().filter(|l| l.starts_with("    ")).collect();
        let headings = text.lines().filter(|l| l.starts_with('#')).count();
        let items = text.lines().filter(|l| l.starts_with("- ") || l.starts_with(|c: char| c.is_ascii_digit())).count();
        (code, headings, items)
    }

    #[test]
    fn every_founding_cause_is_explained_with_the_same_names_numbers_and_commands() {
        for leaf in LEAVES {
            let english = cause(leaf.cause).expect("a cause").explanation;
            let chinese = explanation(Lang::Zh, leaf.cause).expect("a translation");
            assert_eq!(facts(chinese), facts(english), "{}", leaf.cause);
            assert_eq!(shape(chinese), shape(english), "{}", leaf.cause);
            assert!(explanation(Lang::En, leaf.cause).is_none());
        }
    }

    #[test]
    fn every_cause_has_its_line() {
        for cause in causes() {
            let chinese = summary(Lang::Zh, cause.id).unwrap_or_else(|| panic!("{} has no line", cause.id));
            assert_eq!(facts(chinese), facts(cause.summary), "{}", cause.id);
            assert!(chinese.ends_with('。'), "{chinese}");
        }
        assert_eq!(zh::SUMMARIES.len(), causes().count(), "a line without a cause");
    }

    #[test]
    fn the_tree_has_the_same_shape_names_and_commands() {
        let ((english, leaves), (chinese, ends)) = (tree(Lang::En), tree(Lang::Zh));
        assert_eq!(english.len(), chinese.len());
        for (e, c) in english.iter().zip(chinese) {
            assert_eq!((e.id, e.branches.len(), facts(e.question), facts(e.log)), (c.id, c.branches.len(), facts(c.question), facts(c.log)));
            let probes = |n: &crate::rules::tree::Node| n.probes.iter().map(|p| (p.command, facts(p.look))).collect::<Vec<_>>();
            assert_eq!(probes(e), probes(c), "{}", e.id);
            for (e, c) in e.branches.iter().zip(c.branches) {
                assert_eq!((e.next, facts(e.answer), facts(e.outcome)), (c.next, facts(c.answer), facts(c.outcome)));
            }
        }
        let of = |l: &crate::rules::tree::Leaf| (l.id, l.cause, facts(l.remedy));
        assert_eq!(leaves.iter().map(of).collect::<Vec<_>>(), ends.iter().map(of).collect::<Vec<_>>());
    }
}
