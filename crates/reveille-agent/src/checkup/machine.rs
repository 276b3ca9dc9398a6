//! The machine: its clock, its name, its kernel, and the room for what is to run on it.

use super::facts::{ConfigSeen, Facts, Joined, Room};
use super::found::{Found, bytes, known, seconds, why, word};
use super::reading::Reading;

/// The controller manager sets notBefore of its certificates back by this much. To a clock that is further behind, a new
/// certificate is not valid yet.
const CLOCK_OFF_S: i64 = 300;
/// Above this offset an operator should look at the clock.
const CLOCK_ODD_S: i64 = 30;
/// The longest label and the longest name of RFC 1123.
const LABEL_CHARACTERS: usize = 63;
const NAME_CHARACTERS: usize = 253;

pub(super) fn clock(facts: &Facts) -> Found {
    let kept = match &facts.is_synchronised {
        Reading::Read(true) => "the system says that its time is synchronised".to_owned(),
        Reading::Read(false) => "the system says that its time is not synchronised".to_owned(),
        Reading::CannotTell(why) => format!("whether its time is synchronised cannot be told: {why}"),
    };
    let mend = |found: Found| {
        found
            .advise(
                "let the machine keep its time with the same servers as the control plane, then look again",
            )
            .run("sudo timedatectl set-ntp true")
            .run("timedatectl timesync-status || chronyc tracking")
    };
    let offset =
        facts.servers.iter().find_map(|server| server.offset_s.read().map(|offset| (server, *offset)));
    let Some((server, offset)) = offset else {
        return match facts.is_synchronised {
            Reading::Read(true) => {
                Found::passed("it is synchronised; no server was there to compare it with").line(kept)
            }
            Reading::Read(false) => mend(
                Found::warned("it is not synchronised, and no server was there to compare it with")
                    .line(kept),
            ),
            Reading::CannotTell(_) => Found::cannot_tell(kept),
        };
    };
    let way = if offset > 0 { "behind" } else { "ahead of" };
    let line =
        format!("the date of {}'s answer: this clock is {} {way} it", server.endpoint, seconds(offset));
    match (offset.abs(), &facts.is_synchronised) {
        (CLOCK_OFF_S.., _) => {
            let says = format!(
                "it is {} {way} the API server's: certificates are not valid to it, or run out too early",
                seconds(offset)
            );
            mend(Found::failed(says).line(line).line(kept).cause("clock-skew"))
        }
        (CLOCK_ODD_S.., _) => mend(
            Found::warned(format!("it is {} {way} the API server's", seconds(offset))).line(line).line(kept),
        ),
        (_, Reading::Read(false)) => {
            mend(Found::warned("it is right now, and nothing keeps it so").line(line).line(kept))
        }
        (..) => Found::passed("it agrees with the API server's").line(line).line(kept),
    }
}

