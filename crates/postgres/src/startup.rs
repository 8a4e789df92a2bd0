//! From a new socket to a client that is known: TLS if it asks for it, what it wants to be, and its password.
//!
//! ```text
//!   SSLRequest -> 'S' and TLS, or 'N'      GSSENCRequest -> 'N'      CancelRequest -> done, without an answer
//!   StartupMessage -> [SASL: SCRAM-SHA-256, two rounds] -> AuthenticationOk
//! ```
//!
//! Where the database has users, a client is the one that it names: by a certificate of that user, or by the exchange. Names of nobody go through the same exchange.

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

/// Messages of clients that are not known yet.
const MESSAGE_BYTES_MAX: usize = 10_000;
const CANCEL_REQUEST: i32 = 80_877_102;
const SSL_REQUEST: i32 = 80_877_103;
const GSS_REQUEST: i32 = 80_877_104;
/// First byte of a client that begins with TLS at once.
const TLS_HANDSHAKE: u8 = 0x16;
/// The name of the protocol within TLS.
const NAME: &[u8] = b"postgresql";
/// What may be asked for within TLS.
pub(crate) const ALPN: &[&[u8]] = &[NAME];
/// The name of the exchange.
const SCRAM: &str = "SCRAM-SHA-256";

/// What a client wants to be.
#[derive(Debug, PartialEq)]
pub(crate) struct Greeting {
    pub(crate) minor: u16,
    pub(crate) settings: BTreeMap<String, String>,
}

/// A client that has said what it wants.
pub(crate) struct Greeted {
    pub(crate) wire: Wire,
    pub(crate) is_secure: bool,
    /// What the client's certificate says, if it has one.
    pub(crate) certificate: Option<PeerNames>,
    pub(crate) greeting: Greeting,
}

/// What an exchange has come to.
pub(crate) struct Proof {
    pub(crate) is_right: bool,
    /// What the client is told where it is right, and let in.
    last: Option<Authentication>,
}

/// Speaks with a client until it has said what it wants to be; `None` if it wanted something else, which is done.
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
    // One of each kind at most.
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

/// Who is refused before it is known is told at once.
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
        // Somebody who speaks another protocol would not understand an answer.
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
    // Whoever stands between could have put something before the first encrypted byte.
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

/// Tells a client of a newer protocol which one is spoken, and which of its wishes are not known.
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

/// What who does not know the password is told, and nothing else.
pub(crate) fn wrong_password(user: &str) -> Refusal {
    Refusal::fatal(
        "28P01",
        format!("password authentication failed for user \"{user}\""),
    )
}

/// Has the client show that it knows a password. It is not told yet whether it does.
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
    /// Tells the client that it was right.
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

/// The name of the exchange that the client has chosen, and its first words.
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
