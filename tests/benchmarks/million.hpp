// A store as one that has run for a while, on either engine: what the tool's commands are timed on.
#pragma once

#include <cstdint>
#include <string>

namespace stela::bench {

/// Ten events in each stream, three of them published; two messages of a hundred events parked, in
/// groups, and some discarded; tags, causes, snapshots, projectors behind and with parked events,
/// timers, a consumer with parked messages, and a week of samples. By the library where it checks
/// what it reads, else by rows.
void make_million(const std::string& path, std::int64_t events);
/// The same on the server at `url`. Only with STELA_WITH_POSTGRES.
void make_million_on_postgres(const std::string& url, std::int64_t events);

}  // namespace stela::bench
