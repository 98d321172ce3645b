// Muse: multiplayer networking for games, for C and C++.
//
// Made by cbindgen from bindings/capi/src; do not edit. The comments on Muse, below, hold the rules of threads and ownership for all functions.
// One turn of a game loop: muse_poll, muse_next_event until MUSE_STATUS_NONE, the game's step with muse_send, muse_flush.

#ifndef MUSE_H
#define MUSE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// Longest input of a tick, in bytes.
#define MUSE_INPUT_MAX 60

// The answer of a function. Errors are less than zero, and `muse_error_text` has the words for the last one.
enum MuseStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Done.
    MUSE_STATUS_OK = 0,
    // There is nothing now: no event, nothing due, nothing to show.
    MUSE_STATUS_NONE = 1,
    // A pointer that has to point somewhere is null.
    MUSE_STATUS_ERROR_NULL = -1,
    // The handle names nothing: it was destroyed, belongs to another Muse, or is of another kind.
    MUSE_STATUS_ERROR_STALE = -2,
    // The buffer is too short; the length that is needed has been told, and nothing was lost.
    MUSE_STATUS_ERROR_SHORT_BUFFER = -3,
    // An argument is out of its range, or a text is not UTF-8.
    MUSE_STATUS_ERROR_ARGUMENT = -4,
    // Another thread is in a call with the same Muse.
    MUSE_STATUS_ERROR_BUSY = -5,
    // The library failed; this Muse can only be freed now.
    MUSE_STATUS_ERROR_PANIC = -6,
    // The socket or a file failed.
    MUSE_STATUS_ERROR_IO = -7,
    // The connection was closed or never existed, or nobody waits for a decision there.
    MUSE_STATUS_ERROR_NO_CONNECTION = -8,
    // The connection has no such channel.
    MUSE_STATUS_ERROR_NO_CHANNEL = -9,
    // Too much waits on the channel already: send less, or later.
    MUSE_STATUS_ERROR_QUEUE_FULL = -10,
    // The message is longer than the config allows.
    MUSE_STATUS_ERROR_TOO_LONG = -11,
    // The connection is about to close.
    MUSE_STATUS_ERROR_CLOSING = -12,
    // The config makes no sense; the text says why.
    MUSE_STATUS_ERROR_CONFIG = -13,
    // The text is no connect token, the grant goes beyond a limit, or the token of a client to admit is no longer good.
    MUSE_STATUS_ERROR_TOKEN = -14,
    // The packet is not what this function reads.
    MUSE_STATUS_ERROR_MALFORMED = -15,
    // There are as many things as a Muse holds.
    MUSE_STATUS_ERROR_FULL = -16,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum MuseStatus MuseStatus;
#else
typedef int32_t MuseStatus;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The delivery mode of a channel.
enum MuseDelivery
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // At most once, in any order.
    MUSE_DELIVERY_UNRELIABLE = 0,
    // At most once, never older than what was delivered before.
    MUSE_DELIVERY_SEQUENCED = 1,
    // Exactly once, in any order, as soon as it arrives.
    MUSE_DELIVERY_RELIABLE_UNORDERED = 2,
    // The newest surely arrives, older ones may be skipped.
    MUSE_DELIVERY_RELIABLE_SEQUENCED = 3,
    // Exactly once, in the order sent.
    MUSE_DELIVERY_RELIABLE_ORDERED = 4,
    // In order, and of each window of messages at least a promised share arrives.
    MUSE_DELIVERY_PARTIALLY_RELIABLE = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum MuseDelivery MuseDelivery;
#else
typedef uint8_t MuseDelivery;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The price that a reliable channel pays for low latency under loss.
enum MuseRepair
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Parity over recent packets, up to 42 % extra bytes. The default.
    MUSE_REPAIR_BALANCED = 0,
    // Nothing extra on first transmission.
    MUSE_REPAIR_FRUGAL = 1,
    // Parity with every packet, up to 114 % extra bytes.
    MUSE_REPAIR_FAST = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum MuseRepair MuseRepair;
#else
typedef uint8_t MuseRepair;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The urgency of a message.
enum MusePriority
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // That of the channel; of a channel, normal.
    MUSE_PRIORITY_DEFAULT = 0,
    // Before everything else.
    MUSE_PRIORITY_URGENT = 1,
    // Before what is normal.
    MUSE_PRIORITY_HIGH = 2,
    // As usual.
    MUSE_PRIORITY_NORMAL = 3,
    // When nothing else waits.
    MUSE_PRIORITY_LOW = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum MusePriority MusePriority;
#else
typedef uint8_t MusePriority;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The ground on which a client trusts its server.
enum MuseTrust
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // By the server's public key.
    MUSE_TRUST_PINNED = 0,
    // By a connect token, which names the server's key.
    MUSE_TRUST_TOKEN = 1,
    // Not at all, and without encryption: anyone on the way can read and forge everything.
    MUSE_TRUST_DANGER_INSECURE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum MuseTrust MuseTrust;
