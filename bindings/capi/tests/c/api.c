/* Every function of the header: what it does when used well, and the error code when not. Runs under valgrind as well. */
#include <stdlib.h>

#include "check.h"
#include "muse.h"

#define OK MUSE_STATUS_OK
#define NONE MUSE_STATUS_NONE

static const MuseChannel CHANNELS[] = {
    {.delivery = MUSE_DELIVERY_UNRELIABLE},
    {.delivery = MUSE_DELIVERY_SEQUENCED},
    {.delivery = MUSE_DELIVERY_RELIABLE_UNORDERED, .repair = MUSE_REPAIR_FAST},
    {.delivery = MUSE_DELIVERY_RELIABLE_SEQUENCED},
    {.delivery = MUSE_DELIVERY_RELIABLE_ORDERED, .priority = MUSE_PRIORITY_HIGH},
    {.delivery = MUSE_DELIVERY_PARTIALLY_RELIABLE, .window = 10, .percent = 80},
};

static MuseConfig config_of(uint64_t protocol) {
    MuseConfig config = {0};
    config.protocol = protocol;
    config.channels = CHANNELS;
    config.channel_count = 6;
    return config;
}

/* A server and a client in one Muse. */
typedef struct Pair {
    Muse *muse;
    uint64_t server, client, connection, peer;
    uint8_t public_key[32], key[32];
    char address[64];
} Pair;

static void turn(Pair *pair) {
    muse_wait(pair->muse, pair->client, 1000);
    muse_poll(pair->muse, pair->client);
    muse_poll(pair->muse, pair->server);
}

static void flush(Pair *pair) {
    muse_flush(pair->muse, pair->client);
    muse_flush(pair->muse, pair->server);
}

/* Polls both until `endpoint` has an event of this kind; the payload stays readable. */
static int until(Pair *pair, uint64_t endpoint, int kind, MuseEvent *event) {
    for (int round = 0; round < 20000; round++) {
        turn(pair);
        while (muse_next_event(pair->muse, endpoint, event) == OK) {
            if (event->kind == kind) {
                return 1;
            }
        }
        flush(pair);
    }
    return 0;
}

/* 1 if the bytes are this text. */
static int is_text(const uint8_t *bytes, size_t len, const char *text) {
    return len == strlen(text) && (len == 0 || memcmp(bytes, text, len) == 0);
}

/* 1 if this text stands somewhere in the bytes. */
static int has_text(const uint8_t *bytes, size_t len, const char *text) {
    size_t wanted = strlen(text);
    for (size_t at = 0; at + wanted <= len; at++) {
        if (memcmp(bytes + at, text, wanted) == 0) {
            return 1;
        }
    }
    return 0;
}

static void listen_at(Pair *pair, const MuseConfig *config, MuseServerOptions options) {
    size_t len = 0;
    pair->muse = muse_new();
    CHECK(pair->muse != NULL);
    CHECK_STATUS(OK, muse_key_new(pair->muse, pair->key));
    CHECK_STATUS(OK, muse_key_public(pair->muse, pair->key, pair->public_key));
    options.key = pair->key;
    CHECK_STATUS(OK, muse_server_new(pair->muse, "127.0.0.1:0", config, &options, &pair->server));
    CHECK_STATUS(OK, muse_local_address(pair->muse, pair->server, pair->address, sizeof pair->address, &len));
    CHECK(len == strlen(pair->address));
}

static void begin(Pair *pair, const MuseConfig *config, const char *hello) {
    MuseConnect connect = {0};
    connect.server_key = pair->public_key;
    connect.hello = (const uint8_t *)hello;
    connect.hello_len = strlen(hello);
    CHECK_STATUS(OK, muse_client_new(pair->muse, pair->address, config, &connect, &pair->client, &pair->connection));
}

static void connect_pinned(Pair *pair, const MuseConfig *config) {
    MuseEvent event;
    begin(pair, config, "let me in");
    CHECK(until(pair, pair->server, MUSE_EVENT_KIND_CONNECTED, &event));
    CHECK(event.extra_len == 9 && memcmp(event.extra, "let me in", 9) == 0);
    CHECK(event.account == 0 && event.payload_len == 0);
    pair->peer = event.connection;
    CHECK(until(pair, pair->client, MUSE_EVENT_KIND_CONNECTED, &event));
    CHECK(event.connection == pair->connection);
}

