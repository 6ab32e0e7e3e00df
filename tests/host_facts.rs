//! Facts of hosts decide what logs cannot: every `facts-*` fixture reaches another grade than its logs alone.

use ncclog::analysis::{Options, Silent, analyze};
use ncclog::rules::{Analysis, Severity};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn folders() -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = std::fs::read_dir("fixtures").expect("fixtures").filter_map(Result::ok).map(|e| e.path()).collect();
    list.retain(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("facts-")));
    list.sort();
    list
}

fn expect(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("expect.json")).expect("expect.json")).expect("JSON")
}

/// The analysis of the logs, with or without the facts.
fn run(folder: &Path, facts: bool) -> Analysis {
    let mut inputs: Vec<String> = std::fs::read_dir(folder)
        .expect("folder")
        .filter_map(Result::ok)
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|x| x == "log" || (facts && x == "txt")))
        .map(|p| p.display().to_string())
        .collect();
    inputs.sort();
    analyze(&Options { inputs, ..Options::default() }, &Silent).analysis
}

/// Id and grade of the first root finding.
fn first(analysis: &Analysis) -> Option<(String, String)> {
    let finding = analysis.findings.iter().find(|f| f.is_root())?;
    Some((finding.id.to_owned(), serde_json::to_value(finding.confidence).expect("a word").as_str()?.to_owned()))
}

#[test]
fn facts_decide_what_the_logs_leave_open() {
    let (mut certain, mut lowered) = (0, 0);
    for folder in folders() {
        let name = folder.display();
        let expect = expect(&folder);
        let alone = &expect["alone"];
        let want = (alone["finding"].as_str().expect("finding").to_owned(), alone["confidence"].as_str().expect("confidence").to_owned());
        assert_ne!(want.1, "certain", "{name}");
        assert_eq!(first(&run(&folder, false)), Some(want.clone()), "{name} without its facts");
        let with = run(&folder, true);
        let got = first(&with);
        if expect["confidence"] == "certain" {
            certain += 1;
            assert_eq!(got, Some((want.0.clone(), "certain".to_owned())), "{name} with its facts");
            let finding = with.findings.iter().find(|f| f.id == want.0).expect("finding");
            let fact = finding
                .evidence
                .iter()
                .find(|e| Path::new(&e.file).extension().is_some_and(|x| x == "txt"))
                .unwrap_or_else(|| panic!("{name}: no fact among {:?}", finding.evidence));
            let text = std::fs::read_to_string(&fact.file).expect("facts");
            assert_eq!(text.lines().nth(usize::try_from(fact.line).expect("line") - 1), Some(fact.text.as_str()), "{name}");
        } else {
            lowered += 1;
            let still = got.as_ref().is_some_and(|(id, grade)| *id == want.0 && *grade == want.1);
            assert!(!still, "{name}: the facts changed nothing");
        }
        assert!(with.notes.iter().any(|n| n.starts_with("Facts of ")), "{name}: {:?}", with.notes);
    }
    assert!(certain >= 10 && lowered >= 4, "{certain} certain, {lowered} lowered");
}

#[test]
fn facts_alone_name_no_cause() {
    for folder in folders() {
        let mut inputs: Vec<String> = std::fs::read_dir(&folder)
            .expect("folder")
            .filter_map(Result::ok)
            .map(|e| e.path())
            .filter(|p| p.extension().is_some_and(|x| x == "txt"))
            .map(|p| p.display().to_string())
            .collect();
        inputs.sort();
        let analysis = analyze(&Options { inputs, ..Options::default() }, &Silent).analysis;
        let loud: Vec<&str> = analysis.findings.iter().filter(|f| f.severity != Severity::Info).map(|f| f.id).collect();
        assert!(loud.is_empty(), "{}: {loud:?}", folder.display());
        assert!(analysis.notes.iter().any(|n| n.contains("alone prove no cause")), "{}: {:?}", folder.display(), analysis.notes);
    }
}

#[test]
fn fixes_name_each_nodes_own_devices() {
    let analysis = run(Path::new("fixtures/facts-tcp-with-an-hca-on-both-nodes"), true);
    let commands: Vec<&String> = analysis.findings[0].fixes.iter().flat_map(|f| &f.commands).collect();
    for (host, hca, interface, address) in [("juniper", "rocep1s0f0", "enp1s0f0np0", "198.51.100.11"), ("cypress", "rocep129s0f1", "enp129s0f1np1", "198.51.100.12")] {
        let line = commands.iter().find(|c| c.ends_with(&format!("# on {host}"))).unwrap_or_else(|| panic!("{commands:?}"));
        assert!([hca, interface, address].iter().all(|n| line.contains(n)), "{line}");
    }
    let analysis = run(Path::new("fixtures/facts-roce-pinned-index-wrong-on-one-node"), true);
    let commands: Vec<&String> = analysis.findings[0].fixes.iter().flat_map(|f| &f.commands).collect();
    for (host, index) in [("lark", 3), ("wren", 5)] {
        assert!(commands.iter().any(|c| c.starts_with(&format!("export NCCL_IB_GID_INDEX={index} ")) && c.contains(&format!("on {host}:"))), "{commands:?}");
    }
}

