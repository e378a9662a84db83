#include <stela/framework/error.hpp>
#include <stela/outbox/detail/settings.hpp>
#include <stela/outbox/relay.hpp>

namespace stela {
namespace {

using std::chrono::milliseconds;

std::string in_ms(milliseconds value) {
  return std::to_string(value.count()) + " ms";
}

/// `smaller` must be less than `larger`, because of `reason`.
void require_less(std::string_view smaller_name, milliseconds smaller, std::string_view larger_name,
                  milliseconds larger, std::string_view reason) {
  if (smaller < larger) return;
  throw UsageError{std::string{smaller_name} + " (" + in_ms(smaller) + ") must be less than " +
                   std::string{larger_name} + " (" + in_ms(larger) + "): " + std::string{reason}};
}

}  // namespace

std::string_view to_string(Fence fence) noexcept {
  switch (fence) {
    case Fence::stream:
      return "stream";
    case Fence::subject:
      return "subject";
    case Fence::none:
      return "none";
  }
  return "unknown";
}

std::string_view to_string(OnPoison on_poison) noexcept {
  switch (on_poison) {
    case OnPoison::park:
      return "park";
    case OnPoison::stop:
      return "stop";
    case OnPoison::skip:
      return "skip";
  }
  return "unknown";
}

void check(const RelayOptions& options) {
  check_ranges(relay_settings(), options);
  if (options.lease_renew * 2 >= options.lease_ttl) {
    throw UsageError{"lease_renew (" + in_ms(options.lease_renew) +
                     ") must be less than half of lease_ttl (" + in_ms(options.lease_ttl) +
                     "): a lease must outlive one renewal that fails"};
  }
  require_less("lease_renew", options.lease_renew, "heartbeat_ttl", options.heartbeat_ttl,
               "the heartbeat is sent with the renewals");
  if (options.retry_backoff > options.retry_backoff_max) {
    throw UsageError{"retry_backoff (" + in_ms(options.retry_backoff) +
                     ") is more than retry_backoff_max (" + in_ms(options.retry_backoff_max) + ")"};
  }
  require_less("publish_timeout", options.publish_timeout, "lease_ttl", options.lease_ttl,
               "an owner must hear of its messages while it still is the owner");
}

}  // namespace stela
