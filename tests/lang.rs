//! Findings in Chinese: everything of the founding causes is translated, and names, numbers, commands and evidence are
//! those of the English report.

use ncclog::analysis::{Options, Silent, analyze};
use ncclog::lang::{Lang, translate};
use ncclog::rules::{Analysis, Finding};
use std::path::{Path, PathBuf};

const FOUNDING: [&str; 4] = ["tcp-fallback", "roce-qp-gid-mtu", "p2p-iommu-acs-hang", "rccl-sdma-rdna"];

/// Words of English prose that are no names.
const PROSE: &[&str] = &[
    "the", "on", "a", "an", "is", "are", "was", "not", "no", "of", "and", "or", "that", "which", "it", "its", "this", "these", "with", "without", "between", "over", "where",
    "has", "have", "by", "for", "from", "they", "at", "but", "other", "than", "then", "there", "what", "when", "who", "goes", "uses", "use", "matches", "finds", "missing", "here",
    "must", "will",
];

fn fixtures() -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = std::fs::read_dir("fixtures").expect("fixtures").filter_map(Result::ok).map(|e| e.path()).filter(|p| p.is_dir()).collect();
    list.sort();
    list
}

fn logs(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok).map(|e| e.path());
    let mut list: Vec<String> = files.filter(|p| !p.ends_with("expect.json")).map(|p| p.display().to_string()).collect();
    list.sort();
    list
}

fn run(folder: &Path) -> Analysis {
    let outcome = analyze(&Options { inputs: logs(folder), ..Options::default() }, &Silent);
    assert!(outcome.problems.is_empty(), "{}: {:?}", folder.display(), outcome.problems);
    outcome.analysis
}

/// Runs of digits; names with capitals, digits or underscores; what stands in backticks. Sorted.
fn facts(text: &str) -> [Vec<String>; 3] {
    let runs = |keep: fn(char) -> bool| text.split(|c| !keep(c)).filter(|r| !r.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let numbers = runs(|c| c.is_ascii_digit());
    let name = |r: &String| r.contains('_') || (r.len() > 1 && r.contains(|c: char| c.is_ascii_digit()) && r.contains(|c: char| c.is_ascii_alphabetic()));
    let names = runs(|c| c.is_ascii_alphanumeric() || c == '_').into_iter().filter(name).collect();
    let spans = text.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    [numbers, names, spans].map(|mut list: Vec<String>| {
        list.sort();
        list
    })
}

/// What a person reads of a text: no spans in backticks, no remark's command.
fn english_words(text: &str) -> Vec<String> {
    let bare: String = text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let words = bare.split(|c: char| !(c.is_ascii_alphanumeric() || "_-./=:$".contains(c))).map(str::to_owned);
    words.filter(|w| PROSE.contains(&w.as_str())).collect()
}

/// All texts of a finding that are translated.
fn texts(f: &Finding) -> Vec<&String> {
    let mut list = vec![&f.title, &f.why];
    for fix in &f.fixes {
        list.extend([&fix.title, &fix.when, &fix.cost, &fix.undo]);
    }
    list.extend(&f.avoid);
    list
}

/// Lines that may be commands.
fn lines(f: &Finding) -> Vec<&String> {
    f.fixes.iter().flat_map(|f| &f.commands).chain(&f.verify).collect()
}

fn is_chinese(text: &str) -> bool {
    text.contains(|c: char| ('\u{4e00}'..='\u{9fff}').contains(&c))
}

/// Not prose: the words that the report leaves out, and what is a command from its first to its last word.
fn may_stay(text: &str) -> bool {
    matches!(text.trim_end_matches('.'), "" | "None" | "none") || ["unset ", "export "].iter().any(|c| text.starts_with(c))
}

fn split(line: &str) -> (&str, &str) {
    match line.split_once("   # ") {
        Some((command, remark)) => (command, remark),
        None if line.starts_with('#') => ("", line),
        None => (line, ""),
    }
}

#[test]
fn the_founding_causes_say_the_same_in_chinese() {
    let mut seen = std::collections::BTreeMap::new();
    let mut wrong = String::new();
    for folder in fixtures() {
        let mut chinese = run(&folder);
        let english = chinese.findings.clone();
        translate(Lang::Zh, &mut chinese);
        for (en, zh) in english.iter().zip(&chinese.findings) {
            assert_eq!((en.id, &en.ranks, &en.hosts, &en.evidence, &en.path), (zh.id, &zh.ranks, &zh.hosts, &zh.evidence, &zh.path));
            let founding = FOUNDING.contains(&en.id);
            let mut hold = |en: &str, zh: &str| {
                let same = facts(en) == facts(zh);
                // A name with its place may do without any word.
                let chinese = is_chinese(zh) || !english_words(en).is_empty();
                let whole = !founding || may_stay(en) || (chinese && english_words(zh).is_empty());
                if !same || !whole {
                    wrong += &format!("{}:\n  {en}\n  {zh}\n  {:?}\n  {:?}\n", folder.display(), facts(en), facts(zh));
                }
            };
            for (en, zh) in texts(en).into_iter().zip(texts(zh)) {
                hold(en, zh);
            }
            for (en, zh) in lines(en).into_iter().zip(lines(zh)) {
                let ((command, remark), (same, other)) = (split(en), split(zh));
                if en.ends_with(['.', ')']) && remark.is_empty() && is_chinese(zh) {
                    hold(en, zh);
                } else {
                    assert_eq!(command, same, "{}", folder.display());
                    hold(remark, other);
                }
            }
            if !is_chinese(&zh.title) || facts(&en.title) != facts(&zh.title) {
                wrong += &format!("{}:\n  {}\n  {}\n", folder.display(), en.title, zh.title);
            }
            if founding {
                *seen.entry(en.id).or_insert(0) += 1;
                for (en, zh) in en.decisions.iter().zip(&zh.decisions) {
                    assert_eq!((en.node, en.next, &en.evidence), (zh.node, zh.next, &zh.evidence));
                    assert!(is_chinese(zh.question) && is_chinese(zh.answer));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(FOUNDING.iter().all(|id| seen.get(id).is_some_and(|n| *n >= 3)), "{seen:?}");
}

/// Which value belongs to which end is as much a fact as the values.
#[test]
fn what_belongs_together_stays_together() {
    let first = |name: &str| {
        let mut analysis = run(&Path::new("fixtures").join(name));
        translate(Lang::Zh, &mut analysis);
        analysis.findings.remove(0)
    };
    assert_eq!(first("facts-roce-mtu-differs-by-devinfo").title, "rank 0,1，mlx5_0：两端的 MTU 不同：alder 上的 1024，birch 上的 4096");
    assert_eq!(first("facts-tcp-port-is-down").title, "2 个节点之间的数据走的是 TCP（eno1）：mlx5_0（heron）是断开的");
    let pinned = first("facts-roce-pinned-index-wrong-on-one-node");
    assert!(pinned.why.contains("而 wren 上的 mlx5_0 索引 3 是 fe80::200:5eff:fe10:2，RoCE v2，属于 ens1f0np0；在那里，索引 5 是 ::ffff:203.0.113.2"), "{}", pinned.why);
    assert!(pinned.fixes[0].commands.iter().any(|c| c.ends_with("=5   # 在 wren：mlx5_0，::ffff:203.0.113.2")), "{:?}", pinned.fixes[0].commands);
    let apart = first("facts-roce-two-networks-by-prefix");
    assert!(apart.why.contains("iris 上的 mlx5_0 上的 10.70.1.9/24 和 lupin 上的 mlx5_0 上的 10.70.2.9/24"), "{}", apart.why);
}
