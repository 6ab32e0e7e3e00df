//! Files below `/sys/class/infiniband`, dumped in any of the usual ways.

use super::Family;
use super::ip::interface;
use super::model::{Fact, Gid};
use super::reader::Scene;
use super::verbs::{device, kind, layer, physical, rate, state};
use std::collections::VecDeque;
use std::net::Ipv6Addr;

/// State, rate and GIDs of ports.
pub const SYSFS: Family = Family {
    commands: &["grep -r . /sys/class/infiniband/*/ports/*/…", "head /sys/class/infiniband/…", "cat /sys/class/infiniband/HCA/ports/1/{state,phys_state,rate}"],
    reads: "State, rate, link layer and GID table of the ports of RDMA devices: `path:value`, `==> path <==` and a value, or a value behind its command.",
    starts: &["RoCE", "IB/RoCE", "2.5"],
    read: sysfs,
};

/// Most files that one command is taken to show.
const MAX_PATHS: usize = 32;

/// A file of a port.
struct Place<'p> {
    hca: &'p str,
    port: u8,
    /// `state`, `gids/3`, `gid_attrs/types/3`
    file: &'p str,
}

fn place(path: &str) -> Option<Place<'_>> {
    let (before, after) = path.split_once("/ports/")?;
    let (port, file) = after.split_once('/')?;
    Some(Place { hca: device(before.rsplit('/').next()?)?, port: port.parse().ok()?, file })
}

/// The files whose content a command shows, as far as it names them one by one: `cat …/{state,rate}`.
pub fn asked(command: &str) -> VecDeque<String> {
    let mut words = command.split_whitespace().skip_while(|w| *w == "sudo");
    if !matches!(words.next(), Some("cat" | "head" | "tail" | "ls")) {
        return VecDeque::new();
    }
    let mut paths = VecDeque::new();
    for word in words.take_while(|w| *w != "|" && *w != ";").filter(|w| w.contains('/')) {
        if word.contains('*') {
            return VecDeque::new();
        }
        let expanded = match word.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?))) {
            Some((head, (list, tail))) => list.split(',').map(|item| format!("{head}{item}{tail}")).collect(),
            None => vec![word.to_owned()],
        };
        paths.extend(expanded);
        if paths.len() > MAX_PATHS {
            return VecDeque::new();
        }
    }
    paths
}

fn sysfs(scene: &mut Scene<'_>) -> bool {
    let text = scene.text;
    if let Some(path) = text.strip_prefix("==> ").and_then(|t| t.strip_suffix(" <==")) {
        scene.memo.paths = VecDeque::from([path.to_owned()]);
        return true;
    }
    // `path:value`. A path holds no colon up to its last part.
    if let Some((path, value)) = text.split_once(':')
        && let Some(place) = place(path)
    {
        take(scene, &place, value.trim());
        return true;
    }
    row(scene).is_some() || answer(scene)
}

/// A value behind the heading or the command that names its file.
fn answer(scene: &mut Scene<'_>) -> bool {
    let Some(path) = scene.memo.paths.front().cloned() else { return false };
    if let Some(rest) = path.strip_prefix("/sys/class/infiniband/")
        && let Some(hca) = rest.trim_end_matches('/').strip_suffix("/device/net")
        && scene.words.len() == 1
        && let Some(name) = interface(scene.text)
        && let Some(hca) = device(hca)
    {
        if let Some(port) = scene.host.port_mut(hca, 1, scene.at) {
            port.netdev = Some(Fact::new(name.to_owned(), scene.at));
        }
        scene.memo.paths.pop_front();
        return true;
    }
    let Some(place) = place(&path) else { return false };
    let taken = take(scene, &place, scene.text);
    if taken {
        scene.memo.paths.pop_front();
    }
    taken
}

/// `3 RoCE v2 enp1s0f0np0 0000:0000:0000:0000:0000:ffff:c000:0207`: the loop over a GID table, whose command names the
/// port.
fn row(scene: &mut Scene<'_>) -> Option<()> {
    let [index, rest @ .., gid] = scene.words.as_slice() else { return None };
    let (index, gid): (u16, Ipv6Addr) = (index.parse().ok()?, gid.parse().ok()?);
    let version = kind(&rest.iter().take(2).copied().collect::<Vec<_>>().join(" "))?;
    let path = scene.memo.command.split([' ', '"', ';', '$', '(']).find_map(|w| {
        let (before, after) = w.split_once("/ports/")?;
        Some((before.rsplit('/').next()?.to_owned(), after.split('/').next()?.parse().ok()?))
    })?;
    let (hca, port) = (device(&path.0)?, path.1);
    let netdev = rest.get(2).and_then(|n| interface(n)).unwrap_or_default().to_owned();
    if !gid.is_unspecified() {
        scene.host.add_gid(hca, port, Gid { index, gid, kind: Some(version), netdev: netdev.clone(), at: scene.at.clone() });
    }
    if let Some(port) = scene.host.port_mut(hca, port, scene.at).filter(|_| !netdev.is_empty()) {
        port.netdev.get_or_insert_with(|| Fact::new(netdev, scene.at));
    }
    Some(())
}

