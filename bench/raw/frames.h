/* CORE packets of the load generator: only what a producer, a consumer and their sessions need. */
#ifndef BENCH_FRAMES_H
#define BENCH_FRAMES_H

#include <stddef.h>
#include <stdint.h>

enum {
    PACKET_EXCEPTION = 20,
    PACKET_NULL_RESPONSE = 21,
    PACKET_CREATE_SESSION_RESPONSE = 31,
    PACKET_CREATE_CONSUMER = 40,
    PACKET_ACKNOWLEDGE = 41,
    PACKET_QUEUE_QUERY_RESPONSE = 46,
    PACKET_SESSION_START = 67,
    PACKET_CONSUMER_CREDITS = 70,
    PACKET_SEND = 71,
    PACKET_RECEIVE = 75,
    PACKET_NULL_RESPONSE_V2 = 88,
    PACKET_CREATE_SESSION_V2 = 238,
    PACKET_QUEUE_QUERY_RESPONSE_V3 = 242,
    PACKET_QUEUE_QUERY_RESPONSE_V2 = 249,
};

#define SESSION_CHANNEL 10
#define BODY_OFFSET 17 /* of a send or a delivery: length, type, channel, end of the body */

/* Bytes that grow. */
struct bytes {
    uint8_t *data;
    size_t size, room;
};

void put(struct bytes *to, const void *data, size_t size);
void put_u8(struct bytes *to, uint8_t value);
void put_u32(struct bytes *to, uint32_t value);
void put_u64(struct bytes *to, uint64_t value);
uint32_t get_u32(const uint8_t *from);
uint64_t get_u64(const uint8_t *from);
void set_u64(uint8_t *at, uint64_t value);

/* One whole packet each, appended. */
void put_create_session(struct bytes *to, const char *name, const char *user, const char *password);
void put_create_consumer(struct bytes *to, uint64_t consumer, const char *queue);
void put_session_start(struct bytes *to);
void put_credits(struct bytes *to, uint64_t consumer, uint32_t credits);
void put_acknowledge(struct bytes *to, uint64_t consumer, uint64_t message);
void put_message(struct bytes *to, const char *address, size_t body, int durable, int multicast,
                 uint64_t number);

#endif
