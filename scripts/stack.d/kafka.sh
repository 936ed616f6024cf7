# Kafka for scripts/stack: brokers that are controllers, too, in numbered folders.
# shellcheck shell=bash

KAFKA_VERSION=4.3.1
LOG4J_VERSION=2.25.5
# A JVM that is small and starts soon; -XX:-UsePerfData leaves no files in /tmp.
KAFKA_JAVA=(java -Xms64m -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -XX:+ExitOnOutOfMemoryError)

# Fetches the jars once, into a folder that is there only when it is complete. Two may fetch at once: the first one's stay.
fetch_kafka() (
    [ ! -d "$1" ] || exit 0
    "$SCRIPTS/install" mvn=maven
    echo "stack: fetching Kafka $KAFKA_VERSION into $1" >&2
    mkdir -p "$(dirname "$1")"
    staged=$(mktemp -d "$1.XXXXXX")
    trap 'rm -rf "$staged"' EXIT
    dependency() {
        echo "<dependency><groupId>$1</groupId><artifactId>$2</artifactId><version>$3</version></dependency>"
    }
    cat >"$staged/pom.xml" <<POM
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>kinfolk</groupId>
  <artifactId>kafka</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    $(dependency org.apache.kafka kafka_2.13 "$KAFKA_VERSION")
    $(dependency org.apache.logging.log4j log4j-slf4j-impl "$LOG4J_VERSION")
    $(dependency org.apache.logging.log4j log4j-core "$LOG4J_VERSION")
  </dependencies>
</project>
POM
    mvn --batch-mode --quiet --file "$staged/pom.xml" -Dmaven.repo.local="$staged/repository" \
        org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
        -DincludeScope=runtime -DoutputDirectory="$staged/jars" >"$staged/log" 2>&1 </dev/null ||
        die "Maven could not fetch Kafka: $(tail -n 5 "$staged/log")"
    mv --no-target-directory "$staged/jars" "$1" 2>/dev/null || [ -d "$1" ] || die "$1 could not be written"
)

# Installs what a broker needs, and sets JARS.
prepare_kafka() {
    "$SCRIPTS/install" java=default-jre-headless
    JARS=${XDG_CACHE_HOME:-$HOME/.cache}/kinfolk/kafka-$KAFKA_VERSION
    fetch_kafka "$JARS" || exit 1
}

# The port of a node's listener.
kafka_port() {
    sed -n 's/^listeners=//p' "$1/server.properties" | tail -n 1 | tr , '\n' | sed -n "s|^$2://.*:||p"
}

# Writes the settings of the nodes of a folder, on ports that are free now: configure_kafka FOLDER BROKERS [SETTING=VALUE...]
# A cluster gives up a silent broker after 3 s: with Kafka's default of 9 s a new leader took up to 13 s.
configure_kafka() {
    local folder=$1 brokers=$2 replicas=$(($2 < 3 ? $2 : 3)) node ports voters=""
    shift 2
    read -ra ports <<<"$(free_ports $((3 * brokers)))"
    for node in $(seq "$brokers"); do
        voters+="${voters:+,}$node@127.0.0.1:${ports[3 * node - 1]}"
    done
    for node in $(seq "$brokers"); do
        mkdir -p "$folder/$node/temporary"
        cat >"$folder/$node/server.properties" <<SETTINGS
node.id=$node
process.roles=broker,controller
controller.quorum.voters=$voters
log.dirs=$folder/$node/data
listeners=PLAINTEXT://127.0.0.1:${ports[3 * node - 3]},SECURE://127.0.0.1:${ports[3 * node - 2]},CONTROLLER://127.0.0.1:${ports[3 * node - 1]}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
ssl.keystore.type=PEM
ssl.keystore.location=$folder/keystore.pem
listener.name.secure.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_kinfolk="secret";
listener.name.secure.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
auto.create.topics.enable=false
default.replication.factor=$replicas
min.insync.replicas=$((replicas < 3 ? 1 : 2))
offsets.topic.num.partitions=1
offsets.topic.replication.factor=$replicas
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=$replicas
transaction.state.log.min.isr=$((replicas < 3 ? 1 : 2))
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=$replicas
share.coordinator.state.topic.min.isr=$((replicas < 3 ? 1 : 2))
group.initial.rebalance.delay.ms=0
num.network.threads=2
num.io.threads=4
log.cleaner.dedupe.buffer.size=16777216
broker.session.timeout.ms=$((brokers > 1 ? 3000 : 9000))
broker.heartbeat.interval.ms=500
SETTINGS
        printf '%s\n' "$@" >>"$folder/$node/server.properties"
    done
}

