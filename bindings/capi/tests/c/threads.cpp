// From C++: the header compiles there, each thread has a Muse of its own, and one Muse is never used twice at the same time.
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "check.h"
#include "muse.h"

namespace {

constexpr MuseChannel CHANNEL = {MUSE_DELIVERY_RELIABLE_ORDERED, 0, 0, 0, 0, 0, 0, 0, 0};

// Owns a Muse, as C++ does.
class Owner {
public:
    Owner() : muse(muse_new()) {}
    ~Owner() { muse_free(muse); }
    Owner(const Owner &) = delete;
    Owner &operator=(const Owner &) = delete;
    Muse *const muse;
};

MuseConfig config() {
    MuseConfig config{};
    config.protocol = 0xC0FFEE;
    config.channels = &CHANNEL;
    config.channel_count = 1;
    return config;
}

// Sends `count` messages to an echo and says how many came back right.
int talk(const char *address, const uint8_t *key, uint32_t count) {
    Owner owner;
    MuseConfig channels = config();
    MuseConnect connect{};
    connect.server_key = key;
    uint64_t endpoint = 0, connection = 0;
    if (muse_client_new(owner.muse, address, &channels, &connect, &endpoint, &connection) != MUSE_STATUS_OK) {
        return -1;
    }
    uint32_t sent = 0, right = 0;
    bool connected = false;
    for (int round = 0; round < 60000 && right < count; round++) {
        muse_wait(owner.muse, endpoint, 1000);
        muse_poll(owner.muse, endpoint);
        MuseEvent event;
        while (muse_next_event(owner.muse, endpoint, &event) == MUSE_STATUS_OK) {
            connected |= event.kind == MUSE_EVENT_KIND_CONNECTED;
            if (event.kind == MUSE_EVENT_KIND_MESSAGE && event.payload_len == 4) {
                uint32_t number = 0;
                std::memcpy(&number, event.payload, 4);
                right += number == right;
            }
        }
        for (int batch = 0; connected && batch < 50 && sent < count; batch++, sent++) {
            muse_send(owner.muse, endpoint, connection, 0, reinterpret_cast<uint8_t *>(&sent), 4, nullptr, nullptr);
        }
        muse_flush(owner.muse, endpoint);
    }
    return static_cast<int>(right);
}

void echo(Muse *muse, uint64_t endpoint, const std::atomic<bool> &running) {
    while (running) {
        muse_wait(muse, endpoint, 1000);
        muse_poll(muse, endpoint);
        MuseEvent event;
        while (muse_next_event(muse, endpoint, &event) == MUSE_STATUS_OK) {
            if (event.kind == MUSE_EVENT_KIND_MESSAGE) {
                // Another thread may hold the Muse for a moment, and then this call has done nothing.
                while (muse_send(muse, endpoint, event.connection, event.channel, event.payload, event.payload_len, nullptr, nullptr) ==
                       MUSE_STATUS_ERROR_BUSY) {
                    std::this_thread::yield();
                }
            }
        }
        muse_flush(muse, endpoint);
    }
}

} // namespace

int main() {
    Owner server;
    MuseConfig channels = config();
    MuseServerOptions options{};
    uint8_t key[32], public_key[32];
    CHECK_STATUS(MUSE_STATUS_OK, muse_key_new(server.muse, key));
    CHECK_STATUS(MUSE_STATUS_OK, muse_key_public(server.muse, key, public_key));
    options.key = key;
    uint64_t endpoint = 0;
    CHECK_STATUS(MUSE_STATUS_OK, muse_server_new(server.muse, "127.0.0.1:0", &channels, &options, &endpoint));
    char address[64];
    size_t len = 0;
    CHECK_STATUS(MUSE_STATUS_OK, muse_local_address(server.muse, endpoint, address, sizeof address, &len));

    std::atomic<bool> running{true};
    std::thread serving(echo, server.muse, endpoint, std::cref(running));
    std::vector<std::thread> clients;
    std::atomic<int> right{0};
    for (int client = 0; client < 3; client++) {
        clients.emplace_back([&] { right += talk(address, public_key, 500); });
    }
    // The server's Muse belongs to another thread at most moments: a call from here is done or refused, and nothing else.
    int busy = 0;
    for (int attempt = 0; attempt < 2000; attempt++) {
        uint64_t now = 0;
        MuseStatus status = muse_now(server.muse, endpoint, &now);
        CHECK(status == MUSE_STATUS_OK || status == MUSE_STATUS_ERROR_BUSY);
        busy += status == MUSE_STATUS_ERROR_BUSY;
        std::this_thread::yield();
    }
    for (std::thread &client : clients) {
        client.join();
    }
    running = false;
    serving.join();
    CHECK(right == 1500);
    CHECK(busy > 0);
    return report("capi-threads");
}
