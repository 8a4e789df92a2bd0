//! The authentication of nodes: HMAC-SHA256 over requests and answers with the cluster's secret.
//!
//! ```text
//! request   HMAC(secret, "request\n" path "\n" number of the asked node "\n" time in ms "\n" nonce "\n" hex SHA-256 of the body)
//! answer    HMAC(secret, "answer\n" nonce "\n" status "\n" hex SHA-256 of the body)
//! frame     HMAC(secret, "frame\n" nonce "\n" u64 number of the frame, u8 kind, payload), its first 16 bytes:
//!           a part of an answer to a call
//! ```
//!
//! The SHA-256 of the body stands in a header too, so that only the body of a request with a
//! signature is read. Requests of earlier versions, calls apart, lack the header: few of their
//! bodies are read at a time, while nodes are upgraded one by one.
//!
//! All requests are POSTs. A request counts for 30 seconds around its time and once: nonces are
//! remembered for longer than that. So the clocks of the nodes must not be further apart. Nothing
//! is encrypted.

use std::collections::HashSet;
use std::time::Duration;

use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use ring::hmac;
use tokio::time::Instant;

use crate::types::NodeId;

/// The nodes' number in a request.
pub(crate) const NODE: &str = "x-orrery-node";
/// The time of a request.
pub(crate) const TIME: &str = "x-orrery-time";
/// What makes a request another one than any before.
pub(crate) const NONCE: &str = "x-orrery-nonce";
/// The SHA-256 of a call's body, in hexadecimal digits.
pub(crate) const BODY: &str = "x-orrery-body";
/// The HMAC, in hexadecimal digits.
pub(crate) const SIGNATURE: &str = "x-orrery-signature";

/// Bytes of a frame's HMAC.
pub(crate) const FRAME_TAG_BYTES: usize = 16;

/// Clocks may be this far apart.
const APART_MS_MAX: u64 = 30_000;
/// A generation of nonces; one before it is kept.
const GENERATION: Duration = Duration::from_secs(61);
/// Nonces of a generation.
const NONCES_MAX: usize = 1_000_000;
/// A secret has at least this many bytes.
pub(crate) const SECRET_BYTES_MIN: usize = 16;

/// The secret of a cluster.
#[derive(Clone)]
pub(crate) struct Secret(hmac::Key);

impl Secret {
    /// Takes the secret's bytes.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// Signs a request.
    #[cfg(test)]
    pub(crate) fn request(
        &self,
        path: &str,
        node: NodeId,
        time_ms: u64,
        nonce: &str,
        body: &[u8],
    ) -> String {
        self.request_with(path, node, time_ms, nonce, &digest_of(body))
    }

    /// Signs a request whose body has this digest.
    pub(crate) fn request_with(
        &self,
        path: &str,
        node: NodeId,
        time_ms: u64,
        nonce: &str,
        body_digest: &str,
    ) -> String {
        let text = request_text(path, node, time_ms, nonce, body_digest);
        hex(hmac::sign(&self.0, text.as_bytes()).as_ref())
    }

    /// Signs an answer.
    pub(crate) fn answer(&self, nonce: &str, status: u16, body: &[u8]) -> String {
        hex(hmac::sign(&self.0, answer_text(nonce, status, body).as_bytes()).as_ref())
    }

    /// Whether an answer is from somebody who has the secret.
    pub(crate) fn is_answer(&self, signature: &str, nonce: &str, status: u16, body: &[u8]) -> bool {
        self.fits(&answer_text(nonce, status, body), signature)
    }

    /// Signs a frame of an answer to a call.
    pub(crate) fn frame(
        &self,
        nonce: &str,
        number: u64,
        kind: u8,
        payload: &[u8],
    ) -> [u8; FRAME_TAG_BYTES] {
        let mut signing = hmac::Context::with_key(&self.0);
        for part in [b"frame\n", nonce.as_bytes(), b"\n"] {
            signing.update(part);
        }
        signing.update(&number.to_le_bytes());
        signing.update(&[kind]);
        signing.update(payload);
        let mut tag = [0; FRAME_TAG_BYTES];
        for (to, from) in tag.iter_mut().zip(signing.sign().as_ref()) {
            *to = *from;
        }
        tag
    }

    /// Whether a frame is from somebody who has the secret, and is this one of this answer.
    pub(crate) fn is_frame(
        &self,
        tag: &[u8],
        nonce: &str,
        number: u64,
        kind: u8,
        payload: &[u8],
    ) -> bool {
        let expected = self.frame(nonce, number, kind, payload);
        // All bytes, so that the time tells nothing of the first one that differs.
        let differs = expected
            .iter()
            .zip(tag)
            .fold(0, |differs, (expected, found)| differs | (expected ^ found));
        tag.len() == expected.len() && differs == 0
    }

    fn fits(&self, text: &str, signature: &str) -> bool {
        unhex(signature)
            .is_some_and(|signature| hmac::verify(&self.0, text.as_bytes(), &signature).is_ok())
    }
}

/// The SHA-256 of a body, as it stands in what is signed.
pub(crate) fn digest_of(body: &[u8]) -> String {
    hex(digest(&SHA256, body).as_ref())
}

