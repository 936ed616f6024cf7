import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import kinfolk.ApiClient;
import kinfolk.ApiException;
import kinfolk.api.ChangesApi;
import kinfolk.api.CommentsApi;
import kinfolk.api.FeedsApi;
import kinfolk.api.GraphApi;
import kinfolk.model.Check;
import kinfolk.model.CommentDraft;
import kinfolk.model.CommentEdit;
import kinfolk.model.PostDraft;

/** Ten calls with the client that openapi-generator generates for Java: Calls URL FIRST_USER */
public final class Calls {
    private static void must(boolean holds, Object what) {
        if (!holds) {
            throw new AssertionError(String.valueOf(what));
        }
    }

    public static void main(String[] arguments) throws Exception {
        ApiClient client = new ApiClient();
        client.updateBaseUri(arguments[0]);
        String reader = arguments[1];
        String author = String.valueOf(Long.parseLong(reader) + 1);
        GraphApi graph = new GraphApi(client);
        FeedsApi feeds = new FeedsApi(client);
        CommentsApi comments = new CommentsApi(client);

        var followed = graph.followWithHttpInfo(author, reader, null);
        must(followed.getStatusCode() == 204, followed);
        String token = header(followed.getHeaders(), "kinfolk-token");

        var edge = graph.follows(reader, author, token);
        must(edge.getFollowing() && edge.getSince() != null, edge);

        var pairs = new Check().pairs(List.of(List.of(reader, author), List.of(author, reader)));
        must(graph.check(pairs, null).getResults().equals(List.of(true, false)), pairs);

        must(graph.counts(author, token).getFollowers() == 1, author);

        var post = feeds.registerPost(new PostDraft().payload(Map.of("text", "hello")), null, author, null);
        must(post.getAuthor().equals(author), post);

        var feed = feeds.feed(reader, null, null, null);
        must(feed.getItems().get(0).getId().equals(post.getId()), feed);

        var written = comments.writeCommentWithHttpInfo(post.getId(), "k", new CommentDraft().body("well said"), reader, null);
        must(written.getStatusCode() == 201, written);
        String top = written.getData().getId();
        comments.writeComment(post.getId(), "k", new CommentDraft().body("thank you").replyTo(top), author, null);

        var tree = comments.commentTree(post.getId(), null, 1, null, null, null, null);
        must(tree.getItems().get(0).getReplies().get(0).getBody().equals("thank you"), tree);

        // The tag of the first representation still names the version, although there is a reply since then.
        String seen = header(written.getHeaders(), "etag");
        CommentEdit edit = new CommentEdit().body("well said!");
        must(comments.editComment(top, edit, seen, reader, null).getVersion() == 2, seen);
        must(status(() -> comments.editComment(top, edit, seen, reader, null)) == 412, seen);

        String tag = header(comments.commentWithHttpInfo(top, null, null, null).getHeaders(), "etag");
        must(status(() -> comments.comment(top, null, tag, null)) == 304, tag);

        var log = new ChangesApi(client).changes(null, 1000);
        var types = log.getItems().stream().map(change -> change.getType()).collect(Collectors.toSet());
        must(types.containsAll(List.of("follow", "post", "comment", "comment_edited")), types);
    }

    private interface Call {
        Object call() throws ApiException;
    }

    /** The status with which a call is refused. */
    private static int status(Call call) {
        try {
            return call.call() == null ? 304 : 200;
        } catch (ApiException refused) {
            return refused.getCode();
        }
    }

    private static String header(Map<String, List<String>> headers, String name) {
        return headers.entrySet().stream()
            .filter(header -> header.getKey().equalsIgnoreCase(name))
            .map(header -> header.getValue().get(0))
            .findFirst()
            .orElseThrow();
    }
}
