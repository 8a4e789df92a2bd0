use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use serde_json::{Value, json};

use super::keys::{Keys, Signed};
use super::provider::Vouched;
use super::token::{TOKEN_BYTES_MAX, Token};
use super::*;

const AUDIENCE: &str = "orrery";

/// A token signed by an RSA key of 2,048 bits; the key's modulus follows.
const RSA_TOKEN: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYSJ9.eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUub3JnIiwiYXVkIjoib3JyZXJ5IiwiZXhwIjo0MTAyNDQ0ODAwLCJzdWIiOiJhbm4ifQ.quGqP7bEc4JikUl4kvFGdx7wwx1VeRmJUYo1gCe0HeNO4Lt9SR7WLUoFR71NYCaVUBd19vZUXcoYVLx5EfGREqxcFaEBJ2New3497IKilhSipkiPExyfdwKdiVe1GRmglbb7911fwO6Y0NShWifhdNQVq99wBTKzWzqY3xwu7MPKGwPC1Ra2c7i0yx8EouaCaNZLZSgA-vsX03Lj3Sny_yhcF_EcZVErmwfeQLFyR1JHrf9X5_pvTK_Epo9kpZ_yCcIqaer2tphFVW25hpuMro8JJPvAS_Sd0G2rrm5WykBjp2Ja0FTrQRLRpoUK2izyCzl5waZtKN76Xc4h0my5GA";
const RSA_N: &str = "xZEjW-QlUCB-3r1LEZdhpwsVQBG1vzEdG99yTly8F8s-LJ3rXvJ_5VD-BzexGuLiXx1DYjCc4WTcJXXjZ7XNJvNUaHdsCepXct3gU7ZrmGTFMTs3Qt-IKFP_NKKWz_iCU0eLIy9ebeTTcARSx6qYtwHQ9wjLGow7_Lrp64Jl73I53X9q3-ho4CCzruY5w5qjZ3fC591zophGWiCyc8O1gCuUK_de2qDBiIoVaEZpSYrdS2064va8wKP-ZXefAvgrrEfRfgr1KUxLlzVKxDe_Inm_6hkpLS2qrcTVMXBPyvfpSPbWCAJLT_NbE9qPV8PfiGXaa55snxqmelOsQRTxEw";

enum Secret {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// A signing key of a provider.
struct TestKey {
    id: &'static str,
    secret: Secret,
}

impl TestKey {
    fn p256(id: &'static str) -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, made.as_ref(), &random).unwrap();
        let secret = Secret::P256(pair);
        Self { id, secret }
    }

    fn ed25519(id: &'static str) -> Self {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let secret = Secret::Ed25519(Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap());
        Self { id, secret }
    }

    fn algorithm(&self) -> &'static str {
        match self.secret {
            Secret::P256(_) => "ES256",
            Secret::Ed25519(_) => "EdDSA",
        }
    }

    fn jwk(&self) -> Value {
        match &self.secret {
            Secret::P256(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "kid": self.id, "use": "sig",
                    "x": encode(&point[1..33]), "y": encode(&point[33..])})
            }
            Secret::Ed25519(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "kid": self.id, "alg": "EdDSA",
                    "x": encode(pair.public_key().as_ref())})
            }
        }
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let signed = unsigned(header, claims);
        let signature = match &self.secret {
            Secret::P256(pair) => {
                let signature = pair.sign(&SystemRandom::new(), signed.as_bytes());
                encode(signature.unwrap().as_ref())
            }
            Secret::Ed25519(pair) => encode(pair.sign(signed.as_bytes()).as_ref()),
        };
        format!("{signed}.{signature}")
    }

    fn token(&self, claims: &Value) -> String {
        let header = json!({"alg": self.algorithm(), "kid": self.id, "typ": "at+jwt"});
        self.sign(&header, claims)
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn unsigned(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| encode(value.to_string().as_bytes());
    format!("{}.{}", part(header), part(claims))
}

fn now() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap().as_secs_f64()
}

/// A provider on loopback.
struct Fake {
    issuer: String,
    keys: Arc<Mutex<Value>>,
    asked: Arc<AtomicUsize>,
    serving: tokio::task::JoinHandle<()>,
}

