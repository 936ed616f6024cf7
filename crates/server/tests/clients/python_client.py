"""redis-py and valkey-py against running servers: python python_client.py redis|valkey. See README.md of this folder."""

import importlib
import os
import random
import sys
import threading
import time

library = importlib.import_module(sys.argv[1])
Client = getattr(library, {"redis": "Redis", "valkey": "Valkey"}[sys.argv[1]])
base = int(os.environ["USERS"])


def connect(port="PORT", **options):
    options = {"decode_responses": True, **options}
    return Client(host="127.0.0.1", port=int(os.environ[port]), **options)


def report(feature, step, *arguments):
    """Runs a step, and says how it went."""
    try:
        reason = step(*arguments)
        print(f"{feature} no {reason}" if reason else f"{feature} yes", flush=True)
    except Exception as error:
        print(f"{feature} failed {type(error).__name__}: {error}".replace("\n", " "), flush=True)


def defaults():
    assert connect(decode_responses=False).ping()


def follow(client, user):
    assert client.sadd(f"following:{user}", user + 1, user + 2) == 2
    assert client.sadd(f"following:{user}", user + 1) == 0
    assert client.srem(f"following:{user}", user + 2) == 1


def check(client, user):
    assert client.sismember(f"following:{user}", user + 1)
    assert not client.sismember(f"following:{user}", user + 2)


def bulk(client, user):
    assert client.smismember(f"following:{user}", [user + 1, user + 2]) == [1, 0]


def counts(client, user):
    assert client.scard(f"following:{user}") == 1
    assert client.scard(f"followers:{user + 1}") == 1


def members(client, user):
    assert set(client.smembers(f"following:{user}")) == {str(user + 1)}
    assert set(client.smembers(f"followers:{user + 1}")) == {str(user)}


def intersect(client, user):
    client.sadd(f"following:{user + 9}", user + 1, user + 3)
    keys = [f"following:{user}", f"following:{user + 9}"]
    assert set(client.sinter(keys)) == {str(user + 1)}
    assert client.sintercard(2, keys) == 1


def scan(client, user):
    client.sadd(f"following:{user}", *range(user + 1_000, user + 3_000))
    assert len(set(client.sscan_iter(f"following:{user}", count=100))) == 2_001


def pipeline(client, user):
    with client.pipeline(transaction=False) as pipe:
        for member in range(user + 1_000, user + 3_000):
            pipe.srem(f"following:{user}", member)
        pipe.scard(f"following:{user}")
        assert pipe.execute() == [1] * 2_001


def multi(client, user):
    with client.pipeline() as pipe:
        pipe.sadd(f"following:{user}", user + 4).scard(f"following:{user}")
        assert pipe.execute() == [1, 2]


def own(client, user):
    ask = client.execute_command
    token = ask("FOLLOW", user, user + 5)
    assert ask("AFTER", token) in ("OK", b"OK", True)
    assert ask("FOLLOWS", user, user + 5) == 1
    (entry,), cursor = ask("FOLLOWERS", user + 5, "LIMIT", 10)
    assert entry[0] == str(user) and cursor is None
    assert ask("COUNTS", user) == [3, 0]
    ask("FOLLOW", user + 5, user + 6)
    suggested, mutual_count, score, via = ask("SUGGEST", user, "LIMIT", 1)[0]
    assert (suggested, mutual_count, via) == (str(user + 6), 1, [str(user + 5)]) and float(score) >= 0
    post, _ = ask("POST", user + 5, "PAYLOAD", '{"text":"hello"}')
    posts, _ = ask("FEED", user, "LIMIT", 1)
    assert posts[0][0] == post and posts[0][3] == '{"text":"hello"}'


def errors(client, user):
    refused = [
        (lambda: client.sadd("somewhere", 1), "WRONGTYPE"),
        (lambda: client.sadd(f"following:{user}", user), ""),
        (lambda: client.execute_command("NONSENSE"), "unknown command"),
    ]
    for call, words in refused:
        try:
            call()
            raise AssertionError("an error is missing")
        except library.ResponseError as error:
            assert words in str(error), error
    assert client.ping()


def key(protocol):
    client = connect("KEY_PORT", protocol=protocol, password=os.environ["KEY"])
    assert client.sadd(f"following:{base + protocol}", 1) == 1
    try:
        connect("KEY_PORT", protocol=protocol, password="wrong").ping()
        raise AssertionError("a wrong key is accepted")
    except library.AuthenticationError:
        pass


def tls(protocol):
    assert connect("TLS_PORT", protocol=protocol, ssl=True, ssl_ca_certs=os.environ["TLS_CA"]).ping()


def caching_client():
    """A client with a cache, and a function that counts hits."""
    if library.__name__ == "valkey":
        client = connect(protocol=3, cache_enabled=True, single_connection_client=True)
        local = client.connection.client_cache
        found = local.get
        hits = [0]

        def counting(*arguments):
            value = found(*arguments)
            hits[0] += value is not None
            return value

        local.get = counting
        return client, lambda: hits[0]
    from redis.cache import CacheConfig, DefaultCache

    class Counting(DefaultCache):
        hits = 0

        def get(self, key):
            entry = super().get(key)
            Counting.hits += entry is not None
            return entry

    return connect(protocol=3, cache=Counting(CacheConfig())), lambda: Counting.hits


def cache(first):
    """Another client changes sets while the cache reads. Invalidations come in order, so that once the cache shows the
    last write, everything that it says must be right."""
    if not os.environ.get("CACHE"):
        return "the server has no CLIENT TRACKING"
    reader, hits = caching_client()
    writer = connect()
    chance = random.Random(first)
    users = range(first + 1, first + 11)
    followees = range(first + 101, first + 121)
    mark = f"following:{first}"
    truth = {f"following:{user}": set() for user in users}
    if os.environ.get("FOLLOWERS"):
        truth.update({f"followers:{followee}": set() for followee in followees})

    def write(changes):
        for user, followee, is_follow in changes:
            (writer.sadd if is_follow else writer.srem)(f"following:{user}", followee)

    assert reader.scard(mark) == 0
    for turn in range(50):
        changes = [(chance.choice(users), chance.choice(followees), chance.random() < 0.6) for _ in range(20)]
        for user, followee, is_follow in changes:
            for key, member in ((f"following:{user}", followee), (f"followers:{followee}", user)):
                if key in truth:
                    (truth[key].add if is_follow else truth[key].discard)(str(member))
        thread = threading.Thread(target=write, args=(changes,))
        thread.start()
        while thread.is_alive():
            key = chance.choice(list(truth))
            reader.smembers(key)
            reader.scard(key)
        thread.join()
        writer.sadd(mark, first + 1_000 + turn)
        deadline = time.monotonic() + 10
        while reader.scard(mark) != turn + 1:
            assert time.monotonic() < deadline, "the cache did not learn of a write for 10 s"
        for key, expected in truth.items():
            found = set(reader.smembers(key))
            assert found == expected, f"turn {turn}, {key}: {sorted(found ^ expected)} differ"
            assert reader.scard(key) == len(expected), key
    assert hits() > 100, f"{hits()} hits"


print(f"version {library.__version__}")
if not os.environ.get("ONLY_CACHE"):
    report("defaults", defaults)
    for protocol in (2, 3):
        user = base + 10_000 * protocol
        client = connect(protocol=protocol)
        report(f"resp{protocol}", lambda: None if client.ping() else "no reply")
        for step in (follow, check, bulk, counts, members, intersect, scan, pipeline, multi, own, errors):
            report(step.__name__, step, client, user)
        report("key", key, protocol)
        report("tls", tls, protocol)
report("cache", cache, base + 50_000)
