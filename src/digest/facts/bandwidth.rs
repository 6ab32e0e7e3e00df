//! Measured bandwidths: `ib_write_bw` and its kin, nccl-tests.

use super::Family;
use super::model::Bandwidth;
use super::reader::Scene;
use super::verbs::device;

/// Results of perftest and nccl-tests.
pub const PERFTEST: Family = Family {
    commands: &["ib_write_bw", "ib_read_bw", "ib_send_bw", "all_reduce_perf"],
    reads: "The bandwidth that an RDMA device reached with the largest message, and the average bus bandwidth of a collective.",
    starts: &["Dual-port", "#bytes", "RDMA_Write", "RDMA_Read", "Send"],
    read: perftest,
};

fn perftest(scene: &mut Scene<'_>) -> bool {
    head(scene) || result(scene).is_some() || average(scene).is_some()
}

/// Lines in front of the results: the test, the device, the unit.
fn head(scene: &mut Scene<'_>) -> bool {
    let test = match scene.words.first().copied() {
        Some("RDMA_Write") => "ib_write_bw",
        Some("RDMA_Read") => "ib_read_bw",
        Some("Send") if scene.words.contains(&"BW") => "ib_send_bw",
        _ => "",
    };
    if !test.is_empty() {
        test.clone_into(&mut scene.memo.interface);
        return true;
    }
    if scene.text.starts_with("Dual-port") {
        let name = scene.words.iter().position(|w| *w == "Device").and_then(|i| scene.words.get(i + 2)).and_then(|w| device(w));
        name.unwrap_or_default().clone_into(&mut scene.memo.hca);
        return true;
    }
    if scene.text.starts_with("#bytes") && scene.text.contains("BW average[") {
        if scene.text.contains("BW average[Gb/sec]") { "Gb/sec" } else { "MB/sec" }.clone_into(&mut scene.memo.part);
        return true;
    }
    false
}

/// ` 65536      5000             197.12             197.09             0.375918`
fn result(scene: &mut Scene<'_>) -> Option<()> {
    let [size, _, _, average, ..] = scene.words.as_slice() else { return None };
    let unit = match scene.memo.part.as_str() {
        "Gb/sec" => 1.0,
        // perftest counts in units of 2^20 bytes.
        "MB/sec" => 8.0 * 1_048_576.0 / 1e9,
        _ => return None,
    };
    let (size, average): (u64, f64) = (size.parse().ok()?, average.parse().ok()?);
    let tool = if scene.memo.interface.is_empty() { "perftest" } else { scene.memo.interface.as_str() }.to_owned();
    let gbps = average * unit;
    if gbps.is_finite() && gbps > 0.0 {
        scene.host.add_bandwidth(Bandwidth { tool, device: scene.memo.hca.clone(), size, gbps, at: scene.at.clone() });
    }
    Some(())
}

/// `# Avg bus bandwidth    : 24.6101`, in GB/s.
fn average(scene: &mut Scene<'_>) -> Option<()> {
    let value: f64 = scene.text.strip_prefix("# Avg bus bandwidth")?.trim_start_matches([' ', '\t', ':']).split_whitespace().next()?.parse().ok()?;
    if value.is_finite() && value >= 0.0 {
        scene.host.add_bandwidth(Bandwidth { tool: "nccl-tests".to_owned(), device: String::new(), size: 0, gbps: value * 8.0, at: scene.at.clone() });
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{collapsed, one};

    #[test]
    fn results_of_both_units() {
        let text = |unit: &str, rows: &str| {
            format!(
                "---------------------------------------------------------------------------------------\n                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n Number of qps   : 8\t\tTransport type : IB\n Mtu             : 4096[B]\n Link type       : Ethernet\n---------------------------------------------------------------------------------------\n #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]\n{rows}"
            )
        };
        let gbit =
            text("Gb/sec", " 65536      5000             190.00             189.00   \t\t   0.36\n 1048576    5000             197.12             197.09   \t\t   0.023496\n");
        for text in [gbit.clone(), collapsed(&gbit)] {
            let facts = one(&text);
            let b = &facts.bandwidths[0];
            assert_eq!((facts.bandwidths.len(), b.tool.as_str(), b.device.as_str(), b.size, b.gbps), (1, "ib_write_bw", "mlx5_0", 1_048_576, 197.09));
        }
        let facts = one(&text("MB/sec", " 65536      5000             11500.10            11497.52            0.183960\n"));
        assert!((facts.bandwidths[0].gbps - 96.45).abs() < 0.1, "{}", facts.bandwidths[0].gbps);
        assert!((one("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 24.5 \n#\n").bandwidths[0].gbps - 196.0).abs() < 0.01);
    }
}
