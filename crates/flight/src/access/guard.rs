//! The guard of the port: authenticates each call by password (`authorization: Basic`) or token
//! (`Bearer`).
//!
//! A client gets the token for its password. Where the database has users, they are authenticated
//! instead, and the user goes with the call.

use std::convert::Infallible;

use arrow_flight::HandshakeResponse;
use futures::StreamExt;
use futures::stream::BoxStream;
use orrery_service::ports::users::PortUsers;
use tonic::body::Body;
use tonic::codegen::http::header::AUTHORIZATION;
use tonic::codegen::http::{self, HeaderMap};
use tonic::codegen::{BoxFuture, Context, Poll, Service};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::server::NamedService;
use tonic::{Code, Response, Status};

use crate::Password;
use crate::access::by::{By, denied};
use crate::access::password::same;
use crate::access::peer::Peer;
use crate::refusal::refusal;

const BEARER: &str = "Bearer ";

/// The answers of a handshake.
pub(crate) type Handshakes = BoxStream<'static, Result<HandshakeResponse, Status>>;

/// Authenticates the calls of a server.
#[derive(Clone)]
pub(crate) struct Guard {
    /// None where the database has no users.
    users: Option<PortUsers>,
    password: Option<Password>,
    /// The token of this run of the server, for clients that have sent the password.
    token: String,
}

impl Guard {
    pub(crate) fn new(password: Option<Password>, users: Option<PortUsers>) -> Self {
        let token: [u8; 16] = rand::random();
        Self {
            users,
            password,
            token: token.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    /// Authenticates the caller of a call; fails where it is refused.
    async fn admit(&self, headers: &HeaderMap, peer: Option<&Peer>) -> Result<By, Status> {
        match (&self.users, peer) {
            (None, _) => self.require_password(headers).map(|()| By::Anybody),
            (Some(users), Some(peer)) => of_users(users, headers, peer).await,
            (Some(_), None) => Err(refusal(
                Code::Internal,
                "XX000",
                "a call came by no connection",
            )),
        }
    }

    /// Checks a call against the server's one password.
    pub(crate) fn require_password(&self, headers: &HeaderMap) -> Result<(), Status> {
        let Some(password) = &self.password else {
            return Ok(());
        };
        let given = headers.get(AUTHORIZATION);
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
            true => Ok(()),
            false => Err(refusal(
                Code::Unauthenticated,
                "28P01",
                "a password is needed, and this was none or a wrong one",
            )),
        }
    }

    /// Answers a handshake with a token, in the header and as the body.
    ///
    /// Callers with other credentials than the password go on with those.
    pub(crate) fn shake_hands(&self, by: &By) -> Result<Response<Handshakes>, Status> {
        let token = match by {
            By::Anybody => Some(format!("{BEARER}{}", self.token)),
            By::Caller(..) => by.token(),
        };
        let payload = token.as_deref().unwrap_or_default();
        let payload = payload.strip_prefix(BEARER).unwrap_or_default().to_owned();
        let answer = HandshakeResponse {
            protocol_version: 0,
            payload: payload.into(),
        };
        let mut response = Response::new(futures::stream::once(async move { Ok(answer) }).boxed());
        let Some(token) = token else {
            return Ok(response);
        };
        let header: Result<MetadataValue<Ascii>, _> = token.parse();
        let header = header
            .map_err(|error| refusal(Code::Internal, "XX000", format!("no token: {error}")))?;
        response.metadata_mut().insert("authorization", header);
        Ok(response)
    }
}

/// Authenticates the caller of a call against the database's users.
async fn of_users(users: &PortUsers, headers: &HeaderMap, peer: &Peer) -> Result<By, Status> {
    let values = headers.get_all(AUTHORIZATION).iter();
    // A header that is no text matches nobody.
    let values: Vec<String> = values
        .map(|value| value.to_str().unwrap_or_default().to_owned())
        .collect();
    let certificate = peer.certificate.as_ref().map(|names| names.as_slice());
    let caller = users.of_header(&values, certificate, peer.address).await;
    let caller = caller.map_err(|it| denied(&it))?;
    let admitted = caller.admitted().await.map_err(|it| denied(&it))?;
    Ok(By::Caller(Box::new(caller), Box::new(admitted)))
}

/// A service behind the guard.
#[derive(Clone)]
pub(crate) struct Guarded<S> {
    pub(crate) guard: Guard,
    pub(crate) service: S,
}

impl<S: NamedService> NamedService for Guarded<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for Guarded<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        // Takes the instance that is ready, and leaves the clone in its place.
        let other = self.service.clone();
        let mut service = std::mem::replace(&mut self.service, other);
        let guard = self.guard.clone();
        Box::pin(async move {
            let peer = request.extensions().get::<Peer>();
            match guard.admit(request.headers(), peer).await {
                Ok(by) => {
                    request.extensions_mut().insert(by);
                    service.call(request).await
                }
                Err(status) => Ok(status.into_http()),
            }
        })
    }
}

/// The password of `user:password` in base64; any user name is accepted.
fn password_of(basic: &str) -> Option<String> {
    let text = String::from_utf8(bytes_of(basic)?).ok()?;
    text.split_once(':')
        .map(|(_, password)| password.to_owned())
}

/// Decodes base64 (RFC 4648, section 4), with or without padding.
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

    fn call(header: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, header.parse().unwrap());
        headers
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
        let guard = Guard::new(Password::new("open"), None);
        // user:open
        assert!(guard.require_password(&call("Basic dXNlcjpvcGVu")).is_ok());
        let token = guard.shake_hands(&By::Anybody).unwrap();
        let token = token.metadata().get("authorization").unwrap();
        assert!(
            guard
                .require_password(&call(token.to_str().unwrap()))
                .is_ok()
        );
        // user:shut
        for wrong in ["Basic dXNlcjpzaHV0", "Bearer ", "Bearer 00", "dXNlcjpvcGVu"] {
            let refused = guard.require_password(&call(wrong)).unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated, "{wrong}");
        }
        assert!(guard.require_password(&HeaderMap::new()).is_err());
        assert!(
            Guard::new(None, None)
                .require_password(&HeaderMap::new())
                .is_ok()
        );
    }
}
