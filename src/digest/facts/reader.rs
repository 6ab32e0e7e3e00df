//! The reader: knows whose facts a line is and in which output it stands, and hands it to the families.

use super::gate::{MAX_FACT_LINE, gate};
use super::model::{HostFacts, Line, MAX_LINE_TEXT, MAX_NAME, Naming, Table};
use super::{FAMILIES, source, sysfs};
use std::collections::VecDeque;

/// Lines without a fact after which an output is over.
const FAR: u64 = 150;
/// Most hosts of one stream.
const MAX_HOSTS: usize = 1024;
/// Most sources of one stream whose outputs are told apart.
const MAX_SOURCES: usize = 1024;

/// Reads the facts of a stream's hosts.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    hosts: Vec<HostFacts>,
    /// Wrapper label → its place in the stream's outputs.
    places: Vec<(Vec<u8>, Place)>,
}

/// Whose output it is, and which.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// Index into the hosts.
    host: Option<usize>,
    /// What the lines before tell of this one.
    pub memo: Memo,
}

/// What the lines before tell of this one.
#[derive(Debug, Clone, Default)]
pub struct Memo {
    /// The command, if it was seen.
    pub command: String,
    /// Number of the last line that was looked at.
    pub last: u64,
    /// RDMA device and port that the lines are of.
    pub hca: String,
    /// Port number.
    pub port: u8,
    /// Network interface that the lines are of.
    pub interface: String,
    /// Files whose content follows, the next one first.
    pub paths: VecDeque<String>,
    /// Table between GPUs, and the GPU of each column.
    pub table: Option<(Table, Vec<Option<u32>>)>,
    /// PCI device that the lines are of.
    pub pci: Pci,
    /// GPU that the lines are of.
    pub gpu: Option<u32>,
    /// Where the facts of a family stand beyond that.
    pub part: String,
    /// Heading of a list that has had no entry yet.
    pub head: Option<Line>,
}

/// A PCI device, as its heading shows it.
#[derive(Debug, Clone, Default)]
pub struct Pci {
    /// Address.
    pub address: String,
    /// It is a bridge.
    pub bridge: bool,
    /// First and last bus below it.
    pub below: Option<(u8, u8)>,
    /// Domain and first bus of the host bridge whose tree is shown.
    pub root: Option<(u32, u8)>,
}

/// One line with everything that its parsers may use.
pub struct Scene<'s> {
    /// The line without blanks around it.
    pub text: &'s str,
    /// Its words.
    pub words: Vec<&'s str>,
    /// Its place.
    pub at: &'s Line,
    /// What the lines before tell.
    pub memo: &'s mut Memo,
    /// The host.
    pub host: &'s mut HostFacts,
}

/// A line as the blocks give it.
#[derive(Debug, Clone, Copy)]
pub struct RawLine<'a> {
    /// Number in the stream, 1-based.
    pub line: u64,
    /// Byte offset in the decoded stream.
    pub offset: u64,
    /// The whole record, wrappers included.
    pub text: &'a [u8],
    /// Without wrappers.
    pub msg: &'a [u8],
    /// Host that a wrapper named; empty if none.
    pub host: &'a [u8],
    /// Source that a wrapper named; empty if none.
    pub label: &'a [u8],
}

impl Reader {
    /// Takes a line in; true if it was read as a fact.
    pub fn see(&mut self, raw: &RawLine<'_>) -> bool {
        let Some(place) = self.place(raw) else { return false };
        let at = Line { stream: 0, line: raw.line, offset: raw.offset, text: clip(&String::from_utf8_lossy(raw.text), MAX_LINE_TEXT).to_owned() };
        if raw.line.saturating_sub(self.places[place].1.memo.last) > FAR {
            self.places[place].1.memo = Memo::default();
        }
        self.places[place].1.memo.last = raw.line;
        // A rank in front (`4: `) may as well be a part of the output.
        let plain = raw.host.is_empty() && raw.label.is_empty() && !raw.text.contains(&0x1b);
        let texts = if plain { [raw.text, raw.msg] } else { [raw.msg, b""] };
        for (i, text) in texts.into_iter().enumerate() {
            if (i == 1 && text == texts[0]) || text.len() > MAX_FACT_LINE || !gate(text) {
                continue;
            }
            let text = String::from_utf8_lossy(text);
            if self.line(place, text.trim(), &at) {
                return true;
            }
        }
        false
    }

