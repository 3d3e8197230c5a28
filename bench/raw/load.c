/*
 * A load generator for CORE brokers that costs little: one thread, epoll, messages prepared once,
 * written in bursts. The harness (bench/generators.py) starts it with options (options.h) and talks to
 * it by lines: after {"ready": 1} `count` answers what went through since the start and how long
 * deliveries took since the last `count`; `stop`, or the end of its input, ends it when all has come.
 */
#include "frames.h"
#include "latency.h"
#include "options.h"
#include "peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define INPUT_ROOM (1 << 19)
#define EVENTS 256
#define STDIN_EVENT UINT32_MAX
#define TIMER_EVENT (UINT32_MAX - 1)

/* Messages one after the other, and where each begins. */
struct ring {
    struct bytes frames;
    size_t *starts, count;
};

static struct options options;
static struct peer *peers;
static struct ring *rings;
static int peer_count, poll_fd, timer_fd, said_done, stopping;
static int64_t sent, received, confirmed, bad;
static struct latency latency;
static uint64_t due_ns, gap_ns;
static uint8_t input_buffer[INPUT_ROOM];

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int64_t copies(void)
{
    return options.topic ? options.queues : 1;
}

/* -- set-up --------------------------------------------------------------------------------- */

static void name_queue(char *name, size_t room, int number)
{
    snprintf(name, room, "%s%d", options.prefix, number);
}

static void prepare_ring(struct ring *ring, int first, int queues)
{
    char address[128];
    size_t rounds = (size_t)(options.burst + queues - 1) / (size_t)queues;
    ring->count = rounds * (size_t)queues;
    ring->starts = malloc((ring->count + 1) * sizeof *ring->starts);
    for (size_t i = 0; i < ring->count; i++) {
        ring->starts[i] = ring->frames.size;
        name_queue(address, sizeof address, first + (int)(i % (size_t)queues));
        put_message(&ring->frames, options.topic ? options.topic : address, (size_t)options.bytes,
                    options.durable, options.topic != NULL, i);
    }
    ring->starts[ring->count] = ring->frames.size;
}

static void prepare_rings(void)
{
    int count = options.spread || options.topic ? 1 : options.queues;
    rings = calloc((size_t)count, sizeof *rings);
    for (int i = 0; i < count; i++)
        prepare_ring(&rings[i], i, options.spread ? options.queues : 1);
}

static void consume_queues(struct peer *peer, int number, int consuming)
{
    char queue[128];
    int step = options.both && !options.spread ? options.queues : consuming;
    for (int i = number % options.queues; i < options.queues; i += step) {
        name_queue(queue, sizeof queue, i);
        peer_consume(peer, queue);
    }
}

static void watch(int fd, uint32_t number, uint32_t events, int how)
{
    struct epoll_event event = {.events = events, .data.u32 = number};
    if (epoll_ctl(poll_fd, how, fd, &event) < 0) {
        perror("epoll_ctl");
        exit(1);
    }
}

static void connect_all(void)
{
    int consumers = options.both ? 0 : options.consumers;
    peer_count = options.producers + consumers;
    peers = calloc((size_t)peer_count, sizeof *peers);
    for (int i = 0; i < peer_count; i++) {
        int number = i < consumers ? i : i - consumers;
        struct peer *peer = &peers[i];
        int port = i < consumers ? options.consumer_port : options.port;
        peer_open(peer, port, options.user, options.password);
        peer->produces = i >= consumers;
        peer->ring = options.spread || options.topic ? 0 : (size_t)(number % options.queues);
        if (i < consumers)
            consume_queues(peer, number, consumers);
        else if (options.both)
            consume_queues(peer, number, options.producers);
        peer_start(peer, options.credits);
        watch(peer->fd, (uint32_t)i, EPOLLIN, EPOLL_CTL_ADD);
    }
}

/* -- sending -------------------------------------------------------------------------------- */

static void watch_writing(struct peer *peer)
{
    int wanted = peer_is_blocked(peer);
    if (wanted != peer->wants_write) {
        uint32_t events = wanted ? EPOLLIN | EPOLLOUT : EPOLLIN;
        watch(peer->fd, (uint32_t)(peer - peers), events, EPOLL_CTL_MOD);
        peer->wants_write = wanted;
    }
}

/* The last bytes of a body, most significant first. */
static void number_body(struct ring *ring, size_t place, uint64_t number)
{
    set_u64(ring->frames.data + ring->starts[place] + BODY_OFFSET + options.bytes - 8, number);
}

