//! app-crash: The program itself failed first; NCCL's errors follow from it.

use super::finding::{Confidence, Finding, Fix, Severity};
use super::query::{Ask, Hit, capital, hosts_of, ranks_of, ranks_text};
use super::{Cause, Rule, teardown};
use crate::digest::CommLog;
use crate::event::Stage;

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "app-crash", aliases: &[], summary: "The program itself failed first; NCCL's errors follow from it.", explanation: include_str!("app_crash.md") },
    check,
    explains: &["peer-crash", "missing-rank", "collective-mismatch", "collective-timeout", "bootstrap-unreachable", "stall"],
    only_alone: false,
};

/// What ended the program, in the order in which it explains.
const FATAL: &[&str] = &[
    "app.missing_file",
    "app.missing_library",
    "app.undefined_symbol",
    "app.exception",
    "app.fatal",
    "app.segfault",
    "app.exit_signal",
    "app.exit",
    "app.terminate",
    "api.argument",
    "api.destroyed",
    "api.racing",
    "api.invalid_stream",
    "accelerate.rtx_refusal",
    "sglang.memory_refused",
];

/// Records that show that communication had already failed in this process or stream.
const TROUBLE: &[&str] = &[
    "torch.watchdog_timeout",
    "torch.watchdog_status",
    "torch.nccl_error",
    "torch.nccl_result",
    "torch.abort",
    "torch.store_timeout",
    "torch.store_reset",
    "torch.store_barrier",
    "torch.store_clients",
    "torch.store_connect",
    "torch.unique_id_failed",
    "torch.missing_ranks",
    "torch.terminate",
    "socket.closed",
    "socket.error",
    "gloo.error",
    "ib.completion",
    "ray.actor_died",
    "ray.worker_died",
    "launcher.sigterm",
    "launch.time_limit",
    "launch.cancelled",
];

/// Exceptions that only carry another process's or layer's failure upwards, or are printed and handled.
fn is_messenger(hit: &Hit<'_>) -> bool {
    // The field is the whole name of the class, ending included.
    let kind = hit.get("type").unwrap_or("").trim_end_matches("Error").trim_end_matches("Exception");
    let text = hit.text();
    // The program started its worker processes after it had used the GPU: its own fault, in the runtime's words.
    if text.contains("Cannot re-initialize CUDA in forked subprocess") {
        return false;
    }
    let types = [
        "DistBackend",
        "DistNetwork",
        "DistStore",
        "DistError",
        "ChildFailed",
        "RayTask",
        "RayActor",
        "ActorDied",
        "EngineDead",
        "BrokenPipe",
        "ConnectionReset",
        "ConnectionRefused",
        "CalledProcess",
        "ProcessExited",
        "ProcessRaised",
        "XlaRuntime",
        "Cancelled",
        "Broken",
        "SystemExit",
        "Internal",
    ];
    let words = [
        "NCCL",
        "nccl",
        "CUDA",
        "cuda",
        "HIP error",
        "c10d",
        "c10::",
        "ProcessGroup",
        "Engine core",
        "Worker failed",
        "WorkerProc",
        "See root cause above",
        "imed out",
        "ime out",
        "timeout",
        "Connection",
        "gloo",
        "Broken promise",
        "got signal: ",
        "worker process",
        "out of memory",
        "Distributed package",
        "init_process_group",
        "cancelled",
        "there are other ranks that",
    ];
    types.iter().any(|t| kind.ends_with(t)) || words.iter().any(|w| text.contains(w))
}

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let end = teardown::Teardown::of(ask);
    let trouble = ask.any_of(TROUBLE);
    let before: Vec<Hit<'_>> = teardown::origin(ask).into_iter().chain(teardown::firsts(&trouble)).collect();
    let hits: Vec<Hit<'_>> = ask
        .any_of(FATAL)
        .into_iter()
        // Two NCCL installations that are mixed have a cause of their own.
        .filter(|h| h.entry.kind != "app.undefined_symbol" || h.get("symbol").is_none_or(|s| !s.starts_with("nccl")))
        // A kill comes from outside; these signals come from the program's own code.
        .filter(own_signal)
        .filter(|h| {
            h.entry.kind.starts_with("api.") || matches!(h.entry.kind.as_str(), "app.missing_library" | "app.undefined_symbol" | "app.exit" | "app.exit_signal") || !is_messenger(h)
        })
        .filter(|h| end.matters(h) && before.iter().all(|o| comes_first(h, o)))
        // What was caught and printed did not end the program.
        .filter(|h| h.entry.kind != "app.exception" && h.entry.kind != "app.missing_file" || !teardown::worked_on(ask, h))
        .filter(|h| !ends_over(h, &trouble))
        .collect();
    let Some(first) = teardown::first(&hits) else { return Vec::new() };
    vec![write(ask, &hits, first)]
}

