/* What the harness asks for; every option is --name value. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdint.h>

struct options {
    int port;          /* of 127.0.0.1 */
    int consumer_port; /* another node; 0: the same */
    int producers, consumers; /* connections */
    int both;          /* every producer's connection also consumes; then --consumers is not used */
    int queues;        /* PREFIX0 ...; connection i uses number i modulo queues */
    int spread;        /* every connection uses all queues in turn */
    const char *prefix;
    const char *topic; /* an address; then the queues are its subscriptions, and each gets all */
    int bytes;         /* of a body, at least 8 */
    int durable;       /* and then every send is confirmed */
    int idle;          /* connects, and sends nothing */
    int numbered;      /* bodies end with the number of the send, from 0 */
    int64_t window;    /* messages outstanding in all */
    int burst;         /* messages of one write */
    int rate;          /* messages a second in all, one a write; 0: as the window allows */
    int64_t count;     /* sends in all; 0: no end */
    int64_t expect;    /* "done" is said when so many came, where nothing is sent */
    uint32_t credits;  /* bytes of a consumer */
    const char *user, *password;
};

/* Exits with status 2 and a reason when they make no sense. */
struct options read_options(int count, char **values);

#endif
