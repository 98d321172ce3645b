/* The session of examples/session in C, and compiled as C++ in that: prints the same lines as the client in Rust. Usage: session ADDRESS KEY */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "muse.h"

enum { CHANNELS = 6, NUMBERS = 200, AFTER = 10, LARGE = 1 << 20, ORDERED = 4, TEXTS = 8 };

static const MuseChannel CHANNEL_TABLE[CHANNELS] = {
    {.delivery = MUSE_DELIVERY_UNRELIABLE},
    {.delivery = MUSE_DELIVERY_SEQUENCED},
    {.delivery = MUSE_DELIVERY_RELIABLE_UNORDERED},
    {.delivery = MUSE_DELIVERY_RELIABLE_SEQUENCED},
    {.delivery = MUSE_DELIVERY_RELIABLE_ORDERED},
    {.delivery = MUSE_DELIVERY_PARTIALLY_RELIABLE, .window = 10, .percent = 80},
};

/* Everything that the client has been told so far. */
typedef struct Seen {
    int connected, interrupted, resumed, closed, close_reason, receipt, outcome;
    uint32_t echoes[CHANNELS][NUMBERS * 2];
    int echo_count[CHANNELS];
    uint32_t after[AFTER];
    int after_count;
    char texts[TEXTS][256];
    int text_count;
    char large[64];
} Seen;

typedef struct Player {
    Muse *muse;
    uint64_t endpoint, connection;
    Seen seen;
} Player;

static void fail(Player *player, const char *what, int status) {
    char text[256] = "";
    size_t len;
    muse_error_text(player->muse, text, sizeof text, &len);
    fprintf(stderr, "session: %s: %s: %s\n", what, muse_status_text(status), text);
    exit(1);
}

static void demand(Player *player, const char *what, int status) {
    if (status < 0) {
        fail(player, what, status);
    }
}

static uint64_t digest(const uint8_t *bytes, size_t len) {
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001B3);
    }
    return hash;
}

static void write_number(uint8_t message[24], uint32_t number) {
    memset(message, (uint8_t)number, 24);
    message[0] = 'N';
    for (int i = 0; i < 4; i++) {
        message[1 + i] = (uint8_t)(number >> 8 * i);
    }
}

static void take_message(Player *player, const MuseEvent *event) {
    Seen *seen = &player->seen;
    const uint8_t *bytes = event->payload;
    size_t len = event->payload_len;
    if (len > 0 && bytes[0] == 'T' && seen->text_count < TEXTS) {
        snprintf(seen->texts[seen->text_count++], 256, "%.*s", (int)len - 1, (const char *)bytes + 1);
    } else if (len > 0 && bytes[0] == 'L') {
        snprintf(seen->large, sizeof seen->large, "%zu bytes, digest %016" PRIx64, len, digest(bytes, len));
    } else if (len == 24 && bytes[0] == 'N') {
        uint32_t number = bytes[1] | (uint32_t)bytes[2] << 8 | (uint32_t)bytes[3] << 16 | (uint32_t)bytes[4] << 24;
        if (number >= NUMBERS && seen->after_count < AFTER) {
            seen->after[seen->after_count++] = number;
        } else if (seen->echo_count[event->channel] < NUMBERS * 2) {
            seen->echoes[event->channel][seen->echo_count[event->channel]++] = number;
        }
    } else {
        fail(player, "a message that nobody sent", 0);
    }
}

static void take(Player *player, const MuseEvent *event) {
    Seen *seen = &player->seen;
    switch (event->kind) {
    case MUSE_EVENT_KIND_CONNECTED: seen->connected = 1; break;
    case MUSE_EVENT_KIND_INTERRUPTED: seen->interrupted = 1; break;
    case MUSE_EVENT_KIND_RESUMED: seen->resumed = seen->interrupted; break;
    case MUSE_EVENT_KIND_CLOSED:
        seen->closed = 1;
        seen->close_reason = event->reason;
        break;
    case MUSE_EVENT_KIND_RECEIPT:
        seen->receipt = 1;
        seen->outcome = event->reason;
        break;
    case MUSE_EVENT_KIND_MESSAGE: take_message(player, event); break;
    default: fail(player, "an event that does not belong here", event->kind);
    }
}

