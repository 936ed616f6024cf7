// Ten calls with openapi-fetch and the types that openapi-typescript generates: node calls.js URL FIRST_USER
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Comment = components["schemas"]["Comment"];

const [, , url, first] = process.argv as [string, string, string, string];
const reader = first;
const author = String(Number(first) + 1);
const client = createClient<paths>({ baseUrl: url });
const asReader = { "Kinfolk-Actor": reader };
const asAuthor = { "Kinfolk-Actor": author };

const followed = await client.POST("/v1/users/{id}/follow", {
  params: { path: { id: author }, header: asReader },
});
assert.equal(followed.response.status, 204);
const token = followed.response.headers.get("Kinfolk-Token") ?? "";

const edge = await client.GET("/v1/users/{id}/following/{target}", {
  params: { path: { id: reader, target: author }, header: { "Kinfolk-Token": token } },
});
assert.equal(edge.data?.following, true);

const checked = await client.POST("/v1/check", {
  body: { pairs: [[reader, author], [author, reader]] },
});
assert.deepEqual(checked.data?.results, [true, false]);

const counts = await client.GET("/v1/users/{id}/counts", {
  params: { path: { id: author }, header: { "Kinfolk-Token": token } },
});
assert.equal(counts.data?.followers, 1);

const registered = await client.POST("/v1/posts", {
  params: { header: asAuthor },
  body: { payload: { text: "hello" } },
});
assert.ok(registered.data);
const post = registered.data.id;

const feed = await client.GET("/v1/users/{id}/feed", { params: { path: { id: reader } } });
assert.deepEqual(feed.data?.items.map((entry) => entry.id), [post]);

const write = (actor: { "Kinfolk-Actor": string }, body: components["schemas"]["CommentDraft"]) =>
  client.POST("/v1/posts/{id}/comments", {
    params: { path: { id: post }, header: { ...actor, "Idempotency-Key": "k" } },
    body,
  });
const written = await write(asReader, { body: "well said" });
assert.equal(written.response.status, 201);
const top: Comment = written.data!;
await write(asAuthor, { body: "thank you", reply_to: top.id });

const tree = await client.GET("/v1/posts/{id}/comments/tree", {
  params: { path: { id: post }, query: { depth: 1 } },
});
assert.deepEqual(tree.data?.items[0]?.replies.map((reply) => reply.body), ["thank you"]);

// The tag of the first representation still names the version, although there is a reply since then.
const seen = written.response.headers.get("ETag") ?? "";
const edit = () =>
  client.PATCH("/v1/comments/{comment}", {
    params: { path: { comment: top.id }, header: { ...asReader, "If-Match": seen } },
    body: { body: "well said!" },
  });
const edited = await edit();
assert.equal(edited.data?.version, 2);
const stale = await edit();
assert.equal(stale.error?.code, "version_conflict");

const read = await client.GET("/v1/comments/{comment}", { params: { path: { comment: top.id } } });
const tag = read.response.headers.get("ETag") ?? "";
const cached = await client.GET("/v1/comments/{comment}", {
  params: { path: { comment: top.id }, header: { "If-None-Match": tag } },
});
assert.deepEqual([read.response.status, cached.response.status], [200, 304]);

const log = await client.GET("/v1/changes", { params: { query: { limit: 1000 } } });
const types = new Set(log.data?.items.map((change) => change.type));
for (const type of ["follow", "post", "comment", "comment_edited"]) {
  assert.ok(types.has(type), type);
}
