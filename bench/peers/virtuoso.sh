#!/usr/bin/env bash
# OpenLink Virtuoso (Debian's virtuoso-opensource 7.2.5) as a peer of `orrery bench compare`.
#
#   virtuoso.sh setup            installs it if it is missing
#   virtuoso.sh load DIR FILE    a new database in DIR from N-Triples, as quick as its own
#                                loader can: one loader a core, then a checkpoint
#   virtuoso.sh serve DIR        serves it in the foreground; SPARQL at
#                                http://127.0.0.1:PORT_HTTP/sparql?default-graph-uri=GRAPH
#
# Settings follow its documentation for RDF: a quarter of the machine's memory each for
# buffers of 8 KiB (its data fit twice), no limit on rows or time of a query, all cores for one
# query. Ports come from PORT_HTTP and PORT_SQL and are bound to loopback only.
set -euo pipefail

graph="http://example.org/bsbm"
port_http="${PORT_HTTP:-28890}"
port_sql="${PORT_SQL:-28111}"
cores="$(nproc)"

setup() {
    if command -v virtuoso-t >/dev/null && command -v isql-vt >/dev/null; then
        return
    fi
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        echo "virtuoso.sh: please install virtuoso-opensource 7 (virtuoso-t, isql-vt)" >&2
        exit 1
    fi
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
        virtuoso-opensource-7-bin virtuoso-opensource-7-common >/dev/null
}

configure() { # DIR DATA_DIR
    local buffers
    buffers="$(awk '/MemTotal/ { printf "%d", $2 / 4 / 8 }' /proc/meminfo)"
    mkdir -p "$1/tmp"
    cat >"$1/virtuoso.ini" <<INI
[Database]
DatabaseFile = $1/virtuoso.db
ErrorLogFile = $1/virtuoso.log
LockFile = $1/virtuoso.lck
TransactionFile = $1/virtuoso.trx
xa_persistent_file = $1/virtuoso.pxa
MaxCheckpointRemap = $((buffers / 4))
FileExtend = 200
Striping = 0

[TempDatabase]
DatabaseFile = $1/virtuoso-temp.db
TransactionFile = $1/virtuoso-temp.trx
MaxCheckpointRemap = 2000
Striping = 0

[Parameters]
ServerPort = 127.0.0.1:$port_sql
ServerThreads = 50
NumberOfBuffers = $buffers
MaxDirtyBuffers = $((buffers * 3 / 4))
CheckpointInterval = 0
ThreadsPerQuery = $cores
AsyncQueueMaxThreads = $((cores * 2))
MaxQueryMem = 4G
VectorSize = 1000
MaxVectorSize = 1000000
AdjustVectorSize = 1
DefaultIsolation = 2
DirsAllowed = $1, ${2:-$1}

[HTTPServer]
ServerPort = 127.0.0.1:$port_http
ServerThreads = 20
MaxClientConnections = 20
KeepAliveTimeout = 60
MaxKeepAlives = 20

[Client]
SQL_QUERY_TIMEOUT = 0
SQL_TXN_TIMEOUT = 0

[SPARQL]
ResultSetMaxRows = 1000000000
MaxQueryCostEstimationTime = 0
MaxQueryExecutionTime = 0
DefaultGraph = $graph
INI
}

sql() {
    isql-vt "127.0.0.1:$port_sql" dba dba ERRORS=STDOUT VERBOSE=OFF PROMPT=OFF exec="$1"
}

wait_until_up() { # PID
    for _ in $(seq 600); do
        if sql "status();" >/dev/null 2>&1; then return; fi
        if ! kill -0 "$1" 2>/dev/null; then break; fi
        sleep 0.2
    done
    echo "virtuoso.sh: the server did not come up" >&2
    exit 1
}

load() { # DIR FILE
    local file data
    file="$(realpath "$2")"
    data="$(dirname "$file")"
    mkdir -p "$1"
    local dir
    dir="$(realpath "$1")"
    configure "$dir" "$data"
    # Its loader works on files: one part for each core.
    split --number="l/$cores" --additional-suffix=.nt "$file" "$dir/part-"
    virtuoso-t -f -c "$dir/virtuoso.ini" >/dev/null 2>&1 &
    local server=$!
    wait_until_up "$server"
    sql "ld_dir('$dir', 'part-*.nt', '$graph');" >/dev/null
    local loaders=()
    local start
    start="$(date +%s.%N)"
    for _ in $(seq "$cores"); do
        sql "rdf_loader_run();" >/dev/null &
        loaders+=($!)
    done
    wait "${loaders[@]}"
    # Updates over HTTP come as the user SPARQL.
    sql 'GRANT SPARQL_UPDATE TO "SPARQL";' >/dev/null
    sql "checkpoint;" >/dev/null
    awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "seconds %.3f\n", b - a }'
    rm -f "$dir"/part-*.nt
    sql "shutdown;" >/dev/null 2>&1 || true
    wait "$server" || true
    echo "bytes $(stat --format=%s "$dir/virtuoso.db")"
}

serve() { # DIR
    local dir
    dir="$(realpath "$1")"
    configure "$dir"
    exec virtuoso-t -f -c "$dir/virtuoso.ini"
}

case "${1:-}" in
setup) setup ;;
load) load "$2" "$3" ;;
serve) serve "$2" ;;
*)
    sed -n '2,/^set/p' "$0" | sed '$d' >&2
    exit 2
    ;;
esac
