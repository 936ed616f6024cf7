// Package steps has what the programs for Go share: the report of a step, and the churn that a cache has to survive.
package steps

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Base is the first of the user ids that belong to this program.
func Base() int {
	base, err := strconv.Atoi(os.Getenv("USERS"))
	if err != nil {
		panic("USERS is not set")
	}
	return base
}

// Address is that of the server whose port a variable has.
func Address(variable string) string { return "127.0.0.1:" + os.Getenv(variable) }

// Following and Followers are the names of a user's sets.
func Following(user int) string { return fmt.Sprintf("following:%d", user) }
func Followers(user int) string { return fmt.Sprintf("followers:%d", user) }

// Ids are the texts of some ids, from one to before another.
func Ids(from, to int) []string {
	ids := []string{}
	for id := from; id < to; id++ {
		ids = append(ids, strconv.Itoa(id))
	}
	return ids
}

// No is the reason why a library does not have a feature.
type No string

// Report runs a step and says how it went. A step that returns No does not apply.
func Report(feature string, step func() any) {
	defer func() {
		if problem := recover(); problem != nil {
			if os.Getenv("TRACE") != "" {
				debug.PrintStack()
			}
			fmt.Println(feature, "failed", strings.ReplaceAll(fmt.Sprint(problem), "\n", " "))
		}
	}()
	if reason, is := step().(No); is {
		fmt.Println(feature, "no", reason)
		return
	}
	fmt.Println(feature, "yes")
}

// Equal demands that two values are the same.
func Equal(found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Sprintf("%v instead of %v", found, expected))
	}
}

// Must is a value, where there is no error.
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Refused demands an error with some words.
func Refused(err error, words string) {
	if err == nil || !strings.Contains(err.Error(), words) {
		panic(fmt.Sprintf("an error with %q is missing: %v", words, err))
	}
}

// TLS trusts the certificate of the server under test.
func TLS() *tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(Must(os.ReadFile(os.Getenv("TLS_CA"))))
	return &tls.Config{RootCAs: roots, ServerName: "localhost"}
}

// Reader reads through a cache.
type Reader struct {
	Members func(key string) []string
	Size    func(key string) int64
}

// Churn changes sets through another client while the cache reads. Invalidations come in order, so that once the cache
// shows the last write, everything that it says must be right.
func Churn(reader Reader, write func(command, key string, member int), first int) {
	chance := rand.New(rand.NewSource(int64(first)))
	mark := Following(first)
	truth := map[string]map[string]bool{}
	keys := []string{}
	for user := first + 1; user <= first+10; user++ {
		keys = append(keys, Following(user))
	}
	for followee := first + 101; followee <= first+120 && os.Getenv("FOLLOWERS") != ""; followee++ {
		keys = append(keys, Followers(followee))
	}
	for _, key := range keys {
		truth[key] = map[string]bool{}
	}
	apply := func(command, key string, member int) {
		if members, is := truth[key]; is && command == "SADD" {
			members[strconv.Itoa(member)] = true
		} else if is {
			delete(members, strconv.Itoa(member))
		}
	}
	Equal(reader.Size(mark), int64(0))
	for turn := range 50 {
		changes := []func(){}
		for range 20 {
			user, followee, command := first+1+chance.Intn(10), first+101+chance.Intn(20), "SADD"
			if chance.Intn(10) >= 6 {
				command = "SREM"
			}
			apply(command, Following(user), followee)
			apply(command, Followers(followee), user)
			changes = append(changes, func() { write(command, Following(user), followee) })
		}
		written := make(chan bool)
		go func() {
			for _, change := range changes {
				change()
			}
			close(written)
		}()
		for isWriting := true; isWriting; {
			key := keys[chance.Intn(len(keys))]
			reader.Members(key)
			reader.Size(key)
			select {
			case <-written:
				isWriting = false
			default:
			}
		}
		write("SADD", mark, first+1000+turn)
		for deadline := time.Now().Add(10 * time.Second); reader.Size(mark) != int64(turn+1); {
			if time.Now().After(deadline) {
				panic("the cache did not learn of a write for 10 s")
			}
		}
		for _, key := range keys {
			found, expected := reader.Members(key), []string{}
			for member := range truth[key] {
				expected = append(expected, member)
			}
			sort.Strings(found)
			sort.Strings(expected)
			Equal(append([]string{key}, found...), append([]string{key}, expected...))
			Equal(reader.Size(key), int64(len(expected)))
		}
	}
}