static void messages_of_every_mode(Pair *pair) {
    MuseEvent event;
    MuseSendOptions options = {0};
    uint64_t number = 0, now = 0;
    for (uint8_t channel = 0; channel < 6; channel++) {
        char text[16];
        int len = snprintf(text, sizeof text, "mode %d", channel);
        CHECK_STATUS(OK, muse_send(pair->muse, pair->client, pair->connection, channel, (uint8_t *)text, (size_t)len, NULL, NULL));
        CHECK(until(pair, pair->server, MUSE_EVENT_KIND_MESSAGE, &event));
        CHECK(event.connection == pair->peer && event.channel == channel);
        CHECK(event.payload_len == (size_t)len && memcmp(event.payload, text, (size_t)len) == 0);
    }
    options.receipt = 1;
    options.priority = MUSE_PRIORITY_URGENT;
    CHECK_STATUS(OK, muse_send(pair->muse, pair->client, pair->connection, 4, NULL, 0, &options, &number));
    CHECK(until(pair, pair->server, MUSE_EVENT_KIND_MESSAGE, &event) && event.payload_len == 0);
    CHECK(until(pair, pair->client, MUSE_EVENT_KIND_RECEIPT, &event));
    CHECK(event.message == number && event.channel == 4 && event.reason == MUSE_OUTCOME_DELIVERED);

    options.receipt = 0;
    CHECK_STATUS(OK, muse_now(pair->muse, pair->client, &now));
    options.deadline_us = now + 1000000;
    CHECK_STATUS(MUSE_STATUS_ERROR_ARGUMENT, muse_send(pair->muse, pair->client, pair->connection, 5, NULL, 0, &options, NULL));
    options.priority = 9;
    CHECK_STATUS(MUSE_STATUS_ERROR_ARGUMENT, muse_send(pair->muse, pair->client, pair->connection, 4, NULL, 0, &options, NULL));
    CHECK_STATUS(MUSE_STATUS_ERROR_NO_CHANNEL, muse_send(pair->muse, pair->client, pair->connection, 6, NULL, 0, NULL, NULL));
    CHECK_STATUS(MUSE_STATUS_ERROR_NO_CONNECTION, muse_send(pair->muse, pair->client, 77, 0, NULL, 0, NULL, NULL));
    CHECK_STATUS(MUSE_STATUS_ERROR_NULL, muse_send(pair->muse, pair->client, pair->connection, 0, NULL, 3, NULL, NULL));
}

static void a_large_message_and_short_buffers(Pair *pair) {
    size_t size = 1 << 20, sent = 0;
    uint8_t *large = malloc(size), *buffer = malloc(size), small[4];
    MuseEvent event;
    int status;
    for (size_t i = 0; i < size; i++) {
        large[i] = (uint8_t)(i * 31 >> 3);
    }
    CHECK_STATUS(OK, muse_broadcast(pair->muse, pair->server, 4, large, size, &sent));
    CHECK(sent == 1);
    do {
        flush(pair);
        turn(pair);
        status = muse_receive(pair->muse, pair->client, &event, small, sizeof small);
    } while (status == NONE);
    CHECK_STATUS(MUSE_STATUS_ERROR_SHORT_BUFFER, status);
    CHECK(event.kind == MUSE_EVENT_KIND_MESSAGE && event.payload_len == size && event.payload == NULL);
    CHECK_STATUS(MUSE_STATUS_ERROR_SHORT_BUFFER, muse_receive(pair->muse, pair->client, &event, NULL, size));
    CHECK_STATUS(OK, muse_receive(pair->muse, pair->client, &event, buffer, size));
    CHECK(event.payload == buffer && memcmp(buffer, large, size) == 0);
    CHECK_STATUS(NONE, muse_receive(pair->muse, pair->client, &event, buffer, size));
    free(large);
    free(buffer);
}

