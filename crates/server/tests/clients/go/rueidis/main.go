// rueidis against running servers. See README.md of the folder above.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/redis/rueidis"
	. "kinfolk.example/clients/steps"
)

var ctx = context.Background()

// connect has no client-side cache, so that all else is seen of a server that lacks it. RESP2 needs that, too.
func connect(protocol int, options rueidis.ClientOption) (rueidis.Client, error) {
	if options.InitAddress == nil {
		options.InitAddress = []string{Address("PORT")}
	}
	options.AlwaysRESP2 = protocol == 2
	options.DisableCache = true
	return rueidis.NewClient(options)
}

func number(reply rueidis.RedisResult) int64 { return Must(reply.AsInt64()) }

func follow(client rueidis.Client, user int) {
	Equal(number(client.Do(ctx, client.B().Sadd().Key(Following(user)).Member(Ids(user+1, user+3)...).Build())), int64(2))
	Equal(number(client.Do(ctx, client.B().Sadd().Key(Following(user)).Member(Ids(user+1, user+2)...).Build())), int64(0))
	Equal(number(client.Do(ctx, client.B().Srem().Key(Following(user)).Member(Ids(user+2, user+3)...).Build())), int64(1))
}

func check(client rueidis.Client, user int) {
	is := func(member int) bool {
		return Must(client.Do(ctx, client.B().Sismember().Key(Following(user)).Member(strconv.Itoa(member)).Build()).AsBool())
	}
	Equal([]bool{is(user + 1), is(user + 2)}, []bool{true, false})
}

func bulk(client rueidis.Client, user int) {
	command := client.B().Smismember().Key(Following(user)).Member(Ids(user+1, user+3)...).Build()
	Equal(Must(client.Do(ctx, command).AsIntSlice()), []int64{1, 0})
}

func counts(client rueidis.Client, user int) {
	Equal(number(client.Do(ctx, client.B().Scard().Key(Following(user)).Build())), int64(1))
	Equal(number(client.Do(ctx, client.B().Scard().Key(Followers(user+1)).Build())), int64(1))
}

func members(client rueidis.Client, user int) {
	Equal(Must(client.Do(ctx, client.B().Smembers().Key(Following(user)).Build()).AsStrSlice()), Ids(user+1, user+2))
	Equal(Must(client.Do(ctx, client.B().Smembers().Key(Followers(user+1)).Build()).AsStrSlice()), Ids(user, user+1))
}

func intersect(client rueidis.Client, user int) {
	number(client.Do(ctx, client.B().Sadd().Key(Following(user+9)).Member(strconv.Itoa(user+1), strconv.Itoa(user+3)).Build()))
	keys := []string{Following(user), Following(user + 9)}
	Equal(Must(client.Do(ctx, client.B().Sinter().Key(keys...).Build()).AsStrSlice()), Ids(user+1, user+2))
	Equal(number(client.Do(ctx, client.B().Sintercard().Numkeys(2).Key(keys...).Build())), int64(1))
}

func scan(client rueidis.Client, user int) {
	number(client.Do(ctx, client.B().Sadd().Key(Following(user)).Member(Ids(user+1000, user+3000)...).Build()))
	found := map[string]bool{}
	scanner := rueidis.NewScanner(func(cursor uint64) (rueidis.ScanEntry, error) {
		return client.Do(ctx, client.B().Sscan().Key(Following(user)).Cursor(cursor).Count(100).Build()).AsScanEntry()
	})
	for id := range scanner.Iter() {
		found[id] = true
	}
	Must(0, scanner.Err())
	Equal(len(found), 2001)
}

func pipeline(client rueidis.Client, user int) {
	commands := rueidis.Commands{}
	for _, id := range Ids(user+1000, user+3000) {
		commands = append(commands, client.B().Srem().Key(Following(user)).Member(id).Build())
	}
	commands = append(commands, client.B().Scard().Key(Following(user)).Build())
	for _, reply := range client.DoMulti(ctx, commands...) {
		Equal(number(reply), int64(1))
	}
}

func multi(client rueidis.Client, user int) {
	Must(0, client.Dedicated(func(own rueidis.DedicatedClient) error {
		replies := own.DoMulti(ctx, own.B().Multi().Build(),
			own.B().Sadd().Key(Following(user)).Member(strconv.Itoa(user+4)).Build(),
			own.B().Scard().Key(Following(user)).Build(), own.B().Exec().Build())
		Equal(Must(replies[3].AsIntSlice()), []int64{1, 2})
		return nil
	}))
}

