import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import javax.net.ssl.SSLContext;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.csc.CacheConfig;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.util.SafeEncoder;

/** Jedis against running servers. See README.md of the folder above. */
final class JedisClient {
    static DefaultJedisClientConfig.Builder config(int protocol) {
        return DefaultJedisClientConfig.builder().protocol(protocol == 2 ? RedisProtocol.RESP2 : RedisProtocol.RESP3);
    }

    static RedisClient connect(String variable, DefaultJedisClientConfig.Builder config) {
        return RedisClient.builder().hostAndPort("localhost", Steps.port(variable)).clientConfig(config.build()).build();
    }

    /** A command that the library does not know; byte arrays become texts. */
    static Object ask(RedisClient client, Object... words) {
        String[] texts = new String[words.length - 1];
        for (int at = 1; at < words.length; at++) texts[at - 1] = words[at].toString();
        return text(client.sendCommand(() -> words[0].toString().getBytes(StandardCharsets.UTF_8), texts));
    }

    static Object text(Object reply) {
        if (reply instanceof List<?> parts) {
            List<Object> texts = new ArrayList<>();
            parts.forEach(part -> texts.add(text(part)));
            return texts;
        }
        return reply instanceof byte[] bytes ? SafeEncoder.encode(bytes) : reply;
    }

    static void follow(RedisClient client, int user) {
        Steps.equal(client.sadd(Steps.following(user), Steps.ids(user + 1, user + 3)), 2L);
        Steps.equal(client.sadd(Steps.following(user), Steps.ids(user + 1, user + 2)), 0L);
        Steps.equal(client.srem(Steps.following(user), Steps.ids(user + 2, user + 3)), 1L);
    }

    static void check(RedisClient client, int user) {
        Steps.equal(client.sismember(Steps.following(user), "" + (user + 1)), true);
        Steps.equal(client.sismember(Steps.following(user), "" + (user + 2)), false);
    }

    static void bulk(RedisClient client, int user) {
        Steps.equal(client.smismember(Steps.following(user), Steps.ids(user + 1, user + 3)), List.of(true, false));
    }

    static void counts(RedisClient client, int user) {
        Steps.equal(client.scard(Steps.following(user)), 1L);
        Steps.equal(client.scard(Steps.followers(user + 1)), 1L);
    }

    static void members(RedisClient client, int user) {
        Steps.equal(client.smembers(Steps.following(user)), Set.of("" + (user + 1)));
        Steps.equal(client.smembers(Steps.followers(user + 1)), Set.of("" + user));
    }

    static void intersect(RedisClient client, int user) {
        client.sadd(Steps.following(user + 9), "" + (user + 1), "" + (user + 3));
        Steps.equal(client.sinter(Steps.following(user), Steps.following(user + 9)), Set.of("" + (user + 1)));
        Steps.equal(client.sintercard(Steps.following(user), Steps.following(user + 9)), 1L);
    }

    static void scan(RedisClient client, int user) {
        client.sadd(Steps.following(user), Steps.ids(user + 1000, user + 3000));
        Set<String> found = new HashSet<>();
        String cursor = ScanParams.SCAN_POINTER_START;
        do {
            var page = client.sscan(Steps.following(user), cursor, new ScanParams().count(100));
            found.addAll(page.getResult());
            cursor = page.getCursor();
        } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
        Steps.equal(found.size(), 2001);
    }

    static void pipeline(RedisClient client, int user) {
        try (var pipeline = client.pipelined()) {
            for (String id : Steps.ids(user + 1000, user + 3000)) pipeline.srem(Steps.following(user), id);
            pipeline.scard(Steps.following(user));
            Steps.equal(pipeline.syncAndReturnAll(), Collections.nCopies(2001, 1L));
        }
    }

    static void multi(RedisClient client, int user) {
        try (var transaction = client.multi()) {
            transaction.sadd(Steps.following(user), "" + (user + 4));
            transaction.scard(Steps.following(user));
            Steps.equal(transaction.exec(), List.of(1L, 2L));
        }
    }

