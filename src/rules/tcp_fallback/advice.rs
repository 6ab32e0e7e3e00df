//! What to do about TCP between nodes.

use super::reason::{Kind, Reason};
use crate::rules::facts;
use crate::rules::finding::Fix;
use crate::rules::network::{self, Interface, Link};
use crate::rules::query::Ask;
use crate::rules::remedy::sh;

/// Fixes, the one for the reason first.
pub fn fixes(ask: Ask<'_>, reason: &Reason<'_>, carriers: &[Interface<'_>], hosts: &[String]) -> Vec<Fix> {
    let place = if hosts.is_empty() { "on every node".to_owned() } else { format!("on {}", hosts.join(", ")) };
    let mut fixes: Vec<Fix> = own(ask, reason, &place, hosts).into_iter().collect();
    fixes.push(facts::pins(ask, PIN, PIN_WHEN, hosts).unwrap_or_else(|| pin(ask, reason, carriers)));
    if matches!(reason.kind, Kind::NoDevice | Kind::NoVerbs | Kind::OpenFailed(_) | Kind::Filter(_) | Kind::Unknown) {
        fixes.push(container());
    }
    fixes
}

fn own(ask: Ask<'_>, reason: &Reason<'_>, place: &str, hosts: &[String]) -> Option<Fix> {
    let base = Fix { needs: "nothing".to_owned(), ..Fix::default() };
    Some(match &reason.kind {
        Kind::Asked(_) | Kind::Chosen(_) => Fix {
            title: "Let NCCL choose the network".to_owned(),
            when: "TCP is not wanted any more.".to_owned(),
            commands: vec!["unset NCCL_NET".to_owned()],
            undo: "export NCCL_NET=Socket".to_owned(),
            ..base
        },
        Kind::Disabled => Fix {
            title: format!("Take NCCL_IB_DISABLE=1 out of the environment {place}"),
            when: "The nodes have an RDMA fabric.".to_owned(),
            commands: vec!["export NCCL_IB_DISABLE=0".to_owned(), "grep -rn NCCL_IB_DISABLE /etc/nccl.conf ~/.nccl.conf   # it may come from a file".to_owned()],
            cost: "Whatever it once worked around shows again.".to_owned(),
            undo: "export NCCL_IB_DISABLE=1".to_owned(),
            ..base
        },
        Kind::NoVerbs => Fix {
            title: "Install the verbs library in the image".to_owned(),
            when: "The nodes have an HCA and the image lacks libibverbs.".to_owned(),
            commands: vec!["apt-get install -y libibverbs1 ibverbs-providers rdma-core   # or: dnf install libibverbs rdma-core".to_owned()],
            needs: "root".to_owned(),
            ..base
        },
        Kind::Filter(value) => Fix {
            title: format!("Give NCCL_IB_HCA the name of an RDMA device {place}"),
            when: "NCCL_IB_HCA matches nothing.".to_owned(),
            commands: filter_commands(ask, value, hosts),
            undo: format!("export NCCL_IB_HCA={}", sh(value)),
            ..base
        },
        Kind::OpenFailed(hca) => Fix {
            title: format!("Make {hca} usable {place}"),
            when: "The device is listed but cannot be opened.".to_owned(),
            commands: vec![
                "ls -l /dev/infiniband".to_owned(),
                format!("ibv_devinfo -d {}", sh(hca)),
                "docker run --device=/dev/infiniband --ulimit memlock=-1 --network=host …".to_owned(),
            ],
            needs: "root".to_owned(),
            ..base
        },
        Kind::Plugin(_) => Fix {
            title: "Repair the network plugin".to_owned(),
            when: "The plugin is what reaches the fabric (EFA, HPC-X, a vendor's NIC).".to_owned(),
            commands: vec!["ldd $(ldconfig -p | awk '/libnccl-net/ {print $NF}')   # shows what is missing".to_owned(), "fi_info -p efa   # for EFA".to_owned()],
            ..base
        },
        Kind::PortsDown(_) => {
            Fix { title: "Bring the RDMA ports up".to_owned(), when: "The hosts' facts say that they are down.".to_owned(), commands: ports(ask), needs: "root".to_owned(), ..base }
        }
        Kind::NoDevice | Kind::Unknown => return None,
    })
}

/// How to bring up each port that is down.
fn ports(ask: Ask<'_>) -> Vec<String> {
    let down = facts::rails(ask).into_iter().filter(|r| r.is_up() == Some(false)).take(8);
    down.map(|r| match r.netdev() {
        Some(interface) => format!("sudo ip link set {0} up; ethtool {0} | grep -e Speed -e Link   # {1} on {2}", sh(interface), r.hca, facts::place(r.node)),
        None => format!("rdma link show {}/{}   # on {}: ACTIVE and LINK_UP", sh(r.hca), r.port.number, facts::place(r.node)),
    })
    .collect()
}

fn filter_commands(ask: Ask<'_>, value: &str, at_fault: &[String]) -> Vec<String> {
    let names = network::wanted(value);
    let interface = names.iter().find(|n| network::is_interface(n));
    let seen = network::seen_devices(ask);
    let mut fabric = ask.job.facts.fabric();
    fabric.sort_by_key(|rail| !at_fault.contains(&rail.node.name));
    let own: Vec<String> =
        fabric.iter().map(|r| format!("export NCCL_IB_HCA=={}:{}   # on {}, behind {}", sh(r.hca), r.port.number, facts::place(r.node), r.netdev().unwrap_or("?"))).collect();
    if !own.is_empty() {
        return own;
    }
    let mut commands = vec![interface.map_or_else(
        || "rdma link show   # every HCA with its state and its interface".to_owned(),
        |i| format!("rdma link show | grep -w {}   # the name before the slash is the HCA", sh(&format!("netdev {i}"))),
    )];
    match seen.first() {
        Some(hca) => commands.push(format!("export NCCL_IB_HCA={}   # as other nodes of this job call it; names may differ between nodes", sh(hca))),
        None => commands.push("export NCCL_IB_HCA=<that HCA>".to_owned()),
    }
    if let Some(i) = interface {
        commands.push(format!("export NCCL_SOCKET_IFNAME={}   # here the interface's name belongs", sh(i)));
    }
    commands
}

const PIN: &str = "Pin the data path of every node to one fabric, one rail first";
const PIN_WHEN: &str = "The nodes share an RDMA fabric. Management traffic may stay on its own network.";

/// All data-path variables on one fabric.
fn pin(ask: Ask<'_>, reason: &Reason<'_>, carriers: &[Interface<'_>]) -> Fix {
    let from_filter = match &reason.kind {
        Kind::Filter(value) => network::wanted(value).into_iter().find(|n| network::is_interface(n)),
        _ => None,
    };
    let ipoib = carriers.iter().map(|c| c.name).find(|n| Link::of(n) == Link::Ipoib);
    let interface = from_filter.or(ipoib).map_or("<interface of the fabric>".into(), sh);
    let seen = network::seen_devices(ask);
    let hca = seen.first().map_or("<its HCA>".into(), |h| sh(h));
    Fix {
        title: PIN.to_owned(),
        when: PIN_WHEN.to_owned(),
        commands: vec![
            "ip -br addr; rdma link show   # which interface lies on the fabric, and its HCA".to_owned(),
            format!("export NCCL_SOCKET_IFNAME={interface} GLOO_SOCKET_IFNAME={interface}"),
            format!("export NCCL_IB_HCA={hca} NCCL_IB_DISABLE=0 NCCL_NET=IB"),
            "export VLLM_HOST_IP=<this node's address on that interface>   # vLLM; Ray: --node-ip-address".to_owned(),
        ],
        needs: "nothing".to_owned(),
        cost: "With NCCL_NET=IB a job without RDMA fails at start instead of crawling.".to_owned(),
        undo: "unset NCCL_SOCKET_IFNAME GLOO_SOCKET_IFNAME NCCL_IB_HCA NCCL_NET".to_owned(),
    }
}

fn container() -> Fix {
    Fix {
        title: "Let the container see the HCA".to_owned(),
        when: "The job runs in a container and the host's `ls /sys/class/infiniband` is not empty.".to_owned(),
        commands: vec!["docker run --network=host --device=/dev/infiniband --ulimit memlock=-1 --ipc=host …".to_owned()],
        needs: "root".to_owned(),
        cost: "The container shares the host's network.".to_owned(),
        undo: "Start it without these options.".to_owned(),
    }
}

/// What only hides it.
pub fn avoid() -> Vec<String> {
    vec![
        "More sockets and threads (NCCL_SOCKET_NTHREADS, NCCL_NSOCKS_PERTHREAD) make TCP a little faster and leave RDMA unused.".to_owned(),
        "NCCL_IB_DISABLE=1 or NCCL_NET=Socket to get past an IB error makes every later run slow.".to_owned(),
        "A higher time-out only waits longer for the same slow path.".to_owned(),
    ]
}

/// How to see that it is mended.
pub fn verify(ask: Ask<'_>, reason: &Reason<'_>, carriers: &[Interface<'_>]) -> Vec<String> {
    let seen = network::seen_devices(ask);
    let hca = match &reason.kind {
        Kind::OpenFailed(h) => *h,
        _ => seen.first().copied().unwrap_or("HCA"),
    };
    let mut list = vec![
        "The new log shows `NET/IB : Using [0]…` and `Using network IB` on both ends, and a collective finishes: a good init line alone is no proof.".to_owned(),
        format!("rdma link show; cat /sys/class/infiniband/{hca}/ports/1/{{state,phys_state,rate}}   # ACTIVE, LinkUp, the fabric's rate"),
        format!("ib_write_bw -d {hca} -F --report_gbits   # on one node; the same with that node's address on the other"),
    ];
    if let Some(c) = carriers.first() {
        list.push(format!("ethtool {} | grep Speed   # what TCP has now", sh(c.name)));
    }
    list
}
