//! gpu-error: A GPU failed: Xid, ECC, illegal memory access, a faulting kernel. NCCL is only the messenger.

mod rocm;
mod xid;

use super::finding::{Confidence, Finding, Fix, Severity};
use super::query::{Ask, Hit, capital, hosts_of, ranks_of, ranks_text};
use super::{Cause, Rule, teardown};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "gpu-error",
        aliases: &["xid"],
        summary: "A GPU failed: Xid, ECC, illegal memory access, a faulting kernel. NCCL is only the messenger.",
        explanation: include_str!("../gpu_error.md"),
    },
    check,
    explains: &["app-crash", "peer-crash", "missing-rank", "collective-mismatch", "collective-timeout", "stall", "ib-completion-error", "roce-qp-gid-mtu", "nvls-failure"],
    only_alone: false,
};

/// A text of the CUDA or HIP runtime that means a failed GPU or kernel: words, what it means, whether it is hardware.
const TEXTS: &[(&str, &str, bool)] = &[
    ("uncorrectable ECC", "the GPU's memory has an uncorrectable ECC error", true),
    ("illegal memory access", "a kernel touched an address that is not mapped", false),
    ("unspecified launch failure", "a kernel died with an exception", false),
    ("misaligned address", "a kernel used a misaligned address", false),
    ("illegal instruction", "a kernel ran an illegal instruction", false),
    ("invalid program counter", "a kernel jumped to an invalid address", false),
    ("hardware stack error", "a kernel's stack was corrupted", false),
    ("device-side assert", "an assertion in a kernel failed (mostly an index out of range in the program)", false),
    ("launch timed out", "a kernel ran longer than the driver allows", false),
    ("NVLink was detected", "the driver met an NVLink error", true),
    ("NVLink error", "the driver met an NVLink error", true),
    ("unknown error", "the driver gave no reason", true),
    ("device is lost", "the GPU no longer answers", true),
    ("GPU is lost", "the GPU no longer answers", true),
    ("fallen off the bus", "the GPU no longer answers on PCIe", true),
    ("unrecoverable error", "the GPU needs a reset", true),
    ("system not yet initialized", "the GPUs are not set up yet: mostly the fabric manager of the NVSwitches does not run", true),
    ("Memory access fault", "a kernel touched memory that is not mapped", false),
];

/// What began: the record, its meaning, whether it points to hardware, and how sure the reading is.
struct Fault<'a> {
    hit: Hit<'a>,
    meaning: String,
    hardware: bool,
    confidence: Confidence,
}

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let mut faults = xids(ask);
    faults.extend(runtime_texts(ask));
    faults.extend(rocm::faults(ask));
    faults.extend(wrong_results(ask));
    if faults.is_empty() {
        faults.extend(bare(ask));
    }
    if faults.is_empty() { Vec::new() } else { vec![write(ask, &faults)] }
}