impl Fake {
    async fn start(keys: &[&TestKey]) -> Self {
        Self::naming(keys, None, None).await
    }

    /// Starts a provider whose configuration names this issuer and this place of its keys.
    async fn naming(keys: &[&TestKey], issuer: Option<&str>, place: Option<&str>) -> Self {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = tokio::net::TcpListener::bind(loopback).await.unwrap();
        let own = format!("http://{}", listener.local_addr().unwrap());
        let configuration = json!({
            "issuer": issuer.unwrap_or(&own),
            "jwks_uri": place.map_or(format!("{own}/keys"), str::to_owned),
        });
        let (all, asked) = (
            Arc::new(Mutex::new(set(keys))),
            Arc::new(AtomicUsize::new(0)),
        );
        let (served, counted) = (Arc::clone(&all), Arc::clone(&asked));
        let router = Router::new()
            .route(
                "/.well-known/openid-configuration",
                get(async move || Json(configuration)),
            )
            .route(
                "/keys",
                get(async move || {
                    counted.fetch_add(1, Ordering::Relaxed);
                    Json(served.lock().unwrap().clone())
                }),
            );
        let serving = async move { axum::serve(listener, router).await.unwrap() };
        Self {
            issuer: own,
            keys: all,
            asked,
            serving: tokio::spawn(serving),
        }
    }

    fn options(&self) -> OidcOptions {
        OidcOptions {
            refetch_after: Duration::ZERO,
            ..OidcOptions::new(&self.issuer, AUDIENCE)
        }
    }

    fn claims(&self) -> Value {
        json!({"iss": self.issuer, "aud": AUDIENCE, "exp": now() + 300.0, "sub": "ann"})
    }

    fn vouched(&self) -> Result<Vouched, Refused> {
        let user = format!("{}#ann", self.issuer);
        let groups = Vec::new();
        Ok(Vouched { user, groups })
    }
}

fn set(keys: &[&TestKey]) -> Value {
    let keys: Vec<Value> = keys.iter().map(|key| key.jwk()).collect();
    json!({ "keys": keys })
}

fn with(claims: &Value, name: &str, value: Value) -> Value {
    let mut claims = claims.clone();
    claims[name] = value;
    claims
}