static void send_messages(struct peer *peer, int64_t count)
{
    struct ring *ring = &rings[peer->ring];
    while (count > 0) {
        size_t left = ring->count - peer->next;
        size_t now = (uint64_t)count < left ? (size_t)count : left;
        for (size_t i = 0; options.numbered && i < now; i++)
            number_body(ring, peer->next + i, (uint64_t)sent + i);
        size_t from = ring->starts[peer->next], to = ring->starts[peer->next + now];
        peer_write(peer, ring->frames.data + from, to - from);
        peer->next = (peer->next + now) % ring->count;
        count -= (int64_t)now;
        sent += (int64_t)now;
        if (options.durable)
            peer->unconfirmed += (int64_t)now;
    }
    watch_writing(peer);
}

/* How many messages this connection may send now. */
static int64_t allowance(const struct peer *peer)
{
    int64_t free = options.burst;
    int64_t outstanding = sent * copies() - received;
    if (!peer->produces || peer_is_blocked(peer))
        return 0;
    if (options.count && options.count - sent < free)
        free = options.count - sent;
    if (options.durable) {
        int64_t room = options.window / options.producers - peer->unconfirmed;
        free = room < free ? room : free;
    }
    if ((options.both || options.consumers) && outstanding + free * copies() > options.window)
        return 0;
    return free;
}

static void send_what_fits(void)
{
    static int turn;
    int idle = 0;
    if (options.rate || options.idle || stopping)
        return;
    while (idle < peer_count) {
        struct peer *peer = &peers[turn];
        int64_t free = allowance(peer);
        turn = (turn + 1) % peer_count;
        idle = free > 0 ? 0 : idle + 1;
        if (free > 0)
            send_messages(peer, free);
        else if (!options.durable && peer->produces && !peer_is_blocked(peer))
            return; /* the window that all share is full */
    }
}

/* A message for every time that has come; its body ends with the time it was due. */
static void send_what_is_due(void)
{
    static int turn;
    uint64_t expirations;
    if (read(timer_fd, &expirations, sizeof expirations) < 0)
        return; /* the times count, not how often the timer ran */
    for (uint64_t now = now_ns(); due_ns <= now; due_ns += gap_ns) {
        while (!peers[turn].produces)
            turn = (turn + 1) % peer_count;
        struct peer *peer = &peers[turn];
        struct ring *ring = &rings[peer->ring];
        turn = (turn + 1) % peer_count;
        number_body(ring, peer->next, due_ns);
        send_messages(peer, 1);
    }
}

/* -- receiving ------------------------------------------------------------------------------ */

static void take_delivery(struct peer *peer, const uint8_t *frame, size_t size, struct bytes *out)
{
    size_t headers = get_u32(frame + 13) + 4;
    if (headers + 8 > size || headers < BODY_OFFSET + 8 || size < 12) {
        bad++;
        return;
    }
    uint64_t id = get_u64(frame + headers), number = get_u64(frame + size - 12);
    if (number >= peer->consumer_count || id <= peer->consumers[number].last_id) {
        bad++;
        return;
    }
    struct consumer *consumer = &peer->consumers[number];
    consumer->last_id = id;
    consumer->consumed += (uint32_t)size;
    received++;
    if (options.rate) {
        uint64_t due = get_u64(frame + headers - 8), now = now_ns();
        latency_add(&latency, now > due ? now - due : 0);
    }
    put_acknowledge(out, number, id);
    if (consumer->consumed >= options.credits / 2) {
        put_credits(out, number, consumer->consumed);
        consumer->consumed = 0;
    }
}

static size_t take_frames(struct peer *peer, const uint8_t *data, size_t size, struct bytes *out)
{
    size_t at = 0;
    while (size - at >= 4) {
        size_t length = 4 + (size_t)get_u32(data + at);
        if (size - at < length)
            break;
        const uint8_t *frame = data + at;
        switch (frame[4]) {
        case PACKET_RECEIVE:
            take_delivery(peer, frame, length, out);
            break;
        case PACKET_NULL_RESPONSE:
        case PACKET_NULL_RESPONSE_V2:
            peer->unconfirmed--;
            confirmed++;
            break;
        case PACKET_EXCEPTION:
            bad++;
            break;
        default:
            break; /* pings, producer credits */
        }
        at += length;
    }
    return at;
}

