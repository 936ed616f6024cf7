"""Random set commands to Kinfolk and to Redis, whose replies must be equal: python differential.py [COMMANDS] [SEED]

Both get the same commands, on connections of both versions of the protocol: alone, as inline text, in pipelines and in
transactions. Replies are compared byte for byte and type for type, errors included; only the order of sets is free. In
Kinfolk a follow changes two sets, so that Redis gets the change of `followers:ID` as a command of its own, whose reply is
not compared.
"""

import random
import sys

import resp
import servers

USERS = range(1, 41)
MEMBERS = [*range(1, 81), 10**9, 2**53 + 1, 2**63 - 1]
LARGE_USER = 41  # a set of more members than one step of a scan, or than Redis keeps sorted
DIFFERENCES_MAX = 20

# Compared as far as Kinfolk has them.
CANDIDATES = (
    "sadd srem sismember smismember scard smembers sinter sintercard sscan srandmember exists type ttl pttl expiretime "
    "pexpiretime object memory scan dbsize unwatch"
).split()


def following(user):
    return f"following:{user}"


def followers(user):
    return f"followers:{user}"


class Command:
    """One command: its words for both servers, what Redis needs in addition, and how its reply is compared."""

    def __init__(self, *words, mirror=(), normalize=lambda reply: reply, is_mistake=False):
        self.words = words
        self.is_mistake = is_mistake
        self.mirror = list(mirror)
        self.normalize = normalize

    def __str__(self):
        text = " ".join(map(str, self.words))
        return text if len(text) < 200 else text[:200] + "…"


def in_any_order(reply):
    kind, content = reply
    return (kind, sorted(content)) if kind in "*~" and content else reply


def step_in_any_order(reply):
    kind, content = reply
    return (kind, [content[0], in_any_order(content[1])]) if kind == "*" else reply


def only_type(reply):
    kind, content = reply
    return kind, content is None


def chosen_from(members, may_repeat):
    """Random members: how many they are, that they belong to the set, and that they differ unless they may repeat."""

    def normalize(reply):
        kind, content = reply
        if kind == "$":
            return kind, content is None, content is None or int(content) in members
        if kind not in "*~":
            return reply
        ids = [int(member) for _, member in content]
        is_right = all(member in members for member in ids) and (may_repeat or len(set(ids)) == len(ids))
        return kind, {kind for kind, _ in content}, len(ids), is_right

    return normalize


