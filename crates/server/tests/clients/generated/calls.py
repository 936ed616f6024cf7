"""Ten calls with the client that openapi-python-client generates: calls.py URL FIRST_USER"""

import sys

from kinfolk_http import Client
from kinfolk_http.api.changes import changes
from kinfolk_http.api.comments import comment, comment_tree, edit_comment, write_comment
from kinfolk_http.api.feeds import feed, register_post
from kinfolk_http.api.graph import check, counts, follow, follows
from kinfolk_http.models import Check, CommentDraft, CommentEdit, PostDraft, Problem

url, first = sys.argv[1], int(sys.argv[2])
reader, author = str(first), str(first + 1)
client = Client(base_url=url, raise_on_unexpected_status=True)

followed = follow.sync_detailed(author, client=client, kinfolk_actor=reader)
assert followed.status_code == 204, followed
token = followed.headers["Kinfolk-Token"]

edge = follows.sync(reader, author, client=client, kinfolk_token=token)
assert edge.following and edge.since.year >= 2024, edge

checked = check.sync(client=client, body=Check(pairs=[[reader, author], [author, reader]]))
assert checked.results == [True, False], checked

counted = counts.sync(author, client=client, kinfolk_token=token)
assert (counted.followers, counted.following) == (1, 0), counted

post = register_post.sync(client=client, body=PostDraft(payload={"text": "hello"}), kinfolk_actor=author)
assert post.author == author, post

page = feed.sync(reader, client=client)
assert [entry.id for entry in page.items] == [post.id], page

draft = CommentDraft(body="well said")
written = write_comment.sync_detailed(post.id, client=client, body=draft, idempotency_key="k", kinfolk_actor=reader)
assert written.status_code == 201 and written.parsed.version == 1, written
top = written.parsed
answer = CommentDraft(body="thank you", reply_to=top.id)
write_comment.sync(post.id, client=client, body=answer, idempotency_key="k", kinfolk_actor=author)

tree = comment_tree.sync(post.id, client=client, depth=1)
assert [reply.body for reply in tree.items[0].replies] == ["thank you"], tree

# The tag of the first representation still names the version, although there is a reply since then.
seen = written.headers["ETag"]
edit = CommentEdit(body="well said!")
edited = edit_comment.sync(top.id, client=client, body=edit, if_match=seen, kinfolk_actor=reader)
assert edited.version == 2, edited
stale = edit_comment.sync(top.id, client=client, body=edit, if_match=seen, kinfolk_actor=reader)
assert isinstance(stale, Problem) and stale.code == "version_conflict", stale

read = comment.sync_detailed(top.id, client=client)
cached = comment.sync_detailed(top.id, client=client, if_none_match=read.headers["ETag"])
assert (read.status_code, cached.status_code) == (200, 304), cached

log = changes.sync(client=client, limit=1000)
assert {"follow", "post", "comment", "comment_edited"} <= {change.type_ for change in log.items}, log
