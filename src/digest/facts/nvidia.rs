//! NVIDIA GPUs: `nvidia-smi`, `nvidia-smi -L`, `nvidia-smi topo`.

use super::Family;
use super::model::{Fact, MAX_NAME, MatrixRow, Table};
use super::reader::{Scene, clip};

/// Models and bus addresses.
pub const NVIDIA_SMI: Family = Family {
    commands: &["nvidia-smi", "nvidia-smi -L", "nvidia-smi --query-gpu=… --format=csv"],
    reads: "Model and PCI address of each GPU, version of the driver.",
    starts: &["GPU", "index,", "name,", "gpu_name,", "NVIDIA", "Tesla", "Quadro"],
    read: nvidia_smi,
};

/// Tables between GPUs.
pub const TOPO: Family = Family {
    commands: &["nvidia-smi topo -m", "nvidia-smi topo -p2p r", "nvidia-smi topo -p2p w"],
    reads: "How two GPUs are connected (NV18, PIX, PXB, PHB, NODE, SYS), and whether one may read or write the other.",
    starts: &[],
    read: topo,
};

/// `00000000:41:00.0`, `0000:41:00.0`, `41:00.0`.
pub fn pci(word: &str) -> bool {
    let mut parts = word.rsplit(':');
    let slot = parts.next().and_then(|s| s.split_once('.')).is_some_and(|(d, f)| d.len() == 2 && f.len() == 1);
    let hex = word.bytes().all(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.'));
    slot && hex && parts.next().is_some_and(|bus| bus.len() == 2) && parts.next().is_none_or(|domain| matches!(domain.len(), 4 | 8)) && parts.next().is_none()
}

fn nvidia_smi(scene: &mut Scene<'_>) -> bool {
    row(scene).or_else(|| listed(scene)).or_else(|| driver(scene)).or_else(|| queried(scene)).is_some()
}

/// `index, name, driver_version, pci.bus_id` and `0, NVIDIA GeForce RTX 5090, 570.86.10, 00000000:41:00.0`. Without the
/// heading, the command names the columns.
fn queried(scene: &mut Scene<'_>) -> Option<()> {
    const NAMES: [&str; 3] = ["index", "name", "gpu_name"];
    let cells: Vec<&str> = scene.text.split(',').map(|c| c.trim().split(" [").next().unwrap_or_default()).collect();
    if NAMES.contains(&cells[0]) && cells[1..].iter().any(|c| matches!(*c, "name" | "uuid") || c.contains(['_', '.'])) {
        scene.memo.part = format!("--query-gpu={}", cells.join(","));
        scene.memo.gpu = None;
        return Some(());
    }
    let asked = if scene.memo.part.starts_with("--query-gpu=") { &scene.memo.part } else { &scene.memo.command };
    let columns: Vec<&str> = asked.split_whitespace().find_map(|w| w.strip_prefix("--query-gpu="))?.split(',').collect();
    let cell = |names: &[&str]| columns.iter().position(|c| names.contains(c)).and_then(|at| cells.get(at).copied());
    let (name, bus) = (cell(&["name", "gpu_name"]), cell(&["pci.bus_id", "gpu_bus_id"]).filter(|b| pci(b)));
    if cells.len() != columns.len() || (name.is_none() && bus.is_none()) {
        return None;
    }
    let (name, bus) = (name.map(|n| clip(n, MAX_NAME).to_owned()), bus.map(str::to_owned));
    let driver = cell(&["driver_version"]).filter(|d| d.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned);
    let index = match cell(&["index"]) {
        Some(index) => index.parse().ok()?,
        // In the order of their indices.
        None => scene.memo.gpu.map_or(0, |n| n + 1),
    };
    scene.memo.gpu = Some(index);
    if let Some(driver) = driver {
        scene.host.driver = Some(Fact::new(driver, scene.at));
    }
    let gpu = scene.host.gpu_mut(index, scene.at)?;
    gpu.name = name.unwrap_or_else(|| std::mem::take(&mut gpu.name));
    gpu.bus_id = bus.unwrap_or_else(|| std::mem::take(&mut gpu.bus_id));
    Some(())
}

/// `|   0  NVIDIA GeForce RTX 5090   Off |   00000000:41:00.0 Off |`
fn row(scene: &mut Scene<'_>) -> Option<()> {
    let ["|", index, rest @ ..] = scene.words.as_slice() else { return None };
    let index: u32 = index.parse().ok()?;
    let bar = rest.iter().position(|w| *w == "|")?;
    let bus = rest.get(bar + 1).filter(|w| pci(w))?;
    let name = rest[..bar].strip_suffix(&["On"]).or_else(|| rest[..bar].strip_suffix(&["Off"])).unwrap_or(&rest[..bar]).join(" ");
    let bus = (*bus).to_owned();
    let gpu = scene.host.gpu_mut(index, scene.at)?;
    clip(&name, MAX_NAME).clone_into(&mut gpu.name);
    gpu.bus_id = bus;
    Some(())
}

/// `GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-…)`
fn listed(scene: &mut Scene<'_>) -> Option<()> {
    let (index, rest) = scene.text.strip_prefix("GPU ")?.split_once(": ")?;
    let (name, _) = rest.split_once(" (UUID: ")?;
    let gpu = scene.host.gpu_mut(index.parse().ok()?, scene.at)?;
    clip(name, MAX_NAME).clone_into(&mut gpu.name);
    Some(())
}

fn driver(scene: &mut Scene<'_>) -> Option<()> {
    let (_, rest) = scene.text.strip_prefix("| NVIDIA-SMI")?.split_once("Driver Version: ")?;
    let version = rest.split_whitespace().next()?;
    scene.host.driver = Some(Fact::new(clip(version, MAX_NAME).to_owned(), scene.at));
    Some(())
}

/// `GPU3` → 3
pub fn gpu(word: &str) -> Option<u32> {
    word.strip_prefix("GPU")?.parse().ok()
}

fn topo(scene: &mut Scene<'_>) -> bool {
    let Some(first) = scene.words.first().and_then(|w| gpu(w)) else { return false };
    if scene.memo.part == "rocm" {
        return false;
    }
    let second = scene.words.get(1).copied();
    let head = second.is_none_or(|w| gpu(w).is_some() || w.starts_with("NIC") || w.starts_with("mlx") || w == "CPU");
    if head {
        // A table of one column has nothing to tell.
        let columns: Vec<Option<u32>> = scene.words.iter().take_while(|w| **w != "CPU").map(|w| gpu(w)).collect();
        let options: Vec<&str> = scene.memo.command.split_whitespace().collect();
        let p2p = options.iter().position(|w| *w == "-p2p" || *w == "-m").map(|i| (options[i], options.get(i + 1).copied().unwrap_or_default()));
        let table = match p2p {
            Some(("-p2p", "w")) => Table::P2pWrite,
            Some(("-p2p", "r" | "rw" | "p" | "")) => Table::P2pRead,
            // NVLink and atomics say nothing of plain transfers.
            Some(("-p2p", _)) => return false,
            _ => Table::Topology,
        };
        scene.memo.table = Some((table, columns));
        return true;
    }
    let Some((table, columns)) = &scene.memo.table else { return false };
    let cells: Vec<&str> = scene.words[1..].to_vec();
    let known = |w: &str| matches!(w, "X" | "OK" | "CNS" | "GNS" | "TNS" | "NS" | "DR" | "U" | "PIX" | "PXB" | "PHB" | "NODE" | "SYS" | "SOC") || w.starts_with("NV");
    // A torn row has lost a cell, and nobody knows which.
    let whole =
        columns.iter().zip(&cells).all(|(_, c)| known(c)) && cells.len() >= columns.len() && columns.iter().position(|c| *c == Some(first)) == cells.iter().position(|c| *c == "X");
    if !whole {
        return false;
    }
    let p2p = cells.iter().take(columns.len()).any(|c| matches!(*c, "OK" | "CNS" | "GNS" | "TNS" | "NS" | "DR"));
    let table = if p2p && *table == Table::Topology { Table::P2pRead } else { *table };
    let cells = columns.iter().zip(&cells).filter_map(|(column, cell)| Some(((*column)?, clip(cell, 8).to_owned()))).filter(|(column, _)| *column != first).collect();
    scene.host.add_row(MatrixRow { table, gpu: first, cells, at: scene.at.clone() });
    true
}

#[cfg(test)]
mod tests {
    use super::super::Table;
    use super::super::tests::{collapsed, one};

    #[test]
    fn the_table_of_old_and_new_drivers() {
        let new = "+-----------------------------------------------------------------------------------------+\n| NVIDIA-SMI 570.86.10              Driver Version: 570.86.10      CUDA Version: 12.8     |\n|   0  NVIDIA GeForce RTX 5090        Off |   00000000:41:00.0 Off |                  N/A |\n|  0%   38C    P8             18W /  575W |       1MiB /  32607MiB |      0%      Default |\n|   1  NVIDIA GeForce RTX 5090        Off |   00000000:61:00.0 Off |                  N/A |\n";
        let old = "| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4     |\n|   0  Tesla V100-SXM2...  On   | 00000000:41:00.0 Off |                    0 |\n|   1  Tesla V100-SXM2...  On   | 00000000:61:00.0 Off |                    0 |\n";
        for text in [new.to_owned(), old.to_owned(), collapsed(new), collapsed(old)] {
            let facts = one(&text);
            assert_eq!(facts.gpus.iter().map(|g| (g.index, g.bus_id.as_str())).collect::<Vec<_>>(), [(0, "00000000:41:00.0"), (1, "00000000:61:00.0")], "{text}");
            assert!(facts.gpus[1].name.ends_with("5090") || facts.gpus[1].name.starts_with("Tesla V100"), "{:?}", facts.gpus[1]);
            assert!(facts.driver.is_some());
        }
        let list = "GPU 0: NVIDIA RTX PRO 6000 Blackwell Workstation Edition (UUID: GPU-00000000-0000-0000-0000-000000000000)\n";
        assert_eq!(one(list).gpus[0].name, "NVIDIA RTX PRO 6000 Blackwell Workstation Edition");
    }

    #[test]
    fn columns_that_were_asked_for() {
        let whole = "index, name, driver_version, pci.bus_id\n0, NVIDIA GeForce RTX 5090, 570.86.10, 00000000:41:00.0\n1, NVIDIA GeForce RTX 5090, 570.86.10, 00000000:61:00.0\n";
        let command = "ada@orion:~$ nvidia-smi --query-gpu=name,driver_version --format=csv,noheader\nNVIDIA GeForce RTX 5090, 570.86.10\nNVIDIA GeForce RTX 5090, 570.86.10\n";
        for (text, bus) in [(whole, "00000000:61:00.0"), (command, "")] {
            let facts = one(text);
            assert_eq!(facts.gpus.iter().map(|g| (g.index, g.name.as_str())).collect::<Vec<_>>(), [(0, "NVIDIA GeForce RTX 5090"), (1, "NVIDIA GeForce RTX 5090")]);
            assert_eq!((facts.gpus[1].bus_id.as_str(), facts.driver.map(|d| d.value)), (bus, Some("570.86.10".to_owned())));
        }
        assert!(super::super::tests::read("name, age\nNVIDIA, 30\nNVIDIA makes cards, and more\n0, NVIDIA x, y\n").is_empty());
    }

    #[test]
    fn how_gpus_are_connected() {
        let topo = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tPHB\tNODE\t0-63\t0\t\tN/A\nGPU1\tPHB\t X \tSYS\t0-63\t0\t\tN/A\nNIC0\tNODE\tSYS\t X\n\nLegend:\n\n  X    = Self\n  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n";
        let p2p = "$ nvidia-smi topo -p2p w\n \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tCNS\tX\t\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n";
        for (text, table, want) in [(topo, Table::Topology, "PHB"), (p2p, Table::P2pWrite, "CNS")] {
            for text in [text.to_owned(), collapsed(text)] {
                let facts = one(&text);
                let row = facts.rows(table).find(|r| r.gpu == 1).unwrap_or_else(|| panic!("{text}"));
                assert_eq!(row.cells, [(0, want.to_owned())]);
            }
        }
        let untold = " GPU0 GPU1\nGPU0 X GNS\nGPU1 GNS X\n";
        assert_eq!(one(untold).rows(Table::P2pRead).count(), 2);
        // A torn row is not taken for a whole one.
        let torn = "\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV4\tNV4\nGPU1\t X \tNV4\n";
        assert_eq!(one(torn).rows(Table::Topology).map(|r| r.gpu).collect::<Vec<_>>(), [0]);
    }
}