static void statistics(Pair *pair) {
    MuseStats stats;
    MuseChannelStats channel;
    MuseBudget budget;
    CHECK_STATUS(OK, muse_stats(pair->muse, pair->server, pair->peer, &stats));
    CHECK(stats.bytes_sent > 1 << 20 && stats.packets_received > 0 && stats.rtt_us > 0 && stats.is_interrupted == 0);
    CHECK_STATUS(OK, muse_channel_stats(pair->muse, pair->server, pair->peer, 4, &channel));
    CHECK(channel.messages_sent == 1 && channel.bytes_sent == 1 << 20 && channel.messages_received == 2);
    CHECK_STATUS(OK, muse_budget(pair->muse, pair->server, pair->peer, 20000, &budget));
    CHECK(budget.this_tick > 0);
    CHECK_STATUS(MUSE_STATUS_ERROR_NO_CHANNEL, muse_channel_stats(pair->muse, pair->server, pair->peer, 6, &channel));
    CHECK_STATUS(MUSE_STATUS_ERROR_NO_CONNECTION, muse_stats(pair->muse, pair->server, 12345, &stats));
    CHECK_STATUS(MUSE_STATUS_ERROR_NO_CONNECTION, muse_budget(pair->muse, pair->server, 12345, 20000, &budget));
    CHECK_STATUS(MUSE_STATUS_ERROR_NULL, muse_stats(pair->muse, pair->server, pair->peer, NULL));
}

static void the_end_of_a_connection(Pair *pair) {
    MuseEvent event;
    MuseStats stats;
    CHECK_STATUS(OK, muse_finish(pair->muse, pair->client, pair->connection, 7, "well played"));
    CHECK_STATUS(MUSE_STATUS_ERROR_CLOSING, muse_send(pair->muse, pair->client, pair->connection, 4, NULL, 0, NULL, NULL));
    CHECK(until(pair, pair->server, MUSE_EVENT_KIND_CLOSED, &event));
    CHECK(event.reason == MUSE_CLOSE_REASON_BY_PEER && event.code == 7);
    CHECK(event.payload_len == 11 && memcmp(event.payload, "well played", 11) == 0);
    CHECK(until(pair, pair->client, MUSE_EVENT_KIND_CLOSED, &event) && event.reason == MUSE_CLOSE_REASON_BY_US);
    /* Its place is kept for a moment, to answer what may be repeated; nothing can be sent to it any more. */
    int status = muse_send(pair->muse, pair->server, pair->peer, 4, NULL, 0, NULL, NULL);
    CHECK(status == MUSE_STATUS_ERROR_CLOSING || status == MUSE_STATUS_ERROR_NO_CONNECTION);
    while (muse_stats(pair->muse, pair->server, pair->peer, &stats) == OK) {
        turn(pair);
        flush(pair);
    }
    CHECK_STATUS(MUSE_STATUS_ERROR_NO_CONNECTION, muse_send(pair->muse, pair->server, pair->peer, 4, NULL, 0, NULL, NULL));
}

static void stale_handles(Pair *pair) {
    MuseEvent event;
    uint64_t issuer = 0, again = 0, out = 0;
    CHECK_STATUS(OK, muse_destroy(pair->muse, pair->client));
    CHECK_STATUS(MUSE_STATUS_ERROR_STALE, muse_destroy(pair->muse, pair->client));
    CHECK_STATUS(MUSE_STATUS_ERROR_STALE, muse_poll(pair->muse, pair->client));
    CHECK_STATUS(MUSE_STATUS_ERROR_STALE, muse_next_event(pair->muse, pair->client, &event));
    CHECK_STATUS(MUSE_STATUS_ERROR_STALE, muse_poll(pair->muse, 0));
    CHECK_STATUS(MUSE_STATUS_ERROR_STALE, muse_poll(pair->muse, UINT64_MAX));
    CHECK_STATUS(OK, muse_issuer_new(pair->muse, 1, 1, NULL, &issuer));
    CHECK_STATUS(MUSE_STATUS_ERROR_STALE, muse_poll(pair->muse, issuer));
    CHECK_STATUS(OK, muse_destroy(pair->muse, issuer));
    CHECK_STATUS(OK, muse_issuer_new(pair->muse, 1, 1, NULL, &again));
    CHECK(again != issuer);
    CHECK_STATUS(MUSE_STATUS_ERROR_STALE, muse_destroy(pair->muse, issuer));
    CHECK_STATUS(MUSE_STATUS_ERROR_NULL, muse_poll(NULL, pair->server));
    CHECK_STATUS(MUSE_STATUS_ERROR_NULL, muse_next_event(pair->muse, pair->server, NULL));
    CHECK_STATUS(MUSE_STATUS_ERROR_NULL, muse_now(pair->muse, pair->server, NULL));
    CHECK_STATUS(MUSE_STATUS_ERROR_STALE, muse_now(pair->muse, again, &out));
}

