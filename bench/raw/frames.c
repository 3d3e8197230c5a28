#include "frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROTOCOL_VERSION 136
#define DEFAULT_MIN_LARGE_MESSAGE 102400
#define BYTES_MESSAGE 4
#define PROPERTY_BYTE 3

void put(struct bytes *to, const void *data, size_t size)
{
    if (to->size + size > to->room) {
        to->room = (to->size + size) * 2;
        to->data = realloc(to->data, to->room);
        if (to->data == NULL) {
            fputs("out of memory\n", stderr);
            exit(1);
        }
    }
    memcpy(to->data + to->size, data, size);
    to->size += size;
}

void put_u8(struct bytes *to, uint8_t value)
{
    put(to, &value, 1);
}

void put_u32(struct bytes *to, uint32_t value)
{
    value = __builtin_bswap32(value);
    put(to, &value, sizeof value);
}

void put_u64(struct bytes *to, uint64_t value)
{
    value = __builtin_bswap64(value);
    put(to, &value, sizeof value);
}

uint32_t get_u32(const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return __builtin_bswap32(value);
}

uint64_t get_u64(const uint8_t *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return __builtin_bswap64(value);
}

void set_u64(uint8_t *at, uint64_t value)
{
    value = __builtin_bswap64(value);
    memcpy(at, &value, sizeof value);
}

/* A SimpleString: bytes, then UTF-16 with the low byte first. */
static void put_simple(struct bytes *to, const char *text)
{
    put_u32(to, (uint32_t)(2 * strlen(text)));
    for (; *text; text++) {
        put_u8(to, (uint8_t)*text);
        put_u8(to, 0);
    }
}

/* A string of at most eight characters: its length, then UTF-16 with the high byte first. */
static void put_short_string(struct bytes *to, const char *text)
{
    if (strlen(text) > 8) {
        fprintf(stderr, "%s: more than eight characters\n", text);
        exit(2);
    }
    put_u32(to, (uint32_t)strlen(text));
    for (; *text; text++) {
        put_u8(to, 0);
        put_u8(to, (uint8_t)*text);
    }
}

static size_t begin(struct bytes *to, uint8_t type, uint64_t channel)
{
    size_t at = to->size;
    put_u32(to, 0);
    put_u8(to, type);
    put_u64(to, channel);
    return at;
}

static void end(struct bytes *to, size_t at)
{
    uint32_t size = __builtin_bswap32((uint32_t)(to->size - at - 4));
    memcpy(to->data + at, &size, sizeof size);
}

void put_create_session(struct bytes *to, const char *name, const char *user, const char *password)
{
    size_t at = begin(to, PACKET_CREATE_SESSION_V2, 1);
    put_short_string(to, name);
    put_u64(to, SESSION_CHANNEL);
    put_u32(to, PROTOCOL_VERSION);
    put_u8(to, 1);
    put_short_string(to, user);
    put_u8(to, 1);
    put_short_string(to, password);
    put_u32(to, DEFAULT_MIN_LARGE_MESSAGE);
    put_u8(to, 0);           /* no XA */
    put_u8(to, 1);           /* sends commit themselves */
    put_u8(to, 1);           /* acknowledgements too */
    put_u32(to, UINT32_MAX); /* no confirmation window */
    put_u8(to, 0);           /* no pre-acknowledgement */
    put_u8(to, 0);           /* no default address */
    put_u8(to, 0);           /* no client id */
    end(to, at);
}

void put_create_consumer(struct bytes *to, uint64_t consumer, const char *queue)
{
    size_t at = begin(to, PACKET_CREATE_CONSUMER, SESSION_CHANNEL);
    put_u64(to, consumer);
    put_simple(to, queue);
    put_u8(to, 0);  /* no filter */
    put_u8(to, 0);  /* takes the messages */
    put_u8(to, 1);  /* wants a response */
    put_u32(to, 0); /* priority */
    end(to, at);
}

void put_session_start(struct bytes *to)
{
    end(to, begin(to, PACKET_SESSION_START, SESSION_CHANNEL));
}

void put_credits(struct bytes *to, uint64_t consumer, uint32_t credits)
{
    size_t at = begin(to, PACKET_CONSUMER_CREDITS, SESSION_CHANNEL);
    put_u64(to, consumer);
    put_u32(to, credits);
    end(to, at);
}

void put_acknowledge(struct bytes *to, uint64_t consumer, uint64_t message)
{
    size_t at = begin(to, PACKET_ACKNOWLEDGE, SESSION_CHANNEL);
    put_u64(to, consumer);
    put_u64(to, message);
    put_u8(to, 0); /* wants no response */
    end(to, at);
}

void put_message(struct bytes *to, const char *address, size_t body, int durable, int multicast,
                 uint64_t number)
{
    static const uint8_t user_id[16] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
    size_t at = begin(to, PACKET_SEND, SESSION_CHANNEL);
    put_u32(to, (uint32_t)(body + BODY_OFFSET - 4));
    for (size_t i = 0; i < body; i++)
        put_u8(to, 0);
    put_u64(to, 0); /* the broker gives the id */
    put_u8(to, 1);
    put_simple(to, address);
    put_u8(to, 1);
    put(to, user_id, sizeof user_id); /* as every JMS client */
    put_u8(to, BYTES_MESSAGE);
    put_u8(to, (uint8_t)durable);
    put_u64(to, 0);             /* never expires */
    put_u64(to, 1732000000000); /* timestamp, ms */
    put_u8(to, 4);              /* priority */
    put_u8(to, 1);
    put_u32(to, 1); /* one property */
    put_simple(to, "_AMQ_ROUTING_TYPE");
    put_u8(to, PROPERTY_BYTE);
    put_u8(to, multicast ? 0 : 1);
    put_u8(to, (uint8_t)durable); /* wants a response */
    put_u64(to, number);          /* its correlation */
    put_u32(to, 0);               /* sender */
    end(to, at);
}