pub(super) fn host_name(facts: &Facts) -> Found {
    if let (Some(why), None) = (why(&facts.names.host), &facts.names.told) {
        return Found::cannot_tell(why);
    }
    let Some(name) = facts.names.node() else { return Found::cannot_tell("no name was read") };
    let source = match &facts.names.told {
        Some(told) => format!("the kubelet is told to call itself \"{told}\""),
        None => format!("the host is called \"{}\"", facts.names.host.read().map_or("", String::as_str)),
    };
    let mend = |says: String| {
        Found::failed(says)
            .line(source.clone())
            .advise("give the machine a name of its own, of a to z, 0 to 9, - and dots, then join")
            .run("sudo hostnamectl set-hostname NAME")
    };
    if name.is_empty() || name == "(none)" {
        return mend("it has no name".to_owned());
    }
    if ["localhost", "localhost.localdomain"].contains(&name.as_str()) {
        return mend("it is called localhost, as every machine is before it gets its name: any other machine could claim its Node".to_owned());
    }
    let is_label = |label: &str| {
        let inside =
            label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        inside
            && !label.is_empty()
            && label.len() <= LABEL_CHARACTERS
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if name.len() > NAME_CHARACTERS || !name.split('.').all(is_label) {
        return mend(format!("\"{name}\" cannot name a Node"));
    }
    Found::passed(format!("the Node is called {name}")).line(source)
}

pub(super) fn kernel(facts: &Facts) -> Found {
    let kernel = &facts.kernel;
    let lines = [
        ("net.ipv4.ip_forward", kernel.forwards.clone().map(|on| u8::from(on).to_string())),
        (
            "net.bridge.bridge-nf-call-iptables",
            kernel
                .bridges_filter
                .clone()
                .map(|on| on.map_or("br_netfilter is not loaded".to_owned(), |on| u8::from(on).to_string())),
        ),
        ("overlay", kernel.has_overlay.clone().map(|has| if has { "there" } else { "not there" }.to_owned())),
    ];
    let lines = lines.map(|(name, value)| match value {
        Reading::Read(value) => format!("{name}: {value}"),
        Reading::CannotTell(why) => format!("{name}: cannot be told: {why}"),
    });
    let mend = |found: Found| {
        found
            .lines(lines.clone())
            .cause("kernel-prereq-missing")
            .advise("load the modules and set the values, now and for the next boot")
            .run("printf 'overlay\\nbr_netfilter\\n' | sudo tee /etc/modules-load.d/k8s.conf; sudo modprobe -a overlay br_netfilter")
            .run("printf 'net.ipv4.ip_forward = 1\\nnet.bridge.bridge-nf-call-iptables = 1\\n' | sudo tee /etc/sysctl.d/k8s.conf; sudo sysctl --system")
    };
    let is_fresh = matches!(facts.join.kubeconfig, Reading::Read(Joined::Nothing));
    if let Some(own) = facts.supervised.as_ref().filter(|_| is_fresh) {
        let says = format!("{} loads the modules and sets the values when it starts", own.unit);
        return Found::passed(says).lines(lines);
    }
    match (&kernel.forwards, &kernel.has_overlay, &kernel.bridges_filter) {
        (Reading::Read(false), ..) => mend(Found::failed(match &facts.supervised {
            Some(_) => {
                format!("it does not forward packets, which pods need; {} had switched that on", facts.unit())
            }
            None => "it does not forward packets, which kubeadm refuses and pods need".to_owned(),
        })),
        (_, Reading::Read(false), _) => mend(Found::warned(
            "it has no overlay file system: runtimes fall back to a slow one, or do not start",
        )),
        (.., Reading::Read(None | Some(false))) => mend(Found::warned(
            "packets over bridges do not meet iptables: Services fail between pods of one node under many pod networks",
        )),
        (Reading::CannotTell(_), Reading::CannotTell(_), Reading::CannotTell(_)) => {
            Found::cannot_tell(lines.join("; "))
        }
        _ => Found::passed("it has what Kubernetes needs").lines(lines),
    }
}

pub(super) fn cgroups(facts: &Facts) -> Found {
    let cgroups = known!(facts.kernel.cgroups);
    let line = format!("control groups: version {}", cgroups.version);
    let mend = |found: Found| {
        found
            .line(line.clone())
            .cause("cgroup-unsupported")
            .advise("boot a kernel with control groups version 2 and all controllers")
            .run("stat -fc %T /sys/fs/cgroup; cat /proc/cmdline")
    };
    if cgroups.version == 0 {
        return mend(Found::failed("no control groups are mounted: no kubelet starts"));
    }
    if !cgroups.missing.is_empty() {
        return mend(Found::failed(format!(
            "the kernel does not offer the control groups {}",
            cgroups.missing.join(", ")
        )));
    }
    if cgroups.version == 1 {
        return mend(Found::warned(
            "control groups are of version 1, which newer kubelets refuse (failCgroupV1)",
        ));
    }
    Found::passed("the kernel offers what a kubelet needs").line(line)
}

pub(super) fn swap(facts: &Facts) -> Found {
    let devices = known!(facts.swap);
    if devices.is_empty() {
        return Found::passed("there is none");
    }
    let lines = devices.iter().map(|device| format!("swap on {device}"));
    let mend = |found: Found| {
        found
            .lines(lines.clone())
            .cause("swap-enabled")
            .advise("turn swap off now and in /etc/fstab, or let the kubelet live with it: failSwapOn: false")
            .run("sudo swapoff -a")
            .run("sudo sed -ri '/\\sswap\\s/s/^#?/#/' /etc/fstab; systemctl list-units --type swap")
    };
    match facts.kubelet.config.read() {
        Some(ConfigSeen::There(config)) if config.fails_on_swap => {
            mend(Found::failed("swap is on, and the kubelet is told to end where it is (failSwapOn)"))
        }
        None | Some(ConfigSeen::Absent) if facts.supervised.is_some() => {
            Found::passed(format!("swap is on, and {} tells its kubelet to live with it", facts.joined_by()))
                .lines(lines.clone())
        }
        Some(ConfigSeen::There(_)) => {
            Found::passed("swap is on, and the kubelet is told to live with it").lines(lines.clone())
        }
        _ => mend(Found::warned(
            "swap is on: a kubelet ends where it is, unless the cluster's configuration says failSwapOn: false",
        )),
    }
}

pub(super) fn ports(facts: &Facts) -> Found {
    let mut unread = Vec::new();
    let mut lines = Vec::new();
    let mut taken = Vec::new();
    for port in &facts.ports {
        let named = format!("{} ({})", port.number, port.what);
        match &port.holder {
            Reading::CannotTell(why) => unread.push(format!("port {named}: {why}")),
            Reading::Read(None) => lines.push(format!("port {named}: nothing listens")),
            Reading::Read(Some(holder)) => {
                let process = holder.pid.map_or_else(String::new, |pid| format!(", process {pid}"));
                let program = holder.program.as_deref().unwrap_or("a process that cannot be seen");
                let line = format!("port {named}: {program}{process}");
                // Only root can see which process listens. So a kubelet port is taken for the kubelet's own while a
                // kubelet runs.
                let is_own = holder.is_kubelet
                    || holder.program.is_none() && matches!(facts.kubelet.process, Reading::Read(Some(_)));
                if !is_own {
                    taken.push((port.number, program.to_owned()));
                }
                lines.push(line);
            }
        }
    }
    if let [(number, program), ..] = taken.as_slice() {
        return Found::failed(format!("port {number}, which the kubelet needs, is taken by {program}"))
            .lines(lines)
            .cause("port-in-use")
            .advise("stop what listens there, or give the kubelet another port")
            .run(format!("sudo ss -ltnp 'sport = :{number}'"));
    }
    match unread.as_slice() {
        [] => Found::passed("no other process listens on the kubelet's ports").lines(lines),
        [first, ..] => Found::cannot_tell(first.as_str()).lines(lines),
    }
}

pub(super) fn disk(facts: &Facts) -> Found {
    let (mut lines, mut full, mut tight, mut unread) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for disk in &facts.disks {
        let room = match &disk.room {
            Reading::Read(room) => room,
            Reading::CannotTell(why) => {
                unread.push(format!("{}: {why}", disk.path));
                continue;
            }
        };
        let Room { free_bytes, size_bytes, free_inodes, inodes } = *room;
        lines.push(format!(
            "{}: {} of {} free, {free_inodes} of {inodes} inodes",
            disk.path,
            bytes(free_bytes),
            bytes(size_bytes)
        ));
        if size_bytes > 0 && free_bytes == 0 || inodes > 0 && free_inodes == 0 {
            full.push(disk.path.as_str());
        } else if is_below(facts, &format!("{}.available", disk.what), free_bytes, size_bytes)
            || is_below(facts, &format!("{}.inodesFree", disk.what), free_inodes, inodes)
        {
            tight.push(disk.path.as_str());
        }
    }
    let mend = |found: Found| {
        found
            .cause("disk-failure")
            .advise("make room, or make the disk larger")
            .run("df -h / /var/lib/kubelet /var/lib/containerd; df -i / /var/lib/kubelet")
            .run("sudo crictl rmi --prune; sudo journalctl --vacuum-size=200M")
    };
    match (full.first(), tight.first(), unread.first()) {
        (Some(path), ..) => mend(Found::failed(format!("the disk of {path} is full"))).lines(lines),
        (_, Some(path), _) => {
            mend(Found::warned(format!("the disk of {path} is fuller than where the kubelet evicts pods")))
                .lines(lines)
        }
        (.., Some(unread)) if lines.is_empty() => Found::cannot_tell(unread.as_str()),
        _ => Found::passed("there is room").lines(lines),
    }
}

pub(super) fn memory(facts: &Facts) -> Found {
    let memory = known!(facts.memory);
    let line = format!("{} of {} available", bytes(memory.available_bytes), bytes(memory.size_bytes));
    if is_below(facts, "memory.available", memory.available_bytes, memory.size_bytes) {
        return Found::warned("there is less than where the kubelet evicts pods")
            .line(line)
            .advise("see what takes it")
            .run("ps -eo rss,comm --sort=-rss | head");
    }
    Found::passed("there is enough").line(line)
}

pub(super) fn announced(facts: &Facts) -> Found {
    let Some(notices) = known!(facts.announced) else {
        return Found::passed("it is of no provider that tells its machines what it will do to them");
    };
    if notices.is_empty() {
        return Found::passed("its provider announces nothing");
    }
    let node = facts.names.node().unwrap_or_else(|| "NODE".to_owned());
    Found::warned("its provider announced what it will do to it")
        .lines(notices.iter().map(ToString::to_string))
        .cause("provider-announced")
        .advise("drain it and let its owner replace it before then")
        .run(format!("kubectl drain {} --ignore-daemonsets --delete-emptydir-data", word(&node)))
}

/// The free amount is below the kubelet's eviction threshold, as configured or by default.
fn is_below(facts: &Facts, signal: &str, free: u64, size: u64) -> bool {
    const DEFAULTS: [(&str, &str); 4] = [
        ("memory.available", "100Mi"),
        ("nodefs.available", "10%"),
        ("nodefs.inodesFree", "5%"),
        ("imagefs.available", "15%"),
    ];
    if size == 0 {
        return false;
    }
    let limit = match facts.kubelet.config.read() {
        // A kubelet that is configured with some thresholds has no others.
        Some(ConfigSeen::There(config)) if !config.evicts_at.is_empty() => {
            config.evicts_at.iter().find(|(name, _)| name == signal).map(|(_, limit)| limit.as_str())
        }
        _ => DEFAULTS.iter().find(|(name, _)| *name == signal).map(|(_, limit)| *limit),
    };
    limit.and_then(|limit| amount(limit, size)).is_some_and(|limit| free < limit)
}

/// `10%` of a size, or a quantity: `100Mi`.
fn amount(text: &str, size: u64) -> Option<u64> {
    const UNITS: [(&str, u64); 8] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
    ];
    let text = text.trim();
    if let Some(percent) = text.strip_suffix('%') {
        // Eviction thresholds have at most tenths of a percent.
        let (whole, tenths) = percent.split_once('.').unwrap_or((percent, "0"));
        let permille = whole.parse::<u64>().ok()? * 10 + tenths.get(..1)?.parse::<u64>().ok()?;
        return Some(u64::try_from(u128::from(size) * u128::from(permille) / 1000).unwrap_or(u64::MAX));
    }
    let (number, unit) = UNITS
        .iter()
        .find_map(|(unit, factor)| text.strip_suffix(unit).map(|number| (number, *factor)))
        .unwrap_or((text, 1));
    number.parse::<u64>().ok().map(|number| number.saturating_mul(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_eviction_are_read_as_the_kubelet_reads_them() {
        for (text, size, wanted) in [
            ("10%", 1000, Some(100)),
            ("2.5%", 1000, Some(25)),
            ("100Mi", 1, Some(100 << 20)),
            ("1G", 1, Some(1_000_000_000)),
            ("7", 1, Some(7)),
            ("soon", 1, None),
        ] {
            assert_eq!(amount(text, size), wanted, "{text}");
        }
    }
}
