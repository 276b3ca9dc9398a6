//! The way between a type of the core and what stands for it in JSON, both directions from one description.
//!
//! [`Mirror`] is implemented once for each leaf (moments, numbers, names, closed lists of words); [`mirror_enum`] and
//! [`mirror_struct`] build the rest field by field. One list of fields serves writing and reading, so that the two
//! cannot drift apart, and the compiler holds it against the core's own list: a field that the core gains does not
//! build here until it is written down.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::model::id::{
    CloudName, ClusterUid, Fence, GroupId, IncidentId, InstanceId, IntentId, NodeName, NodeUid, PoolName,
    PortId, ProjectId, RequestId, RoleId, RouterId, RuleId, UserId, ZoneName,
};
use reveille_core::model::incident::{Confidence, FaultKind};
use reveille_core::model::network::{Direction, Family, Protocol};
use reveille_core::model::stage::Stage;
use reveille_core::model::time::{Span, Time};
use reveille_core::record::Verdict;

use super::FromWireError;
use crate::stamp::Stamp;

/// A type of the core that has a form in JSON.
pub(crate) trait Mirror: Sized {
    /// That form.
    type Wire;

    /// Writes.
    fn out(&self) -> Self::Wire;

    /// Reads.
    fn back(wire: Self::Wire) -> Result<Self, FromWireError>;
}

/// An enum that says in one field which of its variants it is.
pub(crate) trait Tagged {
    /// What that field can say.
    const WORDS: &'static [&'static str];
}

/// Types that are written as they are.
macro_rules! as_is {
    ($($ty:ty),*) => {$(
        impl Mirror for $ty {
            type Wire = Self;
            fn out(&self) -> Self { self.clone() }
            fn back(wire: Self) -> Result<Self, FromWireError> { Ok(wire) }
        }
    )*};
}
as_is!(bool, u8, u32, u64, (u16, u16), Arc<str>, IpNet, IpAddr);

macro_rules! names {
    ($($ty:ident),*) => {$(
        impl Mirror for $ty {
            type Wire = Arc<str>;
            fn out(&self) -> Arc<str> { self.shared() }
            fn back(wire: Arc<str>) -> Result<Self, FromWireError> { Ok(Self::new(wire)) }
        }
    )*};
}
names!(
    CloudName, ClusterUid, GroupId, InstanceId, NodeName, NodeUid, PoolName, PortId, RequestId, RouterId,
    RuleId, ProjectId, RoleId, UserId, ZoneName
);

macro_rules! numbers {
    ($($ty:ident),*) => {$(
        impl Mirror for $ty {
            type Wire = u64;
            fn out(&self) -> u64 { self.0 }
            fn back(wire: u64) -> Result<Self, FromWireError> { Ok(Self(wire)) }
        }
    )*};
}
numbers!(Fence, IncidentId, IntentId);

/// Closed lists: written as a word, read only when the word is in the list.
macro_rules! words {
    ($($ty:ident $list:literal $all:expr, $name:expr;)*) => {$(
        impl Mirror for $ty {
            type Wire = Arc<str>;
            fn out(&self) -> Arc<str> {
                let name: fn(Self) -> &'static str = $name;
                Arc::from(name(*self))
            }
            fn back(wire: Arc<str>) -> Result<Self, FromWireError> {
                let name: fn(Self) -> &'static str = $name;
                let found = $all.iter().copied().find(|candidate| name(*candidate) == &*wire);
                found.ok_or_else(|| FromWireError::Word { list: $list, word: wire.to_string() })
            }
        }
    )*};
}
words! {
    FaultKind "kind of fault" FaultKind::ALL, FaultKind::name;
    Stage "stage" Stage::ALL, Stage::name;
    Confidence "confidence" [Confidence::Possible, Confidence::Likely, Confidence::Sure], Confidence::name;
    Verdict "verdict"
        [Verdict::Mended, Verdict::Recovered, Verdict::SubjectGone, Verdict::Superseded], Verdict::name;
    Direction "direction" [Direction::Ingress, Direction::Egress], |direction| match direction {
        Direction::Ingress => "ingress",
        Direction::Egress => "egress",
    };
    Family "address family" [Family::V4, Family::V6], |family| match family {
        Family::V4 => "v4",
        Family::V6 => "v6",
    };
}

