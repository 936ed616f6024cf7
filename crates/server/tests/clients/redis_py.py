"""redis-py in its default ways, against a running server: python redis_py.py PORT. Says nothing if all is well."""

import sys
import time

import redis

port = int(sys.argv[1])
base = time.time_ns() // 1_000  # users that nobody else has


def check(protocol):
    client = redis.Redis(port=port, protocol=protocol, decode_responses=True)
    user = base + protocol
    following = f"following:{user}"
    assert client.ping()
    assert client.sadd(following, 8, 9) == 2
    assert client.sismember(following, 8)
    assert client.smismember(following, [8, 10]) == [1, 0]
    with client.pipeline() as pipe:  # MULTI and EXEC around it
        pipe.sadd(following, 10).srem(following, 8).scard(following).smembers(following)
        assert pipe.execute() == [1, 1, 2, {"9", "10"}]
    with client.pipeline(transaction=False) as pipe:
        pipe.sadd(following, 11).sismember(following, 11).execute_command("COUNTS", user)
        assert pipe.execute() == [1, 1, [3, 0]]
    with client.pipeline() as pipe:
        pipe.sadd(following, user).scard(following)
        refused, count = pipe.execute(raise_on_error=False)
        assert isinstance(refused, redis.ResponseError) and count == 3
    with client.pipeline() as pipe:
        pipe.sadd(following, 12).execute_command("NONSENSE")
        try:
            pipe.execute()
            raise AssertionError("a transaction with an unknown command was run")
        except redis.ResponseError:
            assert client.scard(following) == 3
    client.sadd(following, *range(1_000, 3_000))
    assert len(set(client.sscan_iter(following, count=100))) == 2_003
    assert client.sinter(following, following) == client.smembers(following)
    assert client.sintercard(1, [following]) == 2_003
    assert client.exists(following) == 1 and client.type(following) == "set"
    token = client.execute_command("FOLLOW", user, 5_000)
    assert client.execute_command("AFTER", token) == "OK"
    assert client.execute_command("FOLLOWS", user, 5_000) == 1
    page, cursor = client.execute_command("FOLLOWING", user, "LIMIT", 1)
    assert page[0][0] == "5000" and cursor
    with client.pipeline(transaction=False) as pipe:
        pipe.execute_command("POST", 5_000, "PAYLOAD", '{"text": "hello"}').execute_command("FEED", user, "LIMIT", 1)
        (post, _), (posts, _) = pipe.execute()
        assert [entry[:2] + entry[3:] for entry in posts] == [[post, "5000", '{"text":"hello"}']]
    assert client.execute_command("DELPOST", 5_000, post)
    assert post not in [entry[0] for entry in client.execute_command("POSTS", 5_000)[0]]
    try:
        client.sadd("somewhere", 1)
        raise AssertionError("a key of no family was taken")
    except redis.ResponseError as error:
        assert str(error).startswith("WRONGTYPE"), error
    assert client.info()["redis_mode"] == "standalone"
    assert client.command_count() > 30


for version in (2, 3):
    check(version)
