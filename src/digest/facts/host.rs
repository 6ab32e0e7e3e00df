//! Looking things up in a host's facts, adding to them within their bounds, joining two accounts of one host.

use super::model::{
    Acs, Address, Bandwidth, Command, Fact, Gid, Gpu, Hca, HostFacts, Interface, Line, MAX_ADDRESSES, MAX_BANDWIDTHS, MAX_BRIDGES, MAX_COMMANDS, MAX_GIDS, MAX_GPUS, MAX_HCAS,
    MAX_INTERFACES, MAX_PORTS, MatrixRow, PciBridge, Port, Table,
};

/// The item with this name, made if there is room for it.
fn named<'a, T: Default>(list: &'a mut Vec<T>, most: usize, dropped: &mut u64, is: impl Fn(&T) -> bool, make: impl FnOnce(&mut T)) -> Option<&'a mut T> {
    let at = match list.iter().position(is) {
        Some(at) => at,
        None if list.len() < most => {
            let mut item = T::default();
            make(&mut item);
            list.push(item);
            list.len() - 1
        }
        None => {
            *dropped += 1;
            return None;
        }
    };
    list.get_mut(at)
}

impl HostFacts {
    /// Nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self { host: self.host.clone(), naming: self.naming, task: self.task, time: self.time.clone(), ..Self::default() }
    }

    /// Nothing is known but what a test measured.
    pub fn only_results(&self) -> bool {
        let mut rest = self.clone();
        rest.bandwidths.clear();
        rest.is_empty()
    }

    /// An interface by name.
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|i| i.name == name)
    }

    /// An RDMA device by name.
    pub fn hca(&self, name: &str) -> Option<&Hca> {
        self.hcas.iter().find(|h| h.name == name)
    }

    /// A GPU by index.
    pub fn gpu(&self, index: u32) -> Option<&Gpu> {
        self.gpus.iter().find(|g| g.index == index)
    }

    /// Rows of one table.
    pub fn rows(&self, table: Table) -> impl Iterator<Item = &MatrixRow> {
        self.matrix.iter().filter(move |r| r.table == table)
    }

    /// The interface of that name, made if it is new and there is room.
    pub fn interface_mut(&mut self, name: &str) -> Option<&mut Interface> {
        named(&mut self.interfaces, MAX_INTERFACES, &mut self.dropped, |i| i.name == name, |i| name.clone_into(&mut i.name))
    }

    /// The RDMA device of that name, made if it is new and there is room.
    pub fn hca_mut(&mut self, name: &str, at: &Line) -> Option<&mut Hca> {
        named(
            &mut self.hcas,
            MAX_HCAS,
            &mut self.dropped,
            |h| h.name == name,
            |h| {
                name.clone_into(&mut h.name);
                h.at = at.clone();
            },
        )
    }

    /// A port, made if it is new and there is room.
    pub fn port_mut(&mut self, hca: &str, number: u8, at: &Line) -> Option<&mut Port> {
        let mut dropped = 0;
        let ports = &mut self.hca_mut(hca, at)?.ports;
        let found = named(ports, MAX_PORTS, &mut dropped, |p| p.number == number, |p| p.number = number).is_some();
        self.dropped += dropped;
        if !found {
            return None;
        }
        self.hca_mut(hca, at)?.ports.iter_mut().find(|p| p.number == number)
    }

    /// A GPU, made if it is new and there is room.
    pub fn gpu_mut(&mut self, index: u32, at: &Line) -> Option<&mut Gpu> {
        named(
            &mut self.gpus,
            MAX_GPUS,
            &mut self.dropped,
            |g| g.index == index,
            |g| {
                g.index = index;
                g.at = at.clone();
            },
        )
    }

    /// Keeps an entry of a GID table, or adds to the one with the same index.
    pub fn add_gid(&mut self, hca: &str, port: u8, gid: Gid) {
        let full = self.hcas.iter().flat_map(|h| &h.ports).map(|p| p.gids.len()).sum::<usize>() >= MAX_GIDS;
        let at = gid.at.clone();
        let Some(port) = self.port_mut(hca, port, &at) else { return };
        if let Some(known) = port.gids.iter_mut().find(|g| g.index == gid.index) {
            known.join(gid);
        } else if full {
            self.dropped += 1;
        } else {
            port.gids.push(gid);
            port.gids.sort_by_key(|g| g.index);
        }
    }

    /// Keeps a row of a table between GPUs; a later one of the same GPU replaces it.
    pub fn add_row(&mut self, row: MatrixRow) {
        if let Some(known) = self.matrix.iter_mut().find(|r| r.table == row.table && r.gpu == row.gpu) {
            *known = row;
        } else if self.rows(row.table).count() < MAX_GPUS {
            self.matrix.push(row);
        } else {
            self.dropped += 1;
        }
    }

    /// Keeps what access control a device has.
    pub fn add_acs(&mut self, acs: Acs) {
        if self.acs.iter().any(|a| a.device == acs.device && a.redirects == acs.redirects) {
            return;
        }
        self.acs.retain(|a| a.device.is_empty() || a.device != acs.device);
        push(&mut self.acs, acs, MAX_BRIDGES, &mut self.dropped);
    }

    /// Keeps a PCIe bridge; what is said later of the same one counts.
    pub fn add_bridge(&mut self, bridge: PciBridge) {
        if let Some(known) = self.bridges.iter_mut().find(|b| b.device == bridge.device) {
            *known = bridge;
        } else {
            push(&mut self.bridges, bridge, MAX_BRIDGES, &mut self.dropped);
        }
    }

    /// Keeps a measured bandwidth; of one tool and device only the largest message counts.
    pub fn add_bandwidth(&mut self, new: Bandwidth) {
        let known = self.bandwidths.iter_mut().find(|b| b.tool == new.tool && b.device == new.device);
        match known {
            Some(known) if new.size >= known.size => *known = new,
            Some(_) => {}
            None => push(&mut self.bandwidths, new, MAX_BANDWIDTHS, &mut self.dropped),
        }
    }

    /// Keeps a command of a collected file.
    pub fn add_command(&mut self, command: Command) {
        push(&mut self.commands, command, MAX_COMMANDS, &mut self.dropped);
    }

    /// Joins a later account of the same host: what it says anew replaces what was known.
    pub fn join(&mut self, other: Self) {
        if other.naming < self.naming || self.host.is_empty() {
            self.host = other.host;
            self.naming = other.naming;
        }
        self.task = self.task.or(other.task);
        if self.time.is_empty() {
            self.time = other.time;
        }
        self.dropped += other.dropped;
        other.commands.into_iter().for_each(|c| self.add_command(c));
        for interface in other.interfaces {
            if let Some(known) = self.interface_mut(&interface.name) {
                known.join(interface);
            }
        }
        for hca in other.hcas {
            self.join_hca(hca);
        }
        for gpu in other.gpus {
            if let Some(known) = self.gpu_mut(gpu.index, &gpu.at) {
                known.join(gpu);
            }
        }
        other.matrix.into_iter().for_each(|r| self.add_row(r));
        other.acs.into_iter().for_each(|a| self.add_acs(a));
        other.bridges.into_iter().for_each(|b| self.add_bridge(b));
        other.bandwidths.into_iter().for_each(|b| self.add_bandwidth(b));
        replace(&mut self.driver, other.driver);
        replace(&mut self.cmdline, other.cmdline);
        replace(&mut self.memlock, other.memlock);
        replace(&mut self.nofile, other.nofile);
        replace(&mut self.shm, other.shm);
        replace(&mut self.no_hca, other.no_hca);
    }

    fn join_hca(&mut self, other: Hca) {
        // A list of devices tells no ports.
        self.hca_mut(&other.name, &other.at);
        for mut port in other.ports {
            let (number, gids) = (port.number, std::mem::take(&mut port.gids));
            if let Some(known) = self.port_mut(&other.name, port.number, &other.at) {
                known.join(port);
            }
            for gid in gids {
                self.add_gid(&other.name, number, gid);
            }
        }
    }

    /// Sets the stream of every line.
    pub fn set_stream(&mut self, stream: u32) {
        self.each_line(&mut |line| line.stream = stream);
    }

    /// Visits every line.
    pub fn each_line(&mut self, f: &mut impl FnMut(&mut Line)) {
        self.commands.iter_mut().for_each(|c| f(&mut c.at));
        for i in &mut self.interfaces {
            i.up.iter_mut().for_each(|v| f(&mut v.at));
            i.mtu.iter_mut().for_each(|v| f(&mut v.at));
            i.speed.iter_mut().for_each(|v| f(&mut v.at));
            i.addresses.iter_mut().for_each(|v| f(&mut v.at));
        }
        for h in &mut self.hcas {
            f(&mut h.at);
            h.ports.iter_mut().for_each(|p| p.each_line(f));
        }
        self.gpus.iter_mut().for_each(|g| f(&mut g.at));
        self.matrix.iter_mut().for_each(|r| f(&mut r.at));
        self.acs.iter_mut().for_each(|a| f(&mut a.at));
        self.bridges.iter_mut().for_each(|b| f(&mut b.at));
        self.bandwidths.iter_mut().for_each(|b| f(&mut b.at));
        self.driver.iter_mut().for_each(|v| f(&mut v.at));
        self.cmdline.iter_mut().for_each(|v| f(&mut v.at));
        self.memlock.iter_mut().for_each(|v| f(&mut v.at));
        self.nofile.iter_mut().for_each(|v| f(&mut v.at));
        self.shm.iter_mut().for_each(|v| f(&mut v.at));
        self.no_hca.iter_mut().for_each(f);
    }

    /// Drops entries of GID tables whose address was never told.
    pub fn tidy(&mut self) {
        for port in self.hcas.iter_mut().flat_map(|h| &mut h.ports) {
            port.gids.retain(|g| !g.gid.is_unspecified());
        }
    }
}

