//! What to do about it. A GID index is given as the rule that finds it on each node, never as a number.

use super::facts::Facts;
use super::host;
use super::reading::{Fault, Reading};
use crate::job::Rail;
use crate::rules::facts as hostfacts;
use crate::rules::finding::Fix;
use crate::rules::ib::{self, Layer};
use crate::rules::rail_topology;
use crate::rules::remedy::sh;
use std::collections::BTreeSet;

/// The device to name in commands: one that failed, else one of the list, else a placeholder.
pub fn device(facts: &Facts<'_>) -> String {
    if let Some(hca) = facts.failures.iter().find_map(|f| f.hca) {
        return hca.to_owned();
    }
    let devices = ib::used(&facts.ask.hits("ib.using"));
    let wanted = devices.iter().find(|d| d.layer == Layer::Roce).or(devices.first());
    wanted.map_or_else(|| "HCA".to_owned(), |d| d.name.clone())
}

/// The fixes, best first.
pub fn fixes(facts: &Facts<'_>, reading: &Reading) -> Vec<Fix> {
    let hca = sh(&device(facts)).into_owned();
    let mut ends = host::ends(facts);
    // Short reports show one command: that of the node at fault, or of the smaller MTU.
    let mtu_of = |r: &Rail<'_>| if reading.fault == Fault::Mtu { r.port.active_mtu.as_ref().map(|m| m.value) } else { None };
    ends.sort_by_key(|r| (hostfacts::place(r.node) != reading.node, mtu_of(r)));
    let addresses = || unpin(facts).into_iter().chain([own_index(&ends).unwrap_or_else(|| index(&hca))]);
    let mtu = |hca: &str| own_mtu(&ends).unwrap_or_else(|| mtu(hca));
    match reading.fault {
        Fault::Link => vec![link(&ends), path(&hca)],
        Fault::Address => vec![address(&ends), one_rail(&hca)],
        Fault::Fabric => vec![fabric(&hca)],
        Fault::Mixed => std::iter::once(one_layer(facts)).chain(addresses()).collect(),
        Fault::Mtu => std::iter::once(mtu(&hca)).chain(unpin(facts)).chain([one_rail(&hca)]).collect(),
        Fault::Subnets => {
            let own = own_index(&ends).unwrap_or_else(|| index(&hca));
            unpin(facts).into_iter().chain([path(&hca), rail_topology::switchless(), own, one_rail(&hca)]).collect()
        }
        Fault::Path => addresses().chain([path(&hca), one_rail(&hca)]).collect(),
        Fault::NoAnswer => addresses().chain([mtu(&hca), path(&hca), one_rail(&hca)]).collect(),
        Fault::Gid | Fault::Attribute => addresses().chain([mtu(&hca), one_rail(&hca)]).collect(),
    }
}

fn unpin(facts: &Facts<'_>) -> Option<Fix> {
    // Older versions do not look for it: without the variable they take index 0.
    if facts.pinned.is_empty() || facts.ask.version().is_some_and(|v| v < (2, 21, 0)) {
        return None;
    }
    let values: BTreeSet<&str> = facts.pinned.iter().map(|s| s.value).collect();
    Some(Fix {
        title: "Take NCCL_IB_GID_INDEX out and let NCCL choose".to_owned(),
        when: "NCCL is 2.21 or newer on all nodes; it then looks for the RoCE v2 entry with the interface's IPv4 address by itself.".to_owned(),
        commands: vec!["unset NCCL_IB_GID_INDEX   # on every node and in every launch script, container and nccl.conf".to_owned()],
        needs: "nothing".to_owned(),
        cost: "None.".to_owned(),
        undo: format!("Set it again (it was {}).", values.into_iter().collect::<Vec<_>>().join(" and ")),
    })
}

