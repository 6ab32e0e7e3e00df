//! Analyses built by hand, for tests of the writers.

use ncclog::digest::{Digest, Mark, Sample, StreamInfo};
use ncclog::event::{Library, Stage};
use ncclog::job::{Comm, HostRow, Job, RankRow, Run, Transport, Vantage};
use ncclog::rules::tree::Walk;
use ncclog::rules::{Analysis, Confidence, Evidence, Finding, Fix, Severity, Verdict};

/// A record at a line of the first stream.
pub fn sample(line: u64, text: &str) -> Sample {
    let at = Mark { stream: 0, line, offset: line * 100, time: None };
    Sample { at, text: text.to_owned(), fields: Vec::new(), tid: 0, level: None, file: String::new(), repeated: 0 }
}

/// A proving line.
pub fn evidence(file: &str, line: u64, text: &str) -> Evidence {
    Evidence { file: file.to_owned(), line, offset: line * 100, rank: Some(0), text: text.to_owned() }
}

/// A communicator without members.
pub fn comm(id: u64, nranks: u32) -> Comm {
    Comm { id: Some(id), nranks: Some(nranks), members: Vec::new(), nnodes: Some(1), spans_nodes: false, run: 0, is_child: id > 0 }
}

/// An analysis of nothing with a verdict and findings.
pub fn analysis(verdict: Verdict, findings: Vec<Finding>) -> Analysis {
    let job = Job::build(Digest::default(), Vantage::PostMortem);
    Analysis { job, findings, verdict, notes: Vec::new(), unknown: Vec::new(), silenced: Vec::new(), walk: Walk::none(), why_not: Vec::new(), undecided: Vec::new() }
}

/// An input without a line of NCCL.
pub fn empty() -> Analysis {
    let mut result = analysis(Verdict::Inconclusive, Vec::new());
    result.job.streams.push(StreamInfo { path: "train.log".to_owned(), bytes: 20, lines: 2, ..StreamInfo::default() });
    result.notes = vec![
        "No line of NCCL, RCCL, a framework or the kernel was recognised.".to_owned(),
        "To get a log that can be diagnosed, run with `NCCL_DEBUG=INFO NCCL_DEBUG_FILE=nccl.%h.%p.log` and give all files.".to_owned(),
    ];
    result
}

/// `nranks` ranks, `per_node` on a node, in a ring.
fn job(nranks: u32, per_node: u32, host: impl Fn(u32) -> String, net: &str, stage: Stage) -> Job {
    let mut job = analysis(Verdict::Healthy, Vec::new()).job;
    job.library = Some(Library::Nccl);
    job.versions = vec!["2.27.3+cuda12.9".to_owned()];
    job.nranks = Some(nranks);
    job.nnodes = Some(nranks / per_node);
    job.nets = vec![net.to_owned()];
    job.hosts = (0..nranks / per_node).map(|n| HostRow { name: host(n), ranks: (n * per_node..(n + 1) * per_node).collect() }).collect();
    job.streams.push(StreamInfo { path: "logs/rank0.log".to_owned(), bytes: 100_000, lines: 900, nccl_lines: 850, events: 800, ..StreamInfo::default() });
    job.comms.push(Comm { nnodes: job.nnodes, spans_nodes: true, ..comm(0xfeed, nranks) });
    job.world = Some(0);
    job.runs.push(Run { first: sample(1, ""), ranks: nranks as usize });
    for rank in 0..nranks {
        let name = host(rank / per_node);
        let text = format!("{name}:{}:{} [{}] NCCL INFO Connected all rings", 1000 + rank, 2000 + rank, rank % per_node);
        job.ranks.push(RankRow {
            rank,
            host: Some(name),
            pid: Some(1000 + rank),
            device: Some(rank % per_node),
            bus_id: Some(format!("{:x}000", rank % per_node + 1)),
            stage,
            net: Some(net.to_owned()),
            last: sample(100 + u64::from(rank), &text),
            proc: 0,
        });
        let to = (rank + 1) % nranks;
        let via = if rank / per_node == to / per_node { "P2P/CUMEM".to_owned() } else { format!("NET/{net}/0") };
        job.transports.push(Transport { from: rank, to, via, channels: 2 });
    }
    job
}