#else
typedef uint8_t MuseTrust;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The kind of an event.
enum MuseEventKind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // A connection is made. `account` is who, by connect token; `payload` the token's user data; `extra` what the client said
    // when it connected.
    MUSE_EVENT_KIND_CONNECTED = 1,
    // The server refused us: `reason` is a MuseRefusal, `payload` its words. With MUSE_REFUSAL_DENIED, `code` and `extra` are what the
    // server's application said; with MUSE_REFUSAL_SCHEMA, `extra` has each difference on a line ("here" is the client).
    MUSE_EVENT_KIND_REFUSED = 2,
    // Our attempt to connect got no answer in time.
    MUSE_EVENT_KIND_UNANSWERED = 3,
    // A message: `channel` and `payload`.
    MUSE_EVENT_KIND_MESSAGE = 4,
    // A message sent with a receipt was delivered, lost or dropped: `channel`, `message`, and a MuseOutcome as `reason`.
    MUSE_EVENT_KIND_RECEIPT = 5,
    // Nothing has been heard for a while; the connection is kept and may come back.
    MUSE_EVENT_KIND_INTERRUPTED = 6,
    // An interrupted connection is back; nothing reliable was lost.
    MUSE_EVENT_KIND_RESUMED = 7,
    // The peer is reached at another address now: `address`.
    MUSE_EVENT_KIND_ADDRESS_CHANGED = 8,
    // The connection is over: `reason` is a MuseCloseReason, `code` and `payload` are what the peer said.
    MUSE_EVENT_KIND_CLOSED = 9,
    // A client asks to be let in, at a server made with `asks`: `account`, `payload`, `extra` as with MUSE_EVENT_KIND_CONNECTED, and its
    // `address`. Decide with `muse_admit` or `muse_deny`, at once or later. After `muse_admit`, MUSE_EVENT_KIND_CONNECTED or
    // MUSE_EVENT_KIND_CLOSED follows; a client that leaves before the decision is MUSE_EVENT_KIND_CLOSED.
    MUSE_EVENT_KIND_ASKING = 10,
    // Something that this version of the header does not know.
    MUSE_EVENT_KIND_OTHER = 255,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum MuseEventKind MuseEventKind;
#else
typedef uint8_t MuseEventKind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The reason for which a connection ended.
enum MuseCloseReason
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // For a reason that this version of the header does not know.
    MUSE_CLOSE_REASON_OTHER = 0,
    // The peer closed it.
    MUSE_CLOSE_REASON_BY_PEER = 1,
    // We closed it.
    MUSE_CLOSE_REASON_BY_US = 2,
    // Nothing was heard for too long.
    MUSE_CLOSE_REASON_LOST = 3,
    // The peer broke the protocol.
    MUSE_CLOSE_REASON_PROTOCOL = 4,
    // The holder of its token connected again.
    MUSE_CLOSE_REASON_REPLACED = 5,
    // Nobody decided in time about a client that asked; it was refused as by a busy server.
    MUSE_CLOSE_REASON_UNDECIDED = 6,
    // One side acknowledged a packet that the other never sent.
    MUSE_CLOSE_REASON_FALSE_ACK = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum MuseCloseReason MuseCloseReason;
#else
typedef uint8_t MuseCloseReason;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The reason for which a server refused a client.
enum MuseRefusal
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // For a reason that this version of the header does not know.
    MUSE_REFUSAL_OTHER = 0,
    // The server does not speak our version of the protocol.
    MUSE_REFUSAL_VERSION = 1,
    // Channels, or the lines in `shared`, are not the same on both sides.
    MUSE_REFUSAL_SCHEMA = 2,
    // The server is full.
    MUSE_REFUSAL_FULL = 3,
    // The server wants a connect token.
    MUSE_REFUSAL_TOKEN_REQUIRED = 4,
    // The token is not valid.
    MUSE_REFUSAL_TOKEN_INVALID = 5,
    // The token has expired.
    MUSE_REFUSAL_TOKEN_EXPIRED = 6,
    // The token has been used.
    MUSE_REFUSAL_TOKEN_USED = 7,
    // The token is for another server.
    MUSE_REFUSAL_TOKEN_WRONG_SERVER = 8,
    // The server does not have the key that we expect.
    MUSE_REFUSAL_WRONG_KEY = 9,
    // The application on the server said no.
    MUSE_REFUSAL_DENIED = 10,
    // The server has too much to do now.
    MUSE_REFUSAL_BUSY = 11,
    // The server takes no unprotected connections.
    MUSE_REFUSAL_INSECURE = 12,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum MuseRefusal MuseRefusal;
#else
typedef uint8_t MuseRefusal;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The fate of a message.
enum MuseOutcome
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The peer has it.
    MUSE_OUTCOME_DELIVERED = 1,
    // It was lost and is not sent again.
    MUSE_OUTCOME_LOST = 2,
    // Its deadline passed, or a newer message made it needless.
    MUSE_OUTCOME_EXPIRED = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum MuseOutcome MuseOutcome;
#else
typedef uint8_t MuseOutcome;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The task that a clock asks for.
enum MuseDue
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Write a packet without an input: the way to the server is still being measured.
    MUSE_DUE_PROBE = 1,
    // Simulate this tick and write a packet with its input.
    MUSE_DUE_TICK = 2,
    // Write a packet once more, without a new input.
    MUSE_DUE_COPY = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum MuseDue MuseDue;
