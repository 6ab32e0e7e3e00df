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
    assert_eq!(redact(&out), out, "a second time changes something");
}

#[test]
fn hosts_are_learnt_by_their_place_and_found_everywhere() {
    table(&[
        ("gpu-b2:77:78 [0] NCCL INFO Bootstrap : Using eth0:10.9.1.2<0>", "host-02:77:78 [0] NCCL INFO Bootstrap : Using eth0:10.20.30.33<0>"),
        ("gpu-b10:79:80 [1] NCCL INFO x<0>gpu-b2:77:78 [0] NCCL INFO y", "host-03:79:80 [1] NCCL INFO x<0>host-02:77:78 [0] NCCL INFO y"),
        ("cannot reach gpu-b10.cl.acme.internal or gpu-b10", "cannot reach host-03.domain-1 or host-03"),
        ("nccl.gpu-b2.77.log gpu-b2_rank0 gpu-b20", "nccl.host-02.77.log host-02_rank0 gpu-b20"),
        ("May 05 06:00:00 alpha unit[7]: started", "May 05 06:00:00 host-01 unit[7]: started"),
        ("net_ib.cc:123 NCCL WARN mlx5_0:1 [rank3]: worker1", "net_ib.cc:123 NCCL WARN mlx5_0:1 [rank3]: worker1"),
    ]);
}

#[test]
fn wrappers_name_hosts() {
    table(&[
        ("[pod/llm-a7-worker-2/pytorch] text", "[pod/host-06/pytorch] text"),
        ("2026-05-05T06:00:00.000000+00:00 nid0042 trainer[9]: x", "2026-05-05T06:00:00.000000+00:00 host-09 trainer[9]: x"),
        ("[ax-17:4711] *** Process received signal ***", "[host-01:4711] *** Process received signal ***"),
        ("failed to connect to [ax-18]:29500 (ax-18, 29500)", "failed to connect to [host-02]:29500 (host-02, 29500)"),
        ("srun: error: ax-19: task 3: Killed", "srun: error: host-03: task 3: Killed"),
        ("srun: error: ax-[17-19]: tasks 3-5: Killed", "srun: error: hosts-1: tasks 3-5: Killed"),
        ("slurmstepd: error: *** STEP 7.0 ON ax-20 CANCELLED AT x ***", "slurmstepd: error: *** STEP 7.0 ON host-04 CANCELLED AT x ***"),
        ("MASTER_ADDR=mn04 SLURM_JOB_NODELIST=ax-[17-20],mn04 --master_addr mn04", "MASTER_ADDR=host-07 SLURM_JOB_NODELIST=hosts-2 --master_addr host-07"),
        ("{\"log\":\"\\u001b[31mmn05:7:9 [0] NCCL INFO x\\n\",\"_HOSTNAME\":\"mn05\"}", "{\"log\":\"\\u001b[31mhost-08:7:9 [0] NCCL INFO x\\n\",\"_HOSTNAME\":\"host-08\"}"),
        ("tcp://mn05:29500 [default0]:x (worker1, rank=1, pid=9)", "tcp://host-08:29500 [default0]:x (worker1, rank=1, pid=9)"),
        ("Connection closed by remote peer mn04<41230> fe80::1%ib0<0>", "Connection closed by remote peer host-07<41230> fe80::21%ib0<0>"),
        ("ip-10-1-2-3.ec2.internal", "host-05.domain-1"),
    ]);
}

#[test]
fn the_tail_of_a_torn_host_stays_a_tail() {
    let mut text = String::new();
    (0..40).for_each(|n| text.push_str(&format!("gpu-b2:77:78 [0] NCCL INFO line {n}\n")));
    let out = redact(&format!("{text}u-b2:77:78 [0] NCCL INFO torn\nxgpu-b2:77:78 [0] NCCL INFO glued\n"));
    assert!(out.ends_with("line 39\nost-01:77:78 [0] NCCL INFO torn\nxhost-01:77:78 [0] NCCL INFO glued\n"), "{out}");
    let mut redactor = Redactor::default();
    redactor.learn(text.as_bytes());
    assert_eq!(redactor.text("the message ends in gpu-…"), "the message ends in host…");
    let mut out = Vec::new();
    redactor.redact(b"connects to 10.7.1", true, &mut Scanner::default(), &mut out);
    assert_eq!(out, b"connects to 0");
}

#[test]
fn users_and_paths() {
    table(&[
        ("File \"/home/zoe/llama-x/train.py\", line 3, in main", "File \"/home/user-1/path-1/train.py\", line 3, in main"),
        ("USER=zoe uid=1000(zoe) zoe@gw7 ~zoe/x", "USER=user-1 uid=1000(user-1) user-1@host-01 ~user-1/path-2"),
        (
            "/usr/lib/x86_64-linux-gnu/libnccl.so.2 /sys/class/net /opt/rocm-6.2/lib/librccl.so",
            "/usr/lib/x86_64-linux-gnu/libnccl.so.2 /sys/class/net /opt/rocm-6.2/lib/librccl.so",
        ),
        ("/home/zoe/envs/v1/lib/python3.11/site-packages/torch/nn/x.py:12", "/home/user-1/envs/path-3/lib/python3.11/site-packages/torch/nn/x.py:12"),
        ("/scratch/proj-q/zoe/run.sh ./proj-q/x", "/scratch/path-4/user-1/run.sh ./path-4/path-2"),
        ("via NET/IB/0/GDRDMA 12 GB/s P2P/CUMEM [1/8]", "via NET/IB/0/GDRDMA 12 GB/s P2P/CUMEM [1/8]"),
        ("s3://bucket-q/ckpt https://github.com/pytorch/pytorch/issues/1", "s3://path-6/ckpt https://github.com/pytorch/pytorch/issues/1"),
        ("USER=root /root/x.log", "USER=root /root/x.log"),
    ]);
}

