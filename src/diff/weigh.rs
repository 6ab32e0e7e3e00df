//! How likely a difference explains the failure, and why.

use super::facts::Key;
use super::{Difference, Topic, Value, Weight};
use crate::rules::{Analysis, Confidence, Finding, Severity};

/// From this score on a difference is likely to explain the failure.
const LIKELY: u32 = 75;

/// From this score on it may.
const POSSIBLE: u32 = 40;

/// What a new finding of the bad run adds if it names the fact.
const NAMED: u32 = 25;

/// What a variable decides, the first fitting start of its name: score, why.
const SETTINGS: &[(&str, u32, &str)] = &[
    ("NCCL_DEBUG", 5, "it changes only what is logged"),
    ("NCCL_SET_THREAD_NAME", 5, "it changes only what is shown"),
    ("NCCL_IB_DISABLE", 80, "it takes RDMA away or gives it back"),
    ("NCCL_IB_GID_INDEX", 80, "it picks the address that RDMA uses, and the right one differs between nodes"),
    ("NCCL_IB_HCA", 78, "it picks the RDMA devices"),
    ("NCCL_IB_ROCE_VERSION_NUM", 72, "it picks the address that RDMA uses"),
    ("NCCL_IB_ADDR", 72, "it picks the address that RDMA uses"),
    ("NCCL_IB_TIMEOUT", 50, "it decides how long RDMA retries"),
    ("NCCL_IB_RETRY_CNT", 50, "it decides how often RDMA retries"),
    ("NCCL_IB_", 62, "it changes how RDMA is used"),
    ("NCCL_NET_GDR", 65, "it decides about GPU Direct RDMA"),
    ("NCCL_NET", 78, "it picks the network"),
    ("NCCL_SOCKET_IFNAME", 78, "it picks the interface of the bootstrap and of TCP"),
    ("NCCL_SOCKET", 60, "it changes how TCP is used"),
    ("NCCL_OOB_NET", 70, "it picks the network of the bootstrap"),
    ("NCCL_P2P", 78, "it decides whether GPUs reach each other directly"),
    ("NCCL_SHM", 76, "it decides whether ranks share memory"),
    ("NCCL_CUMEM", 70, "it decides how GPU memory is shared"),
    ("NCCL_NVLS", 68, "it decides about NVLink SHARP"),
    ("NCCL_ALGO", 66, "it forces an algorithm"),
    ("NCCL_PROTO", 66, "it forces a protocol"),
    ("NCCL_TOPO", 66, "it replaces the topology"),
    ("NCCL_GRAPH", 66, "it replaces the graphs"),
    ("NCCL_MIN_", 60, "it changes the number of channels"),
    ("NCCL_MAX_", 60, "it changes the number of channels"),
    ("NCCL_", 55, "it changes how NCCL works"),
    ("RCCL_", 55, "it changes how RCCL works"),
    ("HSA_", 65, "it changes how the AMD runtime works"),
    ("GLOO_", 60, "it picks what PyTorch's own meetings use"),
    ("VLLM_HOST_IP", 65, "it picks the address that the others call"),
    ("CUDA_VISIBLE_DEVICES", 55, "it picks the GPUs"),
    ("HIP_VISIBLE_DEVICES", 55, "it picks the GPUs"),
    ("ROCR_VISIBLE_DEVICES", 55, "it picks the GPUs"),
    ("TORCH_NCCL_", 45, "it changes how PyTorch waits for NCCL"),
];

/// Weighs one difference in the light of what is wrong in the bad run.
pub fn weigh((topic, name): &Key, good: Vec<Value>, bad: Vec<Value>, analysis: &Analysis) -> Difference {
    let (mut score, mut why) = base(*topic, name, &good, &bad, analysis);
    if *topic != Topic::Finding
        && score > 5
        && let Some(finding) = analysis.findings.iter().find(|f| f.severity != Severity::Info && names(f, *topic, name, &bad))
    {
        score += NAMED;
        why = format!("{why}; the finding {} of the bad run names it", finding.id);
    }
    let weight = match score {
        LIKELY.. => Weight::Likely,
        POSSIBLE.. => Weight::Possible,
        _ => Weight::Minor,
    };
    Difference { topic: *topic, name: name.clone(), good, bad, weight, why, score }
}