fn xids(ask: Ask<'_>) -> Vec<Fault<'_>> {
    let mut list: Vec<Fault<'_>> = ask
        .hits("kernel.xid")
        .into_iter()
        .filter_map(|hit| {
            let number = hit.num("xid")?;
            let device = hit.get("device").unwrap_or("?");
            let row = xid::lookup(number);
            let earlier = xid::caused_by(hit.text()).and_then(|n| Some((n, xid::lookup(n)?)));
            let meaning = match (row, earlier) {
                (_, Some((n, earlier))) => format!("Xid {number} on {device} follows Xid {n}: {}", earlier.meaning),
                (Some(row), None) => format!("Xid {number} on {device}: {}", row.meaning),
                (None, None) => format!("Xid {number} on {device}"),
            };
            let hardware = earlier.map_or(row.is_some_and(|r| r.hardware), |(_, e)| e.hardware);
            // A torn down channel without its reason also comes from a plain kill of the program.
            let confidence = if (matches!(number, 43 | 45) && earlier.is_none()) || foreign(ask, &hit) { Confidence::Possible } else { Confidence::Certain };
            Some(Fault { hit, meaning, hardware, confidence })
        })
        .collect();
    list.extend(ask.hits("kernel.gpu_lost").into_iter().map(|hit| {
        let meaning = format!("GPU {} has fallen off the bus", hit.get("device").unwrap_or("?"));
        Fault { hit, meaning, hardware: true, confidence: Confidence::Certain }
    }));
    list.extend(ask.hits("kernel.sxid").into_iter().map(|hit| {
        let meaning = format!("an NVSwitch reported SXid {}", hit.get("sxid").unwrap_or("?"));
        Fault { hit, meaning, hardware: true, confidence: Confidence::Likely }
    }));
    // The first real fault counts, torn down channels follow it.
    if list.iter().any(|f| f.confidence == Confidence::Certain) {
        list.retain(|f| f.confidence != Confidence::Possible);
    }
    list
}

/// The fault's GPU is none of those that the ranks named, and its process none of theirs: another program's fault.
fn foreign(ask: Ask<'_>, hit: &Hit<'_>) -> bool {
    let buses = super::waiting::gpu_buses(ask);
    let all_named = ask.job.nranks.is_some_and(|n| n > 0 && buses.len() >= n as usize);
    // A message of the library names a host in its place.
    let bus = hit.get("device").filter(|d| d.contains(':')).and_then(super::waiting::bus_number);
    let pid = hit.text().split_once("pid=").and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
    all_named && bus.is_some_and(|b| !buses.contains_key(&b)) && pid.is_none_or(|p: u32| ask.procs().all(|(_, proc)| proc.pid != p))
}

/// A test whose results are wrong over NVLink or between nodes; over P2P on PCIe it has a cause of its own.
fn wrong_results(ask: Ask<'_>) -> Option<Fault<'_>> {
    let hit = ask.hits("nccl_tests.done").into_iter().find(|h| h.num("wrong").is_some_and(|n| n > 0))?;
    let meaning = format!("a test's results are wrong in {} rows: a GPU or one of its links changes data", hit.get("wrong").unwrap_or("some"));
    super::p2p_iommu_acs_hang::wrong_results(ask).is_none().then_some(Fault { hit, meaning, hardware: true, confidence: Confidence::Likely })
}

fn runtime_texts(ask: Ask<'_>) -> Vec<Fault<'_>> {
    ask.any_of(&["cuda.failure", "torch.cuda_error", "torch.nccl_error", "torch.terminate", "nccl_tests.failure", "app.exception", "app.terminate", "cuda.failure_info"])
        .into_iter()
        .filter_map(|hit| {
            let gpu_text = matches!(hit.entry.kind.as_str(), "cuda.failure" | "cuda.failure_info" | "torch.cuda_error")
                || ["CUDA", "Cuda", "HIP", "cuda"].iter().any(|w| hit.text().contains(w));
            let text = hit.get("text").unwrap_or_else(|| hit.text());
            let (_, meaning, hardware) = TEXTS.iter().find(|(words, _, _)| text.to_ascii_lowercase().contains(&words.to_ascii_lowercase())).filter(|_| gpu_text)?;
            Some(Fault { hit, meaning: (*meaning).to_owned(), hardware: *hardware, confidence: Confidence::Certain })
        })
        .collect()
}

/// Texts that name no reason: `unhandled cuda error`, `initialization error`. A failed call whose text has its own
/// cause is left to that cause.
fn bare(ask: Ask<'_>) -> Option<Fault<'_>> {
    let calls = ask.any_of(&["cuda.failure", "torch.cuda_error"]);
    if teardown::origin(ask).is_some_and(|o| !matches!(o.entry.kind.as_str(), "cuda.failure" | "torch.cuda_error" | "cuda.alloc_failed")) {
        return None;
    }
    if let Some(first) = calls.iter().copied().chain(unknown_calls(ask)).find(|h| !has_its_own_cause(ask, h)) {
        let text = first.get("text").unwrap_or_else(|| first.text().rsplit_once(" WARN ").map_or(first.text(), |(_, t)| t));
        let meaning = format!("a GPU runtime call failed with '{}'", text.trim_matches('\''));
        return Some(Fault { hit: first, meaning, hardware: false, confidence: Confidence::Possible });
    }
    if !calls.is_empty() {
        return None;
    }
    let hit = ask.any_of(&["torch.nccl_error", "torch.nccl_result", "nccl_tests.failure", "jax.nccl_error", "app.exception"]).into_iter().find(|h| is_unhandled(h.text()))?;
    Some(Fault { hit, meaning: "a CUDA or HIP call failed and the log does not hold its text".to_owned(), hardware: false, confidence: Confidence::Possible })
}

/// WARNs of calls in words that no row knows.
fn unknown_calls(ask: Ask<'_>) -> impl Iterator<Item = Hit<'_>> {
    ask.hits("warn.unknown").into_iter().filter(|h| ["Cuda failure", "CUDA failure", "HIP failure"].iter().any(|w| h.text().contains(w)))
}

/// Texts that other rules read.
fn has_its_own_cause(ask: Ask<'_>, hit: &Hit<'_>) -> bool {
    const WORDS: [&str; 16] = [
        "out of memory",
        "OUT_OF_MEMORY",
        "ALLOC_FAILED",
        "no kernel image",
        "invalid device function",
        "no CUDA-capable device",
        "no ROCm-capable device",
        "No CUDA GPUs",
        "present state",
        "peer access",
        "exclusive",
        "busy or unavailable",
        "shutting down",
        "driver shut",
        "NVIDIA driver",
        "invalid device pointer",
    ];
    let file = hit.entry.first.file.as_str();
    let place = (file.contains("nvls") && !hit.text().contains("initialization error")) || (file.ends_with("p2p.cc") && hit.text().contains("HIP failure"));
    let elsewhere = hit.text().contains("invalid device ordinal") && !file.is_empty() && ask.has("gpu.duplicate");
    place || elsewhere || super::driver_mismatch::names_driver(hit.text()) || WORDS.iter().any(|w| hit.text().contains(w))
}

fn is_unhandled(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.contains("unhandled cuda error") || lower.contains("unhandled hip error") || lower.contains("ncclunhandledcudaerror")
}

fn write(ask: Ask<'_>, faults: &[Fault<'_>]) -> Finding {
    let best = faults.iter().map(|f| f.confidence).min().unwrap_or(Confidence::Possible);
    let strong: Vec<&Fault<'_>> = faults.iter().filter(|f| f.confidence == best).collect();
    let hits: Vec<Hit<'_>> = strong.iter().map(|f| f.hit).collect();
    let first = teardown::first(&hits).map_or(strong[0], |h| strong.iter().copied().find(|f| f.hit.at() == h.at()).unwrap_or(strong[0]));
    let mut ranks = ranks_of(&hits);
    if let Some(rank) = first.hit.rank() {
        ranks = vec![rank];
    }
    let who = if ranks.is_empty() { String::new() } else { format!("{}: ", ranks_text(&ranks)) };
    let title = capital(&format!("{who}{}", first.meaning));
    let severity = if strong.iter().all(|f| foreign(ask, &f.hit)) { Severity::Info } else { Severity::Error };
    let mut finding = Finding::new("gpu-error", severity, best, title.chars().take(100).collect::<String>());
    if rocm::left_to_several_radeons(ask, &first.hit) {
        // The engine ignores this where the other rule does not speak up.
        finding.caused_by = Some("rccl-sdma-rdna");
    }
    finding.why = reason(first, best);
    if severity == Severity::Info {
        finding.why.push_str(
            " No rank of this job named that GPU, and the process is none of its own: look there only if the ranks run in virtual machines or containers that number devices anew.",
        );
    }
    finding.hosts = hosts_of(&[first.hit]);
    finding.ranks = ranks;
    finding.evidence = std::iter::once(first.hit).chain(hits).chain(ask.hits("kernel.amdgpu_client")).map(|h| h.evidence()).take(7).collect();
    finding.fixes = fixes(first);
    finding.avoid = vec!["Raising time-outs or switching P2P or IB off: the other ranks' errors come from the failed GPU, not from the network.".to_owned()];
    finding.verify = vec!["nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT   (AMD: rocm-smi --showrasinfo)".to_owned(), "dmesg | grep -i -e xid -e amdgpu".to_owned()];
    finding
}

fn reason(first: &Fault<'_>, grade: Confidence) -> String {
    let what = if grade == Confidence::Possible { first.meaning.clone() } else { capital(&first.meaning) };
    match grade {
        Confidence::Possible => {
            format!(
                "The log says only this much: {what}. That can be a broken GPU, a faulting kernel or a set-up fault; NCCL_DEBUG=WARN prints the failed call with its text, and dmesg tells whether the driver saw a fault."
            )
        }
        _ if first.hardware => format!(
            "{what}. This is reported by the driver or the runtime itself, before or below NCCL; ranks that lose their peer or time out afterwards are consequences. It points to the card, its memory or its links."
        ),
        _ => format!(
            "{what}. The error is sticky: every later call of this process fails with it, also inside NCCL, which is only the messenger. Mostly a bug in a kernel of the program or a library; the same card failing in different programs points to hardware instead. The place in the stack trace may be wrong, since kernels run asynchronously."
        ),
    }
}

fn fixes(first: &Fault<'_>) -> Vec<Fix> {
    let host = first.hit.host();
    let on = if host.is_empty() { String::new() } else { format!(" of {host}") };
    let reset = Fix {
        title: format!("Drain the node{on}, reset the GPU, and have the card tested if it comes back"),
        when: "ECC, NVLink, a lost GPU, or the same card again and again".to_owned(),
        commands: vec!["nvidia-smi --gpu-reset -i GPU   # no process may use it".to_owned(), "dcgmi diag -r 3".to_owned()],
        needs: "root".to_owned(),
        cost: "the node is away meanwhile".to_owned(),
        undo: "none needed".to_owned(),
    };
    let find = Fix {
        title: "Find the kernel that faults".to_owned(),
        when: "Illegal access, launch failure or an assertion: the program, until proven otherwise".to_owned(),
        commands: vec![
            "CUDA_LAUNCH_BLOCKING=1   # the stack trace then names the call".to_owned(),
            "compute-sanitizer --tool memcheck PROGRAM   (AMD: AMD_SERIALIZE_KERNEL=3)".to_owned(),
        ],
        needs: "nothing".to_owned(),
        cost: "slow, for the search only".to_owned(),
        undo: "unset it".to_owned(),
    };
    if first.hardware { vec![reset, find] } else { vec![find, reset] }
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::{Confidence, Severity};

    #[test]
    fn ecc_on_one_rank_explains_the_others_timeout() {
        let a = analyze_texts(&[
            ("rank1.log", "h2:9:9 [0] misc/strongstream.cc:398 NCCL WARN Cuda failure 'uncorrectable ECC error encountered'\n"),
            (
                "rank0.log",
                "[rank0]:[E ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=5, NumelOut=5, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.\n",
            ),
        ]);
        assert_eq!(a.findings[0].id, "gpu-error");
        assert_eq!((a.findings[0].confidence, a.findings[0].ranks.as_slice()), (Confidence::Certain, &[1][..]));
        assert!(a.findings.iter().skip(1).all(|f| f.caused_by == Some("gpu-error")));
    }

    #[test]
    fn a_bare_unhandled_error_is_only_possible() {
        let a = analyze_texts(&[("rank0.log", "RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)\n")]);
        let f = a.findings.iter().find(|f| f.id == "gpu-error").unwrap();
        assert_eq!(f.confidence, Confidence::Possible);
    }

    #[test]
    fn the_first_xid_counts_and_45_follows() {
        let a = analyze_texts(&[(
            "dmesg.log",
            "[ 10.1] NVRM: Xid (PCI:0000:41:00): 79, pid=1, name=python3, GPU has fallen off the bus.\n[ 10.2] NVRM: Xid (PCI:0000:42:00): 45, pid=2, name=python3, Ch 00000003\n",
        )]);
        let f = a.findings.iter().find(|f| f.id == "gpu-error").unwrap();
        assert!(f.title.contains("79") && !f.title.contains("45"), "{}", f.title);
    }

    #[test]
    fn a_fault_of_another_programs_gpu_is_no_failure_of_the_job() {
        let rank = |r: u32| {
            format!("h1:{0}:{0} [{r}] NCCL INFO ncclCommInitRank comm 0x5{r} rank {r} nranks 2 cudaDev {r} nvmlDev {r} busId {1}1000 commId 0x7 - Init COMPLETE\n", 900 + r, r + 1)
        };
        let judge = |xid: &str| {
            let a = analyze_texts(&[("run.log", &format!("{}{}", rank(0), rank(1))), ("dmesg.log", xid)]);
            a.findings.iter().find(|f| f.id == "gpu-error").map(|f| (f.severity, f.confidence)).unwrap()
        };
        assert_eq!(judge("[ 10.1] NVRM: Xid (PCI:0000:c9:00): 94, pid=17, name=other, Contained: CE User Channel\n"), (Severity::Info, Confidence::Possible));
        assert_eq!(judge("[ 10.1] NVRM: Xid (PCI:0000:21:00): 94, pid=17, name=python3, Contained: CE User Channel\n").0, Severity::Error);
        assert_eq!(judge("[ 10.1] NVRM: Xid (PCI:0000:c9:00): 94, pid=901, name=python3, Contained: CE User Channel\n"), (Severity::Error, Confidence::Certain));
    }

    #[test]
    fn wrong_results_of_a_test_are_not_healthy() {
        let ended = |wrong: &str| analyze_texts(&[("test.log", &format!("# Out of bounds values : {wrong}\n# Avg bus bandwidth    : 34.2\n"))]);
        assert!(ended("0 OK").findings.is_empty());
        assert_eq!(ended("2 FAILED").findings.first().map(|f| (f.id, f.confidence)), Some(("gpu-error", Confidence::Likely)));
    }

    #[test]
    fn a_failed_call_without_a_known_reason_is_possible() {
        for text in [
            "h1:1:2 [0] misc/strongstream.cc:395 NCCL WARN Cuda failure 717 'operation not supported on global/shared address space'\n",
            "h1:1:2 [0] /build/rccl/hipify/src/enqueue.cc:395 NCCL WARN HIP failure 98 'invalid handle'\n",
        ] {
            let a = analyze_texts(&[("rank0.log", text)]);
            let f = a.findings.iter().find(|f| f.id == "gpu-error").unwrap();
            assert_eq!(f.confidence, Confidence::Possible);
        }
    }

    #[test]
    fn out_of_memory_is_another_cause() {
        let a = analyze_texts(&[("rank1.log", "h1:11:11 [1] include/alloc.h:190 NCCL WARN Cuda failure 'out of memory'\n")]);
        assert!(a.findings.iter().all(|f| f.id != "gpu-error"));
    }
}
