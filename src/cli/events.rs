//! `ncclog events`: every recognised event as a line of JSON.

use super::follow::{Feed, inputs, tell_absent};
use super::{complain, exit};
use crate::digest::map;
use crate::events::{EventStream, Kinds};
use crate::follow::{Extra, Observed, Observer};
use crate::input::{self, Source, StreamBlocks};
use ahash::AHashMap;
use anyhow::{Context, Result, anyhow};
use bumpalo::Bump;
use clap::Args;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What stands in front of the options in the help.
pub const EXAMPLES: &str = "\
Examples:
  ncclog events rank*.log | jq -c 'select(.kind == \"ib.completion\")'
  ncclog events logs/ --kind failure,init
  ncclog events --follow logs/ --kind net,ib | vector --config vector.toml
  `ncclog schema events` prints the JSON Schema of a line.";

/// Bytes read at once.
const BLOCK: usize = 1 << 20;

/// Arguments of `events`.
#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Log files, directories of them, quoted globs; `-` or nothing reads a pipe
    #[arg(value_name = "FILE|DIR|-")]
    pub inputs: Vec<PathBuf>,
    /// Only these kinds: subsystems (net, ib, init …), whole kinds (ib.completion), or failure
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub kind: Vec<String>,
    /// Go on as the files grow, until Ctrl-C
    #[arg(long)]
    pub follow: bool,
    /// With --follow: look at the files this often instead of waiting for the system's events
    #[arg(long, value_name = "TIME", value_parser = super::follow::poll, requires = "follow")]
    pub poll: Option<Duration>,
}

const UNWRITTEN: &str = "standard output cannot be written; send it to a disk with room";

/// Writes the events. A reader that went away has seen enough.
pub fn run(args: &EventsArgs) -> Result<u8> {
    let kinds = Kinds::new(&args.kind).map_err(|e| anyhow!("--kind {e}"))?;
    let names = inputs(&args.inputs)?;
    let code = if args.follow { follow(&names, &kinds, args.poll) } else { once(&names, &kinds) };
    match code {
        // The words around an error keep it findable.
        Err(error) if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) => Ok(exit::OK),
        other => other,
    }
}

fn once(names: &[String], kinds: &Kinds) -> Result<u8> {
    let resolved = input::resolve(names);
    let mut trouble = !resolved.problems.is_empty();
    for problem in &resolved.problems {
        complain(&format!("{}: {}", problem.path, problem.text));
    }
    let mut stdout = io::stdout().lock();
    let (mut buffer, mut out, mut arena) = (Vec::new(), Vec::new(), Bump::new());
    for source in resolved.sources {
        let name = source.name();
        let reader = match open(&source) {
            Ok(reader) => reader,
            Err(error) => {
                complain(&format!("{name}: cannot be read ({error}); check that it is a file and that you may read it"));
                trouble = true;
                continue;
            }
        };
        let mut blocks = StreamBlocks::new(reader, BLOCK);
        let mut stream = EventStream::new(&name, kinds.clone());
        loop {
            match blocks.next(&mut buffer) {
                Ok(None) => break,
                Ok(Some(span)) => {
                    arena.reset();
                    out.clear();
                    stream.write(&buffer, &map(&buffer, &arena), span, &mut out);
                    stdout.write_all(&out).context(UNWRITTEN)?;
                }
                Err(error) => {
                    complain(&format!("{name}: could be read only up to byte {} ({error})", blocks.bytes()));
                    trouble = true;
                    break;
                }
            }
        }
    }
    stdout.flush().context(UNWRITTEN)?;
    Ok(if trouble { exit::TROUBLE } else { exit::OK })
}

fn open(source: &Source) -> io::Result<Box<dyn Read>> {
    let mut raw: Box<dyn Read> = match source {
        Source::Stdin => Box::new(io::stdin()),
        Source::File(path) => Box::new(File::open(path)?),
    };
    let mut head = vec![0; 64];
    let n = input::read_up_to(&mut raw, &mut head)?;
    head.truncate(n);
    let encoding = input::sniff(&head);
    let mut decoded = input::decoder(encoding, Box::new(io::Cursor::new(head).chain(raw)))?;
    let mut head = vec![0; input::WHOLE.len()];
    // An error is met again by the reader of the whole.
    let n = input::read_up_to(&mut decoded, &mut head).unwrap_or(0);
    head.truncate(n);
    if head == input::WHOLE {
        return Err(io::Error::other("it is a digest, which holds what lines say and not the lines"));
    }
    Ok(Box::new(io::Cursor::new(head).chain(decoded)))
}

/// Events that wait for their writer.
#[derive(Default)]
struct Waiting {
    streams: AHashMap<u32, EventStream>,
    out: Vec<u8>,
}

fn follow(names: &[String], kinds: &Kinds, poll: Option<Duration>) -> Result<u8> {
    let waiting: Arc<Mutex<Waiting>> = Arc::default();
    let (shared, kinds) = (Arc::clone(&waiting), kinds.clone());
    let observer: Observer = Arc::new(move |seen: &Observed<'_>| {
        let mut waiting = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let Waiting { streams, out } = &mut *waiting;
        let stream = streams.entry(seen.stream).or_insert_with(|| EventStream::new(seen.name, kinds.clone()));
        stream.write(seen.text, seen.parsed, seen.span, out);
    });
    let mut feed = Feed::new(names, poll, false, Extra { observer: Some(observer), user: None })?;
    let mut stdout = io::stdout().lock();
    let mut told = BTreeSet::new();
    loop {
        feed.read();
        for problem in feed.follower.problems() {
            let text = format!("{}: {}", problem.path, problem.text);
            if told.insert(text.clone()) {
                complain(&text);
            }
        }
        let over = feed.stop || feed.ended();
        if over {
            feed.read_rest();
        }
        let out = std::mem::take(&mut waiting.lock().unwrap_or_else(PoisonError::into_inner).out);
        stdout.write_all(&out).and_then(|()| stdout.flush()).context(UNWRITTEN)?;
        if over {
            let absent = tell_absent(&feed.follower);
            return Ok(if absent || !feed.follower.problems().is_empty() { exit::TROUBLE } else { exit::OK });
        }
        feed.wait(None);
    }
}
