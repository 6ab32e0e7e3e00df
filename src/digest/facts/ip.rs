//! Network interfaces: `ip`, `ifconfig`, `ethtool`.

use super::Family;
use super::model::{Address, Fact};
use super::reader::Scene;
use std::net::IpAddr;

/// Addresses, MTU and state.
pub const ADDRESSES: Family = Family {
    commands: &["ip -br addr", "ip -br link", "ip addr", "ip -d link show", "ifconfig"],
    reads: "Network interfaces with state, MTU and addresses.",
    starts: &["inet", "inet6"],
    read: address,
};

/// Speed and carrier.
pub const ETHTOOL: Family =
    Family { commands: &["ethtool IF"], reads: "Speed of a network interface, and whether it has a link.", starts: &["Settings", "Speed:", "Link"], read: ethtool };

/// A name that Linux allows for an interface, without `@peer`.
pub fn interface(word: &str) -> Option<&str> {
    let name = word.trim_end_matches(':').split('@').next()?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let fits = (1..=15).contains(&name.len()) && name.bytes().all(plain) && !name.bytes().all(|b| b.is_ascii_digit());
    fits.then_some(name)
}

fn with_prefix(word: &str) -> Option<Address> {
    let (ip, prefix) = word.split_once('/')?;
    let ip: IpAddr = ip.split('%').next()?.parse().ok()?;
    let prefix = prefix.parse().ok()?;
    (prefix <= if ip.is_ipv4() { 32 } else { 128 }).then_some(Address { ip, prefix })
}

fn address(scene: &mut Scene<'_>) -> bool {
    brief(scene).or_else(|| heading(scene)).or_else(|| inet(scene)).is_some()
}

/// `enp1s0f0np0  UP  192.0.2.7/24 fe80::1/64`, or with MAC and flags.
fn brief(scene: &mut Scene<'_>) -> Option<()> {
    let (first, rest) = scene.words.split_first()?;
    let (state, rest) = rest.split_first()?;
    let up = match *state {
        "UP" => Some(true),
        "DOWN" | "LOWERLAYERDOWN" => Some(false),
        "UNKNOWN" | "DORMANT" => None,
        _ => return None,
    };
    let name = interface(first)?;
    let mac = |w: &str| w.len() >= 17 && w.split(':').all(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit()));
    let other = |w: &str| matches!(w, "peer" | "metric") || w.bytes().all(|b| b.is_ascii_digit()) || w.parse::<IpAddr>().is_ok();
    if !rest.iter().all(|w| with_prefix(w).is_some() || mac(w) || w.starts_with('<') || other(w)) {
        return None;
    }
    let interface = scene.host.interface_mut(name)?;
    // The brief form says DOWN of an interface without carrier too.
    interface.up = up.map(|u| Fact::new(u, scene.at)).or(interface.up.take());
    for address in rest.iter().filter_map(|w| with_prefix(w)) {
        scene.host.dropped += u64::from(!interface_address(scene.host, name, Fact::new(address, scene.at)));
    }
    Some(())
}

fn interface_address(host: &mut super::HostFacts, name: &str, address: Fact<Address>) -> bool {
    host.interface_mut(name).is_some_and(|i| i.add_address(address))
}

/// `2: enp1s0f0np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 … state UP …`, `eth0: flags=4163<UP,…>  mtu 1500`.
fn heading(scene: &mut Scene<'_>) -> Option<()> {
    let mut words = scene.words.iter();
    let mut first = *words.next()?;
    if first.trim_end_matches(':').bytes().all(|b| b.is_ascii_digit()) {
        first = words.next()?;
    }
    let flags = words.next()?;
    if !first.ends_with(':') || !(flags.starts_with('<') || flags.starts_with("flags=")) {
        return None;
    }
    let name = interface(first)?;
    let after = |word: &str| scene.words.iter().position(|w| *w == word).and_then(|i| scene.words.get(i + 1)).copied();
    let mtu = after("mtu").and_then(|m| m.parse::<u32>().ok())?;
    let flag = |f: &str| flags.split(['<', ',', '>']).any(|w| w == f);
    let up = if flag("NO-CARRIER") || after("state") == Some("DOWN") || !flag("UP") { false } else { flag("LOWER_UP") || flag("RUNNING") || after("state") == Some("UP") };
    name.clone_into(&mut scene.memo.interface);
    let interface = scene.host.interface_mut(name)?;
    interface.up = Some(Fact::new(up, scene.at));
    interface.mtu = Some(Fact::new(mtu, scene.at));
    Some(())
}

