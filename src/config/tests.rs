use super::{Error, parse};
use crate::rules::{Confidence, Severity};

const RULE: &str = "[[rule]]\nid = \"lost-carrier\"\nseverity = \"warning\"\npattern = \"lost carrier on {!dev:w}\"\ntitle = \"A link went down\"\n";

fn place(text: &str) -> (usize, usize, String) {
    match parse("ncclog.toml", text) {
        Err(Error::Wrong { line, column, what, .. }) => (line, column, what),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_rule_and_a_silence() {
    let text = format!("{RULE}commands = [\"ip -br link\"]\n\n[[silence]]\ncause = \"gdr-disabled\"\nreason = \"these cards have none\"\n");
    let user = parse("ncclog.toml", &text).unwrap();
    let rule = &user.rules[0];
    assert_eq!((rule.id, rule.severity, rule.confidence), ("lost-carrier", Severity::Warning, Confidence::Likely));
    assert_eq!(rule.fixes[0].commands, ["ip -br link"]);
    assert_eq!((user.silences[0].cause, user.silences[0].reason.as_str()), (Some("gdr-disabled"), "these cards have none"));
    assert!(user.patterns.is_some());
}

#[test]
fn nothing_is_a_configuration() {
    let user = parse("ncclog.toml", "# nothing yet\n").unwrap();
    assert!(user.patterns.is_none() && user.rules.is_empty() && user.silences.is_empty());
}

#[test]
fn an_unknown_key_has_its_place() {
    let (line, column, what) = place(&RULE.replace("severity", "sevrity"));
    assert_eq!((line, column), (3, 1), "{what}");
    assert!(what.contains("sevrity"), "{what}");
    let (line, _, what) = place("[[rules]]\nid = \"x\"\n");
    assert!(line == 1 && what.contains("rules"), "{what}");
}

#[test]
fn a_bad_severity_has_its_place() {
    let (line, column, what) = place(&RULE.replace("\"warning\"", "\"fatal\""));
    assert_eq!((line, column), (3, 12), "{what}");
    assert!(what.contains("fatal") && what.contains("error") && what.contains("info"), "{what}");
}

#[test]
fn a_bad_pattern_has_its_place_within_the_value() {
    let (line, column, what) = place(&RULE.replace("{!dev:w}", "{!dev:q}"));
    assert_eq!((line, column), (4, 28), "{what}");
    assert!(what.contains("unknown kind `q`"), "{what}");
    // With escapes the value's own place is all that is known.
    assert_eq!(place(&RULE.replace("{!dev:w}", "\\t{!dev:q}")).1, 11);
}

#[test]
fn broken_toml_has_its_place() {
    assert_eq!(place("[[rule]]\nid = \"x\nseverity = \"error\"\n").0, 2);
    assert_eq!(place("größe = ").0, 1);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for (text, word) in [
        (RULE.replace("lost-carrier", "Lost Carrier"), "no name"),
        (RULE.replace("lost-carrier", "gpu-oom"), "is taken"),
        (format!("{RULE}{RULE}"), "is taken"),
        (RULE.replace("A link went down", " "), "title is empty"),
        (RULE.replace("pattern =", "contains = \"lost carrier\"\npattern ="), "exclude each other"),
        (RULE.replace("pattern = \"lost carrier on {!dev:w}\"\n", ""), "neither `pattern` nor `contains`"),
        (RULE.replace("title = \"A link went down\"\n", ""), "title"),
        ("[[silence]]\nreason = \"x\"\n".to_owned(), "would silence everything"),
        ("[[silence]]\ncause = \"gpu-oom\"\nreason = \"\"\n".to_owned(), "reason is empty"),
        ("[[silence]]\ncause = \"gpu-oom\"\n".to_owned(), "reason"),
        ("[[silence]]\ncause = \"gpu-oon\"\nreason = \"x\"\n".to_owned(), "did you mean `gpu-oom`?"),
    ] {
        let (_, _, what) = place(&text);
        assert!(what.contains(word), "{what} for {text}");
    }
}

#[test]
fn a_silence_may_mean_a_rule_of_ones_own() {
    let user = parse("ncclog.toml", &format!("{RULE}[[silence]]\ncause = \"lost-carrier\"\nreason = \"on holiday\"\n")).unwrap();
    assert_eq!(user.silences[0].cause, Some("lost-carrier"));
}
