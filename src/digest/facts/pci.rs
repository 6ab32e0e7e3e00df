//! PCIe: access control of bridges (`lspci -vvv`) and what stands below them (`lspci -tv`).

use super::Family;
use super::model::{Acs, PciBridge};
use super::nvidia::pci;
use super::reader::{Pci, Scene};

/// Access control of bridges, and their places.
pub const LSPCI: Family = Family {
    commands: &["lspci -vvv", "lspci -tv"],
    reads: "Access control (ACS) of each PCIe device, and the buses below each bridge: whether GPUs share a switch, and which bridges stand between them.",
    starts: &["ACSCtl:", "Bus:"],
    read: lspci,
};

fn lspci(scene: &mut Scene<'_>) -> bool {
    if let Some(address) = scene.words.first().filter(|w| pci(w)) {
        scene.memo.pci = Pci { address: (*address).to_owned(), bridge: scene.text.to_ascii_lowercase().contains("bridge"), ..Pci::default() };
        return true;
    }
    if scene.text.starts_with("Bus: primary=") {
        let field = |name: &str| scene.text.split([' ', ',']).find_map(|w| w.strip_prefix(name)).and_then(|v| u8::from_str_radix(v, 16).ok());
        scene.memo.pci.below = field("secondary=").zip(field("subordinate=")).filter(|(first, last)| *first > 0 && first <= last);
        if let Some(below) = scene.memo.pci.below
            && !scene.memo.pci.address.is_empty()
        {
            let device = scene.memo.pci.address.clone();
            scene.host.add_bridge(PciBridge { device, below, at: scene.at.clone() });
        }
        return true;
    }
    let Some(flags) = scene.text.strip_prefix("ACSCtl:") else { return tree(scene).is_some() };
    let redirects = flags.contains("SrcValid+") && flags.contains("ReqRedir+");
    let Pci { address, bridge, below, .. } = scene.memo.pci.clone();
    scene.host.add_acs(Acs { device: address, bridge, below, redirects, at: scene.at.clone() });
    true
}

/// Domain and bus of an address, as a number each: `0009:01:00.0`, `41:00.0`.
pub fn bus_of(address: &str) -> Option<(u32, u8)> {
    if !pci(address) {
        return None;
    }
    let mut parts = address.rsplit(':').skip(1);
    let bus = u8::from_str_radix(parts.next()?, 16).ok()?;
    let domain = parts.next().map_or(Some(0), |d| u32::from_str_radix(d, 16).ok())?;
    Some((domain, bus))
}

/// What a line of the tree shows between its marks.
enum Part<'t> {
    /// `[0000:40]`: the first bus of a host bridge.
    Root(u32, u8),
    /// `01.1-[41-43]`: a bridge and the buses below it.
    Bridge(&'t str, (u8, u8)),
}

/// The next part of a line, and what stands behind it. Devices that are no bridge end the line.
fn part(text: &str) -> Option<(Part<'_>, &str)> {
    let text = text.trim_start_matches(['-', '+', '\\', '|', ' ']);
    if let Some(inner) = text.strip_prefix('[') {
        let (root, rest) = inner.split_once(']')?;
        let (domain, bus) = root.split_once(':')?;
        let bus = bus.split('-').next()?;
        let hex = |digits: &str, len: usize| u32::from_str_radix(digits, 16).ok().filter(|_| digits.len() >= len);
        return Some((Part::Root(hex(domain, 4)?, u8::try_from(hex(bus, 2)?).ok()?), rest));
    }
    let (device, rest) = text.split_once("-[")?;
    let plain = device.len() == 4 && device.as_bytes()[2] == b'.' && device.bytes().enumerate().all(|(i, b)| i == 2 || b.is_ascii_hexdigit());
    let (range, rest) = rest.split_once(']').filter(|_| plain)?;
    // Later versions may put the domain in front.
    let range = range.rsplit_once(':').map_or(range, |(_, r)| r);
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let below = (u8::from_str_radix(first, 16).ok()?, u8::from_str_radix(last, 16).ok()?);
    (below.0 > 0 && below.0 <= below.1).then_some((Part::Bridge(device, below), rest))
}

