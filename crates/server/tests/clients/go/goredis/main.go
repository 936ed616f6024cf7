// go-redis against running servers. See README.md of the folder above.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/redis/go-redis/v9"
	. "kinfolk.example/clients/steps"
)

var ctx = context.Background()

func connect(options redis.Options) *redis.Client {
	if options.Addr == "" {
		options.Addr = Address("PORT")
	}
	return redis.NewClient(&options)
}

func follow(client *redis.Client, user int) {
	Equal(Must(client.SAdd(ctx, Following(user), user+1, user+2).Result()), int64(2))
	Equal(Must(client.SAdd(ctx, Following(user), user+1).Result()), int64(0))
	Equal(Must(client.SRem(ctx, Following(user), user+2).Result()), int64(1))
}

func check(client *redis.Client, user int) {
	Equal(Must(client.SIsMember(ctx, Following(user), user+1).Result()), true)
	Equal(Must(client.SIsMember(ctx, Following(user), user+2).Result()), false)
}

func bulk(client *redis.Client, user int) {
	Equal(Must(client.SMIsMember(ctx, Following(user), user+1, user+2).Result()), []bool{true, false})
}

func counts(client *redis.Client, user int) {
	Equal(Must(client.SCard(ctx, Following(user)).Result()), int64(1))
	Equal(Must(client.SCard(ctx, Followers(user+1)).Result()), int64(1))
}

func members(client *redis.Client, user int) {
	Equal(Must(client.SMembers(ctx, Following(user)).Result()), Ids(user+1, user+2))
	Equal(Must(client.SMembers(ctx, Followers(user+1)).Result()), Ids(user, user+1))
}

func intersect(client *redis.Client, user int) {
	Must(client.SAdd(ctx, Following(user+9), user+1, user+3).Result())
	Equal(Must(client.SInter(ctx, Following(user), Following(user+9)).Result()), Ids(user+1, user+2))
	Equal(Must(client.SInterCard(ctx, 0, Following(user), Following(user+9)).Result()), int64(1))
}

func scan(client *redis.Client, user int) {
	Must(client.SAdd(ctx, Following(user), Ids(user+1000, user+3000)).Result())
	found := map[string]bool{}
	iterator := client.SScan(ctx, Following(user), 0, "", 100).Iterator()
	for iterator.Next(ctx) {
		found[iterator.Val()] = true
	}
	Must(0, iterator.Err())
	Equal(len(found), 2001)
}

func pipeline(client *redis.Client, user int) {
	replies := Must(client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for id := user + 1000; id < user+3000; id++ {
			pipe.SRem(ctx, Following(user), id)
		}
		pipe.SCard(ctx, Following(user))
		return nil
	}))
	for _, reply := range replies {
		Equal(reply.(*redis.IntCmd).Val(), int64(1))
	}
	Equal(len(replies), 2001)
}

func multi(client *redis.Client, user int) {
	replies := Must(client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.SAdd(ctx, Following(user), user+4)
		pipe.SCard(ctx, Following(user))
		return nil
	}))
	Equal(replies[0].(*redis.IntCmd).Val(), int64(1))
	Equal(replies[1].(*redis.IntCmd).Val(), int64(2))
}

func own(client *redis.Client, user int) {
	ask := func(words ...any) any { return Must(client.Do(ctx, words...).Result()) }
	id := strconv.Itoa
	token := ask("FOLLOW", user, user+5)
	Equal(ask("AFTER", token), "OK")
	Equal(ask("FOLLOWS", user, user+5), int64(1))
	page := ask("FOLLOWERS", user+5, "LIMIT", 10).([]any)
	Equal(page[0].([]any)[0].([]any)[0], id(user))
	Equal(page[1], nil)
	Equal(ask("COUNTS", user), []any{int64(3), int64(0)})
	ask("FOLLOW", user+5, user+6)
	suggestion := ask("SUGGEST", user, "LIMIT", 1).([]any)[0].([]any)
	Equal([]any{suggestion[0], suggestion[1], suggestion[3]}, []any{id(user + 6), int64(1), []any{id(user + 5)}})
	Must(strconv.ParseFloat(fmt.Sprint(suggestion[2]), 64))
	post := ask("POST", user+5, "PAYLOAD", `{"text":"hello"}`).([]any)[0]
	newest := ask("FEED", user, "LIMIT", 1).([]any)[0].([]any)[0].([]any)
	Equal([]any{newest[0], newest[3]}, []any{post, `{"text":"hello"}`})
}

func errors(client *redis.Client, user int) {
	Refused(client.SAdd(ctx, "somewhere", 1).Err(), "WRONGTYPE")
	Refused(client.SAdd(ctx, Following(user), user).Err(), "ERR")
	Refused(client.Do(ctx, "NONSENSE").Err(), "unknown command")
	Equal(Must(client.Ping(ctx).Result()), "PONG")
}

func key(protocol int) {
	client := connect(redis.Options{Addr: Address("KEY_PORT"), Protocol: protocol, Password: os.Getenv("KEY")})
	defer client.Close()
	Equal(Must(client.SAdd(ctx, Following(Base()+protocol), 1).Result()), int64(1))
	wrong := connect(redis.Options{Addr: Address("KEY_PORT"), Protocol: protocol, Password: "wrong"})
	defer wrong.Close()
	Refused(wrong.SCard(ctx, Following(1)).Err(), "")
}

func tls(protocol int) {
	client := connect(redis.Options{Addr: Address("TLS_PORT"), Protocol: protocol, TLSConfig: TLS()})
	defer client.Close()
	Equal(Must(client.Ping(ctx).Result()), "PONG")
}

func cache(first int) any {
	if os.Getenv("CACHE") == "" {
		return No("the server has no CLIENT TRACKING")
	}
	config := &redis.ClientSideCacheConfig{MaxEntries: 10_000}
	// With one connection, invalidations have one order.
	client := connect(redis.Options{Protocol: 3, PoolSize: 1, ClientSideCacheConfig: config})
	other := connect(redis.Options{})
	defer client.Close()
	defer other.Close()
	Churn(Reader{
		Members: func(key string) []string { return Must(client.SMembers(ctx, key).Result()) },
		Size:    func(key string) int64 { return Must(client.SCard(ctx, key).Result()) },
	}, func(command, key string, member int) { Must(other.Do(ctx, command, key, member).Result()) }, first)
	if hits := client.CSCStats().Hits; hits < 100 {
		panic(fmt.Sprint(hits, " hits"))
	}
	return nil
}

func main() {
	fmt.Println("version", redis.Version())
	if os.Getenv("ONLY_CACHE") == "" {
		Report("defaults", func() any { return Must(connect(redis.Options{}).Ping(ctx).Result()) })
		for _, protocol := range []int{2, 3} {
			client := connect(redis.Options{Protocol: protocol})
			Report(fmt.Sprint("resp", protocol), func() any { return Must(client.Ping(ctx).Result()) })
			for _, step := range []struct {
				name string
				run  func(*redis.Client, int)
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
