//! collective-mismatch: Ranks called different collectives, or one never called what the others wait for.

mod calls;
mod order;
mod watchdog;

use super::finding::{Confidence, Finding, Fix, Severity};
use super::query::{Ask, Hit, capital, hosts_of, ranks_of, ranks_text};
use super::{Cause, Rule, teardown};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "collective-mismatch",
        aliases: &["desync"],
        summary: "Ranks called different collectives, or one never called what the others wait for.",
        explanation: include_str!("../collective_mismatch.md"),
    },
    check,
    explains: &["peer-crash", "collective-timeout", "missing-rank", "stall"],
    only_alone: false,
};

pub use calls::{counts, unanswered};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let by_calls = if calls::are_whole(ask) { order::compare(ask).or_else(|| calls::compare(ask)) } else { None };
    let found = by_calls.or_else(|| torch_says(ask)).or_else(|| watchdog::compare(ask)).or_else(|| truncated(ask)).or_else(|| super::ras::behind(ask));
    found.into_iter().map(|f| complete(ask, f)).collect()
}

/// torch's own checks name the difference.
fn torch_says(ask: Ask<'_>) -> Option<Finding> {
    let hits = ask.any_of(&["torch.collective_mismatch"]);
    if let Some(first) = hits.first() {
        let ranks = first.num("rank").and_then(|r| u32::try_from(r).ok()).map_or_else(|| ranks_of(&hits), |r| vec![r]);
        let mut f = Finding::new("collective-mismatch", Severity::Error, Confidence::Certain, format!("{} called another collective than the other ranks", ranks_text(&ranks)));
        "torch compared the collectives of all ranks before it issued them and found a difference; its text names both.".clone_into(&mut f.why);
        f.hosts = hosts_of(&hits);
        f.ranks = ranks;
        f.evidence = hits.iter().take(4).map(Hit::evidence).collect();
        return Some(f);
    }
    let models: Vec<Hit<'_>> =
        ask.hits("torch.ddp_mismatch").into_iter().filter(|h| h.num("params").is_some_and(|n| n > 0) && h.num("other_params").is_some_and(|n| n > 0)).collect();
    // With 0 parameters on the other side the answer was never received: that is a failed collective, no difference.
    let first = models.first().filter(|_| !ask.has("torch.watchdog_timeout"))?;
    let mut f = Finding::new(
        "collective-mismatch",
        Severity::Error,
        Confidence::Likely,
        format!("The ranks' models differ: {} against {} parameters", first.get("params")?, first.get("other_params")?),
    );
    "DDP compared the models of the ranks and they have different numbers of parameters, so the ranks would reduce different tensors.".clone_into(&mut f.why);
    f.ranks = ranks_of(&models);
    f.hosts = hosts_of(&models);
    f.evidence = models.iter().take(4).map(Hit::evidence).collect();
    Some(f)
}

/// The two ends of a connection disagree on the size of a message.
fn truncated(ask: Ask<'_>) -> Option<Finding> {
    let hits: Vec<Hit<'_>> = ask.any_of(&["net.socket_truncated", "net.message_truncated"]);
    let first = hits.first()?;
    let sizes = match (first.get("got"), first.get("want")) {
        (Some(got), Some(want)) => format!(" ({got} bytes came where {want} were expected)"),
        _ => String::new(),
    };
    let mut f =
        Finding::new("collective-mismatch", Severity::Error, Confidence::Possible, format!("{} and a peer disagree on the size of a message", ranks_text(&ranks_of(&hits))));
    f.why = format!(
        "A transfer did not fit{sizes}. Either the two ranks called operations of different sizes, or settings that shape messages differ (NCCL_ALGO, NCCL_PROTO, NCCL_BUFFSIZE, channel counts). The calls are not in these logs; NCCL_DEBUG_SUBSYS=INIT,ENV,COLL on all ranks shows which it is."
    );
    f.ranks = ranks_of(&hits);
    f.hosts = hosts_of(&hits);
    f.evidence = hits.iter().take(4).map(Hit::evidence).collect();
    Some(f)
}

fn complete(ask: Ask<'_>, mut f: Finding) -> Finding {
    f.title = capital(&f.title);
    f.evidence.extend(ask.any_of(&["net.socket_truncated", "net.message_truncated"]).iter().take(2).map(Hit::evidence));
    f.fixes = vec![
        Fix {
            title: "Make all ranks take the same path through the program".to_owned(),
            when: "A branch depends on the rank or on its data (if rank == 0, uneven last batch, a skipped step, an exception that is caught)".to_owned(),
            commands: vec!["TORCH_DISTRIBUTED_DEBUG=DETAIL   # torch checks operation and shape before every collective".to_owned()],
            needs: "nothing".to_owned(),
            cost: "slow, for the search only".to_owned(),
            undo: "unset it".to_owned(),
        },
        Fix {
            title: "Record the calls of all ranks and compare again".to_owned(),
            when: "The first difference is not in these logs".to_owned(),
            commands: vec!["NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL NCCL_DEBUG_FILE=nccl.%h.%p.log".to_owned()],
            needs: "nothing".to_owned(),
            cost: "large logs".to_owned(),
            undo: "unset them".to_owned(),
        },
    ];
    f.avoid = vec!["Raising the time-out, or NCCL_ALGO and NCCL_PROTO: the operations stay different.".to_owned()];
    f.verify = vec!["With COLL lines on, the n-th call on each communicator is the same on all ranks.".to_owned()];
    f
}

#[cfg(test)]
mod tests;
