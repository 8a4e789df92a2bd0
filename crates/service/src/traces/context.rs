//! The W3C trace context of a span (<https://www.w3.org/TR/trace-context/>), new ids, and the
//! choice of sampled traces.

use ring::rand::{SecureRandom as _, SystemRandom};

/// Identifies a trace.
pub(crate) type TraceId = [u8; 16];
/// Identifies a span within its trace.
pub(crate) type SpanId = [u8; 8];

const IS_SAMPLED: u8 = 1;

/// The client's span, which a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) trace: TraceId,
    pub(super) span: SpanId,
    pub(super) is_sampled: bool,
}

impl Parent {
    /// None if the header is invalid: then a new trace begins (4.3).
    ///
    /// `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`; later versions may have more
    /// behind that.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let [version] = bytes(version)?;
        let has_more = parts.next().is_some();
        if version == 0xff || (version == 0 && has_more) {
            return None;
        }
        let (trace, span): (TraceId, SpanId) = (bytes(trace)?, bytes(span)?);
        let [flags] = bytes(flags)?;
        let is_valid = trace != TraceId::default() && span != SpanId::default();
        is_valid.then_some(Self {
            trace,
            span,
            is_sampled: flags & IS_SAMPLED != 0,
        })
    }
}

/// Decodes lower-case hexadecimal digits, two per byte.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let text = text.as_bytes();
    if text.len() != 2 * N {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(digits[0])? << 4 | digit(digits[1])?;
    }
    Some(bytes)
}

/// A source of new ids.
#[derive(Debug)]
pub(super) struct Ids(SystemRandom);

impl Ids {
    pub(super) fn new() -> Self {
        Self(SystemRandom::new())
    }

    /// A new id; none if the system has no random numbers, or in the negligible case of all zeros.
    pub(super) fn next<const N: usize>(&self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.0.fill(&mut bytes).ok()?;
        (bytes != [0; N]).then_some(bytes)
    }
}

/// The fraction of new traces that is sampled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sampling {
    /// Traces are taken whose last 56 bits, which are random, are below this.
    below: u64,
}

const RANDOM_BITS: u32 = 56;

impl Sampling {
    /// Samples this fraction of all traces, from 0 to 1.
    pub(super) fn new(ratio: f64) -> Self {
        let all = (1_u64 << RANDOM_BITS) as f64;
        Self {
            below: (ratio.clamp(0.0, 1.0) * all) as u64,
        }
    }

    pub(super) fn takes(self, trace: &TraceId) -> bool {
        let mut last = [0; 8];
        last.copy_from_slice(&trace[8..]);
        u64::from_be_bytes(last) & ((1 << RANDOM_BITS) - 1) < self.below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_the_recommendation_is_read_and_what_is_broken_is_not() {
        let parent =
            Parent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
        assert_eq!(parent.trace[..2], [0x4b, 0xf9]);
        assert_eq!(parent.span, [0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
        assert!(parent.is_sampled);
        let later =
            Parent::parse("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-what-comes");
        assert!(!later.unwrap().is_sampled);
        for broken in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e473ä-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Parent::parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_ratio_takes_that_part_of_all_traces() {
        let ids = Ids::new();
        let traces: Vec<TraceId> = (0..4_000).map(|_| ids.next().unwrap()).collect();
        let taken = |ratio| {
            traces
                .iter()
                .filter(|it| Sampling::new(ratio).takes(it))
                .count()
        };
        assert_eq!((taken(0.0), taken(1.0)), (0, 4_000));
        assert!((700..1_300).contains(&taken(0.25)), "{}", taken(0.25));
    }
}