/// `inet 192.0.2.7/24 brd 192.0.2.255 scope global enp1s0f0np0`, `inet 192.0.2.7  netmask 255.255.255.0`.
fn inet(scene: &mut Scene<'_>) -> Option<()> {
    // `ip -o` puts number and name of the interface in front.
    let one_line = match scene.words.as_slice() {
        [number, name, "inet" | "inet6", ..] if number.trim_end_matches(':').bytes().all(|b| b.is_ascii_digit()) => Some(interface(name)?.to_owned()),
        [name, "inet" | "inet6", ..] => Some(interface(name)?.to_owned()),
        _ => None,
    };
    let at = scene.words.iter().take(3).position(|w| matches!(*w, "inet" | "inet6")).filter(|at| *at == 0 || one_line.is_some())?;
    let word = scene.words.get(at + 1)?;
    let address = with_prefix(word).or_else(|| {
        let at = scene.words.iter().position(|w| matches!(*w, "netmask" | "prefixlen"))?;
        let mask = scene.words.get(at + 1)?;
        let prefix = mask.parse::<u8>().ok().or_else(|| mask.parse::<std::net::Ipv4Addr>().ok().map(|m| u32::from(m).leading_ones() as u8))?;
        with_prefix(&format!("{word}/{prefix}"))
    })?;
    // The label behind the scope is the interface's name, even where the line above it is lost.
    let labelled =
        scene.words.iter().position(|w| *w == "scope").and_then(|_| scene.words.last()).filter(|w| !matches!(**w, "global" | "link" | "host" | "noprefixroute" | "dynamic"));
    let name = match one_line {
        Some(name) => name,
        None if scene.memo.interface.is_empty() => interface(labelled?)?.to_owned(),
        None => scene.memo.interface.clone(),
    };
    if !interface_address(scene.host, &name, Fact::new(address, scene.at)) {
        scene.host.dropped += 1;
    }
    Some(())
}