static void what_cannot_be(void) {
    Muse *muse = muse_new();
    MuseConfig config = config_of(9);
    MuseConnect connect = {0};
    MuseServerOptions options = {0};
    uint8_t key[32] = {1};
    uint64_t endpoint, connection;
    char text[256], tiny[2];
    size_t len = 0;
    CHECK_STATUS(MUSE_STATUS_ERROR_NULL, muse_server_new(muse, "127.0.0.1:0", &config, &options, &endpoint));
    options.key = key;
    CHECK_STATUS(MUSE_STATUS_ERROR_NULL, muse_server_new(muse, NULL, &config, &options, &endpoint));
    CHECK_STATUS(MUSE_STATUS_ERROR_NULL, muse_server_new(muse, "127.0.0.1:0", NULL, &options, &endpoint));
    CHECK_STATUS(MUSE_STATUS_ERROR_NULL, muse_server_new(muse, "127.0.0.1:0", &config, &options, NULL));
    CHECK_STATUS(MUSE_STATUS_ERROR_CONFIG, muse_server_new(muse, "nonsense", &config, &options, &endpoint));
    config.channel_count = 0;
    CHECK_STATUS(MUSE_STATUS_ERROR_CONFIG, muse_server_new(muse, "127.0.0.1:0", &config, &options, &endpoint));
    CHECK_STATUS(OK, muse_error_text(muse, text, sizeof text, &len));
    CHECK(len == strlen(text) && strstr(text, "0 channels") != NULL);
    CHECK_STATUS(MUSE_STATUS_ERROR_SHORT_BUFFER, muse_error_text(muse, tiny, sizeof tiny, &len));
    CHECK(len == strlen(text));
    config.channel_count = 6;
    config.channels = NULL;
    CHECK_STATUS(MUSE_STATUS_ERROR_NULL, muse_server_new(muse, "127.0.0.1:0", &config, &options, &endpoint));
    MuseChannel wrong = {.delivery = 99};
    config.channels = &wrong;
    config.channel_count = 1;
    CHECK_STATUS(MUSE_STATUS_ERROR_ARGUMENT, muse_server_new(muse, "127.0.0.1:0", &config, &options, &endpoint));
    config = config_of(9);
    connect.trust = 9;
    CHECK_STATUS(MUSE_STATUS_ERROR_ARGUMENT, muse_client_new(muse, "127.0.0.1:9", &config, &connect, &endpoint, &connection));
    connect.trust = MUSE_TRUST_TOKEN;
    connect.token = "no token";
    CHECK_STATUS(MUSE_STATUS_ERROR_TOKEN, muse_client_new(muse, "127.0.0.1:9", &config, &connect, &endpoint, &connection));
    connect.trust = MUSE_TRUST_PINNED;
    CHECK_STATUS(MUSE_STATUS_ERROR_NULL, muse_client_new(muse, "127.0.0.1:9", &config, &connect, &endpoint, &connection));
    CHECK_STATUS(MUSE_STATUS_ERROR_ARGUMENT, muse_key_parse(muse, "12", key));
    CHECK_STATUS(OK, muse_key_parse(muse, "000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f", key));
    CHECK(key[1] == 1 && key[31] == 15);
    CHECK_STATUS(MUSE_STATUS_ERROR_ARGUMENT, muse_key_parse(muse, "\xff\xfe", key));
    CHECK(muse_abi_version() >> 16 == 2);
    CHECK(strcmp(muse_status_text(12345), "no status of this library") == 0);
    muse_free(muse);
    muse_free(NULL);
}