/// Where only one command is shown, it is that of the node at fault.
#[test]
fn the_node_at_fault_comes_first() {
    let first = |fixture: &str| {
        let folder = Path::new("fixtures").join(fixture);
        let files = std::fs::read_dir(&folder).expect("folder").filter_map(Result::ok).map(|e| e.path()).filter(|p| p.extension().is_some_and(|x| x != "json"));
        let done = assert_cmd::Command::cargo_bin("ncclog").expect("built").args(["analyze", "-q"]).args(files).assert();
        let text = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
        text.lines().find_map(|l| l.strip_prefix("next:  ")).map_or_else(|| panic!("{text}"), str::to_owned)
    };
    assert!(first("facts-roce-pinned-index-wrong-on-one-node").starts_with("export NCCL_IB_GID_INDEX=5   # on wren:"));
    assert!(first("facts-roce-mtu-differs-by-devinfo").contains("# on alder, now 1500"));
    assert!(first("facts-tcp-port-is-down").contains("on heron"));
}

/// The page lists every family of outputs, in the order of the table.
#[test]
fn the_page_lists_what_is_read() {
    let rows: Vec<String> = ncclog::digest::FAMILIES
        .iter()
        .map(|f| {
            let commands: Vec<String> = f.commands.iter().map(|c| format!("`{c}`")).collect();
            format!("| {} | {} |", commands.join(", "), f.reads)
        })
        .collect();
    let page = std::fs::read_to_string("docs/facts.md").expect("docs/facts.md");
    let table = rows.join("\n");
    assert!(page.contains(&table), "docs/facts.md should hold:\n{table}");
}

#[test]
fn a_slow_link_is_noted() {
    let text = "### ncclog-collect 1 host=vega time=2026-05-04T10:00:00Z\n### $ ibstat\nCA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n\t\tRate: 200\n\t\tLink layer: Ethernet\n### exit 0\n### $ ib_write_bw -d mlx5_0 --report_gbits\n                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536      5000             AVERAGE.00             AVERAGE.00             0.18\n### exit 0\n";
    let notes = |average: &str| ncclog::analysis::analyze_texts(&[("vega.txt", &text.replace("AVERAGE", average))]).notes;
    assert!(notes("98").iter().any(|n| n.contains("98 Gb/s over mlx5_0") && n.contains("gives 200 Gb/s")), "{:?}", notes("98"));
    assert!(!notes("196").iter().any(|n| n.contains("reached")), "{:?}", notes("196"));
}

/// The table of nccl-tests against the rate of the ports.
#[test]
fn a_slow_collective_is_noted() {
    let node = |host: &str, ip: u8| {
        format!(
            "### ncclog-collect 1 host={host} time=2026-05-04T10:00:00Z\n### $ ip -br addr\nens1 UP 10.20.0.{ip}/24\n### exit 0\n### $ ibdev2netdev\nmlx5_0 port 1 ==> ens1 (Up)\n### exit 0\n### $ ibstat\nCA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n\t\tRate: 400\n\t\tLink layer: Ethernet\n### exit 0\n"
        )
    };
    let log = |host: &str, rank: u32| {
        format!("{host}:7:8 [0] NCCL INFO ncclCommInitRank comm 0x1{rank} rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x5a - Init COMPLETE\n")
    };
    let notes = |busbw: &str, size: &str| {
        let row =
            format!("  {size}     268435456     float     sum      -1  95634.5   {busbw}   {busbw}      0  95578.2   {busbw}   {busbw}      0\n# Avg bus bandwidth    : 1.5\n");
        let texts = [("rank0.log", log("vega", 0) + &row), ("rank1.log", log("lyra", 1)), ("vega.txt", node("vega", 5)), ("lyra.txt", node("lyra", 7))];
        let list: Vec<(&str, &str)> = texts.iter().map(|(n, t)| (*n, t.as_str())).collect();
        ncclog::analysis::analyze_texts(&list).notes
    };
    assert!(
        notes("11.25", "17179869184").iter().any(|n| n.contains("(16384 MiB) the test reached 90.0 Gb/s") && n.contains("gives 400 Gb/s")),
        "{:?}",
        notes("11.25", "17179869184")
    );
    assert!(!notes("45.2", "17179869184").iter().any(|n| n.contains("bus bandwidth")));
    assert!(notes("11.25", "1048576").iter().any(|n| n.contains("average bus bandwidth is 12.0 Gb/s")));
}
