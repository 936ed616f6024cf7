// Ten calls with the client that openapi-generator generates for Go: calls URL FIRST_USER
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strconv"

	"example.com/kinfolk"
)

func must(holds bool, what ...any) {
	if !holds {
		panic(fmt.Sprint(what...))
	}
}

func main() {
	url, reader := os.Args[1], os.Args[2]
	number, err := strconv.Atoi(reader)
	must(err == nil, err)
	author := strconv.Itoa(number + 1)
	ctx := context.Background()
	configuration := kinfolk.NewConfiguration()
	configuration.Servers = kinfolk.ServerConfigurations{{URL: url}}
	client := kinfolk.NewAPIClient(configuration)
	graph, feeds, comments := client.GraphAPI, client.FeedsAPI, client.CommentsAPI

	followed, err := graph.Follow(ctx, author).KinfolkActor(reader).Execute()
	must(err == nil && followed.StatusCode == http.StatusNoContent, err)
	token := followed.Header.Get("Kinfolk-Token")

	edge, _, err := graph.Follows(ctx, reader, author).KinfolkToken(token).Execute()
	must(err == nil && edge.GetFollowing() && edge.HasSince(), err, edge)

	pairs := kinfolk.NewCheck([][]string{{reader, author}, {author, reader}})
	checked, _, err := graph.Check(ctx).Check(*pairs).Execute()
	must(err == nil && reflect.DeepEqual(checked.GetResults(), []bool{true, false}), err, checked)

	counts, _, err := graph.Counts(ctx, author).KinfolkToken(token).Execute()
	must(err == nil && counts.GetFollowers() == 1, err, counts)

	draft := kinfolk.NewPostDraft()
	draft.SetPayload(map[string]any{"text": "hello"})
	post, _, err := feeds.RegisterPost(ctx).PostDraft(*draft).KinfolkActor(author).Execute()
	must(err == nil && post.GetAuthor() == author, err, post)

	feed, _, err := feeds.Feed(ctx, reader).Execute()
	must(err == nil && len(feed.GetItems()) == 1 && feed.GetItems()[0].GetId() == post.GetId(), err, feed)

	said := *kinfolk.NewCommentDraft("well said")
	top, written, err := comments.WriteComment(ctx, post.GetId()).CommentDraft(said).IdempotencyKey("k").KinfolkActor(reader).Execute()
	must(err == nil && written.StatusCode == http.StatusCreated, err, top)
	answer := *kinfolk.NewCommentDraft("thank you")
	answer.SetReplyTo(top.GetId())
	_, _, err = comments.WriteComment(ctx, post.GetId()).CommentDraft(answer).IdempotencyKey("k").KinfolkActor(author).Execute()
	must(err == nil, err)

	tree, _, err := comments.CommentTree(ctx, post.GetId()).Depth(1).Execute()
	must(err == nil && tree.GetItems()[0].GetReplies()[0].GetBody() == "thank you", err, tree)

	// The tag of the first representation still names the version, although there is a reply since then.
	edit := comments.EditComment(ctx, top.GetId()).CommentEdit(*kinfolk.NewCommentEdit("well said!"))
	edit = edit.IfMatch(written.Header.Get("ETag")).KinfolkActor(reader)
	edited, _, err := edit.Execute()
	must(err == nil && edited.GetVersion() == 2, err, edited)
	_, stale, err := edit.Execute()
	must(err != nil && stale.StatusCode == http.StatusPreconditionFailed, err, stale)

	_, read, err := comments.Comment(ctx, top.GetId()).Execute()
	must(err == nil, err)
	_, cached, err := comments.Comment(ctx, top.GetId()).IfNoneMatch(read.Header.Get("ETag")).Execute()
	must(cached.StatusCode == http.StatusNotModified, err, cached)

	changes, _, err := client.ChangesAPI.Changes(ctx).Limit(1000).Execute()
	must(err == nil, err)
	types := map[string]bool{}
	for _, change := range changes.GetItems() {
		types[change.GetType()] = true
	}
	must(types["follow"] && types["post"] && types["comment"] && types["comment_edited"], types)
}
