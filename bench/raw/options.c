#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text(int count, char **values, const char *name, const char *otherwise)
{
    for (int i = 1; i + 1 < count; i += 2)
        if (strcmp(values[i], name) == 0)
            return values[i + 1];
    return otherwise;
}

static int64_t number(int count, char **values, const char *name, int64_t otherwise)
{
    const char *value = text(count, values, name, NULL);
    if (value == NULL)
        return otherwise;
    char *end;
    errno = 0;
    int64_t found = strtoll(value, &end, 10);
    if (errno || *end || end == value || found < 0) {
        fprintf(stderr, "%s %s: not a number\n", name, value);
        exit(2);
    }
    return found;
}

static void check_names(int count, char **values)
{
    static const char *known[] = {
        "--port",  "--consumer-port", "--producers", "--consumers", "--both",  "--queues",
        "--spread", "--prefix",       "--topic",     "--bytes",     "--durable", "--window",
        "--burst", "--rate",          "--count",     "--expect",    "--credits", "--user",
        "--password", "--idle",    "--numbered",
    };
    for (int i = 1; i < count; i += 2) {
        int found = i + 1 < count;
        for (size_t k = 0; found && k < sizeof known / sizeof *known; k++)
            if (strcmp(values[i], known[k]) == 0)
                break;
            else if (k + 1 == sizeof known / sizeof *known)
                found = 0;
        if (!found) {
            fprintf(stderr, "%s: no such option, or it has no value\n", values[i]);
            exit(2);
        }
    }
}

struct options read_options(int count, char **values)
{
    check_names(count, values);
    struct options read = {
        .port = (int)number(count, values, "--port", 61616),
        .consumer_port = (int)number(count, values, "--consumer-port", 0),
        .producers = (int)number(count, values, "--producers", 1),
        .consumers = (int)number(count, values, "--consumers", 1),
        .both = (int)number(count, values, "--both", 0),
        .queues = (int)number(count, values, "--queues", 1),
        .spread = (int)number(count, values, "--spread", 0),
        .prefix = text(count, values, "--prefix", "bench.q"),
        .topic = text(count, values, "--topic", NULL),
        .bytes = (int)number(count, values, "--bytes", 100),
        .durable = (int)number(count, values, "--durable", 0),
        .idle = (int)number(count, values, "--idle", 0),
        .numbered = (int)number(count, values, "--numbered", 0),
        .window = number(count, values, "--window", 20000),
        .burst = (int)number(count, values, "--burst", 500),
        .rate = (int)number(count, values, "--rate", 0),
        .count = number(count, values, "--count", 0),
        .expect = number(count, values, "--expect", 0),
        .credits = (uint32_t)number(count, values, "--credits", 1 << 20),
        .user = text(count, values, "--user", "admin"),
        .password = text(count, values, "--password", "admin"),
    };
    if (read.queues < 1 || read.bytes < 8 || read.burst < 1 || read.window < read.burst) {
        fputs("--queues and --burst from 1, --bytes from 8, --window not below --burst\n", stderr);
        exit(2);
    }
    if (read.rate > 0)
        read.burst = 1;
    if (read.consumer_port == 0)
        read.consumer_port = read.port;
    return read;
}
