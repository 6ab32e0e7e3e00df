//! The fixes of the findings as lines for each node, and what has to be done by hand.

use super::flavour::quoted;
use super::pins::{is_old, lines as pinned, rail, rule};
use super::{Block, Line, Sheet, Value};
use crate::job::{NodeFacts, Rail};
use crate::rules::query::Ask;
use crate::rules::{Analysis, Finding, Fix, Severity};

/// Causes that are mended by putting every node's data path on one fabric.
const NETWORK: &[&str] = &["tcp-fallback", "fabric-split", "roce-qp-gid-mtu", "ib-device-missing", "rail-topology", "bootstrap-unreachable", "missing-rank"];

/// What is wanted.
#[derive(Debug, Clone, Default)]
pub struct Wanted<'a> {
    /// Only this cause.
    pub cause: Option<&'a str>,
    /// Only this node, by the name that the job or its facts give it.
    pub node: Option<&'a str>,
}

/// The findings that are mended: those of the cause, else all that are no consequence of another.
pub fn chosen<'a>(analysis: &'a Analysis, wanted: &Wanted<'_>) -> Vec<&'a Finding> {
    let fits = |f: &&Finding| wanted.cause.map_or_else(|| f.is_root(), |c| f.id == c);
    analysis.findings.iter().filter(fits).collect()
}

/// Names of all nodes: those of the job, then others that have facts.
pub fn nodes(analysis: &Analysis) -> Vec<String> {
    let mut names: Vec<String> = analysis.job.hosts.iter().map(|h| h.name.clone()).collect();
    for node in &analysis.job.facts.nodes {
        if node.host.is_none() && !node.name.is_empty() && !names.contains(&node.name) {
            names.push(node.name.clone());
        }
    }
    names
}

/// The sheet that mends the findings.
pub fn plan(analysis: &Analysis, wanted: &Wanted<'_>) -> Sheet {
    let findings = chosen(analysis, wanted);
    let mut sheet = Sheet::default();
    for finding in &findings {
        let severity = if finding.severity == Severity::Error {
            "error"
        } else if finding.severity == Severity::Warning {
            "warning"
        } else {
            "info"
        };
        sheet.head.push(format!("{} ({severity}, {}): {}", finding.id, confidence(finding), finding.title));
    }
    sheet.head.push("Nothing has been run or changed. Read it, then change one thing at a time.".to_owned());
    let names = nodes(analysis);
    let hosts: Vec<Option<String>> = match wanted.node {
        Some(name) => vec![Some(name.to_owned())],
        None if names.is_empty() => vec![None],
        None => names.iter().cloned().map(Some).collect(),
    };
    for host in hosts {
        if let Some(block) = block(analysis, &findings, host.as_deref()) {
            sheet.blocks.push(block);
        }
    }
    for finding in &findings {
        by_hand(finding, wanted.node, &names, &sheet.blocks, &mut sheet.tail);
    }
    sheet
}

fn confidence(finding: &Finding) -> &'static str {
    match finding.confidence {
        crate::rules::Confidence::Certain => "certain",
        crate::rules::Confidence::Likely => "likely",
        crate::rules::Confidence::Possible => "possible",
    }
}

/// Whether a finding concerns a node. One without hosts concerns all.
fn concerns(finding: &Finding, host: &str) -> bool {
    NETWORK.contains(&finding.id) || finding.hosts.is_empty() || finding.hosts.iter().any(|h| h == host)
}

