//! Who comes in: each call has to bring the password (`authorization: Basic`), or the token that it got for it (`Bearer`).

use arrow_flight::HandshakeResponse;
use futures::StreamExt;
use futures::stream::BoxStream;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Code, Request, Response, Status};

use crate::Password;
use crate::password::same;
use crate::refusal::refusal;

/// Answers of a handshake.
pub(crate) type Handshakes = BoxStream<'static, Result<HandshakeResponse, Status>>;

/// The guard of a server.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    password: Option<Password>,
    /// Of this run of the server: who has it has shown the password.
    token: String,
}

impl Guard {
    pub(crate) fn new(password: Option<Password>) -> Self {
        let token: [u8; 16] = rand::random();
        Self {
            password,
            token: token.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    /// Lets a call in, or not.
    pub(crate) fn admit(&self, request: Request<()>) -> Result<Request<()>, Status> {
        let Some(password) = &self.password else {
            return Ok(request);
        };
        let given = request.metadata().get("authorization");
        let given = given.and_then(|value| value.to_str().ok());
        let is_right = match given.and_then(|value| value.split_once(' ')) {
            Some((kind, token)) if kind.eq_ignore_ascii_case("bearer") => {
                same(token.trim().as_bytes(), self.token.as_bytes())
            }
            Some((kind, basic)) if kind.eq_ignore_ascii_case("basic") => {
                password_of(basic.trim()).is_some_and(|text| password.is(&text))
            }
            _ => false,
        };
        match is_right {
            true => Ok(request),
            false => Err(refusal(
                Code::Unauthenticated,
                "28P01",
                "a password is needed, and this was none or a wrong one",
            )),
        }
    }

    /// The token for who has shown the password, in the header and as the answer.
    pub(crate) fn shake_hands(&self) -> Result<Response<Handshakes>, Status> {
        let answer = HandshakeResponse {
            protocol_version: 0,
            payload: self.token.clone().into(),
        };
        let mut response = Response::new(futures::stream::once(async move { Ok(answer) }).boxed());
        let header: Result<MetadataValue<Ascii>, _> = format!("Bearer {}", self.token).parse();
        let header = header
            .map_err(|error| refusal(Code::Internal, "XX000", format!("no token: {error}")))?;
        response.metadata_mut().insert("authorization", header);
        Ok(response)
    }
}

/// The password of `user:password` in base64. Any user may come in.
fn password_of(basic: &str) -> Option<String> {
    let text = String::from_utf8(bytes_of(basic)?).ok()?;
    text.split_once(':')
        .map(|(_, password)| password.to_owned())
}

/// RFC 4648, section 4, with or without the signs at the end that fill it up.
fn bytes_of(base64: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(base64.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for sign in base64.trim_end_matches('=').bytes() {
        let value = match sign {
            b'A'..=b'Z' => sign - b'A',
            b'a'..=b'z' => sign - b'a' + 26,
            b'0'..=b'9' => sign - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(header: &str) -> Request<()> {
        let mut request = Request::new(());
        let metadata = request.metadata_mut();
        metadata.insert("authorization", header.parse().unwrap());
        request
    }

    #[test]
    fn base64_is_read() {
        for (base64, text) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg", "foob"),
        ] {
            assert_eq!(bytes_of(base64).unwrap(), text.as_bytes());
        }
        assert_eq!(bytes_of("Zm9v!"), None);
        assert_eq!(bytes_of("+/8=").unwrap(), [0xfb, 0xff]);
    }

    #[test]
    fn calls_are_let_in_with_the_password_or_the_token() {
        let guard = Guard::new(Password::new("open"));
        // user:open
        assert!(guard.admit(call("Basic dXNlcjpvcGVu")).is_ok());
        let token = guard.shake_hands().unwrap();
        let token = token.metadata().get("authorization").unwrap();
        assert!(guard.admit(call(token.to_str().unwrap())).is_ok());
        // user:shut
        for wrong in ["Basic dXNlcjpzaHV0", "Bearer ", "Bearer 00", "dXNlcjpvcGVu"] {
            let refused = guard.admit(call(wrong)).unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated, "{wrong}");
        }
        assert!(guard.admit(Request::new(())).is_err());
        assert!(Guard::new(None).admit(Request::new(())).is_ok());
    }
}
