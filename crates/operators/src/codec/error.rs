//! The errors of encoding and decoding plans.

use orrery_storage::DatabaseIdentity;
use thiserror::Error;

/// The reason why a plan cannot be encoded or decoded.
#[derive(Debug, Error)]
pub enum CodecError {
    /// A node, or an expression, of which there is no description.
    #[error("{0} cannot be sent to another process")]
    CannotTravel(String),
    /// The database is from before there were identities; its next writer gives it one.
    #[error("the database has no identity yet, by which another process would know it")]
    NoIdentity,
    /// Too long, or too many nodes.
    #[error("a plan of {count} {unit} is too large to be sent: {max} at most")]
    TooLarge {
        /// How many there are.
        count: usize,
        /// Of what.
        unit: &'static str,
        /// How many there may be.
        max: usize,
    },
    /// The bytes do not begin as a plan.
    #[error("these bytes are no plan")]
    NotAPlan,
    /// A version of the format that this program does not know.
    #[error("the plan is in version {found} of the format, this program reads version {known}")]
    OtherVersion {
        /// The plan's.
        found: u8,
        /// The one that is known.
        known: u8,
    },
    /// The bytes are not those that were written.
    #[error("the plan is damaged: {0}")]
    Damaged(String),
    /// The plan was made for another database.
    #[error("the plan is for the database {wanted}, this one is {}", found.as_ref().map_or_else(|| "without identity".to_owned(), ToString::to_string))]
    OtherDatabase {
        /// The plan's.
        wanted: DatabaseIdentity,
        /// The one that is here.
        found: Option<DatabaseIdentity>,
    },
    /// The plan reads another commit than the one that it is to be run on.
    #[error("the plan reads commit {wanted}, this state is commit {found}")]
    OtherCommit {
        /// The plan's.
        wanted: u64,
        /// The one that is here.
        found: u64,
    },
    /// The commit is there, but the ids of its terms are not the plan's any more.
    #[error(
        "the plan's ids are those of the files {wanted}, which {found} has replaced; it has to be planned again"
    )]
    OtherIds {
        /// The plan's.
        wanted: String,
        /// The ones that are here.
        found: String,
    },
    /// The plan asks other endpoints, and the process that reads it does not.
    #[error("the plan asks other endpoints (SERVICE), and this process may not")]
    NoEndpoints,
    /// What is described cannot be made.
    #[error(transparent)]
    Operators(Box<crate::Error>),
}

impl From<crate::Error> for CodecError {
    fn from(error: crate::Error) -> Self {
        Self::Operators(Box::new(error))
    }
}

impl From<datafusion_common::DataFusionError> for CodecError {
    fn from(error: datafusion_common::DataFusionError) -> Self {
        crate::Error::from(error).into()
    }
}

impl From<orrery_storage::Error> for CodecError {
    fn from(error: orrery_storage::Error) -> Self {
        crate::Error::from(error).into()
    }
}

impl From<orrery_expressions::codec::CodecError> for CodecError {
    fn from(error: orrery_expressions::codec::CodecError) -> Self {
        use orrery_expressions::codec::CodecError as Inner;
        match error {
            Inner::CannotTravel(what) => Self::CannotTravel(what),
            Inner::Damaged(what) => Self::Damaged(what),
            Inner::Expression(error) => crate::Error::from(error).into(),
        }
    }
}

impl CodecError {
    pub(super) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(what.into())
    }
}

/// What the codec's functions return.
pub(super) type Result<T> = std::result::Result<T, CodecError>;