#[test]
fn addresses_keep_their_class_and_spelling() {
    table(&[
        ("eth0:10.1.2.3<45000> 10.1.2.4:2345 10.1.9.4", "eth0:10.20.30.33<45000> 10.20.30.37:2345 10.20.22.33"),
        ("127.0.0.1 0.0.0.0 255.255.255.0 172.17.0.9 2.27.3 version 12.4.1.2", "127.0.0.1 0.0.0.0 255.255.255.0 172.17.0.2 2.27.3 version 12.4.1.2"),
        ("GID 3 (0/302010AFFFF0000) ::ffff:10.1.2.3 [fe80::1234:5678%ib0]:7", "GID 3 (0/211E140AFFFF0000) ::ffff:10.20.30.33 [fe80::21%ib0]:7"),
        ("b8:59:9f:03:aa:bb B859:9F03:00AA:BBCC 0000:3b:00.0 12:34:56", "02:00:00:00:00:01 0200:0000:0000:0001 0000:3b:00.0 12:34:56"),
        ("node_guid: 0xb8599f0300aabbcc comm 0x7f12ab34cd56 commId 0x8d6a4f2e9b1c3d5e", "node_guid: 0x0200000000000001 comm 0x7f12ab34cd56 commId 0x8d6a4f2e9b1c3d5e"),
        ("ports/1/gids/2:0000:0000:0000:0000:0000:0000:0000:0000", "ports/1/gids/2:0000:0000:0000:0000:0000:0000:0000:0000"),
        ("GPU-5f2a1b3c-1234-5678-9abc-def012345678", "GPU-00000000-0000-4000-a000-000000000001"),
        ("std::vector c10::Error c10d::ProcessGroup", "std::vector c10::Error c10d::ProcessGroup"),
    ]);
}

#[test]
fn secrets_keep_only_their_kind() {
    table(&[
        ("hf_AbCdEf0123456789AbCd nvapi-0123456789abcdefXY", "hf_redacted-1 nvapi-redacted-2"),
        ("HF_TOKEN=plainword9 WANDB_API_KEY: 0123456789abcdef x", "HF_TOKEN=redacted-3 WANDB_API_KEY: redacted-4 x"),
        ("Authorization: Bearer abc.def-123 password='hun ter2' max_tokens=4096", "Authorization: Bearer redacted-5 password='redacted-6 ter2' max_tokens=4096"),
        ("https://joe:pw1234@git.acme.internal/x/y.git", "https://redacted-7@host-01.domain-1/path-1/path-2"),
        ("AKIAABCDEFGHIJKLMN12 sk-proj-0123456789abcdef --api-key qwe123", "AKIAREDACTED0008 sk-redacted-9 --api-key redacted-10"),
        ("rkey=0x18200 lkey=5 NCCL_IB_PKEY=0 eos_token: </s> token: 5", "rkey=0x18200 lkey=5 NCCL_IB_PKEY=0 eos_token: </s> token: 5"),
    ]);
    let key = "a\n-----BEGIN OPENSSH PRIVATE KEY-----\nAAAAB3Nza\nxyz==\n-----END OPENSSH PRIVATE KEY-----\nb\n";
    assert_eq!(redact(key).lines().filter(|l| !l.starts_with("redacted-")).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn what_is_evidence_stays() {
    for line in [
        "NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]; OOB eth0:",
        "NCCL INFO Trees [0] -1/-1/-1->1->0 [1] 2/-1/-1->1->0",
        "NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read",
        "NCCL INFO ncclCommInitRank comm 0x55d0 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 5e000 commId 0xabcdef0123456789 - Init COMPLETE",
        "NCCL INFO NCCL_SOCKET_IFNAME set by environment to enp1s0f0np0",
        "NCCL INFO cudaDriverVersion 12040 NCCL version 2.21.5+cuda12.4 libnccl-net.so /proc/driver/nvidia",
        "misc/socket.cc:484 NCCL WARN socketStartConnect: Connect failed : Network is unreachable",
        "[rank3]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12)",
        "(RayWorkerWrapper pid=2981) x [repeated 5x across cluster]",
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python, GPU has fallen off the bus.",
        "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:219, unhandled system error",
    ] {
        assert_eq!(redact(line), line);
    }
}

#[test]
fn hostile_lines_are_linear() {
    for piece in ["token=", "a+", "\\", "/", "a.", "a-", "::", "1:", "[1;", "http://", "user=a@", "0.", "\\n", "hf_"] {
        let text = piece.repeat((1 << 16) / piece.len());
        let begun = std::time::Instant::now();
        let _ = redact(&text);
        assert!(begun.elapsed().as_secs() < 30, "{piece}");
    }
}

#[test]
fn what_is_said_again_is_replaced_again() {
    let lines = [
        "gpu-b2:77:78 [0] NCCL INFO Bootstrap : Using eth0:10.9.1.2<0>",
        "gpu-b3:79:80 [1] NCCL INFO Using network IB",
        "/home/ada/run/train.py token=hf_Qx8Zk2Lm4Nv7Rt1Yb6Wc9Pd3Sf5Gh0JjKe",
        "-----BEGIN RSA PRIVATE KEY-----",
        "MIIEow",
        "-----END RSA PRIVATE KEY-----",
        "MIIEow",
    ];
    let once = lines.join("\n") + "\n";
    let whole = redact(&once.repeat(3));
    assert_eq!(whole, redact(&once).repeat(3));
    assert!(!whole.contains("gpu-b") && !whole.contains("ada/") && !whole.contains("hf_Qx8"), "{whole}");
}