func own(client rueidis.Client, user int) {
	ask := func(words ...any) any {
		texts := []string{}
		for _, word := range words {
			texts = append(texts, fmt.Sprint(word))
		}
		return Must(client.Do(ctx, client.B().Arbitrary(texts...).Build()).ToAny())
	}
	id := strconv.Itoa
	token := ask("FOLLOW", user, user+5)
	Equal(ask("AFTER", token), "OK")
	Equal(ask("FOLLOWS", user, user+5), int64(1))
	page := ask("FOLLOWERS", user+5, "LIMIT", 10).([]any)
	Equal(page[0].([]any)[0].([]any)[0], id(user))
	if err, is := page[1].(error); page[1] != nil && !(is && rueidis.IsRedisNil(err)) {
		panic(page[1])
	}
	Equal(ask("COUNTS", user), []any{int64(3), int64(0)})
	ask("FOLLOW", user+5, user+6)
	suggestion := ask("SUGGEST", user, "LIMIT", 1).([]any)[0].([]any)
	Equal([]any{suggestion[0], suggestion[1], suggestion[3]}, []any{id(user + 6), int64(1), []any{id(user + 5)}})
	Must(strconv.ParseFloat(fmt.Sprint(suggestion[2]), 64))
	post := ask("POST", user+5, "PAYLOAD", `{"text":"hello"}`).([]any)[0]
	newest := ask("FEED", user, "LIMIT", 1).([]any)[0].([]any)[0].([]any)
	Equal([]any{newest[0], newest[3]}, []any{post, `{"text":"hello"}`})
}

func errors(client rueidis.Client, user int) {
	add := func(key string, member int) error {
		return client.Do(ctx, client.B().Sadd().Key(key).Member(strconv.Itoa(member)).Build()).Error()
	}
	Refused(add("somewhere", 1), "WRONGTYPE")
	Refused(add(Following(user), user), "")
	Refused(client.Do(ctx, client.B().Arbitrary("NONSENSE").Build()).Error(), "unknown command")
	Must(0, client.Do(ctx, client.B().Ping().Build()).Error())
}

func key(protocol int) {
	address := []string{Address("KEY_PORT")}
	client := Must(connect(protocol, rueidis.ClientOption{InitAddress: address, Password: os.Getenv("KEY")}))
	defer client.Close()
	Equal(number(client.Do(ctx, client.B().Sadd().Key(Following(Base()+protocol)).Member("1").Build())), int64(1))
	_, err := connect(protocol, rueidis.ClientOption{InitAddress: address, Password: "wrong"})
	Refused(err, "")
}

func tls(protocol int) {
	client := Must(connect(protocol, rueidis.ClientOption{InitAddress: []string{Address("TLS_PORT")}, TLSConfig: TLS()}))
	defer client.Close()
	Must(0, client.Do(ctx, client.B().Ping().Build()).Error())
}

func cache(first int) any {
	if os.Getenv("CACHE") == "" {
		return No("the server has no CLIENT TRACKING")
	}
	// With one connection, invalidations have one order.
	client := Must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{Address("PORT")}, PipelineMultiplex: -1}))
	other := Must(connect(3, rueidis.ClientOption{}))
	defer client.Close()
	defer other.Close()
	hits := 0
	ask := func(command rueidis.Cacheable) rueidis.RedisResult {
		reply := client.DoCache(ctx, command, time.Hour)
		if reply.IsCacheHit() {
			hits++
		}
		return reply
	}
	Churn(Reader{
		Members: func(key string) []string { return Must(ask(client.B().Smembers().Key(key).Cache()).AsStrSlice()) },
		Size:    func(key string) int64 { return number(ask(client.B().Scard().Key(key).Cache())) },
	}, func(command, key string, member int) {
		Must(0, other.Do(ctx, other.B().Arbitrary(command, key, strconv.Itoa(member)).Build()).Error())
	}, first)
	if hits < 100 {
		panic(fmt.Sprint(hits, " hits"))
	}
	return nil
}

func main() {
	fmt.Println("version", rueidis.LibVer)
	if os.Getenv("ONLY_CACHE") == "" {
		Report("defaults", func() any {
			client := Must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{Address("PORT")}}))
			defer client.Close()
			return Must(client.Do(ctx, client.B().Ping().Build()).ToString())
		})
		for _, protocol := range []int{2, 3} {
			var client rueidis.Client
			Report(fmt.Sprint("resp", protocol), func() any { client = Must(connect(protocol, rueidis.ClientOption{})); return nil })
			for _, step := range []struct {
				name string
				run  func(rueidis.Client, int)
			}{
				{"follow", follow}, {"check", check}, {"bulk", bulk}, {"counts", counts}, {"members", members},
				{"intersect", intersect}, {"scan", scan}, {"pipeline", pipeline}, {"multi", multi}, {"own", own}, {"errors", errors},
			} {
				Report(step.name, func() any { step.run(client, Base()+10_000*protocol); return nil })
			}
			Report("key", func() any { key(protocol); return nil })
			Report("tls", func() any { tls(protocol); return nil })
		}
	}
	Report("cache", func() any { return cache(Base() + 50_000) })
}
