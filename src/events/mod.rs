//! Events as a stream: every recognised record as one JSON object a line, for jq, DuckDB, Vector, Loki.

mod json;
mod kinds;
mod who;

pub use kinds::Kinds;

use crate::digest::{Call, Item, Parsed};
use crate::event::{Channel, Direction, Event, Init, op_count};
use crate::input::Span;
use crate::line::{Level, records};
use bumpalo::Bump;
use json::Object;
use who::Who;

/// Name of the contract.
pub const SCHEMA: &str = "ncclog.event/1";

/// JSON Schema (2020-12) of one line.
pub const JSON_SCHEMA: &str = include_str!("event.schema.json");

/// Writes the events of one stream.
pub struct EventStream {
    name: String,
    kinds: Kinds,
    who: Who,
    lines: u64,
    open: bool,
}

/// Where a record stands and what its header said.
struct Place<'a> {
    line: u64,
    offset: u64,
    text: &'a [u8],
    time: Option<crate::line::Time>,
    level: Option<Level>,
}

impl EventStream {
    /// Events of the stream called `name`, of the kinds wanted.
    pub fn new(name: &str, kinds: Kinds) -> Self {
        Self { name: json::quoted(name.as_bytes()), kinds, who: Who::new(name), lines: 0, open: false }
    }

    /// Appends the lines for the next block to `out`.
    pub fn write(&mut self, text: &[u8], parsed: &Parsed<'_>, span: Span, out: &mut Vec<u8>) {
        if self.open && span.closes_open_line {
            self.lines += 1;
        }
        self.who.begin(parsed);
        let mut calls = parsed.calls.iter().peekable();
        for item in &parsed.items {
            while let Some(call) = calls.next_if(|c| (c.line, c.offset) < (item.place.line, item.place.offset)) {
                self.call(call, text, parsed, span, out);
            }
            self.item(item, parsed, span, out);
        }
        for call in calls {
            self.call(call, text, parsed, span, out);
        }
        self.lines += parsed.newlines;
        if span.bytes > 0 {
            self.open = span.open_end;
        }
    }

    fn call(&mut self, call: &Call, text: &[u8], parsed: &Parsed<'_>, span: Span, out: &mut Vec<u8>) {
        if !self.kinds.wants("collective", None) {
            return;
        }
        let start = (call.offset as usize).min(text.len());
        let end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |n| start + n);
        let line = text[start..end].strip_suffix(b"\r").unwrap_or(&text[start..end]);
        // The fast way of a call keeps no time; it is read again only where the block has any.
        let time = parsed.last_time.is_some().then(|| time_of(line)).flatten();
        let place = Place { line: self.lines + u64::from(call.line) + 1, offset: span.offset + u64::from(call.offset), text: line, time, level: Some(Level::Info) };
        let c = &call.call;
        let mut object = self.begin("collective", Some(call.source), parsed, &place, out);
        object.hex("communicator", c.comm);
        object.open("fields");
        object.text("function", c.function.name().as_bytes());
        object.number("count", c.count);
        object.number("datatype", u64::from(c.datatype));
        object.number("op", u64::from(c.op));
        object.signed("root", i64::from(c.root));
        if let Some(n) = op_count(line) {
            object.number("opCount", n);
        }
        object.close();
        object.end(line);
    }

    fn item(&mut self, item: &Item<'_>, parsed: &Parsed<'_>, span: Span, out: &mut Vec<u8>) {
        if let Event::Init(init) = &item.event {
            self.who.learn(parsed, item.source, init);
        }
        let kind = item.event.kind();
        if !self.kinds.wants(kind, item.level) {
            return;
        }
        let place = Place {
            line: self.lines + u64::from(item.place.line) + 1,
            offset: span.offset + u64::from(item.place.offset),
            text: item.place.text,
            time: item.place.time,
            level: item.level,
        };
        if item.source.is_none() {
            self.who.foreign(&item.wrap);
        }
        let mut object = self.begin(kind, item.source, parsed, &place, out);
        if !item.file.is_empty() {
            object.text("source", item.file);
        }
        match &item.event {
            Event::Init(init) => write_init(&mut object, init),
            Event::Channel(channel) => write_channel(&mut object, channel),
            Event::Version(v) => {
                object.open("fields");
                object.text("library", format!("{:?}", v.library).to_lowercase().as_bytes());
                object.text("version", v.text);
                object.close();
            }
            Event::Setting(s) => {
                object.open("fields");
                object.text("name", s.name);
                object.text("value", s.value);
                object.boolean("in_force", s.in_force);
                object.close();
            }
            Event::Note(note) => {
                object.open("fields");
                for (name, value, _) in note.fields.iter() {
                    object.text(name, value);
                }
                object.close();
            }
            Event::Collective(_) | Event::UnknownWarn => {
                object.open("fields");
                object.close();
            }
        }
        object.end(item.place.text);
    }

    /// What every event has.
    fn begin<'o>(&mut self, kind: &str, source: Option<u32>, parsed: &Parsed<'_>, place: &Place<'_>, out: &'o mut Vec<u8>) -> Object<'o> {
        let mut object = Object::new(out);
        object.word("kind", kind);
        object.raw(self.who.of(parsed, source));
        if let Some(level) = place.level {
            object.word("level", level_name(level));
        }
        object.raw(self.name_field());
        object.number("line", place.line);
        object.number("offset", place.offset);
        if let Some(time) = place.time {
            object.time(time);
        }
        debug_assert!(u32::try_from(place.text.len()).is_ok());
        object
    }

    fn name_field(&self) -> &[u8] {
        self.name.as_bytes()
    }
}

