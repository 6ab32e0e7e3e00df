//! RDMA devices: `ibv_devinfo`, `ibv_devices`, `ibstat`, `ibstatus`, `rdma link`, `ibdev2netdev`, `show_gids`.

use super::Family;
use super::ip::interface;
use super::model::{Fact, Gid, GidKind, LinkLayer, Port};
use super::reader::Scene;
use std::net::Ipv6Addr;

/// Devices and ports, one value a line.
pub const IBV_DEVINFO: Family = Family {
    commands: &["ibv_devinfo [-v]", "ibv_devices", "ibstat", "ibstatus"],
    reads: "RDMA devices with the state, rate, MTU, link layer, LID and GIDs of each port.",
    starts: &[
        "hca_id:",
        "port:",
        "state:",
        "max_mtu:",
        "active_mtu:",
        "sm_lid:",
        "port_lid:",
        "link_layer:",
        "active_width:",
        "active_speed:",
        "phys_state:",
        "GID[",
        "device",
        "No",
        "CA",
        "Port",
        "State:",
        "Physical",
        "Rate:",
        "Base",
        "SM",
        "Link",
        "Infiniband",
        "default",
        "base",
        "sm",
        "phys",
        "rate:",
    ],
    read: devinfo,
};

/// Devices with their network interfaces and GIDs, one port a line.
pub const LINKS: Family = Family {
    commands: &["rdma link show", "ibdev2netdev [-v]", "show_gids"],
    reads: "Which network interface belongs to which RDMA device, and the GID table with type, address and interface.",
    starts: &["link"],
    read: links,
};

/// `PORT_ACTIVE (4)`, `4: ACTIVE`, `Active` → `ACTIVE`.
pub fn state(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_uppercase();
    let states = ["ACTIVE", "DOWN", "INIT", "ARMED", "NOP"];
    let word = text.split([' ', ':', '(']).map(|w| w.trim_start_matches("PORT_")).find(|w| !w.is_empty() && !w.bytes().all(|b| b.is_ascii_digit()))?;
    states.iter().find(|s| word.starts_with(*s) && !word.starts_with("ACTIVE_DEFER")).map(|s| (*s).to_owned())
}

/// `5: LinkUp`, `LINK_UP (5)`, `LinkUp` → `linkup`.
pub fn physical(text: &str) -> Option<String> {
    let words = text.split([' ', ':', '(']).map(|w| w.replace('_', "").to_ascii_lowercase());
    let word = words.into_iter().find(|w| w.bytes().next().is_some_and(|b| b.is_ascii_alphabetic()))?;
    Some(super::reader::clip(&word, 32).to_owned())
}

/// `200 Gb/sec (4X HDR)`, `200`, `2.5 Gb/sec` → Gb/s.
pub fn rate(text: &str) -> Option<u32> {
    let number: f64 = text.split_whitespace().next()?.parse().ok()?;
    (1.0..100_000.0).contains(&number).then_some(number as u32)
}

/// `Ethernet`, `InfiniBand`.
pub fn layer(text: &str) -> Option<LinkLayer> {
    match text.trim().to_ascii_lowercase().as_str() {
        "ethernet" => Some(LinkLayer::Ethernet),
        "infiniband" => Some(LinkLayer::InfiniBand),
        _ => None,
    }
}

/// `RoCE v2`, `v2`, `IB/RoCE v1`.
pub fn kind(text: &str) -> Option<GidKind> {
    match text.trim().to_ascii_lowercase().as_str() {
        "v2" | "roce v2" | "rocev2" => Some(GidKind::V2),
        "v1" | "roce v1" | "ib/roce v1" | "rocev1" | "ib" => Some(GidKind::V1),
        _ => None,
    }
}

fn number(text: &str) -> Option<u32> {
    let word = text.split_whitespace().next()?;
    word.strip_prefix("0x").map_or_else(|| word.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok())
}

