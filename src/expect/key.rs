//! What can be expected.

use std::str::FromStr;

/// One thing that can be expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Ranks of the job.
    Nranks,
    /// Nodes of the job.
    Nnodes,
    /// Version of the library.
    Version,
    /// Network between nodes, as in `Using network X`.
    Net,
    /// RDMA devices.
    Hca,
    /// Link layer of the RDMA devices.
    Link,
    /// GPU Direct RDMA: `on` or `off`.
    Gdr,
    /// Transport between GPUs of one node.
    P2p,
    /// Interfaces that must not be used.
    NoInterface,
}

impl Key {
    /// All keys.
    pub const ALL: [Self; 9] = [Self::Nranks, Self::Nnodes, Self::Version, Self::Net, Self::Hca, Self::Link, Self::Gdr, Self::P2p, Self::NoInterface];

    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nranks => "nranks",
            Self::Nnodes => "nnodes",
            Self::Version => "version",
            Self::Net => "net",
            Self::Hca => "hca",
            Self::Link => "link",
            Self::Gdr => "gdr",
            Self::P2p => "p2p",
            Self::NoInterface => "no-interface",
        }
    }

    /// The setting with which the logs decide it.
    pub fn setting(self) -> &'static str {
        match self {
            Self::Nranks | Self::Nnodes | Self::Version => "`NCCL_DEBUG=INFO` (with INIT in NCCL_DEBUG_SUBSYS) prints it",
            Self::Net | Self::Hca | Self::Link => "`NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,ENV` prints it",
            Self::Gdr => "`NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,P2P,GRAPH` prints it with the channels; since 2.22 those connect at the first collective",
            Self::P2p => "`NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,P2P,SHM` prints the channels; since 2.22 those connect at the first collective",
            Self::NoInterface => "`NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,NET` prints the interfaces",
        }
    }

    /// Whether the values make sense.
    pub fn check(self, values: &[String]) -> Result<(), String> {
        let name = self.name();
        let Some(first) = values.first() else { return Err(format!("{name}: a value is missing, as in {}", self.example())) };
        let wrong = match self {
            Self::Nranks | Self::Nnodes => values.len() > 1 || first.parse::<u32>().is_err(),
            Self::Gdr => values.len() > 1 || !["on", "off"].contains(&first.to_ascii_lowercase().as_str()),
            _ => false,
        };
        if wrong { Err(format!("{name}={}: not a value of {name}; write it as in {}", values.join(","), self.example())) } else { Ok(()) }
    }

    fn example(self) -> &'static str {
        match self {
            Self::Nranks => "nranks=16",
            Self::Nnodes => "nnodes=2",
            Self::Version => "version=2.27.*",
            Self::Net => "net=IB",
            Self::Hca => "hca=mlx5_0,mlx5_1",
            Self::Link => "link=RoCE",
            Self::Gdr => "gdr=on or gdr=off",
            Self::P2p => "p2p=P2P/CUMEM",
            Self::NoInterface => "no-interface=docker0,wlan*",
        }
    }
}

impl FromStr for Key {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let plain = name.to_ascii_lowercase().replace('_', "-");
        if let Some(key) = Self::ALL.into_iter().find(|k| k.name() == plain) {
            return Ok(key);
        }
        let near = Self::ALL.into_iter().map(|k| (strsim::jaro_winkler(&plain, k.name()), k)).filter(|(score, _)| *score >= 0.75).max_by(|a, b| a.0.total_cmp(&b.0));
        let names: Vec<&str> = Self::ALL.iter().map(|k| k.name()).collect();
        Err(match near {
            Some((_, key)) => format!("{name}: nothing of that name can be expected; did you mean {}?", key.name()),
            None => format!("{name}: nothing of that name can be expected; it is one of {}", names.join(", ")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_values_and_suggestions() {
        assert_eq!("no_interface".parse(), Ok(Key::NoInterface));
        assert!("nrank".parse::<Key>().unwrap_err().contains("did you mean nranks?"));
        assert!("colour".parse::<Key>().unwrap_err().contains("one of nranks"));
        assert!(Key::Gdr.check(&["maybe".to_owned()]).is_err() && Key::Nnodes.check(&["two".to_owned()]).is_err() && Key::Net.check(&[]).is_err());
        for key in Key::ALL {
            let (name, value) = key.example().split(" or ").next().and_then(|e| e.split_once('=')).expect("KEY=VALUE");
            assert_eq!(name.parse(), Ok(key));
            assert_eq!(key.check(&value.split(',').map(str::to_owned).collect::<Vec<_>>()), Ok(()));
        }
    }
}
