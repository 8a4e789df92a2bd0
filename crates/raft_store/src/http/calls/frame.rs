//! The frames of an answer, each signed, so that truncation and changes are errors.
//!
//! ```text
//! frame   u32 bytes of the payload (little-endian) | u8 kind | payload | 16 bytes of HMAC
//!         (signature.rs: over nonce, number of the frame, kind, payload)
//! ```
//!
//! A message goes as parts of at most [`PART_BYTES`], the last one marked, so that little is held
//! of what is not verified yet, and so that a large message on a slow line is heard on its way.
//! `END` is the last frame of an answer that is whole, `ERROR` of one that is not; keep-alive
//! frames go anywhere between. Bytes are copied twice on their way: into a frame, and out of what
//! came in.

use bytes::{BufMut, Bytes, BytesMut};

use crate::calls::CALL_MESSAGE_BYTES_MAX;
use crate::http::signature::{FRAME_TAG_BYTES, Secret};

/// The largest payload of a frame.
pub(crate) const PART_BYTES: usize = 256 << 10;
/// Length and kind.
const HEAD_BYTES: usize = 5;

/// Whether a frame says only that the other side is there.
const KEEP_ALIVE: u8 = 0;
/// A part of a message, and more of it comes.
const PART: u8 = 1;
/// The last part of a message.
const LAST_PART: u8 = 2;
/// There are no more messages.
const END: u8 = 3;
/// The handler failed; the payload is its text.
const ERROR: u8 = 4;

/// Makes the frames of one answer.
pub(crate) struct Sealer {
    secret: Secret,
    nonce: String,
    frames: u64,
}

impl Sealer {
    /// For the answer to a request.
    pub(crate) fn new(secret: Secret, nonce: String) -> Self {
        Self {
            secret,
            nonce,
            frames: 0,
        }
    }

    /// Says that this side is there.
    pub(crate) fn keep_alive(&mut self) -> Bytes {
        self.seal(KEEP_ALIVE, &[])
    }

    /// Takes the next part of a message; `message` has what is left, `None` when that was the last
    /// one.
    pub(crate) fn part(&mut self, message: &mut Option<Bytes>) -> Option<Bytes> {
        let mut rest = message.take()?;
        let part = rest.split_to(rest.len().min(PART_BYTES));
        let kind = if rest.is_empty() { LAST_PART } else { PART };
        if !rest.is_empty() {
            *message = Some(rest);
        }
        Some(self.seal(kind, &part))
    }

    /// Ends an answer that is whole.
    pub(crate) fn end(&mut self) -> Bytes {
        self.seal(END, &[])
    }

    /// Ends an answer with an error.
    pub(crate) fn error(&mut self, text: &str) -> Bytes {
        let text = &text[..text.floor_char_boundary(PART_BYTES)];
        self.seal(ERROR, text.as_bytes())
    }

    fn seal(&mut self, kind: u8, payload: &[u8]) -> Bytes {
        let mut frame = BytesMut::with_capacity(HEAD_BYTES + payload.len() + FRAME_TAG_BYTES);
        // At most PART_BYTES.
        frame.put_u32_le(payload.len() as u32);
        frame.put_u8(kind);
        frame.put_slice(payload);
        frame.put_slice(&self.secret.frame(&self.nonce, self.frames, kind, payload));
        self.frames += 1;
        frame.freeze()
    }
}

/// What a frame has brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// The other side is there: a keep-alive, or a part of a message.
    Alive,
    /// A whole message.
    Message(Bytes),
    /// The answer is whole.
    End,
    /// The handler failed.
    Failed(String),
}

/// Reads the frames of one answer.
pub(crate) struct Opener {
    secret: Secret,
    nonce: String,
    frames: u64,
    /// What came and is no whole frame yet; less than one and what was read last.
    bytes: BytesMut,
    /// Parts of a message that is not whole yet.
    parts: BytesMut,
}

impl Opener {
    /// For the answer to a request.
    pub(crate) fn new(secret: Secret, nonce: String) -> Self {
        Self {
            secret,
            nonce,
            frames: 0,
            bytes: BytesMut::new(),
            parts: BytesMut::new(),
        }
    }

