//! fd-limit: The limit on open files is too low for the number of connections.

use super::finding::{Confidence, Finding, Fix, Severity};
use super::query::{Ask, Hit, hosts_of, ranks_of, ranks_text};
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "fd-limit", aliases: &[], summary: "The limit on open files is too low for the number of connections.", explanation: include_str!("fd_limit.md") },
    check,
    explains: &["bootstrap-unreachable", "peer-crash", "missing-rank", "app-crash", "collective-timeout", "stall"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let said: Vec<Hit<'_>> = ask
        .any_of(&[
            "app.fd_limit",
            "socket.create_failed",
            "socket.accept_failed",
            "proxy.accept_failed",
            "socket.connect_failed",
            "system.call_failed",
            "bootstrap.no_interface",
            "shm.error",
            "app.exception",
            "torch.nccl_error",
            "gloo.error",
            "socket.error",
        ])
        .into_iter()
        .filter(|h| h.entry.kind == "app.fd_limit" || h.text().contains("Too many open files"))
        .chain(ask.any_of(&["warn.unknown", "ib.create_cq", "ib.call_failed"]).into_iter().filter(|h| h.text().contains("Too many open files")))
        .collect();
    let poll: Vec<Hit<'_>> = ask.hits("proxy.poll_failed").into_iter().filter(|h| h.text().contains("Invalid argument")).collect();
    let (hits, confidence) = if said.is_empty() { (poll, Confidence::Likely) } else { (said.into_iter().chain(poll).collect(), Confidence::Certain) };
    if hits.is_empty() {
        return Vec::new();
    }
    let ranks = ranks_of(&hits);
    let mut finding = Finding::new("fd-limit", Severity::Error, confidence, format!("{} ran out of file descriptors (limit on open files too low)", ranks_text(&ranks)));
    finding.why = match confidence {
        Confidence::Certain => "The kernel refused a new file or socket because the process had reached its limit on open files. Every connection of every channel takes one, so the need grows with ranks, channels and sockets.".to_owned(),
        _ => "poll() returned 'Invalid argument', which it does when it is asked to watch more descriptors than the process may open. The proxy thread ends there and its peers wait without a word. A foreign failure of poll() is the alternative; the limit tells.".to_owned(),
    };
    finding.hosts = hosts_of(&hits);
    finding.evidence = hits.iter().take(6).map(Hit::evidence).collect();
    finding.evidence.extend(ask.hits("host.ulimit_nofile").iter().take(2).map(Hit::evidence));
    finding.ranks = ranks;
    finding.fixes = vec![
        Fix {
            title: "Raise the limit in the shell or service that starts the ranks".to_owned(),
            when: "The hard limit allows it".to_owned(),
            commands: vec![
                "ulimit -n 1048576".to_owned(),
                "# systemd: LimitNOFILE=1048576   docker: --ulimit nofile=1048576:1048576   Slurm: raise it for slurmd and use --propagate=NOFILE".to_owned(),
            ],
            needs: "nothing".to_owned(),
            cost: "none".to_owned(),
            undo: "start with the old limit".to_owned(),
        },
        Fix {
            title: "Use fewer sockets for each connection".to_owned(),
            when: "Data goes over NET/Socket and the limit cannot be raised".to_owned(),
            commands: vec!["unset NCCL_NSOCKS_PERTHREAD NCCL_SOCKET_NTHREADS".to_owned()],
            needs: "nothing".to_owned(),
            cost: "less bandwidth over TCP".to_owned(),
            undo: "set them again".to_owned(),
        },
    ];
    finding.verify = vec!["grep 'open files' /proc/PID/limits of a running rank on every node".to_owned()];
    vec![finding]
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;

    #[test]
    fn emfile_is_certain_and_poll_is_likely() {
        let a = analyze_texts(&[("rank0.log", "h1:10:11 [0] misc/socket.cc:726 NCCL WARN ncclSocketInit: Socket creation failed : Too many open files\n")]);
        let f = a.findings.iter().find(|f| f.id == "fd-limit").unwrap();
        assert_eq!(f.confidence, crate::rules::Confidence::Certain);
        let a = analyze_texts(&[("rank0.log", "h1:10:11 [0] proxy.cc:1501 NCCL WARN [Proxy Service] Poll failed: Invalid argument\n")]);
        let f = a.findings.iter().find(|f| f.id == "fd-limit").unwrap();
        assert_eq!(f.confidence, crate::rules::Confidence::Likely);
    }

    #[test]
    fn another_errno_on_accept_is_not_the_limit() {
        let a = analyze_texts(&[("rank0.log", "h1:10:11 [0] misc/socket.cc:415 NCCL WARN socketTryAccept: Accept failed: Bad file descriptor\n")]);
        assert!(a.findings.iter().all(|f| f.id != "fd-limit"));
    }
}