#else
typedef uint8_t MuseDue;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The origin of a player's input for a tick.
enum MuseInputKind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // It came in time.
    MUSE_INPUT_KIND_RECEIVED = 1,
    // It did not, so the last one counts again.
    MUSE_INPUT_KIND_REPEATED = 2,
    // None came for so long that nothing is assumed; its length is 0.
    MUSE_INPUT_KIND_MISSING = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum MuseInputKind MuseInputKind;
#else
typedef uint8_t MuseInputKind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The origin of a shown state.
enum MuseSource
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // From the states on either side.
    MUSE_SOURCE_BETWEEN = 1,
    // From the first state: it appeared later than the instant shown.
    MUSE_SOURCE_FIRST = 2,
    // From the last two states: the next is overdue.
    MUSE_SOURCE_BEYOND = 3,
    // From where it stopped: the next is overdue for too long.
    MUSE_SOURCE_STOPPED = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum MuseSource MuseSource;
#else
typedef uint8_t MuseSource;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Owns endpoints, clocks and everything else that is made with it. Made by `muse_new`, freed by `muse_free`.
//
// Threads: calls with one Muse must not overlap; one that does is answered with MUSE_STATUS_ERROR_BUSY and does nothing. Any
// thread may make the next call. Different Muses have nothing in common and may be used at the same time. The library has
// no threads of its own, calls nobody back and keeps no global state.
//
// Ownership: memory that the caller passes in is read or written during the call only. Memory that the library hands out (payloads
// of events) stays the library's; each function says for how long it may be read.
typedef struct Muse Muse;

// One channel. All zero is an unreliable channel with the defaults.
typedef struct MuseChannel {
    // A MuseDelivery.
    uint8_t delivery;
    // A MuseRepair.
    uint8_t repair;
    // A MusePriority.
    uint8_t priority;
    // Share of the bandwidth beside channels of the same priority, 1 to 255; 0 for 16.
    uint8_t weight;
    // Partially reliable: messages in a window.
    uint16_t window;
    // Partially reliable: how many of a hundred arrive at least.
    uint8_t percent;
    // 0.
    uint8_t reserved;
    // Bytes that may wait before sending fails; 0 for 8 MiB.
    uint32_t queue_bytes;
    // Messages that may wait before sending fails; 0 for 32,768.
    uint32_t queue_messages;
} MuseChannel;

// The settings that both sides of a connection agree on, and limits. 0 is the default of every field but `channels`; times are microseconds.
typedef struct MuseConfig {
    // A number that other games do not use.
    uint64_t protocol;
    // Everything else that both sides must share, a line of text for each thing ("7 Say { text: text max 100 }\ntick rate 50"), with a zero
    // at the end; null for nothing. It is compared at connect, and a client that differs is refused and told the lines that do
    // (MUSE_REFUSAL_SCHEMA). The order of lines does not matter; lines with the same first two words, or the same number at the front,
    // are taken for the same thing. Anybody can read it. A server in Rust has the lines of its messages in `Protocol::describe`.
    const char *shared;
    // The channels, numbered from 0 in this order; the same on both sides.
    const struct MuseChannel *channels;
    // Number of channels, 1 to 256.
    size_t channel_count;
    // Largest message in bytes; 0 for 16 MiB.
    uint64_t message_max;
    // Longest time that an acknowledgement waits; 0 for 50 ms.
    uint64_t ack_delay_us;
    // A silent connection pings this often; 0 for 2 s.
    uint64_t keep_alive_us;
    // Nothing heard for this long interrupts a connection; 0 for 6 s.
    uint64_t silence_us;
    // An interrupted connection may come back within this time; 0 for 30 s.
    uint64_t resume_within_us;
    // Connections at once; 0 for 16,384.
    uint64_t connections_max;
    // A fixed rate in bytes a second instead of congestion control, for links that are not shared; 0 for congestion control.
    uint64_t fixed_rate;
} MuseConfig;

// A key whose tokens a server takes.
typedef struct MuseTokenKey {
    // The key's number.
    uint32_t key_id;
    // The issuer's public key.
    uint8_t public_key[32];
} MuseTokenKey;

// Settings of a server: its key, and which clients it lets in.
typedef struct MuseServerOptions {
    // The server's private key, 32 bytes, from `muse_key_new` or `muse_key_load_or_create`.
    const uint8_t *key;
    // Keys whose tokens are taken. With any, only holders of a connect token get in.
    const struct MuseTokenKey *token_keys;
    // Number of keys at `token_keys`.
    size_t token_key_count;
    // 1 also lets in clients without encryption, whose messages anyone on the way can read and forge.
    uint8_t danger_allow_insecure;
    // 1 asks about each client before it is in: MUSE_EVENT_KIND_ASKING, which `muse_admit` or `muse_deny` answers.
    uint8_t asks;
    // 0.
    uint8_t reserved[2];
    // Clients that may wait for a decision at once; 0 for 1,024. Further ones are refused as by a busy server.
    uint32_t pending_max;
    // Time for a decision, at most 300 s; 0 for 30 s. Afterwards the client is refused as by a busy server, and MUSE_EVENT_KIND_CLOSED
    // with MUSE_CLOSE_REASON_UNDECIDED follows.
    uint64_t decision_timeout_us;
} MuseServerOptions;

