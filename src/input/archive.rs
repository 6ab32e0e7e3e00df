//! Members of tar archives, compressed or not, each a stream of its own named `archive!member`.

use super::decode::{Encoding, decoder, read_up_to, sniff};
use super::pump::{Pumped, Sink};
use super::resolve::{PROGRAM, may_be_log};
use std::cell::Cell;
use std::io::{self, Read};
use std::path::Path;

/// How much of a file shows that it is an archive.
pub const HEAD: usize = 512;

/// Most members of one archive that are read.
const MAX_MEMBERS: usize = 65_536;

/// Recognises a tar archive by its first header: the magic of ustar and GNU tar, and the checksum.
pub fn is_tar(head: &[u8]) -> bool {
    if head.len() < HEAD || &head[257..262] != b"ustar" {
        return false;
    }
    // The sum counts its own field as blanks.
    let sum: u32 = head[..HEAD].iter().enumerate().map(|(i, b)| u32::from(if (148..156).contains(&i) { b' ' } else { *b })).sum();
    let digits = head[148..156].iter().skip_while(|b| **b == b' ').take_while(|b| (b'0'..=b'7').contains(*b));
    digits.fold(0u32, |n, d| n.saturating_mul(8).saturating_add(u32::from(d - b'0'))) == sum
}

/// Sends every member that may be a log; what went wrong with the archive.
pub fn members(reader: &mut dyn Read, sink: &mut Sink) -> Option<String> {
    let broken = |error: &io::Error, read: usize| format!("is broken behind its member {read} ({error}); what came before was analysed, fetch the archive again for the rest");
    let mut archive = tar::Archive::new(reader);
    let entries = match archive.entries() {
        Ok(entries) => entries,
        Err(error) => return Some(broken(&error, 0)),
    };
    let mut read = 0;
    for entry in entries {
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(error) => return Some(broken(&error, read)),
        };
        read += 1;
        if read > MAX_MEMBERS {
            return Some(format!("holds more than {MAX_MEMBERS} members; the rest was not read, unpack it and name the files"));
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if !entry.header().entry_type().is_file() || !may_be_log(Path::new(&name)) {
            continue;
        }
        let size = entry.size();
        let cut = Cell::new(false);
        if !sink.send(Pumped::Member(name)) || !member(&mut entry, size, &cut, sink) || cut.get() {
            return None;
        }
    }
    None
}

/// Sends one member, which may be compressed itself, and tells whether the archive is `cut` within it; false if nobody listens any more.
fn member(mut entry: &mut dyn Read, size: u64, cut: &Cell<bool>, sink: &mut Sink) -> bool {
    let mut head = vec![0; 64];
    let n = read_up_to(&mut entry, &mut head).unwrap_or(0);
    head.truncate(n);
    if head.starts_with(PROGRAM) {
        return sink.send(Pumped::End(0, None));
    }
    let encoding = sniff(&head);
    match decoder(encoding, Box::new(io::Cursor::new(head).chain(entry))) {
        Ok(mut decoded) => sink.blocks(&mut decoded, |bytes| {
            let short = encoding == Encoding::Plain && bytes < size;
            cut.set(short);
            short.then(|| format!("ends at byte {bytes} of {size}: the archive is cut; what came before was analysed, fetch it again for the rest"))
        }),
        Err(error) => sink.send(Pumped::End(0, Some(format!("cannot be decoded ({error})")))),
    }
}
