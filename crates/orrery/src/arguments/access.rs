//! Arguments of `orrery user`, `group`, `key` and `grant`, which manage users and their rights.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use super::common::{CacheArguments, ReportFormat};

/// What to do with users.
#[derive(Subcommand)]
pub(crate) enum UserCommand {
    /// Add a user. Without --password-file a password is generated and printed once
    Add {
        #[command(flatten)]
        place: AccessPlace,
        #[command(flatten)]
        password: PasswordArguments,
        /// Make the user an administrator, with every right; the first user has to be one
        #[arg(long)]
        administrator: bool,
        /// Group to put the user into; may be repeated
        #[arg(long = "group", value_name = "GROUP")]
        groups: Vec<String>,
        /// External identity of the user; may be repeated. It is the WebID of a certificate, or
        /// ISSUER#CLAIM of an OpenID provider
        #[arg(long = "identity", value_name = "IRI")]
        identities: Vec<String>,
        /// Name: letters, digits and . _ - @ +
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Add or remove external identities of a user. An identity is the WebID of a certificate, or
    /// ISSUER#CLAIM of an OpenID provider
    Set {
        #[command(flatten)]
        place: AccessPlace,
        #[command(flatten)]
        identities: IdentityArguments,
        /// Name of the user
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// List users
    List {
        #[command(flatten)]
        place: AccessPlace,
        /// Output format
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
    },
    /// Change a user's password. Without --password-file one is generated and printed once
    Password {
        #[command(flatten)]
        place: AccessPlace,
        #[command(flatten)]
        password: PasswordArguments,
        /// Name of the user
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Lock a user: no password and no key works until `unlock`
    Lock {
        #[command(flatten)]
        place: AccessPlace,
        /// Name of the user
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Unlock a user
    Unlock {
        #[command(flatten)]
        place: AccessPlace,
        /// Name of the user
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Make a user an administrator
    Promote {
        #[command(flatten)]
        place: AccessPlace,
        /// Name of the user
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Take a user's administrator right away
    Demote {
        #[command(flatten)]
        place: AccessPlace,
        /// Name of the user
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Remove a user, with its keys and rules
    Remove {
        #[command(flatten)]
        place: AccessPlace,
        /// Name of the user
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// What to do with groups of users.
#[derive(Subcommand)]
pub(crate) enum GroupCommand {
    /// Add a group
    Add {
        #[command(flatten)]
        place: AccessPlace,
        /// Name: letters, digits and . _ - @ +
        #[arg(value_name = "GROUP")]
        name: String,
    },
    /// List groups and their users
    List {
        #[command(flatten)]
        place: AccessPlace,
        /// Output format
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
    },
    /// Add or remove external identities of a group. An identity is ISSUER#GROUP of an OpenID
    /// provider
    Set {
        #[command(flatten)]
        place: AccessPlace,
        #[command(flatten)]
        identities: IdentityArguments,
        /// Name of the group
        #[arg(value_name = "GROUP")]
        name: String,
    },
    /// Put users into a group
    Join {
        #[command(flatten)]
        place: AccessPlace,
        /// Name of the group
        #[arg(value_name = "GROUP")]
        name: String,
        /// Names of the users
        #[arg(value_name = "USER", required = true)]
        users: Vec<String>,
    },
    /// Take users out of a group
    Leave {
        #[command(flatten)]
        place: AccessPlace,
        /// Name of the group
        #[arg(value_name = "GROUP")]
        name: String,
        /// Names of the users
        #[arg(value_name = "USER", required = true)]
        users: Vec<String>,
    },
    /// Remove a group, with its rules
    Remove {
        #[command(flatten)]
        place: AccessPlace,
        /// Name of the group
        #[arg(value_name = "GROUP")]
        name: String,
    },
}

/// What to do with keys of programs.
#[derive(Subcommand)]
pub(crate) enum KeyCommand {
    /// Create an API key for a user and print it once
    Add {
        #[command(flatten)]
        place: AccessPlace,
        /// Note about the purpose of the key
        #[arg(long, value_name = "TEXT", default_value = "")]
        note: String,
        /// Days until the key expires; never if not given
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: Option<u32>,
        /// User whose rights the key has
        #[arg(value_name = "USER")]
        user: String,
    },
    /// List keys, without their secrets
    List {
        #[command(flatten)]
        place: AccessPlace,
        /// Output format
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
    },
    /// Remove a key
    Remove {
        #[command(flatten)]
        place: AccessPlace,
        /// Identifier of the key, from `list`
        #[arg(value_name = "KEY")]
        key: String,
    },
}

/// What to do with rules.
#[derive(Subcommand)]
pub(crate) enum GrantCommand {
    /// Grant a right. `write` includes `read`; `administer` includes both
    Add {
        #[command(flatten)]
        place: AccessPlace,
        #[command(flatten)]
        to: WhomArguments,
        #[command(flatten)]
        on: TargetArguments,
        /// Right to grant
        #[arg(value_enum, value_name = "RIGHT")]
        right: RightArgument,
    },
    /// List rules
    List {
        #[command(flatten)]
        place: AccessPlace,
        /// Output format
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
    },
    /// Remove a rule, and with it the right it granted
    Remove {
        #[command(flatten)]
        place: AccessPlace,
        /// Number of the rule, from `list`
        #[arg(value_name = "RULE")]
        rule: u64,
    },
}

/// Where the users are: in a database that no server writes, or behind a server's admin socket.
#[derive(Args)]
#[command(group = ArgGroup::new("access_place").required(true))]
pub(crate) struct AccessPlace {
    /// Directory of the database, or its address in an object store, such as s3://bucket/prefix
    #[arg(long = "db", value_name = "DIR|URL", group = "access_place")]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CacheArguments,
    /// Admin socket of a running server instead, such as http://127.0.0.1:7879. Credentials come
    /// from ORRERY_USER and ORRERY_PASSWORD, or ORRERY_KEY
    #[arg(long, value_name = "URL", group = "access_place")]
    pub(crate) server: Option<String>,
}

/// The password of a user.
#[derive(Args)]
pub(crate) struct PasswordArguments {
    /// File whose first line is the password; - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// Create the user without a password; only keys authenticate it
    #[arg(long, conflicts_with = "password_file")]
    pub(crate) no_password: bool,
}

/// What others call a user or a group.
#[derive(Args)]
#[group(id = "identities", required = true, multiple = true)]
pub(crate) struct IdentityArguments {
    /// Identity to add; may be repeated
    #[arg(long = "identity", value_name = "IRI")]
    pub(crate) more: Vec<String>,
    /// Identity to remove; may be repeated
    #[arg(long = "remove-identity", value_name = "IRI")]
    pub(crate) no_more: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum RightArgument {
    /// See it and its contents
    Read,
    /// Create, change and remove it
    Write,
    /// Grant rights on it to others
    Administer,
}

/// Whom a rule is about.
#[derive(Args)]
#[command(group = ArgGroup::new("whom").required(true))]
pub(crate) struct WhomArguments {
    /// Name of a user
    #[arg(long, value_name = "NAME", group = "whom")]
    pub(crate) user: Option<String>,
    /// Name of a group, for all its users
    #[arg(long, value_name = "NAME", group = "whom")]
    pub(crate) group: Option<String>,
    /// All authenticated users
    #[arg(long, group = "whom")]
    pub(crate) authenticated: bool,
    /// Everybody, including anonymous requests
    #[arg(long, group = "whom")]
    pub(crate) anyone: bool,
}

/// What a rule is about.
#[derive(Args)]
#[command(group = ArgGroup::new("target").required(true))]
pub(crate) struct TargetArguments {
    /// IRI of a graph
    #[arg(long, value_name = "IRI", group = "target")]
    pub(crate) graph: Option<String>,
    /// All graphs whose IRIs begin with this
    #[arg(long, value_name = "PREFIX", group = "target")]
    pub(crate) graphs_below: Option<String>,
    /// All graphs that a query selects, in which ?user is the asker. Example: 'SELECT ?g { GRAPH ?g
    /// { ?event <https://example.org/attendee> ?user } }'
    #[arg(long, value_name = "QUERY", group = "target")]
    pub(crate) graphs_of: Option<String>,
    /// The default graph
    #[arg(long, group = "target")]
    pub(crate) default_graph: bool,
    /// All graphs, present and future
    #[arg(long, group = "target")]
    pub(crate) all_graphs: bool,
    /// Name of a table or view, such as public.orders
    #[arg(long, value_name = "TABLE", group = "target")]
    pub(crate) table: Option<String>,
    /// Name of a schema, for all its tables and views
    #[arg(long, value_name = "SCHEMA", group = "target")]
    pub(crate) schema: Option<String>,
    /// All tables, present and future
    #[arg(long, group = "target")]
    pub(crate) all_tables: bool,
}
