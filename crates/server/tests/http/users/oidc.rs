//! OpenID tokens as `Authorization: Bearer`; `oidc/tests.rs` beside the code has the wrong tokens.

use crate::client::ask;
use crate::fixture::TestServer;
use crate::users::access::{CSV, OBJECTS, PASSWORD, basic, give, some_users};
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use orrery_server::{OidcOptions, ServeError, Server, ServerOptions, UserClaim};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use std::net::Ipv4Addr;

/// A provider on loopback with one key.
struct Provider {
    issuer: String,
    key: Ed25519KeyPair,
}

impl Provider {
    async fn start() -> Self {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let key = Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap();
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let configuration = json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")});
        let x = URL_SAFE_NO_PAD.encode(key.public_key());
        let keys = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "1", "x": x}]});
        let router = Router::new()
            .route(
                "/.well-known/openid-configuration",
                get(async move || Json(configuration)),
            )
            .route("/keys", get(async move || Json(keys)));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { issuer, key }
    }

    /// The header with a token that says this, and whose it is.
    fn bearer(&self, mut claims: Value) -> String {
        claims["iss"] = json!(self.issuer);
        claims["aud"] = json!("orrery");
        claims["exp"] = json!(4_102_444_800_u64);
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!(
            "{}.{}",
            part(json!({"alg": "EdDSA", "kid": "1"})),
            part(claims)
        );
        let signature = URL_SAFE_NO_PAD.encode(self.key.sign(signed.as_bytes()));
        format!("Authorization: Bearer {signed}.{signature}")
    }

    fn identity(&self, name: &str) -> String {
        format!("{}#{name}", self.issuer)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_the_user_who_was_given_its_identity_and_no_other() {
    let provider = Provider::start().await;
    let mut commands = some_users();
    commands.extend([
        json!({"do": "set_user", "user": "ann", "identities": [provider.identity("248")]}),
        json!({"do": "add_user", "user": "eve", "password": "none", "identities": [provider.identity("666")]}),
        json!({"do": "set_user", "user": "eve", "locked": true}),
        json!({"do": "add_group", "group": "editors"}),
        json!({"do": "add_group", "group": "readers"}),
        json!({"do": "set_group", "group": "readers", "identities": [provider.identity("all-readers")]}),
        json!({"do": "grant", "to": {"group": "editors"}, "right": "read", "on": "all_graphs"}),
        json!({"do": "grant", "to": {"group": "readers"}, "right": "read", "on": {"graph": "http://example.com/g2"}}),
    ]);
    let server = TestServer::start_with(|options| {
        give(&options.db, &commands);
        options.oidc = Some(OidcOptions {
            groups_claim: Some("groups".to_owned()),
            user_claim: UserClaim::Subject,
            ..OidcOptions::new(&provider.issuer, "orrery")
        });
    })
    .await;
    let seen = async |claims: Value| {
        let answer = ask(server.address, OBJECTS, &[&provider.bearer(claims), CSV]).await;
        (answer.status, answer.text().lines().count() - 1)
    };
    assert_eq!(seen(json!({"sub": "248"})).await, (200, 1));
    // The provider's names are not ours: neither a user's nor a group's name lets a token in.
    for name in ["ann", "root", "666", "unknown"] {
        let (status, _) = seen(json!({"sub": name})).await;
        assert_eq!(status, 401, "{name}");
    }
    let with = |groups: &[&str]| json!({"sub": "248", "groups": groups});
    assert_eq!(seen(with(&["editors", "readers"])).await, (200, 1));
    assert_eq!(seen(with(&["all-readers"])).await, (200, 2));
    // For that token alone.
    assert_eq!(seen(json!({"sub": "248"})).await, (200, 1));
    // Passwords go on beside it, and other texts are no tokens.
    let password = basic("bob", PASSWORD);
    let answer = ask(server.address, OBJECTS, &[&password, CSV]).await;
    assert_eq!(answer.status, 200);
    for text in ["a.b.c", "..", "orr_abcdefghijkl_no"] {
        let header = format!("Authorization: Bearer {text}");
        let answer = ask(server.address, OBJECTS, &[&header]).await;
        assert_eq!(answer.status, 401, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_keys_a_token_is_neither_right_nor_wrong() {
    let provider = Provider::start().await;
    // A port that nobody listens at.
    let closed = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let issuer = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let server = TestServer::start_with(|options| {
        give(&options.db, &some_users());
        options.oidc = Some(OidcOptions::new(&issuer, "orrery"));
    })
    .await;
    let other = Provider {
        issuer,
        key: provider.key,
    };
    let token = other.bearer(json!({"sub": "248"}));
    let answer = ask(server.address, OBJECTS, &[&token]).await;
    assert_eq!(answer.status, 502, "{}", answer.text());
    let password = basic("ann", PASSWORD);
    assert_eq!(ask(server.address, OBJECTS, &[&password]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_is_refused_where_there_are_no_users() {
    let home = tempfile::tempdir().unwrap();
    let db = home.path().join("db");
    orrery_storage::build_small(&db, &[]).unwrap();
    let mut options = ServerOptions::new(db);
    options.listen.set_port(0);
    options.oidc = Some(OidcOptions::new("https://login.example.org", "orrery"));
    let bound = Server::bind(options.clone()).await.map(drop);
    assert!(matches!(bound, Err(ServeError::NobodyToVouchFor { .. })));
    options.oidc = Some(OidcOptions::new("http://login.example.org", "orrery"));
    let bound = Server::bind(options).await.map(drop);
    assert!(matches!(bound, Err(ServeError::Oidc(_))));
}
