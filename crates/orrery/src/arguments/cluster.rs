//! Arguments of a node of a cluster, and of `orrery cluster`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use orrery_server::DIVIDE_FROM;

/// How `serve` becomes a node of a cluster.
#[derive(Args)]
pub(crate) struct ClusterArguments {
    /// Be a node of a cluster: three or five that hold the database together, each in its own --db DIR
    #[arg(long, requires_all = ["node", "cluster_secret_file"], conflicts_with_all = ["read_only", "stand_by"])]
    pub(crate) cluster: bool,
    /// The number of this node, above 0; it belongs to the directory
    #[arg(long, value_name = "N", requires = "cluster", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) node: Option<u64>,
    /// The first nodes of a new cluster, the same list for all of them, such as 1=10.0.0.1:7979,2=10.0.0.2:7979,3=10.0.0.3:7979. Without it, and where the list does not have it, a node waits to be added to one
    #[arg(long, value_name = "N=HOST:PORT,...", requires = "cluster", value_delimiter = ',', value_parser = member)]
    pub(crate) peers: Vec<(u64, String)>,
    /// Where the other nodes reach this one; taken from --peers if not given
    #[arg(long, value_name = "HOST:PORT", requires = "cluster")]
    pub(crate) cluster_address: Option<String>,
    /// Where this node listens for the others, if not at that address, such as 0.0.0.0:7979
    #[arg(long, value_name = "HOST:PORT", requires = "cluster")]
    pub(crate) cluster_listen: Option<String>,
    /// A file with what the nodes know each other by: its first line, 16 characters at least, the same for all
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub(crate) cluster_secret_file: Option<PathBuf>,
    /// Divide a query among the nodes if it handles so many rows; smaller ones stay where they are asked
    #[arg(long, value_name = "ROWS", requires = "cluster", default_value_t = DIVIDE_FROM)]
    pub(crate) divide_from: u64,
}

/// What to do with the nodes of a cluster.
#[derive(Subcommand)]
pub(crate) enum ClusterCommand {
    /// How each node is
    Status {
        #[command(flatten)]
        place: ClusterPlace,
    },
    /// Add a node that runs: returns when it has everything and votes
    Add {
        /// Its number and where the others reach it
        #[arg(value_name = "N=HOST:PORT", value_parser = member)]
        member: (u64, String),
        #[command(flatten)]
        place: ClusterPlace,
    },
    /// Remove a node, which may be lost
    Remove {
        /// Its number
        #[arg(value_name = "N")]
        node: u64,
        #[command(flatten)]
        place: ClusterPlace,
    },
}

/// Which cluster.
#[derive(Args)]
pub(crate) struct ClusterPlace {
    /// One of its servers, such as http://127.0.0.1:7878
    #[arg(long, value_name = "URL")]
    pub(crate) server: String,
}

/// `N=HOST:PORT`
fn member(text: &str) -> Result<(u64, String), String> {
    let wrong = || "expected N=HOST:PORT, such as 1=10.0.0.1:7979".to_owned();
    let (number, address) = text.split_once('=').ok_or_else(wrong)?;
    let number = number.parse().map_err(|_| wrong())?;
    let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
    match !host.is_empty() && port.parse::<u16>().is_ok() && number > 0 {
        true => Ok((number, address.to_owned())),
        false => Err(wrong()),
    }
}
