//! The errors of distributed work, and which of them allow a retry.

use datafusion_common::DataFusionError;

use crate::network::NetworkError;

/// The errors of distributed work.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// A worker was lost, or could not begin: the query may run without it.
    #[error("{0}")]
    Lost(String),
    /// A worker that has the plan has another one than this process.
    #[error("the worker {member} makes another plan of the query")]
    OtherPlan {
        /// Who.
        member: String,
    },
    /// A message that nobody meant to send.
    #[error("a message between workers is damaged: {0}")]
    Damaged(String),
}

/// How a worker's text begins that tells of another worker's loss, and of whatever else another
/// attempt may mend.
const MARKS: [&str; 3] = ["[lost] ", "[other plan] ", "[memory] "];

impl Error {
    /// For the one who asked for rows.
    pub(crate) fn to_text(error: &DataFusionError) -> String {
        let mark = match Self::of(error) {
            Some(Self::Lost(_)) => MARKS[0],
            Some(Self::OtherPlan { .. }) => MARKS[1],
            Some(Self::Damaged(_)) => "",
            None => match error.find_root() {
                DataFusionError::ResourcesExhausted(_) => MARKS[2],
                _ => "",
            },
        };
        match error.find_root() {
            DataFusionError::ResourcesExhausted(text) => format!("{mark}{text}"),
            root => format!("{mark}{root}"),
        }
    }

    /// What an error of a run is, if it is one of these.
    pub(crate) fn of(error: &DataFusionError) -> Option<&Self> {
        match error.find_root() {
            DataFusionError::External(inner) => inner.downcast_ref(),
            _ => None,
        }
    }
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        Self::External(Box::new(error))
    }
}

/// What a member's failure is for the query that reads from it.
pub(crate) fn of_network(member: &str, error: NetworkError) -> DataFusionError {
    match error {
        NetworkError::Lost { .. } => Error::Lost(error.to_string()).into(),
        NetworkError::Said(text) => {
            let [lost, other_plan, memory] = MARKS;
            if let Some(text) = text.strip_prefix(lost) {
                return Error::Lost(text.to_owned()).into();
            }
            if text.starts_with(other_plan) {
                let member = member.to_owned();
                return Error::OtherPlan { member }.into();
            }
            if let Some(text) = text.strip_prefix(memory) {
                return DataFusionError::ResourcesExhausted(text.to_owned());
            }
            DataFusionError::Execution(format!("worker {member}: {text}"))
        }
    }
}
