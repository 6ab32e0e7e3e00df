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

#[test]
fn an_amd_gpu_gets_amds_commands() {
    let commands = |text: &str| {
        let a = analyze_texts(&[("job.log", text)]);
        a.findings.iter().find(|f| f.id == "gpu-error").map(|f| f.fixes.iter().flat_map(|x| x.commands.clone()).chain(f.verify.clone()).collect::<String>()).unwrap()
    };
    let amd = commands("Memory access fault by GPU node-1 (Agent handle: 0x55d0c0a0) on address 0x7f00. Reason: Page not present or supervisor privilege.\n");
    assert!(amd.contains("AMD_SERIALIZE_KERNEL") && !amd.contains("nvidia-smi") && !amd.contains("CUDA_"), "{amd}");
    let nvidia = commands("h2:9:9 [0] misc/strongstream.cc:398 NCCL WARN Cuda failure 'uncorrectable ECC error encountered'\n");
    assert!(nvidia.contains("nvidia-smi") && !nvidia.contains("rocm"), "{nvidia}");
}

#[test]
fn a_memory_pool_that_is_refused_points_to_a_virtual_gpu() {
    let why = |place: &str| {
        let a = analyze_texts(&[("rank0.log", &format!("h1:1:2 [0] {place} NCCL WARN Cuda failure 'operation not supported'\n"))]);
        a.findings.iter().find(|f| f.id == "gpu-error").map(|f| f.why.clone()).unwrap()
    };
    assert!(why("init.cc:426").contains("virtual GPU"));
    assert!(!why("enqueue.cc:1200").contains("virtual GPU"));
}

#[test]
fn a_gpu_that_the_driver_lost_at_its_start_has_no_number() {
    let text = "[ 1843.30] NVRM: The NVIDIA GPU 0000:b3:00.0\n               NVRM: (PCI ID: 10de:26b5) installed in this system has\n               NVRM: fallen off the bus and is not responding to commands.\n";
    assert_eq!(analyze_texts(&[("dmesg.log", text)]).findings.first().map(|f| (f.id, f.confidence)), Some(("gpu-error", Confidence::Certain)));
}

#[test]
fn what_the_place_tells_comes_first() {
    let fix = |text: &str| {
        let a = analyze_texts(&[("rank0.log", text)]);
        a.findings.iter().find(|f| f.id == "gpu-error").map(|f| f.fixes[0].title.clone()).unwrap()
    };
    let nvlink = "h1:1:2 [1] graph/paths.cc:377 NCCL WARN P2P is disabled between NVLINK connected GPUs 1 and 0. This should not be the case given their connectivity\n";
    assert!(fix(nvlink).contains("fabric manager"));
    assert!(fix("h1:1:2 [0] transport.cc:154 NCCL WARN Cuda failure 'invalid argument'\n").contains("2.18.6"));
    assert!(fix("h1:1:2 [0] init.cc:426 NCCL WARN Cuda failure 'operation not supported'\n").contains("unified memory"));
    assert!(fix("h1:1:2 [0] enqueue.cc:154 NCCL WARN Cuda failure 'invalid argument'\n").contains("kernel"));
}