/// A word where there is one, so that a person need not know that 17 is UDP; else the number as text.
impl Mirror for Protocol {
    type Wire = Arc<str>;

    fn out(&self) -> Arc<str> {
        Arc::from(self.to_string())
    }

    fn back(wire: Arc<str>) -> Result<Self, FromWireError> {
        let known = [Self::TCP, Self::UDP, Self::ICMP, Self::ICMP6];
        let word = known.into_iter().find(|known| known.to_string() == *wire);
        word.or_else(|| wire.parse().ok().map(Self))
            .ok_or_else(|| FromWireError::Word { list: "protocol", word: wire.to_string() })
    }
}

impl Mirror for Time {
    type Wire = Stamp;

    fn out(&self) -> Stamp {
        Stamp(*self)
    }

    fn back(wire: Stamp) -> Result<Self, FromWireError> {
        Ok(wire.0)
    }
}

/// Milliseconds; the field's name says so.
impl Mirror for Span {
    type Wire = i64;

    fn out(&self) -> i64 {
        self.ms
    }

    fn back(wire: i64) -> Result<Self, FromWireError> {
        Ok(Self::from_ms(wire))
    }
}

impl<T: Mirror> Mirror for Vec<T> {
    type Wire = Vec<T::Wire>;

    fn out(&self) -> Self::Wire {
        self.iter().map(T::out).collect()
    }

    fn back(wire: Self::Wire) -> Result<Self, FromWireError> {
        wire.into_iter().map(T::back).collect()
    }
}

impl<T: Mirror> Mirror for Arc<T> {
    type Wire = T::Wire;

    fn out(&self) -> T::Wire {
        T::out(self)
    }

    fn back(wire: T::Wire) -> Result<Self, FromWireError> {
        T::back(wire).map(Self::new)
    }
}

/// What is rarely there stays small in its wire form, too.
impl<T: Mirror> Mirror for Box<T> {
    type Wire = Box<T::Wire>;

    fn out(&self) -> Box<T::Wire> {
        Box::new(T::out(self))
    }

    fn back(wire: Box<T::Wire>) -> Result<Self, FromWireError> {
        T::back(*wire).map(Self::new)
    }
}

impl<T: Mirror> Mirror for Box<[T]> {
    type Wire = Vec<T::Wire>;

    fn out(&self) -> Self::Wire {
        self.iter().map(T::out).collect()
    }

    fn back(wire: Self::Wire) -> Result<Self, FromWireError> {
        wire.into_iter().map(T::back).collect()
    }
}

impl<T: Mirror + Ord> Mirror for BTreeSet<T> {
    type Wire = Vec<T::Wire>;

    fn out(&self) -> Self::Wire {
        self.iter().map(T::out).collect()
    }

    fn back(wire: Self::Wire) -> Result<Self, FromWireError> {
        wire.into_iter().map(T::back).collect()
    }
}

impl<T: Mirror> Mirror for Option<T> {
    type Wire = Option<T::Wire>;

    fn out(&self) -> Self::Wire {
        self.as_ref().map(T::out)
    }

    fn back(wire: Self::Wire) -> Result<Self, FromWireError> {
        wire.map(T::back).transpose()
    }
}