// Settings of a new connection.
typedef struct MuseConnect {
    // A MuseTrust.
    uint8_t trust;
    // 0.
    uint8_t reserved[7];
    // The server's public key, 32 bytes; for a pinned key alone.
    const uint8_t *server_key;
    // The connect token as text; for a token alone.
    const char *token;
    // Bytes that reach the server with the connection, at most 256; null for none.
    const uint8_t *hello;
    // Number of bytes at `hello`.
    size_t hello_len;
    // Gives up after this time; 0 for 10 s.
    uint64_t timeout_us;
} MuseConnect;

// One event. Which fields mean something depends on `kind`; the others are zero.
typedef struct MuseEvent {
    // A MuseEventKind.
    uint8_t kind;
    // The channel of a message or receipt.
    uint8_t channel;
    // The reason: a MuseRefusal, MuseCloseReason or MuseOutcome.
    uint8_t reason;
    // 0.
    uint8_t reserved;
    // The peer's number for why it closed or denied a connection.
    uint32_t code;
    // The connection of the endpoint.
    uint64_t connection;
    // The account of a connect token; 0 without one.
    uint64_t account;
    // Number of the message that a receipt is for.
    uint64_t message;
    // Bytes that belong to the event.
    const uint8_t *payload;
    // Number of bytes at `payload`.
    size_t payload_len;
    // Further bytes: what a client said when it connected, or the details of a refusal.
    const uint8_t *extra;
    // Number of bytes at `extra`.
    size_t extra_len;
    // The peer's address as text, "203.0.113.5:7000".
    const uint8_t *address;
    // Number of bytes at `address`.
    size_t address_len;
} MuseEvent;

// Settings of one message, beyond those of its channel.
typedef struct MuseSendOptions {
    // The time at which it becomes worthless, by `muse_now`; 0 for never.
    uint64_t deadline_us;
    // A MusePriority; 0 for that of the channel.
    uint8_t priority;
    // 1 asks for an event that tells whether it was delivered.
    uint8_t receipt;
    // 0.
    uint8_t reserved[6];
} MuseSendOptions;

// The bytes that a connection may send.
typedef struct MuseBudget {
    // Bytes that may leave at once.
    uint64_t at_once;
    // Bytes that may be handed over in a tick of the given length, so that all have left before the next.
    uint64_t this_tick;
    // Bytes a second in the long run; 0 when nothing limits them.
    uint64_t rate;
} MuseBudget;

// State and counters of a connection. Times are microseconds.
typedef struct MuseStats {
    // Smoothed round-trip time.
    uint64_t rtt_us;
    // Shortest round-trip time of late.
    uint64_t rtt_min_us;
    // Mean difference between successive round-trip times.
    uint64_t jitter_us;
    // Share of packets lost of late, 0 to 1.
    double loss;
    // Bytes a second that arrive at the peer at present.
    uint64_t bandwidth;
    // Bytes in flight.
    uint64_t in_flight;
    // Bytes that may be in flight.
    uint64_t window;
    // Largest datagram that passes.
    uint64_t mtu;
    // Packets sent.
    uint64_t packets_sent;
    // Bytes of them, without IP and UDP headers.
    uint64_t bytes_sent;
    // Packets received.
    uint64_t packets_received;
    // Bytes of them, without IP and UDP headers.
    uint64_t bytes_received;
    // Packets taken as lost.
    uint64_t packets_lost;
    // Packets of the peer that were rebuilt from parity.
    uint64_t packets_recovered;
    // Changes of the peer's address.
    uint64_t address_changes;
    // Times the connection was interrupted.
    uint64_t interruptions;
    // 1 while nothing is heard of the peer.
    uint8_t is_interrupted;
    // 0.
    uint8_t reserved[7];
} MuseStats;

// Counters of one channel of a connection, both directions.
typedef struct MuseChannelStats {
    // Messages taken for sending.
    uint64_t messages_sent;
    // Their bytes.
    uint64_t bytes_sent;
    // Messages refused because the queue was full.
    uint64_t refused;
    // Messages, or pieces of them, sent again after a loss.
    uint64_t pieces_resent;
    // Messages whose deadline passed.
    uint64_t messages_expired;
    // Messages delivered to the application.
    uint64_t messages_received;
    // Their bytes.
    uint64_t bytes_received;
    // Messages that arrived twice and were dropped.
    uint64_t messages_duplicate;
    // Messages older than one already delivered, dropped.
    uint64_t messages_late;
    // Messages that will never come.
    uint64_t messages_skipped;
    // Bytes that wait to be sent or acknowledged.
    uint64_t queued_bytes;
    // Messages that wait to be sent or acknowledged.
    uint64_t queued_messages;
} MuseChannelStats;