static void tokens(void) {
    Pair pair = {0};
    MuseConfig config = config_of(0xCAFE);
    MuseServerOptions options = {0};
    MuseTokenKey trusted = {.key_id = 3};
    MuseGrant grant = {0};
    MuseTokenInfo info;
    MuseConnect connect = {0};
    MuseEvent event;
    uint64_t issuer;
    size_t len = 0;
    char text[1024];
    Muse *master = muse_new();
    CHECK_STATUS(OK, muse_issuer_new(master, 0xCAFE, 3, NULL, &issuer));
    CHECK_STATUS(OK, muse_issuer_public_key(master, issuer, trusted.public_key));
    options.token_keys = &trusted;
    options.token_key_count = 1;
    listen_at(&pair, &config, options);
    grant.account = 42;
    memcpy(grant.server_key, pair.public_key, 32);
    grant.server_address = pair.address;
    grant.user_data = (const uint8_t *)"blue team";
    grant.user_data_len = 9;
    CHECK_STATUS(MUSE_STATUS_ERROR_SHORT_BUFFER, muse_issue(master, issuer, &grant, text, 10, &len));
    CHECK_STATUS(OK, muse_issue(master, issuer, &grant, text, sizeof text, &len));
    CHECK(len == strlen(text));
    CHECK_STATUS(OK, muse_token_read(master, text, &info));
    CHECK(strcmp((char *)info.server_address, pair.address) == 0 && memcmp(info.server_key, pair.public_key, 32) == 0);
    CHECK_STATUS(MUSE_STATUS_ERROR_TOKEN, muse_token_read(master, "x", &info));
    grant.lifetime_s = 100000;
    char longer[1024];
    CHECK_STATUS(MUSE_STATUS_ERROR_TOKEN, muse_issue(master, issuer, &grant, longer, sizeof longer, &len));
    connect.trust = MUSE_TRUST_TOKEN;
    connect.token = text;
    CHECK_STATUS(OK, muse_client_new(pair.muse, pair.address, &config, &connect, &pair.client, &pair.connection));
    CHECK(until(&pair, pair.server, MUSE_EVENT_KIND_CONNECTED, &event));
    CHECK(event.account == 42 && event.payload_len == 9 && memcmp(event.payload, "blue team", 9) == 0);
    CHECK_STATUS(OK, muse_destroy(pair.muse, pair.client));
    CHECK(until(&pair, pair.server, MUSE_EVENT_KIND_CLOSED, &event));
    connect.trust = MUSE_TRUST_PINNED;
    connect.server_key = pair.public_key;
    CHECK_STATUS(OK, muse_client_new(pair.muse, pair.address, &config, &connect, &pair.client, &pair.connection));
    CHECK(until(&pair, pair.client, MUSE_EVENT_KIND_REFUSED, &event) && event.reason == MUSE_REFUSAL_TOKEN_REQUIRED);
    CHECK(event.payload_len > 10);
    muse_free(pair.muse);
    muse_free(master);
}

