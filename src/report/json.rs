//! JSON by the contract `ncclog.analysis/1`. Field order and list order depend on the analysis alone.

use super::{SCHEMA, clean, ranges};
use crate::event::{Library, Stage};
use crate::job::{Comm, Job, RankRow};
use crate::rules::tree::Walk;
use crate::rules::{Analysis, Finding, Silenced, UnknownWarning, Verdict, WhyNot};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Up to this size of the job, transports are listed per pair of ranks; above, per pair of hosts.
const MAX_RANKS_BY_PAIR: usize = 256;

/// Most communicators that are listed.
const MAX_COMMUNICATORS: usize = 256;

/// Most groups of unknown warnings that are listed.
const MAX_UNKNOWN: usize = 256;

/// Most transports that are listed.
const MAX_TRANSPORTS: usize = 65_536;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    tool: Tool,
    inputs: Vec<Input<'a>>,
    verdict: Verdict,
    job: JobView<'a>,
    findings: &'a [Finding],
    notes: &'a [String],
    unknown_warnings: &'a [UnknownWarning],
    unknown_warnings_total: usize,
    silenced: &'a [Silenced],
    tree: &'a Walk,
    why_not: &'a [WhyNot],
}

/// Who wrote a document.
#[derive(Serialize)]
pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
}

impl Tool {
    /// This program.
    pub(crate) const SELF: Self = Self { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") };
}

#[derive(Serialize)]
struct Input<'a> {
    path: &'a str,
    bytes: u64,
    lines: u64,
    nccl_lines: u64,
    problem: Option<&'a str>,
}

#[derive(Serialize)]
struct JobView<'a> {
    library: Option<Library>,
    versions: &'a [String],
    nranks: Option<u32>,
    nnodes: Option<u32>,
    net: &'a [String],
    nodes: Vec<Node<'a>>,
    ranks: Vec<RankView<'a>>,
    runs: usize,
    communicators: Vec<Communicator>,
    communicators_total: usize,
    transports: Vec<TransportView<'a>>,
    transports_total: usize,
}

#[derive(Serialize)]
struct Node<'a> {
    host: &'a str,
    ranks: &'a [u32],
}

#[derive(Serialize)]
struct RankView<'a> {
    rank: u32,
    host: Option<&'a str>,
    pid: Option<u32>,
    device: Option<u32>,
    bus_id: Option<&'a str>,
    stage: Stage,
    net: Option<&'a str>,
    last: Place<'a>,
}

#[derive(Serialize)]
struct Place<'a> {
    file: &'a str,
    line: u64,
    offset: u64,
}

#[derive(Serialize)]
struct Communicator {
    id: Option<String>,
    nranks: Option<u32>,
    nnodes: Option<u32>,
    spans_nodes: bool,
    is_child: bool,
    run: usize,
    members: usize,
    complete: usize,
    ranks: String,
}

#[derive(Serialize)]
#[serde(untagged)]
enum TransportView<'a> {
    Ranks { from: u32, to: u32, via: &'a str, channels: u32 },
    Hosts { from_host: Option<&'a str>, to_host: Option<&'a str>, via: &'a str, channels: u64, pairs: u64 },
}

/// Writes the document and a line end.
pub fn write(analysis: &Analysis, out: &mut dyn Write) -> io::Result<()> {
    let job = &analysis.job;
    let document = Document {
        schema: SCHEMA,
        tool: Tool::SELF,
        inputs: job.streams.iter().map(|s| Input { path: &s.path, bytes: s.bytes, lines: s.lines, nccl_lines: s.nccl_lines, problem: s.problem.as_deref() }).collect(),
        verdict: analysis.verdict,
        job: job_view(job),
        findings: &analysis.findings,
        notes: &analysis.notes,
        unknown_warnings: &analysis.unknown[..analysis.unknown.len().min(MAX_UNKNOWN)],
        unknown_warnings_total: analysis.unknown.len(),
        silenced: &analysis.silenced,
        tree: &analysis.walk,
        why_not: &analysis.why_not,
    };
    pretty(&document, out)
}

/// Writes a value and a line end.
pub fn pretty(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Ascii(PrettyFormatter::new()));
    value.serialize(&mut serializer)?;
    writeln!(out)
}