// The rights that a connect token gives.
typedef struct MuseGrant {
    // The account that is let in.
    uint64_t account;
    // Time for which the token may be used for a new session, in seconds; 0 for 60, at most 86,400.
    uint64_t lifetime_s;
    // The public key of the server that it is for.
    uint8_t server_key[32];
    // The address of that server: "203.0.113.5:7000".
    const char *server_address;
    // Bytes for the server, which the player can neither read nor change, at most 256; null for none.
    const uint8_t *user_data;
    // Number of bytes at `user_data`.
    size_t user_data_len;
} MuseGrant;

// The part of a connect token that its holder can read.
typedef struct MuseTokenInfo {
    // The time after which it cannot be used for a new session, seconds since 1970.
    uint64_t expires_s;
    // The public key of the server that it is for.
    uint8_t server_key[32];
    // The first of the server's addresses, as text with a zero at the end.
    uint8_t server_address[64];
} MuseTokenInfo;

// The state of a clock.
typedef struct MuseClockState {
    // The server's time in ticks; less than 0 before the first snapshot.
    double server_ticks;
    // The instant that is being played, in ticks; less than 0 before it plays.
    double play_ticks;
    // Speed of the clock against time; 1 when it is where it should be.
    double rate;
    // Time by which the client plays ahead of the server, in microseconds.
    uint64_t ahead_us;
    // The mean of the last round trips, in microseconds; 0 before the first.
    uint64_t round_trip_us;
    // Ticks that were never simulated because the program stood still.
    uint64_t skipped;
} MuseClockState;

// The instant of the past that is shown, and the measurements behind it.
typedef struct MusePlaybackState {
    // The instant to show, in ticks; less than 0 before the first snapshot.
    double ticks;
    // Time by which others are shown later than their states arrive in the mean, in microseconds.
    uint64_t delay_us;
    // Time that the slowest of a hundred packets takes longer than the mean, in microseconds.
    uint64_t jitter_us;
    // Share of the snapshots that are lost.
    double loss;
    // Ticks from one snapshot to the next.
    double interval_ticks;
} MusePlaybackState;

// Position, velocity and rotation of an entity.
typedef struct MusePose {
    // Position.
    float position[3];
    // Velocity per second; used if the buffer was made with it.
    float velocity[3];
    // Rotation as a quaternion x, y, z, w.
    float rotation[4];
} MusePose;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The meaning of a status in a few words, for any number. Never null; the text belongs to the library and lives for ever.
const char *muse_status_text(int32_t status);

// Returns the version of this interface: the upper 16 bits change when a program has to be compiled again.
uint32_t muse_abi_version(void);

// Makes a new Muse; the caller frees it with `muse_free`. Null only when there is no memory.
struct Muse *muse_new(void);

// Frees a Muse and everything that it owns; connections are told. Null is allowed. No other call may be under way or follow: the
// pointer, and every payload that was handed out, is dead afterwards.
//
// # Safety
// `muse` is null or came from `muse_new` and has not been freed.
void muse_free(struct Muse *muse);

// Destroys what a handle names: an endpoint (its connections are told), an issuer, a clock and so on. The handle is stale afterwards,
// and so are payloads that came from it.
//
// # Safety
// `muse` is null or a living Muse.
MuseStatus muse_destroy(struct Muse *muse,
                        uint64_t handle);

// Copies the words for the last error of this Muse to `buffer`, with a zero at the end, and their length without it to `len`. A
// buffer that is too short gets nothing, and `len` says what is needed (one more, for the zero).
//
// # Safety
// `muse` is null or a living Muse; `capacity` bytes can be written at `buffer` unless it is null; `len` is null or can be written.
MuseStatus muse_error_text(struct Muse *muse,
                           char *buffer,
                           size_t capacity,
                           size_t *len);

// Listens at `address` ("0.0.0.0:7000", "[::]:7000" for both IP versions, port 0 for any) and gives the handle of the new endpoint.
// The key and everything else that is pointed to is copied.
//
// # Safety
// `muse` is null or a living Muse; every other pointer, also those in the structures, is null or points to what it is said to.
MuseStatus muse_server_new(struct Muse *muse,
                           const char *address,
                           const struct MuseConfig *config,
                           const struct MuseServerOptions *options,
                           uint64_t *endpoint);

// Begins to connect to `address` ("game.example:7000"; a name is looked up, which waits) and gives the handle of the new endpoint and the
// id of its one connection. An event says how it went. Everything that is pointed to is copied.
//
// # Safety
// `muse` is null or a living Muse; every other pointer, also those in the structures, is null or points to what it is said to.
MuseStatus muse_client_new(struct Muse *muse,
                           const char *address,
                           const struct MuseConfig *config,
                           const struct MuseConnect *connect,
                           uint64_t *endpoint,
                           uint64_t *connection);

// Receives what has arrived and does what has become due. Once a tick, before the events.
//
// # Safety
// `muse` is null or a living Muse.
MuseStatus muse_poll(struct Muse *muse, uint64_t endpoint);

