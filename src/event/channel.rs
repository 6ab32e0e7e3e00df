//! Channel lines: the transport of one connection. Source: `src/transport/{p2p,shm,net,coll_net}.cc`, NCCL 2.2 … 2.32 and RCCL
//! (with a tail ` comm 0x… nRanks NN`). `a[x]`: x is the bus id in hex up to 2.18.1 (RCCL: always), the NVML device from 2.18.3.

use memchr::memmem::Finder;
use nom::bytes::complete::{tag, take_while};
use nom::character::complete::{digit1, space0, u32 as num};
use nom::combinator::opt;
use nom::{IResult, Parser};
use std::sync::LazyLock;

/// Which side of the connection printed the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// `[send]`
    Send,
    /// `[receive]`
    Receive,
    /// P2P and SHM lines: printed by the sender, without a mark.
    Local,
}

/// Kind of transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Via {
    /// `P2P/IPC`, `P2P/CUMEM`, `P2P/direct pointer`, `P2P/indirect`, `P2P/MNNVL`
    P2p,
    /// `SHM/…`, `direct shared memory`
    Shm,
    /// `NET/name/device`
    Net,
    /// `COLLNET/…`
    CollNet,
}

/// One channel line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel<'a> {
    /// Channel number.
    pub channel: u32,
    /// Sending rank.
    pub from: u32,
    /// Receiving rank.
    pub to: u32,
    /// Side that printed it.
    pub direction: Direction,
    /// Kind of transport.
    pub via: Via,
    /// The transport as printed, without channel tail: `P2P/CUMEM/read`, `NET/IB/0/GDRDMA`.
    pub text: &'a [u8],
    /// For NET: the network's name (`IB`, `Socket`, `AWS Libfabric`); else empty.
    pub net: &'a [u8],
    /// Data goes from GPU memory to the NIC directly.
    pub gdr: bool,
    /// Local address of the communicator (RCCL only).
    pub comm: Option<u64>,
    /// Size of the communicator (RCCL only).
    pub nranks: Option<u32>,
}

/// What is looked for behind the transport.
static MARKS: LazyLock<[Finder<'static>; 3]> = LazyLock::new(|| [Finder::new(" nRanks "), Finder::new(" comm 0x"), Finder::new("/GDRDMA")]);

/// Reads a channel message.
pub fn parse(msg: &[u8]) -> Option<Channel<'_>> {
    if !(msg.starts_with(b"Channel ") || msg.starts_with(b"Ring ") || msg.starts_with(b"CollNet ") || msg.starts_with(b"Coll ")) {
        return None;
    }
    line(msg).ok().and_then(|(_, c)| c)
}

fn bracket(input: &[u8]) -> IResult<&[u8], &[u8], ()> {
    nom::sequence::delimited(tag(&b"["[..]), take_while(|b| b != b']'), tag(&b"]"[..])).parse(input)
}

