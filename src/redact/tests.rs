use super::*;

fn redact(text: &str) -> String {
    let mut redactor = Redactor::default();
    redactor.learn(text.as_bytes());
    redactor.text(text).into_owned()
}

/// Line by line: what goes in and what comes out, all lines in one text.
fn table(rows: &[(&str, &str)]) {
    let text: Vec<&str> = rows.iter().map(|(from, _)| *from).collect();
    let out = redact(&text.join("\n"));
    for ((from, want), got) in rows.iter().zip(out.split('\n')) {
        assert_eq!(got, *want, "from {from}");
    }
}

#[test]
fn hosts_are_learnt_by_their_place_and_found_everywhere() {
    table(&[
        ("gpu-b2:77:78 [0] NCCL INFO Bootstrap : Using eth0:10.9.1.2<0>", "host-02:77:78 [0] NCCL INFO Bootstrap : Using eth0:10.20.30.33<0>"),
        ("gpu-b10:79:80 [1] NCCL INFO x<0>gpu-b2:77:78 [0] NCCL INFO y", "host-03:79:80 [1] NCCL INFO x<0>host-02:77:78 [0] NCCL INFO y"),
        ("cannot reach gpu-b10.cl.acme.internal or gpu-b10", "cannot reach host-03.domain-1 or host-03"),
        ("nccl.gpu-b2.77.log gpu-b2_rank0 xgpu-b2", "nccl.host-02.77.log host-02_rank0 xgpu-b2"),
        ("May 05 06:00:00 alpha unit[7]: started", "May 05 06:00:00 host-01 unit[7]: started"),
        ("net_ib.cc:123 NCCL WARN mlx5_0:1 [rank3]: worker1", "net_ib.cc:123 NCCL WARN mlx5_0:1 [rank3]: worker1"),
    ]);
}