impl Interface {
    /// Keeps an address.
    pub fn add_address(&mut self, address: Fact<Address>) -> bool {
        let room = self.addresses.len() < MAX_ADDRESSES;
        if room && !self.addresses.iter().any(|a| a.value == address.value) {
            self.addresses.push(address);
        }
        room
    }

    fn join(&mut self, other: Self) {
        replace(&mut self.up, other.up);
        replace(&mut self.mtu, other.mtu);
        replace(&mut self.speed, other.speed);
        for address in other.addresses {
            self.add_address(address);
        }
    }
}

impl Port {
    fn join(&mut self, other: Self) {
        replace(&mut self.state, other.state);
        replace(&mut self.physical, other.physical);
        replace(&mut self.rate, other.rate);
        replace(&mut self.active_mtu, other.active_mtu);
        replace(&mut self.max_mtu, other.max_mtu);
        replace(&mut self.layer, other.layer);
        replace(&mut self.netdev, other.netdev);
        replace(&mut self.lid, other.lid);
        replace(&mut self.sm_lid, other.sm_lid);
    }

    fn each_line(&mut self, f: &mut impl FnMut(&mut Line)) {
        self.state.iter_mut().for_each(|v| f(&mut v.at));
        self.physical.iter_mut().for_each(|v| f(&mut v.at));
        self.rate.iter_mut().for_each(|v| f(&mut v.at));
        self.active_mtu.iter_mut().for_each(|v| f(&mut v.at));
        self.max_mtu.iter_mut().for_each(|v| f(&mut v.at));
        self.layer.iter_mut().for_each(|v| f(&mut v.at));
        self.netdev.iter_mut().for_each(|v| f(&mut v.at));
        self.lid.iter_mut().for_each(|v| f(&mut v.at));
        self.sm_lid.iter_mut().for_each(|v| f(&mut v.at));
        self.gids.iter_mut().for_each(|g| f(&mut g.at));
    }
}

impl Gid {
    /// Takes in what another line says of the same entry.
    fn join(&mut self, other: Self) {
        if self.gid.is_unspecified() || !other.gid.is_unspecified() {
            self.gid = other.gid;
            self.at = other.at;
        }
        self.kind = other.kind.or(self.kind);
        if !other.netdev.is_empty() {
            self.netdev = other.netdev;
        }
    }
}

impl Gpu {
    fn join(&mut self, other: Self) {
        for (ours, theirs) in [(&mut self.name, other.name), (&mut self.bus_id, other.bus_id), (&mut self.arch, other.arch)] {
            if !theirs.is_empty() {
                *ours = theirs;
            }
        }
    }
}

fn push<T>(list: &mut Vec<T>, item: T, most: usize, dropped: &mut u64) {
    if list.len() < most {
        list.push(item);
    } else {
        *dropped += 1;
    }
}

fn replace<T>(ours: &mut Option<T>, theirs: Option<T>) {
    if theirs.is_some() {
        *ours = theirs;
    }
}

impl Port {
    /// Name of the network interface behind it.
    pub fn netdev_name(&self) -> Option<&str> {
        self.netdev.as_ref().map(|n| n.value.as_str())
    }
}