/// The name of an RDMA device.
pub fn device(word: &str) -> Option<&str> {
    let fits = (2..=64).contains(&word.len()) && word.as_bytes()[0].is_ascii_alphabetic() && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    fits.then_some(word)
}

fn devinfo(scene: &mut Scene<'_>) -> bool {
    names(scene) || values(scene)
}

/// Lines that name a device or a port.
fn names(scene: &mut Scene<'_>) -> bool {
    let text = scene.text;
    if text.starts_with("No IB devices found") || text.starts_with("Failed to get IB devices list") {
        scene.host.no_hca = Some(scene.at.clone());
        return true;
    }
    let quoted = if text.starts_with("CA '") || text.starts_with("Infiniband device '") { text.split('\'').nth(1) } else { None };
    let name = text.strip_prefix("hca_id:").map(str::trim).or(quoted);
    if let Some(name) = name.and_then(device) {
        name.clone_into(&mut scene.memo.hca);
        let at = scene.words.iter().position(|w| *w == "port").and_then(|i| scene.words.get(i + 1)?.parse().ok());
        scene.memo.port = at.unwrap_or(0);
        scene.memo.part.clear();
        scene.host.hca_mut(name, scene.at);
        return true;
    }
    if let ["device", "node", "GUID"] = scene.words.as_slice() {
        "devices".clone_into(&mut scene.memo.part);
        scene.memo.head = Some(scene.at.clone());
        return true;
    }
    if let [name, guid] = scene.words.as_slice()
        && scene.memo.part == "devices"
        && guid.len() == 16
        && guid.bytes().all(|b| b.is_ascii_hexdigit())
        && let Some(name) = device(name)
    {
        scene.memo.head = None;
        scene.host.hca_mut(name, scene.at);
        return true;
    }
    let port = match scene.words.as_slice() {
        ["port:", n] => n.parse().ok(),
        ["Port", n] => n.strip_suffix(':').and_then(|n| n.parse().ok()),
        _ => None,
    };
    if let Some(port) = port.filter(|_| !scene.memo.hca.is_empty()) {
        scene.memo.port = port;
        return true;
    }
    false
}

/// Lines that say one thing of a port.
fn values(scene: &mut Scene<'_>) -> bool {
    if scene.memo.hca.is_empty() {
        return false;
    }
    if scene.text.starts_with("GID[") {
        return gid(scene).is_some();
    }
    let Some((key, value)) = scene.text.split_once(':') else { return false };
    let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
    let (hca, number_of_port, at) = (scene.memo.hca.clone(), scene.memo.port.max(1), scene.at);
    let speed = match key.as_str() {
        "active_width" => {
            value.split(['X', 'x', ' ']).next().unwrap_or_default().clone_into(&mut scene.memo.part);
            return true;
        }
        // Speed of a lane; the width stands in the line before.
        "active_speed" => value.split_whitespace().next().and_then(|s| s.parse::<f64>().ok()).zip(scene.memo.part.parse::<f64>().ok()).map(|(s, w)| (s * w) as u32),
        _ => None,
    };
    let known = [
        "state",
        "phys_state",
        "phys state",
        "physical state",
        "max_mtu",
        "active_mtu",
        "sm_lid",
        "sm lid",
        "port_lid",
        "base lid",
        "link_layer",
        "link layer",
        "rate",
        "active_speed",
    ];
    if !known.contains(&key.as_str()) {
        return false;
    }
    let Some(port) = scene.host.port_mut(&hca, number_of_port, at) else { return true };
    set(port, &key, value, speed, at);
    true
}

fn set(port: &mut Port, key: &str, value: &str, speed: Option<u32>, at: &super::Line) {
    fn put<T>(slot: &mut Option<Fact<T>>, value: Option<T>, at: &super::Line) {
        if let Some(value) = value {
            *slot = Some(Fact::new(value, at));
        }
    }
    match key {
        "state" => put(&mut port.state, state(value), at),
        "phys_state" | "phys state" | "physical state" => put(&mut port.physical, physical(value), at),
        "max_mtu" => put(&mut port.max_mtu, number(value), at),
        "active_mtu" => put(&mut port.active_mtu, number(value), at),
        "sm_lid" | "sm lid" => put(&mut port.sm_lid, number(value), at),
        "port_lid" | "base lid" => put(&mut port.lid, number(value), at),
        "link_layer" | "link layer" => put(&mut port.layer, layer(value), at),
        "rate" => put(&mut port.rate, rate(value), at),
        _ => put(&mut port.rate, speed, at),
    }
}

