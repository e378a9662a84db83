#include <stela/outbox/detail/settings.hpp>

namespace stela {
namespace {

using O = OutboxOptions;
constexpr Setting<O> for_outboxes[] = {
    setting<&O::partition_count>("partition_count", "for `outbox enable`",
                                 {.range = {1, 1024}, .unset = "1"}),
    setting<&O::fence>("fence", "for `outbox enable`",
                       {.choices = "stream|subject|none", .unset = "stream"}),
    setting<&O::leasing>("leasing",
                         "false: one worker has all partitions, and a second one is refused",
                         {.unset = "true"}),
};

using R = RelayOptions;
constexpr SettingLimits a_time{.range = some_time};
constexpr Setting<R> for_relays[] = {
    setting<&R::lease_ttl>("lease_ttl", "a worker silent for so long loses its partitions", a_time),
    setting<&R::lease_renew>("lease_renew", "how often leases are renewed", a_time),
    setting<&R::heartbeat_ttl>("heartbeat_ttl", "a worker silent for so long isn't counted",
                               a_time),
    setting<&R::batch_size>("batch_size", "messages fetched and marked at once",
                            {.range = {1, 10'000}}),
    setting<&R::window>("window", "messages of a partition in flight at most",
                        {.range = {1, 100'000}}),
    setting<&R::max_in_flight_bytes>("max_in_flight_bytes",
                                     "bytes of payload that a worker has in flight at most",
                                     {.range = {1, std::int64_t{1} << 40}}),
    setting<&R::idle_backoff>("idle_backoff", "how long to wait when there was nothing to do",
                              a_time),
    setting<&R::publish_timeout>("publish_timeout", "how long to wait for the broker", a_time),
    setting<&R::retry_backoff>("retry_backoff", "the first wait after trouble", a_time),
    setting<&R::retry_backoff_max>("retry_backoff_max", "the longest wait after trouble", a_time),
    setting<&R::retry_jitter>("retry_jitter", "how much waits vary, 0 to 1", {.range = {0, 1}}),
    setting<&R::max_attempts>("max_attempts", "tries before a message is parked",
                              {.range = {1, 1'000'000}}),
    setting<&R::on_poison>("on_poison", "what becomes of a message that the broker refuses",
                           {.choices = "park|stop|skip"}),
    setting<&R::retention>("retention", "how long the log of batches is kept",
                           {.range = {.least = 3'600'000}}),
    setting<&R::worker>("worker", "the worker's name; one is made if it is empty",
                        {.range = {0, 128}}),
};

}  // namespace

std::span<const Setting<OutboxOptions>> outbox_settings() noexcept {
  return for_outboxes;
}

std::span<const Setting<RelayOptions>> relay_settings() noexcept {
  return for_relays;
}

}  // namespace stela
