//! What read-only commands said of the hosts, where their output was given beside the logs.

use super::Topic;
use super::facts::{Facts, add};
use crate::digest::{Fact, HostFacts, Interface, Limit, Port};
use crate::job::Job;

/// Adds the facts of the job's hosts.
pub fn of(job: &Job, facts: &mut Facts) {
    for node in &job.facts.nodes {
        let Some(host) = node.host else { continue };
        let mut put = |name: &str, value: String| add(facts, Topic::Host, name, &value, Some(host));
        machine(&node.facts, &mut put);
        node.facts.interfaces.iter().for_each(|i| interface(i, &mut put));
        for hca in &node.facts.hcas {
            hca.ports.iter().for_each(|p| port(&format!("{}:{}", hca.name, p.number), p, &mut put));
        }
    }
}

type Put<'a> = dyn FnMut(&str, String) + 'a;

fn told<T>(fact: Option<&Fact<T>>, show: impl FnOnce(&T) -> String, name: &str, put: &mut Put<'_>) {
    if let Some(fact) = fact {
        put(name, show(&fact.value));
    }
}

fn limit(limit: &Limit) -> String {
    match limit {
        Limit::Unlimited => "unlimited".to_owned(),
        Limit::Value(n) => n.to_string(),
    }
}

fn machine(host: &HostFacts, put: &mut Put<'_>) {
    told(host.driver.as_ref(), Clone::clone, "GPU driver", put);
    told(host.memlock.as_ref(), limit, "limit of locked memory", put);
    told(host.nofile.as_ref(), limit, "limit of open files", put);
    told(host.shm.as_ref(), |shm| format!("{} bytes", shm.size), "size of /dev/shm", put);
    // The rest of the command line names disks and consoles.
    let iommu = |line: &String| {
        let words: Vec<&str> = line.split_whitespace().filter(|w| w.contains("iommu") || w.starts_with("pci=")).collect();
        if words.is_empty() { "nothing".to_owned() } else { words.join(" ") }
    };
    told(host.cmdline.as_ref(), iommu, "IOMMU on the kernel's command line", put);
    if !host.acs.is_empty() {
        let redirects = host.acs.iter().any(|a| a.redirects);
        put("PCIe access control", if redirects { "redirects" } else { "does not redirect" }.to_owned());
    }
    for gpu in &host.gpus {
        put(&format!("GPU {}", gpu.index), format!("{} {}", gpu.name, gpu.arch).trim().to_owned());
    }
    for row in &host.matrix {
        let cells: Vec<String> = row.cells.iter().map(|(gpu, value)| format!("{gpu}:{value}")).collect();
        put(&format!("GPU {} to others, {:?}", row.gpu, row.table), cells.join(" "));
    }
}

fn interface(interface: &Interface, put: &mut Put<'_>) {
    let name = |what: &str| format!("{what} of {}", interface.name);
    told(interface.up.as_ref(), |up| if *up { "up" } else { "down" }.to_owned(), &name("link"), put);
    told(interface.mtu.as_ref(), u32::to_string, &name("MTU"), put);
    told(interface.speed.as_ref(), |speed| format!("{speed} Mb/s"), &name("speed"), put);
}

fn port(device: &str, port: &Port, put: &mut Put<'_>) {
    let name = |what: &str| format!("{what} of {device}");
    told(port.state.as_ref(), Clone::clone, &name("state"), put);
    told(port.rate.as_ref(), |rate| format!("{rate} Gb/s"), &name("rate"), put);
    told(port.active_mtu.as_ref(), u32::to_string, &name("active MTU"), put);
    told(port.netdev.as_ref(), Clone::clone, &name("interface"), put);
    told(port.layer.as_ref(), |layer| format!("{layer:?}"), &name("link layer"), put);
}
