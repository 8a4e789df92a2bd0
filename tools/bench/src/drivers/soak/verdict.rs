//! The verdict on a request: done, a stated limit, or a fault.

use crate::http_client::Answer;

/// How a request ended that is no fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Ended {
    Done,
    /// 429: who asked has used up what they may.
    Exceeded,
    /// 503 with `Retry-After`: too many at once, or others hold the memory.
    Busy,
    /// 503: over its time.
    TimedOut,
    /// 507: over the memory.
    OutOfMemory,
    /// An answer that had begun, and came to one of these limits.
    BrokenOff,
    /// 412: the state is another one than the request wants.
    Precondition,
    /// 404: the old state is kept no more, or there is no such graph.
    NotThere,
    /// 401, 403, or 400 with 42P01: not for who asks.
    Denied,
}

impl Ended {
    pub(super) fn shown(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Exceeded => "429",
            Self::Busy => "503, Retry-After",
            Self::TimedOut => "503, over its time",
            Self::OutOfMemory => "507",
            Self::BrokenOff => "broken off by a limit",
            Self::Precondition => "412",
            Self::NotThere => "404",
            Self::Denied => "denied",
        }
    }
}

/// What was done, for the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Explore,
    Analytical,
    Long,
    Heavy,
    Question,
    OldState,
    SqlQuery,
    Update,
    GraphStore,
    SqlChange,
    Conditional,
    Relaxed,
    Forbidden,
    Plain,
    Checkpoint,
    Compaction,
}

impl Kind {
    pub(super) fn shown(self) -> &'static str {
        match self {
            Self::Explore => "explore query",
            Self::Analytical => "analytical query",
            Self::Long => "long answer, a part taken",
            Self::Heavy => "heavy query",
            Self::Question => "query of what changes",
            Self::OldState => "the same of an old state",
            Self::SqlQuery => "query of SQL",
            Self::Update => "update",
            Self::GraphStore => "change by the graph store",
            Self::SqlChange => "change by SQL",
            Self::Conditional => "change with If-Match",
            Self::Relaxed => "change, relaxed",
            Self::Forbidden => "what one may not",
            Self::Plain => "health and metrics",
            Self::Checkpoint => "checkpoint",
            Self::Compaction => "compaction",
        }
    }
}

/// Which limits a request may come to, beside its time and a busy server.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allowed {
    /// Who asks has limits of their own.
    pub(super) exceeded: bool,
    pub(super) memory: bool,
    /// Its answer may break off.
    pub(super) broken: bool,
    pub(super) precondition: bool,
    pub(super) not_there: bool,
    /// It is not for who asks, and has to be denied.
    pub(super) denied: bool,
}

/// How a request ended; what is no stated limit is a fault.
pub(super) fn judge(answer: &Answer, allowed: Allowed) -> Result<Ended, String> {
    let text = String::from_utf8_lossy(&answer.body);
    let says_retry = answer.header("retry-after").is_some();
    let ended = match answer.status {
        _ if !answer.is_whole => allowed.broken.then_some(Ended::BrokenOff),
        200 | 201 => (!allowed.denied).then_some(Ended::Done),
        429 => allowed.exceeded.then_some(Ended::Exceeded),
        503 if says_retry => Some(Ended::Busy),
        503 if text.contains("took longer than its limit") || text.contains("57014") => {
            Some(Ended::TimedOut)
        }
        507 => allowed.memory.then_some(Ended::OutOfMemory),
        412 => allowed.precondition.then_some(Ended::Precondition),
        404 => allowed.not_there.then_some(Ended::NotThere),
        401 | 403 => allowed.denied.then_some(Ended::Denied),
        400 if text.contains("42P01") => allowed.denied.then_some(Ended::Denied),
        _ => None,
    };
    ended.ok_or_else(|| match answer.is_whole {
        true => format!("status {}: {text}", answer.status),
        false => format!(
            "status {}, broken off after {} bytes",
            answer.status,
            answer.body.len()
        ),
    })
}

/// The commit that an answer names.
pub(super) fn commit_of(answer: &Answer) -> Result<u64, String> {
    let tag = answer.header("etag").unwrap_or_default();
    let number = tag.trim_matches('"').split('-').next().unwrap_or_default();
    number
        .parse()
        .map_err(|_| format!("its ETag {tag:?} names no commit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16) -> Answer {
        Answer {
            status,
            is_whole: true,
            ..Answer::default()
        }
    }

    #[test]
    fn what_is_no_stated_limit_is_a_fault() {
        let everything = Allowed {
            exceeded: true,
            memory: true,
            broken: true,
            precondition: true,
            not_there: true,
            denied: false,
        };
        for status in [200, 201, 404, 412, 429, 507] {
            assert!(judge(&answer(status), everything).is_ok(), "{status}");
        }
        for status in [400, 401, 403, 409, 500, 502, 503] {
            assert!(judge(&answer(status), everything).is_err(), "{status}");
        }
        for status in [404, 412, 429, 507] {
            assert!(
                judge(&answer(status), Allowed::default()).is_err(),
                "{status}"
            );
        }
        let denied = Allowed {
            denied: true,
            ..Allowed::default()
        };
        assert_eq!(judge(&answer(403), denied), Ok(Ended::Denied));
        assert!(judge(&answer(200), denied).is_err());
        let broken = Answer {
            is_whole: false,
            ..answer(200)
        };
        assert!(judge(&broken, Allowed::default()).is_err());
        assert_eq!(judge(&broken, everything), Ok(Ended::BrokenOff));
        assert!(commit_of(&answer(200)).is_err());
    }
}
