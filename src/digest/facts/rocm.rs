//! AMD GPUs: `rocm-smi`, `rocminfo`, `vulkaninfo --summary`.

use super::Family;
use super::model::{MAX_NAME, MatrixRow, Table};
use super::nvidia::gpu;
use super::reader::{Scene, clip};

/// Tables between GPUs, and product names.
pub const ROCM_SMI: Family = Family {
    commands: &["rocm-smi --showtopo", "rocm-smi --showproductname"],
    reads: "How two AMD GPUs are connected (PCIE, XGMI), whether one may access the other, and their models.",
    starts: &[],
    read: rocm_smi,
};

/// Architecture and model.
pub const ROCMINFO: Family = Family {
    commands: &["rocminfo"],
    reads: "Architecture (gfx1201), model and PCI address of each AMD GPU.",
    starts: &["Agent", "Name:", "Marketing", "Device", "BDFID:"],
    read: rocminfo,
};

/// Devices of Vulkan.
pub const VULKAN: Family =
    Family { commands: &["vulkaninfo --summary"], reads: "GPUs that Vulkan offers, where nothing else named them.", starts: &["deviceName", "deviceType"], read: vulkan };

fn rocm_smi(scene: &mut Scene<'_>) -> bool {
    heading(scene) || product(scene).is_some() || matrix(scene).is_some()
}

fn heading(scene: &mut Scene<'_>) -> bool {
    let title = scene.text.trim_matches(['=', ' ']);
    if title.len() == scene.text.len() || !title.ends_with("between two GPUs") {
        return false;
    }
    let table = match title {
        "Link Type between two GPUs" => Some(Table::LinkType),
        "Link accessibility between two GPUs" | "Link accessible between two GPUs" => Some(Table::Access),
        _ => None,
    };
    "rocm".clone_into(&mut scene.memo.part);
    scene.memo.table = table.map(|t| (t, Vec::new()));
    true
}

/// `GPU[0] : Card Series: AMD Radeon AI PRO R9700`, `GPU[0] : GFX Version: gfx1201`
fn product(scene: &mut Scene<'_>) -> Option<()> {
    let (index, rest) = scene.text.strip_prefix("GPU[")?.split_once(']')?;
    let (key, value) = rest.trim_start_matches([' ', '\t', ':']).split_once(':')?;
    let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
    if value.is_empty() || !matches!(key.as_str(), "card series" | "gfx version" | "pci bus") {
        return None;
    }
    let gpu = scene.host.gpu_mut(index.parse().ok()?, scene.at)?;
    let slot = match key.as_str() {
        "card series" => &mut gpu.name,
        "gfx version" => &mut gpu.arch,
        _ => &mut gpu.bus_id,
    };
    clip(value, MAX_NAME).clone_into(slot);
    Some(())
}

fn matrix(scene: &mut Scene<'_>) -> Option<()> {
    if scene.memo.part != "rocm" {
        return None;
    }
    let row = gpu(scene.words.first()?)?;
    if scene.words.get(1).is_none_or(|w| gpu(w).is_some()) {
        let columns = scene.words.iter().map(|w| gpu(w)).collect();
        scene.memo.table.as_mut()?.1 = columns;
        return Some(());
    }
    let (table, columns) = scene.memo.table.as_ref()?;
    let cells = &scene.words[1..];
    if cells.len() != columns.len() {
        return None;
    }
    let cells = columns.iter().zip(cells).filter_map(|(c, v)| Some(((*c)?, clip(v, 8).to_owned()))).filter(|(c, _)| *c != row).collect();
    scene.host.add_row(MatrixRow { table: *table, gpu: row, cells, at: scene.at.clone() });
    Some(())
}

fn rocminfo(scene: &mut Scene<'_>) -> bool {
    if let ["Agent", n] = scene.words.as_slice()
        && n.trim_end_matches('*').parse::<u32>().is_ok()
    {
        if scene.memo.part != "agent" {
            scene.memo.gpu = None;
            "agent".clone_into(&mut scene.memo.part);
        }
        scene.memo.interface.clear();
        scene.memo.hca.clear();
        return true;
    }
    if scene.memo.part != "agent" {
        return false;
    }
    let Some((key, value)) = scene.text.split_once(':') else { return false };
    let value = clip(value.trim(), MAX_NAME);
    match key {
        // The same key names the instruction set further down.
        "Name" if scene.memo.hca.is_empty() => value.clone_into(&mut scene.memo.hca),
        "Marketing Name" => value.clone_into(&mut scene.memo.interface),
        "Device Type" if value == "GPU" => {
            let index = scene.memo.gpu.map_or(0, |n| n + 1);
            scene.memo.gpu = Some(index);
            let (arch, name) = (scene.memo.hca.clone(), scene.memo.interface.clone());
            if let Some(gpu) = scene.host.gpu_mut(index, scene.at) {
                gpu.arch = arch;
                gpu.name = name;
            }
        }
        "BDFID" => {
            let bdf = value.parse::<u32>().ok().filter(|n| *n > 0);
            if let (Some(bdf), Some(index)) = (bdf, scene.memo.gpu)
                && let Some(gpu) = scene.host.gpu_mut(index, scene.at)
                && gpu.bus_id.is_empty()
            {
                gpu.bus_id = format!("{:02x}:{:02x}.{:x}", bdf >> 8 & 0xff, bdf >> 3 & 0x1f, bdf & 7);
            }
        }
        _ => return false,
    }
    true
}