/// Takes in the content of a file; false if it is none that this file could hold.
fn take(scene: &mut Scene<'_>, place: &Place<'_>, value: &str) -> bool {
    let at = scene.at;
    if let Some((table, index)) = place.file.rsplit_once('/') {
        let Ok(index) = index.parse() else { return false };
        let mut gid = Gid { index, gid: Ipv6Addr::UNSPECIFIED, kind: None, netdev: String::new(), at: at.clone() };
        match table {
            "gids" => match value.parse::<Ipv6Addr>() {
                Ok(address) => gid.gid = address,
                Err(_) => return false,
            },
            "gid_attrs/types" => gid.kind = kind(value),
            "gid_attrs/ndevs" => interface(value).unwrap_or_default().clone_into(&mut gid.netdev),
            _ => return false,
        }
        let netdev = gid.netdev.clone();
        // An empty address is an empty entry: most of a table is.
        if table != "gids" || !gid.gid.is_unspecified() {
            scene.host.add_gid(place.hca, place.port, gid);
        }
        if let Some(port) = scene.host.port_mut(place.hca, place.port, at).filter(|_| !netdev.is_empty()) {
            port.netdev.get_or_insert_with(|| Fact::new(netdev, at));
        }
        return true;
    }
    let Some(port) = scene.host.port_mut(place.hca, place.port, at) else { return true };
    let number = |v: &str| v.strip_prefix("0x").map_or_else(|| v.parse().ok(), |h| u32::from_str_radix(h, 16).ok());
    match place.file {
        "state" => state(value).map(|v| port.state = Some(Fact::new(v, at))),
        "phys_state" => physical(value).map(|v| port.physical = Some(Fact::new(v, at))),
        "rate" => rate(value).map(|v| port.rate = Some(Fact::new(v, at))),
        "link_layer" => layer(value).map(|v| port.layer = Some(Fact::new(v, at))),
        "lid" => number(value).map(|v| port.lid = Some(Fact::new(v, at))),
        "sm_lid" => number(value).map(|v| port.sm_lid = Some(Fact::new(v, at))),
        _ => None,
    }
    .is_some()
}

#[cfg(test)]
mod tests {
    use super::super::GidKind;
    use super::super::tests::one;

    const BASE: &str = "/sys/class/infiniband/rocep1s0f0/ports/1";

    #[test]
    fn a_port_in_every_way_of_dumping() {
        let values = [
            ("state", "4: ACTIVE"),
            ("phys_state", "5: LinkUp"),
            ("rate", "200 Gb/sec (4X HDR)"),
            ("gids/0", "fe80:0000:0000:0000:0200:5eff:fe10:0007"),
            ("gids/3", "0000:0000:0000:0000:0000:ffff:c000:0207"),
            ("gids/4", "0000:0000:0000:0000:0000:0000:0000:0000"),
            ("gid_attrs/types/0", "IB/RoCE v1"),
            ("gid_attrs/types/3", "RoCE v2"),
            ("gid_attrs/ndevs/3", "enp1s0f0np0"),
        ];
        let each = |form: &dyn Fn(&str, &str) -> String| values.iter().map(|(f, v)| form(f, v)).collect::<Vec<_>>().concat();
        let grep = each(&|f, v| format!("{BASE}/{f}:{v}\n"));
        let relative = grep.replace("/sys/class/infiniband/", "");
        let head = each(&|f, v| format!("==> {BASE}/{f} <==\n{v}\n\n"));
        let cats = each(&|f, v| format!("$ cat {BASE}/{f}\n{v}\n"));
        let collected = each(&|f, v| format!("### $ cat {BASE}/{f}\n{v}\n### exit 0\n"));
        for text in [grep, relative, head, cats, collected] {
            let facts = one(&text);
            let port = &facts.hca("rocep1s0f0").unwrap_or_else(|| panic!("{text}")).ports[0];
            assert_eq!(
                (port.state.as_ref().map(|s| s.value.as_str()), port.physical.as_ref().map(|s| s.value.as_str()), port.rate.as_ref().map(|s| s.value)),
                (Some("ACTIVE"), Some("linkup"), Some(200)),
                "{text}"
            );
            assert_eq!(port.gids.iter().map(|g| (g.index, g.kind)).collect::<Vec<_>>(), [(0, Some(GidKind::V1)), (3, Some(GidKind::V2))], "{text}");
            assert_eq!((port.gids[1].netdev.as_str(), port.netdev_name()), ("enp1s0f0np0", Some("enp1s0f0np0")));
            assert!(port.gids[1].at.text.contains("ffff:c000:0207"), "{}", port.gids[1].at.text);
        }
    }

    #[test]
    fn braces_and_the_loop_over_a_table() {
        let text = format!("ada@orion:~$ cat {BASE}/{{state,phys_state,rate}}\n1: DOWN\n3: Disabled\n2.5 Gb/sec (1X SDR)\n");
        let facts = one(&text);
        let port = &facts.hca("rocep1s0f0").expect("device").ports[0];
        assert_eq!(
            (port.state.as_ref().map(|s| s.value.as_str()), port.physical.as_ref().map(|s| s.value.as_str()), port.rate.as_ref().map(|s| s.value)),
            (Some("DOWN"), Some("disabled"), Some(2))
        );
        let text = "$ cd /sys/class/infiniband/mlx5_1/ports/1 && for t in gid_attrs/types/*; do echo; done\n0 IB/RoCE v1 ens2 fe80:0000:0000:0000:0200:5eff:fe10:0007\n5 RoCE v2 ens2 0000:0000:0000:0000:0000:ffff:c000:0207\n";
        // `cd` is no command that tells facts; the loop is found where it stands alone.
        let text = text.replace("cd /sys", "for d in /sys");
        let facts = one(&text);
        assert_eq!(facts.hca("mlx5_1").map(|h| h.ports[0].gids.iter().map(|g| g.index).collect::<Vec<_>>()), Some(vec![0, 5]));
        let text = "$ ls /sys/class/infiniband/mlx5_1/device/net\nens2\n";
        assert_eq!(one(text).hca("mlx5_1").and_then(|h| h.ports[0].netdev_name().map(str::to_owned)), Some("ens2".to_owned()));
    }
}
