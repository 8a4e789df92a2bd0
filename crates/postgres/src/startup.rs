//! Startup of a connection: TLS if the client asks for it, its StartupMessage, and its password.
//!
//! ```text
//!   SSLRequest -> 'S' and TLS, or 'N'    GSSENCRequest -> 'N'    CancelRequest -> done, no answer
//!   StartupMessage -> [SASL: SCRAM-SHA-256, two rounds] -> AuthenticationOk
//! ```
//!
//! With users, a client authenticates as the one it names: by a certificate of that user, or by the
//! exchange. Unknown names go through the same exchange.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use orrery_tls::{PeerNames, Served};
use pgwire::api::DefaultClient;
use pgwire::api::auth::mechanism::{AuthMechanismFactory, AuthState};
use pgwire::messages::startup::{Authentication, PasswordMessageFamily};
use pgwire::messages::{Message, startup::SASLInitialResponse, startup::SASLResponse};
use pgwire::tokio::server::MaybeTls;
use tokio::net::TcpStream;

use crate::cancel::CancelKeys;
use crate::frontend::{Body, Frontend, Malformed};
use crate::message::put_message;
use crate::password::Verifier;
use crate::refusal::{Refusal, Stopped};
use crate::wire::Wire;

/// Most bytes of a message before authentication.
const MESSAGE_BYTES_MAX: usize = 10_000;
const CANCEL_REQUEST: i32 = 80_877_102;
const SSL_REQUEST: i32 = 80_877_103;
const GSS_REQUEST: i32 = 80_877_104;
/// First byte of a client that begins with TLS at once.
const TLS_HANDSHAKE: u8 = 0x16;
/// The protocol's ALPN name.
const NAME: &[u8] = b"postgresql";
/// The protocols that clients may negotiate within TLS.
pub(crate) const ALPN: &[&[u8]] = &[NAME];
/// The name of the password exchange.
const SCRAM: &str = "SCRAM-SHA-256";

/// The settings of a StartupMessage.
#[derive(Debug, PartialEq)]
pub(crate) struct Greeting {
    pub(crate) minor: u16,
    pub(crate) settings: BTreeMap<String, String>,
}

/// A client that has sent its StartupMessage.
pub(crate) struct Greeted {
    pub(crate) wire: Wire,
    pub(crate) is_secure: bool,
    /// The names in the client's certificate, if it has one.
    pub(crate) certificate: Option<PeerNames>,
    pub(crate) greeting: Greeting,
}

/// The result of a password exchange.
pub(crate) struct Proof {
    pub(crate) is_right: bool,
    /// The last message of a successful exchange.
    last: Option<Authentication>,
}

/// Reads a client's packets up to its StartupMessage; `None` if it only wanted to cancel a
/// statement.
pub(crate) async fn greet(
    stream: TcpStream,
    tls: Option<&Served>,
    keys: &CancelKeys,
    message_bytes_max: usize,
) -> Stopped<Option<Greeted>> {
    let mut first = [0];
    let is_direct = stream.peek(&mut first).await? == 1 && first[0] == TLS_HANDSHAKE;
    let mut is_secure = false;
    let mut certificate = None;
    let mut wire = Wire::new(MaybeTls::Plain(stream), message_bytes_max);
    if is_direct {
        let Some(tls) = tls else {
            return Ok(None);
        };
        (wire, certificate) = secure(wire, tls, message_bytes_max, true).await?;
        is_secure = true;
    }
    // One packet of each kind at most.
    for _ in 0..3 {
        let mut packet = first_packet(&mut wire).await?;
        match packet.number()? {
            SSL_REQUEST => match tls {
                Some(tls) if !is_secure => {
                    wire.output.put_u8(b'S');
                    wire.flush().await?;
                    (wire, certificate) = secure(wire, tls, message_bytes_max, false).await?;
                    is_secure = true;
                }
                _ => {
                    wire.output.put_u8(b'N');
                    wire.flush().await?;
                }
            },
            GSS_REQUEST => {
                wire.output.put_u8(b'N');
                wire.flush().await?;
            }
            CANCEL_REQUEST => {
                let process = packet.number()?;
                keys.cancel(process, packet.number()?);
                return Ok(None);
            }
            version => {
                let greeted = read_greeting(version, packet);
                return Ok(Some(Greeted {
                    greeting: told_if_refused(&mut wire, greeted).await?,
                    wire,
                    is_secure,
                    certificate,
                }));
            }
        }
    }
    Err(Malformed("too many requests before the start").into())
}

/// Sends the error of a refused startup at once.
async fn told_if_refused<T>(wire: &mut Wire, result: Result<T, Refusal>) -> Stopped<T> {
    if let Err(refusal) = &result {
        refusal.write(&mut wire.output);
        wire.flush().await?;
    }
    Ok(result?)
}

async fn first_packet(wire: &mut Wire) -> Stopped<Body> {
    let mut head = wire.bytes(4).await?;
    let length = head.get_u32() as usize;
    if !(8..=MESSAGE_BYTES_MAX).contains(&length) {
        // A client of another protocol would not understand an answer.
        return Err(Refusal::fatal("08P01", "invalid length of startup packet").into());
    }
    Ok(Body(wire.bytes(length - 4).await?))
}