class Commands:
    """Makes commands. Keeps the sets, in order to know what a random member may be."""

    def __init__(self, chance, offered):
        self.chance = chance
        self.sets = {}
        makers = [
            (self.follow, 30, "sadd"), (self.unfollow, 15, "srem"), (self.check, 20, "sismember"),
            (self.check_many, 10, "smismember"), (self.count, 10, "scard"), (self.members, 6, "smembers"),
            (self.intersect, 8, "sinter"), (self.intersect_count, 6, "sintercard"), (self.step, 3, "sscan"),
            (self.choose, 5, "srandmember"), (self.exists, 5, "exists"), (self.type, 4, "type"),
            (self.lifetime, 2, "ttl"), (self.lifetime, 2, "expiretime"), (self.encoding, 3, "object"),
            (self.memory, 1, "memory"), (self.size, 1, "dbsize"), (self.unwatch, 1, "unwatch"),
            (self.mistake, 6, "sadd"), (self.connection, 3, "sadd"),
        ]  # fmt: skip
        self.makers = [(maker, weight) for maker, weight, name in makers if name in offered]
        self.offered = offered

    def one(self):
        makers, weights = zip(*self.makers)
        return self.chance.choices(makers, weights)[0]()

    # Choices

    def user(self):
        return LARGE_USER if self.chance.random() < 0.05 else self.chance.choice(USERS)

    def member(self):
        return self.chance.choice(MEMBERS)

    def some_members(self, user):
        if user == LARGE_USER:
            members = [self.chance.randrange(1000, 3000) for _ in range(self.chance.randrange(1, 60))]
        else:
            members = [self.member() for _ in range(self.chance.choice([1, 1, 1, 2, 3, 8]))]
        return [member for member in members if member != user] or [999]

    def key(self):
        user = self.user()
        return following(user) if self.chance.random() < 0.6 else followers(self.member())

    def name(self, name):
        return self.chance.choice([name.upper(), name.upper(), name, name.title()])

    # Writes, whose effects the model has as well

    def follow(self):
        user = self.user()
        members = self.some_members(user)
        self.sets.setdefault(following(user), set()).update(members)
        for member in members:
            self.sets.setdefault(followers(member), set()).add(user)
        mirror = [("SADD", followers(member), user) for member in members]
        return Command(self.name("sadd"), following(user), *members, mirror=mirror)

    def unfollow(self):
        user = self.user()
        members = self.some_members(user)
        self.sets.setdefault(following(user), set()).difference_update(members)
        for member in members:
            self.sets.setdefault(followers(member), set()).discard(user)
        mirror = [("SREM", followers(member), user) for member in members]
        return Command(self.name("srem"), following(user), *members, mirror=mirror)

    # Reads

    def check(self):
        return Command(self.name("sismember"), self.key(), self.member())

    def check_many(self):
        members = [self.member() for _ in range(self.chance.choice([1, 2, 5, 40]))]
        return Command(self.name("smismember"), self.key(), *members)

    def count(self):
        return Command(self.name("scard"), self.key())

    def members(self):
        return Command(self.name("smembers"), self.key(), normalize=in_any_order)

    def keys(self):
        return [self.key() for _ in range(self.chance.choice([1, 2, 2, 2, 3, 5]))]

    def intersect(self):
        return Command(self.name("sinter"), *self.keys(), normalize=in_any_order)

    def intersect_count(self):
        keys = self.keys()
        limit = self.chance.choice([(), ("LIMIT", 0), ("limit", 1), ("LIMIT", 5)])
        return Command(self.name("sintercard"), len(keys), *keys, *limit)

    def step(self):
        """A whole scan in one step. Where one step need not suffice, see `scan`."""
        key = followers(self.member())
        more = self.chance.choice([(), ("MATCH", "*1*"), ("match", "[1-3]?")])
        return Command(self.name("sscan"), key, 0, "COUNT", 500, *more, normalize=step_in_any_order)

    def choose(self):
        key = self.key()
        count = self.chance.choice([None, 0, 1, 3, 100, -1, -7])
        normalize = chosen_from(frozenset(self.sets.get(key, ())), may_repeat=count is not None and count < 0)
        return Command(self.name("srandmember"), key, *([] if count is None else [count]), normalize=normalize)

    def exists(self):
        return Command(self.name("exists"), *self.keys())

    def type(self):
        return Command(self.name("type"), self.key())

    def lifetime(self):
        offered = [name for name in ("ttl", "pttl", "expiretime", "pexpiretime") if name in self.offered]
        return Command(self.name(self.chance.choice(offered)), self.key())

    def encoding(self):
        """Only Redis has several encodings, so that their names are not compared."""
        what, normalize = self.chance.choice([("encoding", only_type), ("refcount", lambda reply: reply)])
        return Command(self.name("object"), self.name(what), self.key(), normalize=normalize)

    def memory(self):
        return Command(self.name("memory"), self.name("usage"), self.key(), normalize=only_type)

    def size(self):
        return Command(self.name("dbsize"))

    # What is neither

    def unwatch(self):
        return Command(self.name("unwatch"))

    def mistake(self):
        """Commands that both refuse."""
        # Redis does not look at the options of a scan of an empty set.
        key = self.chance.choice(sorted(key for key, members in self.sets.items() if members) or [self.key()])
        return Command(
            *self.chance.choice([
                ("SADD",), ("SADD", key), ("SREM", key), ("SISMEMBER", key), ("SISMEMBER", key, 1, 2), ("SMISMEMBER", key),
                ("SCARD",), ("SCARD", key, key), ("SMEMBERS",), ("SINTER",), ("SINTERCARD", 1), ("SSCAN", key), ("EXISTS",),
                ("TYPE", key, key), ("SINTERCARD", 0, key), ("SINTERCARD", 2, key), ("SINTERCARD", "x", key),
                ("SINTERCARD", 1, key, "LIMIT", -1), ("SINTERCARD", 1, key, "LIMIT"), ("SINTERCARD", 1, key, "NONSENSE"),
                ("SINTERCARD", 1, key, "LIMIT", "x"), ("SSCAN", key, "x"), ("SSCAN", key, 0, "COUNT", "x"), ("SSCAN", key, 0, "COUNT", 0),
                ("SSCAN", key, 0, "COUNT"), ("SSCAN", key, 0, "NONSENSE", 1), ("NONSENSE",),
                ("NONSENSE", "1", "two words"), ("ECHO",), ("SELECT", "x"), ("PING", 1, 2), ("MULTI", 1), ("EXEC", 1),
            ]),
            is_mistake=True,
        )  # fmt: skip

    def connection(self):
        return Command(*self.chance.choice([("PING",), ("ping", "hello"), ("ECHO", "a\r\nb"), ("SELECT", 0), ("CLIENT", "GETNAME")]))


