//! Whose facts they are: hosts of the job told by names, files, tasks, addresses and devices.

use super::HostRow;
use crate::digest::{HostFacts, Naming, Process};
use std::collections::{BTreeMap, BTreeSet};

/// What the library's lines say of a host, to tell whose facts some are.
#[derive(Debug, Default)]
pub struct Signs<'a> {
    /// Addresses that its ranks printed.
    pub addresses: BTreeSet<&'a str>,
    /// RDMA devices that its ranks printed.
    pub devices: BTreeSet<&'a str>,
}

impl<'a> Signs<'a> {
    /// Takes in what a process printed.
    pub fn see(&mut self, process: &'a Process) {
        let field = |kind: &str, name: &str| process.ledger.of(kind).filter_map(|e| e.first.get(name)).collect::<Vec<_>>();
        let bare = |ip: &'a str| ip.split(['<', '%']).next().unwrap_or(ip);
        self.addresses.extend(field("bootstrap.using", "ip").into_iter().chain(field("ib.using", "ip")).map(bare).filter(|ip| *ip != "127.0.0.1"));
        for list in field("ib.using", "list").into_iter().chain(field("socket.using", "list")) {
            for word in list.split([' ', ',', '{', '}', '=']) {
                let word = word.rsplit_once(']').map_or(word, |(_, w)| w);
                match word.split_once(':') {
                    Some((name, port)) if port.contains('/') => self.devices.insert(name),
                    Some((_, address)) => self.addresses.insert(bare(address)),
                    None => false,
                };
            }
        }
    }
}

/// Whose lines of the library a stream holds.
#[derive(Debug, Default)]
pub struct Held {
    hosts: BTreeSet<usize>,
    /// Number that a launcher put in front of a process's lines → its host; `None` where two hosts have the same.
    tasks: BTreeMap<u32, Option<usize>>,
}

impl Held {
    /// Takes in a process of the stream.
    pub fn see(&mut self, host: usize, process: &Process) {
        self.hosts.insert(host);
        for (_, task) in process.wrap_ranks.iter().filter(|(global, _)| *global) {
            let known = self.tasks.entry(*task).or_insert(Some(host));
            if *known != Some(host) {
                *known = None;
            }
        }
    }

    /// The host of the task whose facts stand in the same stream. Another launch, of one task a node, would count
    /// otherwise: only the first task, or the same set of tasks, is believed to be of the same one.
    pub fn of_task(&self, task: u32, all: &BTreeSet<u32>) -> Option<usize> {
        let same = all.iter().eq(self.tasks.keys()) || (task == 0 && all.len() == 1);
        self.tasks.get(&task).copied().flatten().filter(|_| same)
    }

    /// The only host.
    pub fn only(&self) -> Option<usize> {
        self.hosts.first().copied().filter(|_| self.hosts.len() == 1)
    }
}

/// `node1.example.org` and `node1` are one host.
pub fn same_host(a: &str, b: &str) -> bool {
    let first = |name: &str| name.split(['.', ' ']).next().unwrap_or(name).to_ascii_lowercase();
    !a.is_empty() && first(a) == first(b) && (a.split(' ').next() == b.split(' ').next() || !a.contains('.') || !b.contains('.'))
}