fn job_view(job: &Job) -> JobView<'_> {
    let mut transports = transports(job);
    let transports_total = transports.len();
    transports.truncate(MAX_TRANSPORTS);
    JobView {
        library: job.library,
        versions: &job.versions,
        nranks: job.nranks,
        nnodes: job.nnodes,
        net: &job.nets,
        nodes: job.hosts.iter().map(|h| Node { host: &h.name, ranks: &h.ranks }).collect(),
        ranks: job.ranks.iter().map(|r| rank(job, r)).collect(),
        runs: job.runs.len(),
        communicators: job.comms.iter().take(MAX_COMMUNICATORS).map(|c| communicator(job, c)).collect(),
        communicators_total: job.comms.len(),
        transports,
        transports_total,
    }
}

fn rank<'a>(job: &'a Job, row: &'a RankRow) -> RankView<'a> {
    let at = row.last.at;
    RankView {
        rank: row.rank,
        host: row.host.as_deref(),
        pid: row.pid,
        device: row.device,
        bus_id: row.bus_id.as_deref(),
        stage: row.stage,
        net: row.net.as_deref(),
        last: Place { file: job.path(at.stream), line: at.line, offset: at.offset },
    }
}

fn communicator(job: &Job, comm: &Comm) -> Communicator {
    let logs = comm.members.iter().filter_map(|m| job.procs.get(m.proc)?.log.comms.get(m.log));
    let mut ranks: Vec<u32> = comm.members.iter().filter_map(|m| m.rank).collect();
    ranks.sort_unstable();
    Communicator {
        id: comm.id.map(|id| format!("{id:#x}")),
        nranks: comm.nranks,
        nnodes: comm.nnodes,
        spans_nodes: comm.spans_nodes,
        is_child: comm.is_child,
        run: comm.run,
        members: comm.members.len(),
        complete: logs.filter(|log| log.complete.is_some()).count(),
        ranks: ranges(&ranks, None),
    }
}

fn transports(job: &Job) -> Vec<TransportView<'_>> {
    let size = job.ranks.len().max(job.nranks.unwrap_or(0) as usize);
    if size <= MAX_RANKS_BY_PAIR {
        let mut list: Vec<_> = job.transports.iter().collect();
        list.sort_by(|a, b| (a.from, a.to, &a.via).cmp(&(b.from, b.to, &b.via)));
        return list.iter().map(|t| TransportView::Ranks { from: t.from, to: t.to, via: &t.via, channels: t.channels }).collect();
    }
    let host = |rank: u32| job.ranks.binary_search_by_key(&rank, |r| r.rank).ok().and_then(|i| job.ranks[i].host.as_deref());
    let mut pairs: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for t in &job.transports {
        let (channels, count) = pairs.entry((host(t.from), host(t.to), t.via.as_str())).or_default();
        *channels += u64::from(t.channels);
        *count += 1;
    }
    pairs.into_iter().map(|((from_host, to_host, via), (channels, pairs))| TransportView::Hosts { from_host, to_host, via, channels, pairs }).collect()
}

/// Escapes what a terminal would obey or hide. JSON demands this only below U+0020, but people do `cat` a report.
struct Ascii<'a>(PrettyFormatter<'a>);

impl Formatter for Ascii<'_> {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut start = 0;
        for (at, c) in fragment.char_indices().filter(|(_, c)| !clean::is_plain(*c)) {
            writer.write_all(&fragment.as_bytes()[start..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            start = at + c.len_utf8();
        }
        writer.write_all(&fragment.as_bytes()[start..])
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}