fn request_text(path: &str, node: NodeId, time_ms: u64, nonce: &str, body_digest: &str) -> String {
    format!("request\n{path}\n{node}\n{time_ms}\n{nonce}\n{body_digest}")
}

fn answer_text(nonce: &str, status: u16, body: &[u8]) -> String {
    format!("answer\n{nonce}\n{status}\n{}", digest_of(body))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .chars()
        .map(|digit| {
            digit
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
        })
        .collect::<Option<_>>()?;
    digits.len().is_multiple_of(2).then(|| {
        digits
            .chunks_exact(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect()
    })
}

/// A request as it came, beside its body.
pub(crate) struct Claim<'a> {
    pub path: &'a str,
    pub node: &'a str,
    pub time_ms: &'a str,
    pub nonce: &'a str,
    pub signature: &'a str,
}

/// Lets requests in.
pub(crate) struct Gate {
    secret: Secret,
    node: NodeId,
    nonces: Mutex<Nonces>,
}

struct Nonces {
    since: Instant,
    now: HashSet<String>,
    before: HashSet<String>,
}

impl Gate {
    /// The gate of a node.
    pub(crate) fn new(secret: Secret, node: NodeId) -> Self {
        let nonces = Nonces {
            since: Instant::now(),
            now: HashSet::new(),
            before: HashSet::new(),
        };
        Self {
            secret,
            node,
            nonces: Mutex::new(nonces),
        }
    }

    /// Looks at a request. `Err` says why it is not let in.
    pub(crate) fn admit(
        &self,
        claim: &Claim<'_>,
        body: &[u8],
        now_ms: u64,
    ) -> Result<(), &'static str> {
        self.admit_with(claim, &digest_of(body), now_ms)
    }

    /// Looks at a request whose body should have this digest.
    pub(crate) fn admit_with(
        &self,
        claim: &Claim<'_>,
        body_digest: &str,
        now_ms: u64,
    ) -> Result<(), &'static str> {
        let (Ok(node), Ok(time_ms)) = (claim.node.parse::<NodeId>(), claim.time_ms.parse::<u64>())
        else {
            return Err("the request is not signed");
        };
        if claim.nonce.is_empty() || claim.nonce.len() > 64 {
            return Err("the request is not signed");
        }
        if !self.secret.fits(
            &request_text(claim.path, node, time_ms, claim.nonce, body_digest),
            claim.signature,
        ) {
            return Err("the request is signed with another secret");
        }
        if node != self.node {
            return Err("the request is for a node of another number");
        }
        if now_ms.abs_diff(time_ms) > APART_MS_MAX {
            return Err("the clocks of the nodes are more than 30 s apart");
        }
        self.nonces.lock().take(claim.nonce)
    }

    /// What signs the frames of answers to calls.
    pub(crate) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Signs an answer.
    pub(crate) fn sign(&self, nonce: &str, status: u16, body: &[u8]) -> String {
        self.secret.answer(nonce, status, body)
    }
}

impl Nonces {
    fn take(&mut self, nonce: &str) -> Result<(), &'static str> {
        if self.since.elapsed() >= GENERATION {
            self.before = std::mem::take(&mut self.now);
            self.since = Instant::now();
        }
        if self.now.len() >= NONCES_MAX {
            return Err("too many requests");
        }
        if self.before.contains(nonce) || !self.now.insert(nonce.to_owned()) {
            return Err("the request has been here before");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim<'a>(signature: &'a str, nonce: &'a str) -> Claim<'a> {
        Claim {
            path: "/propose",
            node: "2",
            time_ms: "5000",
            nonce,
            signature,
        }
    }

    #[tokio::test]
    async fn a_request_is_let_in_once_with_the_secret_at_its_time_and_as_it_was_sent() {
        let secret = Secret::new(b"a secret of some length");
        let gate = Gate::new(secret.clone(), 2);
        let signature = secret.request("/propose", 2, 5_000, "n", b"body");
        assert!(gate.admit(&claim(&signature, "n"), b"bodY", 5_000).is_err());
        assert!(
            gate.admit(
                &Claim {
                    path: "/status",
                    ..claim(&signature, "n")
                },
                b"body",
                5_000
            )
            .is_err()
        );
        assert!(
            gate.admit(&claim(&signature, "n"), b"body", 40_000)
                .is_err()
        );
        assert!(gate.admit(&claim(&signature, "m"), b"body", 5_000).is_err());
        assert_eq!(gate.admit(&claim(&signature, "n"), b"body", 9_000), Ok(()));
        assert_eq!(
            gate.admit(&claim(&signature, "n"), b"body", 9_000),
            Err("the request has been here before")
        );
        let other =
            Secret::new(b"another secret of length").request("/propose", 2, 5_000, "o", b"body");
        assert!(gate.admit(&claim(&other, "o"), b"body", 5_000).is_err());
        let elsewhere = secret.request("/propose", 3, 5_000, "p", b"body");
        assert!(
            gate.admit(
                &Claim {
                    node: "3",
                    ..claim(&elsewhere, "p")
                },
                b"body",
                5_000
            )
            .is_err()
        );
    }
}