class Pair:
    """A connection to each server, in one version of the protocol."""

    def __init__(self, version, kinfolk, redis):
        self.version = version
        self.kinfolk = resp.Connection(kinfolk)
        self.redis = resp.Connection(redis)
        for connection in (self.kinfolk, self.redis):
            kind, _ = connection.ask("HELLO", version)
            assert kind == ("%" if version == 3 else "*"), "HELLO is refused"

    def pipeline(self, commands):
        """Sends commands at once; gives a pair of replies for each."""
        self.kinfolk.send([command.words for command in commands])
        self.redis.send([words for command in commands for words in (command.words, *command.mirror)])
        replies = []
        for command in commands:
            replies.append((self.kinfolk.read(), self.redis.read()))
            for _ in command.mirror:
                self.redis.read()
        return replies

    def transaction(self, commands, ending, at_once):
        """Sends MULTI, commands, and EXEC or DISCARD. Gives a pair of replies for each of these lines, and for each
        command that EXEC has run."""
        lines = [Command("MULTI"), *commands, Command(ending)]
        if at_once:
            replies = self.pipeline(lines)
        else:
            replies = [pair for line in lines for pair in self.pipeline([line])]
        kinfolk, redis = replies.pop()
        inner = []
        if redis[0] == "*" and redis[1] is not None:
            queued = [command for command, pair in zip(lines, replies) if pair[1] == ("+", b"QUEUED")]
            own, at = [], 0
            for command in queued:
                own.append(redis[1][at])
                at += 1 + len(command.mirror)
            redis = ("*", own)
            if kinfolk[0] == "*" and len(kinfolk[1]) == len(own):
                inner = list(zip(queued, zip(kinfolk[1], own)))
                # They are compared one by one.
                kinfolk = redis = ("*", len(own))
        return list(zip(lines, [*replies, (kinfolk, redis)])), inner

    def inline(self, command):
        line = " ".join(map(str, command.words)).encode() + b"\r\n"
        self.kinfolk.socket.sendall(line)
        self.redis.socket.sendall(line)
        pair = self.kinfolk.read(), self.redis.read()
        for words in command.mirror:
            self.redis.ask(*words)
        return pair

    def scan(self, *words):
        """A scan from its first to its last step, on both: all that it finds."""
        return [self.scan_one(connection, *words) for connection in (self.kinfolk, self.redis)]

    @staticmethod
    def scan_one(connection, name, key, more):
        cursor, found = b"0", set()
        while True:
            reply = connection.ask(name, *key, cursor, *more)
            if reply[0] != "*":
                return reply
            (cursor_kind, cursor), (list_kind, part) = reply[1]
            if (cursor_kind, list_kind) != ("$", "*"):
                return reply
            found.update(part)
            if cursor == b"0":
                return "all", sorted(found)


class Run:
    """Counts commands and differences."""

    def __init__(self, seed):
        self.seed = seed
        self.commands = 0
        self.differences = 0
        self.by_name = {}
        # Errors of Kinfolk say what to do next. Clients see the first word, which must be that of Redis.
        self.wordings = {}

    def compare(self, command, replies, where, is_sent=True):
        kinfolk, redis = replies
        if kinfolk[0] == redis[0] == "-":
            if kinfolk != redis:
                self.wordings.setdefault((kinfolk[1], redis[1]), str(command))
            kinfolk, redis = (("-", error.split(b" ")[0]) for _, error in replies)
        if is_sent:
            self.commands += 1
            name = str(command.words[0]).lower()
            self.by_name[name] = self.by_name.get(name, 0) + 1
        try:
            is_equal = command.normalize(kinfolk) == command.normalize(redis)
        except (TypeError, ValueError):
            is_equal = kinfolk == redis
        if not is_equal:
            self.differences += 1
            print(f"difference {self.differences} ({where}, seed {self.seed}, command {self.commands}): {command}")
            print(f"    kinfolk: {str(kinfolk)[:400]}\n    redis:   {str(redis)[:400]}")