    /// The facts of all hosts.
    pub fn finish(self) -> Vec<HostFacts> {
        let mut hosts = self.hosts;
        hosts.iter_mut().for_each(HostFacts::tidy);
        hosts.into_iter().filter(|h| !h.is_empty()).collect()
    }

    /// Index of the source's place.
    fn place(&mut self, raw: &RawLine<'_>) -> Option<usize> {
        let known = self.places.iter().position(|(label, _)| label == raw.label);
        let at = match known {
            Some(at) => at,
            None if self.places.len() < MAX_SOURCES => {
                self.places.push((raw.label.to_vec(), Place::default()));
                self.places.len() - 1
            }
            None => return None,
        };
        if !raw.host.is_empty() && self.places[at].1.host.is_none() {
            self.enter(at, &String::from_utf8_lossy(raw.host), Naming::Wrapper);
        }
        Some(at)
    }

    /// The lines that follow are of another host.
    fn enter(&mut self, place: usize, name: &str, naming: Naming) {
        let name = clip(name, MAX_NAME);
        let known = self.hosts.iter().position(|h| h.host == name);
        let host = match known {
            Some(host) => host,
            None if self.hosts.len() < MAX_HOSTS => {
                self.hosts.push(HostFacts { host: name.to_owned(), naming, ..HostFacts::default() });
                self.hosts.len() - 1
            }
            None => return,
        };
        self.hosts[host].naming = self.hosts[host].naming.min(naming);
        self.places[place].1.host = Some(host);
    }

    fn is_named(&self, place: usize) -> bool {
        self.places[place].1.host.and_then(|h| self.hosts.get(h)).is_some_and(|h| !h.host.is_empty())
    }

    fn line(&mut self, place: usize, text: &str, at: &Line) -> bool {
        if let Some(head) = source::heading(text, &self.places[place].1.memo) {
            self.heading(place, &head, at);
            return true;
        }
        if self.places[place].1.host.is_none() {
            // Facts that nothing names: a host without a name.
            self.enter(place, "", Naming::Unknown);
        }
        let Some(host) = self.places[place].1.host.and_then(|h| self.hosts.get_mut(h)) else { return false };
        let memo = &mut self.places[place].1.memo;
        let mut scene = Scene { text, words: text.split_whitespace().take(64).collect(), at, memo, host };
        FAMILIES.iter().any(|f| (f.read)(&mut scene))
    }

    fn heading(&mut self, place: usize, head: &source::Heading<'_>, at: &Line) {
        if let Some((name, naming)) = head.host.filter(|_| !(head.answer && self.is_named(place))) {
            self.enter(place, name, naming);
        }
        let memo = &mut self.places[place].1.memo;
        let mut empty = memo.head.take();
        // Files of ports that are not there: no device, even where no tool is installed.
        let of_ports = head.exit.is_some_and(|code| code != 0) && memo.command.contains("/sys/class/infiniband/*/ports/");
        *memo = Memo { command: clip(head.command, 300).to_owned(), last: memo.last, paths: sysfs::asked(head.command), ..Memo::default() };
        let Some(host) = self.places[place].1.host.and_then(|h| self.hosts.get_mut(h)) else { return };
        if of_ports && host.hcas.is_empty() {
            empty = empty.or_else(|| host.commands.last().map(|c| c.at.clone()));
        }
        if empty.is_some() {
            // The list of devices ended with its heading.
            host.no_hca = empty;
        }
        if !head.time.is_empty() {
            clip(head.time, MAX_NAME).clone_into(&mut host.time);
        }
        if head.collected && !head.command.is_empty() {
            host.add_command(super::Command { text: clip(head.command, 200).to_owned(), exit: None, at: at.clone() });
        }
        if let (Some(code), Some(last)) = (head.exit, host.commands.last_mut()) {
            last.exit = Some(code);
        }
    }
}

/// The first `most` bytes, cut at a character.
pub fn clip(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
