//! The book of pseudonyms: what each identity is called.

use super::address::{self, Addresses};
use super::scan::Class;
use super::{secret, words};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What stands in place of something that the book does not know; never the thing itself.
const UNKNOWN: &str = "redacted";

/// Pids kept of one host.
const MAX_PIDS: usize = 4096;

/// One kind of numbered pseudonyms.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, String>", into = "BTreeMap<String, String>")]
pub struct Numbered {
    names: BTreeMap<String, String>,
    taken: BTreeSet<String>,
}

impl From<BTreeMap<String, String>> for Numbered {
    fn from(names: BTreeMap<String, String>) -> Self {
        let taken = names.values().cloned().collect();
        Self { names, taken }
    }
}

impl From<Numbered> for BTreeMap<String, String> {
    fn from(numbered: Numbered) -> Self {
        numbered.names
    }
}

impl Numbered {
    /// Gives `name` the next free number, unless it has one.
    fn add(&mut self, name: &str, call: impl Fn(usize) -> String) {
        if self.names.contains_key(name) {
            return;
        }
        let mut number = self.names.len() + 1;
        while self.taken.contains(&call(number)) {
            number += 1;
        }
        let new = call(number);
        self.keep(name, new);
    }

    /// Gives `name` this pseudonym, unless it has one.
    fn keep(&mut self, name: &str, new: String) {
        if !self.names.contains_key(name) {
            self.taken.insert(new.clone());
            self.names.insert(name.to_owned(), new);
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.names.get(name).map(String::as_str)
    }

    /// Original names with their pseudonyms.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.iter().map(|(from, to)| (from.as_str(), to.as_str()))
    }
}

/// All pseudonyms. Serialised as the private map.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Book {
    /// Format of the map.
    pub schema: String,
    /// Hosts by the first label of their names.
    pub hosts: Numbered,
    /// Domains.
    pub domains: Numbered,
    /// Folded lists of hosts.
    pub host_lists: Numbered,
    /// Users.
    pub users: Numbered,
    /// Directories.
    pub paths: Numbered,
    /// IPv4 addresses.
    pub ipv4: BTreeMap<std::net::Ipv4Addr, std::net::Ipv4Addr>,
    /// IPv6 addresses and GIDs.
    pub ipv6: BTreeMap<std::net::Ipv6Addr, std::net::Ipv6Addr>,
    /// MAC addresses.
    pub macs: Numbered,
    /// GUIDs.
    pub guids: Numbered,
    /// UUIDs.
    pub uuids: Numbered,
    /// Ids of containers.
    pub ids: Numbered,
    /// Secrets.
    pub secrets: Numbered,
    #[serde(skip)]
    addresses: Addresses,
    /// Hosts that wait for their number, with the processes and the number of headers that named them.
    #[serde(skip)]
    waiting: BTreeMap<String, Witness>,
}

/// Where a host was seen.
#[derive(Debug, Clone, Default)]
struct Witness {
    pids: BTreeSet<u32>,
    headers: u64,
}

/// A host and its domain.
fn labels(name: &str) -> (&str, Option<&str>) {
    name.split_once('.').map_or((name, None), |(host, domain)| (host, Some(domain).filter(|d| !d.is_empty())))
}

