//! The Chinese README says the same as the English one: the same commands, links and numbers, and what the commands print
//! in Chinese. `UPDATE_README=1 cargo test --test readme_zh` writes the output anew.

use std::fs;
use std::path::Path;
use std::process::Command;

const BEGIN: &str = "<!-- output:begin -->\n";
const END: &str = "<!-- output:end -->";

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{name}: {e}")).replace("\r\n", "\n")
}

/// Before, within and behind the marks of the output.
fn parts(page: &str) -> (&str, &str, &str) {
    let (before, rest) = page.split_once(BEGIN).expect("a mark begins the output");
    let (output, after) = rest.split_once(END).expect("a mark ends it");
    (before, output, after)
}

/// Lines of the code blocks, without the remarks behind them.
fn code(page: &str) -> Vec<String> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for line in page.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
            lines.push(line.to_owned());
        } else if fenced {
            let bare = line.split_once("   #").map_or(line, |(command, _)| command);
            lines.push(bare.trim_end().to_owned());
        }
    }
    lines
}

/// Text outside of code blocks.
fn prose(page: &str) -> String {
    page.split("```").step_by(2).collect()
}

/// What stands between two marks, sorted.
fn between(text: &str, open: &str, close: &str) -> Vec<String> {
    let mut found: Vec<String> = text.split(open).skip(1).filter_map(|p| p.split_once(close)).map(|(inside, _)| inside.to_owned()).collect();
    found.sort();
    found
}

fn spans(text: &str) -> Vec<String> {
    let mut found: Vec<String> = text.split('`').skip(1).step_by(2).map(|s| s.replace('\n', " ")).collect();
    found.sort();
    found
}

fn numbers(text: &str) -> Vec<String> {
    let mut found: Vec<String> = text.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty()).map(str::to_owned).collect();
    found.sort();
    found
}

/// Without what only the translation has: the link to the other language, and how to get Chinese.
fn common(page: &str) -> String {
    let own = |p: &&str| !p.starts_with("[English](README.md)") && !p.contains("`--lang zh`") && !p.starts_with("English | [");
    page.split("\n\n").filter(own).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn both_show_the_same_commands_links_and_numbers() {
    let (english, chinese) = (common(&read("README.md")), common(&read("README.zh.md")));
    let ((en_before, _, en_after), (zh_before, _, zh_after)) = (parts(&english), parts(&chinese));
    for (en, zh) in [(en_before, zh_before), (en_after, zh_after)] {
        assert_eq!(code(zh), code(en));
        let (en, zh) = (prose(en), prose(zh));
        assert_eq!(between(&zh, "](", ")"), between(&en, "](", ")"));
        assert_eq!(spans(&zh), spans(&en));
        assert_eq!(numbers(&zh), numbers(&en));
        let headings = |text: &str| text.lines().filter(|l| l.starts_with('#')).count();
        assert_eq!(headings(&zh), headings(&en));
    }
}

#[test]
fn both_show_the_output_of_the_same_commands() {
    let (english, chinese) = (read("README.md"), read("README.zh.md"));
    let (output, (before, own, after)) = (parts(&english).1, parts(&chinese));
    let mut expected = "```console\n".to_owned();
    for call in output.lines().filter_map(|l| l.strip_prefix("$ ncclog ")) {
        let arguments = call.split_whitespace().chain(["--lang", "zh"]);
        let result = Command::new(env!("CARGO_BIN_EXE_ncclog")).current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).output().expect("the binary runs");
        expected += &format!("$ ncclog {call} --lang zh\n{}", String::from_utf8(result.stdout).expect("UTF-8"));
    }
    expected += "```\n";
    if std::env::var_os("UPDATE_README").is_some() {
        let page = format!("{before}{BEGIN}{expected}{END}{after}");
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.zh.md"), page).expect("the page is ours");
    } else {
        assert!(own == expected, "run: UPDATE_README=1 cargo test --test readme_zh");
    }
}
