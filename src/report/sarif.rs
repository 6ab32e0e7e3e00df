//! SARIF 2.1.0, for code scanning and viewers.

use super::view::{confidence, severity, shorten};
use super::{clean, json, uncoloured, verdict};
use crate::rules::{Analysis, Cause, Evidence, Finding, Severity, cause, causes};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Most places beside the first one of a result.
const MAX_RELATED: usize = 20;

/// Writes the log file.
pub fn write(analysis: &Analysis, out: &mut dyn Write) -> io::Result<()> {
    json::pretty(&document(analysis), out)
}

fn document(analysis: &Analysis) -> Value {
    let known: Vec<&Cause> = causes().collect();
    let mut ids: Vec<&str> = known.iter().map(|c| c.id).collect();
    let mut rules: Vec<Value> = known.iter().map(|c| rule(c)).collect();
    for finding in &analysis.findings {
        if cause(finding.id).is_none() && !ids.contains(&finding.id) {
            ids.push(finding.id);
            rules.push(json!({"id": finding.id, "shortDescription": {"text": finding.id}}));
        }
    }
    let inputs: Vec<&str> = analysis.job.streams.iter().map(|s| s.path.as_str()).collect();
    let results: Vec<Value> = analysis.findings.iter().map(|f| result(f, ids.iter().position(|id| *id == f.id), &inputs)).collect();
    let read = analysis.job.streams.iter().all(|s| s.problem.is_none());
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "ncclog", "semanticVersion": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "invocations": [{"executionSuccessful": read}],
            "columnKind": "utf16CodeUnits",
            "artifacts": inputs.iter().map(|p| json!({"location": {"uri": uri(p)}})).collect::<Vec<_>>(),
            "results": results,
            "properties": {"verdict": verdict(analysis.verdict).to_ascii_lowercase(), "notes": analysis.notes}
        }]
    })
}

fn rule(cause: &Cause) -> Value {
    json!({
        "id": cause.id,
        "shortDescription": {"text": cause.summary},
        "help": {"text": cause.explanation, "markdown": cause.explanation}
    })
}

fn result(finding: &Finding, rule: Option<usize>, inputs: &[&str]) -> Value {
    let level = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    };
    let mut text = clean(&finding.title).into_owned();
    if !finding.why.is_empty() {
        text = format!("{}. {}", text.trim_end_matches('.'), clean(&finding.why));
    }
    for fix in &finding.fixes {
        text = format!("{text}\n\nFix: {}", clean(&fix.title));
        for command in &fix.commands {
            text = format!("{text}\n    {}", clean(command));
        }
    }
    let mut places = finding.evidence.iter();
    // Viewers drop a result without a place.
    let first = places.next().map(location).or_else(|| inputs.first().map(|p| json!({"physicalLocation": {"artifactLocation": {"uri": uri(p)}}})));
    let related: Vec<Value> = places.take(MAX_RELATED).enumerate().map(|(i, e)| numbered(location(e), i + 1)).collect();
    let mut result = json!({
        "ruleId": finding.id,
        "level": level,
        "message": {"text": text},
        "locations": first.into_iter().collect::<Vec<_>>(),
        "relatedLocations": related,
        "partialFingerprints": {"ncclog/v1": format!("{}:{}", finding.id, shorten(&clean(&finding.title), 300))},
        "properties": {
            "severity": severity(finding.severity), "confidence": confidence(finding.confidence),
            "ranks": finding.ranks, "hosts": finding.hosts, "causedBy": finding.caused_by
        }
    });
    if let (Some(rule), Some(object)) = (rule, result.as_object_mut()) {
        object.insert("ruleIndex".to_owned(), json!(rule));
    }
    result
}

fn location(evidence: &Evidence) -> Value {
    let rank = evidence.rank.map_or(String::new(), |r| format!("rank {r}: "));
    json!({
        "physicalLocation": {
            "artifactLocation": {"uri": uri(&evidence.file)},
            "region": {"startLine": evidence.line.max(1), "snippet": {"text": evidence.text}}
        },
        "message": {"text": format!("{rank}{}", clean(uncoloured(&evidence.text).trim()))}
    })
}

fn numbered(mut location: Value, id: usize) -> Value {
    if let Some(object) = location.as_object_mut() {
        object.insert("id".to_owned(), json!(id));
    }
    location
}

/// A path as a URI reference.
fn uri(path: &str) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(path.len() + 8);
    if path.starts_with('/') {
        out.push_str("file://");
    }
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(byte as char),
            b'\\' => out.push('/'),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn paths_become_uri_references() {
        assert_eq!(uri("logs/rank 0.log"), "logs/rank%200.log");
        assert_eq!(uri("/var/log/a:b.log"), "file:///var/log/a%3Ab.log");
        assert_eq!(uri("a.tar!b.log"), "a.tar%21b.log");
        assert_eq!(uri("-"), "-");
        assert_eq!(uri("javascript:x"), "javascript%3Ax");
    }
}