/// An enum of the core as an object whose field `tag` names the variant. Types are the core's.
macro_rules! mirror_enum {
    (
        $(#[$doc:meta])*
        $wire:ident of $core:ident by $tag:literal {
            $($word:literal $variant:ident { $($(#[$attr:meta])* $field:ident: $ty:ty),* $(,)? },)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = $tag, rename_all_fields = "camelCase", deny_unknown_fields)]
        pub(crate) enum $wire {
            $(
                #[serde(rename = $word)]
                $variant {
                    $($(#[$attr])* $field: <$ty as $crate::ledger::mirror::Mirror>::Wire,)*
                },
            )*
        }

        impl $crate::ledger::mirror::Tagged for $wire {
            const WORDS: &'static [&'static str] = &[$($word),*];
        }

        impl $crate::ledger::mirror::Mirror for $core {
            type Wire = $wire;

            fn out(&self) -> $wire {
                match self {
                    $(Self::$variant { $($field),* } => $wire::$variant {
                        $($field: <$ty as $crate::ledger::mirror::Mirror>::out($field),)*
                    },)*
                }
            }

            fn back(wire: $wire) -> Result<Self, $crate::ledger::FromWireError> {
                Ok(match wire {
                    $($wire::$variant { $($field),* } => Self::$variant {
                        $($field: <$ty as $crate::ledger::mirror::Mirror>::back($field)?,)*
                    },)*
                })
            }
        }
    };
}

/// A struct of the core as an object. Types are the core's.
macro_rules! mirror_struct {
    (
        $(#[$doc:meta])*
        $wire:ident of $core:ident { $($(#[$attr:meta])* $field:ident: $ty:ty),* $(,)? }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub(crate) struct $wire {
            $($(#[$attr])* $field: <$ty as $crate::ledger::mirror::Mirror>::Wire,)*
        }

        impl $crate::ledger::mirror::Mirror for $core {
            type Wire = $wire;

            fn out(&self) -> $wire {
                $wire { $($field: <$ty as $crate::ledger::mirror::Mirror>::out(&self.$field),)* }
            }

            fn back(wire: $wire) -> Result<Self, $crate::ledger::FromWireError> {
                Ok(Self { $($field: <$ty as $crate::ledger::mirror::Mirror>::back(wire.$field)?,)* })
            }
        }
    };
}

/// An enum of the core with variants of every form: `"word"`, `{"word":…}`, `{"word":[…]}`, `{"word":{…}}`.
macro_rules! mirror_choice {
    (
        $(#[$doc:meta])*
        $wire:ident of $core:ident {
            $($word:literal $variant:ident
                $(($($slot:ident: $ty:ty),+))?
                $({ $($(#[$attr:meta])* $field:ident: $fty:ty),+ $(,)? })?
            ,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all_fields = "camelCase", deny_unknown_fields)]
        pub(crate) enum $wire {
            $(
                #[serde(rename = $word)]
                $variant
                    $(($(<$ty as $crate::ledger::mirror::Mirror>::Wire),+))?
                    $({ $($(#[$attr])* $field: <$fty as $crate::ledger::mirror::Mirror>::Wire),+ })?,
            )*
        }

        impl $crate::ledger::mirror::Tagged for $wire {
            const WORDS: &'static [&'static str] = &[$($word),*];
        }

        impl $crate::ledger::mirror::Mirror for $core {
            type Wire = $wire;

            fn out(&self) -> $wire {
                match self {
                    $(Self::$variant $(($($slot),+))? $({ $($field),+ })? => $wire::$variant
                        $(($(<$ty as $crate::ledger::mirror::Mirror>::out($slot)),+))?
                        $({ $($field: <$fty as $crate::ledger::mirror::Mirror>::out($field)),+ })?,)*
                }
            }

            fn back(wire: $wire) -> Result<Self, $crate::ledger::FromWireError> {
                Ok(match wire {
                    $($wire::$variant $(($($slot),+))? $({ $($field),+ })? => Self::$variant
                        $(($(<$ty as $crate::ledger::mirror::Mirror>::back($slot)?),+))?
                        $({ $($field: <$fty as $crate::ledger::mirror::Mirror>::back($field)?),+ })?,)*
                })
            }
        }
    };
}

pub(crate) use {mirror_choice, mirror_enum, mirror_struct, names, numbers, words};
