# A PostgreSQL server and its synchronous standby for scripts/stack, in two numbered folders. The file `primary` says which is which.
# shellcheck shell=bash

pair_facts() {
    local pair=$1 primary standby
    primary=$pair/$(cat "$pair/primary")
    standby=$pair/$(standby_of "$pair")
    cat <<FACTS
DATABASE_URL=$(postgres_url "$primary")
PRIMARY_PID=$(postgres_process "$primary")
STANDBY_URL=$(postgres_url "$standby")
STANDBY_PID=$(postgres_process "$standby" 2>/dev/null || true)
PAIR_URL=postgres://postgres@127.0.0.1:$(cat "$pair/1/port"),127.0.0.1:$(cat "$pair/2/port")/postgres?target_session_attrs=read-write
FACTS
}

# The number of the server that is not the primary.
standby_of() {
    echo $((3 - $(cat "$1/primary")))
}

# Makes the server that was opened, and does not run, the synchronous standby of the primary, by a copy of its data.
follow_primary() {
    local primary
    primary=$1/$(cat "$1/primary")
    copy_postgres "$primary" "$FOLDER/run/data" --write-recovery-conf
    # Once it is promoted, it has no standby to wait for.
    as_postgres sed -i '/^synchronous_standby_names/d' "$FOLDER/run/data/postgresql.auto.conf"
    run_postgres >/dev/null || die "the standby did not start"
    as_postgres "$PROGRAMS/psql" --quiet --no-psqlrc --dbname "$(postgres_url "$primary")" \
        --command "ALTER SYSTEM SET synchronous_standby_names = 'standby'" --command "SELECT pg_reload_conf()" >/dev/null
}

start_standby() {
    local pair=$1
    shift
    [ ! -e "$pair" ] || die "$pair is there already: stop it first"
    mkdir -p "$pair"
    pair=$(cd "$pair" && pwd)
    echo 1 >"$pair/primary"
    start_postgres "$pair/1" "$@" >/dev/null || die "the primary did not start"
    prepare_postgres "$pair/2"
    follow_primary "$pair"
    pair_facts "$pair"
}

restart_standby() {
    local pair node
    pair=$(made_folder "$1" primary) || exit 1
    for node in 1 2; do
        open_postgres "$pair/$node"
        as_postgres "$PROGRAMS/pg_ctl" status --pgdata "$FOLDER/run/data" >/dev/null || run_postgres >/dev/null || exit 1
    done
    pair_facts "$pair"
}

# The primary is fenced before that: with two of them, writes would be lost.
promote_standby() {
    local pair standby
    pair=$(made_folder "$1" primary) || exit 1
    standby=$(standby_of "$pair")
    open_postgres "$pair/$(cat "$pair/primary")"
    crash_postgres
    open_postgres "$pair/$standby"
    as_postgres "$PROGRAMS/pg_ctl" promote --wait --silent --pgdata "$FOLDER/run/data" || die "the standby was not promoted"
    echo "$standby" >"$pair/primary"
    pair_facts "$pair"
}

# What only the old primary has is lost: it was not acknowledged.
rejoin_standby() {
    local pair
    pair=$(made_folder "$1" primary) || exit 1
    open_postgres "$pair/$(standby_of "$pair")"
    crash_postgres
    rm -rf "$FOLDER/run/data"
    follow_primary "$pair"
    pair_facts "$pair"
}

stop_standby() {
    local pair
    [ -e "$1" ] || return 0
    pair=$(made_folder "$1" primary) || exit 1
    stop_postgres "$pair/2"
    stop_postgres "$pair/1"
    rm -rf "$pair"
}