async fn secure(
    wire: Wire,
    tls: &Served,
    message_bytes_max: usize,
    is_direct: bool,
) -> Stopped<(Wire, Option<PeerNames>)> {
    // A man in the middle could have put something before the first encrypted byte.
    let socket = wire.into_socket();
    let Some(MaybeTls::Plain(stream)) = socket else {
        return Err(Refusal::fatal("08P01", "received unencrypted data after SSL request").into());
    };
    let stream = tls.accept(stream).await?;
    if is_direct && stream.get_ref().1.alpn_protocol() != Some(NAME) {
        return Err(Refusal::fatal("08P01", "direct TLS without the protocol's name").into());
    }
    let certificate = PeerNames::of(&stream);
    let socket = MaybeTls::Tls(Box::new(stream));
    Ok((Wire::new(socket, message_bytes_max), certificate))
}

pub(crate) fn read_greeting(version: i32, mut packet: Body) -> Result<Greeting, Refusal> {
    if version >> 16 != 3 {
        return Err(Refusal::fatal(
            "0A000",
            format!(
                "unsupported frontend protocol {}.{}: server supports 3.0",
                version >> 16,
                version & 0xffff
            ),
        ));
    }
    let mut settings = BTreeMap::new();
    loop {
        let name = packet.text()?;
        if name.is_empty() {
            break;
        }
        settings.insert(name, packet.text()?);
    }
    if !settings.contains_key("user") {
        return Err(Refusal::fatal(
            "28000",
            "no PostgreSQL user name specified in startup packet",
        ));
    }
    Ok(Greeting {
        minor: (version & 0xffff) as u16,
        settings,
    })
}

/// Writes NegotiateProtocolVersion: the protocol's version, and the client's unknown options.
pub(crate) fn negotiate(greeting: &mut Greeting, output: &mut BytesMut) {
    let (unknown, settings): (BTreeMap<_, _>, _) = std::mem::take(&mut greeting.settings)
        .into_iter()
        .partition(|(name, _)| name.starts_with("_pq_."));
    greeting.settings = settings;
    if greeting.minor == 0 && unknown.is_empty() {
        return;
    }
    put_message(output, b'v', |body| {
        // The whole number, 3.0.
        body.put_u32(3 << 16);
        body.put_u32(u32::try_from(unknown.len()).unwrap_or(u32::MAX));
        for name in unknown.keys() {
            body.put_slice(name.as_bytes());
            body.put_u8(0);
        }
    });
}

/// The error for a failed password exchange; it says nothing else.
pub(crate) fn wrong_password(user: &str) -> Refusal {
    Refusal::fatal(
        "28P01",
        format!("password authentication failed for user \"{user}\""),
    )
}

/// Runs the password exchange. The client does not learn the result yet.
pub(crate) async fn prove(
    wire: &mut Wire,
    verifier: Verifier,
    tls: Option<&Served>,
    address: SocketAddr,
) -> Stopped<Proof> {
    let exchange = verifier
        .exchange(tls.map(Served::certificate))
        .map_err(|error| Refusal::fatal("XX000", error.to_string()))?;
    let mut exchange: Box<dyn pgwire::api::auth::mechanism::AuthMechanism> = exchange.create();
    let client = DefaultClient::<()>::new(address, tls.is_some());
    let wrong = Proof {
        is_right: false,
        last: None,
    };
    let Ok(mut state) = exchange.begin(&client).await else {
        return Ok(wrong);
    };
    let mut is_first = true;
    loop {
        match state {
            AuthState::InProgress(request) => ask(wire, &request).await?,
            AuthState::Ok { final_message, .. } => {
                return Ok(Proof {
                    is_right: true,
                    last: final_message,
                });
            }
            AuthState::Failed(_) => return Ok(wrong),
        }
        let Frontend::Password(body) = wire.message(MESSAGE_BYTES_MAX).await? else {
            return Err(Refusal::fatal("08P01", "expected SASL response").into());
        };
        let answer = match is_first {
            true => first_answer(body)?,
            false => PasswordMessageFamily::SASLResponse(SASLResponse::new(body)),
        };
        is_first = false;
        state = match exchange.next(&client, answer).await {
            Ok(state) => state,
            Err(error) => {
                tracing::info!("PostgreSQL client {address}: no password exchange: {error}");
                return Ok(wrong);
            }
        };
    }
}

impl Proof {
    /// Sends the client the last message of the exchange.
    pub(crate) fn accept(self, wire: &mut Wire) -> Result<(), Refusal> {
        self.last.map_or(Ok(()), |last| put(wire, &last))
    }
}

fn put(wire: &mut Wire, request: &Authentication) -> Result<(), Refusal> {
    let put = request.encode(&mut wire.output);
    put.map_err(|error| Refusal::fatal("XX000", error.to_string()))
}

async fn ask(wire: &mut Wire, request: &Authentication) -> Stopped<()> {
    put(wire, request)?;
    Ok(wire.flush().await?)
}

/// The name of the exchange that the client has chosen, and its first message.
pub(crate) fn first_answer(body: Bytes) -> Result<PasswordMessageFamily, Refusal> {
    let mut body = Body(body);
    let method = body.text()?;
    if !method.starts_with(SCRAM) {
        return Err(Refusal::fatal(
            "28000",
            format!("{method} is not supported"),
        ));
    }
    let length = body.number()?;
    let data = usize::try_from(length)
        .ok()
        .filter(|length| *length == body.0.remaining())
        .map(|_| std::mem::take(&mut body.0));
    Ok(PasswordMessageFamily::SASLInitialResponse(
        SASLInitialResponse::new(method, data),
    ))
}