# Makes the empty data folder of a node, with a user who may sign in by SCRAM.
format_kafka() {
    rm -rf "$1/data"
    "${KAFKA_JAVA[@]}" -cp "$JARS/*" -Dlog4j2.configurationFile="${1%/*}/log4j2.properties" kafka.tools.StorageTool format \
        --config "$1/server.properties" --cluster-id "$2" --add-scram "SCRAM-SHA-256=[name=kinfolk,password=secret]" >"$1/format.log" 2>&1 ||
        die "Kafka's storage was not made: $(grep -m 1 -E 'Exception|rror:' "$1/format.log" || tail -n 5 "$1/format.log")"
}

# Starts a node on data that are there.
run_kafka() {
    run_node "$1" "${KAFKA_JAVA[@]}" -cp "$JARS/*" -Djava.io.tmpdir="$1/temporary" \
        -Dlog4j2.configurationFile="${1%/*}/log4j2.properties" kafka.Kafka "$1/server.properties"
}

# Whether a node has started and lists another in its response to a request for metadata: both are in the cluster, and serve.
kafka_lists() (
    # Until then, somebody else may listen on its port.
    grep -q "Kafka Server started" "$1/log" || exit 1
    exec 3<>"/dev/tcp/127.0.0.1/$(kafka_port "$1" PLAINTEXT)" || exit 1
    # Length; Metadata is request 3, version 1; correlation 1; no name of a client; no topics.
    printf '\0\0\0\x0e\0\x03\0\x01\0\0\0\x01\xff\xff\0\0\0\0' >&3
    size=$((16#0$(timeout 2 head -c 4 <&3 | od -An -v -tx1 | tr -d ' \n')))
    # A broker is its id, its host after the length of that, and its port.
    printf -v broker '%08x0009%s' "$2" "$(printf 127.0.0.1 | od -An -v -tx1 | tr -d ' \n')"
    timeout 2 head -c "$size" <&3 | od -An -v -tx1 | tr -d ' \n' | grep -q "$broker"
) 2>/dev/null

# Whether a node lists all of some nodes.
kafka_serves() {
    local node=$1 other
    shift
    for other in "$@"; do
        kafka_lists "$node" "${other##*/}" || return 1
    done
}

kafka_facts() {
    local folder=$1 node plain=() secure=() processes=()
    for node in $(seq "$(cat "$folder/kafka")"); do
        plain+=("127.0.0.1:$(kafka_port "$folder/$node" PLAINTEXT)")
        secure+=("127.0.0.1:$(kafka_port "$folder/$node" SECURE)")
        processes+=("$(cat "$folder/$node/pid")")
    done
    local IFS=,
    cat <<FACTS
KINFOLK_TEST_KAFKA=${plain[*]}
KINFOLK_TEST_KAFKA_SECURE=${secure[*]}
KINFOLK_TEST_KAFKA_CA=$folder/certificate.pem
KAFKA_FOLDER=$folder
KAFKA_PIDS=${processes[*]}
FACTS
}

start_kafka() {
    local folder=$1 brokers=1 cluster node setting settings=()
    shift
    for setting in "$@"; do
        case $setting in
            brokers=[1-9]) brokers=${setting#*=} ;;
            brokers=*) die "brokers is a number from 1 to 9" ;;
            *) settings+=("$setting") ;;
        esac
    done
    [ ! -e "$folder" ] || die "$folder is there already: stop it first"
    prepare_kafka
    mkdir -p "$folder"
    folder=$(cd "$folder" && pwd)
    echo "$brokers" >"$folder/kafka"
    certify "$folder" || die "openssl made no certificate"
    (umask 077 && cat "$folder/key.pem" "$folder/certificate.pem" >"$folder/keystore.pem")
    cat >"$folder/log4j2.properties" <<'LOG'
rootLogger = INFO, console
appender.console.name = console
appender.console.type = Console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c)%n
LOG
    cluster=$(openssl rand -base64 16 | tr '+/' 'AB' | cut -c 1-22)
    for attempt in 1 2 3 4 5; do
        configure_kafka "$folder" "$brokers" ${settings[@]+"${settings[@]}"}
        for node in $(seq "$brokers"); do
            format_kafka "$folder/$node" "$cluster"
        done
        for node in $(seq "$brokers"); do
            run_kafka "$folder/$node"
        done
        ! await_nodes kafka_serves "$folder"/[1-9] || break
        [ "$attempt" -lt 5 ] || die "Kafka found no free ports"
    done
    kafka_facts "$folder"
}

restart_kafka() {
    local folder node
    folder=$(made_folder "$1" kafka) || exit 1
    find_killed "$folder" "${@:2}"
    prepare_kafka
    for node in ${NODES[@]+"${NODES[@]}"}; do
        run_kafka "$node"
    done
    [ ${#NODES[@]} = 0 ] || await_nodes kafka_serves "${NODES[@]}" || die "another process has taken a port of the broker"
    kafka_facts "$folder"
}

stop_kafka() {
    local folder
    [ -e "$1" ] || return 0
    folder=$(made_folder "$1" kafka) || exit 1
    kill_nodes "$folder"/[1-9]
    rm -rf "$folder"
}