fn line(msg: &[u8]) -> IResult<&[u8], Option<Channel<'_>>, ()> {
    let collnet = msg.starts_with(b"Coll");
    let (rest, _) = take_while(|b: u8| b.is_ascii_alphabetic()).parse(msg)?;
    let (rest, (_, channel, _, _)) = (space0, num, opt((tag(&b"/"[..]), digit1)), (space0, tag(&b":"[..]), space0)).parse(rest)?;
    let (rest, from) = num.parse(rest)?;
    let (rest, _) = opt(bracket).parse(rest)?;
    let (rest, to) = opt((space0, tag(&b"->"[..]), space0, num, opt(bracket)).map(|t| t.3)).parse(rest)?;
    let (rest, direction) = opt((space0, bracket).map(|t| t.1)).parse(rest)?;
    let (rest, _) = (space0, tag(&b"via "[..]), space0).parse(rest)?;
    if to.is_none() && !collnet {
        return Ok((rest, None));
    }
    let direction = match direction {
        Some(b"send") => Direction::Send,
        Some(b"receive") => Direction::Receive,
        _ => Direction::Local,
    };
    let [sizes, comms, gdrs] = &*MARKS;
    let size = sizes.find(rest);
    let tail = comms.find(rest).or(size);
    let text = rest[..tail.unwrap_or(rest.len())].trim_ascii();
    let comm = tail.and_then(|p| rest[p..].strip_prefix(b" comm ")?.split(|b| *b == b' ').next()).and_then(super::init::hex);
    let nranks = size.and_then(|p| super::init::number(rest[p + 8..].split(|b| *b == b' ').next()?));
    let via = match text {
        t if t.starts_with(b"P2P") => Via::P2p,
        t if t.starts_with(b"SHM") || t.starts_with(b"direct shared memory") => Via::Shm,
        t if t.starts_with(b"NET/") => Via::Net,
        t if t.starts_with(b"COLLNET") => Via::CollNet,
        _ => return Ok((rest, None)),
    };
    let net = if via == Via::Net { text[4..].split(|b| *b == b'/').next().unwrap_or(b"") } else { b"" };
    let gdr = gdrs.find(text).is_some();
    Ok((rest, Some(Channel { channel, from, to: to.unwrap_or(from), direction, via, text, net, gdr, comm, nranks })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_of_the_line() {
        let cases: [(&str, u32, u32, Via, &str, &str); 10] = [
            ("Ring 00 : 9 -> 0 [receive] via NET/IB/0", 9, 0, Via::Net, "NET/IB/0", "IB"),
            ("Ring 01 : 0[1a000] -> 1[1b000] via P2P/IPC", 0, 1, Via::P2p, "P2P/IPC", ""),
            ("Channel 00 : 0[1a000] -> 1[1b000] via direct shared memory", 0, 1, Via::Shm, "direct shared memory", ""),
            ("Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read", 0, 1, Via::P2p, "P2P/CUMEM/read", ""),
            ("Channel 00 : 0[0] -> 1[1] via SHM/direct/direct", 0, 1, Via::Shm, "SHM/direct/direct", ""),
            ("Channel 00/0 : 3[1] -> 0[0] [receive] via NET/IB/0/GDRDMA", 3, 0, Via::Net, "NET/IB/0/GDRDMA", "IB"),
            ("Channel 02/0 : 1[c6000] -> 4[c1000] [send] via NET/Socket/1 comm 0x5a3 nRanks 08", 1, 4, Via::Net, "NET/Socket/1", "Socket"),
            ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/AWS Libfabric/0(3)/GDRDMA/Shared", 0, 8, Via::Net, "NET/AWS Libfabric/0(3)/GDRDMA/Shared", "AWS Libfabric"),
            ("Channel 00/0 : 0[3000] -> 1[9000] via P2P/direct pointer comm 0x5a3ea68dbe40 nRanks 02", 0, 1, Via::P2p, "P2P/direct pointer", ""),
            ("CollNet 00/0 : 3 [send] via COLLNET/SHARP/0", 3, 3, Via::CollNet, "COLLNET/SHARP/0", ""),
        ];
        for (text, from, to, via, shown, net) in cases {
            let c = parse(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((c.from, c.to, c.via, c.text, c.net), (from, to, via, shown.as_bytes(), net.as_bytes()), "{text}");
        }
        assert_eq!(parse(b"Channel 00/0 : 0[3000] -> 1[7000] via P2P/direct pointer nRanks 02").map(|c| (c.text, c.nranks)), Some((&b"P2P/direct pointer"[..], Some(2))));
        // RCCL 2.27: bus ids between GPUs of a node, devices over the network.
        let far = parse(b"Channel 03/0 : 7[7] -> 8[0] [send] via NET/IB/6/GDRDMA comm 0x561006b28580 nRanks 16").expect("a channel");
        assert_eq!((far.net, far.gdr, far.comm, far.nranks), (&b"IB"[..], true, Some(0x5610_06b2_8580), Some(16)));
        assert!(parse(b"Channel 00/02 :    0   1   2   3").is_none());
    }
}
