//! `--why-not`: why a cause is not among the findings, or what became of it.

mod hooks;

use super::finding::{Evidence, Finding};
use super::query::{Ask, Asked, Hit, Question, number, ranks_text};
use super::{Analysis, RULES, Rule};
use crate::event::tables::{NCCL_STAGE_OVER, PROOF_OF_COLLECTIVE};
use crate::event::{Shape, catalog};
use crate::job::Job;
use serde::Serialize;

/// Most kinds of lines that are named as absent.
const MAX_ABSENT: usize = 6;

/// Most lines that are quoted as seen and not enough.
const MAX_SEEN: usize = 3;

/// What became of a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is among the findings.
    Found,
    /// It is among the findings as the consequence of another.
    Consequence,
    /// The user silenced it.
    Silenced,
    /// It stands only where nothing else does.
    Shadowed,
    /// Lines speak against it.
    RuledOut,
    /// No line speaks for it.
    NoEvidence,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WhyNot {
    /// The cause.
    pub cause: &'static str,
    /// What became of it.
    pub standing: Standing,
    /// Why, most telling first.
    pub reasons: Vec<Reason>,
}

/// A reason with its line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// In words.
    pub text: String,
    /// The line that shows it.
    pub evidence: Option<Evidence>,
}

impl Reason {
    fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), evidence: None }
    }

    fn shown(text: impl Into<String>, evidence: Evidence) -> Self {
        Self { text: text.into(), evidence: Some(evidence) }
    }
}

/// Answers for one cause, by its name or a former one; `None` if there is no such cause.
pub fn why_not(analysis: &Analysis, name: &str) -> Option<WhyNot> {
    let rule = RULES.iter().copied().find(|r| r.cause.id == name || r.cause.aliases.contains(&name))?;
    let (standing, reasons) = listed(analysis, rule).unwrap_or_else(|| absent(analysis, rule));
    Some(WhyNot { cause: rule.cause.id, standing, reasons })
}

/// It is in one of the lists.
fn listed(analysis: &Analysis, rule: &Rule) -> Option<(Standing, Vec<Reason>)> {
    let id = rule.cause.id;
    let quote = |text: String, f: &Finding| Reason { text, evidence: f.evidence.first().cloned() };
    if let Some(f) = analysis.findings.iter().find(|f| f.id == id) {
        return Some(match f.caused_by {
            None => (Standing::Found, vec![quote(format!("It is among the findings: {}.", f.title.trim_end_matches('.')), f)]),
            Some(cause) => (Standing::Consequence, vec![quote(format!("It was found and counts as a consequence of {cause}."), f)]),
        });
    }
    let silenced = analysis.silenced.iter().find_map(|s| Some((s, s.finding.as_ref().filter(|f| f.id == id)?)));
    silenced.map(|(s, f)| (Standing::Silenced, vec![quote(format!("It was found and your configuration silences it: {}", s.reason), f)]))
}

fn absent(analysis: &Analysis, rule: &Rule) -> (Standing, Vec<Reason>) {
    let job = &analysis.job;
    let asked = Asked::default();
    // The rule once more, so that what it looked for is known, whatever it is.
    let claimed = (rule.check)(Ask::recorded(job, &asked));
    let roots = || analysis.findings.iter().filter(|f| f.is_root());
    if let Some(finding) = claimed.first() {
        let others: Vec<&str> = roots().map(|f| f.id).collect();
        let text = format!("It stands only where no cause explains the logs; here {} does.", others.join(", "));
        return (Standing::Shadowed, vec![Reason { text, evidence: finding.evidence.first().cloned() }]);
    }
    let mut reasons = hooks::against(Ask::new(job), rule.cause.id);
    let standing = if reasons.is_empty() { Standing::NoEvidence } else { Standing::RuledOut };
    for f in roots().filter(|f| RULES.iter().any(|r| r.cause.id == f.id && r.explains.contains(&rule.cause.id))) {
        reasons.push(Reason { text: format!("{} was found, of which it would be a consequence.", f.id), evidence: f.evidence.first().cloned() });
    }
    // Where a line speaks against it, what else was not found adds nothing.
    if standing == Standing::NoEvidence {
        reasons.extend(looked_for(job, asked.into_questions()));
    }
    reasons.extend(hooks::hidden(Ask::new(job), rule.cause.id));
    let missing = job.absent_ranks();
    if !missing.is_empty() {
        reasons.push(Reason::plain(format!("Of {} there is no log; it may stand there.", ranks_text(&missing))));
    }
    if reasons.is_empty() {
        reasons.push(Reason::plain("No line that would show it is in these logs."));
    }
    (standing, reasons)
}