/// A kill comes from outside; these signals come from the program's own code, whatever the launcher prints of them.
fn own_signal(hit: &Hit<'_>) -> bool {
    match hit.entry.kind.as_str() {
        "app.exit_signal" => signal(hit).is_some(),
        "app.exit" => matches!(signal(hit), Some((4 | 8 | 11, _))),
        _ => true,
    }
}

/// Number and name of a signal that a fault in the program's own code raises.
fn signal(hit: &Hit<'_>) -> Option<(i64, &'static str)> {
    let number = hit.signal()?;
    let name = match number {
        4 => "SIGILL",
        7 => "SIGBUS",
        8 => "SIGFPE",
        11 => "SIGSEGV",
        _ => return None,
    };
    Some((number, name))
}

/// The C++ runtime names the type of the exception that ends the process, and its text follows: a time-out or an error
/// of the communication that the watchdog threw.
fn ends_over(hit: &Hit<'_>, trouble: &[Hit<'_>]) -> bool {
    let at = hit.at();
    hit.entry.kind == "app.terminate" && trouble.iter().any(|t| t.at().stream == at.stream && (1..=2).contains(&t.at().line.saturating_sub(at.line)))
}

/// Whether the exception is known to stand before the other record; without an order it must be another process's.
fn comes_first(exception: &Hit<'_>, other: &Hit<'_>) -> bool {
    match teardown::order(exception.at(), other.at()) {
        Some(order) => order.is_lt(),
        None => exception.proc != other.proc,
    }
}

/// What the program said, short.
fn words(hit: &Hit<'_>) -> String {
    let text = match hit.entry.kind.as_str() {
        kind if kind.starts_with("api.") => hit.text().rsplit_once(" WARN ").map_or(hit.text(), |(_, t)| t).to_owned(),
        "app.segfault" => "segmentation fault".to_owned(),
        "app.exit_signal" | "app.exit" => signal(hit).map_or_else(String::new, |(number, name)| format!("signal {number} ({name})")),
        "app.fatal" if hit.text().contains("ssert") || hit.text().contains("ASSERT") => format!("assertion failed: {}", hit.get("text").unwrap_or("?")),
        "app.missing_file" => format!("no such file: {}", hit.get("path").unwrap_or("?")),
        "app.missing_library" => format!("missing library {}", hit.get("library").unwrap_or("?")),
        "app.undefined_symbol" => format!("undefined symbol {}", hit.get("symbol").unwrap_or("?")),
        "app.exception" => [hit.get("type"), hit.get("text")].into_iter().flatten().collect::<Vec<_>>().join(": "),
        _ => hit.get("text").or_else(|| hit.get("what")).unwrap_or_else(|| hit.text()).to_owned(),
    };
    text.trim().chars().take(60).collect()
}

fn is_signal(hit: &Hit<'_>) -> bool {
    matches!(hit.entry.kind.as_str(), "app.segfault" | "app.exit_signal")
}

/// The process of this record had begun a communicator, and none of its communicators stands. A record that names no
/// process is held against all.
fn initialising(ask: Ask<'_>, hit: &Hit<'_>) -> bool {
    let own = &hit.process().log.comms;
    let comms: Vec<&CommLog> = if own.is_empty() { ask.procs().flat_map(|(_, p)| &p.log.comms).collect() } else { own.iter().collect() };
    comms.iter().any(|c| c.saw(Stage::InitStart)) && comms.iter().all(|c| !c.stood())
}