fn block(analysis: &Analysis, findings: &[&Finding], host: Option<&str>) -> Option<Block> {
    let job = &analysis.job;
    let all = nodes(analysis);
    let node = host.and_then(|h| job.hosts.iter().position(|row| row.name == h).map_or_else(|| job.facts.named(h), |i| job.facts.of(i)));
    let own = node.and_then(|n| port(analysis, n));
    let mut block = Block { host: host.map(str::to_owned), address: own.and_then(|r| r.address()).map(|(ip, _)| ip.to_string()), ..Block::default() };
    for finding in findings.iter().filter(|f| host.is_none_or(|h| concerns(f, h))) {
        let first = finding.fixes.iter().map(settings).find(|s| !s.is_empty()).unwrap_or_default();
        let mut lines: Vec<Line> = Vec::new();
        if matches!(finding.id, "tcp-fallback" | "fabric-split")
            && let Some(rail) = &own
        {
            // Facts of this very node beat what a log can guess.
            if super::pins::rail(&job.facts, rail.node).is_none() {
                block.notes.push(format!("{} is this node's only RDMA port that is up; its facts do not show the network that the nodes share", rail.hca));
            }
            lines.extend(pinned(rail, is_old(job)));
        }
        lines.extend(for_node(first, host, &all).into_iter().map(|line| fill(line, own.as_ref(), finding.id)));
        for line in lines {
            // What an earlier finding decided stands: it is the surer one.
            if !block.lines.iter().any(|l| l.name == line.name) {
                block.lines.push(line);
            }
        }
    }
    if block.lines.iter().any(|l| matches!(l.value, Value::Open(_)) && !rule(&l.name).is_empty()) {
        let command = host.map_or_else(|| "ncclog collect".to_owned(), |h| format!("ncclog collect -o {}.txt", super::short(h)));
        let text =
            if node.is_some() { "the facts of this node do not give these values".to_owned() } else { format!("with the facts of this node these lines are complete: {command}") };
        block.notes.push(text);
    }
    block.after.extend(undo(analysis, host, &block.lines));
    (!block.lines.is_empty()).then_some(block)
}

/// A fix may hold a line for each node, which says so: `# on node7: …`. Gives those of this node and those of all; a
/// variable that only other nodes have a value for is left open.
fn for_node(lines: Vec<Line>, host: Option<&str>, all: &[String]) -> Vec<Line> {
    let mut mine: Vec<Line> = Vec::new();
    let mut others = Vec::new();
    for line in lines {
        match meant(&line.note, all) {
            Some((node, rest)) if host.is_none_or(|h| h == node) => mine.push(Line { note: rest.to_owned(), from_facts: true, ..line }),
            Some(_) => others.push(line),
            None => mine.push(line),
        }
    }
    for line in others {
        if !mine.iter().any(|l| l.name == line.name) {
            mine.push(Line::open(&line.name, "", ""));
        }
    }
    mine
}

/// The node that a remark limits its command to, and the rest of the remark.
fn meant<'a>(note: &'a str, all: &[String]) -> Option<(&'a str, &'a str)> {
    let rest = note.strip_prefix("on ")?;
    // The longest name: node1 is not node10.
    let node = all.iter().filter(|n| rest.strip_prefix(n.as_str()).is_some_and(|r| r.is_empty() || r.starts_with([':', ',', ';']))).max_by_key(|n| n.len())?;
    let (name, rest) = rest.split_at(node.len());
    Some((name, rest.trim_start_matches([':', ',', ';', ' '])))
}

/// How to take the lines back: what the job had before is set again, the rest taken out.
fn undo(analysis: &Analysis, host: Option<&str>, lines: &[Line]) -> Option<String> {
    let ask = Ask::new(&analysis.job);
    let before = |name: &str| ask.settings(name).into_iter().find(|s| host.is_none_or(|h| s.host() == h)).map(|s| format!("{name}={}", quoted(s.value)));
    let (mut set, mut unset) = (Vec::new(), Vec::new());
    for line in lines.iter().filter(|l| !matches!(l.value, Value::Open(_))) {
        match before(&line.name) {
            Some(assignment) => set.push(assignment),
            None if line.value != Value::Unset => unset.push(line.name.as_str()),
            None => {}
        }
    }
    let set = (!set.is_empty()).then(|| format!("export {}", set.join(" ")));
    let unset = (!unset.is_empty()).then(|| format!("unset {}", unset.join(" ")));
    let commands: Vec<String> = set.into_iter().chain(unset).collect();
    (!commands.is_empty()).then(|| format!("to take it back: {}", commands.join("; ")))
}

