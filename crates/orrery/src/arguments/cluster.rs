//! Arguments of `orrery cluster`, and of a node of a cluster.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use orrery_server::DIVIDE_FROM;

/// How `serve` becomes a node of a cluster.
#[derive(Args)]
pub(crate) struct ClusterArguments {
    /// Run as a node of a cluster. Three or five nodes replicate the database, each in its own --db
    /// DIR
    #[arg(long, requires_all = ["node", "cluster_secret_file"], conflicts_with_all = ["read_only", "stand_by"])]
    pub(crate) cluster: bool,
    /// Number of this node, from 1; fixed for its --db DIR
    #[arg(long, value_name = "N", requires = "cluster", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) node: Option<u64>,
    /// First nodes of a new cluster, the same list at each. Example:
    /// 1=10.0.0.1:7979,2=10.0.0.2:7979,3=10.0.0.3:7979. A node that is not in the list waits for
    /// `orrery cluster add`
    #[arg(long, value_name = "N=HOST:PORT,...", requires = "cluster", value_delimiter = ',', value_parser = member)]
    pub(crate) peers: Vec<(u64, String)>,
    /// Address at which other nodes reach this one; taken from --peers if not given
    #[arg(long, value_name = "HOST:PORT", requires = "cluster")]
    pub(crate) cluster_address: Option<String>,
    /// Address to listen on for other nodes, such as 0.0.0.0:7979; --cluster-address if not given
    #[arg(long, value_name = "HOST:PORT", requires = "cluster")]
    pub(crate) cluster_listen: Option<String>,
    /// File whose first line is the shared secret of all nodes; at least 16 characters
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub(crate) cluster_secret_file: Option<PathBuf>,
    /// Rows from which a query is distributed over the nodes; smaller queries run on one node
    #[arg(long, value_name = "ROWS", requires = "cluster", default_value_t = DIVIDE_FROM)]
    pub(crate) divide_from: u64,
}

/// What to do with the nodes of a cluster.
#[derive(Subcommand)]
pub(crate) enum ClusterCommand {
    /// Show the state of each node
    Status {
        #[command(flatten)]
        place: ClusterPlace,
    },
    /// Add a running node; returns when it has all data and votes
    Add {
        /// Number and address of the node
        #[arg(value_name = "N=HOST:PORT", value_parser = member)]
        member: (u64, String),
        #[command(flatten)]
        place: ClusterPlace,
    },
    /// Remove a node, also one that is lost
    Remove {
        /// Number of the node
        #[arg(value_name = "N")]
        node: u64,
        #[command(flatten)]
        place: ClusterPlace,
    },
}

/// Which cluster.
#[derive(Args)]
pub(crate) struct ClusterPlace {
    /// HTTP address of any node, such as http://127.0.0.1:7878
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