/* The application decides about each client: one is denied and reads why, one is admitted later, one waits too long. */
static void admission(void) {
    Pair pair = {0};
    MuseConfig config = config_of(0xAD);
    MuseServerOptions options = {0};
    MuseEvent event;
    uint64_t asking;
    uint8_t small[4], buffer[64];
    options.asks = 1;
    listen_at(&pair, &config, options);
    begin(&pair, &config, "Eve");
    CHECK(until(&pair, pair.server, MUSE_EVENT_KIND_ASKING, &event));
    CHECK(is_text(event.extra, event.extra_len, "Eve") && event.account == 0 && event.payload_len == 0);
    CHECK(event.address_len > 10 && memcmp(event.address, "127.0.0.1:", 10) == 0);
    asking = event.connection;
    CHECK_STATUS(MUSE_STATUS_ERROR_NO_CONNECTION, muse_send(pair.muse, pair.server, asking, 0, NULL, 0, NULL, NULL));
    CHECK_STATUS(MUSE_STATUS_ERROR_ARGUMENT, muse_deny(pair.muse, pair.server, asking, 7, "\xff"));
    CHECK_STATUS(OK, muse_deny(pair.muse, pair.server, asking, 7, "banned until Monday"));
    CHECK_STATUS(MUSE_STATUS_ERROR_NO_CONNECTION, muse_deny(pair.muse, pair.server, asking, 7, NULL));
    CHECK_STATUS(MUSE_STATUS_ERROR_NO_CONNECTION, muse_admit(pair.muse, pair.server, asking));
    CHECK(until(&pair, pair.client, MUSE_EVENT_KIND_REFUSED, &event) && event.connection == pair.connection);
    CHECK(event.reason == MUSE_REFUSAL_DENIED && event.code == 7);
    CHECK(is_text(event.extra, event.extra_len, "banned until Monday"));
    CHECK(has_text(event.payload, event.payload_len, "banned until Monday (code 7)"));

    /* Another asks; the event is copied, and the decision comes a while later. */
    CHECK_STATUS(OK, muse_destroy(pair.muse, pair.client));
    begin(&pair, &config, "Ada");
    int status;
    do {
        turn(&pair);
        status = muse_receive(pair.muse, pair.server, &event, small, sizeof small);
        flush(&pair);
    } while (status == NONE);
    CHECK_STATUS(MUSE_STATUS_ERROR_SHORT_BUFFER, status);
    CHECK(event.address == NULL && event.address_len > 10);
    CHECK_STATUS(OK, muse_receive(pair.muse, pair.server, &event, buffer, sizeof buffer));
    CHECK(event.kind == MUSE_EVENT_KIND_ASKING && is_text(event.extra, event.extra_len, "Ada"));
    CHECK(event.address == buffer + 3 && memcmp(event.address, "127.0.0.1:", 10) == 0);
    asking = event.connection;
    for (int round = 0; round < 20; round++) {
        turn(&pair);
        CHECK_STATUS(NONE, muse_next_event(pair.muse, pair.client, &event));
        flush(&pair);
    }
    CHECK_STATUS(OK, muse_admit(pair.muse, pair.server, asking));
    CHECK(until(&pair, pair.client, MUSE_EVENT_KIND_CONNECTED, &event));
    CHECK(until(&pair, pair.server, MUSE_EVENT_KIND_CONNECTED, &event) && event.connection == asking);
    muse_free(pair.muse);

    /* Nobody decides, with little time and one place. */
    options.pending_max = 1;
    options.decision_timeout_us = 50000;
    listen_at(&pair, &config, options);
    begin(&pair, &config, "Bob");
    CHECK(until(&pair, pair.server, MUSE_EVENT_KIND_ASKING, &event));
    CHECK(until(&pair, pair.server, MUSE_EVENT_KIND_CLOSED, &event) && event.reason == MUSE_CLOSE_REASON_UNDECIDED);
    CHECK(until(&pair, pair.client, MUSE_EVENT_KIND_REFUSED, &event) && event.reason == MUSE_REFUSAL_BUSY);
    CHECK(event.extra_len == 0 && event.code == 0);
    muse_free(pair.muse);
}

/* A client of another version is refused, and reads which lines differ. */
static void what_both_must_share(void) {
    Pair pair = {0};
    MuseConfig older = config_of(0x5A), newer = config_of(0x5A);
    MuseServerOptions options = {0};
    MuseEvent event;
    older.shared = "7 Say { text: text max 100 }\ntick rate 50\nmap size 64";
    newer.shared = "tick rate 50\n7 Say { text: text max 200 }\nmap size 128";
    listen_at(&pair, &newer, options);
    begin(&pair, &older, "old");
    CHECK(until(&pair, pair.client, MUSE_EVENT_KIND_REFUSED, &event) && event.reason == MUSE_REFUSAL_SCHEMA);
    CHECK(has_text(event.payload, event.payload_len, "`7 Say` differs: text: text max 100 here, text: text max 200 there"));
    CHECK(is_text(event.extra, event.extra_len,
                  "`7 Say` differs: text: text max 100 here, text: text max 200 there\n`map size 64` here, `map size 128` there"));
    CHECK_STATUS(OK, muse_destroy(pair.muse, pair.client));
    /* The order of lines does not matter. */
    newer.shared = "map size 128\n7 Say { text: text max 200 }\ntick rate 50\n";
    connect_pinned(&pair, &newer);
    CHECK_STATUS(OK, muse_destroy(pair.muse, pair.client));
    newer.shared = "\xff";
    CHECK_STATUS(MUSE_STATUS_ERROR_ARGUMENT, muse_server_new(pair.muse, "127.0.0.1:0", &newer, &options, &pair.client));
    muse_free(pair.muse);
}