fn ethtool(scene: &mut Scene<'_>) -> bool {
    if let Some(name) = scene.text.strip_prefix("Settings for ") {
        let Some(name) = interface(name.trim()) else { return false };
        name.clone_into(&mut scene.memo.interface);
        return true;
    }
    let (speed, link) = (scene.text.strip_prefix("Speed:"), scene.text.strip_prefix("Link detected:"));
    if speed.is_none() && link.is_none() {
        return false;
    }
    if scene.memo.interface.is_empty() {
        // A filtered output shows the values alone; the command names the interface.
        let mut words = scene.memo.command.split_whitespace().skip_while(|w| !w.ends_with("ethtool")).skip(1).filter(|w| !w.starts_with('-'));
        let Some(name) = words.next().and_then(interface) else { return false };
        scene.memo.interface = name.to_owned();
    }
    let name = scene.memo.interface.clone();
    let Some(interface) = scene.host.interface_mut(&name) else { return true };
    if let Some(speed) = speed {
        let digits = speed.trim().trim_end_matches("Mb/s");
        if let Ok(speed) = digits.parse() {
            interface.speed = Some(Fact::new(speed, scene.at));
        }
    }
    if let Some(link) = link {
        interface.up = Some(Fact::new(link.trim() == "yes", scene.at));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::tests::{collapsed, one};

    const ADDR: &str = "\
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
    inet 127.0.0.1/8 scope host lo
       valid_lft forever preferred_lft forever
2: enp1s0f0np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP group default qlen 1000
    link/ether 02:00:5e:10:00:07 brd ff:ff:ff:ff:ff:ff
    inet 192.0.2.7/25 brd 192.0.2.127 scope global noprefixroute enp1s0f0np0
       valid_lft forever preferred_lft forever
    inet6 fe80::5eff:fe10:7/64 scope link
3: enp1s0f1np1: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc mq state DOWN group default qlen 1000
";

    #[test]
    fn addresses_of_both_forms() {
        for text in [ADDR.to_owned(), collapsed(ADDR), format!("orion: {ADDR}").replace("orion: ", "")] {
            let facts = one(&text);
            let fast = facts.interface("enp1s0f0np0").expect("interface");
            assert_eq!(fast.mtu.as_ref().map(|m| m.value), Some(9000));
            assert_eq!(fast.up.as_ref().map(|m| m.value), Some(true));
            assert_eq!(fast.addresses.iter().map(|a| (a.value.ip.to_string(), a.value.prefix)).collect::<Vec<_>>()[0], ("192.0.2.7".to_owned(), 25));
            assert_eq!(fast.addresses[0].at.line, 7);
            assert_eq!(facts.interface("enp1s0f1np1").and_then(|i| i.up.as_ref()).map(|u| u.value), Some(false));
        }
        let brief = "lo               UNKNOWN        127.0.0.1/8 ::1/128 \nens1f0           UP             198.51.100.3/24 fe80::1234:56ff:fe78:9abc/64 \nens1f1           DOWN           \nveth12@if2       UP             fe80::1/64\n";
        let facts = one(brief);
        assert_eq!(facts.interface("ens1f0").map(|i| i.addresses.len()), Some(2));
        assert_eq!(facts.interface("ens1f1").and_then(|i| i.up.as_ref()).map(|u| u.value), Some(false));
        assert!(facts.interface("veth12").is_some());
        let one_line = "1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever\n2: ens5    inet 10.0.3.17/20 brd 10.0.15.255 scope global dynamic ens5\\       valid_lft 3005sec preferred_lft 3005sec\n";
        for text in [one_line.to_owned(), collapsed(one_line)] {
            assert_eq!(one(&text).interface("ens5").map(|i| (i.addresses[0].value.ip.to_string(), i.addresses[0].value.prefix)), Some(("10.0.3.17".to_owned(), 20)));
        }
        assert!(super::super::tests::read("$ cat /sys/class/infiniband/*/ports/1/state\n1: DOWN\n4: ACTIVE\n").is_empty());
        let link = "ens1f0           UP             02:00:5e:10:00:07 <BROADCAST,MULTICAST,UP,LOWER_UP> \n";
        assert_eq!(one(link).interface("ens1f0").and_then(|i| i.up.as_ref()).map(|u| u.value), Some(true));
        let old = "eth0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500\n        inet 10.9.0.4  netmask 255.255.252.0  broadcast 10.9.3.255\n";
        assert_eq!(one(old).interface("eth0").map(|i| i.addresses[0].value.prefix), Some(22));
    }

    #[test]
    fn speeds() {
        let text = "Settings for ens1f0:\n\tSupported ports: [ FIBRE ]\n\tSpeed: 200000Mb/s\n\tDuplex: Full\n\tLink detected: yes\nSettings for eno1:\n\tSpeed: Unknown!\n\tLink detected: no\n";
        let facts = one(text);
        assert_eq!(facts.interface("ens1f0").and_then(|i| i.speed.as_ref()).map(|s| s.value), Some(200_000));
        let eno = facts.interface("eno1").expect("eno1");
        assert!(eno.speed.is_none() && eno.up.as_ref().is_some_and(|u| !u.value));
        let asked = one("ada@orion:~$ ethtool ens1f0 | grep Speed\n\tSpeed: 25000Mb/s\n");
        assert_eq!((asked.host.as_str(), asked.interface("ens1f0").and_then(|i| i.speed.as_ref()).map(|s| s.value)), ("orion", Some(25_000)));
    }
}
