//! Tests of access to foreign servers: allow-list, passwords, encryption.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::Arc;

use orrery_http_client::AllowList;
use orrery_sql::ForeignAccess;

use crate::foreign::cluster::{Cluster, LOCKED, PASSWORD, Source, USER, source};
use crate::support::Place;

#[tokio::test(flavor = "multi_thread")]
async fn only_hosts_that_were_allowed_are_connected_to_for_old_definitions_too() {
    let place = Place::new();
    let create =
        "create external table t stored as postgres location 'postgres://me@127.0.0.1:1/d'";
    let error = place.run(create).await.unwrap_err();
    assert!(
        error.starts_with("42501") && error.contains("127.0.0.1:1"),
        "{error}"
    );
    let elsewhere = ForeignAccess::to(
        AllowList::parse(["10.0.0.0/8", "127.0.0.1:2"]).unwrap(),
        None,
    );
    let place = Place::with_foreign(&elsewhere);
    assert!(place.run(create).await.unwrap_err().starts_with("42501"));
    // A name that leads to this machine is no way around it.
    let by_name = ForeignAccess::to(AllowList::parse(["*"]).unwrap(), None);
    let place = Place::with_foreign(&by_name);
    assert!(place.run(create).await.unwrap_err().starts_with("42501"));
    assert!(
        place
            .run(&create.replace("127.0.0.1", "localhost"))
            .await
            .unwrap_err()
            .starts_with("42501")
    );

    let Some(source) = source() else { return };
    source.psql("create table t (id int primary key); insert into t values (1)");
    let here = format!("127.0.0.1:{}", source.cluster.port);
    let place = Place::with_foreign(&ForeignAccess::to(AllowList::parse([here]).unwrap(), None));
    place.run(&source.create("t", "")).await.unwrap();
    assert_eq!(place.rows("select id from t").await.unwrap(), ["1"]);
    // The same database under a process that was not allowed to go there: the definition is seen,
    // the table is not read.
    let other = place.opened_with(&ForeignAccess::refused());
    assert!(
        other
            .rows("select id from t")
            .await
            .unwrap_err()
            .starts_with("42501")
    );
    let known = "select column_name from information_schema.columns where table_name = 't'";
    assert_eq!(other.rows(known).await.unwrap(), ["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_come_from_files_and_are_shown_nowhere() {
    let Some(source) = source() else { return };
    source.psql(&format!("create table t (id int primary key); insert into t values (1); grant select on t to {LOCKED}"));
    let address = source.address_of(LOCKED);
    let create = |options: &str| {
        format!("create external table t stored as postgres {options} location '{address}'")
    };
    let place = Place::with_foreign(&ForeignAccess::anywhere(None));
    let error = place.run(&create("")).await.unwrap_err();
    assert!(error.starts_with("HV00N"), "{error}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pass");
    let write = |password: &str| {
        std::fs::write(&path, format!("127.0.0.1:*:*:{LOCKED}:{password}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    write("wr0ng");
    let option = format!("options ('passfile' '{}')", path.display());
    let error = place.run(&create(&option)).await.unwrap_err();
    assert!(
        error.starts_with("HV00N") && error.contains("28P01") && !error.contains("wr0ng"),
        "{error}"
    );
    write(PASSWORD);
    place.run(&create(&option)).await.unwrap();
    assert_eq!(place.rows("select id from t").await.unwrap(), ["1"]);
    for shown in [
        "select definition from orrery_catalog.relations",
        "explain verbose select id from t",
        "select * from pg_catalog.pg_class",
        "select * from information_schema.tables",
    ] {
        let shown = place.rows(shown).await.unwrap().join("\n");
        assert!(!shown.contains("pa55word"), "{shown}");
    }
    // The file that the process knows, for statements that name none.
    let place = Place::with_foreign(&ForeignAccess::anywhere(Some(path.clone())));
    place.run(&create("")).await.unwrap();
    assert_eq!(place.rows("select id from t").await.unwrap(), ["1"]);
    let error = place
        .run(
            &create("")
                .replace(" t ", " u ")
                .replace(LOCKED, &format!("{LOCKED}:s3cret")),
        )
        .await
        .unwrap_err();
    assert!(
        error.starts_with("22023") && !error.contains("s3cret"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn encryption_is_as_sslmode_says() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let openssl = |arguments: &[&str]| {
        let made = Command::new("openssl")
            .args(arguments)
            .current_dir(directory.path())
            .output();
        made.is_ok_and(|made| made.status.success())
    };
    std::fs::write(
        directory.path().join("names"),
        "subjectAltName=DNS:db.test\n",
    )
    .unwrap();
    let is_made = openssl(&[
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        "ca.key",
        "-out",
        "ca.crt",
        "-subj",
        "/CN=authority",
        "-days",
        "2",
    ]) && openssl(&[
        "req",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        "server.key",
        "-out",
        "server.csr",
        "-subj",
        "/CN=db.test",
    ]) && openssl(&[
        "x509",
        "-req",
        "-in",
        "server.csr",
        "-CA",
        "ca.crt",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-days",
        "2",
        "-extfile",
        "names",
        "-out",
        "server.crt",
    ]);
    if !is_made {
        println!("skipped: no openssl");
        return;
    }
    let (certificate, key) = (path("server.crt"), path("server.key"));
    let settings = [
        ("ssl", "on"),
        ("ssl_cert_file", certificate.as_str()),
        ("ssl_key_file", key.as_str()),
    ];
    let Some(cluster) = Cluster::start(&settings) else {
        return;
    };
    let source = Source::in_cluster(Arc::new(cluster));
    source.psql("create view t as select ssl from pg_stat_ssl where pid = pg_backend_pid()");
    let authority = path("ca.crt");
    let connect = async |mode: &str, root: Option<&str>| {
        let place = Place::with_foreign(&ForeignAccess::anywhere(None));
        let root = root
            .map(|path| format!(", 'sslrootcert' '{path}'"))
            .unwrap_or_default();
        let address = source.address_of(USER);
        place.run(&format!("create external table t stored as postgres options ('sslmode' '{mode}'{root}) location '{address}'")).await?;
        Ok::<_, String>(place.rows("select ssl from t").await?.join(","))
    };
    assert_eq!(connect("disable", None).await.unwrap(), "false");
    assert_eq!(connect("prefer", None).await.unwrap(), "true");
    assert_eq!(connect("require", None).await.unwrap(), "true");
    assert_eq!(
        connect("verify-ca", Some(&authority)).await.unwrap(),
        "true"
    );
    // The public authorities know nothing of ours, and the certificate is for another name.
    assert!(
        connect("verify-ca", None)
            .await
            .unwrap_err()
            .starts_with("HV00N")
    );
    assert!(
        connect("verify-full", Some(&authority))
            .await
            .unwrap_err()
            .starts_with("HV00N")
    );
}
