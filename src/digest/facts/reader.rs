//! The reader: knows whose facts a line is and in which output it stands, and hands it to the families.

use super::gate::{MAX_FACT_LINE, gate};
use super::model::{HostFacts, Line, MAX_LINE_TEXT, MAX_NAME, Naming, Table};
use super::{FAMILIES, prefix, source, sysfs};
use crate::line::Wrap;
use ahash::AHashMap;
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
    /// Where each source stands in its outputs.
    places: Vec<Place>,
    /// Source → index into the places.
    sources: AHashMap<Source, usize>,
}

/// What the wrappers say of whose line it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Source {
    /// Name of the source.
    pub label: Vec<u8>,
    /// Host.
    pub host: Vec<u8>,
    /// Process.
    pub pid: Option<u32>,
    /// Task of a launcher.
    pub task: Option<u32>,
}

/// Whose output it is, and which.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// Index into the hosts.
    host: Option<usize>,
    /// What the lines before tell of this one.
    pub memo: Memo,
    /// The command ran on another host than the one of the prompt.
    away: bool,
    /// The host of the prompt, while away.
    home: Option<usize>,
    /// The only fact so far behind a word that need not be a host.
    doubt: Option<String>,
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
    /// Number of the last rule of dashes, and the name behind it.
    pub title: (u64, String),
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
    /// What the wrappers named.
    pub wrap: &'a Wrap<'a>,
}

impl Reader {
    /// Takes a line in; true if it was read as a fact.
    pub fn see(&mut self, raw: &RawLine<'_>) -> bool {
        let at = Line { stream: 0, line: raw.line, offset: raw.offset, text: clip(&String::from_utf8_lossy(raw.text), MAX_LINE_TEXT).to_owned() };
        if let Some(name) = source::ansible(String::from_utf8_lossy(&raw.text[..raw.text.len().min(MAX_LINE_TEXT)]).trim())
            && let Some(place) = self.place(&Source::default())
        {
            self.named(place, None, name);
            return true;
        }
        let source = prefix::source(raw.wrap, raw.msg);
        let behind = prefix::front(&source, raw.msg).filter(|(_, text)| text.len() <= MAX_FACT_LINE && gate(text));
        let behind = behind.map(|(source, text)| (source, String::from_utf8_lossy(text)));
        if let Some((source, text)) = &behind
            && (self.sources.contains_key(source) || (prefix::is_host(source) && prefix::tells(text.trim())))
            && self.at_source(source, text.trim(), &at)
        {
            return true;
        }
        // What was taken off may have been a part of the output, unless it said where the line is from.
        let whole = source == Source::default() && !raw.text.contains(&0x1b) && !raw.text.trim_ascii_start().starts_with(b"{");
        for text in [Some(raw.msg), Some(raw.text).filter(|text| whole && *text != raw.msg)].into_iter().flatten() {
            if text.len() <= MAX_FACT_LINE && gate(text) && self.at_source(&source, String::from_utf8_lossy(text).trim(), &at) {
                return true;
            }
        }
        // Any other word is believed once two different facts stand behind it.
        let Some((source, text)) = behind.filter(|(source, text)| !prefix::is_host(source) && prefix::tells(text.trim())) else { return false };
        let taken = self.at_source(&source, text.trim(), &at);
        if let Some(place) = self.sources.get(&source).filter(|_| taken) {
            self.places[*place].doubt = Some(text.trim().to_owned());
        }
        taken
    }

    /// Takes in a line of a source.
    fn at_source(&mut self, source: &Source, text: &str, at: &Line) -> bool {
        let Some(place) = self.place(source) else { return false };
        let memo = &mut self.places[place].memo;
        if at.line.saturating_sub(memo.last) > FAR {
            *memo = Memo::default();
        }
        memo.last = at.line;
        let taken = self.line(place, source.task, text, at);
        self.places[place].doubt.take_if(|first| taken && first != text);
        taken
    }