/// `GID[  3]: ::ffff:192.0.2.7, RoCE v2`.
fn gid(scene: &mut Scene<'_>) -> Option<()> {
    let (index, rest) = scene.text.strip_prefix("GID[")?.split_once(']')?;
    let index = index.trim().parse().ok()?;
    let rest = rest.strip_prefix(':').unwrap_or(rest).trim_start();
    let (address, kind_text) = rest.split_once(',').unwrap_or((rest, ""));
    let gid: Ipv6Addr = address.trim().parse().ok()?;
    let (hca, port) = (scene.memo.hca.clone(), scene.memo.port.max(1));
    if !gid.is_unspecified() {
        scene.host.add_gid(&hca, port, Gid { index, gid, kind: kind(kind_text), netdev: String::new(), at: scene.at.clone() });
    }
    Some(())
}

fn links(scene: &mut Scene<'_>) -> bool {
    rdma_link(scene).or_else(|| ibdev2netdev(scene)).or_else(|| show_gids(scene)).is_some()
}

/// `link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev enp1s0f0np0`; older: `1/1: mlx5_0/1: state …`.
fn rdma_link(scene: &mut Scene<'_>) -> Option<()> {
    let after = |word: &str| scene.words.iter().position(|w| *w == word).and_then(|i| scene.words.get(i + 1)).copied();
    let (link_state, physical_state) = (after("state")?, after("physical_state")?);
    let place = scene.words.iter().take(3).map(|w| w.trim_end_matches(':')).find_map(|w| w.split_once('/').filter(|(name, _)| device(name).is_some()))?;
    let (name, number) = (place.0, place.1.parse().ok()?);
    let (netdev, lid, sm_lid) = (after("netdev").and_then(interface), after("lid").and_then(|l| l.parse().ok()), after("sm_lid").and_then(|l| l.parse().ok()));
    let at = scene.at;
    let port = scene.host.port_mut(name, number, at)?;
    port.state = state(link_state).map(|s| Fact::new(s, at)).or(port.state.take());
    port.physical = physical(physical_state).map(|s| Fact::new(s, at)).or(port.physical.take());
    port.netdev = netdev.map(|n| Fact::new(n.to_owned(), at)).or(port.netdev.take());
    port.lid = lid.map(|n| Fact::new(n, at)).or(port.lid.take());
    port.sm_lid = sm_lid.map(|n| Fact::new(n, at)).or(port.sm_lid.take());
    if lid.is_some() {
        port.layer.get_or_insert_with(|| Fact::new(LinkLayer::InfiniBand, at));
    }
    Some(())
}

/// `mlx5_0 port 1 ==> enp1s0f0np0 (Up)`; with `-v` the PCI address stands before and the model between.
fn ibdev2netdev(scene: &mut Scene<'_>) -> Option<()> {
    let arrow = scene.words.iter().position(|w| *w == "==>")?;
    let netdev = interface(scene.words.get(arrow + 1)?)?.to_owned();
    let name = scene.words.iter().take(2).find_map(|w| device(w))?;
    let at_port = scene.words.iter().position(|w| *w == "port")?;
    let number = scene.words.get(at_port + 1)?.parse().ok()?;
    let shown = scene.words.get(at_port + 2).and_then(|w| state(w.trim_matches(['(', ')'])));
    let up = scene.words.get(arrow + 2).and_then(|w| match *w {
        "(Up)" => Some(true),
        "(Down)" => Some(false),
        _ => None,
    });
    let at = scene.at;
    let port = scene.host.port_mut(name, number, at)?;
    port.netdev = Some(Fact::new(netdev.clone(), at));
    port.state = shown.map(|s| Fact::new(s, at)).or(port.state.take());
    if let (Some(up), Some(interface)) = (up, scene.host.interface_mut(&netdev)) {
        interface.up.get_or_insert_with(|| Fact::new(up, at));
    }
    Some(())
}