// Sends what is to be sent. Once a tick, after the game's step, or at once after something urgent.
//
// # Safety
// `muse` is null or a living Muse.
MuseStatus muse_flush(struct Muse *muse, uint64_t endpoint);

// Flushes, then sleeps until something arrives or becomes due, for `timeout_us` at most; `muse_poll` comes next. MUSE_STATUS_NONE when
// nothing arrived. The Muse is busy meanwhile.
//
// # Safety
// `muse` is null or a living Muse.
MuseStatus muse_wait(struct Muse *muse,
                     uint64_t endpoint,
                     uint64_t timeout_us);

// Gives the next event, or MUSE_STATUS_NONE. `payload`, `extra` and `address` point to the library's memory and may be read until the next
// call of `muse_next_event`, `muse_receive`, `muse_destroy` or `muse_free` with this endpoint; other calls, sending above all, leave them
// alone. Nothing is allocated for a message once the endpoint has seen one as long.
//
// # Safety
// `muse` is null or a living Muse; `event` is null or can be written.
MuseStatus muse_next_event(struct Muse *muse,
                           uint64_t endpoint,
                           struct MuseEvent *event);

// As `muse_next_event`, but copies the payload, and `extra` and `address` behind it, to the caller's buffer, which `event` then points to.
// If they do not fit, the answer is MUSE_STATUS_ERROR_SHORT_BUFFER, `event` tells the lengths with null pointers, and the event waits for the
// next call.
//
// # Safety
// `muse` is null or a living Muse; `event` is null or can be written; so can `capacity` bytes at `buffer`.
MuseStatus muse_receive(struct Muse *muse,
                        uint64_t endpoint,
                        struct MuseEvent *event,
                        uint8_t *buffer,
                        size_t capacity);

// Sends a message on a channel; `options` may be null. The payload is copied. `message`, if not null, gets the number that a receipt names.
//
// # Safety
// `muse` is null or a living Muse; `len` bytes can be read at `payload`; the others are null or point to what they are said to.
MuseStatus muse_send(struct Muse *muse,
                     uint64_t endpoint,
                     uint64_t connection,
                     uint8_t channel,
                     const uint8_t *payload,
                     size_t len,
                     const struct MuseSendOptions *options,
                     uint64_t *message);

// Sends a message to every connection; `sent`, if not null, gets how many took it. Those whose queue is full did not.
//
// # Safety
// `muse` is null or a living Muse; `len` bytes can be read at `payload`; `sent` is null or can be written.
MuseStatus muse_broadcast(struct Muse *muse,
                          uint64_t endpoint,
                          uint8_t channel,
                          const uint8_t *payload,
                          size_t len,
                          size_t *sent);

// Closes a connection at once and tells the peer why; `text` may be null. What is still on its way may be lost. The event follows.
//
// # Safety
// `muse` is null or a living Muse; `text` is null or a text that ends with a zero.
MuseStatus muse_close(struct Muse *muse,
                      uint64_t endpoint,
                      uint64_t connection,
                      uint16_t code,
                      const char *text);

// Closes a connection once everything reliable has arrived; the event says when. Nothing more can be sent meanwhile. `text` may be null.
//
// # Safety
// `muse` is null or a living Muse; `text` is null or a text that ends with a zero.
MuseStatus muse_finish(struct Muse *muse,
                       uint64_t endpoint,
                       uint64_t connection,
                       uint16_t code,
                       const char *text);

// Lets a client in that asks (MUSE_EVENT_KIND_ASKING). MUSE_EVENT_KIND_CONNECTED follows on both sides, here once the client's first packet
// has come; if none comes, MUSE_EVENT_KIND_CLOSED. MUSE_STATUS_ERROR_NO_CONNECTION when it no longer asks.
//
// # Safety
// `muse` is null or a living Muse.
MuseStatus muse_admit(struct Muse *muse,
                      uint64_t endpoint,
                      uint64_t connection);

// Refuses a client that asks (MUSE_EVENT_KIND_ASKING), which reads `code` and the first 128 bytes of `text` with MUSE_REFUSAL_DENIED; `text` may
// be null. No event follows here. MUSE_STATUS_ERROR_NO_CONNECTION when it no longer asks.
//
// # Safety
// `muse` is null or a living Muse; `text` is null or a text that ends with a zero.
MuseStatus muse_deny(struct Muse *muse,
                     uint64_t endpoint,
                     uint64_t connection,
                     uint16_t code,
                     const char *text);

// Gives the endpoint's time in microseconds, of its last poll or flush: deadlines and clocks go by it.
//
// # Safety
// `muse` is null or a living Muse; `now_us` is null or can be written.
MuseStatus muse_now(struct Muse *muse, uint64_t endpoint, uint64_t *now_us);

// Gives the bytes that a connection may send now, and in ticks of this length.
//
// # Safety
// `muse` is null or a living Muse; `budget` is null or can be written.
MuseStatus muse_budget(struct Muse *muse,
                       uint64_t endpoint,
                       uint64_t connection,
                       uint64_t tick_us,
                       struct MuseBudget *budget);