fn vulkan(scene: &mut Scene<'_>) -> bool {
    if let Some(index) = scene.text.strip_suffix(':').and_then(gpu) {
        scene.memo.gpu = Some(index);
        scene.memo.part.clear();
        return true;
    }
    let (["deviceType" | "deviceName", "=", ..], Some(index)) = (scene.words.as_slice(), scene.memo.gpu) else { return false };
    let value = scene.words[2..].join(" ");
    if scene.words[0] == "deviceType" {
        scene.memo.part = value;
        return true;
    }
    // Processors that pretend to be a GPU do not count.
    if scene.memo.part.ends_with("_GPU")
        && let Some(gpu) = scene.host.gpu_mut(index, scene.at)
        && gpu.name.is_empty()
    {
        clip(&value, MAX_NAME).clone_into(&mut gpu.name);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::tests::{collapsed, one};
    use super::*;

    #[test]
    fn topology_of_amd_gpus() {
        let text = "============================ ROCm System Management Interface ============================\n================================ Weight between two GPUs =================================\n       GPU0         GPU1         \nGPU0   0            40           \nGPU1   40           0            \n=============================== Link Type between two GPUs ===============================\n       GPU0         GPU1         \nGPU0   0            PCIE         \nGPU1   PCIE         0            \n======================================= Numa Nodes =======================================\nGPU[0]\t\t: (Topology) Numa Node: 0\n";
        for text in [text.to_owned(), collapsed(text)] {
            let facts = one(&text);
            assert_eq!(facts.rows(Table::LinkType).map(|r| (r.gpu, r.cells[0].1.as_str())).collect::<Vec<_>>(), [(0, "PCIE"), (1, "PCIE")]);
            assert_eq!(facts.matrix.len(), 2);
        }
        let names = "GPU[0]\t\t: Card Series: \t\tAMD Radeon AI PRO R9700\nGPU[0]\t\t: GFX Version: \t\tgfx1201\n";
        let facts = one(names);
        assert_eq!((facts.gpus[0].name.as_str(), facts.gpus[0].arch.as_str()), ("AMD Radeon AI PRO R9700", "gfx1201"));
    }

    #[test]
    fn agents_that_are_gpus() {
        let agent = |n: u32, name: &str, marketing: &str, kind: &str, bdf: u32| {
            format!(
                "*******                  \nAgent {n}                  \n*******                  \n  Name:                    {name}                            \n  Uuid:                    GPU-XX                             \n  Marketing Name:          {marketing}            \n  Vendor Name:             AMD                                \n  Device Type:             {kind}                                \n  BDFID:                   {bdf}                               \n  ISA Info:                \n    ISA 1                    \n      Name:                    amdgcn-amd-amdhsa--{name}         \n"
            )
        };
        let text = agent(1, "AMD EPYC 7443P 24-Core Processor", "AMD EPYC 7443P 24-Core Processor", "CPU", 0)
            + &agent(2, "gfx1201", "AMD Radeon AI PRO R9700", "GPU", 0x4100)
            + &agent(3, "gfx1201", "AMD Radeon AI PRO R9700", "GPU", 0x6100);
        for text in [text.clone(), collapsed(&text)] {
            let facts = one(&text);
            assert_eq!(facts.gpus.iter().map(|g| (g.index, g.arch.as_str(), g.bus_id.as_str())).collect::<Vec<_>>(), [(0, "gfx1201", "41:00.0"), (1, "gfx1201", "61:00.0")]);
        }
    }

    #[test]
    fn devices_of_vulkan() {
        let text = "Devices:\n========\nGPU0:\n\tapiVersion         = 1.4.305\n\tdeviceType         = PHYSICAL_DEVICE_TYPE_DISCRETE_GPU\n\tdeviceName         = AMD Radeon RX 9070 XT (RADV GFX1201)\n\tdriverName         = radv\nGPU1:\n\tdeviceType         = PHYSICAL_DEVICE_TYPE_CPU\n\tdeviceName         = llvmpipe (LLVM 19.1.7, 256 bits)\n";
        for text in [text.to_owned(), collapsed(text)] {
            assert_eq!(one(&text).gpus.iter().map(|g| g.name.as_str()).collect::<Vec<_>>(), ["AMD Radeon RX 9070 XT (RADV GFX1201)"]);
        }
    }
}
