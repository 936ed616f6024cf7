"""Writes real comment threads over REST and reads them back: python replay.py [--seed SEED] ARCHIVE...

An archive is a source package of a library for Reddit: its tests carry recorded responses with the comments of real people.
A file with `.txt` in its name, such as Unicode's, becomes a thread whose lines answer each other. Every body must be accepted
and come back as it was, except that line ends become LF, as documented; every thread must have the shape of its source.
"""

import base64
import bz2
import concurrent.futures
import gzip
import http.client
import json
import pathlib
import random
import sys
import tarfile
import urllib.parse

import servers

THREADS_AT_ONCE = 4
DEPTH_MAX = 50  # of replies, as documented


class Comment:
    def __init__(self, link, parent, author, body):
        self.link, self.parent, self.author, self.body = link, parent, author, body


# Sources


def recorded(archive):
    """The comments of an archive by id. Later recordings of a comment replace earlier ones."""
    comments = {}
    with tarfile.open(archive) as files:
        for file in files:
            if "cassettes" in file.name and file.name.endswith(".json"):
                content = json.load(files.extractfile(file))
                for exchange in content.get("http_interactions") or content.get("interactions") or []:
                    collect(body_of(exchange["response"]), comments)
    return comments


def body_of(response):
    """The JSON of a response; None if it is something else."""
    body = response["body"]
    text = body.get("string", "")
    if "base64_string" in body:
        content = base64.b64decode(body["base64_string"])
        text = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    try:
        return json.loads(text)
    except ValueError:
        return None


def collect(value, comments):
    if isinstance(value, list):
        for part in value:
            collect(part, comments)
    elif isinstance(value, dict):
        data = value.get("data")
        if value.get("kind") == "t1" and isinstance(data, dict) and "body" in data and "parent_id" in data:
            comments[data["id"]] = Comment(data.get("link_id"), data["parent_id"], data.get("author"), data["body"])
        for part in value.values():
            collect(part, comments)


def lines_of(file, chance):
    """A file as a thread: each line replies to one of those before it, or to none."""
    content = pathlib.Path(file).read_bytes()
    text = (bz2.decompress(content) if file.endswith(".bz2") else content).decode()
    lines = [line for line in text.split("\n") if line.strip()]
    name = pathlib.Path(file).name
    comments, depths = {}, {}
    for number, line in enumerate(lines):
        before = chance.randrange(1, 30)
        parent = f"{name}-{number - before}" if before <= number and chance.random() < 0.95 else None
        if parent and depths[parent] == DEPTH_MAX - 1:
            parent = None
        id = f"{name}-{number}"
        depths[id] = depths[parent] + 1 if parent else 0
        comments[id] = Comment(f"t3_{name}", f"t1_{parent}" if parent else f"t3_{name}", str(number % 97), line)
    return comments


def threads_of(comments):
    """Comments by thread, each after the one that it replies to; gives also how many replies were recorded without their
    parent, which are at the top here."""
    threads, placed, orphans = {}, {}, 0

    def place(id):
        nonlocal orphans
        comment = comments[id]
        if id in placed:
            return placed[id]
        parent = comment.parent.removeprefix("t1_")
        if parent in comments and comment.parent.startswith("t1_"):
            link = place(parent)
        else:
            orphans += comment.parent.startswith("t1_")
            link = comment.link or comment.parent
            parent = None
        placed[id] = link
        threads.setdefault(link, []).append((id, parent, comment))
        return link

    for id in comments:
        place(id)
    return threads, orphans


# The server


class Rest:
    """A connection to REST."""

    def __init__(self, url):
        self.connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=60)

    def ask(self, method, path, body=None, ascii=True, **headers):
        content = None if body is None else json.dumps(body, ensure_ascii=ascii).encode()
        headers = {name.replace("_", "-"): str(value) for name, value in headers.items()}
        if content is not None:
            headers["Content-Type"] = "application/json"
        self.connection.request(method, path, content, headers)
        response = self.connection.getresponse()
        return response.status, response.read()

    def pages(self, path, **parameters):
        """The items of all pages of a list."""
        items = []
        while True:
            status, content = self.ask("GET", f"{path}?{urllib.parse.urlencode(parameters)}")
            assert status == 200, (status, content[:300])
            page = json.loads(content)
            items += page["items"]
            if "next" not in page:
                return items
            parameters["cursor"] = page["next"]


def expected_body(comment):
    return comment.body.replace("\r\n", "\n").replace("\r", "\n")


