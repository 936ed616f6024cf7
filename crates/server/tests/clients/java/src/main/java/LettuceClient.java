import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanIterator;
import io.lettuce.core.SslOptions;
import io.lettuce.core.TrackingArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.ArrayOutput;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.ProtocolVersion;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Lettuce against running servers. See README.md of the folder above. */
final class LettuceClient {
    static RedisClient client(int protocol, String variable, CharSequence password, boolean isEncrypted) {
        var uri = RedisURI.builder().withHost("localhost").withPort(Steps.port(variable)).withSsl(isEncrypted);
        if (password != null) uri.withPassword(password);
        var client = RedisClient.create(uri.build());
        var options = ClientOptions.builder().autoReconnect(false);
        options.protocolVersion(protocol == 2 ? ProtocolVersion.RESP2 : ProtocolVersion.RESP3);
        if (isEncrypted) options.sslOptions(SslOptions.builder().jdkSslProvider().trustManager(new File(System.getenv("TLS_CA"))).build());
        client.setOptions(options.build());
        return client;
    }

    /** The name of a command that the library does not know. */
    record Name(String name) implements ProtocolKeyword {
        public byte[] getBytes() {
            return name.getBytes(StandardCharsets.US_ASCII);
        }

        public String toString() {
            return name;
        }
    }

    static <T> T ask(RedisCommands<String, String> redis, CommandOutput<String, String, T> output, Object... words) {
        var arguments = new CommandArgs<>(StringCodec.UTF8);
        for (int at = 1; at < words.length; at++) arguments.add(words[at].toString());
        return redis.dispatch(new Name(words[0].toString()), output, arguments);
    }

    static List<Object> array(RedisCommands<String, String> redis, Object... words) {
        return ask(redis, new ArrayOutput<>(StringCodec.UTF8), words);
    }

    static void follow(RedisCommands<String, String> redis, int user) {
        Steps.equal(redis.sadd(Steps.following(user), Steps.ids(user + 1, user + 3)), 2L);
        Steps.equal(redis.sadd(Steps.following(user), Steps.ids(user + 1, user + 2)), 0L);
        Steps.equal(redis.srem(Steps.following(user), Steps.ids(user + 2, user + 3)), 1L);
    }

    static void check(RedisCommands<String, String> redis, int user) {
        Steps.equal(redis.sismember(Steps.following(user), "" + (user + 1)), true);
        Steps.equal(redis.sismember(Steps.following(user), "" + (user + 2)), false);
    }

    static void bulk(RedisCommands<String, String> redis, int user) {
        Steps.equal(redis.smismember(Steps.following(user), Steps.ids(user + 1, user + 3)), List.of(true, false));
    }

    static void counts(RedisCommands<String, String> redis, int user) {
        Steps.equal(redis.scard(Steps.following(user)), 1L);
        Steps.equal(redis.scard(Steps.followers(user + 1)), 1L);
    }

    static void members(RedisCommands<String, String> redis, int user) {
        Steps.equal(redis.smembers(Steps.following(user)), Set.of("" + (user + 1)));
        Steps.equal(redis.smembers(Steps.followers(user + 1)), Set.of("" + user));
    }

    static void intersect(RedisCommands<String, String> redis, int user) {
        redis.sadd(Steps.following(user + 9), "" + (user + 1), "" + (user + 3));
        Steps.equal(redis.sinter(Steps.following(user), Steps.following(user + 9)), Set.of("" + (user + 1)));
        Steps.equal(redis.sintercard(Steps.following(user), Steps.following(user + 9)), 1L);
    }

    static void scan(RedisCommands<String, String> redis, int user) {
        redis.sadd(Steps.following(user), Steps.ids(user + 1000, user + 3000));
        Set<String> found = new HashSet<>();
        ScanIterator.sscan(redis, Steps.following(user), ScanArgs.Builder.limit(100)).forEachRemaining(found::add);
        Steps.equal(found.size(), 2001);
    }

    static void pipeline(RedisCommands<String, String> redis, int user) throws Exception {
        var connection = redis.getStatefulConnection();
        connection.setAutoFlushCommands(false);
        List<RedisFuture<Long>> replies = new ArrayList<>();
        for (String id : Steps.ids(user + 1000, user + 3000)) replies.add(connection.async().srem(Steps.following(user), id));
        replies.add(connection.async().scard(Steps.following(user)));
        connection.flushCommands();
        connection.setAutoFlushCommands(true);
        for (var reply : replies) Steps.equal(reply.get(), 1L);
    }

    static void multi(RedisCommands<String, String> redis, int user) {
        redis.multi();
        redis.sadd(Steps.following(user), "" + (user + 4));
        redis.scard(Steps.following(user));
        List<Object> replies = new ArrayList<>();
        redis.exec().forEach(replies::add);
        Steps.equal(replies, List.of(1L, 2L));
    }