#[tokio::test]
async fn tokens_of_the_provider_are_taken_and_others_are_not() {
    let (p256, ed25519) = (TestKey::p256("one"), TestKey::ed25519("two"));
    let fake = Fake::start(&[&p256, &ed25519]).await;
    let provider = OidcProvider::new(fake.options()).unwrap();
    let claims = fake.claims();
    let is = |name: &str, value: Value| with(&claims, name, value);
    let good = [
        p256.token(&claims),
        ed25519.token(&claims),
        p256.token(&is("aud", json!(["other", AUDIENCE]))),
        // Clocks may differ by a minute.
        p256.token(&is("exp", json!(now() - 50.0))),
        p256.token(&is("nbf", json!(now() + 50.0))),
        p256.sign(&json!({"alg": "ES256"}), &claims),
    ];
    for token in good {
        assert_eq!(provider.vouched(&token).await, fake.vouched());
    }

    let token = p256.token(&claims);
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let header = |name: &str, value: Value| {
        let header = json!({"alg": "ES256", "kid": "one"});
        p256.sign(&with(&header, name, value), &claims)
    };
    let none = unsigned(&json!({"alg": "none"}), &claims);
    // Signed with a public key, as if that were a shared secret.
    let shared = unsigned(&json!({"alg": "HS256", "kid": "two"}), &claims);
    let public = match &ed25519.secret {
        Secret::Ed25519(pair) => pair.public_key().as_ref().to_vec(),
        Secret::P256(_) => unreachable!(),
    };
    let secret = hmac::Key::new(hmac::HMAC_SHA256, &public);
    let shared_signature = encode(hmac::sign(&secret, shared.as_bytes()).as_ref());
    let mut without_end = claims.clone();
    without_end.as_object_mut().unwrap().remove("exp");
    let other = TestKey::p256("one");
    let changed = unsigned(
        &json!({"alg": "ES256", "kid": "one"}),
        &is("sub", json!("root")),
    );
    let wrong = [
        (
            "it has expired",
            p256.token(&is("exp", json!(now() - 70.0))),
        ),
        (
            "it is not valid yet",
            p256.token(&is("nbf", json!(now() + 70.0))),
        ),
        (
            "it is meant for another audience",
            p256.token(&is("aud", json!("other"))),
        ),
        (
            "it is meant for another audience",
            p256.token(&is("aud", json!([]))),
        ),
        (
            "it is another issuer's",
            p256.token(&is("iss", json!("https://other.example"))),
        ),
        (
            "it is another issuer's",
            p256.token(&is("iss", json!(format!("{}/", fake.issuer)))),
        ),
        (
            "its claims lack `iss`, `aud` or `exp`, or are none",
            p256.token(&without_end),
        ),
        (
            "it lacks the claim that says who somebody is",
            p256.token(&is("sub", json!(""))),
        ),
        (
            "it lacks the claim that says who somebody is",
            p256.token(&is("sub", json!(7))),
        ),
        (
            "its algorithm is none of RS256, ES256 and EdDSA",
            format!("{none}."),
        ),
        (
            "its algorithm is none of RS256, ES256 and EdDSA",
            format!("{none}.{signature}"),
        ),
        (
            "its algorithm is none of RS256, ES256 and EdDSA",
            format!("{shared}.{shared_signature}"),
        ),
        ("its signature is wrong", other.token(&claims)),
        ("its signature is wrong", format!("{changed}.{signature}")),
        ("its signature is wrong", format!("{signed}.")),
        (
            "a part is not in base64url",
            format!("{signed}.{signature}="),
        ),
        (
            "its key is none of the issuer's",
            header("kid", json!("three")),
        ),
        // The key is for another algorithm.
        (
            "its key is none of the issuer's",
            header("kid", json!("two")),
        ),
        (
            "its key is none of the issuer's",
            header("alg", json!("RS256")),
        ),
        (
            "it is a token for something else (`typ`)",
            header("typ", json!("logout+jwt")),
        ),
        (
            "its header wants something to be understood that is not",
            header("crit", json!(["b64"])),
        ),
        (
            "it is too long",
            p256.token(&is("more", json!("x".repeat(TOKEN_BYTES_MAX)))),
        ),
        ("it has not three parts", "a.b".to_owned()),
        ("its header is not that of a token", "e30.e30.".to_owned()),
    ];
    for (why, token) in wrong {
        let refused = provider.vouched(&token).await;
        assert_eq!(refused, Err(Refused::Wrong(why)), "{token}");
    }
}

#[test]
fn signatures_by_rsa_are_checked() {
    let jwk =
        json!({"kty": "RSA", "kid": "rsa", "alg": "RS256", "use": "sig", "n": RSA_N, "e": "AQAB"});
    let keys = |jwk: &Value| Keys::parse(json!({ "keys": [jwk] }).to_string().as_bytes()).unwrap();
    let token = Token::parse(RSA_TOKEN).unwrap();
    let options = OidcOptions::new("https://login.example.org", AUDIENCE);
    assert_eq!(token.check(&options, now()), Ok(()));
    assert_eq!(keys(&jwk).signed(&token), Signed::Yes);
    let other = unsigned(
        &json!({"alg": "RS256", "kid": "rsa"}),
        &json!({"iss": "https://login.example.org", "aud": AUDIENCE, "exp": 4102444800_u64, "sub": "root"}),
    );
    let signature = RSA_TOKEN.rsplit('.').next().unwrap();
    let changed = format!("{other}.{signature}");
    let changed = Token::parse(&changed).unwrap();
    assert_eq!(keys(&jwk).signed(&changed), Signed::No);
    // A key for another use is skipped.
    for (name, value) in [("use", "enc"), ("alg", "RS512"), ("kty", "oct")] {
        assert_eq!(keys(&with(&jwk, name, json!(value))).len(), 0);
    }
}