/* A client's clock against a server's buffer over a line of 30 ms, in virtual time: after a while every input is there in time. */
static void clock_and_inputs(void) {
    Muse *muse = muse_new();
    const uint64_t tick_us = 20000, delay_us = 30000;
    uint64_t clock, inputs;
    struct { uint64_t at; size_t len; uint8_t bytes[1024]; } up[8];
    struct { uint64_t at; uint32_t tick; size_t len; uint8_t bytes[32]; } down[8];
    unsigned up_from = 0, up_to = 0, down_from = 0, down_to = 0;
    unsigned received = 0, taken = 0, right = 0;
    MuseClockState state;
    CHECK_STATUS(MUSE_STATUS_ERROR_ARGUMENT, muse_clock_new(muse, 10, &clock));
    CHECK_STATUS(OK, muse_clock_new(muse, tick_us, &clock));
    CHECK_STATUS(OK, muse_inputs_new(muse, tick_us, 1, &inputs));
    CHECK_STATUS(OK, muse_clock_read(muse, clock, &state));
    CHECK(state.server_ticks < 0 && state.play_ticks < 0);
    for (uint64_t now = tick_us; now < 10000000; now += 1000) {
        uint8_t due, kind, bytes[MUSE_INPUT_MAX];
        uint32_t tick;
        size_t len;
        while (up_from != up_to && up[up_from % 8].at <= now) {
            muse_inputs_packet(muse, inputs, now, up[up_from % 8].bytes, up[up_from % 8].len);
            up_from++;
        }
        while (down_from != down_to && down[down_from % 8].at <= now) {
            muse_clock_snapshot(muse, clock, now, down[down_from % 8].tick, down[down_from % 8].bytes, down[down_from % 8].len);
            down_from++;
        }
        while (muse_clock_poll(muse, clock, now, &due, &tick) == OK) {
            uint8_t input[4];
            memcpy(input, &tick, 4);
            up[up_to % 8].at = now + delay_us;
            CHECK_STATUS(OK, muse_clock_write(muse, clock, now, tick, due == MUSE_DUE_TICK ? input : NULL,
                                              due == MUSE_DUE_TICK ? 4 : 0, up[up_to % 8].bytes, 1024, &up[up_to % 8].len));
            up_to++;
        }
        if (now % tick_us == 0) {
            uint32_t server_tick = (uint32_t)(now / tick_us), said = 0;
            CHECK_STATUS(OK, muse_inputs_take(muse, inputs, server_tick, now, bytes, sizeof bytes, &len, &kind));
            if (now > 5000000) {
                taken++;
                received += kind == MUSE_INPUT_KIND_RECEIVED;
                memcpy(&said, bytes, len < 4 ? len : 4);
                right += said == server_tick;
            }
            down[down_to % 8].at = now + delay_us;
            down[down_to % 8].tick = server_tick;
            CHECK_STATUS(OK, muse_inputs_report(muse, inputs, now, now, down[down_to % 8].bytes, 32, &down[down_to % 8].len));
            down_to++;
        }
    }
    CHECK(taken > 200 && received == taken && right == taken);
    CHECK_STATUS(OK, muse_clock_read(muse, clock, &state));
    CHECK(state.play_ticks > state.server_ticks && state.rate > 0.9 && state.rate < 1.1);
    CHECK(state.round_trip_us > 55000 && state.round_trip_us < 70000);
    uint8_t bytes[MUSE_INPUT_MAX + 1] = {0}, kind;
    size_t len;
    CHECK_STATUS(MUSE_STATUS_ERROR_SHORT_BUFFER, muse_inputs_take(muse, inputs, 1, 0, bytes, 3, &len, &kind));
    CHECK(len == MUSE_INPUT_MAX);
    CHECK_STATUS(MUSE_STATUS_ERROR_MALFORMED, muse_inputs_packet(muse, inputs, 0, bytes, 1));
    CHECK_STATUS(MUSE_STATUS_ERROR_MALFORMED, muse_clock_snapshot(muse, clock, 0, 1, bytes, 1));
    CHECK_STATUS(MUSE_STATUS_ERROR_ARGUMENT, muse_clock_write(muse, clock, 0, 1, bytes, sizeof bytes, bytes, 0, &len));
    CHECK_STATUS(MUSE_STATUS_ERROR_STALE, muse_clock_read(muse, inputs, &state));
    muse_free(muse);
}