    /// Takes bytes as they come.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.put_slice(bytes);
    }

    /// Whether there are bytes that were not read.
    pub(crate) fn has_rest(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Reads the next frame, if it is there. `Err` says what is wrong with it; nothing after that
    /// can be read.
    pub(crate) fn next(&mut self) -> Result<Option<Heard>, &'static str> {
        let Some((head, _)) = self.bytes.split_first_chunk::<HEAD_BYTES>() else {
            return Ok(None);
        };
        let [a, b, c, d, kind] = *head;
        let payload_bytes = u32::from_le_bytes([a, b, c, d]) as usize;
        if payload_bytes > PART_BYTES {
            return Err("a frame is longer than frames are: it was changed on its way");
        }
        if self.bytes.len() < HEAD_BYTES + payload_bytes + FRAME_TAG_BYTES {
            return Ok(None);
        }
        let mut payload = self
            .bytes
            .split_to(HEAD_BYTES + payload_bytes + FRAME_TAG_BYTES);
        let tag = payload.split_off(HEAD_BYTES + payload_bytes);
        let payload = payload.split_off(HEAD_BYTES);
        if !self
            .secret
            .is_frame(&tag, &self.nonce, self.frames, kind, &payload)
        {
            return Err(
                "a frame is not signed with this cluster's secret, or was changed on its way",
            );
        }
        self.frames += 1;
        self.heard(kind, payload).map(Some)
    }

    fn heard(&mut self, kind: u8, payload: BytesMut) -> Result<Heard, &'static str> {
        let is_between = self.parts.is_empty();
        match kind {
            KEEP_ALIVE => Ok(Heard::Alive),
            LAST_PART if is_between => Ok(Heard::Message(payload.freeze())),
            PART | LAST_PART => {
                if self.parts.len() + payload.len() > CALL_MESSAGE_BYTES_MAX {
                    return Err("a message is larger than messages may be");
                }
                self.parts.put_slice(&payload);
                if kind == PART {
                    return Ok(Heard::Alive);
                }
                Ok(Heard::Message(std::mem::take(&mut self.parts).freeze()))
            }
            END if is_between => Ok(Heard::End),
            END => Err("the answer ends within a message"),
            ERROR => Ok(Heard::Failed(
                String::from_utf8_lossy(&payload).into_owned(),
            )),
            _ => Err("a frame of a kind that this version does not know"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer(nonce: &str) -> Sealer {
        Sealer::new(Secret::new(b"a secret of some length"), nonce.to_owned())
    }

    fn opener() -> Opener {
        Opener::new(Secret::new(b"a secret of some length"), "n".to_owned())
    }

    fn frames(sealer: &mut Sealer, messages: &[Bytes]) -> Vec<Bytes> {
        let mut frames = Vec::new();
        for message in messages {
            frames.push(sealer.keep_alive());
            let mut rest = Some(message.clone());
            while let Some(frame) = sealer.part(&mut rest) {
                frames.push(frame);
            }
        }
        frames.push(sealer.end());
        frames
    }

    fn read(bytes: &[u8], step: usize) -> Result<Vec<Heard>, &'static str> {
        let mut opener = opener();
        let mut heard = Vec::new();
        for chunk in bytes.chunks(step) {
            opener.push(chunk);
            while let Some(next) = opener.next()? {
                if next != Heard::Alive {
                    heard.push(next);
                }
            }
        }
        Ok(heard)
    }

    fn messages() -> Vec<Bytes> {
        [0, 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES + 5]
            .into_iter()
            .map(|bytes| (0..bytes).map(|at| (at % 251) as u8).collect())
            .collect()
    }

    #[test]
    fn messages_come_out_as_they_went_in_however_the_bytes_are_cut() {
        let bytes = frames(&mut sealer("n"), &messages()).concat();
        let expected: Vec<Heard> = messages()
            .into_iter()
            .map(Heard::Message)
            .chain([Heard::End])
            .collect();
        for step in [1, 20, 4_096, PART_BYTES + 1, bytes.len()] {
            assert!(read(&bytes, step).unwrap() == expected, "steps of {step}");
        }
    }

    #[test]
    fn a_frame_that_is_left_out_doubled_moved_or_of_another_answer_is_an_error() {
        let messages = [Bytes::from_static(b"one"), Bytes::from_static(b"two")];
        let whole = frames(&mut sealer("n"), &messages);
        assert!(read(&whole.concat(), 7).is_ok());
        for at in 0..whole.len() - 1 {
            let mut without = whole.clone();
            without.remove(at);
            assert!(read(&without.concat(), 7).is_err(), "without frame {at}");
            let mut doubled = whole.clone();
            doubled.insert(at, whole[at].clone());
            assert!(read(&doubled.concat(), 7).is_err(), "frame {at} twice");
            let mut moved = whole.clone();
            moved.swap(at, at + 1);
            assert!(read(&moved.concat(), 7).is_err(), "frame {at} later");
        }
        let other = frames(&mut sealer("m"), &messages);
        assert!(read(&other.concat(), 7).is_err());
    }

    #[test]
    fn a_bit_that_is_flipped_anywhere_is_an_error_or_leaves_the_answer_without_an_end() {
        let whole = frames(&mut sealer("n"), &[Bytes::from_static(b"one")]).concat();
        for bit in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let heard = read(&changed, changed.len());
            assert!(
                heard.is_err() || !heard.unwrap().contains(&Heard::End),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn an_error_of_the_handler_is_told_and_its_text_is_cut_between_letters() {
        let text = "ä".repeat(PART_BYTES);
        let frame = sealer("n").error(&text);
        let heard = read(&frame, frame.len()).unwrap();
        assert_eq!(heard, [Heard::Failed("ä".repeat(PART_BYTES / 2))]);
    }
}