#[tokio::test]
async fn addresses_are_taken_if_they_were_checked_and_groups_if_they_are_wanted() {
    let key = TestKey::p256("one");
    let fake = Fake::start(&[&key]).await;
    let provider = OidcProvider::new(OidcOptions {
        user_claim: UserClaim::Email,
        groups_claim: Some("groups".to_owned()),
        ..fake.options()
    })
    .unwrap();
    let claims = with(&fake.claims(), "email", json!("ann@example.org"));
    let claims = with(&claims, "groups", json!(["editors", 7, "readers"]));
    let unchecked = Err(Refused::Wrong(
        "its issuer has not checked the address (`email_verified`)",
    ));
    assert_eq!(provider.vouched(&key.token(&claims)).await, unchecked);
    let no = with(&claims, "email_verified", json!(false));
    assert_eq!(provider.vouched(&key.token(&no)).await, unchecked);
    let yes = with(&claims, "email_verified", json!(true));
    let identity = |name: &str| format!("{}#{name}", fake.issuer);
    assert_eq!(
        provider.vouched(&key.token(&yes)).await,
        Ok(Vouched {
            user: identity("ann@example.org"),
            groups: vec![identity("editors"), identity("readers")],
        })
    );
}

#[tokio::test]
async fn new_keys_are_fetched_when_a_token_names_them_and_old_ones_end() {
    let (old, new) = (TestKey::p256("old"), TestKey::ed25519("new"));
    let fake = Fake::start(&[&old]).await;
    let provider = OidcProvider::new(fake.options()).unwrap();
    let claims = fake.claims();
    assert_eq!(provider.vouched(&old.token(&claims)).await, fake.vouched());
    *fake.keys.lock().unwrap() = set(&[&new]);
    assert_eq!(provider.vouched(&new.token(&claims)).await, fake.vouched());
    let gone = provider.vouched(&old.token(&claims)).await;
    assert_eq!(gone, Err(Refused::Wrong("its key is none of the issuer's")));
}

#[tokio::test]
async fn made_up_keys_do_not_have_the_provider_asked_again_and_again() {
    let (key, other) = (TestKey::p256("one"), TestKey::p256("made up"));
    let fake = Fake::start(&[&key]).await;
    let provider = OidcProvider::new(OidcOptions {
        refetch_after: Duration::from_secs(3600),
        ..fake.options()
    })
    .unwrap();
    let claims = fake.claims();
    let made_up = other.token(&claims);
    let many = (0..20).map(|_| provider.vouched(&made_up));
    for refused in futures::future::join_all(many).await {
        assert!(matches!(refused, Err(Refused::Wrong(_))), "{refused:?}");
    }
    assert_eq!(provider.vouched(&key.token(&claims)).await, fake.vouched());
    assert_eq!(fake.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn while_the_provider_is_down_its_keys_go_on() {
    let (key, other) = (TestKey::p256("one"), TestKey::p256("other"));
    let fake = Fake::start(&[&key]).await;
    let late = OidcProvider::new(fake.options()).unwrap();
    let provider = OidcProvider::new(fake.options()).unwrap();
    let claims = fake.claims();
    assert_eq!(provider.vouched(&key.token(&claims)).await, fake.vouched());
    fake.serving.abort();
    let unknown = provider.vouched(&other.token(&claims)).await;
    assert!(matches!(unknown, Err(Refused::Wrong(_))), "{unknown:?}");
    assert_eq!(provider.vouched(&key.token(&claims)).await, fake.vouched());
    // A provider object that never had the keys cannot verify.
    let asked = late.vouched(&key.token(&claims)).await;
    assert_eq!(asked, Err(Refused::NoKeys));
}

#[tokio::test]
async fn what_a_provider_says_of_itself_is_checked() {
    let key = TestKey::p256("one");
    for (issuer, place) in [
        (Some("https://other.example"), None),
        (None, Some("http://other.example/keys")),
        (None, Some("file:///etc/passwd")),
        (None, Some("no address")),
    ] {
        let fake = Fake::naming(&[&key], issuer, place).await;
        let provider = OidcProvider::new(fake.options()).unwrap();
        let asked = provider.vouched(&key.token(&fake.claims())).await;
        assert_eq!(asked, Err(Refused::NoKeys));
        assert_eq!(fake.asked.load(Ordering::Relaxed), 0);
    }
    for issuer in [
        "login.example.org",
        "http://login.example.org",
        "ftp://127.0.0.1",
        "https://a@login.example.org",
        "https://login.example.org?a",
        "https://login.example.org#a",
    ] {
        let refused = OidcProvider::new(OidcOptions::new(issuer, AUDIENCE));
        assert!(refused.is_err(), "{issuer}");
    }
}
