//! The documentation keeps up with the code: generated parts, lists, links. `UPDATE_DOCS=1 cargo test --test docs`
//! writes the generated parts anew.

use ncclog::event::{Scope, tables::TABLES};
use ncclog::rules::causes;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const BEGIN: &str = "<!-- generated:begin -->\n";
const END: &str = "<!-- generated:end -->";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}")).replace("\r\n", "\n")
}

/// Holds the marked part of a page to `expected`, or writes it.
fn hold(path: &str, expected: &str) {
    let page = read(path);
    let (before, rest) = page.split_once(BEGIN).expect("a mark where the generated part begins");
    let (part, after) = rest.split_once(END).expect("a mark where it ends");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(root().join(path), format!("{before}{BEGIN}{expected}{END}{after}")).expect("the page is writable");
    } else {
        assert!(part == expected, "{path} is out of date; run UPDATE_DOCS=1 cargo test --test docs");
    }
}

/// An explanation under a heading of the second level: its own title is left out, its headings go one level down.
fn demoted(explanation: &str) -> String {
    let mut out = String::new();
    let mut fenced = false;
    for line in explanation.lines().skip_while(|l| l.starts_with("# ") || l.is_empty()) {
        fenced ^= line.trim_start().starts_with("```");
        let deeper = if line.starts_with('#') && !fenced { "#" } else { "" };
        writeln!(out, "{deeper}{line}").expect("a string takes all");
    }
    out
}

#[test]
fn causes_are_up_to_date() {
    let mut text = String::from("\n| cause | what it is |\n|---|---|\n");
    for cause in causes() {
        writeln!(text, "| [`{id}`](#{id}) | {} |", cause.summary.replace('|', "\\|"), id = cause.id).expect("a string takes all");
    }
    for cause in causes() {
        writeln!(text, "\n## {}\n", cause.id).expect("a string takes all");
        if !cause.aliases.is_empty() {
            writeln!(text, "Former names: {}.\n", cause.aliases.join(", ")).expect("a string takes all");
        }
        text.push_str(&demoted(cause.explanation));
    }
    text.push('\n');
    hold("docs/causes.md", &text);
}

/// A code span, whatever the text holds, safe in a table.
fn code(text: &str) -> String {
    let fence = if text.contains('`') { "``" } else { "`" };
    let pad = if text.starts_with('`') || text.ends_with('`') || text.starts_with(' ') { " " } else { "" };
    format!("{fence}{pad}{}{pad}{fence}", text.replace('|', "\\|"))
}

#[test]
fn formats_are_up_to_date() {
    let mut text = String::new();
    for table in TABLES {
        // A table of messages has one subsystem mostly; its title is what its kinds begin with.
        let mut subsystems: Vec<&str> = Vec::new();
        for shape in *table {
            let subsystem = shape.kind.split('.').next().unwrap_or_default();
            if !subsystems.contains(&subsystem) {
                subsystems.push(subsystem);
            }
        }
        writeln!(text, "\n### {}\n", subsystems.join(", ")).expect("a string takes all");
        text.push_str("| kind | message | versions | source | meaning |\n|---|---|---|---|---|\n");
        for shape in *table {
            let versions = match (shape.since, shape.until) {
                ("", "") => String::new(),
                (since, "") => format!("{since} –"),
                ("", until) => format!("– {until}"),
                (since, until) => format!("{since} – {until}"),
            };
            let anywhere = if shape.scope == Scope::Any { "" } else { " *" };
            let meaning = shape.meaning.replace('|', "\\|");
            writeln!(text, "| {}{anywhere} | {} | {versions} | {} | {meaning} |", shape.kind, code(shape.format), shape.source).expect("a string takes all");
        }
    }
    text.push('\n');
    hold("docs/formats.md", &text);
}

/// All pages of the project.
fn pages() -> Vec<String> {
    let mut pages: Vec<String> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md", "fixtures/README.md"].map(str::to_owned).to_vec();
    pages.extend(docs().map(|name| format!("docs/{name}")));
    pages.sort();
    pages
}

fn docs() -> impl Iterator<Item = String> {
    let names = fs::read_dir(root().join("docs")).expect("docs").map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|n| Path::new(n).extension().is_some_and(|e| e == "md"))
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut checked = 0;
    for page in pages() {
        let text = read(&page);
        for piece in text.split("](").skip(1) {
            let Some((target, _)) = piece.split_once(')') else { continue };
            if target.contains("://") || target.contains(char::is_whitespace) || target.is_empty() {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { root().join(&page) } else { root().join(&page).parent().expect("a folder").join(file) };
            assert!(path.exists(), "{page}: {target} is not there");
            if !heading.is_empty() {
                let there = fs::read_to_string(&path).expect("a page");
                let found = there.lines().filter_map(|l| l.strip_prefix('#')).any(|l| anchor(l.trim_start_matches('#').trim()) == heading);
                assert!(found, "{page}: no heading for {target}");
            }
            checked += 1;
        }
    }
    assert!(checked > 60, "{checked}");
}

#[test]
fn the_index_lists_every_page() {
    let index = read("docs/README.md");
    for name in docs().filter(|n| n != "README.md") {
        assert!(index.contains(&format!("]({name})")), "docs/README.md does not list {name}");
    }
}

#[test]
fn the_readme_shows_every_command() {
    let help = Command::new(env!("CARGO_BIN_EXE_ncclog")).arg("--help").output().expect("it runs");
    let help = String::from_utf8(help.stdout).expect("UTF-8");
    let (_, list) = help.split_once("\nCommands:\n").expect("a list of commands");
    let names = list.lines().take_while(|l| l.starts_with("  ")).filter(|l| !l.starts_with("   ")).filter_map(|l| l.split_whitespace().next());
    let readme = read("README.md");
    for name in names {
        assert!(readme.contains(&format!("ncclog {name}")), "README.md does not show `ncclog {name}`");
    }
}

#[test]
fn the_json_page_tells_of_every_field() {
    let page = read("docs/json.md");
    let schema: serde_json::Value = serde_json::from_str(ncclog::report::JSON_SCHEMA).expect("JSON");
    let mut fields = BTreeSet::new();
    for definition in [&schema, &schema["$defs"]["finding"], &schema["$defs"]["job"], &schema["$defs"]["evidence"], &schema["$defs"]["fix"]] {
        fields.extend(definition["properties"].as_object().expect("properties").keys().cloned());
    }
    for field in fields {
        assert!(page.contains(&format!("`{field}`")) || page.contains(&format!("\"{field}\"")), "docs/json.md does not tell of `{field}`");
    }
}