// Copies the socket's own address to `buffer` as text with a zero at the end; `len` gets its length without it.
//
// # Safety
// `muse` is null or a living Muse; `capacity` bytes can be written at `buffer`; `len` is null or can be written.
MuseStatus muse_local_address(struct Muse *muse, uint64_t endpoint, char *buffer, size_t capacity, size_t *len);

// Appends the secrets of every connection made from now on to the file at `path`, for an analyser. Whoever has them can read and
// forge everything, so the file is made readable by its owner alone, and one that others can read is refused.
//
// # Safety
// `muse` is null or a living Muse; `path` is null or a text that ends with a zero.
MuseStatus muse_danger_key_log(struct Muse *muse,
                               uint64_t endpoint,
                               const char *path);

// Gives state and counters of a connection.
//
// # Safety
// `muse` is null or a living Muse; `stats` is null or can be written.
MuseStatus muse_stats(struct Muse *muse, uint64_t endpoint, uint64_t connection, struct MuseStats *stats);

// Gives counters of one channel of a connection.
//
// # Safety
// `muse` is null or a living Muse; `stats` is null or can be written.
MuseStatus muse_channel_stats(struct Muse *muse,
                              uint64_t endpoint,
                              uint64_t connection,
                              uint8_t channel,
                              struct MuseChannelStats *stats);

// Makes a server's key and puts its 32 bytes at `key`: keep them in a safe place.
//
// # Safety
// `muse` is null or a living Muse; 32 bytes can be written at `key` unless it is null.
MuseStatus muse_key_new(struct Muse *muse, uint8_t *key);

// Reads a server's key from the file at `path`, or makes one and writes it there, readable by its owner alone.
//
// # Safety
// `muse` is null or a living Muse; `path` is null or a text; 32 bytes can be written at `key` unless it is null.
MuseStatus muse_key_load_or_create(struct Muse *muse, const char *path, uint8_t *key);

// Gives the public key, 32 bytes, that belongs to a server's key: what clients are told.
//
// # Safety
// `muse` is null or a living Muse; 32 bytes can be read at `key` and written at `public_key` unless they are null.
MuseStatus muse_key_public(struct Muse *muse, const uint8_t *key, uint8_t *public_key);

// Reads a public key from 64 hexadecimal digits.
//
// # Safety
// `muse` is null or a living Muse; `text` is null or a text; 32 bytes can be written at `public_key` unless it is null.
MuseStatus muse_key_parse(struct Muse *muse, const char *text, uint8_t *public_key);

// Makes an issuer of connect tokens for the game with this protocol number, whose key verifiers know by `key_id`. `seed` is 32 secret bytes, or
// null for a new key that is kept nowhere.
//
// # Safety
// `muse` is null or a living Muse; 32 bytes can be read at `seed` unless it is null; `issuer` is null or can be written.
MuseStatus muse_issuer_new(struct Muse *muse,
                           uint64_t protocol,
                           uint32_t key_id,
                           const uint8_t *seed,
                           uint64_t *issuer);

// Gives the issuer's public key, 32 bytes: what servers are told, with its `key_id`.
//
// # Safety
// `muse` is null or a living Muse; 32 bytes can be written at `public_key` unless it is null.
MuseStatus muse_issuer_public_key(struct Muse *muse, uint64_t issuer, uint8_t *public_key);

// Issues a token as text, with a zero at the end; `len` gets its length without it. 1,024 bytes are always enough. Treat it like a password.
//
// # Safety
// `muse` is null or a living Muse; `grant` is null or points to a grant; `capacity` bytes can be written at `buffer`; `len` is null or can be
// written.
MuseStatus muse_issue(struct Muse *muse,
                      uint64_t issuer,
                      const struct MuseGrant *grant,
                      char *buffer,
                      size_t capacity,
                      size_t *len);

// Reads the part of a token that its holder can read.
//
// # Safety
// `muse` is null or a living Muse; `text` is null or a text; `info` is null or can be written.
MuseStatus muse_token_read(struct Muse *muse, const char *text, struct MuseTokenInfo *info);

// Makes a client's clock for ticks of this length, the same as the server's, and the sender of its inputs.
//
// # Safety
// `muse` is null or a living Muse; `clock` is null or can be written.
MuseStatus muse_clock_new(struct Muse *muse, uint64_t tick_us, uint64_t *clock);

// Handles a snapshot that arrived at `now_us` and that the server made in `tick`, with the report that `muse_inputs_report` wrote there; null for none.
//
// # Safety
// `muse` is null or a living Muse; `len` bytes can be read at `report`.
MuseStatus muse_clock_snapshot(struct Muse *muse,
                               uint64_t clock,
                               uint64_t now_us,
                               uint32_t tick,
                               const uint8_t *report,
                               size_t len);

// Gives the next task that is due by `now_us`: a MuseDue, and the tick of one. MUSE_STATUS_NONE when nothing is. Each asks for a packet by
// `muse_clock_write`.
//
// # Safety
// `muse` is null or a living Muse; `due` and `tick` are null or can be written.
MuseStatus muse_clock_poll(struct Muse *muse,
                           uint64_t clock,
                           uint64_t now_us,
                           uint8_t *due,
                           uint32_t *tick);