/// The node's port on the common fabric; where no other node has facts, its only one that is up.
fn port<'a>(analysis: &'a Analysis, node: &'a NodeFacts) -> Option<Rail<'a>> {
    rail(&analysis.job.facts, node).or_else(|| {
        let up: Vec<Rail<'a>> = node.rails().into_iter().filter(|r| r.is_up() == Some(true)).collect();
        if let [only] = up[..] { Some(only) } else { None }
    })
}

/// The variables that a fix sets or takes out.
fn settings(fix: &Fix) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for command in &fix.commands {
        let (code, note) = command.split_once("   # ").unwrap_or((command, ""));
        if let Some(rest) = code.strip_prefix("export ") {
            lines.extend(assignments(rest).into_iter().map(|(name, value)| if is_open(&value) { Line::open(&name, value, note) } else { Line::set(&name, value, note) }));
        } else if let Some(rest) = code.strip_prefix("unset ") {
            let names = rest.split_whitespace().filter(|n| is_name(n));
            lines.extend(names.map(|n| Line::unset(n, note)));
        }
    }
    lines
}

/// `A=b C=<the other one>`: names and values; a value reaches to the next name.
fn assignments(text: &str) -> Vec<(String, String)> {
    let mut list: Vec<(String, String)> = Vec::new();
    // The places for values hold words of prose, which no shell could split.
    let words = shlex::split(text).unwrap_or_else(|| text.split_whitespace().map(str::to_owned).collect());
    for word in &words {
        match word.split_once('=') {
            Some((name, value)) if is_name(name) => list.push((name.to_owned(), value.to_owned())),
            _ => {
                if let Some((_, value)) = list.last_mut() {
                    value.push(' ');
                    value.push_str(word);
                }
            }
        }
    }
    list
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_') && !word.starts_with(|c: char| c.is_ascii_digit())
}

/// A place for a value that the reader has to find.
fn is_open(value: &str) -> bool {
    value.contains(['<', '$', '…', ' ']) || ["DEVICE", "INTERFACE"].contains(&value.trim_start_matches('='))
}

/// Fills an open value from the facts of the node.
fn fill(line: Line, own: Option<&Rail<'_>>, cause: &str) -> Line {
    let Value::Open(text) = &line.value else {
        let note = if line.note.is_empty() { cause.to_owned() } else { format!("{cause}: {}", line.note) };
        return Line { note, ..line };
    };
    let known = own.and_then(|r| r.exports().into_iter().chain(only_gid(r.node)).find(|(name, _)| *name == line.name));
    if let Some((name, value)) = known {
        return Line { from_facts: true, ..Line::set(name, value, "by the facts of this node") };
    }
    let by_rule = rule(&line.name);
    let rule = match (by_rule, text.as_str()) {
        ("", "") => "no fact of this node gives its value".to_owned(),
        ("", text) => format!("{text} {}", line.note),
        (by_rule, _) => by_rule.to_owned(),
    };
    Line { value: Value::Open(rule.trim().to_owned()), ..line }
}

