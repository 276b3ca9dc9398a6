//! Before any network: firmware, kernel, initial file system.

use crate::model::cause::Cause;
use crate::model::incident::Confidence;

use super::{BASE, Mark, Part, Reboot, Signature};

/// They explain everything after them.
pub(super) static FATAL: &[Signature] = &[
    Signature {
        id: "kernel-panic",
        cause: Cause::BootFailed,
        confidence: Confidence::Sure,
        part: Part::Boot,
        all: &[&["kernel panic - not syncing"]],
        taken_back_by: &[Mark::Userland, Mark::KubeletStarted],
        reboot: Reboot::Yes,
        source: "Linux",
        hits: &[
            "[    2.811034] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)",
            "[   31.400112] Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b",
            "[    4.2] ---[ end Kernel panic - not syncing: Fatal exception ]---",
        ],
        misses: &["[    0.000000] Kernel command line: console=ttyS0 panic=30", "sysctl: kernel.panic = 10"],
        ..BASE
    },
    Signature {
        id: "no-boot-device",
        cause: Cause::BootFailed,
        confidence: Confidence::Sure,
        part: Part::Boot,
        all: &[&["no bootable device", "no bootable medium", "grub rescue>", "no mapping fs"]],
        taken_back_by: &[Mark::NewBoot, Mark::Kernel],
        source: "SeaBIOS, OVMF, GRUB",
        hits: &["No bootable device.", "error: no such partition. Entering rescue mode... grub rescue>"],
        misses: &[
            "Boot failed: Could not read from CDROM (code 0003)",
            "Booting from Hard Disk...",
            "ACPI: bootable device table not present",
        ],
        ..BASE
    },
    Signature {
        id: "root-disk-missing",
        cause: Cause::BootFailed,
        part: Part::Boot,
        all: &[
            &["/dev/disk/", "/dev/mapper/", "/dev/vda", "/dev/sda"],
            &["does not exist", "gave up waiting"],
            &["dracut", "alert!", "warning:"],
        ],
        taken_back_by: &[Mark::NewBoot, Mark::Userland, Mark::FirstBootTool],
        reboot: Reboot::Yes,
        source: "dracut, initramfs-tools",
        hits: &[
            "dracut-initqueue[412]: Warning: /dev/disk/by-uuid/8d11c1a0-77d0-4f6a-a6d2-9f00d9a0b7aa does not exist",
            "ALERT! /dev/disk/by-label/cloudimg-rootfs does not exist. Dropping to a shell!",
        ],
        misses: &[
            "dracut-initqueue[412]: Warning: dracut-initqueue timeout - starting timeout scripts",
            "mount: /mnt: special device /dev/vdb does not exist.",
        ],
        ..BASE
    },
];

/// They follow from something: last in the table, so that whatever explains them stands before.
pub(super) static CONSEQUENCE: &[Signature] = &[
    Signature {
        id: "emergency-shell",
        cause: Cause::BootFailed,
        consequence: true,
        part: Part::Boot,
        all: &[&[
            "in emergency mode",
            "entering emergency mode",
            "for emergency shell",
            "dracut:/#",
            "(initramfs)",
            "root account is locked",
            "press enter for maintenance",
            "password for maintenance",
            "press enter for system maintenance",
        ]],
        taken_back_by: &[Mark::NewBoot, Mark::Userland, Mark::KubeletStarted],
        reboot: Reboot::Yes,
        source: "systemd, dracut, initramfs-tools",
        hits: &[
            "You are in emergency mode. After logging in, type \"journalctl -xb\" to view system logs.",
            "Entering emergency mode. Exit the shell to continue.",
            "Press Enter for emergency shell or wait 5 minutes for reboot.",
            "Cannot open access to console, the root account is locked.",
            "BusyBox v1.30.1 built-in shell (ash) (initramfs)",
        ],
        misses: &[
            "[  OK  ] Stopped target Emergency Mode.",
            "systemd[1]: emergency.service: Deactivated successfully.",
            "[    1.2] Unpacking initramfs...",
        ],
        ..BASE
    },
    Signature {
        id: "initial-queue-timeout",
        cause: Cause::BootFailed,
        consequence: true,
        confidence: Confidence::Possible,
        part: Part::Boot,
        all: &[&["dracut-initqueue"], &["timeout - starting timeout scripts", "timeout, still waiting for"]],
        at_least: 3,
        taken_back_by: &[Mark::NewBoot, Mark::Userland, Mark::IgnitionDone, Mark::KubeletStarted],
        reboot: Reboot::Yes,
        source: "dracut",
        hits: &[
            "[  131.1] dracut-initqueue[353]: Warning: dracut-initqueue timeout - starting timeout scripts",
            "[  131.5] dracut-initqueue[511]: Warning: dracut-initqueue: timeout, still waiting for following initqueue hooks:",
        ],
        misses: &["[  OK  ] Finished dracut-initqueue.service - dracut initqueue hook."],
        ..BASE
    },
];