/// Eight ranks on two nodes that work.
pub fn healthy() -> Analysis {
    let mut result = analysis(Verdict::Healthy, Vec::new());
    result.job = job(8, 4, |n| format!("node{}", n + 1), "IB", Stage::Collective);
    result.notes = vec!["8 ranks on 2 nodes, IB over 4 HCAs with GPUDirect RDMA, all connected".to_owned()];
    result
}

/// Eight ranks on two nodes that fell back to sockets, with a consequence.
pub fn tcp_fallback() -> Analysis {
    let mut result = healthy();
    result.job = job(8, 4, |n| format!("node{}", n + 1), "Socket", Stage::InitComplete);
    result.verdict = Verdict::Failed;
    let mut finding = Finding::new("tcp-fallback", Severity::Error, Confidence::Certain, "2 nodes exchange data over TCP sockets: no InfiniBand device was found");
    finding.why = "All 8 ranks looked for InfiniBand devices, found none and chose sockets. The devices are missing inside the container: \
        nothing was filtered by `NCCL_IB_HCA`."
        .into();
    finding.ranks = (0..8).collect();
    finding.hosts = vec!["node1".to_owned(), "node2".to_owned()];
    finding.path = vec!["network-is-socket", "ib-not-disabled", "no-device", "container"];
    finding.evidence = vec![
        evidence("logs/rank0.log", 12, "node1:1000:2000 [0] NCCL INFO NET/IB : No device found."),
        evidence("logs/rank0.log", 15, "node1:1000:2000 [0] NCCL INFO NET/Socket : Using [0]eth0:192.0.2.11<0>"),
        evidence("logs/rank0.log", 16, "node1:1000:2000 [0] NCCL INFO Using network Socket"),
    ];
    finding.fixes = vec![
        Fix {
            title: "Give the container the RDMA devices".to_owned(),
            when: "`ibv_devinfo -l` shows devices on the host and none in the container.".to_owned(),
            commands: vec!["ibv_devinfo -l".to_owned(), "docker run --device=/dev/infiniband --ulimit memlock=-1 IMAGE".to_owned()],
            needs: "root".to_owned(),
            cost: "restart of the container".to_owned(),
            undo: "leave the option out".to_owned(),
        },
        Fix {
            title: "Fail instead of falling back".to_owned(),
            commands: vec!["mpirun -x NCCL_NET=IB -x NCCL_DEBUG=INFO -x NCCL_DEBUG_SUBSYS=INIT,ENV,NET -np 8 --hostfile hosts ./train".to_owned()],
            needs: "nothing".to_owned(),
            ..Fix::default()
        },
    ];
    finding.avoid = vec!["Raising NCCL_SOCKET_NTHREADS: sockets get a little faster and the devices stay idle.".to_owned()];
    finding.verify = vec!["grep -h 'Using network' logs/rank*.log".to_owned(), "The line must say `Using network IB` on every rank.".to_owned()];
    let mut slow = Finding::new("slow-start", Severity::Warning, Confidence::Likely, "initialisation took 48 s");
    slow.caused_by = Some("tcp-fallback");
    result.findings = vec![finding, slow];
    result.notes = vec!["Ranks were told apart by NCCL's own lines; the files' names agree.".to_owned()];
    result
}

/// Eight ranks a node, one of which died while all others wait; one has no log.
pub fn cluster(nranks: u32) -> Analysis {
    let mut result = analysis(Verdict::Failed, Vec::new());
    result.job = job(nranks, 8, |n| format!("node{n:03}"), "IB", Stage::InitComplete);
    let dead = nranks as usize / 3;
    let row = &mut result.job.ranks[dead];
    row.stage = Stage::Connecting;
    row.last.text = format!("{}:77:88 [1] NCCL WARN Cuda failure 'out of memory'", row.host.clone().unwrap_or_default());
    let title = format!("rank {dead} ran out of GPU memory while it connected its channels");
    let mut finding = Finding::new("cuda-out-of-memory", Severity::Error, Confidence::Certain, title);
    finding.evidence = vec![evidence("logs/rank0.log", 812, &result.job.ranks[dead].last.text)];
    finding.ranks = vec![dead as u32];
    let mut victims = Finding::new("remote-closed", Severity::Error, Confidence::Certain, format!("{} ranks lost their peer", nranks - 2));
    victims.ranks = (0..nranks).filter(|r| *r != dead as u32).collect();
    victims.caused_by = Some("cuda-out-of-memory");
    result.findings = vec![finding, victims];
    result.job.ranks.pop();
    result
}
