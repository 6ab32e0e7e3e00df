//! Facts of hosts say the same behind every wrapper, and apart for each host where several share a stream.

mod corpus;

use ncclog::analysis::analyze_texts;
use ncclog::rules::Analysis;
use std::path::PathBuf;

/// A line as a tool wraps it that reads the file of this number.
type Wrapper = (&'static str, fn(usize, &str) -> String);

/// What launchers, log drivers and log tools put around the lines of one source.
const WRAPPERS: [Wrapper; 17] = [
    ("docker json", |_, line| {
        format!("{{\"log\":{},\"stream\":\"stdout\",\"time\":\"2026-05-04T10:00:00.000000001Z\"}}", serde_json::to_string(&format!("{line}\n")).expect("a string"))
    }),
    ("kubectl --prefix", |n, line| format!("[pod/trainer-{n}/main] {line}")),
    ("kubectl --timestamps", |_, line| format!("2026-05-04T10:00:00.000000001Z {line}")),
    ("containerd", |_, line| format!("2026-05-04T10:00:00.000000001Z stdout F {line}")),
    ("stern", |n, line| format!("trainer-{n} main {line}")),
    ("compose", |n, line| format!("trainer-{n}  | {line}")),
    ("srun -l", |n, line| format!("{n}: {line}")),
    ("srun -l of many", |n, line| format!("{n:>3}: {line}")),
    ("mpirun --tag-output", |n, line| format!("[1,{n}]<stdout>:{line}")),
    ("mpirun 5 --tag-output", |n, line| format!("[prterun-head-17@1,{n}]<stdout>: {line}")),
    ("torchrun", |_, line| format!("[default0]:{line}")),
    ("torch", |n, line| format!("[rank{n}]: {line}")),
    ("ray", |n, line| format!("(TrainWorker pid=90{n}, ip=10.77.0.{n}) {line}")),
    ("journal", |n, line| format!("May 04 10:00:00 trainer-{n} launch[41{n}]: {line}")),
    ("pdsh", |n, line| format!("trainer-{n}: {line}")),
    ("hydra -l", |n, line| format!("[{n}] {line}")),
    ("colour of lines", |_, line| format!("\u{1b}[36m{line}\u{1b}[0m")),
];

type Texts = Vec<(String, String)>;

/// Those that tell the sources of one stream apart.
const TELLING: [&str; 11] =
    ["kubectl --prefix", "stern", "compose", "srun -l", "srun -l of many", "mpirun --tag-output", "mpirun 5 --tag-output", "torch", "ray", "pdsh", "hydra -l"];

/// The files of every fixture with facts: logs, facts.
fn fixtures() -> Vec<(String, Texts, Texts)> {
    let named = corpus::folders().into_iter().filter(|f| corpus::name(f).contains("facts-"));
    let parts = |folder: PathBuf| {
        let texts = corpus::logs(&folder).into_iter().map(|(name, text)| (name, String::from_utf8(text).expect("UTF-8")));
        let (logs, facts) = texts.partition(|(name, _)| std::path::Path::new(name).extension().is_some_and(|x| x == "log"));
        (corpus::name(&folder), logs, facts)
    };
    named.map(parts).collect()
}

fn analyse<'a>(texts: impl IntoIterator<Item = &'a (String, String)>) -> Analysis {
    let list: Vec<(&str, &str)> = texts.into_iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
    analyze_texts(&list)
}

/// What was found, with the number of the lines that prove it.
fn findings(analysis: &Analysis) -> Vec<String> {
    let places = |f: &ncclog::Finding| f.evidence.iter().map(|e| (e.file.clone(), e.line)).collect::<Vec<_>>();
    let finding = |f: &ncclog::Finding| format!("{} {:?} {:?} {:?} {:?}", f.id, f.severity, f.confidence, f.title, places(f));
    analysis.findings.iter().map(finding).collect()
}

#[test]
fn a_wrapper_changes_nothing_that_facts_decide() {
    let all = fixtures();
    assert!(all.len() > 24, "only {} fixtures", all.len());
    for (folder, logs, facts) in all {
        let reference = findings(&analyse(logs.iter().chain(&facts)));
        for (wrapper, wrap) in WRAPPERS {
            let wrapped: Texts = facts.iter().enumerate().map(|(n, (name, text))| (name.clone(), text.lines().map(|l| wrap(n, l) + "\n").collect())).collect();
            assert_eq!(findings(&analyse(logs.iter().chain(&wrapped))), reference, "{folder}: {wrapper}");
        }
    }
}

