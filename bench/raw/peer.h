/* One connection with one session: its handshake, and what waits to be written. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "frames.h"

struct consumer {
    uint64_t last_id;
    uint32_t consumed; /* bytes since credits were given */
};

struct peer {
    int fd;
    int produces, wants_write;
    int64_t unconfirmed;
    size_t ring;          /* which prepared messages it sends */
    size_t next;          /* the next of them */
    struct bytes pending; /* what the socket did not take */
    size_t written;       /* of pending */
    struct bytes input;
    struct consumer *consumers;
    uint64_t consumer_count;
};

/* Each blocks until the broker has answered, and exits with its error if it refuses. */
void peer_open(struct peer *peer, int port, const char *user, const char *password);
void peer_consume(struct peer *peer, const char *queue);
void peer_start(struct peer *peer, uint32_t credits); /* then the socket no longer blocks */

/* Writes what can be written at once; the rest waits in `pending`. */
void peer_write(struct peer *peer, const void *data, size_t size);
void peer_write_pending(struct peer *peer);
int peer_is_blocked(const struct peer *peer);

#endif
