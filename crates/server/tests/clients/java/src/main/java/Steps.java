import java.io.FileInputStream;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import javax.net.ssl.TrustManagerFactory;

/** What the programs for Java share: the report of a step, and the churn that a cache has to survive. */
final class Steps {
    /** Why a step failed. */
    static final class Failed extends RuntimeException {
        Failed(String message) {
            super(message);
        }
    }

    /** Something that may fail; gives the reason why a library does not have a feature, or null. */
    interface Step {
        String run() throws Exception;
    }

    /** Something that has to be refused. */
    interface Call {
        void run() throws Exception;
    }

    /** Reads through a cache. */
    interface Reader {
        Set<String> members(String key);

        long size(String key);
    }

    /** Writes past a cache. */
    interface Writer {
        void write(boolean isFollow, String key, String member);
    }

    static final int BASE = Integer.parseInt(System.getenv("USERS"));
    static final boolean HAS_CACHE = System.getenv("CACHE") != null;
    static final boolean ONLY_CACHE = System.getenv("ONLY_CACHE") != null;

    static int port(String variable) {
        return Integer.parseInt(System.getenv(variable));
    }

    static String following(int user) {
        return "following:" + user;
    }

    static String followers(int user) {
        return "followers:" + user;
    }

    static String[] ids(int from, int to) {
        return IntStream.range(from, to).mapToObj(Integer::toString).toArray(String[]::new);
    }

    static void report(String feature, Step step) {
        try {
            String reason = step.run();
            System.out.println(reason == null ? feature + " yes" : feature + " no " + reason);
        } catch (Exception | AssertionError error) {
            if (System.getenv("TRACE") != null) error.printStackTrace();
            System.out.println((feature + " failed " + error).replace('\n', ' '));
        }
    }

    static void equal(Object found, Object expected) {
        if (!Objects.deepEquals(found, expected)) throw new Failed(found + " instead of " + expected);
    }

    static void refused(Class<? extends Exception> type, String words, Call call) throws Exception {
        try {
            call.run();
        } catch (Exception error) {
            if (type.isInstance(error) && String.valueOf(error.getMessage()).contains(words)) return;
            throw error;
        }
        throw new Failed("an error with '" + words + "' is missing");
    }

    /** Trusts the certificate of the server under test. */
    static TrustManagerFactory trust() throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (var file = new FileInputStream(System.getenv("TLS_CA"))) {
            store.setCertificateEntry("server", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        return factory;
    }

    /**
     * Another client changes sets while the cache reads. Invalidations come in order, so that once the cache shows the last
     * write, everything that it says must be right.
     */
    static void churn(Reader reader, Writer writer, int first) {
        Random chance = new Random(first);
        String mark = following(first);
        Map<String, Set<String>> truth = new TreeMap<>();
        for (int user = first + 1; user <= first + 10; user++) truth.put(following(user), new HashSet<>());
        if (System.getenv("FOLLOWERS") != null) {
            for (int id = first + 101; id <= first + 120; id++) truth.put(followers(id), new HashSet<>());
        }
        List<String> keys = new ArrayList<>(truth.keySet());
        equal(reader.size(mark), 0L);
        for (int turn = 0; turn < 50; turn++) {
            List<Runnable> changes = new ArrayList<>();
            for (int change = 0; change < 20; change++) {
                int user = first + 1 + chance.nextInt(10);
                int followee = first + 101 + chance.nextInt(20);
                boolean isFollow = chance.nextInt(10) < 6;
                apply(truth.get(following(user)), isFollow, followee);
                apply(truth.get(followers(followee)), isFollow, user);
                changes.add(() -> writer.write(isFollow, following(user), Integer.toString(followee)));
            }
            var written = CompletableFuture.runAsync(() -> changes.forEach(Runnable::run));
            while (!written.isDone()) {
                String key = keys.get(chance.nextInt(keys.size()));
                reader.members(key);
                reader.size(key);
            }
            written.join();
            writer.write(true, mark, Integer.toString(first + 1000 + turn));
            long deadline = System.nanoTime() + 10_000_000_000L;
            while (reader.size(mark) != turn + 1) {
                if (System.nanoTime() > deadline) throw new Failed("the cache did not learn of a write for 10 s");
            }
            for (String key : keys) {
                if (!reader.members(key).equals(truth.get(key))) {
                    throw new Failed("turn " + turn + ", " + key + ": " + reader.members(key) + ", not " + truth.get(key));
                }
                equal(reader.size(key), (long) truth.get(key).size());
            }
        }
    }

    private static void apply(Set<String> members, boolean isFollow, int member) {
        if (members == null) return;
        if (isFollow) members.add(Integer.toString(member));
        else members.remove(Integer.toString(member));
    }

    private Steps() {}
}
