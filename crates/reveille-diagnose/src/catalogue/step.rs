//! What a console shows of the guest whatever is wrong with it: how far the boot came, what it got, what answered.
//!
//! Steps prove no cause and take none back, so they are no marks: a line that carries one is still trouble that nothing
//! explains, if it sounds like it.

use super::phrase::Phrase;

/// What a step can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tells {
    /// A kernel started: what follows is another boot.
    NewBoot,
    /// The kernel or the init system prints.
    Kernel,
    /// The tool of the first boot runs.
    FirstBoot,
    /// Multi-user or a login prompt.
    Userland,
    /// The kubelet was started, or kubeadm runs.
    Kubelet,
    /// The node registered.
    Joined,
    /// An interface got an address.
    Addressed,
    /// The metadata service or the API server answered.
    Answered,
    /// A config drive was found.
    ConfigDrive,
    /// One was looked for and not found.
    NoConfigDrive,
    /// No address, or no link.
    NoLease,
    /// Packets went out and nothing came back.
    Unanswered,
}

impl Tells {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::NewBoot,
        Self::Kernel,
        Self::FirstBoot,
        Self::Userland,
        Self::Kubelet,
        Self::Joined,
        Self::Addressed,
        Self::Answered,
        Self::ConfigDrive,
        Self::NoConfigDrive,
        Self::NoLease,
        Self::Unanswered,
    ];

    /// The word for it in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewBoot => "new-boot",
            Self::Kernel => "kernel",
            Self::FirstBoot => "first-boot",
            Self::Userland => "userland",
            Self::Kubelet => "kubelet",
            Self::Joined => "joined",
            Self::Addressed => "addressed",
            Self::Answered => "answered",
            Self::ConfigDrive => "config-drive",
            Self::NoConfigDrive => "no-config-drive",
            Self::NoLease => "no-lease",
            Self::Unanswered => "unanswered",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tells| tells.name() == name)
    }
}

/// A line that shows something of the guest.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its name, unique among steps.
    pub id: String,
    /// What it tells.
    pub tells: Vec<Tells>,
    /// What the line says, any of these.
    pub says: Vec<Phrase>,
    /// What it may not say.
    pub unless: Vec<Phrase>,
    /// Lines that must carry it.
    pub yes: Vec<String>,
    /// Lines that look like it and must not.
    pub near: Vec<String>,
    /// File and line of its description.
    pub place: (String, u64),
}

impl Step {
    /// Whether a comparable line carries it.
    pub fn carries(&self, comparable: &str) -> bool {
        let finds = |phrase: &Phrase| {
            // Literals first: of a thousand lines nearly all hold none.
            phrase.literals.iter().any(|literal| comparable.contains(literal.as_str()))
                && phrase.find(comparable).is_some()
        };
        self.says.iter().any(finds) && !self.unless.iter().any(|phrase| phrase.find(comparable).is_some())
    }
}
