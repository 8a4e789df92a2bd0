//! Commands about who may do what: user, group, key, grant.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use super::common::{CacheArguments, ReportFormat};

/// What to do with users.
#[derive(Subcommand)]
pub(crate) enum UserCommand {
    /// Add a user; without --password-file a password is made, and printed once
    Add {
        #[command(flatten)]
        place: AccessPlace,
        #[command(flatten)]
        password: PasswordArguments,
        /// May see, change and administer everything; the first user has to
        #[arg(long)]
        administrator: bool,
        /// Puts the user into a group; may be repeated
        #[arg(long = "group", value_name = "GROUP")]
        groups: Vec<String>,
        /// What those call the user who vouch for it: the WebID of a certificate, or ISSUER#CLAIM of an OpenID provider; may be repeated
        #[arg(long = "identity", value_name = "IRI")]
        identities: Vec<String>,
        /// Letters, digits and . _ - @ +
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Say what others call a user: the WebID of a certificate, or ISSUER#CLAIM of an OpenID provider
    Set {
        #[command(flatten)]
        place: AccessPlace,
        #[command(flatten)]
        identities: IdentityArguments,
        /// The user
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// List the users
    List {
        #[command(flatten)]
        place: AccessPlace,
        /// How to report
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
    },
    /// Give a user another password; without --password-file one is made, and printed once
    Password {
        #[command(flatten)]
        place: AccessPlace,
        #[command(flatten)]
        password: PasswordArguments,
        /// The user
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Let a user in by nothing, neither password nor key, until unlocked
    Lock {
        #[command(flatten)]
        place: AccessPlace,
        /// The user
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Let a locked user in again
    Unlock {
        #[command(flatten)]
        place: AccessPlace,
        /// The user
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Make a user an administrator
    Promote {
        #[command(flatten)]
        place: AccessPlace,
        /// The user
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Make an administrator a user like others
    Demote {
        #[command(flatten)]
        place: AccessPlace,
        /// The user
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Remove a user, with keys and rules
    Remove {
        #[command(flatten)]
        place: AccessPlace,
        /// The user
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
        /// Letters, digits and . _ - @ +
        #[arg(value_name = "GROUP")]
        name: String,
    },
    /// List the groups, with their users
    List {
        #[command(flatten)]
        place: AccessPlace,
        /// How to report
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
    },
    /// Say what an OpenID provider calls a group: ISSUER#GROUP
    Set {
        #[command(flatten)]
        place: AccessPlace,
        #[command(flatten)]
        identities: IdentityArguments,
        /// The group
        #[arg(value_name = "GROUP")]
        name: String,
    },
    /// Put users into a group
    Join {
        #[command(flatten)]
        place: AccessPlace,
        /// The group
        #[arg(value_name = "GROUP")]
        name: String,
        /// The users
        #[arg(value_name = "USER", required = true)]
        users: Vec<String>,
    },
    /// Take users out of a group
    Leave {
        #[command(flatten)]
        place: AccessPlace,
        /// The group
        #[arg(value_name = "GROUP")]
        name: String,
        /// The users
        #[arg(value_name = "USER", required = true)]
        users: Vec<String>,
    },
    /// Remove a group, with its rules
    Remove {
        #[command(flatten)]
        place: AccessPlace,
        /// The group
        #[arg(value_name = "GROUP")]
        name: String,
    },
}

/// What to do with keys of programs.
#[derive(Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key of a user, which is printed once
    Add {
        #[command(flatten)]
        place: AccessPlace,
        /// What it is for
        #[arg(long, value_name = "TEXT", default_value = "")]
        note: String,
        /// After so many days it is nobody's any more
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: Option<u32>,
        /// Whose it is
        #[arg(value_name = "USER")]
        user: String,
    },
    /// List the keys, without what lets in
    List {
        #[command(flatten)]
        place: AccessPlace,
        /// How to report
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
    },
    /// Remove a key
    Remove {
        #[command(flatten)]
        place: AccessPlace,
        /// Its number, as the list has it
        #[arg(value_name = "KEY")]
        key: String,
    },
}

/// What to do with rules.
#[derive(Subcommand)]
pub(crate) enum GrantCommand {
    /// Give a right; write has read with it, administer both
    Add {
        #[command(flatten)]
        place: AccessPlace,
        #[command(flatten)]
        to: WhomArguments,
        #[command(flatten)]
        on: TargetArguments,
        /// What they may do
        #[arg(value_enum, value_name = "RIGHT")]
        right: RightArgument,
    },
    /// List the rules
    List {
        #[command(flatten)]
        place: AccessPlace,
        /// How to report
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
    },
    /// Take a right away that a rule gave
    Remove {
        #[command(flatten)]
        place: AccessPlace,
        /// The rule's number, as the list has it
        #[arg(value_name = "RULE")]
        rule: u64,
    },
}

/// Where the users are: in a database that no server writes, or behind a server's admin socket.
#[derive(Args)]
#[command(group = ArgGroup::new("access_place").required(true))]
pub(crate) struct AccessPlace {
    /// The database's directory, or its address in an object store, such as s3://bucket/prefix
    #[arg(long = "db", value_name = "DIR|URL", group = "access_place")]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CacheArguments,
    /// The admin socket of a running server instead, such as http://127.0.0.1:7879; who asks is in the environment's ORRERY_USER and ORRERY_PASSWORD, or
    /// ORRERY_KEY
    #[arg(long, value_name = "URL", group = "access_place")]
    pub(crate) server: Option<String>,
}

/// The password of a user.
#[derive(Args)]
pub(crate) struct PasswordArguments {
    /// The password is the first line of this file; - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// No password: only keys let the user in
    #[arg(long, conflicts_with = "password_file")]
    pub(crate) no_password: bool,
}

/// What others call a user or a group.
#[derive(Args)]
#[group(id = "identities", required = true, multiple = true)]
pub(crate) struct IdentityArguments {
    /// They call it so, too; may be repeated
    #[arg(long = "identity", value_name = "IRI")]
    pub(crate) more: Vec<String>,
    /// They call it so no more; may be repeated
    #[arg(long = "remove-identity", value_name = "IRI")]
    pub(crate) no_more: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum RightArgument {
    /// See what is in it, and that it is there
    Read,
    /// Change it, make it and remove it
    Write,
    /// Make rules about it
    Administer,
}

/// Whom a rule is about.
#[derive(Args)]
#[command(group = ArgGroup::new("whom").required(true))]
pub(crate) struct WhomArguments {
    /// A user
    #[arg(long, value_name = "NAME", group = "whom")]
    pub(crate) user: Option<String>,
    /// Who is in a group
    #[arg(long, value_name = "NAME", group = "whom")]
    pub(crate) group: Option<String>,
    /// All users
    #[arg(long, group = "whom")]
    pub(crate) authenticated: bool,
    /// Everybody, also who has said nothing of themselves
    #[arg(long, group = "whom")]
    pub(crate) anyone: bool,
}

/// What a rule is about.
#[derive(Args)]
#[command(group = ArgGroup::new("target").required(true))]
pub(crate) struct TargetArguments {
    /// The graph of an IRI
    #[arg(long, value_name = "IRI", group = "target")]
    pub(crate) graph: Option<String>,
    /// The graphs whose IRIs begin so
    #[arg(long, value_name = "PREFIX", group = "target")]
    pub(crate) graphs_below: Option<String>,
    /// The graphs that a query selects, in which ?user is who asks, such as 'SELECT ?g { GRAPH ?g { ?event <https://example.org/attendee> ?user } }'
    #[arg(long, value_name = "QUERY", group = "target")]
    pub(crate) graphs_of: Option<String>,
    /// The default graph
    #[arg(long, group = "target")]
    pub(crate) default_graph: bool,
    /// All graphs, also those to come
    #[arg(long, group = "target")]
    pub(crate) all_graphs: bool,
    /// A table or a view, such as public.orders
    #[arg(long, value_name = "TABLE", group = "target")]
    pub(crate) table: Option<String>,
    /// The tables and views of a schema
    #[arg(long, value_name = "SCHEMA", group = "target")]
    pub(crate) schema: Option<String>,
    /// All tables, also those to come
    #[arg(long, group = "target")]
    pub(crate) all_tables: bool,
}