def replay(url, number, thread, chance, authors):
    """Writes a thread and reads it back; gives what was refused and what differs."""
    rest, post, problems = Rest(url), number + 1, []
    status, content = rest.ask("POST", "/v1/posts", {"id": str(post)}, Kinfolk_Actor=1)
    assert status == 201, content
    ids, sources = {}, {}
    for source, parent, comment in thread:
        body = {"body": comment.body}
        if parent:
            if parent not in ids:
                problems.append(("refused", f"{source}: its parent was"))
                continue
            body["reply_to"] = ids[parent]
        headers = {"Kinfolk_Actor": authors[comment.author], "Idempotency_Key": f"replay-{source}"}
        path = f"/v1/posts/{post}/comments"
        status, first = rest.ask("POST", path, body, ascii=chance.random() < 0.5, **headers)
        if status != 201:
            problems.append(("refused", f"{source}, with {status}: {first.decode()[:300]}"))
            continue
        ids[source] = json.loads(first)["id"]
        sources[ids[source]] = source
        if chance.random() < 0.1:
            status, again = rest.ask("POST", path, body, ascii=chance.random() < 0.5, **headers)
            if (status, again) != (200, first):
                problems.append(("different", f"{source}: the retry got {status}: {again.decode()[:300]}"))
    written = [(ids[source], ids.get(parent), comment) for source, parent, comment in thread if source in ids]
    problems += read_lists(rest, post, written, chance)
    problems += read_trees(rest, post, written, chance)
    return problems


def read_lists(rest, post, written, chance):
    """The flat pages, from both ends."""
    # Comments have the order of their ids, which is the order in which they were written.
    expected = [(id, parent, expected_body(comment)) for id, parent, comment in written]
    problems = []
    for order in ("oldest", "newest"):
        found = rest.pages(f"/v1/posts/{post}/comments", order=order, limit=chance.choice([7, 100, 1000]))
        found = [(item["id"], item.get("reply_to"), item["body"]) for item in found]
        if (found if order == "oldest" else found[::-1]) != expected:
            problems.append(("different", f"the {order} pages of post {post}: {first_difference(found, expected)}"))
    return problems


def first_difference(found, expected):
    for left, right in zip(found, expected):
        if left != right:
            return f"{left!r:.300} instead of {right!r:.300}"
    return f"{len(found)} comments instead of {len(expected)}"


def read_trees(rest, post, written, chance):
    """The tree, in two shapes, by the path of its own where the server has it."""
    replies = {}
    for id, parent, comment in written:
        replies.setdefault(parent, []).append((id, expected_body(comment)))
    problems = []
    for path, more in ((f"/v1/posts/{post}/comments", {"view": "tree"}), (f"/v1/posts/{post}/comments/tree", {})):
        if not more and rest.ask("GET", path)[0] == 404:
            continue
        more.update(depth=chance.choice([0, 1, 3, 50]), replies=chance.choice([1, 5, 100]), limit=chance.choice([3, 50]))
        found = {}

        def take(items, parent):
            found.setdefault(parent, []).extend((item["id"], item["body"]) for item in items)
            for item in items:
                take(item["replies"], item["id"]) if item["replies"] else None
                if "next" in item:
                    take(rest.pages(path, **more, cursor=item["next"]), item["id"])

        top = rest.pages(path, **more)
        if top:
            take(top, None)
        if found != replies:
            wrong = next(parent for parent in {**found, **replies} if found.get(parent) != replies.get(parent))
            difference = first_difference(found.get(wrong, []), replies.get(wrong, []))
            problems.append(("different", f"the replies to {wrong} in {path} {more}: {difference}"))
    return problems


def main(arguments):
    seed = 19
    if arguments[:1] == ["--seed"]:
        seed, arguments = int(arguments[1]), arguments[2:]
    chance = random.Random(seed)
    comments = {}
    for file in arguments:
        comments.update(lines_of(file, chance) if ".txt" in file else recorded(file))
    threads, orphans = threads_of(comments)
    bodies = [comment.body for comment in comments.values()]
    authors = {name: number for number, name in enumerate(sorted({str(comment.author) for comment in comments.values()}), 1)}
    for comment in comments.values():
        comment.author = str(comment.author)

    def count(is_such):
        return sum(any(is_such(character) for character in body) for body in bodies)

    print(f"{len(comments)} comments in {len(threads)} threads, by {len(authors)} authors; {orphans} replies without a recorded parent are at the top")
    print(
        f"with CR: {count(lambda character: character == chr(13))}, beyond ASCII: {count(lambda character: character > chr(127))}, "
        f"beyond the BMP: {count(lambda character: character > chr(0xFFFF))}, longest: {max(map(len, bodies))} characters"
    )
    with servers.kinfolk() as kinfolk, concurrent.futures.ThreadPoolExecutor(THREADS_AT_ONCE) as pool:
        tasks = [
            pool.submit(replay, kinfolk.http, number, thread, random.Random(seed + number), authors)
            for number, thread in enumerate(threads.values())
        ]
        problems = [problem for task in tasks for problem in task.result()]
    for kind, problem in problems[:20]:
        print(f"{kind}: {problem}")
    refused = sum(kind == "refused" for kind, _ in problems)
    print(f"{len(comments)} comments replayed: {refused} refused, {len(problems) - refused} differences")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
