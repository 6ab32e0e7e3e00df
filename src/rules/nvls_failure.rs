//! nvls-failure: NVLink SHARP or multi-node NVLink is there but does not work: Fabric Manager or IMEX.

use super::finding::{Confidence, Finding, Severity};
use super::query::{Ask, Hit, ranks_of, ranks_text};
use super::remedy::{fix, lines, prove};
use super::{Cause, Rule};
use crate::digest::SampleLevel;
use crate::event::Library;

const ID: &str = "nvls-failure";

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: ID,
        aliases: &[],
        summary: "NVLink SHARP or multi-node NVLink is there but does not work: Fabric Manager or IMEX.",
        explanation: include_str!("nvls_failure.md"),
    },
    check,
    explains: &["collective-timeout", "peer-crash", "missing-rank", "bootstrap-unreachable", "app-crash", "stall"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    out.extend(fatal(ask).or_else(|| given_up(ask)));
    out
}

/// A CUDA call of NVLink SHARP's set-up failed and with it the init.
fn fatal(ask: Ask<'_>) -> Option<Finding> {
    let failures = ask.any_of(&["cuda.failure", "torch.cuda_error"]);
    let memory = |h: &Hit<'_>| h.text().contains("out of memory");
    let here: Vec<Hit<'_>> = failures.iter().copied().filter(|h| h.entry.first.file.contains("nvls") && !memory(h)).collect();
    // Quoted by a framework the place is lost; on NVIDIA this text comes from multicast set-up.
    let quoted: Vec<Hit<'_>> = if ask.job.library == Some(Library::Rccl) {
        Vec::new()
    } else {
        failures.iter().copied().filter(|h| h.entry.first.file.is_empty() && h.text().contains("Cuda failure 401")).collect()
    };
    let hits: Vec<Hit<'_>> = here.iter().chain(&quoted).copied().collect();
    // NCCL goes on without NVLS where it says so; else its WARN ends the init.
    // An exception quotes the WARN without its level.
    let refused = |h: &Hit<'_>| !memory(h) && !h.text().contains("roceeding without") && h.entry.first.level != Some(SampleLevel::Info);
    let bound: Vec<Hit<'_>> = ask.any_of(&["nvls.bind_failed", "nvls.create_failed"]).into_iter().filter(refused).collect();
    let sure = !here.is_empty() || !bound.is_empty();
    let hits = if hits.is_empty() { bound } else { hits };
    let first = hits.first()?;
    let text = first.get("text").or_else(|| first.get("error")).unwrap_or("error").trim_matches('\'').to_owned();
    let open = text.contains("initialization error");
    let confidence = if open {
        Confidence::Possible
    } else if sure {
        Confidence::Certain
    } else {
        Confidence::Likely
    };
    let who = ranks_text(&ranks_of(&hits));
    let mut finding = Finding::new(ID, Severity::Error, confidence, format!("NVLink SHARP set-up fails on {who}: {text}"));
    prove(&mut finding, &hits);
    finding.why = if open {
        "A CUDA call in NCCL's NVLink SHARP code reports `initialization error`. That text leaves two readings: the Fabric Manager or NVSwitch set-up of this node, or a GPU in a bad state (look for Xid lines in the kernel log).".to_owned()
    } else {
        "The failing call stands in NCCL's NVLink SHARP code (multicast memory over NVSwitch). The GPUs offer it, but the fabric behind does not work: Fabric Manager not running, started before the driver was ready or restarted without a reset of the GPUs, a virtual machine or container without the fabric's devices, or IMEX missing on multi-node NVLink.".to_owned()
    };
    advise(&mut finding);
    Some(finding)
}

/// NCCL goes on without it.
fn given_up(ask: Ask<'_>) -> Option<Finding> {
    let hits = ask.any_of(&["nvls.bind_failed", "nvls.create_failed", "nvls.hint", "mnnvl.unsupported"]);
    let first = hits.first()?;
    let imex = first.entry.kind == "mnnvl.unsupported";
    let what = if imex { "Multi-node NVLink is there but not usable (IMEX)" } else { "NVLink SHARP is there but does not work; NCCL goes on without it" };
    let confidence = if imex { Confidence::Possible } else { Confidence::Likely };
    let severity = if imex { Severity::Info } else { Severity::Warning };
    let mut finding = Finding::new(ID, severity, confidence, what.to_owned());
    prove(&mut finding, &hits);
    finding.why = "The GPUs report that they can do it, and the set-up fails. Collectives still work over plain NVLink, with less bandwidth for large all-reduces; the Fabric Manager's state is the usual reason.".to_owned();
    advise(&mut finding);
    Some(finding)
}