/// The host of the job whose facts these are, and how that is known.
pub fn owner(facts: &HostFacts, path: &str, hosts: &[HostRow], nnodes: Option<u32>, signs: &[Signs<'_>], stream_host: Option<usize>) -> Option<(usize, Naming)> {
    let by_name = || {
        // Ray names its nodes by their addresses.
        let by_address = || unique(signs, |s| s.addresses.contains(facts.host.as_str()));
        hosts.iter().position(|h| h.name == facts.host).or_else(|| unique(hosts, |h| same_host(&h.name, &facts.host))).or_else(by_address)
    };
    if !facts.host.is_empty()
        && let Some(host) = by_name()
    {
        return Some((host, facts.naming));
    }
    if let Some(host) = by_path(path, hosts).or(stream_host) {
        return Some((host, Naming::File));
    }
    if let Some(host) = by_signs(facts, signs) {
        return Some((host, Naming::Matched));
    }
    // A name of its own says that it is another machine, unless a container renamed the only one.
    (hosts.len() == 1 && nnodes.is_none_or(|n| n <= 1)).then_some((0, Naming::OnlyHost))
}

/// The only item that passes.
fn unique<T>(list: &[T], test: impl Fn(&T) -> bool) -> Option<usize> {
    let mut found = list.iter().enumerate().filter(|(_, t)| test(t)).map(|(i, _)| i);
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// A host whose name stands in the file's name or its directory, as a word of its own; the longest one.
fn by_path(path: &str, hosts: &[HostRow]) -> Option<usize> {
    let mut parts = path.rsplit(['/', '\\', '!']);
    let (file, folder) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    [file, folder].into_iter().find_map(|part| {
        let short = |h: &HostRow| h.name.split(['.', ' ']).next().unwrap_or_default().to_ascii_lowercase();
        let part = part.to_ascii_lowercase();
        let named: Vec<(usize, usize)> = hosts.iter().enumerate().map(|(i, h)| (i, short(h))).filter(|(_, n)| holds_word(&part, n)).map(|(i, n)| (i, n.len())).collect();
        let longest = named.iter().map(|(_, len)| *len).max()?;
        let mut best = named.iter().filter(|(_, len)| *len == longest);
        let first = best.next()?;
        best.next().is_none().then_some(first.0)
    })
}

/// `text` holds `word` with no letter or digit beside it.
fn holds_word(text: &str, word: &str) -> bool {
    let free = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    !word.is_empty() && text.match_indices(word).any(|(at, _)| free(text[..at].chars().next_back()) && free(text[at + word.len()..].chars().next()))
}

/// The only host whose addresses these facts hold; else the only one all of whose devices they hold while the others
/// have others.
fn by_signs(facts: &HostFacts, signs: &[Signs<'_>]) -> Option<usize> {
    let own: BTreeSet<String> = facts
        .interfaces
        .iter()
        .flat_map(|i| &i.addresses)
        .map(|a| a.value.ip.to_string())
        .chain(facts.hcas.iter().flat_map(|h| &h.ports).flat_map(|p| &p.gids).filter_map(|g| Some(g.ipv4()?.to_string())))
        .collect();
    let by_address = unique(signs, |s| s.addresses.iter().any(|a| own.contains(*a)));
    let devices: BTreeSet<&str> = facts.hcas.iter().map(|h| h.name.as_str()).collect();
    by_address.or_else(|| unique(signs, |s| !s.devices.is_empty() && s.devices.iter().all(|d| devices.contains(d))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyze_texts;

    fn node(name: &str, ip: u8) -> String {
        format!(
            "### ncclog-collect 1 host={name} time=2026-05-04T10:00:00Z\n### $ ip -br addr\neno1 UP 192.168.40.{ip}/24\nens1f0np0 UP 10.20.0.{ip}/16\n### exit 0\n### $ rdma link show\nlink rocep1s0f0/1 state ACTIVE physical_state LINK_UP netdev ens1f0np0\nlink rocep1s0f1/1 state DOWN physical_state DISABLED netdev ens1f1np1\n### exit 0\n### $ show_gids\nrocep1s0f0 1 0 fe80:0000:0000:0000:0200:5eff:fe10:0007 v1 ens1f0np0\nrocep1s0f0 1 {ip} 0000:0000:0000:0000:0000:ffff:0a14:000{ip} 10.20.0.{ip} v2 ens1f0np0\n"
        )
    }

    #[test]
    fn whose_facts_they_are() {
        let log = |host: &str, ip: u8, rank: u32| {
            format!(
                "{host}:7:7 [0] NCCL INFO Bootstrap: Using eno1:192.168.40.{ip}<0>\n{host}:7:8 [0] NCCL INFO ncclCommInitRank comm 0x1{rank} rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x5a - Init START\n"
            )
        };
        let owner = |name: &str, facts: &str| {
            let job = analyze_texts(&[("rank0.log", &log("vega", 5, 0)), ("rank1.log", &log("lyra", 7, 1)), (name, facts)]).job;
            job.facts.nodes.iter().map(|n| (n.name.clone(), n.naming)).collect::<Vec<_>>()
        };
        let bare = "mlx5_0 port 1 ==> ens1 (Up)\n";
        let known = |name: &str, by: Naming| vec![(name.to_owned(), by)];
        assert_eq!(owner("x.txt", &node("lyra", 7)), known("lyra", Naming::Marker));
        assert_eq!(owner("x.txt", &format!("ada@vega:~$ ibdev2netdev\n{bare}")), known("vega", Naming::Prompt));
        assert_eq!(owner("facts-lyra.txt", bare), known("lyra", Naming::File));
        assert_eq!(owner("lyra/facts.txt", bare), known("lyra", Naming::File));
        assert_eq!(owner("x.txt", &format!("{bare}eno1 UP 192.168.40.5/24\n")), known("vega", Naming::Matched));
        assert_eq!(owner("x.txt", bare), known("", Naming::Unknown));
        assert_eq!(owner("x.txt", &node("mira", 9)), known("mira", Naming::Marker));
        let alone = analyze_texts(&[("rank0.log", &log("vega", 5, 0).replace("nranks 2", "nranks 1")), ("x.txt", bare)]).job;
        assert_eq!(alone.facts.nodes[0].naming, Naming::OnlyHost);
    }
}
