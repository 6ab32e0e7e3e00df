//! workaround-left: A workaround is still set that is not needed or hides something.

use super::finding::{Confidence, Finding, Fix, Severity};
use super::network;
use super::query::{Ask, SettingHit};
use super::remedy::sh;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "workaround-left",
        aliases: &[],
        summary: "A workaround is still set that is not needed or hides something.",
        explanation: include_str!("workaround_left.md"),
    },
    check,
    explains: &[],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let mut left: Vec<(SettingHit<'_>, &'static str)> = Vec::new();
    if !ask.multi_node() && !network::seen_devices(ask).is_empty() {
        left.extend(ask.switched_on("NCCL_IB_DISABLE").map(|s| (s, "switches IB off beside HCAs that the log names; as soon as the job spans nodes, it goes over TCP")));
    }
    if ask.hits("host.topo_row").iter().any(|h| h.text().split_whitespace().any(|w| w == "OK" || w.strip_prefix("NV").is_some_and(|n| n.parse::<u32>().is_ok()))) {
        left.extend(ask.switched_on("NCCL_P2P_DISABLE").map(|s| (s, "switches P2P off between GPUs whose topology offers it")));
    }
    // Where the pinned entry has just failed, that is the finding.
    if ask.version().is_some_and(|v| v >= (2, 21, 0)) && ask.any_of(&["ib.modify_qp", "ib.completion"]).is_empty() {
        let pinned = ask.setting_where("NCCL_IB_GID_INDEX", |v| v.parse::<i64>().is_ok_and(|n| n >= 0));
        left.extend(
            pinned.map(|s| (s, "pins a GID index; since 2.21 the library finds the right entry on each node by itself, and a pinned number breaks when the table changes")),
        );
    }
    let above = |name: &'static str, limit: i64| ask.setting_where(name, |v| v.parse::<i64>().is_ok_and(|n| n > limit));
    left.extend(above("NCCL_IB_TIMEOUT", 22).map(|s| (s, "makes a dead link take minutes to show")));
    left.extend(above("NCCL_SOCKET_RETRY_CNT", 34).map(|s| (s, "makes an address that does not answer take long to show")));
    left.into_iter().map(|(s, why)| finding(&s, why)).take(3).collect()
}

fn finding(s: &SettingHit<'_>, why: &str) -> Finding {
    let mut f = Finding::new(RULE.cause.id, Severity::Info, Confidence::Certain, format!("{}={} is set", s.name, s.value));
    f.why = format!("{}={} {why}.", s.name, s.value);
    f.ranks = s.rank().into_iter().collect();
    f.evidence = vec![s.evidence()];
    f.fixes = vec![Fix {
        title: format!("Run once without {}", s.name),
        when: "Nobody remembers what it was for.".to_owned(),
        commands: vec![format!("unset {}", s.name)],
        needs: "nothing".to_owned(),
        cost: "What it worked around may show again.".to_owned(),
        undo: format!("export {}={}", s.name, sh(s.value)),
    }];
    f
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::Severity;

    fn found(text: &str) -> Vec<(String, Severity)> {
        analyze_texts(&[("rank0.log", text)]).findings.into_iter().filter(|f| f.id == "workaround-left").map(|f| (f.title, f.severity)).collect()
    }

    #[test]
    fn a_pinned_index_in_a_version_that_needs_none() {
        let log = |v: &str| format!("alpha:1:1 [0] NCCL INFO NCCL version {v}+cuda12.4\nalpha:1:1 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 3.\n");
        assert_eq!(found(&log("2.27.7")), [("NCCL_IB_GID_INDEX=3 is set".to_owned(), Severity::Info)]);
        assert!(found(&log("2.19.3")).is_empty());
    }

    #[test]
    fn ib_off_on_one_node_with_an_hca() {
        let log = "alpha:1:1 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\nhca_id: mlx5_0\n";
        assert_eq!(found(log).len(), 1);
        assert!(found("alpha:1:1 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\n").is_empty());
    }
}