static void read_input(struct peer *peer)
{
    static struct bytes out;
    size_t have = peer->input.size;
    if (have)
        memcpy(input_buffer, peer->input.data, have);
    ssize_t got = read(peer->fd, input_buffer + have, INPUT_ROOM - have);
    if (got <= 0) {
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        fputs("the broker closed a connection\n", stderr);
        exit(1);
    }
    have += (size_t)got;
    out.size = 0;
    size_t used = take_frames(peer, input_buffer, have, &out);
    peer->input.size = 0;
    if (used < have)
        put(&peer->input, input_buffer + used, have - used);
    if (out.size) {
        peer_write(peer, out.data, out.size);
        watch_writing(peer);
    }
}

/* -- talking to the harness ----------------------------------------------------------------- */

static void say_counts(void)
{
    printf("{\"sent\": %lld, \"received\": %lld, \"confirmed\": %lld, \"bad\": %lld, "
           "\"at_ns\": %llu, \"samples\": %llu, \"p50_us\": %llu, \"p99_us\": %llu}\n",
           (long long)sent, (long long)received, (long long)confirmed, (long long)bad,
           (unsigned long long)now_ns(), (unsigned long long)latency.samples,
           (unsigned long long)latency_at(&latency, 0.5),
           (unsigned long long)latency_at(&latency, 0.99));
    fflush(stdout);
    latency_clear(&latency);
}

static void obey(void)
{
    char line[64];
    ssize_t got = read(STDIN_FILENO, line, sizeof line);
    if (got > 0 && line[0] != 's') {
        say_counts();
        return;
    }
    stopping = 1;
    watch(STDIN_FILENO, STDIN_EVENT, 0, EPOLL_CTL_DEL);
    if (timer_fd)
        watch(timer_fd, TIMER_EVENT, 0, EPOLL_CTL_DEL);
}

/* What was sent is taken before the end: left behind it would be the next load's, beyond its window. */
static void end_when_taken(void)
{
    int receives = options.both || options.consumers;
    if (!stopping || (receives && received < sent * copies()))
        return;
    for (int i = 0; i < peer_count; i++)
        if (peer_is_blocked(&peers[i]))
            return; /* acknowledgements */
    exit(0);
}

static void say_done(void)
{
    int64_t wanted = options.count ? options.count : options.expect;
    int receives = options.both || options.consumers;
    if (!wanted || said_done || (options.count && sent < wanted))
        return;
    if (options.count && options.durable && confirmed < wanted)
        return;
    if (receives && received < wanted * copies())
        return;
    said_done = 1;
    printf("{\"done\": 1, \"at_ns\": %llu}\n", (unsigned long long)now_ns());
    fflush(stdout);
}

static void start_timer(void)
{
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    gap_ns = 1000000000u / (uint64_t)options.rate;
    due_ns = now_ns() + gap_ns;
    struct timespec first = {(time_t)(due_ns / 1000000000u), (long)(due_ns % 1000000000u)};
    struct timespec gap = {(time_t)(gap_ns / 1000000000u), (long)(gap_ns % 1000000000u)};
    struct itimerspec when = {.it_interval = gap, .it_value = first};
    if (timer_fd < 0 || timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL) < 0) {
        perror("timerfd");
        exit(1);
    }
    watch(timer_fd, TIMER_EVENT, EPOLLIN, EPOLL_CTL_ADD);
}

int main(int count, char **values)
{
    struct epoll_event events[EVENTS];
    options = read_options(count, values);
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    prepare_rings();
    connect_all();
    watch(STDIN_FILENO, STDIN_EVENT, EPOLLIN, EPOLL_CTL_ADD);
    printf("{\"ready\": 1, \"at_ns\": %llu}\n", (unsigned long long)now_ns());
    fflush(stdout);
    if (options.rate && options.producers)
        start_timer();
    for (;;) {
        send_what_fits();
        say_done();
        end_when_taken();
        int happened = epoll_wait(poll_fd, events, EVENTS, stopping ? 1000 : -1);
        if (stopping && happened == 0)
            exit(0); /* nothing comes any more */
        for (int i = 0; i < happened; i++) {
            uint32_t number = events[i].data.u32;
            if (number == STDIN_EVENT) {
                obey();
            } else if (number == TIMER_EVENT) {
                send_what_is_due();
            } else {
                if (events[i].events & EPOLLOUT) {
                    peer_write_pending(&peers[number]);
                    watch_writing(&peers[number]);
                }
                if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                    read_input(&peers[number]);
            }
        }
    }
}
