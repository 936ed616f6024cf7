/* hiredis against running servers. See README.md of this folder. */
#include <hiredis.h>
#include <hiredis_ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What is wrong ends a step. */
static jmp_buf failed;
static char problem[512];

static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem, sizeof problem, format, arguments);
    va_end(arguments);
    longjmp(failed, 1);
}

#define DEMAND(condition) \
    if (!(condition)) fail("%s", #condition)

/* A step gives the reason why the library does not have a feature, or NULL. */
typedef const char *step(redisContext *client, long user);

static void report(const char *feature, step *run, redisContext *client, long user) {
    if (setjmp(failed)) {
        printf("%s failed %s\n", feature, problem);
    } else {
        const char *reason = run(client, user);
        printf(reason ? "%s no %s\n" : "%s yes\n", feature, reason);
    }
    fflush(stdout);
}

static long base(void) { return atol(getenv("USERS")); }

static redisContext *dial(const char *port) {
    redisContext *client = redisConnect("127.0.0.1", atoi(getenv(port)));
    if (client == NULL || client->err) fail("%s", client ? client->errstr : "no memory");
    return client;
}

/* Sends a command and takes its reply, which may be an error. */
static redisReply *ask_any(redisContext *client, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = redisvCommand(client, format, arguments);
    va_end(arguments);
    if (reply == NULL) fail("%s: %s", format, client->errstr);
    return reply;
}

#define ask(client, ...) not_error(ask_any(client, __VA_ARGS__))

static redisReply *not_error(redisReply *reply) {
    if (reply->type == REDIS_REPLY_ERROR) fail("%s", reply->str);
    return reply;
}

/* The integer of a reply, which is freed. */
static long long number(redisReply *reply) {
    if (reply->type != REDIS_REPLY_INTEGER) fail("not an integer: type %d", reply->type);
    long long value = reply->integer;
    freeReplyObject(reply);
    return value;
}

static void switch_to(redisContext *client, int protocol) {
    if (protocol == 3) freeReplyObject(ask(client, "HELLO 3"));
}

static const char *ping(redisContext *client, long user) {
    (void)user;
    redisReply *reply = ask(client, "PING");
    DEMAND(strcmp(reply->str, "PONG") == 0);
    freeReplyObject(reply);
    return NULL;
}

static const char *follow(redisContext *client, long user) {
    DEMAND(number(ask(client, "SADD following:%ld %ld %ld", user, user + 1, user + 2)) == 2);
    DEMAND(number(ask(client, "SADD following:%ld %ld", user, user + 1)) == 0);
    DEMAND(number(ask(client, "SREM following:%ld %ld", user, user + 2)) == 1);
    return NULL;
}

static const char *check(redisContext *client, long user) {
    DEMAND(number(ask(client, "SISMEMBER following:%ld %ld", user, user + 1)) == 1);
    DEMAND(number(ask(client, "SISMEMBER following:%ld %ld", user, user + 2)) == 0);
    return NULL;
}

static const char *bulk(redisContext *client, long user) {
    redisReply *reply = ask(client, "SMISMEMBER following:%ld %ld %ld", user, user + 1, user + 2);
    DEMAND(reply->elements == 2 && reply->element[0]->integer == 1 && reply->element[1]->integer == 0);
    freeReplyObject(reply);
    return NULL;
}

static const char *counts(redisContext *client, long user) {
    DEMAND(number(ask(client, "SCARD following:%ld", user)) == 1);
    DEMAND(number(ask(client, "SCARD followers:%ld", user + 1)) == 1);
    return NULL;
}

/* Demands a list or set of one id. */
static void only(redisReply *reply, long id) {
    DEMAND(reply->type == REDIS_REPLY_ARRAY || reply->type == REDIS_REPLY_SET);
    DEMAND(reply->elements == 1 && atol(reply->element[0]->str) == id);
    freeReplyObject(reply);
}

static const char *members(redisContext *client, long user) {
    only(ask(client, "SMEMBERS following:%ld", user), user + 1);
    only(ask(client, "SMEMBERS followers:%ld", user + 1), user);
    return NULL;
}

static const char *intersect(redisContext *client, long user) {
    number(ask(client, "SADD following:%ld %ld %ld", user + 9, user + 1, user + 3));
    only(ask(client, "SINTER following:%ld following:%ld", user, user + 9), user + 1);
    DEMAND(number(ask(client, "SINTERCARD 2 following:%ld following:%ld", user, user + 9)) == 1);
    return NULL;
}

static const char *scan(redisContext *client, long user) {
    for (long id = user + 1000; id < user + 3000; id++) redisAppendCommand(client, "SADD following:%ld %ld", user, id);
    for (int at = 0; at < 2000; at++) {
        void *reply;
        DEMAND(redisGetReply(client, &reply) == REDIS_OK && number(reply) == 1);
    }
    size_t found = 0;
    char cursor[32] = "0";
    do {
        redisReply *reply = ask(client, "SSCAN following:%ld %s COUNT 100", user, cursor);
        DEMAND(reply->elements == 2);
        snprintf(cursor, sizeof cursor, "%s", reply->element[0]->str);
        found += reply->element[1]->elements;
        freeReplyObject(reply);
    } while (strcmp(cursor, "0") != 0);
    DEMAND(found == 2001);
    return NULL;
}

static const char *pipeline(redisContext *client, long user) {
    for (long id = user + 1000; id < user + 3000; id++) redisAppendCommand(client, "SREM following:%ld %ld", user, id);
    redisAppendCommand(client, "SCARD following:%ld", user);
    for (int at = 0; at < 2001; at++) {
        void *reply;
        DEMAND(redisGetReply(client, &reply) == REDIS_OK && number(reply) == 1);
    }
    return NULL;
}

static const char *multi(redisContext *client, long user) {
    freeReplyObject(ask(client, "MULTI"));
    freeReplyObject(ask(client, "SADD following:%ld %ld", user, user + 4));
    freeReplyObject(ask(client, "SCARD following:%ld", user));
    redisReply *reply = ask(client, "EXEC");
    DEMAND(reply->elements == 2 && reply->element[0]->integer == 1 && reply->element[1]->integer == 2);
    freeReplyObject(reply);
    return NULL;
}

static const char *own(redisContext *client, long user) {
    redisReply *token = ask(client, "FOLLOW %ld %ld", user, user + 5);
    freeReplyObject(ask(client, "AFTER %s", token->str));
    freeReplyObject(token);
    DEMAND(number(ask(client, "FOLLOWS %ld %ld", user, user + 5)) == 1);
    redisReply *page = ask(client, "FOLLOWERS %ld LIMIT 10", user + 5);
    DEMAND(page->elements == 2 && page->element[0]->elements == 1 && page->element[1]->type == REDIS_REPLY_NIL);
    DEMAND(atol(page->element[0]->element[0]->element[0]->str) == user);
    freeReplyObject(page);
    redisReply *both = ask(client, "COUNTS %ld", user);
    DEMAND(both->element[0]->integer == 3 && both->element[1]->integer == 0);
    freeReplyObject(both);
    freeReplyObject(ask(client, "FOLLOW %ld %ld", user + 5, user + 6));
    redisReply *suggestions = ask(client, "SUGGEST %ld LIMIT 1", user);
    redisReply *suggestion = suggestions->element[0];
    DEMAND(atol(suggestion->element[0]->str) == user + 6 && suggestion->element[1]->integer == 1);
    DEMAND(atol(suggestion->element[3]->element[0]->str) == user + 5);
    freeReplyObject(suggestions);
    redisReply *post = ask(client, "POST %ld PAYLOAD %s", user + 5, "{\"text\":\"hello\"}");
    redisReply *feed = ask(client, "FEED %ld LIMIT 1", user);
    redisReply *newest = feed->element[0]->element[0];
    DEMAND(strcmp(newest->element[0]->str, post->element[0]->str) == 0);
    DEMAND(strcmp(newest->element[3]->str, "{\"text\":\"hello\"}") == 0);
    freeReplyObject(post);
    freeReplyObject(feed);
    return NULL;
}

static void refused(redisReply *reply, const char *words) {
    DEMAND(reply->type == REDIS_REPLY_ERROR);
    if (strstr(reply->str, words) == NULL) fail("not '%s': %s", words, reply->str);
    freeReplyObject(reply);
}

static const char *errors(redisContext *client, long user) {
    refused(ask_any(client, "SADD somewhere 1"), "WRONGTYPE");
    refused(ask_any(client, "SADD following:%ld %ld", user, user), "ERR");
    refused(ask_any(client, "NONSENSE"), "unknown command");
    return ping(client, user);
}

static const char *key(redisContext *unused, long protocol) {
    (void)unused;
    redisContext *client = dial("KEY_PORT");
    refused(ask_any(client, "SCARD following:1"), "NOAUTH");
    refused(ask_any(client, "AUTH wrong"), "");
    redisFree(client);
    client = dial("KEY_PORT");
    if (protocol == 3) freeReplyObject(ask(client, "HELLO 3 AUTH default %s", getenv("KEY")));
    else freeReplyObject(ask(client, "AUTH %s", getenv("KEY")));
    DEMAND(number(ask(client, "SADD following:%ld 1", base() + protocol)) == 1);
    redisFree(client);
    return NULL;
}

static const char *tls(redisContext *unused, long protocol) {
    (void)unused;
    redisInitOpenSSL();
    redisSSLContext *context = redisCreateSSLContext(getenv("TLS_CA"), NULL, NULL, NULL, "localhost", NULL);
    DEMAND(context != NULL);
    redisContext *client = dial("TLS_PORT");
    DEMAND(redisInitiateSSLWithContext(client, context) == REDIS_OK);
    switch_to(client, protocol);
    ping(client, 0);
    redisFree(client);
    redisFreeSSLContext(context);
    return NULL;
}

/* A cache by hand: hiredis gives its user the pushes. Sets are bits: at most 20 members, of 10 users or 20 followees. */
enum { USERS = 10, FOLLOWEES = 20, MARK = USERS + FOLLOWEES, KEYS };

static struct {
    long first;
    unsigned members[KEYS];
    int is_cached[KEYS];
    long hits;
} cached;

static void key_name(int at, char *name, size_t size) {
    if (at == MARK) snprintf(name, size, "following:%ld", cached.first);
    else if (at < USERS) snprintf(name, size, "following:%ld", cached.first + 1 + at);
    else snprintf(name, size, "followers:%ld", cached.first + 101 + at - USERS);
}

static void invalidate(void *unused, void *pushed) {
    (void)unused;
    redisReply *push = pushed;
    if (push->elements == 2 && strcmp(push->element[0]->str, "invalidate") == 0) {
        for (int at = 0; at < KEYS; at++) {
            char name[64];
            key_name(at, name, sizeof name);
            for (size_t of = 0; of < push->element[1]->elements; of++) {
                if (strcmp(push->element[1]->element[of]->str, name) == 0) cached.is_cached[at] = 0;
            }
        }
    }
    freeReplyObject(push);
}

/* The bits of a set's members; of the set that marks a turn, their number. */
static unsigned look_up(redisContext *reader, int at) {
    if (cached.is_cached[at]) {
        cached.hits++;
        return cached.members[at];
    }
    char name[64];
    key_name(at, name, sizeof name);
    /* What arrives before the reply is older than it, and what arrives later takes it away again. */
    redisReply *reply = ask(reader, at == MARK ? "SCARD %s" : "SMEMBERS %s", name);
    unsigned bits = (unsigned)reply->integer;
    for (size_t of = 0; of < reply->elements; of++) {
        bits |= 1u << (atol(reply->element[of]->str) - cached.first - (at < USERS ? 101 : 1));
    }
    freeReplyObject(reply);
    cached.members[at] = bits;
    cached.is_cached[at] = 1;
    return bits;
}

/* Another client changes sets while the cache reads. Invalidations come in order, so that once the cache shows the last
   write, everything that it says must be right. */
static const char *cache(redisContext *unused, long first) {
    (void)unused;
    if (getenv("CACHE") == NULL) return "the server has no CLIENT TRACKING";
    redisContext *reader = dial("PORT");
    redisContext *writer = dial("PORT");
    memset(&cached, 0, sizeof cached);
    cached.first = first;
    redisSetPushCallback(reader, invalidate);
    freeReplyObject(ask(reader, "HELLO 3"));
    freeReplyObject(ask(reader, "CLIENT TRACKING ON"));
    int keys = getenv("FOLLOWERS") ? USERS + FOLLOWEES : USERS;
    unsigned truth[USERS + FOLLOWEES] = {0};
    srand(first);
    DEMAND(look_up(reader, MARK) == 0);
    for (int turn = 0; turn < 50; turn++) {
        for (int write = 0; write < 20; write++) {
            int user = rand() % USERS, followee = rand() % FOLLOWEES, is_follow = rand() % 10 < 6;
            redisAppendCommand(writer, "%s following:%ld %ld", is_follow ? "SADD" : "SREM", first + 1 + user, first + 101 + followee);
            int done = 0;
            while (!done) DEMAND(redisBufferWrite(writer, &done) == REDIS_OK);
            if (is_follow) truth[user] |= 1u << followee, truth[USERS + followee] |= 1u << user;
            else truth[user] &= ~(1u << followee), truth[USERS + followee] &= ~(1u << user);
            /* The write may come before or after these. */
            for (int read = 0; read < 10; read++) look_up(reader, rand() % keys);
        }
        for (int write = 0; write < 20; write++) {
            void *reply;
            DEMAND(redisGetReply(writer, &reply) == REDIS_OK);
            number(reply);
        }
        number(ask(writer, "SADD following:%ld %ld", first, first + 1000 + turn));
        time_t deadline = time(NULL) + 10;
        while (look_up(reader, MARK) != (unsigned)turn + 1) {
            if (time(NULL) > deadline) fail("the cache did not learn of a write for 10 s");
            /* Pushes are handled as replies are read. */
            ping(reader, 0);
        }
        for (int at = 0; at < keys; at++) {
            unsigned found = look_up(reader, at);
            if (found != truth[at]) fail("turn %d, set %d: %x instead of %x", turn, at, found, truth[at]);
        }
    }
    redisFree(reader);
    redisFree(writer);
    DEMAND(cached.hits > 100);
    return NULL;
}

int main(void) {
    printf("version %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    static const struct {
        const char *name;
        step *run;
    } steps[] = {{"follow", follow}, {"check", check}, {"bulk", bulk}, {"counts", counts}, {"members", members},
                 {"intersect", intersect}, {"scan", scan}, {"pipeline", pipeline}, {"multi", multi}, {"own", own}, {"errors", errors}};
    if (getenv("ONLY_CACHE") == NULL) {
        redisContext *client = dial("PORT");
        report("defaults", ping, client, 0);
        for (int protocol = 2; protocol <= 3; protocol++) {
            switch_to(client, protocol);
            report(protocol == 2 ? "resp2" : "resp3", ping, client, 0);
            for (size_t at = 0; at < sizeof steps / sizeof *steps; at++) {
                report(steps[at].name, steps[at].run, client, base() + 10000 * protocol);
            }
            report("key", key, NULL, protocol);
            report("tls", tls, NULL, protocol);
        }
        redisFree(client);
    }
    report("cache", cache, NULL, base() + 50000);
    return 0;
}
