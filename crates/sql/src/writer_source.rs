//! Where sessions have their writer from: a server may begin to write, and stop, while connections are open.

use std::fmt;
use std::sync::Arc;

use orrery_storage::Writer;

/// What gives the writer, if there is one now. Clones are the same.
#[derive(Clone)]
pub enum WriterSource {
    /// Always this one, or none.
    Fixed(Option<Writer>),
    /// Who has the writer's place. Nobody keeps what it gives for longer than a statement or a transaction.
    Changing(Arc<dyn Fn() -> Option<Writer> + Send + Sync>),
}

impl WriterSource {
    /// The writer now.
    pub fn writer(&self) -> Option<Writer> {
        match self {
            Self::Fixed(writer) => writer.clone(),
            Self::Changing(writer) => writer(),
        }
    }

    /// Whether there is, or may come to be, a writer.
    pub fn may_write(&self) -> bool {
        match self {
            Self::Fixed(writer) => writer.is_some(),
            Self::Changing(_) => true,
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