#[test]
fn hosts_that_share_a_stream_line_by_line_are_told_apart() {
    let mut compared = 0;
    for (folder, logs, facts) in fixtures() {
        // Each says by itself whose facts it holds.
        if facts.len() < 2 || !facts.iter().all(|(_, text)| text.starts_with("### ncclog-collect") || text.contains(":~$ ") || text.contains(" ~]# ")) {
            continue;
        }
        compared += 1;
        let told = |analysis: &Analysis| analysis.findings.iter().map(|f| format!("{} {:?} {:?} {}", f.id, f.severity, f.confidence, f.title)).collect::<Vec<_>>();
        let reference = told(&analyse(logs.iter().chain(&facts)));
        for (wrapper, wrap) in WRAPPERS.iter().filter(|(name, _)| TELLING.contains(name)) {
            let mut sources: Vec<_> = facts.iter().map(|(_, text)| text.lines()).collect();
            let mut mixed = String::new();
            while sources.iter_mut().enumerate().filter_map(|(n, lines)| lines.next().map(|l| mixed.push_str(&(wrap(n, l) + "\n")))).count() > 0 {}
            let mixed = ("all.txt".to_owned(), mixed);
            assert_eq!(told(&analyse(logs.iter().chain([&mixed]))), reference, "{folder}: {wrapper}");
        }
    }
    assert!(compared > 8, "only {compared} fixtures");
}

/// What two hosts say of their RDMA devices, named by nothing but what stands in front of the lines.
#[test]
fn prefixes_name_the_hosts() {
    let of = |log: &str, facts: &str| {
        let mut nodes: Vec<(String, Vec<String>)> =
            analyze_texts(&[("job.log", log), ("facts.txt", facts)]).job.facts.nodes.iter().map(|n| (n.title(), n.facts.hcas.iter().map(|h| h.name.clone()).collect())).collect();
        nodes.sort();
        nodes
    };
    let known = |list: &[(&str, &str)]| list.iter().map(|(host, hca)| ((*host).to_owned(), vec![(*hca).to_owned()])).collect::<Vec<_>>();
    let two = [("orion", "mlx5_3"), ("vega", "mlx5_7")];
    // pdsh with names that are plain words.
    let pdsh = "orion: hca_id:\tmlx5_3\nvega: hca_id:\tmlx5_7\norion: \t\tport:\t1\nvega: \t\tport:\t1\norion: \t\t\tstate:\t\tPORT_ACTIVE (4)\n";
    assert_eq!(of("", pdsh), known(&two));
    // One such line is more likely talk.
    assert_eq!(of("", "Error: No IB devices found\nError: No IB devices found\n"), []);
    // The ranks in front of the library's lines are those in front of the facts.
    let rank = |r: u32, host: &str| {
        format!("{r}: {host}:10{r}:20{r} [0] NCCL INFO ncclCommInitRank comm 0x1{r} rank {r} nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x5a - Init START\n")
    };
    let facts = "0: CA 'mlx5_3'\n1: CA 'mlx5_7'\n";
    let same = format!("{facts}{}{}", rank(0, "orion"), rank(1, "vega"));
    assert_eq!(of(&same, ""), known(&two));
    // Of another launch it is not known what its numbers mean.
    let other = of(&format!("{}{}", rank(0, "orion"), rank(1, "vega")), facts);
    assert_eq!(other, known(&[("the host of task 0 of facts.txt", "mlx5_3"), ("the host of task 1 of facts.txt", "mlx5_7")]));
    // What tools print above the output of each host.
    let ansible = "orion | CHANGED | rc=0 >>\nCA 'mlx5_3'\n\tPort 1:\nvega | SUCCESS | rc=0 >>\nCA 'mlx5_7'\n";
    assert_eq!(of("", ansible), known(&two));
    assert_eq!(of("", &ansible.replace("orion", "gpu-1").replace("vega", "gpu-2")), known(&[("gpu-1", "mlx5_3"), ("gpu-2", "mlx5_7")]));
    let rule = "-".repeat(16);
    let dshbak = format!("{rule}\norion\n{rule}\nCA 'mlx5_3'\n{rule}\nvega\n{rule}\nCA 'mlx5_7'\n");
    assert_eq!(of("", &dshbak), known(&two));
    // A command that runs elsewhere tells of the host where it runs.
    let ssh = "$ ibv_devices\nCA 'mlx5_0'\nada@head:~$ ssh orion ibstat\nCA 'mlx5_3'\n\tPort 1:\n$ ssh vega ibstat\nCA 'mlx5_7'\nada@head:~$ ibstat\nCA 'mlx5_9'\n";
    assert_eq!(of("", ssh), known(&[("head", "mlx5_9"), ("orion", "mlx5_3"), ("the host of facts.txt", "mlx5_0"), ("vega", "mlx5_7")]));
    // Numbers of the output itself are none of a launcher.
    let plain = "2: ens1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP\nCA 'mlx5_3'\n";
    assert_eq!(of("", plain), known(&[("the host of facts.txt", "mlx5_3")]));
}
