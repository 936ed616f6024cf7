# A Redis Cluster for scripts/stack: six nodes in numbered folders. At the start 1 to 3 are masters, 4 to 6 their replicas.
# shellcheck shell=bash

CLUSTER_MASTERS=3

# Writes the settings of the nodes of a folder, on ports that are free now: configure_cluster FOLDER [SETTING=VALUE...]
# The port of the cluster bus would be 10,000 above the other by default, where outgoing connections have theirs.
# A master sends its data to a replica at once, not after Redis's default of 5 s, and a replica keeps no file of them: a node
# that was killed starts empty.
configure_cluster() {
    local folder=$1 node ports
    shift
    read -ra ports <<<"$(free_ports $((4 * CLUSTER_MASTERS)))"
    for node in $(seq $((2 * CLUSTER_MASTERS))); do
        mkdir -p "$folder/$node"
        rm -f "$folder/$node/nodes.conf"
        configure_redis "$folder/$node" "${ports[2 * node - 2]}" cluster-enabled=yes cluster-port="${ports[2 * node - 1]}" \
            cluster-announce-ip=127.0.0.1 cluster-node-timeout=2000 cluster-require-full-coverage=no \
            repl-diskless-sync-delay=0 rdb-del-sync-files=yes "$@"
    done
}

run_cluster() {
    run_node "$1" redis-server "$1/redis.conf"
}

# Makes a node, of those that know no others yet, a part of the cluster: masters share the slots, and each node meets those before it.
join_cluster() {
    local folder=${1%/*} node=${1##*/} other
    {
        if [ "$node" -le $CLUSTER_MASTERS ]; then
            echo "CLUSTER SET-CONFIG-EPOCH $node"
            echo "CLUSTER ADDSLOTSRANGE $((16384 * (node - 1) / CLUSTER_MASTERS)) $((16384 * node / CLUSTER_MASTERS - 1))"
        fi
        for other in $(seq $((node - 1))); do
            echo "CLUSTER MEET 127.0.0.1 $(redis_setting "$folder/$other" port) $(redis_setting "$folder/$other" cluster-port)"
        done
    } | ask_redis "$1" >/dev/null
}

# Makes a node the replica of its master, which it can do as soon as it knows that.
replicate_cluster() {
    local master=${1%/*}/$((${1##*/} - CLUSTER_MASTERS))
    [ "$(ask_redis "$1" <<<"CLUSTER REPLICATE $(ask_redis "$master" <<<"CLUSTER MYID")")" = OK ]
}

# Whether a node serves: it sees most of the masters and, if it is a replica, has its master's data.
cluster_serves() {
    local state
    state=$(ask_redis "$1" <<<$'CLUSTER INFO\nINFO replication') || return 1
    grep -qx cluster_state:ok <<<"$state" && ! grep -qx master_link_status:down <<<"$state"
}

# Whether a node serves and knows all slots and all replicas.
cluster_formed() {
    local state
    cluster_serves "$1" || return 1
    state=$(ask_redis "$1" <<<$'CLUSTER INFO\nCLUSTER NODES') || return 1
    grep -qx cluster_slots_ok:16384 <<<"$state" &&
        [ "$(grep -cE '^[0-9a-f]{40} [^ ]+ (myself,)?slave ' <<<"$state")" = $CLUSTER_MASTERS ]
}

cluster_facts() {
    local folder=$1 node addresses=() processes=()
    for node in "$folder"/[1-9]; do
        addresses+=("127.0.0.1:$(redis_setting "$node" port)")
        processes+=("$(cat "$node/pid")")
    done
    local IFS=,
    cat <<FACTS
KINFOLK_TEST_REDIS_CLUSTER=${addresses[*]}
CLUSTER_FOLDER=$folder
CLUSTER_PIDS=${processes[*]}
FACTS
}

# Starts the nodes of a folder as one cluster. Returns 1 if a port was taken meanwhile.
form_cluster() {
    local folder=$1 node
    for node in "$folder"/[1-9]; do
        run_cluster "$node"
    done
    await_nodes redis_responds "$folder"/[1-9] || return 1
    for node in "$folder"/[1-9]; do
        join_cluster "$node"
    done
    await_nodes replicate_cluster "$folder"/[4-6] && await_nodes cluster_formed "$folder"/[1-9]
}

start_cluster() {
    local folder=$1
    shift
    [ ! -e "$folder" ] || die "$folder is there already: stop it first"
    "$SCRIPTS/install" redis-server redis-cli=redis-tools
    mkdir -p "$folder"
    folder=$(cd "$folder" && pwd)
    touch "$folder/cluster"
    for attempt in 1 2 3 4 5; do
        configure_cluster "$folder" "$@"
        ! form_cluster "$folder" || break
        [ "$attempt" -lt 5 ] || die "Redis found no free ports"
    done
    cluster_facts "$folder"
}

# A node is the replica of the one that has taken over from it. A master that is back before that is one again, and empty.
restart_cluster() {
    local folder node
    folder=$(made_folder "$1" cluster) || exit 1
    find_killed "$folder" "${@:2}"
    for node in ${NODES[@]+"${NODES[@]}"}; do
        run_cluster "$node"
    done
    if [ ${#NODES[@]} -gt 0 ] && ! { await_nodes redis_responds "${NODES[@]}" && await_nodes cluster_serves "${NODES[@]}"; }; then
        die "another process has taken a port of the node"
    fi
    cluster_facts "$folder"
}

stop_cluster() {
    local folder
    [ -e "$1" ] || return 0
    folder=$(made_folder "$1" cluster) || exit 1
    kill_nodes "$folder"/[1-9]
    rm -rf "$folder"
}