fn advise(finding: &mut Finding) {
    finding.fixes = vec![
        fix("Run without NVLink SHARP", "Now, to get the job going.", &["export NCCL_NVLS_ENABLE=0"], "nothing", "some bandwidth of large all-reduces", "unset NCCL_NVLS_ENABLE"),
        fix(
            "Restart the Fabric Manager together with the GPUs",
            "On the host, with no job running; its version must be the driver's. GPUs that were set up by an earlier start of it refuse multicast until they are reset.",
            &[
                "systemctl status nvidia-fabricmanager",
                "sudo systemctl stop nvidia-fabricmanager && sudo nvidia-smi --gpu-reset && sudo systemctl start nvidia-fabricmanager   # or reboot",
            ],
            "root",
            "all GPU jobs of the node must be stopped",
            "",
        ),
        fix("Set up IMEX and its channel", "Multi-node NVLink (GB200, GB300).", &["nvidia-imex-ctl -N", "ls /dev/nvidia-caps-imex-channels"], "root", "none", ""),
    ];
    finding.avoid = lines(&["NCCL_P2P_DISABLE=1: it gives up NVLink altogether."]);
    finding.verify = lines(&["nvidia-smi -q | grep -A3 -i fabric   # State: Completed, Status: Success", "journalctl -u nvidia-fabricmanager"]);
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::Finding;

    fn found(text: &str) -> Option<Finding> {
        analyze_texts(&[("rank0.log", text)]).findings.into_iter().find(|f| f.id == super::ID)
    }

    #[test]
    fn the_place_makes_it_certain() {
        let f = found("h1:1:2 [0] transport/nvls.cc:158 NCCL WARN Cuda failure 1 'invalid argument'\nh1:1:2 [0] NCCL INFO transport/nvls.cc:330 -> 1\n").expect("nvls");
        assert_eq!((f.severity, f.confidence), (super::Severity::Error, super::Confidence::Certain));
        let f = found("h1:1:2 [2] transport/nvls.cc:246 NCCL WARN Cuda failure 3 'initialization error'\n").expect("open");
        assert_eq!(f.confidence, super::Confidence::Possible);
    }

    #[test]
    fn an_exception_that_quotes_the_refusal_is_no_remark() {
        let f =
            found("Last error:\nFailed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'the operation cannot be performed in the present state'.\n")
                .expect("quoted");
        assert_eq!((f.severity, f.confidence), (super::Severity::Error, super::Confidence::Certain));
    }

    #[test]
    fn going_on_without_it_is_a_warning() {
        let f =
            found("h1:1:2 [0] NCCL INFO Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 1 'invalid argument'. Proceeding without NVLS support.\n")
                .expect("warning");
        assert_eq!(f.severity, super::Severity::Warning);
    }

    #[test]
    fn a_warning_that_the_multicast_memory_cannot_be_bound_ends_the_init() {
        for advice in ["Do not force-enable NVLS (NCCL_NVLS_ENABLE=1)", "Disable NVLS (NCCL_NVLS_ENABLE=0)"] {
            let text = format!(
                "h1:1:2 [0] transport/nvls.cc:284 NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'the operation cannot be performed in the present state'.\nThis is usually caused by a system or configuration error in the Fabric Manager or NVSwitches.\n{advice} if you wish to avoid this error in the future.\n"
            );
            let a = analyze_texts(&[("rank0.log", &text)]);
            assert_eq!((a.findings[0].id, a.findings[0].severity, a.findings[0].confidence), (super::ID, super::Severity::Error, super::Confidence::Certain));
            assert_eq!(a.verdict, crate::rules::Verdict::Failed);
        }
    }

    #[test]
    fn absent_nvls_and_other_files_are_silent() {
        for text in [
            "h1:1:2 [0] NCCL INFO NVLS multicast support is not available on dev 0\n",
            "h1:1:2 [0] transport/nvls.cc:158 NCCL WARN Cuda failure 2 'out of memory'\n",
            "h1:1:2 [0] transport/p2p.cc:158 NCCL WARN Cuda failure 1 'invalid argument'\n",
        ] {
            assert!(found(text).is_none(), "{text}");
        }
    }
}