    /// The facts of all hosts.
    pub fn finish(self) -> Vec<HostFacts> {
        let mut hosts = self.hosts;
        hosts.iter_mut().for_each(HostFacts::tidy);
        let doubted = |host: usize| {
            let mut of = self.places.iter().filter(|p| p.host == Some(host)).peekable();
            of.peek().is_some() && of.all(|p| p.doubt.is_some())
        };
        hosts.into_iter().enumerate().filter(|(i, h)| !h.is_empty() && !doubted(*i)).map(|(_, h)| h).collect()
    }

    /// Index of the source's place.
    fn place(&mut self, source: &Source) -> Option<usize> {
        if let Some(at) = self.sources.get(source) {
            return Some(*at);
        }
        if self.places.len() >= MAX_SOURCES {
            return None;
        }
        let at = self.places.len();
        self.places.push(Place::default());
        self.sources.insert(source.clone(), at);
        if !source.host.is_empty() {
            self.enter(at, &String::from_utf8_lossy(&source.host), source.task, Naming::Wrapper);
        }
        Some(at)
    }

    /// The lines that follow are of another host.
    fn enter(&mut self, place: usize, name: &str, task: Option<u32>, naming: Naming) {
        let name = clip(name, MAX_NAME);
        // Without a name each task may be a host of its own.
        let known = self.hosts.iter().position(|h| h.host == name && (!name.is_empty() || h.task == task));
        let host = match known {
            Some(host) => host,
            None if self.hosts.len() < MAX_HOSTS => {
                self.hosts.push(HostFacts { host: name.to_owned(), naming, task, ..HostFacts::default() });
                self.hosts.len() - 1
            }
            None => return,
        };
        self.hosts[host].naming = self.hosts[host].naming.min(naming);
        self.places[place].host = Some(host);
    }

    fn is_named(&self, place: usize) -> bool {
        self.places[place].host.and_then(|h| self.hosts.get(h)).is_some_and(|h| !h.host.is_empty())
    }

    /// What follows is the output of a command on this host.
    fn named(&mut self, place: usize, task: Option<u32>, name: &str) {
        self.places[place].memo = Memo { last: self.places[place].memo.last, ..Memo::default() };
        self.enter(place, name, task, Naming::Wrapper);
    }

    fn line(&mut self, place: usize, task: Option<u32>, text: &str, at: &Line) -> bool {
        if let Some(name) = source::title(text, &mut self.places[place].memo, at.line) {
            self.named(place, task, &name);
            return true;
        }
        if let Some(head) = source::heading(text, &self.places[place].memo) {
            self.heading(place, task, &head, at);
            return true;
        }
        if self.places[place].host.is_none() {
            // Facts that nothing names: a host without a name.
            self.enter(place, "", task, Naming::Unknown);
        }
        let Some(host) = self.places[place].host.and_then(|h| self.hosts.get_mut(h)) else { return false };
        let memo = &mut self.places[place].memo;
        let mut scene = Scene { text, words: text.split_whitespace().take(64).collect(), at, memo, host };
        FAMILIES.iter().any(|f| (f.read)(&mut scene))
    }

    fn heading(&mut self, place: usize, task: Option<u32>, head: &source::Heading<'_>, at: &Line) {
        let here = &mut self.places[place];
        if here.away && head.exit.is_none() {
            here.host = here.home.take();
        }
        (here.away, here.home) = if head.away { (true, here.host) } else { (here.away && head.exit.is_some(), here.home) };
        if let Some((name, naming)) = head.host.filter(|_| !(head.answer && self.is_named(place))) {
            self.enter(place, name, task, naming);
        }
        let memo = &mut self.places[place].memo;
        let mut empty = memo.head.take();
        // Files of ports that are not there: no device, even where no tool is installed.
        let of_ports = head.exit.is_some_and(|code| code != 0) && memo.command.contains("/sys/class/infiniband/*/ports/");
        *memo = Memo { command: clip(head.command, 300).to_owned(), last: memo.last, paths: sysfs::asked(head.command), ..Memo::default() };
        let Some(host) = self.places[place].host.and_then(|h| self.hosts.get_mut(h)) else { return };
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