    static void own(RedisCommands<String, String> redis, int user) {
        Object token = ask(redis, new StatusOutput<>(StringCodec.UTF8), "FOLLOW", user, user + 5);
        Steps.equal(ask(redis, new StatusOutput<>(StringCodec.UTF8), "AFTER", token), "OK");
        Steps.equal(ask(redis, new IntegerOutput<>(StringCodec.UTF8), "FOLLOWS", user, user + 5), 1L);
        var page = array(redis, "FOLLOWERS", user + 5, "LIMIT", 10);
        Steps.equal(((List<?>) ((List<?>) page.get(0)).get(0)).get(0), "" + user);
        Steps.equal(page.get(1), null);
        Steps.equal(array(redis, "COUNTS", user), List.of(3L, 0L));
        ask(redis, new StatusOutput<>(StringCodec.UTF8), "FOLLOW", user + 5, user + 6);
        var suggestion = (List<?>) array(redis, "SUGGEST", user, "LIMIT", 1).get(0);
        Steps.equal(suggestion.get(0), "" + (user + 6));
        Steps.equal(suggestion.get(1), 1L);
        Double.parseDouble(suggestion.get(2).toString());
        Steps.equal(suggestion.get(3), List.of("" + (user + 5)));
        Object post = array(redis, "POST", user + 5, "PAYLOAD", "{\"text\":\"hello\"}").get(0);
        var newest = (List<?>) ((List<?>) array(redis, "FEED", user, "LIMIT", 1).get(0)).get(0);
        Steps.equal(newest.get(0), post);
        Steps.equal(newest.get(3), "{\"text\":\"hello\"}");
    }

    static void errors(RedisCommands<String, String> redis, int user) throws Exception {
        var type = RedisCommandExecutionException.class;
        Steps.refused(type, "WRONGTYPE", () -> redis.sadd("somewhere", "1"));
        Steps.refused(type, "ERR", () -> redis.sadd(Steps.following(user), "" + user));
        Steps.refused(type, "unknown command", () -> array(redis, "NONSENSE"));
        Steps.equal(redis.ping(), "PONG");
    }

    static String key(int protocol) throws Exception {
        try (var client = client(protocol, "KEY_PORT", System.getenv("KEY"), false)) {
            Steps.equal(client.connect().sync().sadd(Steps.following(Steps.BASE + protocol), "1"), 1L);
        }
        try (var client = client(protocol, "KEY_PORT", "wrong", false)) {
            Steps.refused(Exception.class, "", () -> client.connect().sync().scard(Steps.following(1)));
        }
        return null;
    }

    static String tls(int protocol) {
        try (var client = client(protocol, "TLS_PORT", null, true)) {
            Steps.equal(client.connect().sync().ping(), "PONG");
        }
        return null;
    }

    /**
     * The CacheFrontend of the library reads strings with GET, which sets are not. So this is a map that the library's
     * pushes invalidate; a set that is invalidated while it is read is not kept.
     */
    static String cache(int first) {
        if (!Steps.HAS_CACHE) return "the server has no CLIENT TRACKING";
        try (var client = client(3, "PORT", null, false)) {
            StatefulRedisConnection<String, String> connection = client.connect();
            var redis = connection.sync();
            var other = client.connect().sync();
            Map<String, Set<String>> local = new ConcurrentHashMap<>();
            Map<String, Long> invalidations = new ConcurrentHashMap<>();
            long[] hits = {0};
            connection.addListener(message -> {
                if (!message.getType().equals("invalidate")) return;
                for (Object key : (List<?>) message.getContent(StringCodec.UTF8::decodeKey).get(1)) {
                    invalidations.merge(key.toString(), 1L, Long::sum);
                    local.remove(key.toString());
                }
            });
            redis.clientTracking(TrackingArgs.Builder.enabled());
            var reader = new Steps.Reader() {
                public Set<String> members(String key) {
                    Set<String> members = local.get(key);
                    if (members != null) {
                        hits[0]++;
                        return members;
                    }
                    Long before = invalidations.get(key);
                    Set<String> read = redis.smembers(key);
                    invalidations.compute(key, (same, now) -> {
                        if (Objects.equals(before, now)) local.put(key, read);
                        return now;
                    });
                    return read;
                }

                public long size(String key) {
                    return members(key).size();
                }
            };
            Steps.churn(reader, (isFollow, key, member) -> {
                if (isFollow) other.sadd(key, member);
                else other.srem(key, member);
            }, first);
            if (hits[0] < 100) throw new Steps.Failed(hits[0] + " hits");
        }
        return null;
    }

    interface OfUser {
        void run(RedisCommands<String, String> redis, int user) throws Exception;
    }

    static void step(String name, OfUser step, RedisCommands<String, String> redis, int user) {
        Steps.report(name, () -> {
            step.run(redis, user);
            return null;
        });
    }

    public static void main(String[] arguments) {
        System.out.println("version " + arguments[0]);
        if (!Steps.ONLY_CACHE) {
            Steps.report("defaults", () -> {
                try (var client = RedisClient.create("redis://localhost:" + Steps.port("PORT"))) {
                    Steps.equal(client.connect().sync().ping(), "PONG");
                }
                return null;
            });
            for (int protocol : new int[] {2, 3}) {
                int user = Steps.BASE + 10_000 * protocol;
                try (var client = client(protocol, "PORT", null, false)) {
                    var redis = client.connect().sync();
                    step("resp" + protocol, (connection, id) -> Steps.equal(connection.ping(), "PONG"), redis, user);
                    step("follow", LettuceClient::follow, redis, user);
                    step("check", LettuceClient::check, redis, user);
                    step("bulk", LettuceClient::bulk, redis, user);
                    step("counts", LettuceClient::counts, redis, user);
                    step("members", LettuceClient::members, redis, user);
                    step("intersect", LettuceClient::intersect, redis, user);
                    step("scan", LettuceClient::scan, redis, user);
                    step("pipeline", LettuceClient::pipeline, redis, user);
                    step("multi", LettuceClient::multi, redis, user);
                    step("own", LettuceClient::own, redis, user);
                    step("errors", LettuceClient::errors, redis, user);
                }
                Steps.report("key", () -> key(protocol));
                Steps.report("tls", () -> tls(protocol));
            }
        }
        Steps.report("cache", () -> cache(Steps.BASE + 50_000));
        System.exit(0);
    }

    private LettuceClient() {}
}