    static void own(RedisClient client, int user) {
        Object token = ask(client, "FOLLOW", user, user + 5);
        Steps.equal(ask(client, "AFTER", token), "OK");
        Steps.equal(ask(client, "FOLLOWS", user, user + 5), 1L);
        var page = (List<?>) ask(client, "FOLLOWERS", user + 5, "LIMIT", 10);
        Steps.equal(((List<?>) ((List<?>) page.get(0)).get(0)).get(0), "" + user);
        Steps.equal(page.get(1), null);
        Steps.equal(ask(client, "COUNTS", user), List.of(3L, 0L));
        ask(client, "FOLLOW", user + 5, user + 6);
        var suggestion = (List<?>) ((List<?>) ask(client, "SUGGEST", user, "LIMIT", 1)).get(0);
        Steps.equal(suggestion.get(0), "" + (user + 6));
        Steps.equal(suggestion.get(1), 1L);
        Double.parseDouble(suggestion.get(2).toString());
        Steps.equal(suggestion.get(3), List.of("" + (user + 5)));
        Object post = ((List<?>) ask(client, "POST", user + 5, "PAYLOAD", "{\"text\":\"hello\"}")).get(0);
        var newest = (List<?>) ((List<?>) ((List<?>) ask(client, "FEED", user, "LIMIT", 1)).get(0)).get(0);
        Steps.equal(newest.get(0), post);
        Steps.equal(newest.get(3), "{\"text\":\"hello\"}");
    }

    static void errors(RedisClient client, int user) throws Exception {
        Steps.refused(JedisDataException.class, "WRONGTYPE", () -> client.sadd("somewhere", "1"));
        Steps.refused(JedisDataException.class, "ERR", () -> client.sadd(Steps.following(user), "" + user));
        Steps.refused(JedisDataException.class, "unknown command", () -> ask(client, "NONSENSE"));
        Steps.equal(client.ping(), "PONG");
    }

    static String key(int protocol) throws Exception {
        try (var client = connect("KEY_PORT", config(protocol).password(System.getenv("KEY")))) {
            Steps.equal(client.sadd(Steps.following(Steps.BASE + protocol), "1"), 1L);
        }
        Steps.refused(Exception.class, "", () -> {
            try (var client = connect("KEY_PORT", config(protocol).password("wrong"))) {
                client.scard(Steps.following(1));
            }
        });
        return null;
    }

    static String tls(int protocol) throws Exception {
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, Steps.trust().getTrustManagers(), null);
        var config = config(protocol).ssl(true).sslSocketFactory(context.getSocketFactory());
        try (var client = connect("TLS_PORT", config)) {
            Steps.equal(client.ping(), "PONG");
        }
        return null;
    }

    static String cache(int first) {
        if (!Steps.HAS_CACHE) return "the server has no CLIENT TRACKING";
        // With one connection, invalidations have one order.
        var pool = new ConnectionPoolConfig();
        pool.setMaxTotal(1);
        try (var client = RedisClient.builder().hostAndPort("localhost", Steps.port("PORT")).poolConfig(pool)
                        .clientConfig(config(3).build()).cacheConfig(CacheConfig.builder().maxSize(1000).build()).build();
                var other = connect("PORT", config(2))) {
            var reader = new Steps.Reader() {
                public Set<String> members(String key) {
                    return client.smembers(key);
                }

                public long size(String key) {
                    return client.scard(key);
                }
            };
            Steps.churn(reader, (isFollow, key, member) -> {
                if (isFollow) other.sadd(key, member);
                else other.srem(key, member);
            }, first);
            long hits = client.getCache().getStats().getHitCount();
            if (hits < 100) throw new Steps.Failed(hits + " hits");
        }
        return null;
    }

    interface OfUser {
        void run(RedisClient client, int user) throws Exception;
    }

    static void step(String name, OfUser step, RedisClient client, int user) {
        Steps.report(name, () -> {
            step.run(client, user);
            return null;
        });
    }

    public static void main(String[] arguments) {
        System.out.println("version " + arguments[0]);
        if (!Steps.ONLY_CACHE) {
            Steps.report("defaults", () -> {
                try (var client = RedisClient.create("localhost", Steps.port("PORT"))) {
                    Steps.equal(client.ping(), "PONG");
                }
                return null;
            });
            for (int protocol : new int[] {2, 3}) {
                int user = Steps.BASE + 10_000 * protocol;
                try (var client = connect("PORT", config(protocol))) {
                    step("resp" + protocol, (connection, id) -> Steps.equal(connection.ping(), "PONG"), client, user);
                    step("follow", JedisClient::follow, client, user);
                    step("check", JedisClient::check, client, user);
                    step("bulk", JedisClient::bulk, client, user);
                    step("counts", JedisClient::counts, client, user);
                    step("members", JedisClient::members, client, user);
                    step("intersect", JedisClient::intersect, client, user);
                    step("scan", JedisClient::scan, client, user);
                    step("pipeline", JedisClient::pipeline, client, user);
                    step("multi", JedisClient::multi, client, user);
                    step("own", JedisClient::own, client, user);
                    step("errors", JedisClient::errors, client, user);
                }
                Steps.report("key", () -> key(protocol));
                Steps.report("tls", () -> tls(protocol));
            }
        }
        Steps.report("cache", () -> cache(Steps.BASE + 50_000));
        System.exit(0);
    }

    private JedisClient() {}
}
