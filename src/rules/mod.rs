//! Rules: one file a cause, pure functions of the job. The engine orders, folds victims under their cause and
//! suppresses; rules only claim and explain.

mod amd_ipc_failed;
mod amd_pcie_atomics;
mod app_crash;
mod bootstrap_unreachable;
mod collective_mismatch;
mod collective_timeout;
mod driver_mismatch;
mod duplicate_gpu;
mod engine;
mod env_mismatch;
mod expectation_failed;
mod fabric_split;
mod facts;
mod facts_notes;
mod fd_limit;
mod finding;
mod gdr_disabled;
mod gpu_arch_mismatch;
mod gpu_error;
mod gpu_not_visible;
mod gpu_oom;
mod hints;
mod ib;
mod ib_completion_error;
mod ib_device_missing;
mod ib_port_error;
mod launch_misconfig;
mod memlock_limit;
mod missing_rank;
mod nccl_too_old;
mod net_plugin_failure;
mod network;
mod notes;
mod nvls_failure;
mod p2p_iommu_acs_hang;
mod peer_access_failed;
mod peer_crash;
mod process_limit;
mod rail_topology;
mod ras;
mod rccl_sdma_rdna;
mod remedy;
mod roce_qp_gid_mtu;
mod shm_too_small;
mod slow_intra_node;
mod stall;
mod tcp_fallback;
mod teardown;
mod topology_error;
mod unknown;
mod user;
mod verdict;
mod version_mismatch;
mod waiting;
mod why_not;
mod workaround_left;

pub mod query;
pub mod tree;

pub use engine::{Wishes, run, run_with};
pub use expectation_failed::expected;
pub use finding::{Confidence, Evidence, Finding, Fix, Severity, Verdict};
pub use unknown::UnknownWarning;
pub use user::{Silence, Silenced, User, UserRule};
pub use why_not::{Reason, Standing, WhyNot, why_not};

use crate::job::Job;
use query::Ask;

/// What a cause is, for people.
#[derive(Debug)]
pub struct Cause {
    /// Stable kebab-case name.
    pub id: &'static str,
    /// Former names.
    pub aliases: &'static [&'static str],
    /// One line: what it is.
    pub summary: &'static str,
    /// The explanation, Markdown, kept beside the rule.
    pub explanation: &'static str,
}

/// A cause with its test. Each file in `rules/` declares one.
pub struct Rule {
    /// The cause.
    pub cause: Cause,
    /// Looks for it.
    pub check: fn(Ask<'_>) -> Vec<Finding>,
    /// Ids of findings that are its consequences where both stand.
    pub explains: &'static [&'static str],
    /// It stands only where nothing else does.
    pub only_alone: bool,
}

/// The result of an analysis: what the report stage writes.
#[derive(Debug)]
pub struct Analysis {
    /// The job.
    pub job: Job,
    /// Findings in the order in which one would act.
    pub findings: Vec<Finding>,
    /// The verdict.
    pub verdict: Verdict,
    /// What was missing in the logs and how to get it, and what is good about a healthy one.
    pub notes: Vec<String>,
    /// Warnings that nothing explains, most telling first.
    pub unknown: Vec<UnknownWarning>,
    /// What the user's configuration silenced.
    pub silenced: Vec<Silenced>,
    /// How far the evidence leads down the decision tree.
    pub walk: tree::Walk,
    /// Answers to `--why-not`.
    pub why_not: Vec<WhyNot>,
    /// Expectations that the logs do not decide, with the setting that would.
    pub undecided: Vec<String>,
}

/// All rules in the order of suspicion: a cause can be the reason only of causes behind it.
pub static RULES: &[&Rule] = &[
    &gpu_oom::RULE,
    &gpu_error::RULE,
    &gpu_not_visible::RULE,
    &driver_mismatch::RULE,
    &gpu_arch_mismatch::RULE,
    &nccl_too_old::RULE,
    &amd_pcie_atomics::RULE,
    &amd_ipc_failed::RULE,
    &peer_access_failed::RULE,
    &topology_error::RULE,
    &shm_too_small::RULE,
    &memlock_limit::RULE,
    &fd_limit::RULE,
    &process_limit::RULE,
    &duplicate_gpu::RULE,
    &version_mismatch::RULE,
    &env_mismatch::RULE,
    &launch_misconfig::RULE,
    &nvls_failure::RULE,
    &app_crash::RULE,
    &net_plugin_failure::RULE,
    &ib_device_missing::RULE,
    &ib_port_error::RULE,
    &rail_topology::RULE,
    &roce_qp_gid_mtu::RULE,
    &ib_completion_error::RULE,
    &tcp_fallback::RULE,
    &bootstrap_unreachable::RULE,
    &rccl_sdma_rdna::RULE,
    &p2p_iommu_acs_hang::RULE,
    &collective_mismatch::RULE,
    &peer_crash::RULE,
    &missing_rank::RULE,
    &gdr_disabled::RULE,
    &slow_intra_node::RULE,
    &fabric_split::RULE,
    &collective_timeout::RULE,
    &stall::RULE,
    &expectation_failed::RULE,
    &workaround_left::RULE,
];

/// All causes in the order of suspicion.
pub fn causes() -> impl Iterator<Item = &'static Cause> {
    RULES.iter().map(|r| &r.cause)
}

/// Finds a cause by its name or a former one.
pub fn cause(name: &str) -> Option<&'static Cause> {
    causes().find(|c| c.id == name || c.aliases.contains(&name))
}
