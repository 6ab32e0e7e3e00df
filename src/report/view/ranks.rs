//! How far each rank came, and which of them stand out.

use crate::event::Stage;
use crate::job::{Job, RankRow};
use crate::rules::{Analysis, Severity};
use std::collections::BTreeMap;

/// How a rank stands against the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// No line of it.
    Absent,
    /// Its initialisation stopped before the stage that most ranks reached.
    Behind,
    /// Its initialisation did not end, like that of most.
    Waiting,
    /// Only its framework speaks.
    Silent,
    /// Init COMPLETE.
    Complete,
    /// It enqueued collectives.
    Running,
}

impl Standing {
    /// All, from worst to best.
    pub const ALL: [Self; 6] = [Self::Absent, Self::Behind, Self::Waiting, Self::Silent, Self::Complete, Self::Running];

    /// For legends.
    pub fn label(self) -> &'static str {
        match self {
            Self::Absent => "no line in these logs",
            Self::Behind => "stopped before the others",
            Self::Waiting => "initialisation not finished",
            Self::Silent => "no line of the library",
            Self::Complete => "Init COMPLETE",
            Self::Running => "running collectives",
        }
    }

    /// Short name, also a CSS class.
    pub fn class(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Behind => "behind",
            Self::Waiting => "waiting",
            Self::Silent => "silent",
            Self::Complete => "done",
            Self::Running => "running",
        }
    }

    /// It is not as it should be.
    pub fn stands_out(self) -> bool {
        matches!(self, Self::Absent | Self::Behind)
    }
}

/// One rank on the board.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// World rank.
    pub rank: u32,
    /// Index into `Job::hosts`, if its host is known.
    pub host: Option<usize>,
    /// How it stands.
    pub standing: Standing,
    /// Furthest stage; `None` without a line of the library.
    pub stage: Option<Stage>,
    /// Stages seen, one bit each.
    pub seen: u32,
    /// A root finding names it among few.
    pub named: bool,
}

/// All ranks of the last run, absent ones included, ascending.
#[derive(Debug)]
pub struct Board {
    /// The ranks.
    pub places: Vec<Place>,
}

/// More ranks are not drawn.
const MAX_PLACES: usize = 65_536;

impl Board {
    /// Places all ranks.
    pub fn new(analysis: &Analysis) -> Self {
        let job = &analysis.job;
        let usual = usual_stage(job);
        let seen = seen(job);
        let hosts: BTreeMap<&str, usize> = job.hosts.iter().enumerate().map(|(i, h)| (h.name.as_str(), i)).collect();
        let mut places: Vec<Place> = job.ranks.iter().take(MAX_PLACES).map(|r| place(job, r, usual, &seen, &hosts)).collect();
        let room = MAX_PLACES - places.len();
        places.extend(job.absent_ranks().into_iter().take(room).map(|rank| Place { rank, host: None, standing: Standing::Absent, stage: None, seen: 0, named: false }));
        places.sort_by_key(|p| p.rank);
        let named = named(analysis, places.len());
        for place in &mut places {
            place.named = named.binary_search(&place.rank).is_ok();
        }
        Self { places }
    }

    /// How many ranks stand so.
    pub fn count(&self, standing: Standing) -> usize {
        self.places.iter().filter(|p| p.standing == standing).count()
    }

    /// Ranks that stand so.
    pub fn ranks(&self, standing: Standing) -> Vec<u32> {
        self.places.iter().filter(|p| p.standing == standing).map(|p| p.rank).collect()
    }

    /// Stages that any rank printed or reached, lowest first; the goal is always among them, and where one is not
    /// through, the great steps that may be still before it.
    pub fn stages(&self) -> Vec<Stage> {
        let bit = |s: Stage| 1u32 << s as u32;
        let mut bits = bit(Stage::InitComplete);
        for place in &self.places {
            bits |= place.seen | place.stage.map_or(0, bit);
        }
        if self.places.iter().any(|p| p.stage.is_some_and(|s| s < Stage::InitComplete)) {
            bits |= [Stage::Loaded, Stage::Network, Stage::InitStart, Stage::Bootstrapped, Stage::Topology, Stage::Layout, Stage::Connecting]
                .into_iter()
                .map(bit)
                .fold(0, |all, b| all | b);
        }
        STAGES.into_iter().filter(|s| bits & (1 << *s as u32) != 0).collect()
    }
}

/// All stages in order.
const STAGES: [Stage; 16] = [
    Stage::Loaded,
    Stage::BootstrapInterface,
    Stage::NetPlugin,
    Stage::NetDevices,
    Stage::Network,
    Stage::InitStart,
    Stage::Bootstrapped,
    Stage::Topology,
    Stage::Graph,
    Stage::Layout,
    Stage::Proxy,
    Stage::Connecting,
    Stage::Connected,
    Stage::Tuned,
    Stage::InitComplete,
    Stage::Collective,
];

fn place(job: &Job, row: &RankRow, usual: Stage, seen: &BTreeMap<u32, u32>, hosts: &BTreeMap<&str, usize>) -> Place {
    let silent = job.procs.get(row.proc).is_some_and(|p| !p.nccl) && row.stage == Stage::Loaded;
    let standing = match row.stage {
        Stage::Collective => Standing::Running,
        Stage::InitComplete => Standing::Complete,
        _ if silent => Standing::Silent,
        stage if stage < usual => Standing::Behind,
        _ => Standing::Waiting,
    };
    Place {
        rank: row.rank,
        host: row.host.as_deref().and_then(|h| hosts.get(h)).copied(),
        standing,
        stage: (!silent).then_some(row.stage),
        seen: seen.get(&row.rank).copied().unwrap_or(0) | 1 << row.stage as u32 | job.procs.get(row.proc).map_or(0, before_comm),
        named: false,
    }
}

/// Stages that belong to the process before any communicator exists.
fn before_comm(proc: &crate::job::Proc) -> u32 {
    let has = |kinds: &[&str]| kinds.iter().any(|k| proc.log.ledger.of(k).next().is_some());
    let stages = [(Stage::Loaded, proc.nccl), (Stage::BootstrapInterface, has(&["bootstrap.using"])), (Stage::NetDevices, has(&["ib.using", "ib.no_device", "socket.using"]))];
    stages.into_iter().filter(|(_, seen)| *seen).map(|(s, _)| 1 << s as u32).sum()
}

/// The furthest stage that half of the ranks reached.
fn usual_stage(job: &Job) -> Stage {
    let mut stages: Vec<Stage> = job.ranks.iter().map(|r| r.stage).collect();
    stages.sort_unstable();
    stages.get(stages.len() / 2).copied().unwrap_or(Stage::Loaded)
}

fn seen(job: &Job) -> BTreeMap<u32, u32> {
    let members = job.world().map(|w| w.members.as_slice()).unwrap_or_default();
    let views = members.iter().filter_map(|m| Some((m.rank?, job.procs.get(m.proc)?.log.comms.get(m.log)?.stages)));
    views.fold(BTreeMap::new(), |mut map, (rank, bits)| {
        *map.entry(rank).or_insert(0) |= bits;
        map
    })
}

/// Ranks that root errors and warnings name, where they name at most a third of all; ascending.
fn named(analysis: &Analysis, size: usize) -> Vec<u32> {
    let roots = analysis.findings.iter().filter(|f| f.is_root() && f.severity != Severity::Info);
    let mut ranks: Vec<u32> = roots.filter(|f| f.ranks.len() * 3 <= size).flat_map(|f| f.ranks.iter().copied()).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}