fn write(ask: Ask<'_>, hits: &[Hit<'_>], first: Hit<'_>) -> Finding {
    let same: Vec<Hit<'_>> = hits.iter().copied().filter(|h| h.entry.kind == first.entry.kind).collect();
    let ranks = ranks_of(&same);
    let times: u64 = same.iter().map(Hit::count).sum();
    let who = if ranks.is_empty() { if times > 1 { format!("{times} processes") } else { "A process".to_owned() } } else { ranks_text(&ranks) };
    let within = is_signal(&first) && initialising(ask, &first);
    let confidence = if first.entry.kind.starts_with("api.") || within { Confidence::Possible } else { Confidence::Likely };
    let did = match (first.entry.kind.starts_with("api."), within) {
        (true, _) => "called the library wrongly",
        (_, true) => "crashed while NCCL was starting",
        _ => "ended in the program itself",
    };
    let title = capital(&format!("{who} {did}: {}", words(&first)));
    // A refused argument is an error that the caller may have handled.
    let severity = if confidence == Confidence::Possible && !within { Severity::Warning } else { Severity::Error };
    let mut finding = Finding::new("app-crash", severity, confidence, title);
    let spread = if times > 1 || ranks.len() > 1 {
        "Several processes say the same, so it is common to all of them and no rank is the culprit."
    } else {
        "It stands before any communication error, so those are its consequences."
    };
    finding.why = format!(
        "The program failed by itself: {}. {spread} NCCL is not involved, or only as the messenger. If the place of the failure is inside a CUDA or NCCL call, the text above it decides.",
        words(&first)
    );
    if within {
        finding.why = format!(
            "A process died of a {} after it had begun to set up a communicator and before that stood. Such a fault is in the library, a plugin, a driver or in what the program handed over: the stack of the thread that died decides. {spread}",
            words(&first)
        );
    }
    finding.hosts = hosts_of(&same);
    finding.ranks = ranks;
    finding.evidence = std::iter::once(first).chain(same).chain(ask.any_of(&["app.exit", "launcher.first_failure"])).map(|h| h.evidence()).take(6).collect();
    finding.fixes = vec![Fix {
        title: "Mend what the exception names; start again".to_owned(),
        when: "Always".to_owned(),
        commands: vec!["TORCHELASTIC_ERROR_FILE=/tmp/error-%r.json PYTHONFAULTHANDLER=1   # keeps each rank's own traceback".to_owned()],
        needs: "nothing".to_owned(),
        cost: "none".to_owned(),
        undo: "unset them".to_owned(),
    }];
    finding.avoid = vec!["Tuning NCCL: the other ranks' closed connections and time-outs follow from this exit.".to_owned()];
    finding.verify = vec!["The same program on one GPU, without torch.distributed, passes this place.".to_owned()];
    finding
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;

    #[test]
    fn an_exception_before_the_closed_connections_is_the_cause() {
        let a = analyze_texts(&[(
            "job.log",
            "1: Traceback (most recent call last):\n1: KeyError: 'labels'\n0: h1:10:10 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer h1<40012>\n",
        )]);
        assert_eq!(a.findings[0].id, "app-crash");
        assert!(a.findings.iter().all(|f| f.id != "peer-crash" || f.caused_by.is_some()));
    }

    #[test]
    fn a_signal_from_the_programs_own_code_and_a_missing_library_are_causes() {
        let report =
            "Root Cause (first observed failure):\n[0]:\n  rank      : 3 (local_rank: 3)\n  exitcode  : -11 (pid: 99)\n  traceback : Signal 11 (SIGSEGV) received by PID 99\n";
        assert_eq!(analyze_texts(&[("job.log", report)]).findings[0].id, "app-crash");
        let library = "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory\n";
        assert_eq!(analyze_texts(&[("job.log", library)]).findings[0].id, "app-crash");
        let stopped = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 12 got signal: 15\n";
        assert!(analyze_texts(&[("job.log", stopped)]).findings.iter().all(|f| f.id != "app-crash"));
    }

    #[test]
    fn an_exception_is_quoted_by_its_name_and_one_that_carries_anothers_failure_is_none() {
        let named = analyze_texts(&[("job.log", "huggingface_hub.errors.GatedRepoError: 401 Client Error.\n")]);
        assert!(named.findings[0].title.contains(": huggingface_hub.errors.GatedRepoError: 401 Client Error"), "{}", named.findings[0].title);
        for carried in ["BrokenPipeError: [Errno 32] Broken pipe\n", "ConnectionResetError: [Errno 104] reset\n", "vllm.v1.engine.exceptions.EngineDeadError: see above\n"] {
            assert!(analyze_texts(&[("job.log", carried)]).findings.iter().all(|f| f.id != "app-crash"), "{carried}");
        }
    }

    #[test]
    fn a_fault_inside_the_start_of_the_library_is_not_laid_at_the_programs_door() {
        let start = "h1:10:11 [0] NCCL INFO ncclCommInitRank comm 0x77 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 1000 commId 0xfeed - Init START\n";
        let fault = "[h1:00010] *** Process received signal ***\n[h1:00010] Signal: Segmentation fault (11)\n";
        let of = |text: &str| analyze_texts(&[("job.log", text)]).findings.into_iter().find(|f| f.id == "app-crash").expect("crash");
        let within = of(&format!("{start}{fault}"));
        assert_eq!((within.severity, within.confidence), (crate::rules::Severity::Error, crate::rules::Confidence::Possible));
        assert!(within.title.contains("crashed while NCCL was starting"), "{}", within.title);
        assert_eq!(of(fault).confidence, crate::rules::Confidence::Likely);
        let later = of(&format!("{start}{}{fault}", start.replace("Init START", "Init COMPLETE")));
        assert_eq!(later.confidence, crate::rules::Confidence::Likely);
    }

    #[test]
    fn the_messenger_of_a_timeout_is_none() {
        let a = analyze_texts(&[(
            "job.log",
            "[rank0]:[E ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=5, NumelOut=5, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.\nRuntimeError: the step failed\n",
        )]);
        assert!(a.findings.iter().all(|f| f.id != "app-crash"));
    }

    #[test]
    fn an_exception_at_exit_after_the_work_is_none() {
        let a = analyze_texts(&[("job.log", "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 20.1\nKeyError: 'x'\n")]);
        assert!(a.findings.iter().all(|f| f.id != "app-crash"));
    }

    #[test]
    fn what_was_caught_is_no_crash_where_the_work_goes_on() {
        let step = |n: u32| format!("{{'loss': 1.{n}, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'epoch': 0.{n}}}\n");
        let caught = "Traceback (most recent call last):\nurllib.error.URLError: <urlopen error no name>\n";
        let crash = |text: &str| analyze_texts(&[("job.log", text)]).findings.iter().any(|f| f.id == "app-crash");
        assert!(!crash(&format!("{caught}{}{}", step(1), step(2))));
        // One more step of another rank may end behind it.
        assert!(crash(&format!("{}{}{caught}{}", step(1), step(2), step(3))));
        assert!(crash(&format!("{}{caught}", step(1))));
    }

    #[test]
    fn a_refusal_of_the_framework_and_a_late_fork_are_the_programs_own() {
        for text in [
            "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=21.1\n",
            "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method\n",
        ] {
            let a = analyze_texts(&[("job.log", text)]);
            assert_eq!(a.findings.first().map(|f| f.id), Some("app-crash"), "{text}");
        }
        // A warning of the same words is none.
        let warned = "[2026-03-03 10:00:00 TP0] The memory capacity is unbalanced. Some GPUs may be occupied by other processes.\n";
        assert!(analyze_texts(&[("job.log", warned)]).findings.is_empty());
    }

    #[test]
    fn a_launchers_exit_code_tells_a_fault_of_the_program() {
        let ended = |code: i32| {
            format!("[2026-01-03 14:05:36,716] [ERROR] [launch.py:321:sigkill_handler] ['python', 'train.py', '--ddp_timeout', '30'] exits with return code = {code}\n")
        };
        let judged = |code: i32| analyze_texts(&[("job.log", &ended(code))]).findings.first().map(|f| (f.id, f.title.clone()));
        assert!(judged(-11).is_some_and(|(id, title)| id == "app-crash" && title.contains("signal 11 (SIGSEGV)")));
        assert_eq!(judged(-7).map(|(id, _)| id), Some("shm-too-small"));
        assert_eq!(judged(-9).map(|(id, _)| id), Some("peer-crash"));
        assert_eq!(judged(1), None);
    }

    #[test]
    fn a_watchdog_that_ends_the_process_by_an_exception_is_no_crash_of_the_program() {
        let a = analyze_texts(&[(
            "job.log",
            "terminate called after throwing an instance of 'std::runtime_error'\n  what():  [Rank 7] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=806, OpType=BROADCAST, Timeout(ms)=1800000) ran for 1801027 milliseconds before timing out.\n",
        )]);
        assert_eq!(a.findings.iter().map(|f| f.id).collect::<Vec<_>>(), ["collective-timeout"]);
    }
}
