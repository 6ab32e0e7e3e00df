//! What to do about a failed GPU or call: the card, the kernel, or what the place of the call tells.

use super::super::finding::Fix;
use super::super::query::Hit;
use super::{Fault, rocm};

/// The call that makes the memory pool of a communicator, by its place and words.
pub fn refused_pool(hit: &Hit<'_>) -> bool {
    hit.text().contains("operation not supported'") && hit.entry.first.file.ends_with("init.cc")
}

/// The fixes, the best first.
pub fn fixes(first: &Fault<'_>) -> Vec<Fix> {
    let host = first.hit.host();
    let amd = rocm::is_amd(&first.hit);
    let on = if host.is_empty() { String::new() } else { format!(" of {host}") };
    let reset = Fix {
        title: format!("Drain the node{on}, reset the GPU, and have the card tested if it comes back"),
        when: "ECC, NVLink, a lost GPU, or the same card again and again".to_owned(),
        commands: if amd {
            vec!["rocm-smi --gpureset -d GPU   # no process may use it".to_owned(), "rvs -c gst_single.conf".to_owned()]
        } else {
            vec!["nvidia-smi --gpu-reset -i GPU   # no process may use it".to_owned(), "dcgmi diag -r 3".to_owned()]
        },
        needs: "root".to_owned(),
        cost: "the node is away meanwhile".to_owned(),
        undo: "none needed".to_owned(),
    };
    let find = Fix {
        title: "Find the kernel that faults".to_owned(),
        when: "Illegal access, launch failure or an assertion: the program, until proven otherwise".to_owned(),
        commands: if amd {
            vec!["AMD_SERIALIZE_KERNEL=3 HIP_LAUNCH_BLOCKING=1   # the stack trace then names the call".to_owned()]
        } else {
            vec!["CUDA_LAUNCH_BLOCKING=1   # the stack trace then names the call".to_owned(), "compute-sanitizer --tool memcheck PROGRAM".to_owned()]
        },
        needs: "nothing".to_owned(),
        cost: "slow, for the search only".to_owned(),
        undo: "unset it".to_owned(),
    };
    let mut list = if first.hardware { vec![reset, find] } else { vec![find, reset] };
    if let Some(best) = by_place(&first.hit) {
        list.insert(0, best);
    }
    list
}

/// Fixes of faults that the place and the words of the failed call tell; they come first.
fn by_place(hit: &Hit<'_>) -> Option<Fix> {
    if refused_pool(hit) {
        return Some(Fix {
            title: "Give the virtual machine a GPU with unified memory".to_owned(),
            when: "The GPU is a vGPU: `nvidia-smi -q` shows a virtualisation mode of VGPU".to_owned(),
            commands: vec![
                "nvidia-smi -q | grep -A2 'Virtualization Mode'".to_owned(),
                "# on the hypervisor: enable_uvm=1 for this vGPU, or pass the whole card through".to_owned(),
            ],
            needs: "root".to_owned(),
            cost: "some migration features of the hypervisor".to_owned(),
            undo: "set it to 0".to_owned(),
        });
    }
    if hit.entry.kind == "p2p.disabled_nvlink" || hit.text().contains("system not yet initialized") {
        return Some(Fix {
            title: "Start the fabric manager, in the driver's version".to_owned(),
            when: "The machine has NVSwitches (HGX, DGX)".to_owned(),
            commands: vec![
                "nvidia-smi nvlink -s; nvidia-smi -q | grep -A3 Fabric".to_owned(),
                "sudo systemctl restart nvidia-fabricmanager && systemctl status nvidia-fabricmanager".to_owned(),
            ],
            needs: "root".to_owned(),
            cost: "no job may run on the node meanwhile".to_owned(),
            undo: "none needed".to_owned(),
        });
    }
    // 2.18.1 to 2.18.5 read a pointer back from the GPU and use it before the copy has ended.
    let early = hit.entry.first.file.ends_with("transport.cc") && hit.text().contains("'invalid argument'");
    early.then(|| Fix {
        title: "Take NCCL 2.18.6 or later".to_owned(),
        when: "The log says 2.18.1 to 2.18.5: they use a pointer from the GPU before its copy has ended".to_owned(),
        commands: vec!["pip install -U nvidia-nccl-cu12   # or a newer image".to_owned()],
        needs: "nothing".to_owned(),
        cost: "none".to_owned(),
        undo: "install the former version".to_owned(),
    })
}