/// What the rule asked for: what was there and was not enough, and what was not there.
fn looked_for(job: &Job, questions: Vec<Question>) -> Vec<Reason> {
    let ask = Ask::new(job);
    let (mut seen, mut absent) = (Vec::new(), Vec::new());
    for question in questions {
        match question {
            Question::Kind(kind) if is_context(&kind) => {}
            Question::Kind(kind) => match ask.hits(&kind).first() {
                Some(hit) => seen.push(Reason::shown(format!("Seen, and not enough by itself: {}", meaning(&kind)), Hit::evidence(hit))),
                None => absent.push(Reason::plain(without(ask, &kind))),
            },
            Question::Setting(name) => {
                if let Some(s) = ask.settings(&name).first() {
                    seen.push(Reason::shown(format!("{name} is {}.", s.value), s.evidence()));
                }
            }
            // A whole family says too little to be told.
            Question::Under(_) => {}
        }
    }
    let more = absent.len().saturating_sub(MAX_ABSENT);
    absent.truncate(MAX_ABSENT);
    if more > 0 {
        absent.push(Reason::plain(format!("{more} more kinds of lines were looked for and are not there.")));
    }
    seen.truncate(MAX_SEEN);
    seen.into_iter().chain(absent).collect()
}

/// Kinds that rules read beside their evidence: how far a run came, and that it works.
fn is_context(kind: &str) -> bool {
    const DONE: [&str; 7] = ["mlperf.run_stop", "nccl_tests.done", "vllm.ready", "sglang.ready", "net.using", "net.plugin_assigned", "bootstrap.using"];
    kind.starts_with("init.") || DONE.contains(&kind) || PROOF_OF_COLLECTIVE.contains(&kind) || NCCL_STAGE_OVER.contains(&kind)
}

fn rows(kind: &str) -> impl Iterator<Item = &'static Shape> {
    catalog().shapes().filter(move |s| s.kind == kind)
}

fn meaning(kind: &str) -> &'static str {
    rows(kind).next().map_or("a line of the library.", |s| s.meaning)
}

/// What an absent kind would say, and whether this version could print it.
fn without(ask: Ask<'_>, kind: &str) -> String {
    let first = meaning(kind).split_inclusive(". ").next().unwrap_or_default().trim_end().trim_end_matches('.');
    let text = format!("Not in these logs: {first} ({kind}).");
    // Without one version of the library the bounds of its rows say nothing.
    let (Some(oldest), Some(newest)) = (ask.version(), ask.versions().into_iter().next_back()) else { return text };
    let later = |s: &Shape| number(s.since).is_some_and(|since| since > newest);
    let earlier = |s: &Shape| number(s.until).is_some_and(|until| until < oldest);
    if rows(kind).next().is_none() || !rows(kind).all(|s| later(s) || earlier(s)) {
        return text;
    }
    let since = rows(kind).filter(|s| later(s)).map(|s| s.since).min_by_key(|s| number(s));
    match since {
        Some(since) => format!("{text} Only {since} and later print it; this is {}.{}.{}.", newest.0, newest.1, newest.2),
        None => format!("{text} Versions as new as {}.{}.{} do not print it any more.", oldest.0, oldest.1, oldest.2),
    }
}