static void interpolation(void) {
    Muse *muse = muse_new();
    uint64_t playback, straight, curved;
    MusePlaybackState shown = {0};
    MusePose pose = {.rotation = {0, 0, 0, 1}};
    uint8_t source = 0;
    CHECK_STATUS(OK, muse_playback_new(muse, 20000, &playback));
    CHECK_STATUS(OK, muse_interpolation_new(muse, 20000, 0, 0, &straight));
    CHECK_STATUS(OK, muse_interpolation_new(muse, 20000, 1, 100000, &curved));
    CHECK_STATUS(NONE, muse_playback_advance(muse, playback, 1000, &shown));
    CHECK_STATUS(NONE, muse_interpolation_show(muse, straight, 1.0, &pose, &source));
    for (uint32_t number = 0; number < 600; number++) {
        uint64_t now = 1000000 + (uint64_t)number * 20000;
        CHECK_STATUS(OK, muse_playback_snapshot(muse, playback, now, number, (uint16_t)number));
        CHECK_STATUS(OK, muse_playback_advance(muse, playback, now, &shown));
    }
    CHECK(599.0 - shown.ticks > 1.0 && 599.0 - shown.ticks < 1.3);
    CHECK(shown.loss < 0.01 && shown.interval_ticks > 0.9 && shown.interval_ticks < 1.1);
    for (uint32_t tick = 10; tick <= 14; tick += 4) {
        pose.position[0] = tick == 10 ? 1.0F : 3.0F;
        pose.velocity[0] = 25.0F;
        CHECK_STATUS(OK, muse_interpolation_push(muse, straight, tick, &pose));
        CHECK_STATUS(OK, muse_interpolation_push(muse, curved, tick, &pose));
        CHECK_STATUS(NONE, muse_interpolation_push(muse, straight, tick, &pose));
    }
    CHECK_STATUS(OK, muse_interpolation_show(muse, straight, 11.0, &pose, &source));
    CHECK(pose.position[0] == 1.5F && source == MUSE_SOURCE_BETWEEN && pose.rotation[3] > 0.999F);
    CHECK_STATUS(OK, muse_interpolation_show(muse, curved, 11.0, &pose, &source));
    CHECK(pose.position[0] > 1.49F && pose.position[0] < 1.51F);
    CHECK_STATUS(OK, muse_interpolation_show(muse, straight, 15.0, &pose, &source));
    CHECK(source == MUSE_SOURCE_BEYOND && pose.position[0] == 3.5F);
    CHECK_STATUS(OK, muse_interpolation_show(muse, curved, 40.0, &pose, &source));
    CHECK(source == MUSE_SOURCE_STOPPED);
    CHECK_STATUS(MUSE_STATUS_ERROR_STALE, muse_interpolation_show(muse, playback, 40.0, &pose, &source));
    CHECK_STATUS(MUSE_STATUS_ERROR_NULL, muse_interpolation_push(muse, straight, 1, NULL));
    muse_free(muse);
}

int main(void) {
    Pair pair = {0};
    MuseConfig config = config_of(7);
    MuseServerOptions options = {0};
    listen_at(&pair, &config, options);
    connect_pinned(&pair, &config);
    messages_of_every_mode(&pair);
    a_large_message_and_short_buffers(&pair);
    statistics(&pair);
    the_end_of_a_connection(&pair);
    stale_handles(&pair);
    muse_free(pair.muse);
    what_cannot_be();
    tokens();
    admission();
    what_both_must_share();
    clock_and_inputs();
    interpolation();
    return report("capi");
}