def take_turn(chance, make, pair, run):
    kind = chance.choices(["alone", "inline", "pipeline", "transaction", "scan"], [30, 5, 30, 20, 6])[0]
    where = f"RESP{pair.version}, {kind}"
    if kind == "pipeline":
        commands = [make.one() for _ in range(chance.randrange(2, 40))]
        for command, replies in zip(commands, pair.pipeline(commands)):
            run.compare(command, replies, where)
    elif kind == "transaction":
        take_transaction(chance, make, pair, run, where)
    elif kind == "scan":
        name, key, more = scan(chance, make)
        run.compare(Command(name, *key, *more), pair.scan(name, key, more), where)
    else:
        command = make.one()
        is_text = all("\n" not in str(word) and " " not in str(word) for word in command.words)
        replies = pair.inline(command) if kind == "inline" and is_text else pair.pipeline([command])[0]
        run.compare(command, replies, where)


def take_transaction(chance, make, pair, run, where):
    before = {key: set(members) for key, members in make.sets.items()}
    length = chance.randrange(0, 12)
    commands = [make.one() for _ in range(length)]
    # A command of a wrong form aborts a transaction, so most have none.
    if chance.random() < 0.8:
        commands = [command for command in commands if not command.is_mistake]
    # This one ends the transaction, too: what comes after it would run by itself, unlike what the sets would say.
    ends = [at for at, command in enumerate(commands) if tuple(command.words) == ("EXEC", 1)]
    commands = commands[: ends[0] + 1 if ends else None]
    if chance.random() < 0.05:
        commands.insert(len(commands) // 2, Command("MULTI"))
    ending = chance.choice(["EXEC", "EXEC", "EXEC", "DISCARD"])
    lines, inner = pair.transaction(commands, ending, at_once=chance.random() < 0.5)
    for command, replies in lines:
        run.compare(command, replies, where)
    for command, replies in inner:
        run.compare(command, replies, f"{where}, in the reply of EXEC", is_sent=False)
    if not inner:
        make.sets = before


def scan(chance, make):
    """The name, key and options of a scan."""
    if "scan" in make.offered and chance.random() < 0.1:
        of_keys = [(), ("COUNT", 50), ("MATCH", "following:*"), ("match", "followers:[1-4]*"), ("TYPE", "set"), ("TYPE", "string")]
        return "SCAN", (), chance.choice(of_keys)
    key = chance.choice([following(LARGE_USER), make.key()])
    of_members = [(), ("COUNT", 1), ("COUNT", 100), ("MATCH", "*2*"), ("COUNT", 1000, "MATCH", "1?")]
    return "SSCAN", (key,), chance.choice(of_members)


def main(commands, seed):
    chance = random.Random(seed)
    with servers.kinfolk() as kinfolk, servers.redis() as redis:
        pairs = [Pair(version, kinfolk.port, redis) for version in (2, 3)]
        names = [name for name in CANDIDATES if pairs[0].kinfolk.ask("COMMAND", "INFO", name)[1][0][1]]
        missing = [name for name in CANDIDATES if name not in names]
        make = Commands(chance, names)
        run = Run(seed)
        while run.commands < commands and run.differences < DIFFERENCES_MAX:
            take_turn(chance, make, chance.choice(pairs), run)
        version = dict(line.split(":", 1) for line in pairs[0].redis.ask("INFO", "server")[1].decode().split("\r\n") if ":" in line)
    for (kinfolk, redis), command in run.wordings.items():
        print(f"another wording: {command}\n    kinfolk: {kinfolk.decode()}\n    redis:   {redis.decode()}")
    if missing:
        print(f"not offered, so left out: {' '.join(missing)}")
    counts = ", ".join(f"{name} {count}" for name, count in sorted(run.by_name.items(), key=lambda entry: -entry[1]))
    print(f"by name: {counts}")
    print(f"{run.commands} commands, seed {seed}, Redis {version['redis_version']}: {run.differences} differences")
    return 1 if run.differences else 0


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(*[*arguments, *[100_000, 19][len(arguments) :]]))