static void turn(Player *player) {
    MuseEvent event;
    demand(player, "wait", muse_wait(player->muse, player->endpoint, 2000));
    demand(player, "poll", muse_poll(player->muse, player->endpoint));
    while (muse_next_event(player->muse, player->endpoint, &event) == MUSE_STATUS_OK) {
        take(player, &event);
    }
    demand(player, "flush", muse_flush(player->muse, player->endpoint));
}

static void send_bytes(Player *player, uint8_t channel, const void *bytes, size_t len) {
    demand(player, "send", muse_send(player->muse, player->endpoint, player->connection, channel, (const uint8_t *)bytes, len, NULL, NULL));
}

static int ascending(const uint32_t *numbers, int count) {
    for (int i = 1; i < count; i++) {
        if (numbers[i - 1] >= numbers[i]) {
            return 0;
        }
    }
    return 1;
}

static int compare(const void *a, const void *b) {
    uint32_t one = *(const uint32_t *)a, two = *(const uint32_t *)b;
    return (one > two) - (one < two);
}

static int each_once(const uint32_t *numbers, int count) {
    uint32_t sorted[NUMBERS * 2];
    memcpy(sorted, numbers, sizeof(uint32_t) * (size_t)count);
    qsort(sorted, (size_t)count, sizeof(uint32_t), compare);
    return ascending(sorted, count);
}

static int echoes_complete(const Seen *seen) {
    const int *count = seen->echo_count;
    int newest = count[3] > 0 && seen->echoes[3][count[3] - 1] == NUMBERS - 1;
    return count[2] >= NUMBERS && newest && count[4] >= NUMBERS && count[5] >= NUMBERS / 2;
}

static int has_connected(const Seen *seen) { return seen->connected; }
static int has_report(const Seen *seen) { return seen->text_count == 6; }
static int has_text(const Seen *seen) { return seen->text_count > 0; }
static int has_large(const Seen *seen) { return seen->large[0] != 0; }
static int has_interruption(const Seen *seen) { return seen->interrupted; }
static int has_resumed(const Seen *seen) { return seen->resumed; }
static int has_after(const Seen *seen) { return seen->after_count == AFTER; }
static int has_closed(const Seen *seen) { return seen->closed; }
static int has_receipt(const Seen *seen) { return seen->receipt; }

static void until(Player *player, const char *what, int (*done)(const Seen *)) {
    time_t began = time(NULL);
    while (!done(&player->seen)) {
        turn(player);
        if (time(NULL) - began > 120) {
            fail(player, what, MUSE_STATUS_NONE);
        }
    }
}

static void print_texts(Player *player) {
    for (int i = 0; i < player->seen.text_count; i++) {
        printf("server: %s\n", player->seen.texts[i]);
    }
    player->seen.text_count = 0;
}

static void connect_to(Player *player, const char *address, const char *key, const char *hello) {
    MuseConfig config = {0};
    MuseConnect connect = {0};
    uint8_t public_key[32];
    memset(player, 0, sizeof *player);
    player->muse = muse_new();
    config.protocol = UINT64_C(0x6D7573650009);
    config.shared = "large message 1048577 bytes\nsession rules 1";
    config.channels = CHANNEL_TABLE;
    config.channel_count = CHANNELS;
    config.keep_alive_us = 100000;
    config.silence_us = 300000;
    config.resume_within_us = 20000000;
    demand(player, "key", muse_key_parse(player->muse, key, public_key));
    connect.server_key = public_key;
    connect.hello = (const uint8_t *)hello;
    connect.hello_len = strlen(hello);
    demand(player, "connect", muse_client_new(player->muse, address, &config, &connect, &player->endpoint, &player->connection));
    until(player, "connected", has_connected);
    printf("connected\n");
}

static const char *good(int is_good) { return is_good ? "ok" : "broken"; }

