use super::{Cards, ID, by_arch, by_name};
use crate::analysis::analyze_texts;
use crate::rules::{Confidence, Finding, Severity};

/// Two ranks on one host, Init COMPLETE, over P2P.
fn job(version: &str, extra: &str) -> String {
    let mut text = format!("{extra}RCCL version : {version}\n");
    for r in 0..2 {
        let (peer, bus) = (1 - r, if r == 0 { "3000" } else { "7000" });
        let p = format!("amd1:70{r}:70{r} [{r}] NCCL INFO");
        text += &format!(
            "{p} comm 0x6{r} rank {r} nRanks 2 nNodes 1 localRanks 2 localRank {r} MNNVL 0\n\
             {p} Channel 00/0 : {r}[{bus}] -> {peer}[7000] via P2P/IPC comm 0x6{r} nRanks 02\n\
             {p} ncclCommInitRank comm 0x6{r} rank {r} nranks 2 cudaDev {r} nvmlDev {r} busId {bus} commId 0xaced1 - Init COMPLETE\n\
             {p} AllReduce: opCount 0 sendbuff 0x7f1 recvbuff 0x7f2 count 1 datatype 7 op 0 root 0 comm 0x6{r} [nranks=2] stream 0x5\n"
        );
    }
    text
}

fn found(text: &str) -> Option<Finding> {
    analyze_texts(&[("run.log", text)]).findings.into_iter().find(|f| f.id == ID)
}

const R9700: &str = "#   Rank  0 Group  0 Pid    700 on amd1 device  0 [0000:03:00] AMD Radeon AI PRO R9700\n#   Rank  1 Group  0 Pid    700 on amd1 device  1 [0000:07:00] AMD Radeon AI PRO R9700\n";

#[test]
fn gfx12_with_2_27_names_the_protocol_first() {
    let f = found(&job("2.27.7-HEAD:0a1b2c3", R9700)).expect("deadlock");
    assert_eq!((f.severity, f.confidence), (Severity::Error, Confidence::Likely));
    assert!(f.fixes[0].commands.iter().any(|c| c.contains("NCCL_PROTO=Simple")));
    assert!(f.avoid.iter().any(|a| a.contains("NCCL_P2P_DISABLE")));
    assert_eq!(f.path.last(), Some(&"sol-multi-r9700-rccl-sdma-tuning"));
}

#[test]
fn simple_another_version_and_mi_cards_are_no_alarm() {
    let loud = |text: &str| found(text).is_some_and(|f| f.severity != Severity::Info);
    assert!(!loud(&job("2.27.7-HEAD:0a1b2c3", &format!("{R9700}amd1:700:700 [0] NCCL INFO NCCL_PROTO set by environment to Simple\n"))));
    assert!(!loud(&job("2.26.6-HEAD:0a1b2c3", R9700)));
    assert!(!loud(&job("2.27.7-HEAD:0a1b2c3", &R9700.replace("Radeon AI PRO R9700", "Instinct MI210"))));
    assert!(!loud(&job("2.27.7-HEAD:0a1b2c3", "")));
}

#[test]
fn finished_rows_are_silent() {
    let row = "           8             2     float     sum      -1    13.10    0.00    0.00      0    13.92    0.00    0.00      0\n";
    assert!(found(&(job("2.27.7-HEAD:0a1b2c3", R9700) + row)).is_none());
}

#[test]
fn the_copy_engine_is_certain_on_two_rdna_cards_only() {
    let fault = |bus: &str| {
        format!(
            "[ 90.1] gmc_v12_0_process_interrupt: 19 callbacks suppressed\n[ 90.1] amdgpu 0000:{bus}:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:12 pasid:32773)\n[ 90.1] amdgpu 0000:{bus}:00.0: amdgpu:  Faulty UTCL2 client ID: SDMA0 (0xd)\n"
        )
    };
    let f = found(&(fault("03") + &fault("07"))).expect("sdma");
    assert_eq!((f.severity, f.confidence), (Severity::Error, Confidence::Certain));
    assert!(f.fixes[0].commands.iter().any(|c| c.contains("HSA_ENABLE_SDMA=0")));
    assert!(found(&fault("03")).is_none(), "one card");
    assert!(found(&(fault("03") + &fault("07")).replace("SDMA0 (0xd)", "TCP (0x8)")).is_none(), "a shader");
    assert!(found(&(fault("03") + &fault("07")).replace("gmc_v12_0", "gmc_v9_0")).is_none(), "another architecture");
}

#[test]
fn warnings_alone_are_silent() {
    let text = "amd1:1:1 [0] /build/rccl/hipify/src/init.cc:179 NCCL WARN Missing \"iommu=pt\" from kernel command line which can lead to system instablity or hang!\n";
    assert!(found(text).is_none());
}

#[test]
fn families_by_name_and_architecture() {
    assert_eq!((by_arch("1201"), by_arch("1100"), by_arch("90a"), by_arch("906")), (Cards::Gfx12, Cards::Rdna, Cards::Other, Cards::Other));
    assert_eq!((by_name("RX 9070 XT"), by_name("RX 7900 XTX"), by_name("Instinct MI300X"), by_name("VII")), (Cards::Gfx12, Cards::Rdna, Cards::Other, Cards::Other));
}