fn is_pseudonym(name: &str, stem: &str) -> bool {
    name.strip_prefix(stem).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// A name that an earlier redaction gave: it stays, whatever its place says it is.
fn is_any_pseudonym(name: &str) -> bool {
    ["host-", "hosts-", "user-", "path-"].iter().any(|stem| is_pseudonym(name, stem))
}

fn numbered(stem: &str) -> impl Fn(usize) -> String {
    move |n| format!("{stem}{n}")
}

/// Digits and dashes of a MAC or GUID alone, so that its spellings have one pseudonym.
fn bare(text: &str) -> String {
    text.strip_prefix("0x").unwrap_or(text).chars().filter(char::is_ascii_hexdigit).map(|c| c.to_ascii_lowercase()).collect()
}

/// `digits` in the places of the hex digits of `like`.
fn shaped(like: &str, digits: &str) -> String {
    let (start, body) = like.strip_prefix("0x").map_or(("", like), |body| ("0x", body));
    let mut digits = digits.chars();
    let upper = body.bytes().any(|b| b.is_ascii_uppercase());
    let text: String = body.chars().map(|c| if c.is_ascii_hexdigit() { digits.next().unwrap_or('0') } else { c }).collect();
    format!("{start}{}", if upper { text.to_ascii_uppercase() } else { text })
}

impl Book {
    /// A book of an earlier run, ready to be extended.
    pub fn reopen(mut self) -> Self {
        self.ipv4.iter().for_each(|(from, to)| self.addresses.keep_v4(*from, *to));
        self.ipv6.iter().for_each(|(from, to)| self.addresses.keep_v6(*from, *to));
        self
    }

    /// Notes an identity. Hosts get their number in [`Book::settle`], all others at once.
    pub fn note(&mut self, name: &str, class: Class, headers: u64, pids: &BTreeSet<u32>) {
        if is_any_pseudonym(name) && !is_pseudonym(name, "host-") {
            return;
        }
        match class {
            Class::Host => {
                let (host, domain) = labels(name);
                if let Some(domain) = domain.filter(|d| !is_pseudonym(d, "domain-")) {
                    self.domains.add(domain, numbered("domain-"));
                }
                let witness = self.waiting.entry(host.to_owned()).or_default();
                witness.headers += headers;
                let room = MAX_PIDS.saturating_sub(witness.pids.len());
                witness.pids.extend(pids.iter().take(room));
            }
            Class::Hosts => self.host_lists.add(name, numbered("hosts-")),
            Class::User => self.users.add(name, numbered("user-")),
            Class::Dir => self.paths.add(name, numbered("path-")),
            Class::V4 => {
                if let Ok(ip) = name.parse() {
                    self.v4(ip);
                }
            }
            Class::V6 => {
                if let Ok(ip) = name.parse() {
                    self.v6(ip);
                }
            }
            Class::Halves => {
                if let Some(ip) = address::decode_halves(name) {
                    self.v6(ip);
                }
            }
            Class::Mac => self.macs.add(&bare(name), |n| format!("0200{n:08x}")),
            Class::Guid => self.guids.add(&bare(name), |n| format!("0200{n:012x}")),
            Class::Uuid => self.uuids.add(&bare(name), |n| format!("0000000000004000a000{n:012x}")),
            Class::Id => self.ids.add(name, |n| format!("{n:064x}")),
            Class::Secret => self.secrets.add(name, |n| secret_name(name, n)),
            Class::Torn => {}
        }
    }

    fn v4(&mut self, ip: std::net::Ipv4Addr) {
        let to = self.addresses.v4(ip);
        self.ipv4.insert(ip, to);
    }

    fn v6(&mut self, ip: std::net::Ipv6Addr) {
        if let Some(v4) = ip.to_ipv4_mapped() {
            self.v4(v4);
        } else {
            let to = self.addresses.v6(ip);
            self.ipv6.insert(ip, to);
        }
    }

    /// Numbers the hosts that wait, in natural order, so that `host-01` comes before `host-02` where `node1` came before
    /// `node2`.
    pub fn settle(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let torn = torn(&waiting);
        let mut whole: Vec<&String> = waiting.keys().filter(|h| !torn.contains_key(*h) && !is_pseudonym(h, "host-")).collect();
        whole.sort_by_cached_key(|h| natural(h));
        let width = (self.hosts.names.len() + whole.len()).to_string().len().max(2);
        // A host that already is called so keeps its name, and nobody else gets it.
        for host in waiting.keys().filter(|h| is_pseudonym(h, "host-")) {
            self.hosts.keep(host, host.clone());
        }
        for host in whole {
            self.hosts.add(host, |n| format!("host-{n:0width$}"));
        }
        for (piece, of) in torn {
            let Some(name) = self.hosts.get(&of) else { continue };
            // A piece stays a piece: the analysis knows by that that it is no host of its own.
            let new = if of.ends_with(&piece) {
                name[1..].to_owned()
            } else if of.starts_with(&piece) {
                name[..name.len() - 1].to_owned()
            } else {
                format!("x{name}")
            };
            self.hosts.keep(&piece, new);
        }
    }

    /// What stands in place of `name`.
    pub fn pseudonym(&self, name: &str, class: Class) -> String {
        if is_any_pseudonym(name) {
            return name.to_owned();
        }
        let known = |n: &Numbered| n.get(name).unwrap_or(UNKNOWN).to_owned();
        let shape = |n: &Numbered| n.get(&bare(name)).map_or_else(|| shaped(name, ""), |digits| shaped(name, digits));
        match class {
            Class::Host => self.host(name),
            Class::Hosts => known(&self.host_lists),
            Class::User => known(&self.users),
            Class::Dir => known(&self.paths),
            Class::V4 => name.parse().ok().and_then(|ip| self.ipv4.get(&ip)).map_or_else(|| "0.0.0.0".to_owned(), ToString::to_string),
            Class::V6 => name.parse().ok().and_then(|ip| self.mapped(ip)).map_or_else(|| "::".to_owned(), |to| address::like(name, to)),
            Class::Halves => address::decode_halves(name).and_then(|ip| self.mapped(ip)).map_or_else(|| "0/0".to_owned(), address::encode_halves),
            Class::Mac => shape(&self.macs),
            Class::Guid => shape(&self.guids),
            Class::Uuid => shape(&self.uuids),
            Class::Id => self.ids.get(name).map_or_else(|| "0".repeat(64), str::to_owned),
            Class::Secret => self.secrets.get(name).map_or_else(|| UNKNOWN.to_owned(), str::to_owned),
            Class::Torn => if name.bytes().all(|b| b.is_ascii_digit() || b == b'.') { "0" } else { "host" }.to_owned(),
        }
    }

    fn mapped(&self, ip: std::net::Ipv6Addr) -> Option<std::net::Ipv6Addr> {
        match ip.to_ipv4_mapped() {
            Some(v4) if address::plain_v4(v4) => Some(ip),
            Some(v4) => self.ipv4.get(&v4).map(std::net::Ipv4Addr::to_ipv6_mapped),
            None => self.ipv6.get(&ip).copied(),
        }
    }

    fn host(&self, name: &str) -> String {
        let (host, domain) = labels(name);
        let host = self.hosts.get(host).unwrap_or(UNKNOWN);
        match domain {
            None => host.to_owned(),
            Some(d) if is_pseudonym(d, "domain-") => format!("{host}.{d}"),
            Some(d) => format!("{host}.{}", self.domains.get(d).unwrap_or(UNKNOWN)),
        }
    }

    /// Names that are to be found again wherever they stand.
    pub fn names(&self) -> impl Iterator<Item = (&str, Class)> {
        let hosts = self.hosts.iter().map(|(n, _)| (n, Class::Host));
        let users = self.users.iter().map(|(n, _)| (n, Class::User));
        let words = hosts.chain(users).filter(|(n, _)| words::distinctive(n.as_bytes()));
        let lists = self.host_lists.iter().map(|(n, _)| (n, Class::Hosts));
        words.chain(self.paths.iter().map(|(n, _)| (n, Class::Dir)).filter(|(n, _)| n.len() > 2)).chain(lists)
    }
}

/// A token keeps its start, by which everybody sees what it was.
fn secret_name(name: &str, number: usize) -> String {
    match secret::prefix(name.as_bytes()).and_then(|p| std::str::from_utf8(p).ok()) {
        Some("AKIA") => format!("AKIAREDACTED{number:04}"),
        Some("ASIA") => format!("ASIAREDACTED{number:04}"),
        Some("eyJ") => format!("eyJ.redacted.{number}"),
        Some(start) => format!("{start}redacted-{number}"),
        None => format!("redacted-{number}"),
    }
}

/// Names that are a piece or an extension of another one with the same process and many more headers: torn records.
fn torn(hosts: &BTreeMap<String, Witness>) -> BTreeMap<String, String> {
    let mut by_pid: BTreeMap<u32, Vec<&String>> = BTreeMap::new();
    for (host, witness) in hosts {
        for pid in witness.pids.iter().filter(|p| **p != 0) {
            by_pid.entry(*pid).or_default().push(host);
        }
    }
    let mut out = BTreeMap::new();
    // Containers all have process 1; a list that long tells nothing and would cost its square.
    for list in by_pid.values().filter(|l| l.len() > 1 && l.len() <= 64) {
        for piece in list {
            let of = list.iter().filter(|of| {
                let related = of.ends_with(piece.as_str()) || of.starts_with(piece.as_str()) || piece.ends_with(of.as_str());
                of != &piece && related && hosts[piece.as_str()].headers * 8 < hosts[of.as_str()].headers
            });
            if let Some(of) = of.max_by_key(|of| hosts[of.as_str()].headers) {
                out.insert((*piece).clone(), (*of).clone());
            }
        }
    }
    // A piece of a piece would get a name that depends on the order.
    let pieces: BTreeSet<String> = out.keys().cloned().collect();
    out.retain(|_, of| !pieces.contains(of));
    out
}

/// Text and numbers in turn, so that `node2` comes before `node10`.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut out = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let text = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let number = rest[text..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |n| text + n);
        out.push((rest[..text].to_owned(), rest[text..number].parse().unwrap_or(u64::MAX)));
        rest = &rest[number..];
    }
    out
}