static void numbers(Player *player) {
    Seen *seen = &player->seen;
    uint8_t message[24];
    int in_order = 1;
    for (uint32_t number = 0; number < NUMBERS; number++) {
        write_number(message, number);
        for (uint8_t channel = 0; channel < CHANNELS; channel++) {
            send_bytes(player, channel, message, sizeof message);
        }
        turn(player);
    }
    until(player, "echoes", echoes_complete);
    send_bytes(player, ORDERED, "R", 1);
    until(player, "report", has_report);
    print_texts(player);
    const int *count = seen->echo_count;
    for (int i = 0; i < count[4]; i++) {
        in_order &= seen->echoes[4][i] == (uint32_t)i;
    }
    printf("echo: unreliable: none twice, most there: %s\n", good(each_once(seen->echoes[0], count[0]) && count[0] > NUMBERS / 2));
    printf("echo: sequenced: ascending: %s\n", good(ascending(seen->echoes[1], count[1])));
    printf("echo: reliable unordered: %d of %d, each once: %s\n", count[2], NUMBERS, good(each_once(seen->echoes[2], count[2])));
    printf("echo: reliable sequenced: ascending up to %u: %s\n", seen->echoes[3][count[3] - 1], good(ascending(seen->echoes[3], count[3])));
    printf("echo: reliable ordered: %d of %d in order: %s\n", count[4], NUMBERS, good(in_order && count[4] == NUMBERS));
    printf("echo: partially reliable: ascending, as many as promised: %s\n", good(ascending(seen->echoes[5], count[5])));
}

static void large(Player *player) {
    uint8_t *message = (uint8_t *)malloc(LARGE + 1);
    uint32_t seed = 1;
    message[0] = 'L';
    for (int i = 0; i < LARGE; i++) {
        seed = seed * 1664525 + 1013904223;
        message[1 + i] = (uint8_t)(seed >> 24);
    }
    send_bytes(player, ORDERED, message, LARGE + 1);
    free(message);
    until(player, "large", has_large);
    print_texts(player);
    printf("large: %s\n", player->seen.large);
}

static void cut(Player *player) {
    uint8_t message[24];
    int in_order = 1;
    send_bytes(player, ORDERED, "C", 1);
    until(player, "interrupted", has_interruption);
    printf("interrupted\n");
    for (uint32_t number = NUMBERS; number < NUMBERS + AFTER; number++) {
        write_number(message, number);
        send_bytes(player, ORDERED, message, sizeof message);
    }
    until(player, "resumed", has_resumed);
    printf("resumed\n");
    until(player, "after", has_after);
    for (uint32_t i = 0; i < AFTER; i++) {
        in_order &= player->seen.after[i] == NUMBERS + i;
    }
    printf("after the cut: %d in order: %s\n", AFTER, in_order ? "true" : "false");
}

int main(int count, char **words) {
    static Player player;
    MuseSendOptions options = {.receipt = 1};
    uint8_t message[24];
    if (count != 3) {
        fprintf(stderr, "usage: session ADDRESS KEY\n");
        return 2;
    }
    connect_to(&player, words[1], words[2], "first");
    numbers(&player);
    large(&player);
    cut(&player);
    muse_finish(player.muse, player.endpoint, player.connection, 7, "bye");
    until(&player, "closed", has_closed);
    printf("closed by us: %s\n", player.seen.close_reason == MUSE_CLOSE_REASON_BY_US ? "true" : "false");
    muse_free(player.muse);

    connect_to(&player, words[1], words[2], "second");
    send_bytes(&player, ORDERED, "H", 1);
    until(&player, "hello", has_text);
    print_texts(&player);
    write_number(message, 0);
    demand(&player, "send", muse_send(player.muse, player.endpoint, player.connection, ORDERED, message, sizeof message, &options, NULL));
    until(&player, "receipt", has_receipt);
    printf("receipt: delivered: %s\n", player.seen.outcome == MUSE_OUTCOME_DELIVERED ? "true" : "false");
    printf("done\n");
    muse_free(player.muse);
    return 0;
}