/// The GID index of a node, where it is the same for all of its ports that are not down: one variable serves them all.
fn only_gid(node: &NodeFacts) -> Option<(&'static str, String)> {
    let mut found = node.rails().into_iter().filter(|r| r.is_up() != Some(false)).filter_map(|r| r.gid_export());
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

/// Commands that only look for the values of variables.
const LOOKS: &[&str] = &["ip ", "rdma ", "show_gids", "ibv_devinfo", "ls ", "cd /sys/"];

/// Everything that is no variable, or an alternative.
fn by_hand(finding: &Finding, node: Option<&str>, all: &[String], blocks: &[Block], tail: &mut Vec<String>) {
    let place = match node {
        Some(name) => format!(" on {name}"),
        None if finding.hosts.is_empty() => String::new(),
        None => format!(" on {}", finding.hosts.join(", ")),
    };
    for fix in &finding.fixes {
        let settings = settings(fix);
        let decided = |line: &Line| blocks.iter().all(|b| b.lines.iter().any(|l| l.name == line.name && (l.from_facts || answers(&l.value, &line.value))));
        let done = !settings.is_empty() && !blocks.is_empty() && settings.iter().all(decided);
        let elsewhere = |c: &str| node.is_some_and(|n| c.split_once("   # ").and_then(|(_, note)| meant(note, all)).is_some_and(|(named, _)| named != n));
        let commands: Vec<&String> = fix.commands.iter().filter(|c| !elsewhere(c)).filter(|c| !done || !(is_setting(c) || LOOKS.iter().any(|l| c.starts_with(l)))).collect();
        if commands.is_empty() && (done || !fix.commands.is_empty()) {
            continue;
        }
        tail.push(String::new());
        tail.push(format!("{}{place}: {}", finding.id, fix.title));
        if !fix.when.is_empty() {
            tail.push(format!("  when:  {}", fix.when));
        }
        tail.extend(commands.iter().map(|c| format!("  $ {c}")));
        for (label, text) in [("needs:", fix.needs.as_str()), ("cost: ", &fix.cost), ("undo: ", &fix.undo)] {
            if !text.is_empty() && text != "nothing" {
                tail.push(format!("  {label} {text}"));
            }
        }
    }
    if !finding.verify.is_empty() {
        tail.push(String::new());
        tail.push(format!("{} is mended when:", finding.id));
        tail.extend(finding.verify.iter().map(|v| format!("  {v}")));
    }
}

/// Whether a node's line does what a fix wants: the value itself, or any where the fix left it open.
fn answers(have: &Value, want: &Value) -> bool {
    have == want || (matches!(want, Value::Open(_)) && matches!(have, Value::Set(_)))
}

fn is_setting(command: &str) -> bool {
    command.starts_with("export ") || command.starts_with("unset ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_out_of_commands() {
        let fix = Fix {
            commands: [
                "ip -br addr; rdma link show   # which",
                "export NCCL_SOCKET_IFNAME=<interface of the fabric> GLOO_SOCKET_IFNAME=<interface of the fabric>",
                "export NCCL_IB_HCA==mlx5_0 NCCL_NET=IB   # exact",
                "export VLLM_HOST_IP=<this node's address>",
                "export NCCL_IB_TC='106'",
                "unset NCCL_PROTO   # gone",
                "unset them",
            ]
            .map(str::to_owned)
            .to_vec(),
            ..Fix::default()
        };
        assert_eq!(
            settings(&fix),
            [
                Line::open("NCCL_SOCKET_IFNAME", "<interface of the fabric>", ""),
                Line::open("GLOO_SOCKET_IFNAME", "<interface of the fabric>", ""),
                Line::set("NCCL_IB_HCA", "=mlx5_0", "exact"),
                Line::set("NCCL_NET", "IB", "exact"),
                Line::open("VLLM_HOST_IP", "<this node's address>", ""),
                Line::set("NCCL_IB_TC", "106", ""),
                Line::unset("NCCL_PROTO", "gone"),
            ]
        );
    }

    #[test]
    fn lines_for_one_node_stay_with_it() {
        let all = ["node1".to_owned(), "node10".to_owned(), "node2".to_owned()];
        let fix = Fix {
            commands: ["export NCCL_IB_GID_INDEX=3   # on node1: mlx5_0", "export NCCL_IB_GID_INDEX=5   # on node10, mlx5_1", "unset NCCL_PROTO   # on every node"]
                .map(str::to_owned)
                .to_vec(),
            ..Fix::default()
        };
        let of = |host| for_node(settings(&fix), Some(host), &all);
        let proto = || Line::unset("NCCL_PROTO", "on every node");
        assert_eq!(of("node1"), [Line { from_facts: true, ..Line::set("NCCL_IB_GID_INDEX", "3", "mlx5_0") }, proto()]);
        assert_eq!(of("node10"), [Line { from_facts: true, ..Line::set("NCCL_IB_GID_INDEX", "5", "mlx5_1") }, proto()]);
        assert_eq!(of("node2"), [proto(), Line::open("NCCL_IB_GID_INDEX", "", "")]);
    }

    #[test]
    fn places_for_values_are_told_from_values() {
        assert!(["<x>", "=$DEVICES", "…", "=INTERFACE", "$INDEX"].iter().all(|v| is_open(v)));
        assert!(["=mlx5_0:1", "IB", "0", ""].iter().all(|v| !is_open(v)));
    }
}