fn base(topic: Topic, name: &str, good: &[Value], bad: &[Value], analysis: &Analysis) -> (u32, String) {
    let said = |score: u32, why: &str| (score, why.to_owned());
    match topic {
        Topic::Finding => finding(name, bad, analysis),
        Topic::Version if matches!(name, "NCCL" | "RCCL") => match (good.len(), bad.len()) {
            (_, 2..) => said(85, "the ranks of the bad run have different versions, which need not understand each other"),
            (0, _) | (_, 0) => said(30, "one of the runs does not print it"),
            _ => said(70, "another version has other defaults and other faults"),
        },
        Topic::Version if good.is_empty() || bad.is_empty() => said(25, "one of the runs does not print it"),
        Topic::Version => said(60, "another driver offers other ways between GPUs"),
        Topic::Setting => {
            let row = SETTINGS.iter().find(|(start, ..)| name.starts_with(start));
            row.map_or_else(|| said(42, "a program may read it"), |(_, score, why)| said(*score, why))
        }
        Topic::Network | Topic::Interface if good.is_empty() || bad.is_empty() => said(38, "one of the runs does not say it"),
        Topic::Network => said(76, "data between nodes takes another way"),
        Topic::Interface => said(68, "the ranks meet, or send, over another interface"),
        Topic::Hca => said(70, "other RDMA devices carry the data, or none"),
        Topic::Gdr => said(52, "data takes, or no longer takes, the detour through host memory"),
        Topic::Transport if bad.is_empty() => said(58, "the bad run has no such connection"),
        Topic::Transport if good.is_empty() => said(58, "only the bad run has such connections"),
        Topic::Transport => said(36, "the same sort of connection in another number"),
        Topic::Channels => said(40, "the number of channels follows from topology and settings"),
        Topic::Algorithm => said(34, "the choice follows from topology and settings"),
        Topic::Host if name.contains("command line") || name.contains("access control") => said(76, "it decides whether GPUs and NICs reach each other directly"),
        Topic::Host if ["state of", "link of"].iter().any(|s| name.starts_with(s)) => said(78, "what is down carries nothing"),
        Topic::Host if name.contains("MTU") => said(76, "both ends and the switch must agree on it"),
        Topic::Host => said(62, "the machine changed"),
        Topic::Gpu => said(50, "the job runs on other GPUs"),
        Topic::Size => said(48, "a job of another size uses other ways"),
        Topic::Stage => said(41, "it shows where the bad run stopped, not why"),
    }
}

fn finding(name: &str, bad: &[Value], analysis: &Analysis) -> (u32, String) {
    if bad.is_empty() {
        return (20, "only the good run shows it".to_owned());
    }
    let Some(finding) = analysis.findings.iter().find(|f| f.id == name) else { return (POSSIBLE, String::new()) };
    let title = finding.title.trim_end_matches('.');
    if let Some(cause) = finding.caused_by {
        return (43, format!("{title}; it follows from {cause}"));
    }
    let score = match (finding.severity, finding.confidence) {
        (Severity::Error, Confidence::Certain) => 110,
        (Severity::Error, _) => 95,
        (Severity::Warning, Confidence::Certain | Confidence::Likely) => 82,
        _ => 60,
    };
    (score, title.to_owned())
}

/// Whether a finding speaks of the fact: a variable by its name, else by the value that only the bad run has.
fn names(finding: &Finding, topic: Topic, name: &str, bad: &[Value]) -> bool {
    let said = |word: &str| [&finding.title, &finding.why].into_iter().any(|t| has_word(t, word)) || finding.evidence.iter().any(|e| has_word(&e.text, word));
    match topic {
        Topic::Setting => said(name),
        Topic::Host => name.split([' ', ':']).any(|w| w.len() > 4 && w.bytes().any(|b| b.is_ascii_digit()) && said(w)),
        Topic::Interface | Topic::Hca | Topic::Network => bad.iter().flat_map(|v| v.value.split([' ', ':'])).any(|w| w.len() > 2 && said(w)),
        Topic::Version => bad.len() > 1 && finding.id.contains("version"),
        _ => false,
    }
}

fn has_word(text: &str, word: &str) -> bool {
    let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    text.match_indices(word).any(|(at, _)| edge(text[..at].chars().next_back()) && edge(text[at + word.len()..].chars().next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_whole_word() {
        assert!(has_word("NCCL_IB_DISABLE is 1", "NCCL_IB_DISABLE") && has_word("over docker0.", "docker0"));
        assert!(!has_word("NCCL_IB_DISABLED", "NCCL_IB_DISABLE") && !has_word("xdocker0", "docker0") && !has_word("", "a"));
    }

    #[test]
    fn no_row_hides_behind_a_shorter_one() {
        for (i, (start, ..)) in SETTINGS.iter().enumerate() {
            assert!(SETTINGS[..i].iter().all(|(s, ..)| !start.starts_with(s)), "{start}");
        }
    }
}
