//! The source of a session's writer, which a server may gain and lose while connections are open.

use std::fmt;
use std::sync::Arc;

use orrery_storage::Writer;

use crate::distributed::forward::ForwardCalls;

/// The writer's place, which is taken and left while sessions are open.
pub trait WriterPlace: Send + Sync {
    /// The writer, if it is here now. Nobody keeps it for longer than a statement or a transaction.
    fn writer(&self) -> Option<Writer>;

    /// Whether it is here now.
    fn is_here(&self) -> bool;

    /// The server that writes, if that is another one whose address is known.
    fn address(&self) -> Option<String>;

    /// How the process that writes is asked, if changes are forwarded to it.
    fn calls(&self) -> Option<Arc<dyn ForwardCalls>> {
        None
    }
}

/// The source of the writer, if there is one now. Clones are the same.
#[derive(Clone)]
pub enum WriterSource {
    /// Always this one, or none.
    Fixed(Option<Writer>),
    /// Who has the writer's place.
    Changing(Arc<dyn WriterPlace>),
}

/// Whether this process writes. Who knows it keeps no writer alive.
#[derive(Clone)]
pub(crate) enum Standing {
    Fixed(bool),
    Changing(Arc<dyn WriterPlace>),
}

impl WriterSource {
    /// The writer now.
    pub fn writer(&self) -> Option<Writer> {
        match self {
            Self::Fixed(writer) => writer.clone(),
            Self::Changing(place) => place.writer(),
        }
    }

    /// Whether there is, or may come to be, a writer.
    pub fn may_write(&self) -> bool {
        match self {
            Self::Fixed(writer) => writer.is_some(),
            Self::Changing(_) => true,
        }
    }

    /// The server that writes, if that is another one whose address is known.
    pub(crate) fn address(&self) -> Option<String> {
        match self {
            Self::Fixed(_) => None,
            Self::Changing(place) => place.address(),
        }
    }

    /// How the process that writes is asked, if changes are forwarded to it.
    pub(crate) fn calls(&self) -> Option<Arc<dyn ForwardCalls>> {
        match self {
            Self::Fixed(_) => None,
            Self::Changing(place) => place.calls(),
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        match self {
            Self::Fixed(writer) => Standing::Fixed(writer.is_some()),
            Self::Changing(place) => Standing::Changing(Arc::clone(place)),
        }
    }
}

impl fmt::Debug for WriterSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(writer) => f.debug_tuple("Fixed").field(writer).finish(),
            Self::Changing(_) => f.write_str("Changing"),
        }
    }
}

impl Standing {
    /// Whether it does now.
    pub(crate) fn writes(&self) -> bool {
        match self {
            Self::Fixed(writes) => *writes,
            Self::Changing(place) => place.is_here(),
        }
    }
}

impl Default for Standing {
    fn default() -> Self {
        Self::Fixed(false)
    }
}

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Standing").field(&self.writes()).finish()
    }
}
