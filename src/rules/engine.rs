//! The engine: asks every rule, then orders, folds consequences under their cause and drops what only stands alone.

use super::finding::{Confidence, Finding, Severity, Verdict};
use super::query::Ask;
use super::user::{self, User};
use super::{Analysis, RULES, Rule, expectation_failed, hints, notes, teardown, tree, unknown, verdict};
use crate::expect::Expectations;
use crate::job::Job;

/// Asks all rules.
pub fn run(job: Job) -> Analysis {
    run_with(job, Wishes::default())
}

/// What the user adds to the built-in rules.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wishes<'a> {
    /// Own rules and silences.
    pub user: Option<&'a User>,
    /// What the job is held to.
    pub expect: Option<&'a Expectations>,
}

/// Asks all rules, the user's own among them; holds the job to what is expected of it and sets aside what the user
/// silenced.
pub fn run_with(job: Job, wishes: Wishes<'_>) -> Analysis {
    let user = wishes.user;
    let ask = Ask::new(&job);
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|r| (r.check)(ask)).collect();
    findings.extend(user.into_iter().flat_map(|u| u.check(ask)));
    let mut undecided = Vec::new();
    if let Some(expected) = wishes.expect {
        let judgement = expectation_failed::judge(ask, expected);
        expectation_failed::add(&mut findings, judgement.findings);
        undecided = judgement.undecided;
    }
    let end = teardown::Teardown::of(ask);
    for finding in &mut findings {
        hints::attach(ask, finding);
        tidy(finding);
        soften(ask, &end, finding);
    }
    // What is silenced explains nothing: its consequences must stand by themselves.
    let mut silenced = user.map_or_else(Vec::new, |u| u.silence_findings(&mut findings));
    fold_consequences(&mut findings);
    drop_lonely(&mut findings);
    order(&mut findings);
    tree::decide(ask, &mut findings);
    let quoted = findings.iter().chain(silenced.iter().filter_map(|s| s.finding.as_ref()));
    let mut unknown = unknown::group(ask, quoted);
    silenced.extend(user.map_or_else(Vec::new, |u| u.silence_warnings(&mut unknown)));
    let verdict = verdict::decide(ask, &findings);
    let mut notes = notes::write(ask, &findings, verdict);
    notes.extend(user.map(user::note));
    notes.extend(undecided.iter().cloned());
    let walk = tree::walk(ask, &findings, verdict);
    if verdict == Verdict::Stalled {
        notes.extend(tree::note(&walk));
    }
    Analysis { job, findings, verdict, notes, unknown, silenced, walk, why_not: Vec::new(), undecided }
}

fn tidy(finding: &mut Finding) {
    finding.ranks.sort_unstable();
    finding.ranks.dedup();
    let mut seen = std::collections::BTreeSet::new();
    finding.evidence.retain(|e| seen.insert((e.file.clone(), e.line)));
    finding.evidence.truncate(12);
}

/// An error whose every proof stands before the program's own word that all its work is done broke nothing for good.
fn soften(ask: Ask<'_>, end: &teardown::Teardown<'_>, finding: &mut Finding) {
    let survived = |e: &super::finding::Evidence| ask.job.streams.iter().position(|s| s.path == e.file).is_some_and(|stream| end.done_after(stream, e.line));
    let ended_badly = || ask.any_of(&["app.exit", "app.exit_signal", "launch.mpi_exit"]).iter().any(|h| h.num("code").is_none_or(|c| c != 0));
    if finding.severity == Severity::Error && !finding.evidence.is_empty() && finding.evidence.iter().all(survived) && !ended_badly() {
        finding.severity = Severity::Warning;
        finding.confidence = finding.confidence.max(Confidence::Likely);
        finding.why.push_str(" The program finished its work all the same.");
    }
}

/// Place of a cause in the order of suspicion; earlier ones can be the reason of later ones, never the reverse.
fn place(id: &str) -> usize {
    RULES.iter().position(|r| r.cause.id == id).unwrap_or(usize::MAX)
}

fn rule(id: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|r| r.cause.id == id)
}

/// Whether `cause` may stand as the reason of another finding: an error, or a warning that is at least likely.
fn can_explain(cause: &Finding, consequence: &Finding) -> bool {
    let strong = cause.severity == Severity::Error || (cause.severity == Severity::Warning && cause.confidence <= Confidence::Likely);
    strong && (cause.confidence <= Confidence::Likely || cause.confidence <= consequence.confidence)
}

fn fold_consequences(findings: &mut [Finding]) {
    let named: Vec<&'static str> = findings.iter().map(|f| f.id).collect();
    for i in 0..findings.len() {
        if let Some(cause) = findings[i].caused_by {
            // A rule may name the reason itself; a reason that is not in the list is no reason.
            if cause == findings[i].id || !named.contains(&cause) {
                findings[i].caused_by = None;
            } else {
                continue;
            }
        }
        let reason = (0..findings.len())
            .filter(|j| *j != i && findings[*j].id != findings[i].id)
            .filter(|j| place(findings[*j].id) < place(findings[i].id) && can_explain(&findings[*j], &findings[i]))
            // A rule may have named this finding as its own reason.
            .filter(|j| findings[*j].caused_by != Some(findings[i].id))
            .filter(|j| rule(findings[*j].id).is_some_and(|r| r.explains.contains(&findings[i].id)))
            .min_by_key(|j| (findings[*j].severity, findings[*j].confidence, place(findings[*j].id)));
        findings[i].caused_by = reason.map(|j| findings[j].id);
    }
}

fn drop_lonely(findings: &mut Vec<Finding>) {
    // A mere guess at a slow path does not explain why a job stands still.
    let strong = |f: &Finding| f.severity == Severity::Error || (f.severity == Severity::Warning && f.confidence <= Confidence::Likely);
    let others = findings.iter().any(|f| f.is_root() && strong(f) && rule(f.id).is_none_or(|r| !r.only_alone));
    if others {
        findings.retain(|f| rule(f.id).is_none_or(|r| !r.only_alone));
    }
}

/// Errors before warnings, causes before consequences, most certain first, then by suspicion.
fn order(findings: &mut [Finding]) {
    findings.sort_by_key(|f| (f.severity == Severity::Info, f.caused_by.is_some(), f.severity, f.confidence, place(f.id)));
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::{Severity, Verdict};

    #[test]
    fn what_the_finished_run_survived_is_no_error() {
        let failed = "hosta:40:41 [0] NCCL WARN NET/IB: Got completion from peer 10.0.0.2<5001> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) vendor_err=129\n";
        let done = "{'train_runtime': 812.4, 'train_samples_per_second': 31.5, 'train_loss': 0.41, 'epoch': 3.0}\n";
        let judge = |text: String| {
            let a = analyze_texts(&[("job.log", &text)]);
            (a.findings[0].severity, a.verdict)
        };
        assert_eq!(judge(format!("{failed}{done}")), (Severity::Warning, Verdict::Degraded));
        assert_eq!(judge(format!("{failed}{done}  exitcode  : 1 (pid: 99)\n")).0, Severity::Error);
        assert_eq!(judge(failed.to_owned()).0, Severity::Error);
    }
}
