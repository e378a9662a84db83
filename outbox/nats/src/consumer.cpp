#include <stela/nats/consumer.hpp>

#include "connect.hpp"
#include "consumer_worker.hpp"
#include "layout.hpp"

namespace stela::nats {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds least_ack_wait{1'000};

bool is_name(std::string_view text) noexcept {
  if (text.empty() || text.size() > 128) return false;
  for (const char c : text) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '-';
    if (!word) return false;
  }
  return true;
}

void require(bool holds, const std::string& sentence) {
  if (!holds) throw UsageError{sentence};
}

}  // namespace

void check(const ConsumerOptions& options) {
  check(options.url, options.credentials, options.tls);
  api_prefix(options.api);
  require(is_name(options.name),
          "a consumer's name is 1 to 128 letters, digits, '_' and '-', not '" + options.name + "'");
  require(!options.stream.empty(), "a consumer needs the name of a JetStream stream");
  require(options.batch_size >= 1 && options.batch_size <= 10'000, "batch_size is 1 to 10000");
  require(options.prefetch_bytes >= 1, "prefetch_bytes is at least 1");
  require(options.max_ack_pending.value_or(options.batch_size) >= options.batch_size,
          "max_ack_pending is less than batch_size: a batch could never be whole");
  require(options.max_attempts >= 1, "max_attempts is at least 1");
  for (const auto time : {options.connect_timeout, options.idle_wait, options.retry_backoff}) {
    require(time.count() > 0, "the times of a consumer's options are above 0");
  }
  const milliseconds ack_wait = options.ack_wait.value_or(least_ack_wait);
  require(ack_wait >= least_ack_wait, "ack_wait is at least 1000 ms");
  require(options.gap_patience.value_or(ack_wait * 2) > ack_wait,
          "gap_patience is at most ack_wait: what the broker sends again would count as missing; "
          "leave it unset");
  require(options.retry_backoff <= options.retry_backoff_max,
          "retry_backoff is more than retry_backoff_max");
  require(options.retention > ack_wait,
          "retention is at most ack_wait: what the broker sends again would be handled again");
}

Consumer::Consumer(Store& store, const ConsumerOptions& options) {
  check(options);
  worker_ = std::make_unique<Worker>(store, options);
}

Consumer::~Consumer() = default;

void Consumer::add(std::string_view event, std::unique_ptr<Handler> handler) {
  worker_->add(event, std::move(handler));
}

ConsumerTick Consumer::poll() {
  return worker_->poll();
}

void Consumer::run(std::stop_token stop) {
  worker_->run(std::move(stop));
}

void Consumer::on_tick(std::function<void(const ConsumerTick&)> listener) {
  worker_->on_tick(std::move(listener));
}

}  // namespace stela::nats