/// `mlx5_0  1  3  0000:0000:0000:0000:0000:ffff:c000:0207  192.0.2.7  v2  enp1s0f0np0`.
fn show_gids(scene: &mut Scene<'_>) -> Option<()> {
    let [name, port, index, gid, rest @ ..] = scene.words.as_slice() else { return None };
    let name = device(name)?;
    let (port, index): (u8, u16) = (port.parse().ok()?, index.parse().ok()?);
    let gid: Ipv6Addr = gid.parse().ok()?;
    let at_kind = rest.iter().position(|w| kind(w).is_some());
    let netdev = at_kind.and_then(|i| interface(rest.get(i + 1)?)).unwrap_or_default().to_owned();
    let entry = Gid { index, gid, kind: at_kind.and_then(|i| kind(rest[i])), netdev: netdev.clone(), at: scene.at.clone() };
    if !gid.is_unspecified() {
        scene.host.add_gid(name, port, entry);
    }
    // The table says whose port it is where nothing else did.
    if let Some(port) = scene.host.port_mut(name, port, scene.at).filter(|_| !netdev.is_empty()) {
        port.netdev.get_or_insert_with(|| Fact::new(netdev, scene.at));
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{collapsed, one};
    use super::*;

    const DEVINFO: &str = "\
hca_id:\tmlx5_0
\ttransport:\t\t\tInfiniBand (0)
\tfw_ver:\t\t\t\t28.39.1002
\tnode_guid:\t\t\t0200:5e03:0010:0007
\tphys_port_cnt:\t\t\t1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\t1024 (3)
\t\t\tsm_lid:\t\t\t0
\t\t\tport_lid:\t\t0
\t\t\tlink_layer:\t\tEthernet
\t\t\tactive_width:\t\t4X (2)
\t\t\tactive_speed:\t\t50.0 Gbps (64)
\t\t\tphys_state:\t\tLINK_UP (5)
\t\t\tGID[  0]:\t\tfe80::200:5eff:fe10:7, RoCE v1
\t\t\tGID[  1]:\t\tfe80::200:5eff:fe10:7, RoCE v2
\t\t\tGID[  3]:\t\t::ffff:192.0.2.7, RoCE v2

hca_id:\tmlx5_1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_DOWN (1)
\t\t\tlink_layer:\t\tInfiniBand
";

    #[test]
    fn ibv_devinfo_with_and_without_blanks() {
        for text in [DEVINFO.to_owned(), collapsed(DEVINFO)] {
            let facts = one(&text);
            let port = &facts.hca("mlx5_0").expect("mlx5_0").ports[0];
            assert_eq!(port.state.as_ref().map(|s| (s.value.as_str(), s.at.line)), Some(("ACTIVE", 7)));
            assert_eq!((port.active_mtu.as_ref().map(|m| m.value), port.max_mtu.as_ref().map(|m| m.value)), (Some(1024), Some(4096)));
            assert_eq!(port.rate.as_ref().map(|r| r.value), Some(200));
            assert_eq!(port.physical.as_ref().map(|r| r.value.as_str()), Some("linkup"));
            assert_eq!(port.gids.len(), 3);
            assert_eq!((port.gids[2].index, port.gids[2].kind, port.gids[2].ipv4().map(|i| i.to_string())), (3, Some(GidKind::V2), Some("192.0.2.7".to_owned())));
            let other = &facts.hca("mlx5_1").expect("mlx5_1").ports[0];
            assert_eq!((other.state.as_ref().map(|s| s.value.as_str()), other.layer.as_ref().map(|l| l.value)), (Some("DOWN"), Some(LinkLayer::InfiniBand)));
        }
        assert!(one("No IB devices found\n").no_hca.is_some());
    }

    #[test]
    fn ibstat_and_ibstatus() {
        let stat = "CA 'ibp12s0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tBase lid: 17\n\t\tLMC: 0\n\t\tSM lid: 1\n\t\tLink layer: InfiniBand\n";
        let status = "Infiniband device 'ibp12s0' port 1 status:\n\tdefault gid:\t fe80:0000:0000:0000:0200:5eff:fe10:0007\n\tbase lid:\t 0x11\n\tsm lid:\t\t 0x1\n\tstate:\t\t 4: ACTIVE\n\tphys state:\t 5: LinkUp\n\trate:\t\t 400 Gb/sec (4X NDR)\n\tlink_layer:\t InfiniBand\n";
        for text in [stat.to_owned(), status.to_owned(), collapsed(stat), collapsed(status)] {
            let facts = one(&text);
            let port = &facts.hca("ibp12s0").expect("device").ports[0];
            assert_eq!(
                (port.state.as_ref().map(|s| s.value.as_str()), port.rate.as_ref().map(|r| r.value), port.lid.as_ref().map(|l| l.value)),
                (Some("ACTIVE"), Some(400), Some(17)),
                "{text}"
            );
            assert_eq!((port.sm_lid.as_ref().map(|l| l.value), port.layer.as_ref().map(|l| l.value)), (Some(1), Some(LinkLayer::InfiniBand)));
        }
    }

    #[test]
    fn which_interface_belongs_to_which_device() {
        for text in [
            "link rocep1s0f0/1 state ACTIVE physical_state LINK_UP netdev enp1s0f0np0 \n",
            "1/1: rocep1s0f0/1: state ACTIVE physical_state LINK_UP netdev enp1s0f0np0 netdev_index 4 \n",
            "rocep1s0f0 port 1 ==> enp1s0f0np0 (Up)\n",
            "0000:01:00.0 rocep1s0f0 (MT4129 - NA ) CX7 fw 28.39.1002 port 1 (ACTIVE) ==> enp1s0f0np0 (Up)\n",
        ] {
            let facts = one(text);
            let port = &facts.hca("rocep1s0f0").unwrap_or_else(|| panic!("{text}{facts:?}")).ports[0];
            assert_eq!(port.netdev_name(), Some("enp1s0f0np0"), "{text}");
        }
        let devices = "    device                 node GUID\n    ------              ----------------\n    mlx5_bond_0         02005e0300100007\n";
        assert!(one(devices).hca("mlx5_bond_0").is_some());
        assert!(
            one("ada@orion:~$ ibv_devices\n    device                 node GUID\n    ------              ----------------\nada@orion:~$ ip -br addr\nlo UNKNOWN 127.0.0.1/8\n")
                .no_hca
                .is_some()
        );
    }

    #[test]
    fn show_gids_rows() {
        let text = "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---\nmlx5_0\t1\t0\tfe80:0000:0000:0000:0200:5eff:fe10:0007\t\t\tv1\tenp1s0f0np0\nmlx5_0\t1\t1\tfe80:0000:0000:0000:0200:5eff:fe10:0007\t\t\tv2\tenp1s0f0np0\nmlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:c000:0207\t192.0.2.7  \tv2\tenp1s0f0np0\nn_gids_found=3\n";
        for text in [text.to_owned(), collapsed(text)] {
            let facts = one(&text);
            let port = &facts.hca("mlx5_0").expect("device").ports[0];
            assert_eq!(port.gids.iter().map(|g| (g.index, g.kind)).collect::<Vec<_>>(), [(0, Some(GidKind::V1)), (1, Some(GidKind::V2)), (3, Some(GidKind::V2))]);
            assert_eq!(
                (port.gids[2].ipv4().map(|i| i.to_string()), port.gids[2].netdev.as_str(), port.netdev_name()),
                (Some("192.0.2.7".to_owned()), "enp1s0f0np0", Some("enp1s0f0np0"))
            );
        }
    }
}