/// `-[0000:40]-+-01.1-[41]----00.0  NVIDIA …`, ` +-03.1-[60-65]----00.0-[61-65]--+-00.0-[62]----00.0`. Which bus a
/// line hangs on is told by the ranges: the narrowest one around its own. So it does not matter whether the indentation
/// survived.
fn tree(scene: &mut Scene<'_>) -> Option<()> {
    let (mut rest, mut taken) = (scene.text, None);
    // The bus that what follows on this line is on.
    let mut here: Option<u8> = None;
    while let Some((part, behind)) = part(rest) {
        rest = behind;
        let (domain, root) = match part {
            Part::Root(domain, bus) => {
                scene.memo.pci.root = Some((domain, bus));
                (here, taken) = (Some(bus), Some(()));
                continue;
            }
            Part::Bridge(..) if scene.memo.pci.root.is_none() => return None,
            Part::Bridge(..) => scene.memo.pci.root?,
        };
        let Part::Bridge(device, below) = part else { continue };
        let around = |b: &&PciBridge| bus_of(&b.device).is_some_and(|(d, _)| d == domain) && b.below.0 < below.0 && below.1 <= b.below.1;
        let bus = here.unwrap_or_else(|| scene.host.bridges.iter().filter(around).min_by_key(|b| b.below.1 - b.below.0).map_or(root, |b| b.below.0));
        let address = if domain == 0 { format!("{bus:02x}:{device}") } else { format!("{domain:04x}:{bus:02x}:{device}") };
        // What `lspci -vvv` said of the bus is sure.
        if !scene.host.bridges.iter().any(|b| b.below.0 == below.0 && bus_of(&b.device).is_some_and(|(d, _)| d == domain)) {
            scene.host.add_bridge(PciBridge { device: address, below, at: scene.at.clone() });
        }
        (here, taken) = (Some(below.0), Some(()));
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::super::HostFacts;
    use super::super::tests::{collapsed, one};

    #[test]
    fn access_control_whole_and_filtered() {
        let whole = "40:01.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] Starship/Matisse GPP Bridge (prog-if 00 [Normal decode])\n\tBus: primary=40, secondary=41, subordinate=41, sec-latency=0\n\tCapabilities: [2a0 v1] Access Control Services\n\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+\n\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n41:00.0 VGA compatible controller: NVIDIA Corporation GB202 [GeForce RTX 5090] (rev a1) (prog-if 00 [VGA controller])\n";
        for text in [whole.to_owned(), collapsed(whole)] {
            let facts = one(&text);
            assert_eq!(facts.acs.iter().map(|a| (a.device.as_str(), a.bridge, a.below, a.redirects)).collect::<Vec<_>>(), [("40:01.1", true, Some((0x41, 0x41)), true)]);
            assert_eq!(bridges(&facts), [("40:01.1", 0x41, 0x41)]);
        }
        let filtered = "$ sudo lspci -vvv | grep -i ACSCtl:\n\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n";
        assert_eq!(one(filtered).acs.iter().map(|a| a.redirects).collect::<Vec<_>>(), [false]);
    }

    fn bridges(facts: &HostFacts) -> Vec<(&str, u8, u8)> {
        facts.bridges.iter().map(|b| (b.device.as_str(), b.below.0, b.below.1)).collect()
    }

    const FOREST: &str = "\
-+-[0000:80]-+-00.0  Intel Corporation Device 09a2
 |           +-01.0-[81-86]----00.0-[82-86]--+-00.0-[83]----00.0  NVIDIA Corporation GA102GL [RTX A6000]
 |           |                               +-04.0-[84]----00.0  Mellanox Technologies MT2892 Family [ConnectX-6 Dx]
 |           |                               |            \\-00.1  Mellanox Technologies MT2892 Family [ConnectX-6 Dx]
 |           |                               \\-08.0-[85-86]--+-00.0  NVIDIA Corporation GA102GL [RTX A6000]
 |           |                                               \\-00.1  NVIDIA Corporation GA102 High Definition Audio Controller
 |           \\-03.0-[87]--
 +-[0000:60]---00.0-[61-62]----01.0-[62]--
 \\-[0000:00]-+-00.0  Intel Corporation Device 09a2
             +-1c.0-[01]----00.0  Intel Corporation I210 Gigabit Network Connection
             \\-1f.0  Intel Corporation Device 1b81
";

    #[test]
    fn a_tree_with_names_without_and_without_indentation() {
        let plain: String = FOREST.lines().map(|l| l.split("  ").filter(|p| !p.starts_with(|c: char| c.is_ascii_alphabetic())).collect::<Vec<_>>().join("  ") + "\n").collect();
        let numbered = FOREST.replace("[RTX A6000]", "[RTX A6000] [10de:2230]");
        for text in [FOREST.to_owned(), plain, numbered, collapsed(FOREST), format!("> {}", FOREST.trim_end().replace('\n', "\n> "))] {
            assert_eq!(
                bridges(&one(&text)),
                [
                    ("80:01.0", 0x81, 0x86),
                    ("81:00.0", 0x82, 0x86),
                    ("82:00.0", 0x83, 0x83),
                    ("82:04.0", 0x84, 0x84),
                    ("82:08.0", 0x85, 0x86),
                    ("80:03.0", 0x87, 0x87),
                    ("60:00.0", 0x61, 0x62),
                    ("61:01.0", 0x62, 0x62),
                    ("00:1c.0", 1, 1),
                ],
                "{text}"
            );
        }
    }

    #[test]
    fn domains_are_told_apart() {
        let text = "-+-[000f:00]---00.0-[01]----00.0  NVIDIA Corporation Device 2e12\n +-[0002:00]---00.0-[01]--+-00.0  Mellanox Technologies MT2910 Family [ConnectX-7]\n |                        \\-00.1  Mellanox Technologies MT2910 Family [ConnectX-7]\n \\-[0000:00]---00.0-[01]--+-00.0  Mellanox Technologies MT2910 Family [ConnectX-7]\n";
        assert_eq!(bridges(&one(text)), [("000f:00:00.0", 1, 1), ("0002:00:00.0", 1, 1), ("00:00.0", 1, 1)]);
        // What was listed in full stays as it was listed.
        let both = format!("00:00.0 PCI bridge: X\n\tBus: primary=00, secondary=01, subordinate=01, sec-latency=0\n{text}");
        assert_eq!(one(&both).bridges.last().map(|b| (b.device.as_str(), b.at.line)), Some(("0002:00:00.0", 4)));
    }

    #[test]
    fn other_trees_are_none() {
        for text in ["+-- src\n|   +-- main.rs\n\\-- Cargo.toml\n", "- [x] done\n+-01.0-[41]----00.0\n", "-[0000:zz]-+-00.0\n", "  |-+-[not]-one\n"] {
            assert!(super::super::tests::read(text).is_empty(), "{text}");
        }
    }
}