fn time_of(line: &[u8]) -> Option<crate::line::Time> {
    let arena = Bump::new();
    let mut time = None;
    records(line, &arena, |r| time = time.or(r.header.as_ref().and_then(|h| h.time).or(r.wrap.time)));
    time
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::Info => "info",
        Level::Warn => "warn",
        Level::Error => "error",
        Level::Trace => "trace",
        Level::Call => "call",
        Level::Version => "version",
        Level::Other => "other",
    }
}

fn write_init(object: &mut Object<'_>, init: &Init<'_>) {
    if init.comm != 0 {
        object.hex("communicator", init.comm);
    }
    object.open("fields");
    for (name, value) in
        [("rank", init.rank), ("nranks", init.nranks), ("cudaDev", init.cuda_dev), ("nvmlDev", init.nvml_dev), ("nNodes", init.nnodes), ("localRanks", init.local_ranks)]
    {
        if let Some(value) = value {
            object.number(name, u64::from(value));
        }
    }
    for (name, value) in [("commId", init.comm_id), ("parent", init.parent)] {
        if let Some(value) = value {
            object.hex(name, value);
        }
    }
    if !init.bus_id.is_empty() {
        object.text("busId", init.bus_id);
    }
    object.close();
}

fn write_channel(object: &mut Object<'_>, channel: &Channel<'_>) {
    if let Some(comm) = channel.comm {
        object.hex("communicator", comm);
    }
    object.open("fields");
    object.number("channel", u64::from(channel.channel));
    object.number("from", u64::from(channel.from));
    object.number("to", u64::from(channel.to));
    let direction = match channel.direction {
        Direction::Send => "send",
        Direction::Receive => "receive",
        Direction::Local => "local",
    };
    object.word("direction", direction);
    object.text("via", channel.text);
    if !channel.net.is_empty() {
        object.text("net", channel.net);
    }
    object.boolean("gdr", channel.gdr);
    object.close();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::map;

    fn lines(text: &str, kinds: &str) -> Vec<serde_json::Value> {
        let arena = Bump::new();
        let parsed = map(text.as_bytes(), &arena);
        let mut out = Vec::new();
        let kinds: Vec<String> = kinds.split(',').filter(|k| !k.is_empty()).map(str::to_owned).collect();
        EventStream::new("a\"b.log", Kinds::new(&kinds).unwrap()).write(
            text.as_bytes(),
            &parsed,
            Span { offset: 0, bytes: text.len() as u64, open_end: false, closes_open_line: false },
            &mut out,
        );
        String::from_utf8(out).unwrap().lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{l}: {e}"))).collect()
    }

    #[test]
    fn every_kind_is_one_object_with_its_rank_and_place() {
        let head = "node1:10:20 [0] NCCL";
        let text = format!(
            "{head} INFO NCCL version 2.21.5+cuda12.4\n{head} INFO comm 0xa0 rank 3 nranks 8 cudaDev 0 nvmlDev 0 busId 1000 commId 0x77 - Init START\n{head} INFO Channel 00/0 : 3[0] -> 4[1] via P2P/CUMEM\n{head} INFO AllReduce: opCount 2f sendbuff 0x1 recvbuff 0x2 count 25 datatype 7 op 0 root 0 comm 0xa0 [nranks=8] stream 0x9\n{head} WARN some \"odd\" \u{1b}[1m text\n"
        );
        let all = lines(&text, "");
        let kinds: Vec<&str> = all.iter().map(|v| v["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["version", "init.start", "channel", "collective", "warn.unknown"]);
        let call = &all[3];
        assert_eq!(
            (call["rank"].as_u64(), call["host"].as_str(), call["pid"].as_u64(), call["tid"].as_u64(), call["device"].as_u64()),
            (Some(3), Some("node1"), Some(10), Some(20), Some(0))
        );
        assert_eq!((call["communicator"].as_str(), call["line"].as_u64(), call["file"].as_str()), (Some("0xa0"), Some(4), Some("a\"b.log")));
        assert_eq!((call["fields"]["function"].as_str(), call["fields"]["opCount"].as_u64()), (Some("AllReduce"), Some(47)));
        let offset = usize::try_from(call["offset"].as_u64().unwrap()).unwrap();
        assert!(text[offset..].starts_with(call["text"].as_str().unwrap()));
        assert!(all[4]["text"].as_str().unwrap().contains("\u{1b}[1m"));
        assert_eq!(all[0]["rank"], serde_json::Value::Null, "nobody has named the rank yet");
    }

    #[test]
    fn kinds_choose() {
        let text = "n:1:1 [0] NCCL INFO Using network IB\nn:1:1 [0] NCCL WARN Call to ibv_modify_qp failed with error Connection timed out errno 110\n";
        assert_eq!(lines(text, "net").len(), 1);
        assert_eq!(lines(text, "failure").len(), 1);
        assert_eq!(lines(text, "ib,net").len(), 2);
        assert_eq!(lines(text, "ib.modify_qp").len(), 1);
        assert!(Kinds::new(&["nett".to_owned()]).unwrap_err().contains("did you mean net?"));
    }

    #[test]
    fn times_are_told_with_their_clock() {
        let all = lines("2025-03-01 10:00:00.250 n:1:1 [0] NCCL INFO Using network IB\n", "");
        assert_eq!((all[0]["time"].as_str(), all[0]["clock"].as_str()), (Some("2025-03-01T10:00:00.250000"), Some("date")));
    }

    #[test]
    fn lines_fit_their_schema() {
        let schema: serde_json::Value = serde_json::from_str(JSON_SCHEMA).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let text = std::fs::read_to_string("fixtures/tcp-container-without-infiniband/pods.log").unwrap();
        let all = lines(&text, "");
        assert!(all.len() > 100);
        for value in all {
            assert!(validator.is_valid(&value), "{value}");
        }
    }
}
