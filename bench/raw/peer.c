#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, errno ? strerror(errno) : "connection closed");
    exit(1);
}

static void read_exactly(int fd, uint8_t *to, size_t size)
{
    while (size > 0) {
        errno = 0;
        ssize_t got = read(fd, to, size);
        if (got <= 0)
            fail("no answer from the broker");
        to += got;
        size -= (size_t)got;
    }
}

static void write_exactly(int fd, const uint8_t *from, size_t size)
{
    while (size > 0) {
        ssize_t put_in = write(fd, from, size);
        if (put_in <= 0)
            fail("write to the broker");
        from += put_in;
        size -= (size_t)put_in;
    }
}

/* Sends and waits for a packet of one of the types; anything else meanwhile is left out. */
static void ask(int fd, struct bytes *request, const uint8_t *types)
{
    static uint8_t answer[1 << 16];
    write_exactly(fd, request->data, request->size);
    request->size = 0;
    for (;;) {
        uint8_t head[4];
        read_exactly(fd, head, sizeof head);
        uint32_t size = get_u32(head);
        if (size < 9 || size > sizeof answer) {
            fprintf(stderr, "a packet of %u bytes during the handshake\n", size);
            exit(1);
        }
        read_exactly(fd, answer, size);
        if (answer[0] == PACKET_EXCEPTION) {
            fputs("the broker refused: ", stderr);
            for (uint32_t i = 9; i < size; i++)
                if (answer[i] >= ' ' && answer[i] < 127)
                    fputc(answer[i], stderr);
            fputc('\n', stderr);
            exit(1);
        }
        for (const uint8_t *type = types; *type; type++)
            if (answer[0] == *type)
                return;
    }
}

void peer_open(struct peer *peer, int port, const char *user, const char *password)
{
    static const uint8_t answers[] = {PACKET_CREATE_SESSION_RESPONSE, 0};
    static unsigned sessions;
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int on = 1;
    memset(peer, 0, sizeof *peer);
    peer->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (peer->fd < 0 || connect(peer->fd, (struct sockaddr *)&where, sizeof where) < 0)
        fail("connect");
    setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    char name[9];
    snprintf(name, sizeof name, "b%06x", sessions++ & 0xffffff);
    struct bytes request = {0};
    put(&request, "ARTEMIS", 7);
    put_create_session(&request, name, user, password);
    ask(peer->fd, &request, answers);
    free(request.data);
}

void peer_consume(struct peer *peer, const char *queue)
{
    static const uint8_t answers[] = {PACKET_QUEUE_QUERY_RESPONSE, PACKET_QUEUE_QUERY_RESPONSE_V2,
                                      PACKET_QUEUE_QUERY_RESPONSE_V3, 0};
    struct bytes request = {0};
    uint64_t number = peer->consumer_count++;
    peer->consumers = realloc(peer->consumers, peer->consumer_count * sizeof *peer->consumers);
    peer->consumers[number] = (struct consumer){0};
    put_create_consumer(&request, number, queue);
    ask(peer->fd, &request, answers);
    free(request.data);
}

void peer_start(struct peer *peer, uint32_t credits)
{
    struct bytes request = {0};
    if (peer->consumer_count)
        put_session_start(&request);
    for (uint64_t i = 0; i < peer->consumer_count; i++)
        put_credits(&request, i, credits);
    write_exactly(peer->fd, request.data, request.size);
    free(request.data);
    if (fcntl(peer->fd, F_SETFL, fcntl(peer->fd, F_GETFL) | O_NONBLOCK) < 0)
        fail("fcntl");
}

static size_t write_some(int fd, const uint8_t *data, size_t size)
{
    ssize_t written = write(fd, data, size);
    if (written >= 0)
        return (size_t)written;
    if (errno != EAGAIN && errno != EINTR)
        fail("write to the broker");
    return 0;
}

void peer_write(struct peer *peer, const void *data, size_t size)
{
    size_t done = peer_is_blocked(peer) ? 0 : write_some(peer->fd, data, size);
    if (done < size)
        put(&peer->pending, (const uint8_t *)data + done, size - done);
}

void peer_write_pending(struct peer *peer)
{
    struct bytes *pending = &peer->pending;
    peer->written +=
        write_some(peer->fd, pending->data + peer->written, pending->size - peer->written);
    if (peer->written == pending->size)
        peer->written = pending->size = 0;
}

int peer_is_blocked(const struct peer *peer)
{
    return peer->pending.size > 0;
}