/// The right index of each node, where the facts show it.
fn own_index(ends: &[Rail<'_>]) -> Option<Fix> {
    let mut commands = Vec::new();
    let mut seen = BTreeSet::new();
    for rail in ends {
        let Some(((name, value), gid)) = rail.gid_export().zip(rail.gid()) else { continue };
        if seen.insert((rail.node.title(), value.clone())) {
            commands.push(format!("export {name}={value}   # on {}: {}, {}", hostfacts::place(rail.node), rail.hca, gid.gid));
        }
    }
    let nodes: BTreeSet<String> = seen.iter().map(|(node, _)| node.clone()).collect();
    // One variable serves all devices of a process.
    (!commands.is_empty() && nodes.len() == seen.len()).then(|| Fix {
        title: "Export each node's own GID index".to_owned(),
        when: "NCCL is older than 2.21, or its own choice is wrong. These numbers are what the facts of each node show now; read them again after a boot, a link event or a change of addresses.".to_owned(),
        commands,
        needs: "nothing".to_owned(),
        cost: "A pinned index has to be checked again after every change of addresses, links or boot order.".to_owned(),
        undo: "unset NCCL_IB_GID_INDEX".to_owned(),
    })
}

/// The same MTU on the interfaces that the facts name.
fn own_mtu(ends: &[Rail<'_>]) -> Option<Fix> {
    let commands: Vec<String> = ends
        .iter()
        .filter(|r| r.interface.and_then(|i| i.mtu.as_ref()).is_none_or(|m| m.value < 9000))
        .filter_map(|r| {
            let now = r.interface.and_then(|i| i.mtu.as_ref()).map_or(String::new(), |m| format!(", now {}", m.value));
            Some(format!("sudo ip link set {} mtu 9000   # on {}{now}", sh(r.netdev()?), hostfacts::place(r.node)))
        })
        .collect();
    let base = mtu("HCA");
    (!commands.is_empty()).then_some(Fix { commands, ..base })
}

fn link(ends: &[Rail<'_>]) -> Fix {
    let down: Vec<&Rail<'_>> = ends.iter().filter(|r| r.is_up() == Some(false)).collect();
    let commands = down
        .iter()
        .flat_map(|r| {
            let place = hostfacts::place(r.node);
            let up = r.netdev().map(|n| format!("sudo ip link set {0} up; ethtool {0} | grep -e Speed -e Link   # on {place}", sh(n)));
            up.into_iter().chain([format!("rdma link show {}/{}   # on {place}: ACTIVE and LINK_UP", sh(r.hca), r.port.number)])
        })
        .collect();
    Fix {
        title: "Bring the port up".to_owned(),
        when: "The facts say that it is not ACTIVE.".to_owned(),
        commands,
        needs: "root".to_owned(),
        cost: "None.".to_owned(),
        undo: "Take the interface down again.".to_owned(),
    }
}

fn address(ends: &[Rail<'_>]) -> Fix {
    let bare: Vec<&Rail<'_>> = ends.iter().filter(|r| r.gid().is_none()).collect();
    let commands = bare
        .iter()
        .map(|r| {
            format!("sudo ip addr add $ADDRESS_ON_THE_FABRIC/$PREFIX dev {}   # on {}; then make it persistent", sh(r.netdev().unwrap_or("INTERFACE")), hostfacts::place(r.node))
        })
        .chain(bare.iter().map(|r| format!("show_gids {}   # a row v2 with that address must appear", sh(r.hca))))
        .collect();
    Fix {
        title: "Give the fabric's interface an IPv4 address".to_owned(),
        when: "The GID table of the port has no RoCE v2 entry with one.".to_owned(),
        commands,
        needs: "root".to_owned(),
        cost: "None; the address must be free and in the network of the peers.".to_owned(),
        undo: "Take the address away with `ip addr del`.".to_owned(),
    }
}

fn index(hca: &str) -> Fix {
    Fix {
        title: "Find the right GID on each node: RoCE v2, the fabric's interface, IPv4-mapped".to_owned(),
        when:
            "NCCL is older than 2.21, or its own choice is wrong. The index differs between nodes and moves with boots and link events: find it on each node and export it there."
                .to_owned(),
        commands: vec![
            "show_gids   # the row of this HCA that says v2 and holds the IPv4 address of the fabric's interface".to_owned(),
            format!(
                "cd /sys/class/infiniband/{hca}/ports/1 && for t in gid_attrs/types/*; do i=${{t##*/}}; echo \"$i $(cat $t 2>/dev/null) $(cat gid_attrs/ndevs/$i 2>/dev/null) $(cat gids/$i)\"; done | grep 'RoCE v2' | grep 0000:ffff:"
            ),
            "export NCCL_IB_GID_INDEX=$INDEX   # INDEX: what this node's own list shows, not another node's".to_owned(),
        ],
        needs: "nothing".to_owned(),
        cost: "A pinned index has to be checked again after every change of addresses, links or boot order.".to_owned(),
        undo: "unset NCCL_IB_GID_INDEX".to_owned(),
    }
}

fn mtu(hca: &str) -> Fix {
    Fix {
        title: "Give both ends (and the switch between them) the same large MTU".to_owned(),
        when: "The MTUs differ, large transfers fail where small ones pass, or a switch on the way takes less than the hosts send.".to_owned(),
        commands: vec![
            format!("IF=$(ls /sys/class/infiniband/{hca}/device/net | head -n 1); ip link show $IF"),
            "sudo ip link set $IF mtu 9000   # on both ends; then make it persistent (netplan, NetworkManager or ifcfg)".to_owned(),
            format!("ibv_devinfo -d {hca} | grep mtu   # active_mtu must be equal on both ends"),
        ],
        needs: "root".to_owned(),
        cost: "The link is interrupted for a moment; every device on the way must carry 9000 bytes. On a direct 200 Gb/s link it was worth 154 to 197 Gb/s.".to_owned(),
        undo: "Set the value again that `ip link show` printed before.".to_owned(),
    }
}

fn path(hca: &str) -> Fix {
    Fix {
        title: "Make sure that the two HCAs reach each other".to_owned(),
        when: "The GIDs are right on both ends and still nothing is answered.".to_owned(),
        commands: vec![
            format!("rdma link show   # {hca} must be ACTIVE and LINK_UP on both ends"),
            format!("IF=$(ls /sys/class/infiniband/{hca}/device/net | head -n 1); ping -c 3 -I $IF $PEER_ADDRESS_ON_THE_FABRIC"),
            "sudo nft list ruleset   # UDP port 4791 (RoCE v2) must pass, also on the switch".to_owned(),
        ],
        needs: "root".to_owned(),
        cost: "None; it only looks.".to_owned(),
        undo: String::new(),
    }
}

fn one_rail(hca: &str) -> Fix {
    Fix {
        title: "Start with one rail that is known to work".to_owned(),
        when: "Several HCAs are in use and only some pairs fail.".to_owned(),
        commands: vec![format!("export NCCL_IB_HCA=={hca}   # `=` makes it an exact name; the device of the same rail on the other node"), "export NCCL_CROSS_NIC=0".to_owned()],
        needs: "nothing".to_owned(),
        cost: "Bandwidth of the other rails until they are put back one by one.".to_owned(),
        undo: "unset NCCL_IB_HCA NCCL_CROSS_NIC".to_owned(),
    }
}

fn one_layer(facts: &Facts<'_>) -> Fix {
    let devices = ib::used(&facts.ask.hits("ib.using"));
    let names: Vec<&str> = devices.iter().filter(|d| d.layer == Layer::InfiniBand).map(|d| d.name.as_str()).collect();
    Fix {
        title: "Keep devices of one link type".to_owned(),
        when: "InfiniBand carries the data here and the RoCE ports belong to another network.".to_owned(),
        commands: vec![format!("export NCCL_IB_HCA=={}", sh(&names.join(",")))],
        needs: "nothing".to_owned(),
        cost: "None, unless the RoCE ports were meant to carry data.".to_owned(),
        undo: "unset NCCL_IB_HCA".to_owned(),
    }
}

fn fabric(hca: &str) -> Fix {
    Fix {
        title: "Check the InfiniBand fabric between the two ports".to_owned(),
        when: "The ports are InfiniBand.".to_owned(),
        commands: vec![
            format!("ibstat {hca}   # State: Active, Physical state: LinkUp, a Base lid and an SM lid that are not 0"),
            "sudo sminfo; sudo ibdiagnet   # one master subnet manager, no bad links".to_owned(),
            format!("cat /sys/class/infiniband/{hca}/ports/1/pkeys/*   # both ports must share a full-member partition"),
        ],
        needs: "root".to_owned(),
        cost: "None; it only looks.".to_owned(),
        undo: String::new(),
    }
}

/// What only hides it.
pub fn avoid(reading: &Reading) -> Vec<String> {
    let mut list = vec![
        "NCCL_IB_DISABLE=1 makes the error go away and sends the data over TCP, many times slower.".to_owned(),
        "Raising NCCL_IB_TIMEOUT or NCCL_IB_RETRY_CNT only makes the failure later, unless the fabric is merely overloaded.".to_owned(),
    ];
    if reading.fault != Fault::Fabric {
        list.push("Copying a GID index from a guide or another machine: the number means something else there.".to_owned());
    }
    list
}

/// How to see that it is mended.
pub fn verify(facts: &Facts<'_>, reading: &Reading) -> Vec<String> {
    let hca = sh(&device(facts)).into_owned();
    let mut list =
        vec![format!("ib_write_bw -d {hca} -F --report_gbits   # on one node, then on the other: ib_write_bw -d {hca} -F --report_gbits FIRST_NODE; exactly these two devices")];
    if reading.fault != Fault::Fabric {
        list.push("show_gids on both ends: the index in use is RoCE v2, on the fabric's interface, with its IPv4 address.".to_owned());
        list.push(format!("ip link show $(ls /sys/class/infiniband/{hca}/device/net | head -n 1): the same mtu on both ends."));
    }
    list.push(
        "With NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET the queue pair lines of both ends show the same mtu and GIDs of the same kind, and a collective finishes.".to_owned(),
    );
    list
}
