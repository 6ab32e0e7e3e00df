//! gpu-error: A GPU failed: Xid, ECC, illegal memory access, a faulting kernel. NCCL is only the messenger.

mod fixes;
mod rocm;
mod xid;

use super::finding::{Confidence, Finding, Severity};
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

/// What `operation not supported` means where a communicator is made.
const VIRTUAL_GPU: &str = " Where a communicator is made, newer versions set up a memory pool (cudaMemPoolCreate), and a virtual GPU without unified memory refuses it.";

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
        let meaning = hit.get("device").map_or_else(|| "a GPU has fallen off the bus".to_owned(), |d| format!("GPU {d} has fallen off the bus"));
        Fault { hit, meaning, hardware: true, confidence: Confidence::Certain }
    }));
    list.extend(ask.hits("p2p.disabled_nvlink").into_iter().filter(|h| h.text().contains(" WARN ") || ask.has("torch.nccl_error")).map(|hit| {
        let (one, other) = (hit.get("dev").unwrap_or("?"), hit.get("peer").unwrap_or("?"));
        let meaning = format!("NVLink joins GPUs {one} and {other}, and the driver offers no P2P between them: a broken link, or the fabric manager does not run");
        Fault { hit, meaning, hardware: true, confidence: Confidence::Likely }
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
    ask.any_of(&[
        "cuda.failure",
        "torch.cuda_error",
        "torch.nccl_error",
        "torch.terminate",
        "nccl_tests.failure",
        "app.exception",
        "app.terminate",
        "app.cuda_error",
        "cuda.failure_info",
    ])
    .into_iter()
    .filter_map(|hit| {
        let gpu_text =
            matches!(hit.entry.kind.as_str(), "cuda.failure" | "cuda.failure_info" | "torch.cuda_error") || ["CUDA", "Cuda", "HIP", "cuda"].iter().any(|w| hit.text().contains(w));
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
    const WORDS: [&str; 15] = [
        "out of memory",
        "OUT_OF_MEMORY",
        "ALLOC_FAILED",
        "no kernel image",
        "invalid device function",
        "no CUDA-capable device",
        "no ROCm-capable device",
        "No CUDA GPUs",
        "present state",
        "exclusive",
        "busy or unavailable",
        "shutting down",
        "driver shut",
        "NVIDIA driver",
        "invalid device pointer",
    ];
    let file = hit.entry.first.file.as_str();
    let place = (file.contains("nvls") && !hit.text().contains("initialization error")) || (file.ends_with("p2p.cc") && hit.text().contains("HIP failure"));
    let place = place || super::peer_access_failed::reads(hit);
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
    finding.fixes = fixes::fixes(first);
    finding.avoid = vec!["Raising time-outs or switching P2P or IB off: the other ranks' errors come from the failed GPU, not from the network.".to_owned()];
    finding.verify = vec![if rocm::is_amd(&first.hit) { "rocm-smi --showrasinfo" } else { "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT" }.to_owned()];
    finding.verify.push("dmesg | grep -i -e xid -e amdgpu".to_owned());
    finding
}

fn reason(first: &Fault<'_>, grade: Confidence) -> String {
    let what = if grade == Confidence::Possible { first.meaning.clone() } else { capital(&first.meaning) };
    match grade {
        Confidence::Possible => {
            let note = if fixes::refused_pool(&first.hit) { VIRTUAL_GPU } else { "" };
            format!(
                "The log says only this much: {what}. That can be a broken GPU, a faulting kernel or a set-up fault; NCCL_DEBUG=WARN prints the failed call with its text, and dmesg tells whether the driver saw a fault.{note}"
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

#[cfg(test)]
mod tests;