// Writes the packet that the last `muse_clock_poll` asked for, for an unreliable channel. For a tick, `input` is what the player does in it,
// at most MUSE_INPUT_MAX bytes; otherwise null. 1,024 bytes of buffer are always enough; with fewer than that nothing is done.
//
// # Safety
// `muse` is null or a living Muse; `input_len` bytes can be read at `input`; `capacity` bytes can be written at `buffer`; `len` is null or can
// be written.
MuseStatus muse_clock_write(struct Muse *muse,
                            uint64_t clock,
                            uint64_t now_us,
                            uint32_t tick,
                            const uint8_t *input,
                            size_t input_len,
                            uint8_t *buffer,
                            size_t capacity,
                            size_t *len);

// Gives the state of a clock, as of its last poll.
//
// # Safety
// `muse` is null or a living Muse; `state` is null or can be written.
MuseStatus muse_clock_read(struct Muse *muse, uint64_t clock, struct MuseClockState *state);

// Makes the buffer of one client's inputs on the server, which simulates `next_tick` next.
//
// # Safety
// `muse` is null or a living Muse; `inputs` is null or can be written.
MuseStatus muse_inputs_new(struct Muse *muse, uint64_t tick_us, uint32_t next_tick, uint64_t *inputs);

// Handles a packet that `muse_clock_write` wrote. Any other is refused and does no harm.
//
// # Safety
// `muse` is null or a living Muse; `len` bytes can be read at `packet`.
MuseStatus muse_inputs_packet(struct Muse *muse, uint64_t inputs, uint64_t now_us, const uint8_t *packet, size_t len);

// Takes the input of `tick`, which was due at `due_us`: a MuseInputKind and its bytes. The buffer has at least MUSE_INPUT_MAX bytes.
//
// # Safety
// `muse` is null or a living Muse; `capacity` bytes can be written at `buffer`; `len` and `kind` are null or can be written.
MuseStatus muse_inputs_take(struct Muse *muse,
                            uint64_t inputs,
                            uint32_t tick,
                            uint64_t due_us,
                            uint8_t *buffer,
                            size_t capacity,
                            size_t *len,
                            uint8_t *kind);

// Writes the report for the client at `now_us`, in the snapshot of the tick that was due at `due_us`: at most 32 bytes, for `muse_clock_snapshot`.
//
// # Safety
// `muse` is null or a living Muse; `capacity` bytes can be written at `buffer`; `len` is null or can be written.
MuseStatus muse_inputs_report(struct Muse *muse,
                              uint64_t inputs,
                              uint64_t now_us,
                              uint64_t due_us,
                              uint8_t *buffer,
                              size_t capacity,
                              size_t *len);

// Makes the clock by which a client shows others, one for all entities: as late as the arrival of snapshots asks for, and no later.
//
// # Safety
// `muse` is null or a living Muse; `playback` is null or can be written.
MuseStatus muse_playback_new(struct Muse *muse,
                             uint64_t tick_us,
                             uint64_t *playback);

// Handles a snapshot of `tick` that arrived at `now_us`; `number` counts the snapshots of the server to this client and wraps.
//
// # Safety
// `muse` is null or a living Muse.
MuseStatus muse_playback_snapshot(struct Muse *muse,
                                  uint64_t playback,
                                  uint64_t now_us,
                                  uint32_t tick,
                                  uint16_t number);

// Lets the time until `now_us` pass and tells the instant to show. MUSE_STATUS_NONE before the first snapshot.
//
// # Safety
// `muse` is null or a living Muse; `state` is null or can be written.
MuseStatus muse_playback_advance(struct Muse *muse,
                                 uint64_t playback,
                                 uint64_t now_us,
                                 struct MusePlaybackState *state);

// Makes a buffer for the states of one entity. With `use_velocity` it is shown along the curve that has its velocities, else in straight lines.
// `beyond_max_us` is the time that it goes on after its last state; 0 for 250 ms.
//
// # Safety
// `muse` is null or a living Muse; `interpolation` is null or can be written.
MuseStatus muse_interpolation_new(struct Muse *muse,
                                  uint64_t tick_us,
                                  uint8_t use_velocity,
                                  uint64_t beyond_max_us,
                                  uint64_t *interpolation);

// Handles a state of `tick`; in any order, and again does no harm. MUSE_STATUS_NONE when it is of no use any more.
//
// # Safety
// `muse` is null or a living Muse; `pose` is null or points to one.
MuseStatus muse_interpolation_push(struct Muse *muse,
                                   uint64_t interpolation,
                                   uint32_t tick,
                                   const struct MusePose *pose);

// Gives the pose to draw at `ticks`, the instant that `muse_playback_advance` told; it never goes back. `source` gets a MuseSource. MUSE_STATUS_NONE
// before the first state.
//
// # Safety
// `muse` is null or a living Muse; `pose` and `source` are null or can be written.
MuseStatus muse_interpolation_show(struct Muse *muse,
                                   uint64_t interpolation,
                                   double ticks,
                                   struct MusePose *pose,
                                   uint8_t *source);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MUSE_H */
