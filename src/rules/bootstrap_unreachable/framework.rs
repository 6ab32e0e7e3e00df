//! Meeting points of the framework: torch's store and gloo's CPU connections. They come before NCCL's own bootstrap and
//! fail for the same reasons.

use super::{advice, network, start};
use crate::rules::finding::{Confidence, Finding, Severity};
use crate::rules::query::{Ask, Hit, capital, ranks_of, ranks_text};

/// Looks for a store or a CPU group that cannot be reached.
pub fn check(ask: Ask<'_>) -> Option<Finding> {
    if ask.procs().any(|(p, _)| network::bootstrapped(ask, p)) {
        return None;
    }
    gloo_interface(ask).or_else(|| store(ask)).or_else(|| mesh(ask))
}

fn gloo_interface(ask: Ask<'_>) -> Option<Finding> {
    let hits = ask.hits("gloo.interface");
    let name = hits.first()?.get("if")?.to_owned();
    let why = format!("GLOO_SOCKET_IFNAME names {name}, and this node has no interface of that name. Gloo connects the CPU group before NCCL starts.");
    let mut f = start(Confidence::Certain, Severity::Error, format!("GLOO_SOCKET_IFNAME={name} is no interface of this node"), why, &hits);
    f.fixes = vec![advice::interface(ask, None)];
    f.verify = advice::verify();
    Some(f)
}

fn store(ask: Ask<'_>) -> Option<Finding> {
    let hits = ask.hits("torch.store_connect");
    let first = *hits.first()?;
    let (host, port) = (first.get("host").unwrap_or("?"), first.get("port").unwrap_or("?"));
    let who = capital(&ranks_text(&ranks_of(&hits)));
    let why = format!(
        "The store runs in rank 0's process at MASTER_ADDR and MASTER_PORT ({host}, {port}). Nothing answered there: another address than rank 0's node, a firewall, or rank 0 never started. If rank 0's log ends with an error of its own, look there first."
    );
    let mut f = start(Confidence::Likely, Severity::Error, format!("{who} cannot reach the store at {host}:{port}"), why, &hits);
    f.fixes = advice::fixes(ask, Some(host));
    f.avoid = advice::avoid();
    f.verify = vec![format!("nc -vz {host} {port}   # from every node while rank 0 runs")];
    Some(f)
}

fn mesh(ask: Ask<'_>) -> Option<Finding> {
    let hits: Vec<Hit<'_>> = ask.hits("gloo.error").into_iter().filter(|h| h.text().contains("connectFullMesh")).collect();
    hits.first()?;
    let why = "Gloo connects every rank with every other over the interface of GLOO_SOCKET_IFNAME, or else over the address that the host name resolves to (127.0.1.1 in many /etc/hosts). One of these addresses does not reach the others. A rank that died meanwhile is the other reading.".to_owned();
    let mut f = start(Confidence::Likely, Severity::Error, "Gloo cannot connect the ranks with each other".to_owned(), why, &hits);
    f.fixes = advice::fixes(ask, None);
    f.verify = vec!["getent hosts $(hostname)   # must be an address that the other nodes reach, not 127.0.1.1".to_owned()];
    Some(f)
}
