//! Measured bandwidths: `ib_write_bw` and its kin, nccl-tests.

use super::Family;
use super::model::Bandwidth;
use super::reader::Scene;
use super::verbs::device;

/// Results of perftest and nccl-tests.
pub const PERFTEST: Family = Family {
    commands: &["ib_write_bw", "ib_read_bw", "ib_send_bw", "all_reduce_perf"],
    reads: "The bandwidth that an RDMA device reached with the largest message, and the bus bandwidth of a collective, with the largest message where the table is there, else on average.",
    starts: &["Dual-port", "#bytes", "RDMA_Write", "RDMA_Read", "Send"],
    read: perftest,
};

fn perftest(scene: &mut Scene<'_>) -> bool {
    head(scene) || collective(scene).is_some() || result(scene).is_some() || average(scene).is_some()
}

/// ` 8589934592  2147483648  float  sum  -1  31293  274.50  480.38  0  31289  274.53  480.43  0`: a row of nccl-tests or
/// rccl-tests of any version. Before the times stand the operation and the root, which early versions leave out.
fn collective(scene: &mut Scene<'_>) -> Option<()> {
    const TYPES: [&str; 14] = ["float", "half", "double", "bfloat16", "int8", "uint8", "int32", "uint32", "int64", "uint64", "fp8_e4m3", "fp8_e5m2", "f8e4m3", "f8e5m2"];
    let [size, count, kind, rest @ ..] = scene.words.as_slice() else { return None };
    let (size, _): (u64, u64) = (size.parse().ok()?, count.parse().ok()?);
    if !TYPES.contains(kind) || size == 0 {
        return None;
    }
    // Time, algorithm and bus bandwidth, errors; twice.
    let (before, results) = rest.split_at(rest.len().checked_sub(8)?);
    let sums = match before {
        [] | ["none", ..] => false,
        [_] | [_, _] => true,
        _ => return None,
    };
    let bus = |columns: &[&str]| columns.get(2)?.parse::<f64>().ok().filter(|b| b.is_finite() && *b > 0.0);
    let best = [&results[..4], &results[4..]].into_iter().filter_map(bus).reduce(f64::max)?;
    let tool = if sums { "nccl-tests of a sum" } else { "nccl-tests" };
    scene.host.add_bandwidth(Bandwidth { tool: tool.to_owned(), device: String::new(), size, gbps: best * 8.0, at: scene.at.clone() });
    Some(())
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
    let gbps = average * unit;
    // Without the lines in front, the command may name test and device.
    let mut command = scene.memo.command.split_whitespace();
    let named = command.next().map(|c| c.rsplit('/').next().unwrap_or(c)).filter(|c| c.starts_with("ib_") && c.ends_with("_bw"));
    let asked = command.skip_while(|w| *w != "-d").nth(1).and_then(device).unwrap_or_default();
    let memo = &scene.memo;
    let tool = if memo.interface.is_empty() { named.unwrap_or("perftest") } else { memo.interface.as_str() }.to_owned();
    let device = if memo.hca.is_empty() { asked } else { memo.hca.as_str() }.to_owned();
    if gbps.is_finite() && gbps > 0.0 {
        scene.host.add_bandwidth(Bandwidth { tool, device, size, gbps, at: scene.at.clone() });
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
    #[test]
    fn the_command_names_what_its_output_does_not() {
        let text = "$ ib_write_bw -d mlx5_0 -x 3 --report_gbits 192.0.2.2\n #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536      5000             92.57              92.57  \t\t   0.176562\n";
        assert_eq!(one(text).bandwidths.iter().map(|b| (b.tool.as_str(), b.device.as_str())).collect::<Vec<_>>(), [("ib_write_bw", "mlx5_0")]);
    }

    #[test]
    fn tables_of_collectives() {
        let rows = [
            // 2.13 … 2.17, rccl-tests; the in-place columns may be N/A.
            (
                "  1073741824     268435456     float     sum      -1  95634.5   11.23   21.05      0  95578.2   11.23   21.06      0\n 17179869184    4294967296     float     sum      -1  1.5e+06   11.30   21.19       0  1.5e+06   11.31   21.20       0\n",
                17_179_869_184,
                169.6,
            ),
            ("   134217728      33554432     float    none      -1    912.1  147.15  147.15      0    N/A     N/A     N/A    N/A\n", 134_217_728, 1177.2),
            // Early versions: without root.
            ("   33554432       8388608   float    sum    1234.5   27.18   47.57  1e-06   1230.1   27.28   47.74  1e-06\n", 33_554_432, 381.92),
        ];
        for (text, size, gbps) in rows {
            for text in [text.to_owned(), collapsed(text), format!("{text}# Avg bus bandwidth    : 1.5 \n"), format!("# Avg bus bandwidth    : 1.5 \n{text}")] {
                let facts = one(&text);
                let best = facts.bandwidths.iter().max_by_key(|b| b.size).expect("a row");
                assert_eq!(best.size, size, "{text}");
                assert!((best.gbps - gbps).abs() < 0.01, "{}", best.gbps);
            }
        }
        assert!(super::super::tests::read("step 400 float 1 2 3 4 5 6 7 8 9\n100 200 apples 1 2 3 4 5 6 7 8\n").is_empty());
    }
}
